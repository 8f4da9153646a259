"""`simctl swarm`: random clusters, workloads and faults from seeds, and what must hold after each.

`make.draft` draws a scenario, `trial` runs it and holds it against the rules of `rest`, `command`
does so many times, and `shrink` makes small what was found.
"""
