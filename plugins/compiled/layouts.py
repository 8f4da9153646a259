"""Where the fields of Slurm's own records lie: read from debug information, never known by heart.

A plugin that was built with ``-g`` describes every record that its functions are given; so does any
object file that was compiled with ``-g`` against the user's own Slurm.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import attrs
from elftools.common.exceptions import ELFError
from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

from simctl.plugins.compiled.process import U32, blob
from simctl.plugins.guard import PluginError

_WORD: Final = 8
_PASSED_OVER: Final = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type")
_MOST: Final = (1 << 64) - 1


@attrs.frozen
class Address:
    """A value that goes into a record as it is, whatever the type of the field."""

    number: int


class Records:
    """The structures that debug information describes, by their names."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._found: dict[str, DIE] = {}
        self._functions: dict[str, tuple[str, ...]] = {}
        # DIEs are read lazily: what they are read from stays open as long as they are needed.
        self._open = [path.open("rb") for path in paths]
        for file in self._open:
            self._read(file)

    def __del__(self) -> None:
        for file in self._open:
            file.close()

    def _read(self, file: Any) -> None:
        elf = ELFFile(file)
        if not elf.has_dwarf_info():
            return
        for unit in elf.get_dwarf_info().iter_CUs():
            for entry in unit.get_top_DIE().iter_children():
                if entry.tag in ("DW_TAG_structure_type", "DW_TAG_typedef"):
                    target = _bare(entry)
                    if target is not None and _is_whole(target):
                        self._found.setdefault(_name(entry), target)
                elif entry.tag == "DW_TAG_subprogram" and "DW_AT_external" in entry.attributes:
                    given = [_spelled(each) for each in entry.iter_children() if _is_given(each)]
                    self._functions.setdefault(_name(entry), tuple(given))

    def parameters(self, function: str) -> tuple[str, ...] | None:
        """Return the types of a function's parameters as they are declared, None if not known."""
        return self._functions.get(function)

    def structure(self, *names: str) -> DIE | None:
        """Return the structure that has the first of some names, its tag or a typedef."""
        return next((self._found[name] for name in names if name in self._found), None)

    def whole(self, kind: DIE | None) -> DIE | None:
        """Return a type; a structure also where this unit only says that there is one."""
        if kind is None or kind.tag != "DW_TAG_structure_type" or _is_whole(kind):
            return kind
        return self._found.get(_name(kind))


@lru_cache(maxsize=16)
def records_of(*paths: Path) -> Records:
    """Return what the debug information of some files describes.

    Raises:
        PluginError: One of them cannot be read.
    """
    try:
        return Records(paths)
    except (OSError, ELFError) as error:
        names = ", ".join(path.name for path in paths)
        raise PluginError(f"the debug information of {names} cannot be read: {error}") from error


# DWARF.


def _name(entry: DIE) -> str:
    found = entry.attributes.get("DW_AT_name")
    return found.value.decode(errors="replace") if found is not None else ""


def _target(entry: DIE) -> DIE | None:
    return entry.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in entry.attributes else None


def _bare(entry: DIE | None) -> DIE | None:
    """Return a type without its typedefs; None is void."""
    while entry is not None and entry.tag in _PASSED_OVER:
        entry = _target(entry)
    return entry


def _is_whole(entry: DIE | None) -> bool:
    return (
        entry is not None
        and entry.tag == "DW_TAG_structure_type"
        and "DW_AT_byte_size" in entry.attributes
    )


def _is_given(entry: DIE) -> bool:
    return entry.tag == "DW_TAG_formal_parameter"


def _spelled(entry: DIE) -> str:
    """Return a parameter's type in few words: what it is, and a star for each pointer."""
    stars, kind = "", _bare(_target(entry))
    while kind is not None and kind.tag == "DW_TAG_pointer_type":
        stars += "*"
        kind = _bare(_target(kind))
    if kind is None:
        return f"void{stars}"
    if kind.tag == "DW_TAG_structure_type":
        return f"struct{stars}"
    return f"{_name(kind)}{stars}"


def _size(entry: DIE) -> int:
    found = entry.attributes.get("DW_AT_byte_size")
    return int(found.value) if found is not None else _WORD


# Laying values out.


