"""The classes that stand for compiled plugins, made from what their libraries say of themselves."""

import os
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.procs import CALLING
from simctl.plugin import SLURM_ERROR, CheckOp, CheckpointStatus, SlurmError, stepd
from simctl.plugins.compiled import ALONE, Against, build, elf, records
from simctl.plugins.compiled import prototypes as versions
from simctl.plugins.compiled.bindings import Argument, Plan, needed, plan, stars
from simctl.plugins.compiled.hosted import Host
from simctl.plugins.compiled.layouts import Image, Records, records_of
from simctl.plugins.compiled.look import layout_of
from simctl.plugins.compiled.process import U32, U64, Reader, Zygote, blob, text
from simctl.plugins.guard import DiedError, PluginError
from simctl.plugins.points import ALL, OPTIONAL
from simctl.plugins.points.declare import OnError, Point, Returns
from simctl.wire.buf import Buf

_CLASSES: Final = ("switch", "checkpoint")
_REFUSED: Final = {
    "burst_buffer": "burst buffer plugins in C are not loaded: their functions work on slurmctld's "
    "own job records and locks, which simctl does not have in C. Write it in Python, or in Lua for "
    "burst_buffer/lua",
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

    def shares(self, other: "Pointer") -> str:
        """Return a field through which two objects have memory in common, empty for none."""
        if self.host is None:
            return ""
        try:
            mine, theirs = self.host.parts(self.address), self.host.parts(other.address)
        except DiedError:
            return ""
        return next((name for address, name in mine.items() if address in theirs), "")

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
    besides: tuple[Path, ...] = ()
    """Files that describe Slurm's records beside it."""

    sanitizer: str = ""
    """The library of the sanitizer that it was built with."""

    plugin_type: str
    plugin_name: str = ""
    plugin_version: int = 0
    prototypes: str = versions.GUIDE
    failure: int = 0
    """The errno that the last call has left which failed."""

    def __init__(self) -> None:
        try:
            self.host = Host.open(
                zygote(self.slurm_lib, self.sanitizer), self.library, self.besides
            )
        except DiedError as died:
            raise PluginError(f"opening {self.library.name} ended its process: {died}") from None

    def __deepcopy__(self, memo: dict[int, Any]) -> "CompiledPlugin":
        """Return what a fork of the process has: a real fork of its host."""
        forked = object.__new__(type(self))
        memo[id(self)] = forked
        forked.host = self.host.fork()
        forked.failure = self.failure
        return forked

    @classmethod
    def simctl_misfit(cls, model: str) -> Iterator[str]:
        """Yield why a cluster of a model cannot load it."""
        if cls.prototypes == versions.LATER and model != "modern":
            yield (
                f"it has the prototypes of {versions.LATER} (switch_p_duplicate_jobinfo, "
                "switch_p_job_init with slurmstepd's record), which model modern calls and model "
                f"{model} does not; write `model: modern` into the scenario"
            )

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


def _hollow(self: CompiledPlugin) -> Pointer:
    """Return what stands for an object that unpack makes: no object yet."""
    return Pointer(0, self.host)


def _no_frag(self: CompiledPlugin) -> bool:
    return False


def _no_text(self: CompiledPlugin, switch_job: Pointer, size: int) -> str:
    return ""


def _data_of(self: Any, switch_job: Pointer, key: int) -> Any:
    return self.switch_p_get_jobinfo(switch_job, key)


def _errno(self: CompiledPlugin) -> int:
    return self.failure


def _no_words(self: CompiledPlugin, errnum: int) -> None:
    return None


_STAND_INS: Final[dict[str, Any]] = {
    "simctl_blank": "hollow",
    "wants_layout": True,
    "hollow": _hollow,
    "switch_p_no_frag": _no_frag,
    "switch_p_sprint_jobinfo": _no_text,
    "switch_p_get_data_jobinfo": _data_of,
    "switch_p_get_errno": _errno,
    "switch_p_strerror": _no_words,
}
"""What a plugin for later versions of Slurm has in place of the guide's functions that it lacks."""


def find(path: Path, against: Against = ALONE) -> type[CompiledPlugin]:
    """Return the class that stands for a plugin in a `.so` or a `.c`, which is compiled first.

    Raises:
        PluginError: It is no plugin that can be loaded; with everything that is wrong.
    """
    library = build.plugin(path) if path.suffix == ".c" else path
    found = elf.read(library)
    plugin_type = found.text("plugin_type") or ""
    plugin_class = plugin_type.partition("/")[0]
    prototypes, mistakes = versions.detect(plugin_class, found)
    besides = (Path(against.records),) if against.records else ()
    described = records_of(library, *besides)
    _check(path, found, prototypes, described, mistakes)
    optional = [name for name, each in OPTIONAL.items() if each.plugin_class == plugin_class]
    plans = {
        name: plan(name, prototypes)
        for name in (*needed(plugin_class), *optional, "init", "fini")
        if found.exported(versions.name_of(name, prototypes)) is not None
    }
    members: dict[str, Any] = _STAND_INS if prototypes == versions.LATER else {}
    members = members | {name: _method(how, described) for name, how in plans.items()}
    members |= {
        "prototypes": prototypes,
        "__doc__": f"Stands for {path.name}.",
        "library": library,
        "slurm_lib": against.slurm_lib,
        "besides": besides,
        "sanitizer": next((each for each in found.needs if each.startswith("libasan.")), ""),
        "plugin_type": plugin_type,
        "plugin_name": found.text("plugin_name") or "",
        "plugin_version": found.number("plugin_version") or 0,
    }
    kind = type(path.name, (CompiledPlugin,), members)
    _try_to_open(kind)
    return kind


def _check(
    path: Path,
    library: elf.Library,
    prototypes: str,
    described: Records,
    found: list[str],
) -> None:
    mistakes = list(found)
    plugin_type = library.text("plugin_type")
    plugin_class = (plugin_type or "").partition("/")[0]
    if library.machine != os.uname().machine:
        raise PluginError(f"{path.name} is built for {library.machine}, not for this machine")
    if plugin_class in _REFUSED:
        raise PluginError(f"{path.name}: {_REFUSED[plugin_class]}")
    if plugin_class not in _CLASSES or "/" not in (plugin_type or ""):
        mistakes.append(
            "plugin_type is "
            + ("missing" if plugin_type is None else repr(plugin_type))
            + '; expected `const char plugin_type[] = "switch/..."` or "checkpoint/..."'
        )
    if not library.text("plugin_name"):
        mistakes.append("plugin_name is missing; any text that describes the plugin will do")
    for how in (plan(name, prototypes) for name in needed(plugin_class, prototypes)):
        if library.exported(how.name) is None:
            wants = "the guide wants" if prototypes == versions.GUIDE else f"{prototypes} want"
            mistakes.append(f"it does not export {how.name}; {wants} `{how.c}`")
    mistakes += _misdeclared(plugin_class, prototypes, described)
    if mistakes:
        raise PluginError(*(f"{path.name}: {mistake}" for mistake in mistakes))


def _misdeclared(plugin_class: str, prototypes: str, described: Records) -> Iterator[str]:
    """Hold a plugin's functions to their prototypes, as far as it has debug information."""
    for name, point in (*ALL.items(), *OPTIONAL.items()):
        how = plan(name, prototypes)
        given = described.parameters(how.name)
        if point.plugin_class != plugin_class or given is None:
            continue
        if tuple(each.count("*") for each in given) != stars(how):
            whose = "the guide's" if prototypes == versions.GUIDE else f"that of {prototypes}"
            yield (
                f"{how.name} is declared with ({', '.join(given) or 'void'}), and {whose} is "
                f"`{how.c}`"
            )


def _try_to_open(kind: type[CompiledPlugin]) -> None:
    """Open a plugin once, to find out now whether it can be: all its symbols are looked up."""
    kind()


# Zygotes.

_ZYGOTES: Final[dict[tuple[int, str, str], Zygote]] = {}
"""One for this process, each library of Slurm's, and each sanitizer."""


def zygote(slurm_lib: str = "", sanitizer: str = "") -> Zygote:
    """Return the zygote whose hosts have a library of Slurm's functions; it may have to start."""
    key = (os.getpid(), slurm_lib, sanitizer)  # noqa: TID251 - that of this process: a fork has its own
    found = _ZYGOTES.get(key)
    if found is None:
        found = _ZYGOTES[key] = Zygote(slurm_lib, sanitizer)
    return found


# Functions.

_Encoder = Callable[["CompiledPlugin", tuple[Any, ...]], bytes]


def _method(how: Plan, described: Records) -> Callable[..., Any]:
    """Return the method for one function of C."""
    point = how.point
    given = point.parameters if point is not None else ()
    encoders = [_encoder(each, given, described) for each in how.parameters]
    head = (b"t" if how.returns == "t" else b"-") + bytes([len(encoders)])

    def run(self: CompiledPlugin, *values: Any) -> Any:
        if len(values) != len(given):
            raise TypeError(f"{how.name} takes {len(given)} arguments, and got {len(values)}")
        host = self.host
        message = b"".join(
            (
                host.head(how.name, watched=self.watched),
                head,
                *(one(self, values) for one in encoders),
            )
        )
        return host.call(message, lambda answer: _finish(self, how, values, answer))

    run.__name__ = run.__qualname__ = how.name if point is None else point.name
    # What a plugin is held to are the guide's names of its parameters.
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *given)]
    vars(run)["__signature__"] = Signature(parameters)
    return run


