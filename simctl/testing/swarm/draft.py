"""A scenario in the making: what has been drawn so far, and its text."""

import json
from collections.abc import Mapping
from typing import Final

import attrs

_ROOT: Final = "root"


def run(at: str, line: str, user: str = _ROOT) -> str:
    """Return an entry of a timeline that types a command; *at* is a moment such as ``at: 3s``."""
    return f"{{{at}, as: {user}, run: {json.dumps(line)}}}"


def fault(at: str, what: str) -> str:
    """Return an entry of a timeline with a fault."""
    return f"{{{at}, fault: {{{what}}}}}"


def deed(at: str, what: str) -> str:
    """Return any other entry of a timeline."""
    return f"{{{at}, {what}}}"


@attrs.frozen(kw_only=True)
class Draft:
    """A scenario by its parts, each of them YAML in flow style, so that parts can be taken away.

    What is in `tail` brings the cluster to rest in the end; without it the rules at rest say
    nothing.
    """

    seed: int
    schedule: str
    features: tuple[str, ...]
    """What was drawn: kinds of work and of faults."""
    head: tuple[str, ...]
    """Lines of keys that stand by themselves, such as ``model: guide``."""
    conf: Mapping[str, str]
    nodes: tuple[str, ...]
    partitions: tuple[str, ...]
    users: tuple[str, ...]
    files: Mapping[str, str]
    """What users have, by name: texts."""
    programs: Mapping[str, str]
    happenings: tuple[str, ...]
    tail: tuple[str, ...]

    def text(self) -> str:
        """Return the scenario; files that nothing names any more are left out."""
        entries = (*self.happenings, *self.tail)
        whole = "\n".join((*entries, *self.conf.values(), *self.head))
        files = {name: text for name, text in self.files.items() if name in whole}
        whole += "\n".join(files.values())
        programs = {name: text for name, text in self.programs.items() if name in whole}
        lines = [
            f"# A cluster, its work and its misfortunes, drawn from seed {self.seed}:",
            *(f"#   {line}" for line in _wrapped(self.features)),
            *self.head,
            *_mapping("slurm_conf", self.conf),
            *_sequence("nodes", self.nodes),
            *_sequence("partitions", self.partitions),
            f"users: {{{', '.join(self.users)}}}",
            *_texts(files),
            *_mapping("programs", programs),
            *_sequence("timeline", self.happenings),
            *(["  # The cluster comes to rest."] if self.tail else []),
            *(f"  - {entry}" for entry in self.tail),
        ]
        return "\n".join(lines) + "\n"


_COLUMNS: Final = 96


def _wrapped(words: tuple[str, ...]) -> list[str]:
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > _COLUMNS:
            lines.append("")
        lines[-1] += f"{', ' if lines[-1] else ''}{word}"
    return lines


def _mapping(key: str, pairs: Mapping[str, str]) -> list[str]:
    return [f"{key}:", *(f"  {name}: {value}" for name, value in pairs.items())] if pairs else []


def _sequence(key: str, items: tuple[str, ...]) -> list[str]:
    return [f"{key}:", *(f"  - {item}" for item in items)] if items else [f"{key}: []"]


def _texts(files: Mapping[str, str]) -> list[str]:
    lines = ["files:"] if files else []
    for name, text in files.items():
        lines.append(f"  {name}: |")
        lines += [f"    {line}" for line in text.splitlines()]
    return lines
