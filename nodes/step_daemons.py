"""The step daemons of a node: forked, found, signalled."""

from collections.abc import Callable

from simctl.kernel.fabric import Mailbox
from simctl.kernel.procs import Process
from simctl.nodes.spool import Socket, Spool, StepKey
from simctl.site import Site
from simctl.stepd.manager import StepDaemon
from simctl.stepd.work import StepWork
from simctl.wire.ids import step_name
from simctl.wire.messages import RequestSignalTasks


class StepDaemons:
    """The step daemons that run on a node; `gone` is told of each that ends: job and cause.

    Those that another slurmd has forked are among them: their sockets are in the *spool* directory.
    """

    def __init__(
        self,
        site: Site,
        slurmd: Process,
        mailbox: Mailbox,
        spool: Spool,
        *,
        gone: Callable[[int, int], None],
    ) -> None:
        self._site = site
        self._slurmd = slurmd
        self._mailbox = mailbox
        self._spool = spool
        spool.gone = gone

    def __contains__(self, key: StepKey) -> bool:
        """Return whether a step runs here."""
        return key in self._spool.sockets

    def find(self, job_id: int, step_id: int) -> Mailbox | None:
        """Return where the daemon of a step receives."""
        socket = self._spool.sockets.get((job_id, step_id))
        return None if socket is None else socket.mailbox

    def of_job(self, job_id: int) -> list[tuple[StepKey, Mailbox]]:
        """Return the steps of a job, and where their daemons receive."""
        return self._spool.of_job(job_id)

    def jobs(self) -> list[int]:
        """Return the jobs that have a step here."""
        return list(dict.fromkeys(job_id for job_id, _ in self._spool.sockets))

    def has_run(self, key: tuple[int, int]) -> bool:
        """Return whether a step of a run of a job, or of one before it, is here."""
        job_id, restart_cnt = key
        return bool(self._spool.sockets) and any(
            box.process.run_of_job <= restart_cnt for _, box in self.of_job(job_id)
        )

    def has_later_run(self, key: tuple[int, int]) -> bool:
        """Return whether a step is here of a run of a job after this one."""
        job_id, restart_cnt = key
        return bool(self._spool.sockets) and any(
            box.process.run_of_job > restart_cnt for _, box in self.of_job(job_id)
        )

    def listed(self) -> tuple[tuple[int, int, int], ...]:
        """Return the steps as a registration lists them: job, step, run of the job."""
        sockets = self._spool.sockets.items()
        return tuple((*key, socket.mailbox.process.run_of_job) for key, socket in sockets)

    def left(self) -> tuple[tuple[int, int], ...]:
        """Return the runs of jobs of which tasks are left without a step daemon."""
        left = self._spool.left.items()
        return tuple(dict.fromkeys((key[0], each.restart_cnt) for key, each in left))

    def fork(self, job_id: int, step_id: int, restart_cnt: int) -> Process:
        """Fork the daemon of a step; it does nothing before `run`."""
        step = step_name(job_id, step_id)
        stepd = self._slurmd.fork(
            daemon="slurmstepd", role="manager", fresh=True, apart=True, name=f"slurmstepd {step}"
        )
        stepd.job = job_id
        stepd.step = step
        stepd.run_of_job = restart_cnt
        mailbox = self._site.fabric.mailbox(stepd, f"stepd {step}@{self._slurmd.host.name}")
        self._spool.sockets[job_id, step_id] = Socket(mailbox)
        self._spool.begun[job_id, step_id] = None
        return stepd

    def run(
        self,
        stepd: Process,
        work: StepWork,
        srun: Mailbox | None,
        there: Callable[[int], None] | None = None,
    ) -> bool:
        """Let a daemon do its work; false if it is dead already.

        *there* is called once, with 0 when the daemon has set itself up, or with the errno of a
        launch whose daemon has died before.
        """
        job = work.job
        key = (job.job_id, job.step_id)
        spool = self._spool
        stepd.owner = job.uid
        if stepd.exited:
            return False
        socket = spool.sockets[key]
        daemon = StepDaemon(self._site, stepd, work, mailbox=socket.mailbox, srun=srun, there=there)
        socket.daemon = daemon
        unit = self._slurmd.unit

        async def body() -> None:
            await daemon.run()
            self._site.kernel.touch(unit)
            if spool.sockets.pop(key, None) is not None:
                spool.gone(job.job_id, stepd.cause)

        stepd.start(body)
        return True

    def signal_job(self, job_id: int, signals: tuple[int, ...], reason: str = "") -> None:
        """Have all steps of a job signalled, scripts with what they have started."""
        for (_, step_id), mailbox in self.of_job(job_id):
            for signal in signals:
                self._site.fabric.send(
                    self._slurmd,
                    mailbox,
                    RequestSignalTasks(
                        job_id=job_id,
                        step_id=step_id,
                        signal=signal,
                        container=True,
                        reason=reason,
                    ),
                    self._mailbox,
                )
