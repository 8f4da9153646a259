"""Tables: the language of -o and --Format, and the columns of jobs, steps and nodes.

For squeue, sinfo, sacct and `scontrol show`.
"""
