"""`simctl serve`: a cluster in real time, Slurm's commands on PATH, real processes for jobs.

For the command line and for the pytest fixture `simctl_cluster`. A World runs as ever, under a
kernel that the wall clock paces and over the machine's own files. Whatever comes from outside
(commands, signals, what processes write, how they end) enters as a turn of its own. It may import
`simctl.world`, the REPL's verbs, and every room below.
"""
