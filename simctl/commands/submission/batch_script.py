"""The script that sbatch submits: found, checked, and its ``#SBATCH`` lines split into words."""

from collections.abc import Iterator
from typing import Final

import attrs

from simctl.commands.arguments.options import UsageError
from simctl.site import CommandCall
from simctl.stepd.scripts.script import has_interpreter, parse, sbatch_options

STDIN: Final = "/dev/stdin"
"""The path by which a caller names its own standard input."""


@attrs.frozen(kw_only=True)
class BatchScript:
    """A batch script: its text, where it was found, and how it is called.

    `path` is empty where sbatch has made the script itself or read it from its input. `lines` are
    what follows ``#SBATCH`` on each line.
    """

    text: str
    name: str
    path: str = ""
    argv: tuple[str, ...]
    lines: tuple[str, ...] = ()
    foreign: str = ""
    """Another system's word for options among its comments: ``#PBS`` or ``#BSUB``."""


def read(call: CommandCall, wrap: str | None, words: list[str], work_dir: str = "") -> BatchScript:
    """Return the script: a wrapped command, the file that is named first, or standard input.

    *work_dir* is where the command line says that the job starts, if it does.

    Raises:
        UsageError: There is none, or it cannot be run.
    """
    if wrap is not None:
        if words:
            raise UsageError(1, "sbatch: error: Script arguments not permitted with --wrap option")
        text = f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{wrap}\n"
        return BatchScript(text=parsed(call, text, "wrap"), name="wrap", argv=("wrap",))
    if not words:
        text = _checked(call, call.stdin, "stdin")
        return BatchScript(
            text=text, name="sbatch", argv=("sbatch",), lines=_lines(text), foreign=foreign(text)
        )
    found = call.stdin if words[0] == STDIN else _file(call, words[0])
    text = _checked(call, found, words[0])
    return BatchScript(
        text=text,
        name=words[0].rsplit("/", 1)[-1],
        path=_shown_path(call, words[0], work_dir),
        argv=tuple(words),
        lines=_lines(text),
        foreign=foreign(text),
    )


def _shown_path(call: CommandCall, path: str, work_dir: str) -> str:
    """Return a script's path as it is told: Slurm looks for it where the job will start."""
    disk = call.site.disk
    if path.startswith(("/", ".")):
        return path
    found = disk.resolve(path, disk.resolve(work_dir, call.work_dir))
    return found if call.files.find_text(found) is not None else path


def foreign(text: str) -> str:
    """Return the first of ``#PBS`` and ``#BSUB`` that begins a line of a script's head."""
    for line in text.split("\n"):
        for word in ("#PBS", "#BSUB"):
            if line.startswith(word):
                return word
        if line.strip() and not line.strip().startswith("#"):
            break
    return ""


def _file(call: CommandCall, path: str) -> str:
    disk = call.site.disk
    found = call.files.find_text(path)
    if found is not None:
        return found
    if disk.is_directory(disk.resolve(path, call.work_dir), call.process.host.name):
        return ""
    raise UsageError(1, f"sbatch: error: Unable to open file {path}")


def _checked(call: CommandCall, text: str, name: str) -> str:
    """Return a script that can be run."""
    if not text.strip():
        raise UsageError(1, "sbatch: error: Batch script is empty!")
    if not has_interpreter(text):
        raise UsageError(
            1,
            "sbatch: error: This does not look like a batch script.  The first",
            "sbatch: error: line must start with #! followed by the path to an interpreter.",
            "sbatch: error: For instance: #!/bin/sh",
        )
    if "\r\n" in text:
        raise UsageError(
            1,
            "sbatch: error: Batch script contains DOS line breaks (\\r\\n)",
            "sbatch: error: instead of expected UNIX line breaks (\\n).",
        )
    return parsed(call, text, name)


def parsed(call: CommandCall, text: str, name: str) -> str:
    """Return a script that lies inside the subset of sh, or that something else will run."""
    if call.site.programs.outside:
        return text
    _, mistakes = parse(text)
    if mistakes:
        raise UsageError(
            1,
            *(
                f"sbatch: error: {name}:{mistake.line}:{mistake.column}: {mistake.message}"
                for mistake in mistakes
            ),
        )
    return text


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for _, line in sbatch_options(text))


_QUOTES: Final = "'\""


def words_of(line: str) -> list[str]:
    """Split a ``#SBATCH`` line into words, as sbatch does.

    Quotes group anywhere in a word, a comment begins at any ``#`` outside of them, and a backslash
    keeps the next character as it is, save that a blank ends the word all the same.
    """
    return list(_words(line))


def _words(line: str) -> Iterator[str]:
    word: list[str] | None = None
    quote = ""
    escaped = False
    for letter in line:
        if not quote and letter.isspace():
            if word is not None:
                yield "".join(word)
            word, escaped = None, False
            continue
        if letter == "#" and not quote and not escaped:
            break
        word = [] if word is None else word
        if escaped or not (letter == "\\" or letter == quote or (not quote and letter in _QUOTES)):
            word.append(letter)
            escaped = False
        elif letter == "\\":
            escaped = True
        else:
            quote = "" if quote else letter
    if word is not None:
        yield "".join(word)
