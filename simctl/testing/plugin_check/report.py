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
        for model, tallies in self.tallies.items():
            yield ""
            yield from _table(model, tallies)
        for title, findings in (("problems", self.problems), ("notes", self.notes)):
            if findings:
                yield ""
                yield f"{title}:"
            for each in findings:
                yield from _wrapped(str(each), "  ", "    ")
        yield ""
        yield from _wrapped(self._verdict(), "", "")

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


def _table(model: str, tallies: dict[str, Tally]) -> Iterator[str]:
    yield f"model {model}"
    yield f"  {'FUNCTION':<28}{'CALLS':>5}  {'IN':<22}{'RESULT':<10}{'TOOK':<8}"
    never = []
    for tally in tallies.values():
        if not tally.calls:
            never.append(tally.name)
            continue
        calls = f"{tally.calls}{'*' if tally.directly == tally.calls else ''}"
        places = list(tally.places)
        yield (
            f"  {_cut(tally.name, 27):<28}{calls:>5}  {_cut(places[0], 21):<22}"
            f"{_result(tally):<10}{_took(tally):<8}"
        ).rstrip()
        for place in places[1:]:
            yield f"  {'':<28}{'':>5}  {place}"
    if any(tally.directly == tally.calls > 0 for tally in tallies.values()):
        yield "  * called by the check itself; no run of simctl calls it in this model yet,"
        yield "    or only on demand"
    if never:
        yield from _wrapped(f"never called in this model: {', '.join(never)}", "  ", "    ")


def _result(tally: Tally) -> str:
    if tally.problems:
        return "problem"
    if not tally.failed:
        return "ok"
    return "failed" if tally.failed == tally.calls else f"{tally.failed} failed"


def _took(tally: Tally) -> str:
    return format_us(tally.longest_us) if tally.longest_us else ""


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
