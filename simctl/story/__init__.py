"""The story of a run for people: what happened, in the order in which it happened.

Offers `happenings` (commands with what they printed, faults, restarts), `tell` (the same with
messages, forks and plugin calls between) and `picture` (the processes of a step). Everything is
found in the events of the trace and the results of the timeline's commands. It may import what the
report may: the run's result, scenario words, lifecycle points, messages. `simctl run` and
`simctl test` print it.
"""
