"""Find a directive that a burst buffer plugin takes: lines of a script, or a text after ``--bb=``.

What its code and docstrings show is tried first, then what can be made of the words in its code. A
candidate is worth what it leads to: a request that job_validate enters for the job, and lines of
the plugin that ran because of it.
"""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import attrs

from simctl.plugins.points.burst_buffer import bb_p_job_validate
from simctl.testing.plugin_check.burst_buffer.cluster import Setting, run_cluster
from simctl.testing.plugin_check.burst_buffer.vocabulary import (
    Vocabulary,
    asked_with,
    examples_in,
)
from simctl.testing.plugin_check.watched import LinesRun
from simctl.wire.errno import SlurmError
from simctl.wire.records import SubmittedJob
from simctl.world import World

_PROBES: Final = 1500
_PROBING_S: Final = 60.0
_KEYS: Final = 40
_HASHED: Final = 10
_ALICE: Final = 1001
_SIZES: Final = ("1G", "1GiB", "1", "1GB", "1g", "512M")
_PATHS: Final = ("/home/alice/in.dat", "/home/alice/data", "/lus/in")
_OTHERS: Final = ("10", "name1", "5s", "yes")
_LINES: Final = (
    ("#BB size=1G",),
    (
        "#DW jobdw type=scratch capacity=1GiB access_mode=striped",
        "#DW stage_in type=file source=/lus/in destination=$DW_JOB_STRIPED/in",
        "#DW stage_out type=file source=$DW_JOB_STRIPED/out destination=/lus/out",
    ),
)
"""The directives of Slurm's own plugins."""
_COMMON: Final = ("#BB", "#DW")
_OPTIONS: Final = ("size=1G", "capacity=1GiB", "1G", "1")
_PLACEHOLDER: Final = re.compile(
    r"^[<\[{(]?([A-Z][A-Z_]*|[\w-]+(?=[>\])}]))[>\])}]?$|^\.\.\.$|[{}<>\[\]]"
)


@attrs.frozen
class Directive:
    """What a job asks a burst buffer with: comment lines of its script, or an option's text."""

    lines: tuple[str, ...] = ()
    option: str = ""

    def __str__(self) -> str:
        return f"--bb={self.option}" if self.option else " / ".join(self.lines)

    @property
    def words(self) -> list[str]:
        """Return its words."""
        return (self.option or " ".join(self.lines)).split()

    def script(self, command: str) -> str:
        """Return a batch script that has it."""
        return "\n".join(("#!/bin/sh", *self.lines, command, ""))

    def replaced(self, old: str, new: str) -> "Directive":
        """Return it with one word, wherever it stands, in place of another."""
        return Directive(
            tuple(_put(line, old, new) for line in self.lines), _put(self.option, old, new)
        )

    def without(self, word: str) -> "Directive":
        """Return it without one of its words."""
        bare = self.replaced(word, "")
        lines = (re.sub(" +", " ", line).strip() for line in bare.lines)
        return Directive(tuple(filter(None, lines)), re.sub(" +", " ", bare.option).strip())

    def extended(self, word: str) -> "Directive":
        """Return it with one more word."""
        if self.option:
            return Directive((), f"{self.option} {word}")
        return Directive((*self.lines[:-1], f"{self.lines[-1]} {word}"))


def _put(text: str, old: str, new: str) -> str:
    return " ".join(new if word == old else word for word in text.split(" "))


@attrs.frozen(kw_only=True)
class Answer:
    """What job_validate made of a candidate."""

    directive: Directive
    accepted: bool
    entered: str
    """What it entered as the job's request."""

    said: str
    raised: str
    """What it raised that is no SlurmError."""

    lines: frozenset[tuple[str, int]]


Probe = Callable[[Directive], Awaitable[Answer]]


def probe_all(
    kind: type[Any], setting: Setting, vocabulary: Vocabulary, given: tuple[Directive, ...] = ()
) -> "Search":
    """Try candidates on job_validate, and return what is known then."""
    search = Search(vocabulary)
    probing(kind, setting, vocabulary, lambda probe: search.run(probe, given))
    return search


