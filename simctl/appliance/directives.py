"""What the appliance reads of a job's script: its `#DW` lines."""

from collections.abc import Iterator, Mapping

import attrs


@attrs.frozen
class Directive:
    """One `#DW` line: what it asks for, and the options behind it."""

    word: str
    options: Mapping[str, str]


def directives(text: str) -> tuple[Directive, ...]:
    """Return the `#DW` lines of a script, up to the first line that is no comment."""
    found = []
    for line in _comments(text):
        words = line.split()
        if words[0] == "#DW" and len(words) > 1:
            pairs = (word.partition("=") for word in words[2:])
            found.append(Directive(words[1], {name: value for name, _, value in pairs}))
    return tuple(found)


def _comments(text: str) -> Iterator[str]:
    """Go through the leading comments; a line that ends in a backslash goes on with the next."""
    before = ""
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        whole = before + (" " + line.partition(" ")[2] if before else line)
        if whole.endswith("\\"):
            before = whole[:-1].rstrip()
            continue
        before = ""
        yield whole
    if before:
        yield before


def staged_paths(lines: tuple[Directive, ...], word: str) -> list[str]:
    """Return the paths outside the buffer that `stage_in` or `stage_out` lines name."""
    key = "source" if word == "stage_in" else "destination"
    return [line.options.get(key, "") for line in lines if line.word == word]