def _encoder(parameter: Argument, given: tuple[str, ...], described: Records) -> _Encoder:
    """Return what writes one argument as hosts read it."""
    kind, name, mask = parameter.kind, parameter.name, (1 << 64) - 1
    at = given.index(name) if name in given else -1
    if kind == "r":
        return _record_encoder(name, at, described)
    if kind == "i" and (at < 0 or name == "protocol_version"):
        return lambda plugin, values: b"i" + U64.pack(_besides(plugin, name, at, values) & mask)
    if kind == "i":
        return lambda _, values: b"i" + U64.pack(values[at] & mask)
    if kind in ("p", "x"):
        letter = b"i" if kind == "p" else b"o"
        return lambda _, values: (
            letter + U64.pack(values[at].address if values[at] is not None else 0)
        )
    if kind == "s":
        return lambda _, values: b"s" + text(values[at] if at >= 0 else None)
    if kind == "b":
        return lambda _, values: b"b" + blob(values[at].data()[values[at].offset :])
    if kind == "e":
        return lambda _, values: b"e" + _environment(values[at])
    if kind == "z":
        size = given.index("size")
        return lambda _, values: b"z" + U64.pack(max(values[size], 0))
    constant = {"o": b"o", "n": b"o", "t": b"t"}.get(kind)
    if constant is not None:
        whole = constant + U64.pack(0)
        return lambda _, __: whole
    letter = kind.encode()
    return lambda _, __: letter


