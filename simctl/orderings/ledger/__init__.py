"""The ledger: what slurmctld has told others, held against what it knows after it dies and starts.

`book` reads from the trace alone who was told what of jobs, steps and requests, and what each
slurmctld that starts goes on with; `kept` holds rules L1 to L5 on what is lost, `once` rules L6 to
L9 on what is doubled, `after` L10 and L11 on what slurmctld says of itself and of ends. Like every
room of rules it may import `observed` and `rules`.
"""
