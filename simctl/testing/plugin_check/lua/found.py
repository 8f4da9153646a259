"""Collects the mistakes of a script: each once, with the jobs that showed it."""

import re

import attrs

from simctl.testing.plugin_check.lua.rules import (
    FILTER_ERROR,
    LUA_ERROR,
    LUA_VERSION,
    OLD_INTERFACE,
    STAGE_ERROR,
    UNDEFINED,
    UNKNOWN_CONSTANT,
)
from simctl.testing.plugin_check.mistakes import RULES, Mistake

_SHOWN = 3
_WORD = re.compile(r"\w+")


@attrs.define(eq=False)
class _Entry:
    rule: str
    function: str
    what: str
    line: int
    jobs: dict[str, None] = attrs.field(factory=dict)
    luas: dict[str, None] = attrs.field(factory=dict)
    only: str = ""
    """The Lua under which alone it shows."""


@attrs.define(eq=False)
class Found:
    """What was found so far in a script of a name."""

    name: str
    _entries: dict[tuple[str, str, int], _Entry] = attrs.field(factory=dict)

    def blame(
        self,
        rule: str,
        function: str,
        what: str,
        *,
        line: int = 0,
        job: str = "",
        lua: str = "",
        one: bool = False,
    ) -> None:
        """Note a mistake; *one*: a line has one of this rule at most, however it shows."""
        key = (rule, "" if one and line else what, line)
        entry = self._entries.setdefault(key, _Entry(rule, function, what, line))
        if job:
            entry.jobs[job] = None
        if lua:
            entry.luas[lua] = None

    def has(self, rule: str, word: str = "") -> bool:
        """Return whether there is a mistake of a rule, with a word in what was seen."""
        return any(each.rule == rule and word in each.what for each in self._entries.values())

    def on_line(self, rule: str, line: int) -> bool:
        """Return whether there is a mistake of a rule on a line."""
        return any(each.rule == rule and each.line == line for each in self._entries.values())

    def told(self, rule: str, field: str) -> bool:
        """Return whether a field has been named under a rule."""
        return any(
            each.rule == rule and field in _WORD.findall(each.what)
            for each in self._entries.values()
        )

    def of_version(self, line: int, lua: str) -> None:
        """Note that an error on a line shows under one Lua alone, unless it shows under others."""
        for each in self._entries.values():
            if each.line == line and list(each.luas) == [lua]:
                each.only = lua

    def _is_effect(self, entry: _Entry) -> bool:
        """Return whether a mistake follows from another, which names the cause."""
        others = self._entries.values()
        if entry.rule in (LUA_ERROR, STAGE_ERROR, FILTER_ERROR):
            return any(
                each.rule == OLD_INTERFACE
                or (
                    each.line == entry.line
                    and each.rule in (UNKNOWN_CONSTANT, UNDEFINED, LUA_VERSION)
                )
                for each in others
            )
        return False

    def mistakes(self) -> tuple[Mistake, ...]:
        """Return the mistakes, causes first."""
        found = []
        for each in self._entries.values():
            if self._is_effect(each):
                continue
            rule = each.rule
            if each.only and rule in (LUA_ERROR, FILTER_ERROR):
                rule = LUA_VERSION
            what = each.what + (f" (under Lua {each.only} alone)" if each.only else "")
            if each.jobs:
                names = list(each.jobs)
                more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
                what += f"; seen with {'; '.join(names[:_SHOWN])}{more}"
            found.append(
                Mistake(
                    rule=rule,
                    function=each.function or "main chunk",
                    what=what,
                    where=f"{self.name}:{each.line}" if each.line else self.name,
                    cost=RULES[rule].cost,
                    remedy=RULES[rule].remedy,
                )
            )
        return tuple(sorted(found, key=lambda each: RULES[each.rule].rank))