# What later versions of Slurm pass besides, and Slurm's own records.


def _besides(plugin: CompiledPlugin, name: str, at: int, values: tuple[Any, ...]) -> int:
    """Return a number that the guide's function is not given."""
    if name == "protocol_version":
        given = values[at] if at >= 0 else 0
        return versions.protocol_version(plugin.plugin_version, given)
    process = CALLING.get(None)
    about = None if process is None else process.about
    if about is None:
        return 0
    if name == "recover":
        return int(about.besides.get("recover", 1))
    if about.step is UNSET:
        return 0
    job, _, step = about.step.partition(".")
    return int(job if name == "job_id" else step)


_NAMES: Final = {
    "step_ptr": records.STEP,
    "slurmd_job": records.STEPD,
    "step_layout": records.LAYOUT,
}
"""By which names debug information has the records that functions are given."""


def _record_encoder(name: str, at: int, described: Records) -> _Encoder:
    """Return what writes a record of Slurm's own: laid out, or one not to be looked into."""
    kind = described.structure(*_NAMES[name])

    def write(_: CompiledPlugin, values: tuple[Any, ...]) -> bytes:
        value: Any = values[at] if at >= 0 else None
        image = Image(described)
        if name == "step_ptr" and value is None:
            return b"m" + image.message()
        if kind is None:
            return b"g"
        if name == "step_ptr":
            fields = records.of_step(value)
        elif name == "step_layout":
            fields = records.of_layout(*values[1:])
        else:
            fields = records.of_stepd()
        image.lay_out(kind, fields, records.ENVIRONMENT)
        return b"m" + image.message()

    return write


