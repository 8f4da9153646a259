"""The commands of a session: one function each, with the words that call it and its help."""

import difflib
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from simctl.repl.errors import CommandError
from simctl.repl.session import Session

Run = Callable[[Session, str], None]
"""Does a command; it is given what follows the command's word on the line."""

Words = Callable[[Session, list[str]], Iterable[str]]
"""Gives the words that may come next, after those on the line so far."""

TOPICS: Final = {
    "slurm": "Slurm's own commands, as on a login node",
    "time": "letting time go on: steps, turns, and until something happens",
    "stops": "break points and watches, and what is seen at a stop",
    "back": "going back",
    "looking": "what happened, what is, and why",
    "choosing": "faults, answers for plugins, and the order of turns",
    "session": "the session itself: users, files, programs, saving, help",
}
"""What help is about, in its order."""


def _no_words(_: Session, __: list[str]) -> Iterable[str]:
    return ()


@attrs.frozen(kw_only=True)
class Command:
    """A command: how it is written, what it does, and an example that can be typed."""

    name: str
    usage: str
    topic: str
    doc: str
    example: str
    run: Run
    aliases: tuple[str, ...] = ()
    words: Words = _no_words


COMMANDS: Final[dict[str, Command]] = {}
"""Every command by its name."""

_BY_WORD: Final[dict[str, Command]] = {}


def command(
    name: str,
    *,
    topic: str,
    example: str,
    usage: str = "",
    aliases: tuple[str, ...] = (),
    words: Words = _no_words,
) -> Callable[[Run], Run]:
    """Register a function as a command; its docstring is the command's help."""

    def register(run: Run) -> Run:
        assert topic in TOPICS
        add(
            Command(
                name=name,
                usage=usage or name,
                topic=topic,
                doc=(run.__doc__ or "").strip(),
                example=example,
                run=run,
                aliases=aliases,
                words=words,
            )
        )
        return run

    return register


def add(each: Command) -> None:
    """Register a command."""
    COMMANDS[each.name] = each
    for word in (each.name, *each.aliases):
        assert word not in _BY_WORD, word
        _BY_WORD[word] = each


def lookup(word: str) -> Command | None:
    """Return the command that a word calls."""
    return _BY_WORD.get(word)


def find(line: str) -> Callable[[Session], None] | None:
    """Return what does the command of a line; None for an empty line or a comment.

    Raises:
        CommandError: There is no such command.
    """
    text = line.strip()
    if not text or text.startswith("#"):
        return None
    word, _, rest = text.partition(" ")
    found = _BY_WORD.get(word)
    if found is None:
        close = difflib.get_close_matches(word.lower(), _BY_WORD, n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(close)}?" if close else "`help` lists all there are"
        raise CommandError(f"there is no command {_cut(word)!r}; {hint}")
    return lambda session: found.run(session, rest.strip())


_LONGEST: Final = 40


def _cut(word: str) -> str:
    return word if len(word) <= _LONGEST else f"{word[:_LONGEST]}..."
