"""The classes that stand for compiled plugins, made from what their libraries say of themselves."""

import os
from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Final

import attrs

from simctl.plugin import SLURM_ERROR, SlurmError
from simctl.plugins.compiled import build, elf
from simctl.plugins.compiled.bindings import Argument, Plan, needed, plan
from simctl.plugins.compiled.hosted import Host
from simctl.plugins.compiled.look import layout_of
from simctl.plugins.compiled.process import U32, U64, Reader, Zygote, blob, text
from simctl.plugins.guard import DiedError, PluginError
from simctl.plugins.points import OPTIONAL
from simctl.plugins.points.declare import Returns
from simctl.wire.buf import Buf

_REFUSED: Final = {
    "burst_buffer": "burst buffer plugins in C are not loaded: their functions work on slurmctld's "
    "own job records and locks, which simctl does not have in C. Write it in Python, or in Lua for "
    "burst_buffer/lua",
    "checkpoint": "checkpoint plugins in C are not loaded yet: their functions are given "
    "slurmctld's record of a step and slurmstepd's of a job, which simctl does not lay out in C. "
    "Write it in Python; switch plugins may be in C",
}
"""The classes whose compiled plugins are refused, and why."""


@attrs.define(eq=False)
class Pointer:
    """What C holds of an object: an address, the same in a process and in its forks."""

    address: int
    host: Host | None = None
    """In which process it was last used, for who looks at it."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Pointer":
        """Return itself: the fork of a process has the object at the same address."""
        return self

    def __str__(self) -> str:
        return "an object in C"

    __repr__ = __str__

    def plain(self) -> Any:
        """Return what the object holds as plain data, as the process has it that used it last."""
        try:
            return None if self.host is None else self.host.object_at(self.address)
        except DiedError:
            return None


class CompiledPlugin:
    """What every class that stands for a compiled plugin has."""

    library: Path
    slurm_lib: str = ""
    plugin_type: str
    plugin_name: str = ""
    plugin_version: int = 0

    def __init__(self) -> None:
        try:
            self.host = Host.open(zygote(self.slurm_lib), self.library)
        except DiedError as died:
            raise PluginError(f"opening {self.library.name} ended its process: {died}") from None

    def __deepcopy__(self, memo: dict[int, Any]) -> "CompiledPlugin":
        """Return what a fork of the process has: a real fork of its host."""
        forked = object.__new__(type(self))
        memo[id(self)] = forked
        forked.host = self.host.fork()
        return forked

    # For who looks on.

    watched = False
    """Whether what the next calls do with the plugin's variables is noted."""

    reads: frozenset[str] = frozenset()
    """The variables that the last call has read, if it was watched."""

    @classmethod
    def looked_at(cls) -> type["CompiledPlugin"]:
        """Return a class that is in all like this one and notes what each call reads."""
        return type(cls.__name__, (cls,), {"watched": True, "__doc__": cls.__doc__})

    @classmethod
    def place(cls, function: str) -> str:
        """Return where a function is written, ``ports.c:31``; empty without debug information."""
        symbol = elf.read(cls.library).exported(function)
        return elf.line_of(cls.library, symbol.address) if symbol is not None else ""

    def shared(self, one: Pointer, other: Pointer) -> str:
        """Return a field through which two objects have memory in common, empty for none."""
        try:
            mine, theirs = self.host.parts(one.address), self.host.parts(other.address)
        except DiedError:
            return ""
        return next((name for address, name in mine.items() if address in theirs), "")

    heap: int = 0
    """How many bytes of the heap were in use after the last watched call."""

    def kept(self) -> dict[str, Any]:
        """Return what the plugin keeps in its process, as plain data by variable."""
        try:
            return self.host.variables()
        except DiedError:
            return {}

    def adopt(self, values: tuple[Any, ...]) -> None:
        """Look at objects as the process of this plugin has them from now on."""
        for value in values:
            if isinstance(value, Pointer):
                value.host = self.host


