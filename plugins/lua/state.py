"""A Lua state: a script is loaded into it, and its functions are called in virtual time.

What blocks in Lua (a command, a sleep, a loop that waits for the clock) is a yield to this side.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from simctl.plugins.lua.machine import Machine
from simctl.plugins.lua.patterns import Endless, Malformed, search

VERSIONS: Final = ("5.1", "5.2", "5.3", "5.4")
"""The Lua that a Slurm may have been built with."""

_FOLDER: Final = Path(__file__).parent
_MEMORY: Final = 128 << 20
_STRIDE: Final = 100_000
_STRIDES: Final = 500
_DEEPEST: Final = 100


class LuaMissingError(RuntimeError):
    """The extra that brings Lua along is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "Lua scripts need the package lupa, which is not installed; install slurm-simctl with "
            "its extra: pip install 'slurm-simctl[lua]', or from a checkout pip install '.[lua]'"
        )


class LuaFailure(Exception):
    """A script's error, as its text says; `endless` where it was ended for taking too much."""

    def __init__(self, text: str, *, endless: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.endless = endless


class LuaExit(Exception):
    """A script called os.exit."""

    def __init__(self, code: int) -> None:
        super().__init__(f"os.exit({code})")
        self.code = code


@attrs.frozen
class LuaOther:
    """A value that is neither nothing, a text, a number nor a truth: a table, a function."""

    kind: str


Value = None | bool | int | float | str | LuaOther


def require_lua() -> None:
    """Check that Lua is installed.

    Raises:
        LuaMissingError: It is not.
    """
    _module("5.4")


def _module(version: str) -> Any:
    try:
        return importlib.import_module(f"lupa.lua{version.replace('.', '')}")
    except ImportError as error:
        raise LuaMissingError from error


def octets(text: str) -> str:
    """Return a text as Lua holds it: one character a byte."""
    return text if text.isascii() else text.encode(errors="surrogateescape").decode("latin-1")


def text_of(held: str) -> str:
    """Return what Lua holds as a text; bytes that are no UTF-8 become marks."""
    return held if held.isascii() else held.encode("latin-1").decode(errors="replace")


def number_text(number: float, version: str) -> str:
    """Return a number as Lua of a version writes it."""
    if isinstance(number, int):
        return str(number)
    text = f"{number:.14g}"
    if version >= "5.3" and text.lstrip("-").isdigit():
        text += ".0"
    return text


class LuaState:
    """One state; `load` runs the script, `call` a function of it.

    Args:
        machine: What the script reaches.
        version: One of `VERSIONS`.
        slurm: Constants of the table `slurm`.
        order: 0, or the seed that tables are gone through by.
        functions: Functions of the table `slurm` that only some scripts have.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        version: str,
        slurm: Mapping[str, str | float],
        order: int = 0,
        functions: Mapping[str, Callable[..., Any]] = {},
    ) -> None:
        module = _module(version)
        self._machine = machine
        self._lua = module.LuaRuntime(
            encoding="latin-1",
            unpack_returned_tuples=True,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_no_attributes,
            max_memory=_MEMORY,
        )
        self._errors = (module.LuaError, module.LuaMemoryError)
        self._type: Callable[[Any], str | None] = module.lua_type
        self.version = version
        number = 100 * int(version[0]) + int(version[2])
        self._globals = self._lua.globals()
        offers = {name: getattr(machine, name) for name in machine.OFFERS}
        host = self._table({**offers, "match": _match})
        options = self._table(
            {
                "version": number,
                "steps": _STRIDES,
                "stride": _STRIDE,
                "order": order,
                "path": machine.lua_path(version),
                "cpath": "",
            }
        )
        base = self._prelude("base", host, options)
        self._load_text = base["load_text"]
        self._start = base["start"]
        self._step = base["step"]
        self._settle = self._prelude("library", base, host, options)
        offer, self._record, self._list = self._prelude("slurm", base, host, self._table(slurm))
        for name, function in functions.items():
            offer(name, function)

    def _table(self, values: Mapping[Any, Any]) -> Any:
        return self._lua.table_from(
            {key: octets(each) if isinstance(each, str) else each for key, each in values.items()}
        )

    def _prelude(self, name: str, *arguments: Any) -> Any:
        text = (_FOLDER / f"{name}.lua").read_text()
        if name == "base":
            compiled = self._globals["loadstring" if self.version == "5.1" else "load"]
            return compiled(text, f"=simctl/{name}")(*arguments)
        return self._load_text(text, f"=simctl/{name}")(*arguments)

    async def load(self, text: str, name: str) -> tuple[Value, ...]:
        """Run a script's main chunk, and return what it returns.

        Raises:
            LuaFailure: It does not parse, or fails.
            LuaExit: It ends its process.
        """
        held = octets(text)
        if held.startswith("#"):
            held = "--" + held
        loaded = self._load_text(held, octets(f"@{name}"))
        if isinstance(loaded, tuple):
            raise LuaFailure(text_of(loaded[1]).partition("\nstack traceback:")[0])
        return await self._run(loaded)

    def has(self, name: str) -> bool:
        """Return whether there is a global function of a name."""
        return self._type(self._globals[name]) == "function"

    async def call(self, name: str, *arguments: Any) -> tuple[Value, ...]:
        """Call a global function, and return all that it returns.

        Texts, numbers and what `record` and `table` gave may be handed to it.

        Raises:
            LuaFailure: It fails, or was ended.
            LuaExit: It ends its process.
        """
        values = [octets(each) if isinstance(each, str) else each for each in arguments]
        return await self._run(self._globals[name], *values)

    def record(
        self, get: Callable[[Any], Any], put: Callable[[Any, Any], str | None] | None = None
    ) -> Any:
        """Return a table whose fields are read and written on this side.

        What *get* returns is handed over as `value` does; *put* returns why a value cannot be, and
        raises nothing. Without it what a script sets stays in the table, and goes with it.
        """

        def read(key: Any) -> Any:
            return self.value(get(text_of(key) if isinstance(key, str) else key))

        def write(key: Any, value: Any) -> Any:
            assert put is not None
            wrong = put(_plain_key(key), self._told(value))
            return octets(wrong) if wrong else None

        return self._record(read, write if put is not None else None)

    def value(self, value: Any) -> Any:
        """Return a value for Lua: a text, a number, a truth, nothing, or a table of these."""
        if isinstance(value, str):
            return octets(value)
        if isinstance(value, Mapping):
            return self._table({key: self.value(each) for key, each in value.items()})
        if isinstance(value, list | tuple):
            return self._table({at: self.value(each) for at, each in enumerate(value, 1)})
        return value

    def set_global(self, name: str, key: str, value: Any) -> None:
        """Set a field of a global table."""
        self._globals[name][key] = self.value(value)

    def _told(self, value: Any) -> Value:
        """Return a value of Lua's."""
        if isinstance(value, str):
            return text_of(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        return LuaOther(self._type(value) or "userdata")

    def plain(self, value: Any, depth: int = 0) -> Any:
        """Return a table of Lua's as a dict, as deep as it is; other values as they are."""
        if self._type(value) != "table" or depth > _DEEPEST:
            return self._told(value)
        return {_plain_key(key): self.plain(each, depth + 1) for key, each in value.items()}

    async def _run(self, function: Any, *arguments: Any) -> tuple[Value, ...]:
        try:
            return await self._drive(function, *arguments)
        except self._errors as error:
            raise LuaFailure(text_of(str(error)).partition("\nstack traceback:")[0]) from error
        finally:
            self._settle()

    async def _drive(self, function: Any, *arguments: Any) -> tuple[Value, ...]:
        number = self._start(function)
        given: Iterable[Any] = arguments
        while True:
            said = self._step(number, *given)
            outcome, *values = said if isinstance(said, tuple) else (said,)
            if outcome == "wait":
                given = await self._wait(*values)
                continue
            if outcome == "done":
                count, *rest = values
                rest += [None] * (count - len(rest))
                return tuple(self._told(each) for each in rest)
            if outcome == "exit":
                raise LuaExit(int(values[0]))
            if outcome == "endless":
                why, where = values[0], values[1] if len(values) > 1 and values[1] else "the script"
                raise LuaFailure(text_of(f"{where}: {why}"), endless=True)
            text = values[0] if values and values[0] is not None else "(null)"
            raise LuaFailure(text_of(str(text)))

    async def _wait(self, what: str, *rest: Any) -> tuple[Any, ...]:
        if what == "shell":
            status, output = await self._machine.shell(text_of(rest[0]), text_of(rest[1]))
            return (status, octets(output))
        if what == "sleep":
            await self._machine.nap(float(rest[0]))
        else:
            await self._machine.tick(float(rest[0]))
        return ()


def _plain_key(key: Any) -> Any:
    return text_of(key) if isinstance(key, str) else key


def _match(subject: str, pattern: str, init: float) -> Any:
    try:
        return search(subject, pattern, int(init))
    except Endless:
        return ("endless",)
    except Malformed as error:
        return ("malformed", str(error))


def _no_attributes(_object: Any, _name: Any, _setting: bool) -> Any:
    raise AttributeError("nothing of Python's is there for Lua")
