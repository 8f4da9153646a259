"""A job and its burst buffer: what its plugins answer, and what they say of it."""

from typing import Any

import attrs

from simctl.ctld.state.job.timed import TimedJob
from simctl.wire.states import Reason


@attrs.define(eq=False, kw_only=True)
class StagedJob(TimedJob):
    """What a job is whose data is staged in and out by burst buffer plugins."""

    burst_buffer: str = ""
    """What it asks for of burst buffers, as its plugins have read it."""

    bb_state: str = ""
    """The state of its burst buffer, as its plugin tells it."""

    bb_reason: str = ""
    """The reason a plugin gave, for as long as it holds the job."""

    bb_answer: int = 1
    """What test_stage_in said of it last."""

    state_desc: str = ""
    """What is shown in place of the reason."""

    system_comment: str = ""
    admin_comment: str = ""
    expected_us: int = -1
    """While it waits for its burst buffer, when it is expected to start."""

    prolog_running: int = 0
    """How many things of burst buffer plugins its launch waits for."""

    staged_out: bool = False
    """Its stage-out is over, and jobs that depend on that were told so."""

    stage_out_due: bool = False
    """Its stage-out is to start once the epilogs are over."""

    stage_out_over: bool = False
    """The stage-out ended while nodes had yet to let go of the job."""

    pre_run_status: int = 0
    """What its burst buffer failed with before it was launched: its exit code until it runs."""

    hurry: bool = False
    """The client that cancelled it wants nothing staged out."""

    env_sup: dict[str, str] = attrs.field(factory=dict)
    """Variables that plugins put into its environment."""

    tres: dict[str, int] = attrs.field(factory=dict)
    """What it takes of burst buffers: MB by TRES name, such as ``bb/generic``."""

    tres_req: dict[str, int] = attrs.field(factory=dict)
    """What it asked for of them."""

    view: Any = None
    """What plugins see of it."""

    def buffer_answers(self, answer: int) -> None:
        """Take what test_stage_in says of the job."""
        self.bb_answer = answer

    def waits_for_buffer(self) -> None:
        """Wait for the burst buffer, as its last answer says: for data, or for space.

        While an operation of its plugin has failed, that stays the reason.
        """
        staging = self.bb_answer == 0
        if not staging and self.bb_reason == Reason.BURST_BUFFER_OPERATION:
            return
        self.state_desc = self.bb_reason = ""
        self.waits_for(Reason.BURST_BUFFER_STAGE_IN if staging else Reason.BURST_BUFFER_RESOURCES)

    def expect(self, start_us: int) -> None:
        """Note when the job, which waits for its burst buffer, is expected to start."""
        self.expected_us = start_us

    def claim_buffer(self) -> None:
        """Forget what a plugin has said of the job: its burst buffer is claimed now."""
        self.state_desc = self.bb_reason = ""

    def clean_up(self) -> None:
        """Show that the job is taken for being cleaned up, once its claim was revoked."""
        self.reason = Reason.CLEANING

    def asks_of_buffers(self, tres: dict[str, int]) -> None:
        """Take what the job asks for of burst buffers."""
        self.tres_req = tres

    def takes_of_buffers(self, tres: dict[str, int]) -> None:
        """Take what the job has of burst buffers."""
        self.tres = tres

    def hold_launch(self) -> None:
        """Wait for one thing more of a burst buffer plugin before the launch."""
        self.prolog_running += 1

    def release_launch(self) -> None:
        """Wait for one thing less of a burst buffer plugin before the launch."""
        self.prolog_running -= 1

    def drop_launch_holds(self) -> None:
        """Wait for nothing of burst buffer plugins: those that held the launch have restarted."""
        self.prolog_running = 0

    def fail_pre_run(self, text: str, status: int) -> None:
        """Note what the burst buffer failed with before the launch."""
        self.state_desc = text
        self.exit_code = self.pre_run_status = status

    def forget_run(self) -> None:
        """Have nothing of burst buffers; what a launch was prevented with is the exit code."""
        super().forget_run()
        self.expected_us = -1
        self.tres, self.env_sup = {}, {}
        self.exit_code, self.pre_run_status = self.pre_run_status, 0

    def end_buffer_run(self, *, stage_out_due: bool) -> None:
        """Let the burst buffer's part in the run be over, but for a stage-out that is due later."""
        self.expected_us = -1
        self.stage_out_due = stage_out_due

    def start_late_stage_out(self) -> None:
        """Note that the stage-out starts that was due once the epilogs are over."""
        self.stage_out_due = False

    def stage_out_goes_on(self) -> None:
        """Forget that the stage-out has ended before the nodes had let go."""
        self.stage_out_over = False

    def end_stage_out_early(self) -> None:
        """Note that the stage-out has ended while nodes have yet to let go."""
        self.stage_out_over = True

    def end_stage_out(self) -> None:
        """Note that the stage-out is over, and jobs that wait for that are told."""
        self.staged_out = True

    def view_as(self, view: Any) -> None:
        """Be shown to plugins as *view* from now on."""
        self.view = view

    def plugin_gives_reason(self, reason: str) -> None:
        """Take the reason that a plugin gives for what the job waits for."""
        self.bb_reason = "" if reason == Reason.NONE else reason
        self.reason = reason

    def plugin_describes(self, text: str) -> None:
        """Take what a plugin wants to be shown in place of the reason."""
        self.state_desc = text

    def plugin_holds(self) -> None:
        """Show what a plugin says of the job as the reason why it is held."""
        self.hold_text = self.state_desc or self.bb_reason

    def plugin_comments(self, text: str, *, admin: bool = False) -> None:
        """Take a plugin's comment, for administrators or for all."""
        if admin:
            self.admin_comment = text
        else:
            self.system_comment = text

    def buffer_is(self, state: str) -> None:
        """Take the state of the burst buffer, as its plugin tells it."""
        self.bb_state = state

    def ask_buffer(self, text: str) -> None:
        """Take what the job asks for of burst buffers, as its plugins read it."""
        self.burst_buffer = text

    def plugin_adds(self, env_sup: dict[str, str]) -> None:
        """Take the variables that a plugin puts into the job's environment."""
        self.env_sup = env_sup