def _environment(env: dict[str, str]) -> bytes:
    return U32.pack(len(env)) + b"".join(text(f"{key}={value}") for key, value in env.items())


def _number(value: int, bits: int) -> int:
    """Return a result as its type in C has it; negative *bits* have a sign."""
    width = abs(bits)
    value &= (1 << width) - 1
    return value - (1 << width) if bits < 0 and value >> (width - 1) else value


_SETS_ENVIRONMENT: Final = ("slurm_ckpt_stepd_prefork", "switch_p_job_init")
"""The functions from which slurmstepd takes the environment of the tasks."""


def _finish(plugin: CompiledPlugin, how: Plan, values: tuple[Any, ...], answer: Reader) -> Any:
    """Read a call's answer: what it returned, and what it left in its arguments."""
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
    out: dict[str, Any] = {}
    for parameter in how.parameters:
        value = values[given.index(parameter.name)] if parameter.name in given else None
        found = _take(parameter, value, answer)
        if parameter.kind in ("o", "d", "z", "x"):
            made = found
        out[parameter.name] = found
    result = _result(how, returned, failure, said, made)
    if type(result) is int and result < 0:
        plugin.failure = failure
    elif how.point is not None and how.point.returns is Returns.STATUS:
        asked = dict(zip(given, values, strict=True))["op"]
        result = _status(out) if asked in (CheckOp.ABLE, CheckOp.ERROR) else None
    elif how.point is not None and how.point.returns is Returns.COUNT and how.later:
        # It returns whether it could, and not how much that was.
        result = out["buffer"]
    if how.point is not None and how.point.name in _SETS_ENVIRONMENT:
        for pairs in out.get("slurmd_job") or ():
            _update(stepd.environment, pairs)
    if isinstance(result, Pointer):
        result.host = plugin.host
        # The same object is the same one.
        given_back = [each for each in values if isinstance(each, Pointer)]
        return next((each for each in given_back if each.address == result.address), result)
    return result


def _reads(library: Path, answer: Reader) -> frozenset[str]:
    """Read what a watched call has done; return the variables that it read before it wrote."""
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
    """Read what a call left in one argument; return what the argument gives back."""
    kind = parameter.kind
    if kind in ("o", "x"):
        address = answer.u64()
        if isinstance(value, Pointer):
            value.address = address
            return value
        return Pointer(address) if address else None
    if kind == "n":
        return _number(answer.u64(), parameter.bits)
    if kind == "t":
        return answer.text()
    if kind == "b":
        value.offset = min(value.offset + answer.u64(), value.size)
    elif kind == "B":
        data = answer.blob() or b""
        _append(value, data)
        return len(data)
    elif kind == "z":
        return (answer.blob() or b"").decode(errors="replace")
    elif kind == "d":
        return _data(answer.blob() or b"", answer.text())
    elif kind == "f":
        value.write((answer.blob() or b"").decode(errors="replace"))
    elif kind == "e":
        _update(value, _texts(answer))
    elif kind == "r":
        return [_texts(answer) for _ in range(answer.u32())]
    return None


def _texts(answer: Reader) -> list[str]:
    return [answer.text() or "" for _ in range(answer.u32())]


def _status(out: dict[str, Any]) -> CheckpointStatus:
    """Return what slurm_ckpt_op has left where its last three arguments point."""
    return CheckpointStatus(
        event_time=out["event_time"],
        error_code=out["error_code"],
        error_msg=out["error_msg"] or "",
    )


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


_ERRORS: Final = (OnError.ANSWERED, OnError.FAIL_LAUNCH, OnError.END_TASK)
"""How a failure is met of functions whose result may be an error's number itself."""


def _raise_error(point: Point, number: int, failure: int) -> None:
    """Raise what a checkpoint function has failed with: its errno, or what it returned."""
    if number < 0 and failure:
        raise SlurmError(failure)
    if number > 0 and point.on_error in _ERRORS:
        raise SlurmError(number)


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
    if point is not None and point.plugin_class == "checkpoint":
        _raise_error(point, number, failure)
    if point is not None and point.returns in (Returns.OBJECT, Returns.DATA):
        return SLURM_ERROR if number < 0 else made
    return number
