"""What plugins run in children of their process: a line of shell, or a function of their own."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext

from msgspec import UNSET

from simctl.api.slurmctld import ScriptResult
from simctl.kernel.procs import CALLING, Process
from simctl.site import ScriptCall, Site, User
from simctl.stepd.script_process import ScriptProcess

_SHELL = "/bin/sh"


async def run_shell(
    site: Site,
    parent: Process,
    command: str,
    given: str,
    env: Mapping[str, str],
    timeout: float | None,  # noqa: ASYNC109 - virtual time
    job_id: int,
) -> ScriptResult:
    """Run a line of shell as a child of *parent*, and wait for its end."""
    written: dict[int, list[str]] = {1: [], 2: []}
    if given:
        path = f"/tmp/stdin.{parent.pid}"
        site.disk.view(parent.host.name, parent.uid).write(path, given)
        command = f"{command} < {path}"
    script = ScriptProcess(
        site=site,
        parent=parent,
        name="shell",
        path=_SHELL,
        argv=("-c", command),
        user=_user(site, parent.uid),
        env=env,
        job_id=job_id or UNSET,
        limit_s=timeout or 0,
        output=lambda descriptor, text: written[descriptor].append(text),
    )
    thread = site.kernel.current
    waits = thread is not None and thread.of_plugin
    with site.kernel.counting() if waits else nullcontext():
        status = await script.run()
    CALLING.set(parent)
    return ScriptResult(
        status=status,
        output="".join(written[1]),
        error="".join(written[2]),
        timed_out=script.timed_out,
    )


async def run_child(
    site: Site,
    parent: Process,
    name: str,
    body: Callable[[], Awaitable[int]],
    path: str,
    argv: tuple[str, ...],
    job_id: int,
) -> int:
    """Run a function in a child of *parent*, and wait for its end."""

    async def main(call: ScriptCall) -> int:
        await site.kernel.enter_task()
        CALLING.set(call.process)
        return await body()

    script = ScriptProcess(
        site=site,
        parent=parent,
        name=name,
        path=path,
        argv=argv,
        user=_user(site, parent.uid),
        env={},
        job_id=job_id or UNSET,
        answer=main,
    )
    with site.kernel.counting():
        status = await script.run()
    CALLING.set(parent)
    return status


def _user(site: Site, uid: int) -> User:
    known = (user for user in site.users.values() if user.uid == uid)
    return next(known, User(name=str(uid), uid=uid, gid=0))
