"""Persistent buffers: one job makes a buffer by name, it outlives the job, and another ends it.

What makes and ends one is found as every directive is: in what the plugin's code and docstrings
show, and in what its words suggest. Whether the plugin has persistent buffers at all is known by
two of its words, one for each: `create_persistent` and `destroy_persistent`, or the like.
"""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from simctl.testing.plugin_check.burst_buffer import rules
from simctl.testing.plugin_check.burst_buffer.directives import Directive, Probe, probing
from simctl.testing.plugin_check.burst_buffer.keeps import more_than, other_numbers
from simctl.testing.plugin_check.burst_buffer.lives import Chosen
from simctl.testing.plugin_check.burst_buffer.trials import Trial, submit
from simctl.testing.plugin_check.burst_buffer.vocabulary import verbs_of

_NAME: Final = "alpha"
_SIZES: Final = ("1G", "1GiB", "1", "10")
_NAMES_OF_SIZES: Final = ("capacity", "size", "mb", "gb", "space")
_NAMES_OF_NAMES: Final = ("name", "id", "label", "buffer")
_CREATED_S: Final = 400.0
_RESTART_S: Final = 500.0
_ENDED_S: Final = 600.0

Kept = dict[str, int | float]


@attrs.frozen
class Pair:
    """The directive that makes a persistent buffer, and the one that ends it."""

    makes: Directive
    ends: Directive


def find_pair(kind: type[Any], chosen: Chosen, given: tuple[Directive, ...] = ()) -> Pair | None:
    """Return what makes and ends persistent buffers of a plugin; None where it has none."""
    known = chosen.vocabulary
    shown = [line for each in given for line in each.lines] + list(known.examples)
    words = dict.fromkeys((*known.words, *(word for line in shown for word in line.split())))
    verbs = sorted(verbs_of(words), key=lambda pair: "persist" not in pair[0])
    if not verbs:
        return None
    begins = dict.fromkeys(line.split()[0] for line in (*chosen.directive.lines, *shown))
    found: list[Pair] = []

    async def use(probe: Probe) -> None:
        usual = (await probe(Directive(("# nothing",)))).lines
        usual |= (await probe(chosen.directive)).lines
        for makes, ends in verbs:
            makers = _makers(makes, begins, shown, words)
            one = await _first_taken(probe, usual, makes, makers)
            if one is not None:
                enders = _enders(one, ends, begins, shown)
                other = await _first_taken(probe, usual, ends, enders)
                if other is not None:
                    found.append(Pair(one, other))
                    return

    probing(kind, chosen.setting, known, use)
    return found[0] if found else None


async def _first_taken(
    probe: Probe, usual: frozenset[tuple[str, int]], verb: str, candidates: Iterator[Directive]
) -> Directive | None:
    """Return the first candidate that is taken, and not for what else stands in it."""
    for each in dict.fromkeys(candidates):
        answer = await probe(each)
        if answer.accepted and (verb in answer.entered or answer.lines - usual):
            return each
    return None


def _makers(
    verb: str, begins: dict[str, None], shown: list[str], words: dict[str, None]
) -> Iterator[Directive]:
    for line in shown:
        if verb in line.split():
            yield from (Directive((_with_values(line, size),)) for size in _SIZES)
    names = [each for each in _NAMES_OF_NAMES if each in words] or [_NAMES_OF_NAMES[0]]
    sizes = [each for each in _NAMES_OF_SIZES if each in words] or [*_NAMES_OF_SIZES[:2]]
    for begin in begins:
        for size in _SIZES:
            for name in names:
                for key in sizes:
                    yield Directive((f"{begin} {verb} {name}={_NAME} {key}={size}",))
                    yield Directive((f"{begin} {verb}={_NAME} {key}={size}",))
            yield Directive((f"{begin} {verb} {_NAME} {size}",))
        yield from (Directive((f"{begin} {verb} {name}={_NAME}",)) for name in names)
        yield Directive((f"{begin} {verb} {_NAME}",))


def _enders(
    makes: Directive, verb: str, begins: dict[str, None], shown: list[str]
) -> Iterator[Directive]:
    """Return what may end the buffer that *makes* makes: it has the same name there."""
    values = dict(word.split("=", 1) for word in makes.words if "=" in word)
    bare = [word for word in makes.words[2:] if "=" not in word]
    for line in shown:
        if verb in line.split():
            made = [_same_value(word, values) for word in line.split()]
            at = made.index(verb) + 1
            if bare and at < len(made) and "=" not in made[at]:
                made[at] = bare[0]
            yield Directive((" ".join(made),))
    first = makes.words[0]
    for begin in dict.fromkeys((first, *begins)):
        named = [f"{key}={value}" for key, value in values.items() if value == _NAME]
        for word in (*named, *bare[:1], _NAME):
            yield Directive((f"{begin} {verb} {word}",))
        yield Directive((f"{begin} {verb}={_NAME}",))


