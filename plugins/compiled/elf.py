"""What can be read in a shared library without opening it: symbols, texts, and lines of source."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from simctl.plugins.guard import PluginError

_TEXT_AT_MOST: Final = 4096
DWARF_5: Final = 5
"""From this version of DWARF on files are counted from 0."""

_MACHINES: Final = {"x64": "x86_64", "AArch64": "aarch64"}


@attrs.frozen(kw_only=True)
class Symbol:
    """A function or variable of a library: where it lies, from the library's beginning on."""

    name: str
    address: int
    size: int
    is_function: bool
    exported: bool


@attrs.frozen(kw_only=True)
class Library:
    """What is known of a shared library; `base` None where it defines no such symbol."""

    path: Path
    symbols: tuple[Symbol, ...]
    values: dict[str, bytes]
    """The first bytes of each exported variable, by name."""

    machine: str

    needs: tuple[str, ...]
    """The libraries that are opened with it."""

    def exported(self, name: str) -> Symbol | None:
        """Return an exported symbol."""
        return next((each for each in self.symbols if each.exported and each.name == name), None)

    def text(self, name: str) -> str | None:
        """Return the text of an exported ``char name[]``; None where there is none."""
        found = self.values.get(name)
        return None if found is None else found.partition(b"\0")[0].decode(errors="replace")

    def number(self, name: str) -> int | None:
        """Return the value of an exported ``uint32_t``; None where there is none."""
        found = self.values.get(name)
        return None if found is None else int.from_bytes(found[:4], "little")

    def at(self, address: int, *, function: bool) -> Symbol | None:
        """Return the function, or the variable, that an address lies in."""
        for each in self.symbols:
            if each.is_function is function and 0 <= address - each.address < max(each.size, 1):
                return each
        return None


def read(path: Path) -> Library:
    """Read a shared library.

    Raises:
        PluginError: It is none, or one for another machine.
    """
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            if elf.header["e_type"] != "ET_DYN" or not elf.little_endian:
                raise PluginError(
                    f"{path.name} is no shared library; build it with cc -shared -fPIC"
                )
            symbols = tuple(_symbols(elf))
            values = {
                each.name: _bytes_at(elf, each)
                for each in symbols
                if each.exported and not each.is_function
            }
            machine = _MACHINES.get(elf.get_machine_arch(), elf.get_machine_arch())
            return Library(
                path=path, symbols=symbols, values=values, machine=machine, needs=_needs(elf)
            )
    except (ELFError, OSError) as error:
        raise PluginError(f"{path.name} cannot be read as a shared library: {error}") from error


def _needs(elf: ELFFile) -> tuple[str, ...]:
    found = elf.get_section_by_name(".dynamic")
    if not isinstance(found, DynamicSection):
        return ()
    wanted: list[Any] = [tag for tag in found.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
    return tuple(tag.needed for tag in wanted)


def _symbols(elf: ELFFile) -> Iterator[Symbol]:
    seen: set[tuple[str, int]] = set()
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        exported = section.name == ".dynsym"
        for each in section.iter_symbols():
            kind = each["st_info"]["type"]
            defined = each["st_shndx"] not in ("SHN_UNDEF", "SHN_ABS")
            key = (each.name, each["st_value"])
            if kind not in ("STT_FUNC", "STT_OBJECT") or not defined or key in seen:
                continue
            seen.add(key)
            yield Symbol(
                name=each.name,
                address=each["st_value"],
                size=each["st_size"],
                is_function=kind == "STT_FUNC",
                exported=exported,
            )


def _bytes_at(elf: ELFFile, symbol: Symbol) -> bytes:
    for segment in elf.iter_segments():
        start = segment["p_vaddr"]
        if segment["p_type"] == "PT_LOAD" and start <= symbol.address < start + segment["p_filesz"]:
            size = min(symbol.size, _TEXT_AT_MOST)
            elf.stream.seek(segment["p_offset"] + symbol.address - start)
            found: bytes = elf.stream.read(size)
            return found
    return b"\0" * min(symbol.size, _TEXT_AT_MOST)


def line_of(path: Path, address: int) -> str:
    """Return ``file.c:12`` for a place in a library, empty without debug information."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        if not elf.has_dwarf_info():
            return ""
        for unit in elf.get_dwarf_info().iter_CUs():
            found = _line_in(elf, unit, address)
            if found:
                return found
    return ""


def _line_in(elf: ELFFile, unit: Any, address: int) -> str:
    program = elf.get_dwarf_info().line_program_for_CU(unit)
    if program is None:
        return ""
    before: Any = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None and before.address <= address < state.address:
            files = program["file_entry"]
            index = before.file if program["version"] >= DWARF_5 else before.file - 1
            name = files[index].name.decode(errors="replace")
            return f"{name.rpartition('/')[2]}:{before.line}"
        before = None if state.end_sequence else state
    return ""
