"""What slurmctld's plugins run: scripts, as SlurmUser, in processes of their own.

Who answers a path, in this order: with `options: {real_scripts: true}` an executable of the real
machine; a program that the scenario describes; a script in its files; the simulated appliance.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from simctl.api.slurmctld import ScriptResult
from simctl.appliance.appliance import Appliance
from simctl.kernel.outside import is_executable, run_real
from simctl.kernel.procs import Process
from simctl.site import ScriptCall, ScriptMain, Site, User
from simctl.stepd.script_process import ScriptProcess

if TYPE_CHECKING:
    from simctl.stepd.streams import Output

_HOPEFUL_TRIES: Final = 10


class Failures:
    """How often scripts have failed in a row that are tried again and again.

    A retry that has failed so often is no reason any more for a run to go on.
    """

    def __init__(self) -> None:
        self._in_a_row: dict[tuple[str, ...], int] = {}

    def hopeful(self, call: tuple[str, ...]) -> bool:
        """Return whether a call may be thought to succeed in the end."""
        return self._in_a_row.get(call, 0) < _HOPEFUL_TRIES

    def note(self, call: tuple[str, ...], *, ok: bool) -> None:
        """Enter how a call ended."""
        if ok:
            self._in_a_row.pop(call, None)
        else:
            self._in_a_row[call] = self._in_a_row.get(call, 0) + 1


async def run_script(
    site: Site,
    parent: Process,
    path: str,
    argv: tuple[str, ...],
    *,
    name: str,
    job_id: int = 0,
    timeout: float | None = None,  # noqa: ASYNC109 - virtual time
    env: Mapping[str, str],
    failures: Failures,
    uid: int | None = None,
) -> ScriptResult:
    """Run a script as a child of *parent*, and wait for its end.

    The caller keeps the run alive meanwhile, a plugin's own thread too, unless the same call has
    failed time after time. If the waiting thread is killed, so is the script.

    Args:
        site: The run.
        parent: slurmctld's process.
        path: What to run.
        argv: Its arguments.
        name: The name of its event.
        job_id: The job it is about; 0 for none.
        timeout: After how many seconds it is killed; without it, or with 0, never.
        env: Its environment.
        failures: Those of slurmctld's earlier calls.
        uid: As whom it runs; as SlurmUser if left out.
    """
    written: dict[int, list[str]] = {1: [], 2: []}
    script = _script(
        site,
        parent,
        path,
        argv,
        name=name,
        job_id=job_id,
        limit_s=timeout or 0,
        env=env,
        output=lambda descriptor, text: written[descriptor].append(text),
        uid=uid,
    )
    call = (path, *argv)
    with site.kernel.counting() if failures.hopeful(call) else nullcontext():
        status = await script.run()
    failures.note(call, ok=status == 0)
    return ScriptResult(
        status=status,
        output="".join(written[1]),
        error="".join(written[2]),
        timed_out=script.timed_out,
    )


def start_script(
    site: Site,
    parent: Process,
    path: str,
    argv: tuple[str, ...],
    *,
    name: str,
    job_id: int = 0,
    env: Mapping[str, str],
) -> None:
    """Start a script and wait for nothing: it goes on whatever becomes of *parent*."""
    script = _script(
        site,
        parent,
        path,
        argv,
        name=name,
        job_id=job_id,
        limit_s=0,
        env=env,
        output=lambda _descriptor, _text: None,
    )
    script.start()


def _script(
    site: Site,
    parent: Process,
    path: str,
    argv: tuple[str, ...],
    *,
    name: str,
    job_id: int,
    limit_s: float,
    env: Mapping[str, str],
    output: "Output",
    uid: int | None = None,
) -> ScriptProcess:
    user = _user(site, parent.uid if uid is None else uid)
    answer = _answer(site, path, parent.host.name)
    script = ScriptProcess(
        site=site,
        parent=parent,
        name=name,
        path=path,
        argv=argv,
        user=user,
        env=env,
        job_id=job_id or UNSET,
        limit_s=limit_s,
        output=output,
        answer=answer,
    )
    if answer is None and site.appliance is not None:
        _attend(script, site.appliance)
    return script


def _user(site: Site, uid: int) -> User:
    known = (user for user in site.users.values() if user.uid == uid)
    return next(known, User(name=str(uid), uid=uid, gid=0))


def has_script(site: Site, path: str, host: str) -> bool:
    """Return whether there is something to run at a path of *host*."""
    return _answer(site, path, host) is not None or not _lacks(site, path, host)


def _lacks(site: Site, path: str, host: str) -> bool:
    """Return whether slurmctld finds nothing to run at a path of *host*."""
    lacks: bool = site.programs.lacks((path,), site.disk.view(host, 0, "/"))
    return lacks


def _attend(script: ScriptProcess, appliance: Appliance) -> None:
    """Let the appliance keep the buffers that a described script of its own is about."""
    beside = appliance.beside(script.path, script.argv)
    if beside is None:
        return
    written: list[str] = []
    output = script.output

    def listen(descriptor: int, text: str) -> None:
        if descriptor == 1:
            written.append(text)
        output(descriptor, text)

    script.output = listen
    script.at_end = lambda status: output(1, beside.end(status, "".join(written)))
    script.at_begin = beside.begin


def _answer(site: Site, path: str, host: str) -> ScriptMain | None:
    """Return what answers in place of a described program or a script in a file."""
    if site.options.real_scripts and is_executable(path):
        return partial(_run_real, site.folder)
    if site.appliance is not None and _lacks(site, path, host):
        main: ScriptMain | None = site.appliance.answers(path)
        return main
    return None


async def _run_real(folder: str, call: ScriptCall) -> int:
    """Have the real machine run the script, in no virtual time."""
    run = await run_real(
        call.site.kernel, call.argv, env=call.env, work_dir=folder, limit_s=call.limit_s
    )
    call.write(1, run.output)
    call.write(2, run.error)
    call.timed_out = run.timed_out
    return run.status