def _with_values(line: str, size: str) -> str:
    """Return a line that code or docstrings show with a name and a size in it."""
    made = []
    for word in line.split():
        key, equals, value = word.strip("[]").partition("=")
        if equals and key in _NAMES_OF_SIZES and not value[:1].isdigit():
            made.append(f"{key}={size}")
        elif equals and not value[:1].isalnum():
            made.append(f"{key}={_NAME}")
        else:
            made.append(word.strip("[]"))
    return " ".join(made)


def _same_value(word: str, values: dict[str, str]) -> str:
    key, equals, _ = word.strip("[]").partition("=")
    return f"{key}={values[key]}" if equals and key in values else word.strip("[]")


def persistent_trials(pair: Pair) -> Iterator[Trial]:
    """Return lives of a persistent buffer: made, made and ended, with a restart between."""
    scripts = {
        "makes.sh": pair.makes.script("srun ./app"),
        "ends.sh": pair.ends.script("srun ./app"),
    }
    for restarts in (False, True):
        between = " and slurmctld was started anew" if restarts else ""
        again = ({"at": f"{_RESTART_S}s", "fault": {"restart": "slurmctld"}},) if restarts else ()
        for ends in (False, True):
            yield Trial(
                name=f"a persistent buffer is made{' and ended' if ends else ''}{between}",
                followed=not restarts and ends,
                timeline=(
                    submit("makes.sh"),
                    *again,
                    *((submit("ends.sh", _ENDED_S, "", "alice"),) if ends else ()),
                    {"at": f"{_ENDED_S + _CREATED_S}s", "run": "scontrol show burst"},
                ),
                restarts=restarts,
                leaves="bb_p_load_state" if restarts else "bb_p_job_test_stage_in",
                what=f"a persistent buffer was made{' and ended' if ends else ''}{between}",
                scripts=scripts,
            )


class Persistent:
    """Judges the lives of a plugin's persistent buffers in one model, in their order."""

    def __init__(self, pair: Pair, idle: Kept, once: Kept) -> None:
        self._pair = pair
        self._idle, self._once = idle, once
        self._made: Kept | None = None
        """What is kept while the buffer is there."""

    def judge(
        self, trial: Trial, ways: tuple[list[str], list[str]], kept: Kept
    ) -> Iterator[tuple[str, str, str]]:
        """Return what is wrong in a life: rule, function and what was seen.

        *ways* are the states that the job that makes it went through, and those of the one that
        ends it, if there is one in this life.
        """
        ends = "and ended" in trial.what
        directives = (self._pair.makes, self._pair.ends)
        for job, (went, directive) in enumerate(zip(ways, directives, strict=True), 1):
            if job > 1 and not ends:
                break
            last = went[-1] if went else "refused as it is submitted"
            if not last.startswith("COMPLETED"):
                what = f"job {job}, with `{directive}`, is {last} in the end, where {trial.what}"
                yield rules.PERSISTENT_STUCK, trial.leaves, what
                return
        if not ends and not trial.restarts:
            self._made = kept
        elif not ends and self._made is not None:
            yield from self._forgotten(trial, kept)
        elif ends:
            yield from self._left(trial, kept)

    def _forgotten(self, trial: Trial, kept: Kept) -> Iterator[tuple[str, str, str]]:
        made = self._made or {}
        for path in more_than(made, self._idle):
            if path not in more_than(self._once, self._idle) and kept.get(path, 0) < made[path]:
                what = f"{path} has {kept.get(path, 0)} entries after {trial.what}, and had"
                yield rules.PERSISTENT_LOST, trial.leaves, f"{what} {made[path]} before"
                return
        for path in other_numbers(made, self._idle):
            steady = self._once.get(path) == self._idle[path]
            if steady and kept.get(path) == self._idle[path]:
                what = f"{path} is {kept[path]} after {trial.what}, as if there were no buffer"
                yield rules.PERSISTENT_LOST, trial.leaves, what
                return

    def _left(self, trial: Trial, kept: Kept) -> Iterator[tuple[str, str, str]]:
        for path in more_than(kept, self._once):
            what = f"{path} has {kept[path]} entries when {trial.what}, and had"
            yield rules.KEPT, trial.leaves, f"{what} {self._once.get(path, 0)} before"
            return
        for path in other_numbers(kept, self._idle):
            if self._once.get(path) == self._idle[path]:
                what = (
                    f"{path} is {kept[path]} when {trial.what}, and was {self._idle[path]} before"
                )
                yield rules.SPACE_LOST, trial.leaves, what
                return


__all__ = ["Pair", "Persistent", "find_pair", "persistent_trials"]
