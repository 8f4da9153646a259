"""slurmctld's ways out: its process, mailbox, clock, trace, timers and burst buffer plugins.

Offers `Port`, which is `State` with these ways out, `BurstBuffers` and `Polls`. The state of a job
or node is changed by `Port.set_job` and `Port.set_node` alone. It imports `choose` and `state`.
"""
