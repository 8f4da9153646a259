"""What `simctl plugins check` prints: a line a function, then the mistakes, then the verdict."""

from collections.abc import Iterator
from typing import Any

import attrs

from simctl.scenario.durations import format_us
from simctl.testing.plugin_check.mistakes import Mistake
from simctl.testing.plugin_check.observe import Tally

WIDTH = 79


@attrs.frozen(kw_only=True)
class Note:
    """Something that an author may want to know, and that is no mistake."""

    function: str
    text: str
    times: int
    models: tuple[str, ...]

    def __str__(self) -> str:
        often = "" if self.times == 1 else f", {self.times} times"
        where = "" if len(self.models) != 1 else f" (model {self.models[0]}{often})"
        if not where and often:
            where = f" ({often[2:]})"
        return f"{self.function}{where}: {self.text}"


@attrs.frozen(kw_only=True)
class Checked:
    """How one plugin did."""

    plugin_type: str
    origin: str
    tallies: dict[str, dict[str, Tally]]
    """By model, then by function."""

    mistakes: tuple[Mistake, ...]
    may_follow: tuple[Mistake, ...]
    """What was seen besides, and may come of the mistakes."""

    notes: tuple[Note, ...]
    own_broken: tuple[str, ...]
    """Expectations of the author's own scenarios that did not hold."""

    not_driven: str
    """Why the plugin had no work, or not all trials; empty if it had."""

    trials: int
    own: frozenset[str]
    """The functions that the plugin itself defines."""

    compiled: bool = False
    """Whether it is in C, and what it keeps are variables."""

    @property
    def driven(self) -> tuple[str, ...]:
        """The functions of the plugin's own that were called."""
        called = dict.fromkeys(
            name
            for by_name in self.tallies.values()
            for name, tally in by_name.items()
            if tally.calls
        )
        return tuple(name for name in called if name in self.own)

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "plugin": self.plugin_type,
            "origin": self.origin,
            "driven": list(self.driven),
            "mistakes": [each.as_json() for each in self.mistakes],
            "may_follow": [each.as_json() for each in self.may_follow],
            "not_driven": self.not_driven,
            "own_scenarios_broken": list(self.own_broken),
            "trials": self.trials,
            "functions": {
                model: {name: _tally_json(tally) for name, tally in tallies.items()}
                for model, tallies in self.tallies.items()
            },
            "notes": [attrs.asdict(each) for each in self.notes],
        }

    def lines(self) -> Iterator[str]:
        """Return the report, in lines of at most 79 columns but for long words."""
        yield f"{self.plugin_type}, {self.origin}"
        yield ""
        yield from self._table()
        if self.mistakes:
            yield ""
            yield "mistakes:"
        for each in self.mistakes:
            yield from wrapped(str(each), "  ", "    ")
            if each.where:
                yield f"    where:  {each.where} ({each.rule})"
            yield from wrapped(f"cost:   {each.cost}", "    ", "            ")
            yield from wrapped(f"remedy: {each.remedy}", "    ", "            ")
        if self.may_follow:
            yield ""
            yield "seen besides; it may follow from the above, or show again when that is mended:"
        for each in self.may_follow:
            yield from wrapped(f"{each} ({each.rule}, {each.where})", "  ", "    ")
        if self.own_broken:
            yield ""
            yield "expectations of your own that did not hold (no mistake of the plugin by itself):"
        for line in self.own_broken:
            yield from wrapped(line, "  ", "    ")
        if self.compiled:
            yield from self._variables()
        if self.notes:
            yield ""
            yield "notes:"
        for note in self.notes:
            yield from wrapped(str(note), "  ", "    ")
        yield ""
        yield from wrapped(self._verdict(), "", "")

    def _variables(self) -> Iterator[str]:
        """Return which variables of the plugin calls have changed, by function and process."""
        found: dict[str, dict[str, set[str]]] = {}
        for by_name in self.tallies.values():
            for tally in by_name.values():
                for name, roles in tally.writes.items():
                    found.setdefault(tally.name, {}).setdefault(name, set()).update(roles)
        if found:
            yield ""
            yield "variables that calls changed:"
        for function, names in found.items():
            told = (f"{name} ({', '.join(sorted(roles))})" for name, roles in names.items())
            yield from wrapped(f"{function}: {', '.join(told)}", "  ", "    ")

    def _table(self) -> Iterator[str]:
        """Return a line a function of the plugin's own, with its calls in each model."""
        models = "".join(f"{model:>8}" for model in self.tallies)
        yield f"{'FUNCTION':<30}{models}  {'RESULT':<12}TOOK"
        stubs: list[str] = []
        marked = False
        blamed = {each.function for each in self.mistakes}
        for name in next(iter(self.tallies.values())):
            tallies = [by_name.get(name) for by_name in self.tallies.values()]
            if name not in self.own:
                stubs.append(name)
                continue
            counts = "".join(f"{_calls(tally):>8}" for tally in tallies)
            marked = marked or "*" in counts
            seen = [tally for tally in tallies if tally is not None]
            result = _result(seen, name in blamed)
            yield f"{_cut(name, 29):<30}{counts}  {result:<12}{_took(seen)}".rstrip()
        if marked:
            yield "* by the check itself: no run of simctl calls it yet, or only on demand"
        if stubs:
            yield from wrapped(self._told_stubs(stubs), "", "")

    def _told_stubs(self, stubs: list[str]) -> str:
        """Say that the base class's stubs were called as well."""
        tallies = [
            by_name[name] for by_name in self.tallies.values() for name in stubs if name in by_name
        ]
        called = len({tally.name for tally in tallies if tally.calls})
        blamed = {each.function for each in self.mistakes}
        wrong = any(name in blamed for name in stubs)
        how = "with mistakes" if wrong else "without trouble"
        return (
            f"The other {len(stubs)} functions are the base class's stubs; {called} of them were "
            f"called, {how}."
        )

    def _verdict(self) -> str:
        count = len(self.mistakes)
        if count:
            return f"{self.plugin_type}: {count} mistake{'s' if count > 1 else ''}"
        if self.not_driven:
            return f"{self.plugin_type}: not driven: {self.not_driven}"
        return f"{self.plugin_type}: fine, in {self.trials} trial clusters"


def _tally_json(tally: Tally) -> dict[str, Any]:
    return {
        "calls": tally.calls,
        "directly": tally.directly,
        "places": tally.places,
        "failed": tally.failed,
        "longest_us": tally.longest_us,
        "state": {name: sorted(roles) for name, roles in tally.writes.items()},
    }


def _calls(tally: Tally | None) -> str:
    if tally is None or not tally.calls:
        return "never"
    return f"{tally.calls}{'*' if tally.directly == tally.calls else ''}"


def _result(tallies: list[Tally], blamed: bool) -> str:
    if blamed:
        return "mistake"
    calls = sum(tally.calls for tally in tallies)
    failed = sum(tally.failed for tally in tallies)
    if not calls:
        return "-"
    if not failed:
        return "ok"
    return "failed" if failed == calls else f"{failed} failed"


def _took(tallies: list[Tally]) -> str:
    longest_us = max((tally.longest_us for tally in tallies), default=0)
    return format_us(longest_us) if longest_us else ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def wrapped(text: str, first: str, rest: str) -> list[str]:
    """Return a text in lines of the report, the first and the rest behind what is given."""
    import textwrap  # noqa: PLC0415 - only a report needs it

    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
