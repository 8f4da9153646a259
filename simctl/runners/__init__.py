"""Where many runs are made: in processes of this machine, or by the workers of a Dask cluster.

`work` says what is to be run and where, `running.run` runs it, `bundle` carries files to other
machines, and `brought` code that lies beside simctl. For `explore`, `swarm`, `test`, `sweep` and
`make mutants`; it knows nothing of scenarios and worlds.
"""
