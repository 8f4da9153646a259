"""What `plugins check` finds: mistakes, each by a rule that tells its cost and its remedy."""

import inspect
import os
import re
from collections.abc import Iterable
from typing import Any, Final

import attrs

from simctl.plugins.compiled.classes import CompiledPlugin


@attrs.frozen(kw_only=True)
class Rule:
    """A kind of mistake: what a cluster would suffer from it, and what to do.

    `rank` orders causes before effects: 0 a call breaks, 1 a call does what is wrong in itself,
    2 what is left in the end is wrong, 3 a cluster suffers. Where something of rank 0 is found,
    what has a higher rank than 1 may be its effect, and is not told; nor is what has rank 3 where
    there is anything else.
    """

    name: str
    rank: int
    cost: str
    remedy: str
    explains: tuple[str, ...] = ()
    """Rules whose mistakes are effects, where one of this rule is found."""


RULES: Final[dict[str, Rule]] = {}


def rule(name: str, *, rank: int, cost: str, remedy: str, explains: tuple[str, ...] = ()) -> str:
    """Declare a rule and return its name."""
    assert name not in RULES, name
    RULES[name] = Rule(name=name, rank=rank, cost=cost, remedy=remedy, explains=explains)
    return name


@attrs.frozen(kw_only=True)
class Mistake:
    """One mistake of a plugin's author."""

    rule: str
    function: str
    what: str
    """What was seen."""

    where: str
    """File and line, as far as known."""

    cost: str
    """What a cluster would suffer."""

    remedy: str
    sometimes: bool = False
    """Whether other calls of the function do well, so that it may be an effect of something."""

    alone: frozenset[str] = frozenset()
    """The functions that were called where it was seen, if few: no other is its cause."""

    despite: frozenset[str] = frozenset()
    """Rules of which it is no effect, as it was seen."""

    times: int = 1
    models: tuple[str, ...] = ()
    """In which models it shows; empty for all that were tried."""

    @property
    def text(self) -> str:
        """What was seen, as `what`."""
        return self.what

    def __str__(self) -> str:
        often = "" if self.times == 1 else f", {self.times} times"
        where = f" (model {self.models[0]}{often})" if len(self.models) == 1 else ""
        if not where and often:
            where = f" ({often[2:]})"
        return f"{self.function}{where}: {self.what}"

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        told = attrs.asdict(self)
        for name in ("sometimes", "alone", "despite"):
            del told[name]
        return told


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of driving a plugin in the ways of its class."""

    not_driven: str = ""
    """Why none of its work was ever done, such as: no directive was found that it accepts."""


def place(kind: type[Any], function: str) -> str:
    """Return where a function of a plugin, or else its class, is written: ``ports.py:31``."""
    if issubclass(kind, CompiledPlugin):
        return kind.place(function)
    found = inspect.getattr_static(kind, function, None)
    found = getattr(found, "__func__", found)
    code = getattr(found, "__code__", None)
    if code is not None and not str(getattr(found, "__module__", "")).startswith("simctl.plugin"):
        return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"  # noqa: PTH119
    try:
        line = inspect.getsourcelines(kind)[1]
        return f"{os.path.basename(inspect.getfile(kind))}:{line}"  # noqa: PTH119
    except (OSError, TypeError):
        return ""


_RAISED_AT: Final = re.compile(r" \((\S+), line (\d+), in \S+\)$")


def place_in(text: str) -> str:
    """Return the place that the text of an exception ends with, or nothing."""
    found = _RAISED_AT.search(text)
    return f"{found[1]}:{found[2]}" if found else ""


def roots(mistakes: Iterable[Mistake]) -> tuple[tuple[Mistake, ...], tuple[Mistake, ...]]:
    """Return the mistakes that are causes, in the order of their ranks, and what may follow of it.

    What may follow may be a mistake of its own, too: it shows when the others are mended.
    """
    every = list(mistakes)
    found = list(every)
    broken = {each.function for each in found if each.rule == BREAKS}
    found = [each for each in found if each.rule != ALWAYS_FAILS or each.function not in broken]
    found = [each for each in found if not _is_explained(each, found)]
    causes = [each for each in found if RULES[each.rule].rank in (1, 2)]
    blamed = {each.function for each in causes if each.rule in _EXPLAIN_FAILURES}
    found = [
        each
        for each in found
        if RULES[each.rule].rank > 0
        or not ((each.sometimes and causes and each.rule == BREAKS) or each.function in blamed)
    ]
    least = min((RULES[each.rule].rank for each in found), default=0)
    most = 1 if least == 0 else max(least, 2)
    fatal = {each.function for each in found if RULES[each.rule].rank == 0}
    kept = [
        each
        for each in found
        if RULES[each.rule].rank <= most or (each.alone and not each.alone & fatal)
    ]
    kept.sort(key=lambda each: RULES[each.rule].rank)
    functions = {(each.rule, each.function) for each in kept}
    rest = [
        each
        for each in every
        if each not in kept
        and (each.rule, each.function) not in functions
        and RULES[each.rule].rank > 0
    ]
    return tuple(kept), tuple(rest)


def _is_explained(mistake: Mistake, found: Iterable[Mistake]) -> bool:
    return any(
        mistake.rule in RULES[each.rule].explains and each.rule not in mistake.despite
        for each in found
    )


# Rules that hold for plugins of every class.

BREAKS: Final = rule(
    "call-breaks",
    rank=0,
    cost="the call counts as failed, wherever it comes; in C the daemon itself would crash",
    remedy="mend the line; to fail on purpose, raise SlurmError(errno, message)",
)
ALWAYS_FAILS: Final = rule(
    "always-fails",
    rank=0,
    cost="whatever waits for this call never comes to pass: in a plain run no call of it succeeds",
    remedy="let it succeed where nothing is wrong; an unpack reads exactly what pack has written",
)
NONSENSE: Final = rule(
    "wrong-answer",
    rank=0,
    cost="the daemon takes it for a failure, or for something else than was meant",
    remedy="return what the guide says for this function (`simctl plugins show FUNCTION`)",
)
FAILS: Final = rule(
    "fails",
    rank=3,
    cost="steps or jobs fail that should run",
    remedy="let it succeed where nothing is wrong and no other step holds what is asked for",
)
EARLY_ENVIRONMENT: Final = rule(
    "early-environment",
    rank=1,
    cost="no task ever sees the variable",
    remedy="set it in the `env` that switch_p_job_attach is given",
)
HANGS: Final = rule(
    "hangs",
    rank=0,
    cost="the daemon that called it never answers anybody again",
    remedy="bound the loop; wait in virtual time, with `await sleep(seconds)`",
)
NOT_AS_USER: Final = rule(
    "needs-root",
    rank=1,
    cost="the call is refused on every node, as the process is the job's owner by then",
    remedy="do it in a function that runs as root, such as job_postfini",
)
WRONG_PROCESS: Final = rule(
    "wrong-process",
    rank=1,
    cost="the value is never there: each daemon and each step daemon has a memory of its own",
    remedy="carry it in the packed credential or record, in a file, or find it out where it is "
    "needed",
)
SHARED: Final = rule(
    "shared-state",
    rank=1,
    explains=(
        *("pack-unpack", "copy", "wrong-rank", "given-twice", "never-freed", "lost-at-restart"),
        *("leaks-on-failure", "freed-early", "freed-twice", "chance"),
    ),
    cost="in Slurm every process has its own copy: what one stores there the others never see",
    remedy="keep it on self, and carry what others need in the credential or a file",
)
READ_ONLY: Final = rule(
    "changes-input",
    rank=1,
    explains=("pack-unpack",),
    cost="the caller goes on with something else than it had",
    remedy="work on a copy",
)
NO_ROUND_TRIP: Final = rule(
    "pack-unpack",
    rank=1,
    explains=("lost-at-restart", "given-twice"),
    cost="the receiver works with other values than the sender had",
    remedy="pack and unpack every field, with the same widths in the same order",
)
BLOCKS: Final = rule(
    "blocks-slurmctld",
    rank=1,
    cost="nobody else is answered meanwhile; clients give up after MessageTimeout (10 s)",
    remedy="let a thread do what takes time (`start`), or do it in a step daemon",
)
REAL_TIME: Final = rule(
    "real-time",
    rank=1,
    cost="the daemon stands still for that long at each call, and nobody sees it in virtual time",
    remedy="wait with `await sleep(seconds)` in an `async def`, outside slurmctld's own calls",
)
UNLOCKED: Final = rule(
    "unlocked",
    rank=1,
    cost="slurmctld reads and changes jobs at that very moment: updates are lost, and C crashes",
    remedy="put it inside `async with slurmctld.locked():`, and look the job up anew in there",
)
STALLS: Final = rule(
    "stalls",
    rank=3,
    cost="jobs wait for ever",
    remedy="let the function that is named come to another answer in the end",
)

_EXPLAIN_FAILURES: Final = frozenset({WRONG_PROCESS, NO_ROUND_TRIP, NOT_AS_USER})
"""What in a function is the reason where the same function fails."""
