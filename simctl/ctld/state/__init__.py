"""What slurmctld knows: records of jobs, steps, nodes and partitions, its tables, and its queues.

Offers `State` and the records to every other room of slurmctld. Records are written here alone, by
methods that name what happens. Nothing here waits, sends, calls a plugin or reads a clock. It
imports `simctl.wire` and the kernel's mailboxes and timers as types.
"""
