"""`simctl plugins check`: drive every function of a plugin in trial clusters, and judge it.

For who adds a rule or a plugin class:

- `mistakes.py`: `rule(name, rank=, cost=, remedy=)` declares a kind of mistake, `Mistake` is one.
- `bench.py`: `Bench` runs one plugin class. `bench.run(name, text, model=...)` makes a cluster of a
  scenario's text with the plugin at hand (the text's own `slurm_conf` says that it is used), lets
  it run under the model's observer, and returns a `Ran` (result, events if asked for, world), or
  None where there is no sense in going on. `bench.blame(RULE, function, what, model=, where=)`
  notes a mistake. `bench.given` are the scenarios of `--scenario`, which have been run by then.
- `observe.py`: `Observer` looks at each call of each run; the general rules (exceptions, answers,
  processes, inputs, time) live there and hold in all runs of a bench.
- `check.py`: `DRIVES` maps each plugin class to `drive(bench) -> Outcome`; with
  `Outcome(not_driven="why")` and no mistake the exit status is 2.
- `lua/`: scripts of sites (`FILE.lua`), in ways of their own.
- `report.py`: what is printed. `mistakes.roots` leaves out effects of calls that break.
"""