def probing(
    kind: type[Any],
    setting: Setting,
    vocabulary: Vocabulary,
    use: Callable[[Probe], Awaitable[None]],
) -> None:
    """Give *use* what tries a candidate on job_validate, in a cluster of its own."""

    async def body(world: World) -> None:
        listener = _Listener()
        world.site.hooks.observers = [listener]

        async def probe(directive: Directive) -> Answer:
            desc = SubmittedJob(
                name="app",
                uid=_ALICE,
                gid=_ALICE,
                user="alice",
                script=directive.script("srun ./app"),
                burst_buffer=directive.option,
            )
            listener.clear()
            with LinesRun(vocabulary.files) as noted:
                rc = await world.site.hooks.call(
                    bb_p_job_validate,
                    world.ctld.process,
                    desc,
                    _ALICE,
                    plugin_type=setting.plugin_type,
                )
            return Answer(
                directive=directive,
                accepted=rc == 0 and not listener.problem,
                entered=desc.burst_buffer,
                said=str(listener.error or ""),
                raised=listener.problem,
                lines=frozenset(noted.lines),
            )

        await use(probe)

    run_cluster(
        kind,
        setting.scenario([], {}),
        name="what job_validate takes",
        files=frozenset(),
        until_s=_PROBING_S,
        body=body,
    )


class _Listener:
    """Hears how the last call failed."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.error: SlurmError | None = None
        self.problem = ""

    def before(self, *_: Any) -> Any:
        return self

    def after(self, *seen: Any) -> None:
        self.error, self.problem = seen[-2], seen[-1]


class Search:
    """Goes from candidate to candidate, and keeps those that led further than others."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tried: set[Directive] = set()
        self._seen: set[tuple[str, int]] = set()
        self._probe: Probe
        self.plain: Answer
        """What a job without a directive comes to."""

        self.taken: list[Answer] = []
        """Those accepted that differ from a job without, best first."""

        self.raised: list[Answer] = []
        """Those for which job_validate raised what it should not."""

        self.refused: list[Answer] = []

    async def run(self, probe: Probe, given: tuple[Directive, ...]) -> None:
        """Try all that the plugin's words suggest, as long as the probes last."""
        self._probe = probe
        self.plain = await probe(Directive(("# nothing",)))
        self._seen |= self.plain.lines
        waiting = [*given, *self._first()]
        frontier: list[Answer] = []
        while waiting and len(self._tried) < _PROBES:
            answer = await self._try(waiting.pop(0))
            if answer is None:
                continue
            waiting[:0] = [made for line in _shown(answer) for made in filled(line)]
            waiting[:0] = [Directive((), text) for text in asked_with(answer.said)]
            if answer.lines - self._seen or answer in self.taken[:1]:
                self._seen |= answer.lines
                frontier.append(answer)
            if not waiting and frontier:
                best = frontier.pop()
                waiting = list(self._next(best))
        self.taken.sort(key=_worth, reverse=True)

    def _first(self) -> Iterator[Directive]:
        for line in self._vocabulary.examples:
            yield from filled(line)
        for line in self._vocabulary.matched:
            if line.startswith("#"):
                yield Directive((line,))
        yield from (Directive(lines) for lines in _LINES)
        yield from (Directive((), option) for option in self._vocabulary.options[:_KEYS])
        own = dict.fromkeys((*self._vocabulary.beginnings, *self._hashed()))
        for beginning in own:
            yield Directive((beginning,))
            for word in (*self._vocabulary.matched, *_SIZES[:1], *_PATHS[:2]):
                yield Directive((f"{beginning} {word}",))
            for word in self._vocabulary.words[:_KEYS]:
                value = values_of(word, ())[0]
                yield from (Directive((f"{beginning} {word}={value}",)),)
        for beginning in _COMMON:
            for word in ("", *self._vocabulary.matched):
                yield Directive((f"{beginning} {word}".rstrip(),))
        for option in (*self._vocabulary.matched, *_OPTIONS):
            if not option.startswith("#"):
                yield Directive((), option)

    def _hashed(self) -> Iterator[str]:
        """Return words of the plugin as if they began a comment line."""
        words = [word for word in self._vocabulary.words if word.isupper()]
        return (f"#{word}" for word in words[:_HASHED])

    def _next(self, answer: Answer) -> Iterator[Directive]:
        """Return what may be better than a candidate that led somewhere."""
        directive = answer.directive
        missing = re.findall(r"KeyError: '?([\w-]+)", answer.raised)
        named = [word for word in self._vocabulary.words if word in answer.said]
        for word in dict.fromkeys((*missing, *named, *self._vocabulary.words)):
            for value in values_of(word, self._vocabulary.words):
                yield directive.extended(f"{word}={value}")
        for word in (*_SIZES, *_PATHS, *_OTHERS, *self._vocabulary.words):
            yield directive.extended(word)
        for old in directive.words[1:]:
            key, equals, _ = old.partition("=")
            for value in values_of(key if equals else "", self._vocabulary.words):
                yield directive.replaced(old, f"{key}={value}" if equals else value)

    async def _try(self, directive: Directive) -> Answer | None:
        if directive in self._tried:
            return None
        self._tried.add(directive)
        answer = await self._probe(directive)
        if answer.raised:
            self.raised.append(answer)
        elif not answer.accepted:
            self.refused.append(answer)
        elif answer.entered or answer.lines - self.plain.lines:
            self.taken.append(answer)
        return answer


