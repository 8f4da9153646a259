"""Differences that are accepted: a file of them, each with its reason, and each to be needed."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from simctl import yaml_text
from simctl.files import read_text
from simctl.status import InputError
from simctl.testing.conform.compare import Difference

KINDS: Final = (
    *(
        f"{how} {what}"
        for how in ("missing", "extra")
        for what in ("call", "message", "state", "script", "process")
    ),
    *("order", "user", "argument", "result", "time"),
)
CASES: Final = re.compile(r"guide [CD]\d+|not simulated|recording")
"""Why a difference may stay: the guides decide otherwise, by which case; it is not simulated; or
the recording itself misleads."""

_KEYS: Final = {"kind", "where", "what", "case", "reason", "recording"}


@attrs.frozen(kw_only=True)
class Accepted:
    """Differences of one kind that are accepted for a reason."""

    kind: str
    where: str
    """A pattern of strands, with ``*``."""

    what: str
    """A pattern of what is told of the difference."""

    case: str
    reason: str
    recordings: tuple[str, ...]
    """The recordings it is for; none means whichever the file is used with."""

    def fits(self, difference: Difference) -> bool:
        """Return whether a difference is one of these."""
        return (
            difference.kind == self.kind
            and fnmatchcase(difference.strand, _pattern(self.where))
            and fnmatchcase(difference.text, _pattern(self.what))
        )


def _pattern(text: str) -> str:
    """Return a pattern in which only ``*`` means more than itself."""
    return text.replace("[", "[[]").replace("?", "[?]")


def read_accepted(path: Path, recording: str) -> list[Accepted]:
    """Return what a file accepts of one recording.

    Raises:
        InputError: The file cannot be read, or an entry lacks something or has too much.
    """
    try:
        data = yaml_text.load(read_text(path))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise InputError(f"{path}: cannot read it as YAML: {why}") from error
    if not isinstance(data, list):
        raise InputError(f"{path}: expected a list of accepted differences")
    entries = [_entry(path, number, each) for number, each in enumerate(data, start=1)]
    return [each for each in entries if not each.recordings or recording in each.recordings]


def _entry(path: Path, number: int, data: Any) -> Accepted:
    where = f"{path}: entry {number}"
    if not isinstance(data, dict):
        raise InputError(f"{where}: expected keys: {', '.join(sorted(_KEYS))}")
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        raise InputError(f"{where}: there is no {unknown[0]!r}; keys: {', '.join(sorted(_KEYS))}")
    for key in ("kind", "what", "case", "reason"):
        if not isinstance(data.get(key), str) or not data[key].strip():
            raise InputError(f"{where}: {key} is needed, as a text")
    if data["kind"] not in KINDS:
        raise InputError(f"{where}: there is no kind {data['kind']!r}; kinds: {', '.join(KINDS)}")
    if not CASES.fullmatch(data["case"]):
        raise InputError(
            f"{where}: case {data['case']!r}: expected a case such as 'guide C9', "
            "'not simulated' or 'recording'"
        )
    names = data.get("recording", [])
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list):
        raise InputError(f"{where}: recording: expected a name or a list of names")
    return Accepted(
        kind=data["kind"],
        where=str(data.get("where", "*")),
        what=data["what"],
        case=data["case"],
        reason=" ".join(data["reason"].split()),
        recordings=tuple(map(str, names)),
    )


@attrs.frozen
class Sorted:
    """Differences told apart by whether they are accepted."""

    left: tuple[Difference, ...]
    explained: tuple[tuple[Difference, Accepted], ...]
    stale: tuple[Accepted, ...]
    """Entries that nothing needs any more."""


def sort_out(differences: Sequence[Difference], accepted: Sequence[Accepted]) -> Sorted:
    """Tell accepted differences from others, and entries that are used from those that are not."""
    left: list[Difference] = []
    explained: list[tuple[Difference, Accepted]] = []
    for each in differences:
        entry = next((entry for entry in accepted if entry.fits(each)), None)
        if entry is None:
            left.append(each)
        else:
            explained.append((each, entry))
    used = {id(entry) for _, entry in explained}
    return Sorted(tuple(left), tuple(explained), tuple(e for e in accepted if id(e) not in used))
