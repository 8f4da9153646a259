"""The command dw_wlm_cli of the simulated appliance, as burst_buffer/datawarp calls it.

``dw_wlm_cli --function F ...``: answers are JSON or nothing, errors a text and exit status 1.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from simctl.appliance.directives import Directive, directives, staged_paths
from simctl.appliance.spec import Answer, Function, FunctionSpec
from simctl.appliance.storage import Storage
from simctl.appliance.store import Buffer, RefusedError, Store
from simctl.site import ScriptCall
from simctl.wire.burst_buffer_conf import NODES
from simctl.wire.burst_buffer_conf import size as read_size

_SHORT: Final = {
    "-c": "--caller",
    "-t": "--token",
    "-u": "--user",
    "-C": "--capacity",
    "-a": "--access",
    "-T": "--type",
}
_FLAGS: Final = ("--hurry",)
_MOUNTS: Final = "/var/opt/cray/dws/mounts/batch"
_WORDS: Final = (
    *("jobdw", "persistentdw", "swap", "stage_in", "stage_out"),
    *("create_persistent", "destroy_persistent"),
)
_ACCESS: Final = {"striped": "ss", "private": "priv", "ldbalance": "ldbal"}


def function(storage: Storage, call: ScriptCall) -> Function:
    """Take a command line apart."""
    options = _options(call.argv[1:])
    name = options.get("--function", "")
    token = options.get("--token", "")
    if name == "teardown" and token and not token[0].isdigit():
        name = "destroy_persistent"
    return Function(name, token, _Call(storage, call, options, name).answer())


def _options(argv: tuple[str, ...]) -> dict[str, str]:
    """Return the options of a command line, by their long names."""
    found: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        key = _SHORT.get(word, word)
        found[key] = "" if key in _FLAGS else next(words, "")
    return found


@attrs.frozen
class _Call:
    """One call, with what its functions need at hand."""

    storage: Storage
    call: ScriptCall
    options: Mapping[str, str]
    name: str

    @property
    def token(self) -> str:
        return self.options.get("--token", "")

    @property
    def store(self) -> Store:
        return self.storage.store

    def answer(self) -> Answer:
        """Return what does the function of this call."""
        show = _SHOWN.get(self.name)
        if show is not None:
            return lambda described: self._show(show, described)
        doer = _DOERS.get(self.name)
        return self._unknown if doer is None else lambda described: doer(self, described)

    async def _unknown(self, _: FunctionSpec | None) -> str:
        raise RefusedError(f"dw_wlm_cli: no function {self.name!r}: {', '.join(_known())}")

    async def _show(
        self, show: Callable[[Store], dict[str, Any]], described: FunctionSpec | None
    ) -> str:
        await self.take_time(described)
        return json.dumps(show(self.store)) + "\n"

    async def take_time(self, described: FunctionSpec | None) -> None:
        """Let pass what the function takes."""
        await self.storage.pass_us(self.storage.fixed_us(self.name, described))

    def lines(self) -> tuple[Directive, ...]:
        """Return the directives of the job's script."""
        path = self.options.get("--job", "")
        text = self.storage.disk.read(path, host=self.call.process.host.name) if path else ""
        if text is None:
            raise RefusedError(f"dw_wlm_cli: {path}: No such file or directory")
        return directives(text)

    def grant(self) -> Buffer:
        """Grant what ``--capacity POOL:SIZE`` asks for; nothing where it is left out."""
        pool, _, capacity = self.options.get("--capacity", "").rpartition(":")
        size = 0
        if capacity:
            try:
                size, unit = read_size(capacity)
            except ValueError as error:
                raise RefusedError(f"dw_wlm_cli: {error}") from error
            if unit == NODES and pool in self.store.pools:
                size *= self.store.pools[pool].granularity
        owner = self.options.get("--user", "")
        return self.store.grant(
            self.token,
            size,
            pool=pool,
            owner=int(owner) if owner.isdecimal() else 0,
            now_s=self.storage.clock_s,
        )

    async def keep(self, buffer: Buffer, described: FunctionSpec | None) -> None:
        """Let pass what it takes to make a buffer, which may be taken away meanwhile."""
        await self.take_time(described)
        if self.store.get(self.token) is not buffer:
            raise RefusedError("token not found")


# Functions, each given its call and what the scenario says of it.


async def _job_process(call: _Call, described: FunctionSpec | None) -> str:
    """Look at the directives of a job that is being submitted."""
    await call.take_time(described)
    for line in call.lines():
        if line.word not in _WORDS:
            raise RefusedError(f"#DW {line.word}: no such directive: {', '.join(_WORDS)}")
        if line.word == "jobdw" and "capacity" not in line.options:
            raise RefusedError("#DW jobdw: capacity= is missing")
    return ""


async def _create_persistent(call: _Call, described: FunctionSpec | None) -> str:
    await call.keep(call.grant(), described)
    return "created\n"