def _worth(answer: Answer) -> tuple[bool, int, bool]:
    """Return by what candidates are put in order before any of them has led a life."""
    entered = bool(answer.entered) and answer.entered != answer.directive.option
    return entered, len(answer.lines), not answer.directive.option


def _shown(answer: Answer) -> Iterator[str]:
    """Return the lines that a refusal shows as what was expected; not the one that was refused."""
    tried = " ".join(answer.directive.lines)
    for quoted in re.findall(r"[`'\"]([^`'\"]+)[`'\"]", answer.said):
        yield from (line for line in examples_in(quoted) if line != tried)


def filled(example: str) -> Iterator[Directive]:
    """Return an example with values in place of what only stands for one."""
    words = example.split()
    for kinds in (_SIZES[:2], _PATHS[:2]):
        for value in kinds:
            made = [words[0], *(_filled(word, value) for word in words[1:])]
            if made != words:
                yield Directive((" ".join(made),))
    yield Directive((" ".join(words),))
    for end in range(len(words) - 1, 1, -1):
        yield Directive((" ".join(words[:end]),))


def _filled(word: str, value: str) -> str:
    key, equals, shown = word.strip("[]").partition("=")
    if equals and _PLACEHOLDER.search(shown):
        return f"{key}={values_of(key, ())[0]}"
    if not equals and _PLACEHOLDER.search(word):
        near = values_of(word.strip("<>[]{}()").lower(), ())
        return near[0] if near[0] in (*_SIZES, *_PATHS) else value
    return word


def values_of(key: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the value of a key may be, the likeliest first."""
    low = key.lower()
    if any(each in low for each in ("size", "cap", "space", "quota", "gb", "mb", "gib")):
        return (*_SIZES, *_OTHERS[:1])
    if any(each in low for each in ("dir", "folder", "path")):
        return (_PATHS[1], _PATHS[0], _PATHS[2], *_SIZES[:1])
    if any(each in low for each in ("in", "out", "file", "src", "source", "from", "to", "dest")):
        return (*_PATHS, "5", *_SIZES[:1])
    return (*_OTHERS, *_SIZES[:2], *_PATHS[:2], *words[:20])


__all__ = ["Answer", "Directive", "Search", "filled", "probe_all", "values_of"]
