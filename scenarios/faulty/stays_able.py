"""A fault: an operation that is answered and not remembered."""

from typing import ClassVar

from simctl.plugin import CheckOp, CheckpointPlugin, CheckpointStatus, SlurmError, StepRecord, errno


class StaysAble(CheckpointPlugin):
    """Take checkpoints of anything at any time; nobody can forbid it."""

    plugin_type: ClassVar[str] = "checkpoint/stays_able"
    plugin_name: ClassVar[str] = "says yes to disable, and forgets it"

    def __init__(self) -> None:
        """Start able."""
        self.disabled = False

    def slurm_ckpt_op(
        self,
        job_id: int,
        step_id: int,
        step_ptr: StepRecord | None,
        op: int,
        data: int,
        image_dir: str,
    ) -> CheckpointStatus | None:
        """Answer; what `disable` should have set is set in a name of its own."""
        if op == CheckOp.DISABLE:
            disabled = True
            return CheckpointStatus(error_msg=f"disabled: {disabled}")
        if op == CheckOp.ENABLE:
            self.disabled = False
        elif self.disabled:
            raise SlurmError(errno.ESLURM_DISABLED)
        return None
