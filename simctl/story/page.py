"""docs/glossary.md, written from the words that `explain` knows: `make docs`."""

import sys
from collections.abc import Iterator, Mapping

from simctl.story.vocabulary import (
    BUFFER_STATES,
    DAEMONS,
    JOB_STATES,
    NODE_STATES,
    REASONS,
    SHOWN_NODE_STATES,
    TERMS,
)
from simctl.story.words import RPCS

_HEAD = """\
# Glossary

simctl's own terms, and Slurm's, in a line each; `explain WORD` in a [session](repl.md) says the
same.
Written by `make docs` from `simctl/story/vocabulary.py`.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    yield from _section("Terms", "term", TERMS)
    yield from _section("Daemons and processes", "who", DAEMONS)
    yield from _section("States of jobs", "state", JOB_STATES)
    yield from _section("States of nodes", "state", NODE_STATES)
    yield from _section("Nodes as sinfo prints them", "word", SHOWN_NODE_STATES)
    yield from _section("States of burst buffers", "state", BUFFER_STATES)
    yield from _section("Reasons of jobs", "reason", REASONS)
    told = {rpc: f"{text[:1].upper()}{text[1:]}." for rpc, text in sorted(RPCS.items())}
    yield from _section("Messages", "RPC", told)


def _section(title: str, what: str, words: Mapping[str, str]) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"| {what} | |\n|---|---|"
    for word, text in words.items():
        yield f"| {word if what == 'term' else f'`{word}`'} | {text.replace('|', chr(92) + '|')} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(page())