def find(path: Path, slurm_lib: str = "") -> type[CompiledPlugin]:
    """Return the class that stands for a plugin in a `.so` or a `.c`, which is compiled first.

    Raises:
        PluginError: It is no plugin that can be loaded; with everything that is wrong.
    """
    library = build.plugin(path) if path.suffix == ".c" else path
    found = elf.read(library)
    _check(path, found)
    plugin_type = found.text("plugin_type") or ""
    names = [*needed(plugin_type.partition("/")[0]), *("init", "fini")]
    names += [
        name
        for name, point in OPTIONAL.items()
        if point.plugin_class == plugin_type.partition("/")[0]
    ]
    members: dict[str, Any] = {
        name: _method(plan(name))
        for name in names
        if found.exported(name) is not None and not plan(name).has_record
    }
    members |= {
        "__doc__": f"Stands for {path.name}.",
        "library": library,
        "slurm_lib": slurm_lib,
        "plugin_type": plugin_type,
        "plugin_name": found.text("plugin_name") or "",
        "plugin_version": found.number("plugin_version") or 0,
    }
    kind = type(path.name, (CompiledPlugin,), members)
    _try_to_open(kind)
    return kind


def _check(path: Path, library: elf.Library) -> None:
    mistakes: list[str] = []
    plugin_type = library.text("plugin_type")
    plugin_class = (plugin_type or "").partition("/")[0]
    if library.machine != os.uname().machine:
        raise PluginError(f"{path.name} is built for {library.machine}, not for this machine")
    if plugin_class in _REFUSED:
        raise PluginError(f"{path.name}: {_REFUSED[plugin_class]}")
    if plugin_class != "switch" or "/" not in (plugin_type or ""):
        mistakes.append(
            "plugin_type is "
            + ("missing" if plugin_type is None else repr(plugin_type))
            + '; expected `const char plugin_type[] = "switch/..."`'
        )
    if not library.text("plugin_name"):
        mistakes.append("plugin_name is missing; any text that describes the plugin will do")
    missing = [name for name in needed(plugin_class) if library.exported(name) is None]
    mistakes += [f"it does not export {name}; the guide wants `{_c_of(name)}`" for name in missing]
    if mistakes:
        raise PluginError(*(f"{path.name}: {mistake}" for mistake in mistakes))


def _c_of(name: str) -> str:
    point = plan(name).point
    return "" if point is None else point.c


def _try_to_open(kind: type[CompiledPlugin]) -> None:
    """Open a plugin once, to find out now whether it can be: all its symbols are looked up."""
    kind()


# Zygotes.

_ZYGOTES: Final[dict[tuple[int, str], Zygote]] = {}
"""One for this process and each library of Slurm's."""


def zygote(slurm_lib: str = "") -> Zygote:
    """Return the zygote whose hosts have a library of Slurm's functions; it may have to start."""
    key = (os.getpid(), slurm_lib)  # noqa: TID251 - that of this process: a fork has its own
    found = _ZYGOTES.get(key)
    if found is None:
        found = _ZYGOTES[key] = Zygote(slurm_lib)
    return found


# Functions.

_Encoder = Callable[[tuple[Any, ...]], bytes]


def _method(how: Plan) -> Callable[..., Any]:
    """Return the method for one function of C."""
    point = how.point
    given = point.parameters if point is not None else ()
    encoders = [_encoder(each, given) for each in how.parameters]
    head = (b"t" if how.returns == "t" else b"-") + bytes([len(encoders)])

    def run(self: CompiledPlugin, *values: Any) -> Any:
        if len(values) != len(given):
            raise TypeError(f"{how.name} takes {len(given)} arguments, and got {len(values)}")
        host = self.host
        message = b"".join(
            (host.head(how.name, watched=self.watched), head, *(one(values) for one in encoders))
        )
        return host.call(message, lambda answer: _finish(self, how, values, answer))

    run.__name__ = run.__qualname__ = how.name
    # What a plugin is held to are the guide's names of its parameters.
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *given)]
    vars(run)["__signature__"] = Signature(parameters)
    return run


def _encoder(parameter: Argument, given: tuple[str, ...]) -> _Encoder:
    """Return what writes one argument as hosts read it."""
    kind, mask = parameter.kind, (1 << 64) - 1
    at = given.index(parameter.name) if parameter.name in given else -1
    if kind == "i":
        return lambda values: b"i" + U64.pack(values[at] & mask)
    if kind == "p":
        return lambda values: b"i" + U64.pack(values[at].address if values[at] is not None else 0)
    if kind == "s":
        return lambda values: b"s" + text(values[at])
    if kind == "b":
        return lambda values: b"b" + blob(values[at].data()[values[at].offset :])
    if kind == "e":
        return lambda values: b"e" + _environment(values[at])
    if kind == "z":
        size = given.index("size")
        return lambda values: b"z" + U64.pack(max(values[size], 0))
    constant = {"o": b"o", "n": b"o", "t": b"t"}.get(kind)
    if constant is not None:
        whole = constant + U64.pack(0)
        return lambda values: whole
    letter = kind.encode()
    return lambda values: letter


