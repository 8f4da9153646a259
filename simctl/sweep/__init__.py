"""`simctl sweep`: a table of runs, parameters times seeds, and what came of them.

For people who ask what a setting does: `file` reads what is asked, `checking` reads every
combination before a run is made, `runs` makes runs wherever the room `runners` has them made,
`table` keeps what came of each, so that an interrupted sweep goes on, and `summary` says it. It may
import all but the command line: runs are those of `simctl run`.
"""
