"""The step daemons of a node: forked, found, signalled."""

from collections.abc import Callable

from simctl.kernel.fabric import Mailbox
from simctl.kernel.procs import Process
from simctl.plugins.site import Site
from simctl.stepd.manager import StepDaemon
from simctl.stepd.work import StepWork
from simctl.wire.ids import step_name
from simctl.wire.messages import RequestSignalTasks

StepKey = tuple[int, int]
"""A step: the job id and the step id."""


class StepDaemons:
    """The step daemons that run on a node; `gone` is told of each that ends: job and cause."""

    def __init__(
        self, site: Site, slurmd: Process, mailbox: Mailbox, *, gone: Callable[[int, int], None]
    ) -> None:
        self._site = site
        self._slurmd = slurmd
        self._mailbox = mailbox
        self._gone = gone
        self._boxes: dict[StepKey, Mailbox] = {}
        self._runs: dict[StepKey, int] = {}

    def __contains__(self, key: StepKey) -> bool:
        """Tell whether a step runs here."""
        return key in self._boxes

    def find(self, job_id: int, step_id: int) -> Mailbox | None:
        """Return where the daemon of a step receives."""
        return self._boxes.get((job_id, step_id))

    def of_job(self, job_id: int) -> list[tuple[StepKey, Mailbox]]:
        """Return the steps of a job, and where their daemons receive."""
        return [item for item in self._boxes.items() if item[0][0] == job_id]

    def listed(self) -> tuple[tuple[int, int, int], ...]:
        """Return the steps as a registration lists them: job, step, run of the job."""
        return tuple((*key, self._runs[key]) for key in self._boxes)

    def fork(self, job_id: int, step_id: int, restart_cnt: int) -> Process:
        """Fork the daemon of a step; it does nothing before `run`."""
        step = step_name(job_id, step_id)
        stepd = self._slurmd.fork(
            daemon="slurmstepd", role="manager", fresh=True, apart=True, name=f"slurmstepd {step}"
        )
        stepd.job = job_id
        stepd.step = step
        stepd.run_of_job = restart_cnt
        self._boxes[job_id, step_id] = self._site.fabric.mailbox(
            stepd, f"stepd {step}@{self._slurmd.host.name}"
        )
        self._runs[job_id, step_id] = restart_cnt
        return stepd

    def run(self, stepd: Process, work: StepWork, srun: Mailbox | None) -> None:
        """Let a daemon do its work."""
        job = work.job
        key = (job.job_id, job.step_id)
        stepd.owner = job.uid
        daemon = StepDaemon(self._site, stepd, work, mailbox=self._boxes[key], srun=srun)

        async def body() -> None:
            await daemon.run()
            self._site.kernel.touch(self._slurmd.unit)
            del self._boxes[key]
            del self._runs[key]
            self._gone(job.job_id, stepd.cause)

        stepd.start(body)

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
