"""srun runs a program beside its step, because slurmctld asks it to, and reports how that went.

The program is told the pid of srun. One without a description is Open MPI's own ``ompi-checkpoint``
as simctl has it: it leaves a snapshot's directory at the user's home, and with ``--term`` has the
step end.
"""

from typing import Final

from simctl.commands.asking.talk import Talk
from simctl.kernel.procs import SIGTERM, Process, exit_code_of, signal_of, wait_status
from simctl.site import CommandCall, ScriptCall, ScriptMain
from simctl.stepd.script_process import ScriptProcess
from simctl.wire.ids import SECOND
from simctl.wire.messages import RequestCancelJobStep, RequestCheckpointComp, SrunExec

OMPI_CHECKPOINT: Final = "ompi-checkpoint"


def run_beside(call: CommandCall, talk: Talk, message: SrunExec) -> None:
    """Start what slurmctld has asked for; srun goes on meanwhile."""
    site = call.site
    began_s = site.start_time_s + site.kernel.now_us // SECOND
    written: list[str] = []
    path = message.argv[0]
    script = ScriptProcess(
        site=site,
        parent=call.process,
        name=path.rpartition("/")[2],
        path=path,
        argv=(*message.argv[1:], str(call.process.pid)),
        user=call.user,
        env=call.env,
        job_id=message.job_id,
        step=call.process.step,
        work_dir=call.work_dir,
        output=lambda _, text: written.append(text),
        answer=_answer(call, talk, message),
    )

    async def body() -> None:
        status = await script.run()
        number = signal_of(status)
        talk.send(
            RequestCheckpointComp(
                job_id=message.job_id,
                step_id=message.step_id,
                begin_time=began_s,
                error_code=128 + number if number else exit_code_of(status),
                error_msg="".join(written).strip(),
            )
        )

    call.process.start(body, f"srun's {path}")


def _answer(call: CommandCall, talk: Talk, message: SrunExec) -> ScriptMain | None:
    """Return what stands for Open MPI's program where the scenario describes none."""
    if message.argv[0] != OMPI_CHECKPOINT:
        return None
    if not call.site.programs.lacks(message.argv, call.files):
        return None

    async def main(script: ScriptCall) -> int:
        status = _snapshot(call, script.process, script)
        if not status and "--term" in script.argv:
            ending = RequestCancelJobStep(
                job_id=message.job_id, step_id=message.step_id, signal=SIGTERM
            )
            talk.send(ending)
        return status

    return main


def _snapshot(call: CommandCall, process: Process, script: ScriptCall) -> int:
    """Leave the directory of a snapshot; return a wait status."""
    name = f"ompi_global_snapshot_{script.argv[-1]}.ckpt"
    files = call.site.disk.view(process.host.name, process.uid)
    where = f"{call.user.home}/{name}"
    try:
        if not files.is_dir(where):
            files.mkdir(where)
        files.append(f"{where}/global_snapshot_meta.data", f"# Seq: {call.process.step}\n")
    except OSError as error:
        script.write(2, f"{where}: {error.strerror}\n")
        return wait_status(1)
    script.write(1, f"Snapshot Ref.:   0 {name}\n")
    return 0


__all__ = ["OMPI_CHECKPOINT", "run_beside"]
