"""Compiled plugins: a `.so`, or a `.c`, in real processes that stand for the simulated ones.

It offers to the registry of plugins the class that stands for a compiled plugin (`classes.find`).
An instance of it holds one real process, a host, which has opened the plugin; a simulated fork that
touches its memory is a real fork of the host. It may import simctl.plugin and below, and of the
plugins' room the guard and the lifecycle points.
"""

from typing import Any, Final

import attrs

SUFFIXES: Final = (".so", ".c")


@attrs.frozen(kw_only=True)
class Against:
    """What compiled plugins find beside themselves, by path; empty for what simctl has."""

    slurm_lib: str = ""
    """The library of Slurm's functions, in place of the stand-in for it."""

    records: str = ""
    """A file whose debug information describes Slurm's records, where a plugin's does not."""

    @classmethod
    def of(cls, scenario: Any) -> "Against":
        """Return what a scenario says of them."""
        return cls(slurm_lib=scenario.slurm_lib, records=scenario.slurm_records)


ALONE: Final = Against()
