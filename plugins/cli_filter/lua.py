"""cli_filter/lua: a site's cli_filter.lua looks at the options of sbatch, salloc and srun.

One Lua state lives as long as the command. A Lua error lets the command go on.
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from simctl.plugin import (
    NO_VAL,
    SLURM_ERROR,
    SLURM_SUCCESS,
    CliFilterPlugin,
    CliOptions,
    SlurmError,
    complain,
    log,
    lua_settings,
    process,
    run_shell,
    say,
)
from simctl.plugins.cli_filter import texts
from simctl.plugins.lua.constants import slurm_table
from simctl.plugins.lua.loading import as_number, load
from simctl.plugins.lua.machine import Machine
from simctl.plugins.lua.state import LuaExit, LuaFailure, LuaState, Value, require_lua

SCRIPT: Final = "/etc/slurm/cli_filter.lua"
REQUIRED: Final = (
    "slurm_cli_setup_defaults",
    "slurm_cli_pre_submit",
    "slurm_cli_post_submit",
)
_PRINTED: Final = {"error": "error: ", "info": ""}
"""Levels of the log that commands print, with what stands before."""
_NO_TEXTS: Final = {type(None): "nil", bool: "boolean"}
"""Lua's names of values that Slurm does not take for texts; other than tables and functions."""


class CliFilterLua(CliFilterPlugin):
    """Look at options with the functions of a site's cli_filter.lua."""

    plugin_type: ClassVar[str] = "cli_filter/lua"
    plugin_name: ClassVar[str] = "cli filter lua plugin"
    plugin_version: ClassVar[int] = 100

    def __init__(self) -> None:
        require_lua()
        self._state: LuaState | None = None
        self._env: Mapping[str, str] = {}
        self._kept: dict[int, str] = {}
        self._options: CliOptions | None = None

    async def init(self) -> int:
        """Load the script.

        Raises:
            SlurmError: It does not load.
        """
        settings = lua_settings()
        self._env = dict(process().env)
        machine = Machine(
            epoch_s=settings.epoch_s,
            run_shell=_shell,
            comm=process().role,
            env=dict(self._env),
            ids=(process().uid, process().uid),
            people=settings.people,
            logged=self._logged,
            printed=lambda _, text: say(text.rstrip("\n")),
        )
        state = LuaState(
            machine,
            version=settings.version,
            slurm=slurm_table(settings.slurm, settings.cluster, settings.defects),
            order=settings.order,
            functions={
                "json_cli_options": lambda _options: self._json(),
                "json_env": self._json_env,
                "cli_store": self._store,
                "cli_retrieve": lambda number: self._kept.get(int(number)),
            },
        )
        try:
            await load(state, machine, SCRIPT, REQUIRED)
        except (LuaFailure, LuaExit) as error:
            log.error(f"cli_filter.lua does not load: {error}")
            say(f"error: {error}")
            raise SlurmError(SLURM_ERROR, str(error)) from error
        self._state = state
        return SLURM_SUCCESS

    async def setup_defaults(self, options: CliOptions, early: bool) -> int:
        """Have slurm_cli_setup_defaults set options."""
        return await self._call("slurm_cli_setup_defaults", options, early)

    async def pre_submit(self, options: CliOptions, offset: int) -> int:
        """Have slurm_cli_pre_submit look at all options."""
        return await self._call("slurm_cli_pre_submit", options, float(offset))

    async def post_submit(self, offset: int, job_id: int, step_id: int) -> None:
        """Tell slurm_cli_post_submit which job or step was made."""
        step = float(NO_VAL if step_id == NO_VAL else step_id)
        await self._run("slurm_cli_post_submit", float(offset), float(job_id), step)

    async def _call(self, function: str, options: CliOptions, more: Any) -> int:
        assert self._state is not None
        self._options = options
        return await self._run(function, self._record(self._state, options), more)

    async def _run(self, function: str, *arguments: Any) -> int:
        """Call a function; a Lua error, and what is no number, count as 0."""
        assert self._state is not None
        try:
            values = await self._state.call(function, *arguments)
        except LuaExit as gone:
            complain(function, f"os.exit({gone.code}) ends the command")
            return gone.code & 0xFF or SLURM_SUCCESS
        except LuaFailure as error:
            log.error(f"{SCRIPT}: {error.text}")
            say(f"error: {_hook(function)}: {error.text}")
            if error.endless:
                complain(function, f"{error.text}; the command would have hung")
            return SLURM_SUCCESS
        number = as_number(values[0]) if values else None
        if number is None:
            log.error(f"{function}: non-numeric return code")
            say(f"{_hook(function)}: non-numeric return code")
        return number or SLURM_SUCCESS

    def _record(self, state: LuaState, options: CliOptions) -> Any:
        settings = lua_settings()
        uid = process().uid

        def get(name: Any) -> Any:
            if name == "argv":
                return dict(enumerate(options.argv, 1))
            if name == "type":
                return options.command
            if name in ("spank", "spank_job_env"):
                return {}
            typed = options[str(name)]
            if typed is not None:
                return texts.given(str(name), typed, settings.slurm)
            if name == "chdir" and options.command != "salloc":
                return options.work_dir
            text = texts.default(str(name), options.command, settings.slurm, uid)
            if text is None and not options.has(str(name)):
                log.debug(f"options has no field {name}")
            return text

        def put(name: Any, value: Value) -> str | None:
            kind = _NO_TEXTS.get(type(value)) or getattr(value, "kind", "")
            if kind:
                return f"bad argument #3 to '?' (string expected, got {kind})"
            if options.has(str(name)) and not options.counts(str(name)):
                log.info(f"options.{name} is set, which simctl does not simulate", value=str(value))
            try:
                options[str(name)] = value
            except (ValueError, TypeError) as error:
                # As Slurm does: a line, and the script goes on.
                log.error(f"options.{name} is not set: {error}")
                say(f"error: {error}")
            return None

        return state.record(get, put)

    def _logged(self, level: str, text: str) -> None:
        log.debug(f"lua: {text}")
        verbose = self._options["verbose"] if self._options is not None else None
        quiet = self._options is not None and "quiet" in self._options
        if level in _PRINTED and not (quiet and level == "info"):
            say(f"{_PRINTED[level]}lua: {text}")
        elif level in ("verbose", "debug") and verbose:
            say(f"lua: {text}")

    def _json(self) -> str:
        options = self._options
        if options is None:
            return "{}"
        slurm = lua_settings().slurm
        told = {name: texts.given(name, typed, slurm) for name, typed in options.as_dict().items()}
        return json.dumps({"type": options.command, "argv": list(options.argv), **told})

    def _json_env(self) -> str:
        wanted = ("SLURM_", "SPANK_")
        return json.dumps({k: v for k, v in self._env.items() if k.startswith(wanted)})

    def _store(self, number: float, text: str) -> None:
        self._kept[int(number)] = text


def _hook(function: str) -> str:
    """Return what stands before a line that Slurm's own plugin prints of a call."""
    return f"{function.replace('slurm_cli_', 'cli_filter_p_')}/lua: {SCRIPT}"


async def _shell(command: str, given: str) -> tuple[int, str]:
    done = await run_shell(command, given=given, env=process().env)
    return done.status, done.output
