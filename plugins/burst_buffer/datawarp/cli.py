"""The calls of dw_wlm_cli, the program that speaks to the appliance: arguments and answers."""

import json
from typing import Any, Final

import attrs

from simctl.plugin import JobRecord, ScriptResult, slurmctld
from simctl.plugins.burst_buffer.datawarp.files import EXEC_HOST, HOSTS, PATH, files_of
from simctl.plugins.burst_buffer.datawarp.settings import Settings
from simctl.plugins.burst_buffer.directives import Persistent
from simctl.plugins.burst_buffer.sizes import show_size

_DWSTAT_S: Final = 2.0
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
        """Return whether there is no such buffer (any more)."""
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

    async def status(self, argv: tuple[str, ...]) -> str:
        """Return what dwstat tells people; or that it failed, or took too long."""
        result = await slurmctld.run_script(
            self.settings.get_sys_status, *argv, name="dwstat", timeout=_DWSTAT_S
        )
        good = result.ok and not result.timed_out
        return result.output if good else "Error running dwstat\n"

    # A job.

    async def job_process(self, job: JobRecord) -> Answer:
        """Have the appliance check a job's script: that of its array, if it is a task of one."""
        return await self._run(
            "job_process",
            *_script(job.array_job_id or job.job_id),
            timeout_s=self.settings.validate_timeout,
            job_id=job.job_id,
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
        where = f"{files_of(job_id)}/{PATH}"
        return await self._run(
            "paths",
            *_script(job_id),
            *("--token", str(job_id), "--pathfile", where),
            timeout_s=self.settings.validate_timeout,
            job_id=job_id,
        )

    async def pre_run(self, job: JobRecord) -> Answer:
        """Have a job's buffer mounted on its nodes."""
        where = files_of(job.job_id)
        hosts: tuple[str, ...] = ("--nodehostnamefile", f"{where}/{HOSTS}")
        if "SetExecHost" in self.settings.flags:
            hosts += ("--jobexecutionnodefile", f"{where}/{EXEC_HOST}")
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
