"""A job record by subject: its wait, its clock, its burst buffer, its launch.

Each class is a layer on the one below, with the fields of its subject and the methods that write
them; none knows nodes, partitions or other jobs. `records.JobRecord`, the top, does. Imports
`simctl.wire`, and the kernel's mailboxes and timers as types.
"""
