"""A cluster of a scenario, made and run once: `World`, and what came of it: `RunResult`.

For everything above: the command line, the REPL, tests, searches. It is alone in knowing all the
daemons and commands, and may import every room below.
"""

from simctl.world.world import CommandListener, CommandResult, RunResult, World, saves_are_simulated

__all__ = ["CommandListener", "CommandResult", "RunResult", "World", "saves_are_simulated"]
