"""What the command line of `simctl explore` asks for, checked."""

from pathlib import Path
from typing import Final

import attrs

SEEDS: Final = 200
"""How many schedules are tried if nobody says how many."""


@attrs.frozen(kw_only=True)
class Options:
    """What the command line asks for, checked."""

    path: Path
    shipped: bool = False
    """Whether the scenario is one of simctl's own, beside which nothing is written."""
    words: str = ""
    """The command line behind `explore`."""
    seeds: int = SEEDS
    first_seed: int | None = None
    keep_going: bool = False
    workers: int = 1
    model: str = ""
    jitter_us: int | None = None
    watchdog_s: float = 10.0
    output: str = ""
    as_json: bool = False
    quiet: bool = False
