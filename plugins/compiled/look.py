"""What a compiled plugin keeps, as plain data: its variables by name, and what objects hold.

The names and types of fields are those of the plugin's debug information, where one structure of
its own has an object's size; else a field is called by its place, `+8`.
"""

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import attrs
from elftools.elf.elffile import ELFFile

from simctl.plugins.compiled.build import HEADER
from simctl.plugins.compiled.elf import DWARF_5, Symbol, read

Block = tuple[str, bytes]
"""What an address points to: ``x`` a block of xmalloc's, ``s`` a text in one, ``m`` a block of
malloc's, ``t`` a text elsewhere, ``?`` nothing that is known."""

_DEEPEST: Final = 4
_FIELDS_AT_MOST: Final = 512
_LOWEST_ADDRESS: Final = 0x10000
_HIGHEST_ADDRESS: Final = 1 << 47
_WORD: Final = 8
_SIGNED: Final = (5, 6, 13)
"""The encodings of DWARF for numbers and characters with a sign."""

_OF_THE_COMPILER: Final = ("completed.0", "__dso_handle", "_IO_stdin_used")
_UNKNOWN: Final = "(unknown)"


@attrs.frozen
class Field:
    """A field of a structure; `kind`: ``i``, ``u`` a number, ``p`` a pointer, ``c`` a text."""

    name: str
    offset: int
    size: int
    kind: str
    count: int = 1
    """How many there are, in an array."""


@attrs.frozen
class Structure:
    """A structure of the plugin's own."""

    name: str
    size: int
    fields: tuple[Field, ...]


class Layout:
    """What is known of the variables and structures of a plugin."""

    def __init__(self, path: Path) -> None:
        library = read(path)
        self.variables: tuple[Symbol, ...] = tuple(
            each
            for each in library.symbols
            if not each.is_function and each.size and each.name not in _OF_THE_COMPILER
        )
        self._by_size: dict[int, list[Structure]] = {}
        self._types: dict[str, Field] = {}
        with path.open("rb") as file:
            found = ELFFile(file)
            if found.has_dwarf_info():
                self._read_dwarf(found)

    def _read_dwarf(self, found: ELFFile) -> None:
        described = found.get_dwarf_info()
        for unit in described.iter_CUs():
            strangers = _strangers(described.line_program_for_CU(unit))
            for entry in unit.iter_DIEs():
                if entry.tag == "DW_TAG_structure_type" and "DW_AT_byte_size" in entry.attributes:
                    declared = entry.attributes.get("DW_AT_decl_file")
                    if declared is not None and declared.value in strangers:
                        continue
                    made = _structure(entry)
                    known = self._by_size.setdefault(made.size, [])
                    if made.fields and all(made.fields != each.fields for each in known):
                        known.append(made)
                elif entry.tag == "DW_TAG_variable" and "DW_AT_type" in entry.attributes:
                    name = _name(entry)
                    fields = tuple(_fields_of(entry.get_DIE_from_attribute("DW_AT_type"), name, 0))
                    if len(fields) == 1:
                        self._types.setdefault(name, fields[0])

    def structure(self, kind: str, size: int) -> Structure | None:
        """Return the one structure that a block can be; of malloc's only the room is known."""
        sizes = (size,) if kind == "x" else range(max(size - 15, 1), size + 1)
        found = [each for one in sizes for each in self._by_size.get(one, ())]
        return found[0] if len(found) == 1 else None

    def variable(self, symbol: Symbol) -> Field:
        """Return how to read a variable."""
        known = self._types.get(symbol.name)
        if known is not None and known.size * known.count == symbol.size:
            return known
        return Field(symbol.name, 0, symbol.size, "u")

    def name_at(self, address: int) -> str:
        """Return the variable that an address lies in, empty for none."""
        for each in self.variables:
            if 0 <= address - each.address < each.size:
                return each.name
        return ""


@lru_cache(maxsize=16)
def layout_of(path: Path) -> Layout:
    """Return what is known of a plugin."""
    return Layout(path)


# DWARF.


def _strangers(program: Any) -> frozenset[int]:
    """Return the numbers of the files that are no author's: the system's headers, and simctl's."""
    if program is None:
        return frozenset()
    first = 0 if program["version"] >= DWARF_5 else 1
    folders = [""] * first + [_text(each) for each in program["include_directory"]]
    return frozenset(
        number
        for number, each in enumerate(program["file_entry"], start=first)
        if _text(each.name) == HEADER.name or folders[each.dir_index].startswith("/usr/")
    )


def _text(given: Any) -> str:
    found = getattr(given, "name", given)
    return found.decode(errors="replace") if isinstance(found, bytes) else str(found)


def _name(entry: Any) -> str:
    found = entry.attributes.get("DW_AT_name")
    return found.value.decode(errors="replace") if found is not None else ""


def _structure(entry: Any) -> Structure:
    fields = tuple(_members(entry, "", 0))[:_FIELDS_AT_MOST]
    return Structure(_name(entry) or "struct", entry.attributes["DW_AT_byte_size"].value, fields)


def _members(entry: Any, prefix: str, offset: int) -> Iterator[Field]:
    for member in entry.iter_children():
        place = member.attributes.get("DW_AT_data_member_location")
        if member.tag == "DW_TAG_member" and place is not None and isinstance(place.value, int):
            kind = member.get_DIE_from_attribute("DW_AT_type")
            yield from _fields_of(kind, prefix + _name(member), offset + place.value)