def _environment(env: dict[str, str]) -> bytes:
    return U32.pack(len(env)) + b"".join(text(f"{key}={value}") for key, value in env.items())


def _number(value: int, bits: int) -> int:
    """Return a result as its type in C has it; negative *bits* have a sign."""
    width = abs(bits)
    value &= (1 << width) - 1
    return value - (1 << width) if bits < 0 and value >> (width - 1) else value


def _finish(plugin: CompiledPlugin, how: Plan, values: tuple[Any, ...], answer: Reader) -> Any:
    """Take in a call's answer: what it returned, and what it left in its arguments."""
    if answer.u8() == ord("E"):
        raise RuntimeError(answer.text())
    given = how.point.parameters if how.point is not None else ()
    returned = answer.u64()
    failure = answer.u32()
    answer.u64()
    if plugin.watched:
        plugin.heap = answer.u64()
        plugin.reads = _reads(plugin.library, answer)
    said = answer.text() if how.returns == "t" else None
    made: Any = None
    for parameter in how.parameters:
        value = values[given.index(parameter.name)] if parameter.name in given else None
        found = _take(parameter, value, answer)
        if parameter.kind in ("o", "d", "z"):
            made = found
    result = _result(how, returned, failure, said, made)
    if isinstance(result, Pointer):
        result.host = plugin.host
        # The same object is the same one.
        given_back = [each for each in values if isinstance(each, Pointer)]
        return next((each for each in given_back if each.address == result.address), result)
    return result


def _reads(library: Path, answer: Reader) -> frozenset[str]:
    """Take in what a watched call has done; return the variables that it read before it wrote."""
    layout = layout_of(library)
    read: dict[str, None] = {}
    written: set[str] = set()
    for _ in range(answer.u32()):
        access = answer.u64()
        name = layout.name_at(access >> 1)
        if access & 1:
            written.add(name)
        elif name not in written:
            read[name] = None
    return frozenset(read) - {""}


def _take(parameter: Argument, value: Any, answer: Reader) -> Any:
    """Take in what a call left in one argument; return what the argument gives back."""
    kind = parameter.kind
    if kind == "o":
        address = answer.u64()
        return Pointer(address) if address else None
    if kind == "n":
        return _number(answer.u64(), parameter.bits)
    if kind == "t":
        return answer.text()
    if kind == "b":
        value.offset = min(value.offset + answer.u64(), value.size)
    elif kind == "B":
        _append(value, answer.blob() or b"")
    elif kind == "z":
        return (answer.blob() or b"").decode(errors="replace")
    elif kind == "d":
        return _data(answer.blob() or b"", answer.text())
    elif kind == "f":
        value.write((answer.blob() or b"").decode(errors="replace"))
    elif kind == "e":
        pairs = [answer.text() or "" for _ in range(answer.u32())]
        _update(value, pairs)
    return None


def _append(buffer: Buf, data: bytes) -> None:
    for octet in data:
        buffer.pack8(octet)


def _update(env: dict[str, str], pairs: list[str]) -> None:
    """Have an environment hold what an array of C's does; of a name twice the first counts."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        found.setdefault(key, value)
    if found != env:
        env.clear()
        env.update(found)


def _data(data: bytes, pointed: str | None) -> Any:
    """Return data of a form that only the plugin knows: a text, a number, or bytes."""
    if pointed is not None:
        return pointed
    if not data:
        return None
    if len(data) <= U64.size:
        return int.from_bytes(data, "little")
    return data.hex()


def _result(how: Plan, returned: int, failure: int, said: str | None, made: Any) -> Any:
    point = how.point
    if how.returns == "v":
        return made
    if how.returns == "p":
        return Pointer(returned) if returned else None
    if how.returns == "t":
        # A text is printed into the caller's room, and where that is is returned.
        return made if returned and made is not None else said
    number = _number(returned, how.bits)
    if point is not None and point.returns is Returns.BOOL:
        return number != 0
    if number < 0 and point is not None and point.plugin_class == "checkpoint" and failure:
        raise SlurmError(failure)
    if point is not None and point.returns in (Returns.OBJECT, Returns.DATA):
        return SLURM_ERROR if number < 0 else made
    return number
