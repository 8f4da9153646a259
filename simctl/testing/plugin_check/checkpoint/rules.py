"""What is true of any good checkpoint plugin."""

from typing import Final

from simctl.testing.plugin_check.mistakes import rule

SHARED_RECORD: Final = rule(
    "shares-record",
    rank=1,
    cost="two jobs or steps have one record: what is noted of one is told of the other, and in C "
    "the first that is freed takes the other's memory with it",
    remedy="make a new object in slurm_ckpt_alloc_job, and a copy of all that hangs on it in "
    "slurm_ckpt_copy_job",
)
COPY_DIFFERS: Final = rule(
    "copy-differs",
    rank=1,
    cost="whoever goes on with the copy, such as slurmctld for a job that is requeued, has other "
    "values than the record had",
    remedy="copy every field",
)
RECORD_LOST: Final = rule(
    "record-lost",
    rank=1,
    cost="after a restart of slurmctld the job's checkpoints are told as something else than they "
    "were",
    remedy="pack every field of the record and unpack it in the same order with the same widths",
)
NEVER_OVER: Final = rule(
    "checkpoint-never-ends",
    rank=2,
    cost="the job or step can never be checkpointed again: each request is answered with EALREADY",
    remedy="note the end of a checkpoint however it went: done, failed, timed out, and for one "
    "that a restart of slurmctld cut off when its record is unpacked",
)
NOTHING_MADE: Final = rule(
    "checkpoint-not-made",
    rank=2,
    cost="whoever asked believes that there is an image, and there is none when it is needed",
    remedy="start a thread that has the nodes save the tasks (`rpc.slurm_checkpoint_tasks`), or "
    "raise SlurmError(ESLURM_NOT_SUPPORTED)",
)
FAILURE_HIDDEN: Final = rule(
    "failure-hidden",
    rank=2,
    cost="`scontrol checkpoint error` says 0 though no image was written: it is missed only at the "
    "restart",
    remedy="let slurm_ckpt_signal_tasks fail where a helper failed, and keep the error of "
    "slurm_checkpoint_tasks in the record",
)
SUCCESS_FAILS: Final = rule(
    "false-error",
    rank=2,
    cost="`scontrol checkpoint error` tells of a failure though every image was written",
    remedy="note error 0 where every node has answered with success",
)
STILL_RUNS: Final = rule(
    "vacate-goes-on",
    rank=2,
    cost="the nodes are not given free: a preempted job runs on, and who waits for its nodes waits "
    "for ever",
    remedy="signal the step once it is saved: `await slurmctld.signal_step(job_id, step_id, 15)`",
)
NOT_REQUEUED: Final = rule(
    "requeue-goes-on",
    rank=2,
    cost="the job does not go back into the queue: who waits for its nodes waits for ever",
    remedy="`await slurmctld.requeue(job)` with the lock, once the script is saved",
)
NO_WAY_BACK: Final = rule(
    "restart-fails",
    rank=2,
    cost="what was computed until the checkpoint is lost: the task does not go on from its image",
    remedy="let slurm_ckpt_restart_task execute cr_restart.sh with the very path that "
    "slurm_ckpt_signal_tasks has written",
)
STARTS_ANEW: Final = rule(
    "restart-begins-anew",
    rank=2,
    cost="what was computed until the checkpoint is computed again",
    remedy="`await stepd.execve(cr_restart.sh, IMAGE)` in slurm_ckpt_restart_task",
)
SAME_IMAGE: Final = rule(
    "one-image-for-two",
    rank=1,
    cost="one task's image is written over another's: only one of them can be restarted",
    remedy="name images by the global rank (`task.gtid`), in the directory of the job or step",
)
DISABLED_GOES: Final = rule(
    "disable-ignored",
    rank=2,
    cost="who has disabled checkpoints of a job gets them all the same, at its worst moment",
    remedy="refuse with ESLURM_DISABLED in CREATE, VACATE and ABLE while the record says so",
)
STAYS_DISABLED: Final = rule(
    "enable-ignored",
    rank=2,
    cost="checkpoints that were disabled once stay so for the rest of the job",
    remedy="take DISABLE back in ENABLE, in the record of the same job or step",
)
NO_MOMENT: Final = rule(
    "event-no-moment",
    rank=1,
    cost="`scontrol checkpoint able` tells a time that is none, and reports are taken for another "
    "checkpoint's",
    remedy="use `slurmctld.time()`, seconds since the epoch; `now()` counts from the run's start",
)
KEPT: Final = rule(
    "kept-of-gone-jobs",
    rank=2,
    cost="slurmctld grows for as long as it runs",
    remedy="keep it in the record of the job or step, which ends with it, or drop it where the "
    "checkpoint is over",
)
