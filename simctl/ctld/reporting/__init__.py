"""What slurmctld tells of itself: to clients, to accounting, and to the plugins in it.

Offers the answers to squeue, sinfo and scontrol (`info`), slurmdbd's rows (`bookkeeping`), and the
records that plugins are handed (`job_view`, `step_view`). It imports `controller` and the rooms
below it.
"""
