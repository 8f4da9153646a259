"""The calls of dw_wlm_cli, the program that speaks to the appliance: arguments and answers."""

import json
from typing import Any, Final

import attrs

from simctl.plugin import JobRecord, ScriptResult, conf, disk, hostlist, slurmctld
from simctl.plugins.burst_buffer.directives import Persistent
from simctl.plugins.burst_buffer.dw_settings import Settings
from simctl.plugins.burst_buffer.records import Pool
from simctl.plugins.burst_buffer.sizes import show_size

_GONE: Final = ("token not found", "No matching session")
"""What the appliance says of a buffer that it does not have."""


@attrs.frozen(kw_only=True)
class Answer:
    """How a call ended; `message` is what it wrote, or how it ended if it wrote nothing."""

    ok: bool
    message: str
    output: str = ""

    @property
    def gone(self) -> bool:
        """Tell whether there is no such buffer (any more)."""
        return any(text in self.message for text in _GONE)


def _answer(result: ScriptResult) -> Answer:
    text = "\n".join(part.strip() for part in (result.output, result.error) if part.strip())
    if result.timed_out:
        text = text or "timed out"
    elif result.signal:
        text = text or f"ended by signal {result.signal}"
    elif not result.ok:
        text = text or f"exit status {result.exit_code}"
    return Answer(ok=result.ok and not result.timed_out, message=text, output=result.output)


class DwCli:
    """dw_wlm_cli as burst_buffer.conf's GetSysState names it, with its time limits."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @property
    def program(self) -> str:
        """Return the path of the program."""
        return self.settings.get_sys_state

    async def _run(self, function: str, *argv: str, timeout_s: int, job_id: int = 0) -> Answer:
        result = await slurmctld.run_script(
            self.settings.get_sys_state,
            "--function",
            function,
            *argv,
            name=f"dw_{function}",
            job_id=job_id,
            timeout=float(timeout_s),
        )
        return _answer(result)

    # What there is.

    async def ask(self, function: str) -> Any:
        """Return what `pools` or a `show_` function answers as JSON, None if it does not answer."""
        answer = await self._run(function, timeout_s=self.settings.other_timeout)
        if not answer.ok:
            return None
        try:
            found = json.loads(answer.output or "{}")
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    # A job.

    async def job_process(self, job_id: int) -> Answer:
        """Have the appliance check a job's script."""
        script = files_of(job_id) + "/script"
        return await self._run(
            "job_process",
            "--job",
            script,
            timeout_s=self.settings.validate_timeout,
            job_id=job_id,
        )

    async def setup(self, job: JobRecord, pool: str, size: int) -> Answer:
        """Have a job's buffer made."""
        capacity = ("--capacity", f"{pool}:{show_size(size)}") if size else ()
        return await self._run(
            "setup",
            *("--token", str(job.job_id), "--caller", "SLURM"),
            *("--user", str(job.user_id), "--groupid", str(job.group_id)),
            *capacity,
            *_script(job.job_id),
            timeout_s=self.settings.stage_in_timeout,
            job_id=job.job_id,
        )

    async def stage(self, function: str, job_id: int) -> Answer:
        """Run data_in, post_run or data_out of a job."""
        settings = self.settings
        limit = settings.stage_in_timeout if function == "data_in" else settings.stage_out_timeout
        return await self._run(
            function,
            *("--token", str(job_id)),
            *_script(job_id),
            timeout_s=limit,
            job_id=job_id,
        )

    async def real_size(self, job_id: int) -> int:
        """Return how many bytes a job's buffer really has; 0 if that cannot be told."""
        answer = await self._run(
            "real_size",
            *("--token", str(job_id)),
            timeout_s=self.settings.stage_in_timeout,
            job_id=job_id,
        )
        try:
            found = json.loads(answer.output) if answer.ok else {}
            return max(int(found["capacity"]), 0) if found["units"] == "bytes" else 0
        except (ValueError, KeyError, TypeError):
            return 0

    async def paths(self, job_id: int) -> Answer:
        """Have the variables written down that tell a job where its buffer is."""
        where = files_of(job_id) + "/path"
        disk().write(where, "")
        return await self._run(
            "paths",
            *_script(job_id),
            *("--token", str(job_id), "--pathfile", where),
            timeout_s=self.settings.validate_timeout,
            job_id=job_id,
        )

    async def pre_run(self, job: JobRecord) -> Answer:
        """Have a job's buffer mounted on its nodes."""
        hosts: tuple[str, ...] = ()
        if job.nodes:
            nodes = hostlist(job.nodes)
            hosts = ("--nodehostnamefile", write_file(job.job_id, "client_nids", nodes))
            if "SetExecHost" in self.settings.flags:
                first = write_file(job.job_id, "exec_host", nodes[:1])
                hosts += ("--jobexecutionnodefile", first)
        return await self._run(
            "pre_run",
            *("--token", str(job.job_id)),
            *_script(job.job_id),
            *hosts,
            timeout_s=self.settings.other_timeout,
            job_id=job.job_id,
        )

    async def teardown(self, token: str, job_id: int, *, hurry: bool) -> Answer:
        """Have a buffer taken down: a job's, or a persistent one by its name."""
        return await self._run(
            "teardown",
            *("--token", token),
            *_script(job_id),
            *(("--hurry",) if hurry else ()),
            timeout_s=self.settings.other_timeout,
            job_id=job_id,
        )

    async def create_persistent(
        self, job_id: int, user_id: int, made: Persistent, pool: str, size: int
    ) -> Answer:
        """Have a buffer made that outlives its job."""
        access = ("-a", made.access) if made.access else ()
        kind = ("-T", made.kind) if made.kind else ()
        return await self._run(
            "create_persistent",
            *("-c", "CLI", "-t", made.name, "-u", str(user_id)),
            *("-C", f"{pool}:{show_size(size)}"),
            *access,
            *kind,
            timeout_s=self.settings.stage_in_timeout,
            job_id=job_id,
        )


