"""What `simctl plugins check` prints: a line a function, then what is wrong, then the verdict."""

from collections.abc import Iterator
from typing import Any

import attrs

from simctl.scenario.durations import format_us
from simctl.testing.plugin_check.observe import Tally

WIDTH = 79


@attrs.frozen(kw_only=True)
class Finding:
    """Something that is wrong, or worth knowing, in one model or both."""

    function: str
    kind: str
    """``problem`` or ``note``."""

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

    findings: tuple[Finding, ...]
    trials: int
    own: frozenset[str]
    """The functions that the plugin itself defines."""

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What is wrong with it."""
        return tuple(each for each in self.findings if each.kind == "problem")

    @property
    def notes(self) -> tuple[Finding, ...]:
        """What its author may want to know."""
        return tuple(each for each in self.findings if each.kind == "note")

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "plugin": self.plugin_type,
            "origin": self.origin,
            "trials": self.trials,
            "functions": {
                model: {name: _tally_json(tally) for name, tally in tallies.items()}
                for model, tallies in self.tallies.items()
            },
            "problems": [attrs.asdict(each) for each in self.problems],
            "notes": [attrs.asdict(each) for each in self.notes],
        }

    def lines(self) -> Iterator[str]:
        """Return the report, in lines of at most 79 columns but for long words."""
        yield f"{self.plugin_type}, {self.origin}"
        yield ""
        yield from self._table()
        for title, findings in (("problems", self.problems), ("notes", self.notes)):
            if findings:
                yield ""
                yield f"{title}:"
            for each in findings:
                yield from _wrapped(str(each), "  ", "    ")
        yield ""
        yield from _wrapped(self._verdict(), "", "")

    def _table(self) -> Iterator[str]:
        """Return a line a function of the plugin's own, with its calls in each model."""
        models = "".join(f"{model:>8}" for model in self.tallies)
        yield f"{'FUNCTION':<30}{models}  {'RESULT':<12}TOOK"
        stubs: list[str] = []
        marked = False
        for name in next(iter(self.tallies.values())):
            tallies = [by_name.get(name) for by_name in self.tallies.values()]
            if name not in self.own:
                stubs.append(name)
                continue
            counts = "".join(f"{_calls(tally):>8}" for tally in tallies)
            marked = marked or "*" in counts
            seen = [tally for tally in tallies if tally is not None]
            yield f"{_cut(name, 29):<30}{counts}  {_result(seen):<12}{_took(seen)}".rstrip()
        if marked:
            yield "* by the check itself: no run of simctl calls it yet, or only on demand"
        if stubs:
            yield from _wrapped(self._told_stubs(stubs), "", "")

    def _told_stubs(self, stubs: list[str]) -> str:
        """Say that the base class's stubs were called as well."""
        tallies = [
            by_name[name] for by_name in self.tallies.values() for name in stubs if name in by_name
        ]
        called = len({tally.name for tally in tallies if tally.calls})
        how = "with problems" if any(tally.problems for tally in tallies) else "without trouble"
        return (
            f"The other {len(stubs)} functions are the base class's stubs; {called} of them were "
            f"called, {how}."
        )

    def _verdict(self) -> str:
        count = len(self.problems)
        if count:
            return f"{self.plugin_type}: {count} problem{'s' if count > 1 else ''}"
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


def _result(tallies: list[Tally]) -> str:
    if any(tally.problems for tally in tallies):
        return "problem"
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


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    import textwrap  # noqa: PLC0415 - only a report needs it

    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
