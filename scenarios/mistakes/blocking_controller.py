"""A mistake: a slow call inside the controller."""

from typing import ClassVar

from simctl.plugin import JobInfo, SwitchPlugin, sleep


class BlockingController(SwitchPlugin):
    """Ask a slow fabric manager while slurmctld builds a credential."""

    plugin_type: ClassVar[str] = "switch/blocking_controller"
    plugin_name: ClassVar[str] = "takes twenty seconds to build a credential"

    async def switch_p_build_jobinfo(
        self, switch_job: JobInfo, nodelist: str, nprocs: int, cyclic_alloc: int
    ) -> None:
        """Wait for an answer, with the controller's locks held."""
        await sleep(20)
