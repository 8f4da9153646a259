"""What a built-in ordering is: a rule with its key, its exceptions, its source, and its check."""

from collections.abc import Callable, Iterator
from typing import Final, Literal

import attrs

from simctl.kernel.events import Event
from simctl.orderings.observed import Observed

AUTHORITY: Final = 100
"""The number before that of the first rule about who may do what: A1, A2 and so on."""

LEDGER: Final = 200
"""The number before that of the first rule about what slurmctld has told others: L1 and so on."""

Model = Literal["guide", "modern"]
BOTH: Final[tuple[Model, ...]] = ("guide", "modern")
GUIDE: Final[tuple[Model, ...]] = ("guide",)
MODERN: Final[tuple[Model, ...]] = ("modern",)


@attrs.frozen
class Kept:
    """Groups of events in which a rule held."""

    groups: int = 1


KEPT: Final = Kept()


@attrs.frozen(kw_only=True)
class Broken:
    """A group of events in which a rule did not hold."""

    group: str
    """Which group, such as `step 1.0 on n1 (pid 1005)`."""

    what: str
    """What is wrong in it, in a sentence without its full stop."""

    events: tuple[Event, ...]
    """The events that show it, one at least; the slice to look at goes from first to last."""


Finding = Kept | Broken
Check = Callable[[Observed], Iterator[Finding]]


@attrs.frozen(kw_only=True)
class Rule:
    """A built-in ordering."""

    number: int
    """Its place among the others; several parts of one rule have one number."""

    name: str
    """Such as `postfini-iff-preinit`; unique."""

    says: str
    """What holds, in a sentence without its full stop."""

    key: str
    """What makes a group: the rule holds in each by itself."""

    exceptions: str
    """When it need not hold; empty if it always does."""

    source: str
    """Where it comes from: a guide, and in how many groups of recordings of real Slurm it held."""

    functions: tuple[str, ...]
    """Names of the plugin functions it is about; `simctl plugins show` lists it with them."""

    models: tuple[Model, ...]
    """In which models it is checked."""

    check: Check | None
    """What looks at a run; None for a rule that no run here can show."""

    unchecked: str = ""
    """Why it is not checked, in the models (or all) in which it is not."""

    @property
    def label(self) -> str:
        """Return the number as docs/orderings.md has it."""
        for before, letter in ((LEDGER, "L"), (AUTHORITY, "A")):
            if self.number > before:
                return f"{letter}{self.number - before}"
        return str(self.number)


RULES: Final[list[Rule]] = []
"""Every rule whose module has been imported; `checking.declared` imports them all."""


def rule(
    number: int,
    name: str,
    *,
    says: str,
    key: str,
    source: str,
    functions: tuple[str, ...] = (),
    exceptions: str = "",
    models: tuple[Model, ...] = BOTH,
    unchecked: str = "",
) -> Callable[[Check], Check]:
    """Declare the decorated check as a rule: it yields one finding for each group it looked at."""

    def declare(check: Check) -> Check:
        RULES.append(
            Rule(
                number=number,
                name=name,
                says=says,
                key=key,
                exceptions=exceptions,
                source=source,
                functions=functions,
                models=models,
                check=check,
                unchecked=unchecked,
            )
        )
        return check

    return declare


def unobserved(
    number: int,
    name: str,
    *,
    says: str,
    why: str,
    source: str,
    functions: tuple[str, ...] = (),
) -> None:
    """Declare a rule that no run here can keep or break, and why, so that none is missing."""
    RULES.append(
        Rule(
            number=number,
            name=name,
            says=says,
            key="",
            exceptions="",
            source=source,
            functions=functions,
            models=(),
            check=None,
            unchecked=why,
        )
    )


def broken(group: object, what: str, *events: Event) -> Broken:
    """Return that a rule is broken in a group, with the events that show it."""
    return Broken(group=str(group), what=what, events=events)
