"""How each function of a guide is called in C: derived from the declaration of its point.

A plan says of each of C's parameters of which kind it is, and from which of the parameters that
Python has it is filled. Kinds are the letters that the host knows.
"""

import re
from functools import lru_cache
from typing import Final

import attrs

from simctl.plugins.compiled import prototypes as versions
from simctl.plugins.points import ALL, OPTIONAL
from simctl.plugins.points.declare import Point

_SIGNATURE: Final = re.compile(r"^(?P<type>.*?)\b(?P<name>\w+)\s*\((?P<parameters>.*)\)$")
_PARAMETER: Final = re.compile(r"^(?P<type>.*?)(?P<name>\w+)$")
_OPAQUE_POINTER: Final = re.compile(r"\b(switch_jobinfo_t|switch_node_info_t) \*")
_OPAQUE: Final = frozenset({"switch_jobinfo_t", "switch_node_info_t", "check_jobinfo_t"})
_BITS: Final = {"int": -32, "bool": 8, "uid_t": 32, "time_t": -64, "size_t": 64}


@attrs.frozen
class Argument:
    """One parameter of C: its kind for the host, and the name it has in the guide."""

    kind: str
    """``i`` number, ``p`` a pointer of the plugin's, ``s`` text, ``o`` and ``t`` where a pointer or
    a text is written to, ``x`` where a pointer stands that may be replaced, ``n`` where a number is
    written to, ``b`` and ``B`` a Buf to read and to pack into, ``e`` environment, ``f`` FILE, ``z``
    room for a text, ``d`` room for data, ``r`` a record of Slurm's own."""

    name: str
    bits: int = 64


@attrs.frozen
class Plan:
    """How one function is called."""

    name: str
    """In C, where later versions of Slurm have another than the guide."""

    c: str
    """Its prototype."""

    parameters: tuple[Argument, ...]
    returns: str
    """``v`` nothing, ``i`` a number, ``p`` a pointer of the plugin's, ``t`` a text."""

    bits: int
    """How many bits of the result count; negative where it has a sign."""

    point: Point | None
    later: bool = False
    """Whether it is called as later versions of Slurm do."""


@lru_cache(maxsize=256)
def plan(name: str, prototypes: str = versions.GUIDE) -> Plan:
    """Return how a function of a guide, or init or fini, is called in a plugin of a version."""
    point = ALL.get(name) or OPTIONAL.get(name)
    if point is None:
        return Plan(name, "", (), "v" if name == "fini" else "i", -32, None)
    c = versions.of(name, point.c, prototypes)
    # Later versions have names for what is pointed to, the guide for the pointers.
    opaque = _OPAQUE_POINTER.sub(r"\1 ", c) if c != point.c else c
    found = _SIGNATURE.match(opaque)
    assert found is not None
    given = found["parameters"].strip()
    parameters = [] if given == "void" else given.split(",")
    returns, bits = _result(found["type"].strip())
    taken = tuple(_parameter(each.strip(), point) for each in parameters)
    later = prototypes == versions.LATER
    return Plan(versions.name_of(name, prototypes), c, taken, returns, bits, point, later)


def _result(declared: str) -> tuple[str, int]:
    if declared == "void":
        return "v", 64
    if declared in _OPAQUE:
        return "p", 64
    if declared == "char *":
        return "t", 64
    return "i", _bits(declared)


def _bits(declared: str) -> int:
    sized = re.fullmatch(r"uint(\d+)_t", declared)
    return int(sized[1]) if sized else _BITS[declared]


def _parameter(text: str, point: Point) -> Argument:
    found = _PARAMETER.match(text)
    assert found is not None
    declared, name = found["type"].strip(), found["name"]
    return Argument(_kind(declared, name, point), name, _width(declared))


def _width(declared: str) -> int:
    target = declared.removesuffix("*").strip()
    return (
        64
        if target in ("", "char *", "void", "void *") or not _is_number(target)
        else _bits(target)
    )


def _is_number(declared: str) -> bool:
    return declared in _BITS or re.fullmatch(r"uint\d+_t", declared) is not None


def _kind(declared: str, name: str, point: Point) -> str:
    given = name in point.parameters
    if declared == "Buf":
        return "b" if "unpack" in point.name else "B"
    if declared == "char *":
        return "s" if given or name == "network" else "z"
    if declared in _OPAQUE:
        return "p"
    fixed = {
        "char ***": "e",
        "FILE *": "f",
        "char **": "t",
        "struct step_record *": "r",
        "stepd_step_rec_t *": "r",
        "slurm_step_layout_t *": "r",
    }.get(declared)
    if fixed is not None:
        return fixed
    if declared == "void *":
        if name == "slurmd_job":
            return "r"
        return "p" if given else "d"
    if declared.endswith("*"):
        target = declared.removesuffix("*").strip()
        return "n" if _is_number(target) else "x" if given else "o"
    return "i"


def needed(plugin_class: str, prototypes: str = versions.GUIDE) -> tuple[str, ...]:
    """Return the functions that a plugin of a class must have, in the guide's order."""
    return tuple(
        name
        for name, point in ALL.items()
        if point.plugin_class == plugin_class and not versions.may_lack(name, prototypes)
    )


_STARS: Final = {"i": 0, "e": 3, "o": 2, "t": 2, "x": 2}
"""Through how many pointers the kinds of parameters lead; all others through one."""


def stars(how: Plan) -> tuple[int, ...]:
    """Return for each parameter through how many pointers it leads, as a plugin must declare it."""
    return tuple(_STARS.get(each.kind, 1) for each in how.parameters)
