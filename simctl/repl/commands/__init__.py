"""The commands of a session, a module for each topic; to be imported is to be registered."""

from simctl.repl.commands import (
    back,
    choosing,
    debugger,
    helping,
    looking,
    looking_around,
    looking_at_jobs,
    own,
    slurm,
    stops,
    timing,
)

__all__ = [
    "back",
    "choosing",
    "debugger",
    "helping",
    "looking",
    "looking_around",
    "looking_at_jobs",
    "own",
    "slurm",
    "stops",
    "timing",
]
