"""What `simctl plugins check FILE.lua` prints: what jobs are turned into, then the mistakes."""

from collections.abc import Iterator
from typing import Any

import attrs

from simctl.testing.plugin_check.mistakes import Mistake
from simctl.testing.plugin_check.report import wrapped


@attrs.frozen(kw_only=True)
class Treated:
    """A job of the zoo, and what the script did to it."""

    name: str
    command: str
    user: str
    ruling: str

    def as_json(self) -> dict[str, str]:
        """Return the object that `--json` prints."""
        return attrs.asdict(self)


@attrs.frozen(kw_only=True)
class Unreached:
    """A branch that no job reached."""

    line: int
    kind: str
    function: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}{f' in {self.function}' if self.function else ''}"


@attrs.frozen(kw_only=True)
class ScriptReport:
    """How one script did."""

    plugin_type: str
    origin: str
    mistakes: tuple[Mistake, ...]
    treated: tuple[Treated, ...]
    driven: tuple[str, ...]
    unreached: tuple[Unreached, ...]
    notes: tuple[str, ...]
    under: tuple[str, ...]
    """Each Lua and Slurm that it was tried under."""

    trials: int
    not_driven: str = ""
    own_broken: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "plugin": self.plugin_type,
            "origin": self.origin,
            "driven": list(self.driven),
            "mistakes": [each.as_json() for each in self.mistakes],
            "may_follow": [],
            "not_driven": self.not_driven,
            "own_scenarios_broken": list(self.own_broken),
            "trials": self.trials,
            "under": list(self.under),
            "jobs": [each.as_json() for each in self.treated],
            "unreached": [attrs.asdict(each) for each in self.unreached],
            "notes": list(self.notes),
        }

    def lines(self) -> Iterator[str]:
        """Return the report."""
        yield f"{self.plugin_type}, {self.origin}"
        yield from wrapped(f"tried under {'; '.join(self.under)}", "", "  ")
        if self.treated:
            yield ""
            yield "what each job is turned into:"
            alike: dict[str, list[str]] = {}
            for each in self.treated:
                alike.setdefault(each.ruling, []).append(each.name)
            for ruling, names in alike.items():
                yield from wrapped(f"{ruling}: {'; '.join(names)}", "  ", "    ")
        if self.mistakes:
            yield ""
            yield "mistakes:"
        for mistake in self.mistakes:
            yield from wrapped(str(mistake), "  ", "    ")
            yield f"    where:  {mistake.where} ({mistake.rule})"
            yield from wrapped(f"cost:   {mistake.cost}", "    ", "            ")
            yield from wrapped(f"remedy: {mistake.remedy}", "    ", "            ")
        for title, texts in (
            ("branches that no job reached:", [str(each) for each in self.unreached]),
            ("expectations of your own that did not hold:", list(self.own_broken)),
            ("notes:", list(self.notes)),
        ):
            if texts:
                yield ""
                yield title
            for text in texts:
                yield from wrapped(text, "  ", "    ")
        yield ""
        yield from wrapped(self._verdict(), "", "")

    def _verdict(self) -> str:
        count = len(self.mistakes)
        if count:
            return f"{self.plugin_type}: {count} mistake{'s' if count > 1 else ''}"
        if self.not_driven:
            return f"{self.plugin_type}: not driven: {self.not_driven}"
        return f"{self.plugin_type}: fine, in {self.trials} trial clusters"
