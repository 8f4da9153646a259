"""A mistake: a privileged act in job_fini."""

from typing import ClassVar

from simctl.plugin import JobInfo, SlurmError, SwitchPlugin, disk, errno

LOCK = "/run/fabric.lock"


class PrivilegedFini(SwitchPlugin):
    """Take a lock of root's in job_init; give it back in job_fini, which is not root any more."""

    plugin_type: ClassVar[str] = "switch/privileged_fini"
    plugin_name: ClassVar[str] = "removes root's file as the user"

    def switch_p_job_init(self, switch_job: JobInfo, uid: int) -> None:
        """Take the lock, as root."""
        if disk().exists(LOCK):
            raise SlurmError(errno.EBUSY)
        disk().write(LOCK, f"{uid}\n")

    def switch_p_job_fini(self, switch_job: JobInfo) -> None:
        """Give the lock back: in model guide the process has become the job's owner by now."""
        try:
            disk().remove(LOCK)
        except PermissionError:
            raise SlurmError(errno.EACCES) from None
