"""A job and its launch: prologs, the batch script, checkpoints, the epilog."""

from collections.abc import Iterable
from typing import Final

import attrs

from simctl.ctld.state.job.staged import StagedJob
from simctl.kernel.fabric import Mailbox
from simctl.plugins.hooks import Handle
from simctl.wire.buf import Packed
from simctl.wire.states import Reason

NOTHING_PACKED: Final = Packed()


@attrs.define(eq=False, kw_only=True)
class LaunchedJob(StagedJob):
    """What a job is that is launched, runs, and may run again from a checkpoint."""

    client: Mailbox | None
    """Where the srun waits that asked for the allocation."""

    restart_cnt: int = 0
    """How often it has gone back into the queue: the number of its present run."""

    uncounted_runs: int = 0
    """Those of them that are no restarts for users, since nothing of the job had run."""

    launch_failures: int = 0
    """How often in a row PrologSlurmctld has sent the job back into the queue."""

    prolog_slurmctld_runs: bool = False
    prologs_out: set[str] = attrs.field(factory=set)
    """Nodes that have yet to tell how the prolog of an allocation went (PrologFlags=Alloc)."""

    prologs_us: int = -1
    """When this slurmctld last told nodes to run it."""

    launched_us: int = -1
    """When its script was sent to its node; -1 while it could not be."""

    batch_start_us: int = -1
    """When its batch script was launched, while its end is not known."""

    unanswered_launches: int = 0
    """How often its launch was sent and never answered."""

    epilog_running: bool = False
    """EpilogSlurmctld has yet to end for the run that is over."""

    check_job: Handle
    packed_record: Packed = NOTHING_PACKED
    """What its checkpoint record was when it was packed last, to be saved."""

    ckpt_us: int = -1
    """When it was last checkpointed by itself."""

    ckpt_requeue_dir: str = ""
    """The images of the requeue that its checkpoint plugin was asked for, once that comes."""

    ckpt_preempted: bool = False
    """Its checkpoint plugin was asked to have it give way."""

    restart_dir: str = ""
    """Where the images are that it is launched from; empty for a plain start."""

    @property
    def restarts(self) -> int:
        """Return how often it has been restarted, as is shown of it."""
        return self.restart_cnt - self.uncounted_runs

    @property
    def ckpt_dir(self) -> str:
        """Return where images of it go that no request names another place for."""
        return self.desc.ckpt_dir or self.desc.work_dir

    def await_prologs(self, *, of_nodes: bool) -> None:
        """Be CONFIGURING: the time limit does not count until the prologs have ended."""
        self.watch_limit(None)
        self.prologs_out.clear()
        if of_nodes:
            self.reason = Reason.PROLOG

    def start_prolog(self) -> None:
        """Wait for PrologSlurmctld, which runs from now on."""
        self.prolog_slurmctld_runs = True

    def end_prolog(self) -> None:
        """Wait for PrologSlurmctld no more."""
        self.prolog_slurmctld_runs = False

    def ask_prologs(self, node_names: Iterable[str]) -> None:
        """Wait for the prologs of nodes."""
        self.prologs_out = set(node_names)

    def prolog_told(self, now_us: int) -> None:
        """Note that a node is told to run its prolog now."""
        self.prologs_us = now_us

    def end_prolog_on(self, node_name: str) -> None:
        """Wait for the prolog of a node no more."""
        self.prologs_out.remove(node_name)

    def fail_launch(self) -> int:
        """Count a launch that PrologSlurmctld has prevented; return how many that are in a row."""
        self.launch_failures += 1
        return self.launch_failures

    def end_prologs(self, now_us: int) -> None:
        """Be CONFIGURING no more: the job's time begins now."""
        self.reason = Reason.NONE
        self.launch_failures = 0
        self.start_us = now_us

    def launch(self, now_us: int) -> None:
        """Note that the batch script is on its way to its node."""
        self.batch_start_us = self.launched_us = now_us

    def launch_again(self, now_us: int) -> None:
        """Note that the launch, which could not be sent before, is on its way."""
        self.launched_us = now_us

    def launch_not_sent(self) -> None:
        """Note that the launch could not be sent: it is to be tried again."""
        self.launched_us = -1

    def launch_unanswered(self) -> int:
        """Count a launch that no node has answered; return how many that are."""
        self.unanswered_launches += 1
        return self.unanswered_launches

    def script_ended(self) -> None:
        """Note that the end of the batch script is known."""
        self.batch_start_us = -1

    def end_launch(self) -> None:
        """Let nothing of the launch, and no limit, matter any more: the run is over."""
        self.stop_timers()
        self.prolog_running = 0
        self.prolog_slurmctld_runs = False

    def start_epilog(self) -> None:
        """Wait for EpilogSlurmctld, which runs from now on."""
        self.epilog_running = True

    def end_epilog(self) -> None:
        """Wait for EpilogSlurmctld no more."""
        self.epilog_running = False

    def lose_client(self) -> None:
        """Forget the srun that asked for the allocation: it is done, or gone."""
        self.client = None

    def forget_run(self) -> None:
        """Be launched anew, as the next run."""
        super().forget_run()
        self.restart_cnt += 1
        self.launched_us = -1
        self.ckpt_requeue_dir = ""
        self.ckpt_preempted = False

    def count_no_restart(self) -> None:
        """Let the run that is over count as no restart: nothing of it was launched."""
        self.uncounted_runs += 1

    def resubmitted(self, runs: int, submit_host: str) -> None:
        """Be a new job under an old id: what nodes have left of it is told by the run's number."""
        self.submit_host = submit_host
        self.restart_cnt = self.uncounted_runs = runs

    def checkpointed(self, now_us: int) -> None:
        """Note that the job is checkpointed by itself now."""
        self.ckpt_us = now_us

    def restart_from(self, folder: str) -> None:
        """Be launched from the images in a folder from now on."""
        self.restart_dir = folder

    def requeue_from(self, folder: str) -> None:
        """Be launched from the images in a folder once the plugin has the job requeued."""
        self.ckpt_requeue_dir = folder

    def give_way_by_checkpoint(self, *, asked: bool) -> None:
        """Note whether the checkpoint plugin was asked to have the job give way."""
        self.ckpt_preempted = asked

    def keep_record(self, check_job: Handle) -> None:
        """Have another checkpoint record from now on."""
        self.check_job = check_job

    def pack(self, packed_record: Packed) -> None:
        """Keep what the checkpoint record is now, for the state files."""
        self.packed_record = packed_record
