"""A scenario as a test: how it is run, and what came of that; for pytest and `simctl test`."""

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from simctl.status import InputError
from simctl.testing.finding import stem_of

MODELS: Final = ("guide", "modern")


class Verdict(enum.Enum):
    """What came of a case."""

    HELD = "held"
    BROKEN = "broken"
    """Something that was expected did not come true."""

    WRONG = "wrong"
    """The scenario, a plugin of it or a golden trace cannot be read."""

    CRASHED = "crashed"
    """simctl itself is at fault."""


@attrs.frozen(kw_only=True)
class Variant:
    """How a scenario is run; what is left empty is the scenario's own."""

    model: str = ""
    schedule: str = "fifo"
    seed: int | None = None

    @property
    def label(self) -> str:
        """Return what tells this variant from others of the scenario; nothing for the usual one."""
        own = self.schedule == "fifo" and self.seed is None
        parts = [self.model, "" if own else self.schedule]
        parts.append("" if self.seed is None else str(self.seed))
        return "-".join(part for part in parts if part)


def variants(
    *, seeds: int = 0, schedule: str = "", models: Sequence[str] = ()
) -> tuple[Variant, ...]:
    """Return the runs that are asked of every scenario.

    Each model (none: the scenario's own) is run first come, first served, or under *schedule*; with
    *seeds* under that of each seed from 0 as well, random if no schedule is named.

    Raises:
        InputError: There is no such model.
    """
    for model in models:
        if model not in MODELS:
            raise InputError(f"model: expected {' or '.join(MODELS)}, got {model!r}")
    found: list[Variant] = []
    for model in dict.fromkeys(models) or ("",):
        if not (schedule and seeds):
            found.append(Variant(model=model, schedule=schedule or "fifo"))
        found += [
            Variant(model=model, schedule=schedule or "random", seed=seed) for seed in range(seeds)
        ]
    return tuple(found)


@attrs.frozen(kw_only=True)
class Case:
    """A scenario's file and how it is run."""

    path: Path
    variant: Variant = attrs.field(factory=Variant)

    @property
    def name(self) -> str:
        """Return the name of the case, which is unique among those of its file."""
        label = self.variant.label
        return f"{stem_of(self.path)}[{label}]" if label else stem_of(self.path)

    def golden(self, model: str) -> Path | None:
        """Return the file of the golden trace; None for runs under other schedules than fifo.

        *model* is that of the run where it is not the scenario's own, else nothing.
        """
        if self.variant.schedule != "fifo" or self.variant.seed is not None:
            return None
        suffix = f".{model}" if model else ""
        return self.path.with_name(f"{stem_of(self.path)}{suffix}.golden.jsonl")


@attrs.frozen(kw_only=True)
class Settings:
    """What is asked of every case."""

    golden: str = "existing"
    """One of `GOLDEN_MODES`."""

    rewrite: bool = False
    ignore: tuple[str, ...] = ()
    check_determinism: bool = False
    orderings: bool = True
    """Whether the built-in orderings are checked, and a broken one fails the case."""

    html: str = ""
    """A folder for the pages of cases that fail; empty for none."""

    command: str = "simctl test"
    """What runs tests, for the lines that say how to go on."""

    rewrite_option: str = "--rewrite"
    determinism_option: str = "--check-determinism"


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of a case, in lines for people."""

    case: Case
    verdict: Verdict
    lines: tuple[str, ...] = ()
    """What is wrong; nothing if all held."""

    note: str = ""
    """What else is worth a word."""

    golden: Path | None = None
    """The golden trace that it was compared with, or that was written."""

    transcript: tuple[str, ...] = ()
    """What the commands of the timeline printed."""

    wall_s: float = 0.0