async def _setup(call: _Call, described: FunctionSpec | None) -> str:
    """Grant a job its buffer; what it uses of others must be there."""
    for line in call.lines():
        name = line.options.get("name", "")
        if line.word == "persistentdw" and name not in call.store.buffers:
            raise RefusedError(f"persistent buffer {name} not found")
    await call.keep(call.grant(), described)
    return ""


async def _data_in(call: _Call, described: FunctionSpec | None) -> str:
    return await _stage(call, described, "stage_in", "staged-in")


async def _data_out(call: _Call, described: FunctionSpec | None) -> str:
    return await _stage(call, described, "stage_out", "staged-out")


async def _stage(call: _Call, described: FunctionSpec | None, word: str, state: str) -> str:
    buffer = call.store.get(call.token)
    sizes = [call.storage.size_of(path) for path in staged_paths(call.lines(), word)]
    await call.storage.stage(call.name, buffer, sizes, described)
    buffer.state = state
    return ""


async def _real_size(call: _Call, described: FunctionSpec | None) -> str:
    await call.take_time(described)
    buffer = call.store.get(call.token)
    size = {"token": call.token, "capacity": buffer.size, "units": "bytes"}
    return json.dumps(size) + "\n"


async def _paths(call: _Call, described: FunctionSpec | None) -> str:
    """Write where a job finds its buffers into the file that ``--pathfile`` names."""
    await call.take_time(described)
    call.store.get(call.token)
    text = "".join(f"{name}={path}\n" for name, path in mounts(call.lines(), call.token).items())
    process = call.call.process
    call.storage.disk.write(
        call.options.get("--pathfile", "/dev/null"), text, host=process.host.name, uid=process.uid
    )
    return ""


def mounts(lines: tuple[Directive, ...], token: str) -> dict[str, str]:
    """Return the variables that tell a job where its buffers are mounted."""
    found: dict[str, str] = {}
    for line in lines:
        modes = line.options.get("access_mode", line.options.get("access", "striped"))
        if line.word == "jobdw":
            for mode in modes.split(","):
                plain = mode.partition("(")[0]
                found[f"DW_JOB_{plain.upper()}"] = f"{_MOUNTS}/{token}/{_ACCESS.get(plain, plain)}/"
        elif line.word == "persistentdw":
            name = line.options.get("name", "")
            found[f"DW_PERSISTENT_STRIPED_{name}"] = f"{_MOUNTS}/{name}/ss/"
    return found


async def _known_token(call: _Call, described: FunctionSpec | None) -> str:
    """Do something on the nodes of a job whose buffer must be there."""
    call.store.get(call.token)
    await call.take_time(described)
    return ""


async def _teardown(call: _Call, described: FunctionSpec | None) -> str:
    """Take a buffer away, and with it the stage that is under way."""
    call.storage.stop(call.store.get(call.token))
    await call.take_time(described)
    call.store.drop(call.token)
    return ""


_DOERS: Final = {
    "job_process": _job_process,
    "create_persistent": _create_persistent,
    "destroy_persistent": _teardown,
    "setup": _setup,
    "data_in": _data_in,
    "real_size": _real_size,
    "paths": _paths,
    "pre_run": _known_token,
    "post_run": _known_token,
    "data_out": _data_out,
    "teardown": _teardown,
}


# What is shown as JSON.


def pools(store: Store) -> dict[str, Any]:
    """Return the pools; quantity and free count granules."""
    return {
        "pools": [
            {
                "id": pool.name,
                "units": "bytes",
                "granularity": pool.granularity,
                "quantity": pool.capacity // pool.granularity,
                "free": pool.free // pool.granularity,
            }
            for pool in store.pools.values()
        ]
    }


def instances(store: Store) -> dict[str, Any]:
    """Return what space is granted, each labelled with its token."""
    return {
        "instances": [
            {
                "id": buffer.number,
                "capacity": {"bytes": buffer.size, "nodes": 1},
                "label": buffer.token,
                "links": {"session": buffer.number},
                "pool": buffer.pool,
            }
            for buffer in store.buffers.values()
            if buffer.size
        ]
    }


def sessions(store: Store) -> dict[str, Any]:
    """Return the tokens that are known, and whose they are."""
    return {
        "sessions": [
            {
                "id": buffer.number,
                "token": buffer.token,
                "owner": buffer.owner,
                "created": buffer.created_s,
                "used": bool(buffer.size),
            }
            for buffer in store.buffers.values()
        ]
    }


def configurations(store: Store) -> dict[str, Any]:
    """Return what mounts there could be: one for each buffer."""
    return {
        "configurations": [
            {"id": buffer.number, "links": {"instance": buffer.number}}
            for buffer in store.buffers.values()
            if buffer.size
        ]
    }


_SHOWN: Final = {
    "pools": pools,
    "show_instances": instances,
    "show_sessions": sessions,
    "show_configurations": configurations,
}


def _known() -> list[str]:
    return [*_SHOWN, *(name for name in _DOERS if name != "destroy_persistent")]
