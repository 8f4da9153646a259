"""A fault: what is checked in one call is taken in another, and others come between."""

from typing import ClassVar

from simctl.plugin import JobInfo, SlurmError, SwitchPlugin, disk, errno


class WindowRace(SwitchPlugin):
    """Give each step on a node a window of its own: a directory on that node."""

    plugin_type: ClassVar[str] = "switch/window_race"
    plugin_name: ClassVar[str] = "looks for a free window in preinit and takes it in init"

    def __init__(self) -> None:
        """Start without a window."""
        self.window = ""

    def switch_p_job_preinit(self, switch_job: JobInfo) -> None:
        """Look for the first free window: another step may do so as well before it is taken."""
        number = 0
        while disk().exists(f"/run/window.{number}"):
            number += 1
        self.window = f"/run/window.{number}"

    def switch_p_job_init(self, switch_job: JobInfo, uid: int) -> None:
        """Take the window that preinit found, in a fork that knows which that was."""
        try:
            disk().mkdir(self.window)
        except FileExistsError:
            raise SlurmError(errno.EBUSY) from None

    def switch_p_job_postfini(
        self, switch_job: JobInfo, pgid: int, job_id: int, step_id: int
    ) -> None:
        """Give the window back."""
        if disk().exists(self.window):
            disk().remove(self.window)