def _script(job_id: int) -> tuple[str, str]:
    return "--job", files_of(job_id) + "/script"


# A job's files, beside those that slurmctld keeps of it.


def files_of(job_id: int) -> str:
    """Return the directory in StateSaveLocation that holds a job's files."""
    return f"{conf['StateSaveLocation']}/hash.{job_id % 10}/job.{job_id}"


def write_file(job_id: int, name: str, lines: Any) -> str:
    """Write lines into a file of a job's; return its path."""
    where = f"{files_of(job_id)}/{name}"
    _make_directories(files_of(job_id))
    disk().write(where, "".join(f"{line}\n" for line in lines), mode=0o600)
    return where


def write_script(job: JobRecord) -> None:
    """Write what the appliance is told is the job's script; its directives, if it has none."""
    text = job.script or f"#!/bin/sh\n{job.burst_buffer}\n"
    write_file(job.job_id, "script", text.removesuffix("\n").split("\n"))


def remove_files(job_id: int) -> None:
    """Remove what was written of a job; what is not there is none's loss."""
    files, where = disk(), files_of(job_id)
    try:
        for name in files.listdir(where):
            files.remove(f"{where}/{name}")
        files.remove(where)
    except OSError:
        return


def read_paths(job_id: int) -> dict[str, str]:
    """Return the variables that `paths` has written down."""
    lines = disk().read_text(files_of(job_id) + "/path").splitlines()
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value for key, equals, value in pairs if equals and key.strip()}


def _make_directories(path: str) -> None:
    files = disk()
    missing = []
    while path not in ("", "/") and not files.exists(path):
        missing.append(path)
        path = path.rpartition("/")[0]
    for each in reversed(missing):
        files.mkdir(each)


# What there is, out of JSON.


@attrs.frozen(kw_only=True)
class Session:
    """A buffer that the appliance has."""

    token: str
    owner: int
    size: int
    created: int
    pool: str = ""


def read_pools(found: Any) -> list[Pool]:
    """Return the pools of an answer; entries that make no sense are left out."""
    pools = []
    for entry in _entries(found, "pools"):
        granularity = max(_number(entry, "granularity"), 1)
        total = _number(entry, "quantity") * granularity
        if entry.get("id"):
            pools.append(Pool(name=str(entry["id"]), total=total, granularity=granularity))
    return pools


def read_sessions(sessions: Any, instances: Any) -> list[Session]:
    """Return the sessions of an answer, with the bytes of their instances."""
    sizes: dict[str, int] = {}
    pools: dict[str, str] = {}
    for entry in _entries(instances, "instances"):
        links, capacity = entry.get("links"), entry.get("capacity")
        session = links.get("session") if isinstance(links, dict) else entry.get("label")
        size = _number(capacity, "bytes") if isinstance(capacity, dict) else 0
        sizes[str(session)] = sizes.get(str(session), 0) + size
        pools[str(session)] = str(entry.get("pool") or "")
    found = []
    for entry in _entries(sessions, "sessions"):
        token = str(entry.get("token") or "")
        key = str(entry.get("id"))
        if token:
            found.append(
                Session(
                    token=token,
                    owner=_number(entry, "owner"),
                    size=sizes.get(key, 0) or sizes.get(token, 0),
                    created=_number(entry, "created"),
                    pool=pools.get(key, ""),
                )
            )
    return found


def _entries(found: Any, name: str) -> list[dict[str, Any]]:
    listed = found.get(name) if isinstance(found, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _number(entry: dict[str, Any], key: str) -> int:
    value = entry.get(key)
    return value if type(value) is int and value >= 0 else 0
