"""A cluster of a scenario, made and run once: `World`, and what came of it: `RunResult`.

For everything above: the command line, the REPL, tests, searches. It is alone in knowing all the
daemons and commands, and may import every room below. `build` makes what daemons are given,
`timeline` has the scenario happen, `login` runs commands, `ending` decides when all is over.
"""

from simctl.world.build import saves_are_simulated
from simctl.world.login import CommandListener
from simctl.world.results import CommandResult, RunResult
from simctl.world.world import World

__all__ = ["CommandListener", "CommandResult", "RunResult", "World", "saves_are_simulated"]