def _fields_of(kind: Any, name: str, offset: int) -> Iterator[Field]:
    """Yield what a type consists of."""
    while kind.tag in _WRAPPERS:
        if "DW_AT_type" not in kind.attributes:
            return
        kind = kind.get_DIE_from_attribute("DW_AT_type")
    if kind.tag == "DW_TAG_array_type":
        yield from _array(kind, name, offset)
        return
    size = kind.attributes.get("DW_AT_byte_size")
    if kind.tag in ("DW_TAG_structure_type", "DW_TAG_union_type"):
        if kind.tag == "DW_TAG_structure_type":
            yield from _members(kind, f"{name}.", offset)
    elif kind.tag == "DW_TAG_pointer_type":
        yield Field(name, offset, _WORD, "p")
    elif size is not None:
        encoding = kind.attributes.get("DW_AT_encoding")
        signed = encoding is not None and encoding.value in _SIGNED
        character = size.value == 1 and encoding is not None and encoding.value in (6, 8)
        yield Field(name, offset, size.value, "c" if character else "i" if signed else "u")


def _array(kind: Any, name: str, offset: int) -> Iterator[Field]:
    count = 1
    for each in kind.iter_children():
        bound = each.attributes.get("DW_AT_upper_bound") or each.attributes.get("DW_AT_count")
        if bound is None or not isinstance(bound.value, int):
            return
        count *= bound.value + ("DW_AT_upper_bound" in each.attributes)
    element = tuple(_fields_of(kind.get_DIE_from_attribute("DW_AT_type"), name, 0))
    if len(element) == 1:
        yield attrs.evolve(element[0], offset=offset, count=count)
        return
    width = max((each.offset + each.size for each in element), default=0)
    width += -width % max((each.size for each in element), default=1)
    for number in range(min(count, _FIELDS_AT_MOST // max(len(element), 1))):
        for each in element:
            inner = each.name.removeprefix(name)
            place = offset + number * width + each.offset
            yield attrs.evolve(each, name=f"{name}[{number}]{inner}", offset=place)


_WRAPPERS: Final = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type")


# Values.


class Looker:
    """Reads what a plugin keeps through a function that says what an address points to."""

    def __init__(self, layout: Layout, block: Callable[[int], Block]) -> None:
        self._layout = layout
        self._block = block
        self._left = _FIELDS_AT_MOST
        self._seen: set[int] = set()
        self.blocks: dict[int, str] = {}
        """The blocks that were come to through a field, with the field's name."""

    def variables(self, ranges: list[tuple[int, bytes]]) -> dict[str, Any]:
        """Return the values of variables, by name, out of the memory they lie in."""
        found: dict[str, Any] = {}
        for symbol in self._layout.variables:
            for start, data in ranges:
                at = symbol.address - start
                if at >= 0 and at + symbol.size <= len(data):
                    field = attrs.evolve(self._layout.variable(symbol), offset=at)
                    found[symbol.name] = self._value(field, data, 0)
        return found

    def object_at(self, address: int, depth: int = 0, name: str = "") -> Any:
        """Return what lies at an address."""
        if not address:
            return None
        if address in self._seen or depth > _DEEPEST or self._left < 0:
            return "..."
        self._seen.add(address)
        kind, data = self._block(address)
        if kind in ("x", "m", "s") and name:
            self.blocks[address] = name
        if kind in ("t", "s"):
            return data.decode(errors="replace")
        if kind == "?":
            return _UNKNOWN
        structure = self._layout.structure(kind, len(data))
        if structure is None:
            return self._words(data, depth)
        return {each.name: self._value(each, data, depth) for each in structure.fields}

    def _value(self, field: Field, data: bytes, depth: int) -> Any:
        self._left -= 1
        size = field.size
        part = data[field.offset : field.offset + size * field.count]
        if field.kind == "c" and field.count > 1:
            return part.partition(b"\0")[0].decode(errors="replace")
        if field.count > 1:
            each = range(0, len(part), size)
            values = {k // size: self._one(field, part[k : k + size], depth) for k in each}
            # An array is told by what is in it: most of it may be free.
            return {place: value for place, value in values.items() if value not in (0, None)}
        return self._one(field, part, depth)

    def _one(self, field: Field, part: bytes, depth: int) -> Any:
        if field.kind == "p":
            return self.object_at(int.from_bytes(part, "little"), depth + 1, field.name)
        if len(part) > _WORD:
            return {at: octet for at, octet in enumerate(part) if octet}
        number = int.from_bytes(part, "little", signed=field.kind == "i")
        if field.kind == "u" and len(part) == _WORD and _is_address(number):
            return self.object_at(number, depth + 1, field.name)
        return number

    def _words(self, data: bytes, depth: int) -> dict[str, Any]:
        """Return what lies in a block of unknown form, by its place."""
        found: dict[str, Any] = {}
        for at in range(0, len(data) - len(data) % _WORD, _WORD):
            (word,) = struct.unpack_from("<Q", data, at)
            if _is_address(word) and self._block(word)[0] != "?":
                found[f"+{at}"] = self.object_at(word, depth + 1, f"+{at}")
                continue
            for half in (at, at + 4):
                (number,) = struct.unpack_from("<I", data, half)
                found[f"+{half}"] = number
        rest = data[len(data) - len(data) % _WORD :]
        return found | ({f"+{len(data) - len(rest)}": rest.hex()} if rest else {})


def _is_address(number: int) -> bool:
    return _LOWEST_ADDRESS <= number < _HIGHEST_ADDRESS