@attrs.define
class Image:
    """Blocks of memory that point to each other; the first one is the record."""

    records: Records
    blocks: list[bytearray] = attrs.field(factory=list)
    references: list[tuple[int, int, int]] = attrs.field(factory=list)
    watches: list[tuple[int, int]] = attrs.field(factory=list)

    def message(self) -> bytes:
        """Return it as hosts read it."""
        return b"".join(
            (
                U32.pack(len(self.blocks)),
                *(blob(bytes(each)) for each in self.blocks),
                U32.pack(len(self.references)),
                *(struct.pack("<III", *each) for each in self.references),
                U32.pack(len(self.watches)),
                *(struct.pack("<II", *each) for each in self.watches),
            )
        )

    def lay_out(self, kind: DIE, values: Mapping[str, Any], watched: str = "") -> int:
        """Lay a structure out in a block of its own; return the block's number.

        Fields of the structure that *values* does not name are zero.

        Args:
            kind: The structure.
            values: What goes into its fields: numbers, texts, lists, and for what a field points
                to a mapping; keyed by a field's name, or by its several names with spaces between.
            watched: The field, an environment, of which the host tells what it has become.
        """
        at = self._block(_size(kind))
        self._fill(at, 0, kind, values, watched)
        return at

    def _block(self, size: int, data: bytes = b"") -> int:
        self.blocks.append(bytearray(data.ljust(size, b"\0")))
        return len(self.blocks) - 1

    def _fill(
        self, at: int, offset: int, kind: DIE, values: Mapping[str, Any], watched: str = ""
    ) -> None:
        for member in kind.iter_children():
            place = member.attributes.get("DW_AT_data_member_location")
            if member.tag != "DW_TAG_member" or place is None or not isinstance(place.value, int):
                continue
            name = _name(member)
            found = [key for key in values if name in key.split()]
            if not found:
                continue
            self._put(at, offset + place.value, _bare(_target(member)), values[found[0]])
            if name == watched:
                self.watches.append((at, offset + place.value))

    def _put(self, at: int, offset: int, kind: DIE | None, value: Any) -> None:
        """Put one value where a field lies."""
        if value is None or kind is None:
            return
        if isinstance(value, Address):
            self._number(at, offset, _WORD, value.number)
        elif kind.tag == "DW_TAG_pointer_type":
            block = self._pointed_to(self.records.whole(_bare(_target(kind))), value)
            if block is not None:
                self.references.append((at, offset, block))
        elif kind.tag == "DW_TAG_structure_type":
            if isinstance(value, Mapping):
                self._fill(at, offset, kind, value)
        elif isinstance(value, str):
            if kind.tag == "DW_TAG_array_type":
                self._text_inside(at, offset, kind, value)
        elif isinstance(value, int):
            self._number(at, offset, _size(kind), value)

    def _number(self, at: int, offset: int, size: int, value: int) -> None:
        data = (value & _MOST).to_bytes(_WORD, "little")[:size]
        self.blocks[at][offset : offset + len(data)] = data

    def _text_inside(self, at: int, offset: int, kind: DIE, value: str) -> None:
        bounds = (each.attributes.get("DW_AT_upper_bound") for each in kind.iter_children())
        room = next((bound.value for bound in bounds if bound is not None), 0)
        data = value.encode(errors="surrogateescape")[:room]
        self.blocks[at][offset : offset + len(data)] = data

    def _pointed_to(self, kind: DIE | None, value: Any) -> int | None:
        """Lay out what a field points to; return its block, or None where that cannot be."""
        if isinstance(value, str):
            data = value.encode(errors="surrogateescape")
            return self._block(len(data) + 1, data)
        if isinstance(value, Mapping):
            return self.lay_out(kind, value) if kind is not None and _is_whole(kind) else None
        if not isinstance(value, Sequence) or kind is None:
            return None
        if kind.tag == "DW_TAG_pointer_type":
            # With a NULL at the end, as environments have it.
            block = self._block(_WORD * (len(value) + 1))
            for place, each in enumerate(value):
                self._put(block, place * _WORD, kind, each)
            return block
        size = _size(kind)
        block = self._block(size * max(len(value), 1))
        for place, each in enumerate(value):
            self._put(block, place * size, kind, each)
        return block
