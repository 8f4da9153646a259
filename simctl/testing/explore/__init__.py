"""`simctl explore`: search the schedules, latencies and faults of a scenario for what breaks it.

`plan` says what is tried, `trial` runs one of it, `workers` spread it over processes of the
machine, `search` and `exhaustive` decide what comes next, `shrink` makes a find small, and
`scenario_file` and `report` tell it.
"""
