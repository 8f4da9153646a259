"""A switch plugin that shows what a fork copies, for own_plugin.yaml."""

from typing import ClassVar

from simctl.plugin import Buf, SwitchPlugin, process, sleep


class CountingSwitch(SwitchPlugin):
    """Number its calls in each process's own memory, and put the number where one can see it."""

    plugin_type: ClassVar[str] = "switch/counting"
    plugin_name: ClassVar[str] = "counts what this process and those before the fork called"

    def __init__(self) -> None:
        """Start with nothing counted."""
        self.calls: list[str] = []

    def switch_p_alloc_jobinfo(self) -> dict[str, int]:
        """Return a credential: a key that nobody has chosen yet."""
        return {"key": 0}

    def switch_p_build_jobinfo(
        self, switch_job: dict[str, int], nodelist: str, nprocs: int, cyclic_alloc: int
    ) -> None:
        """Choose the key."""
        switch_job["key"] = 4000 + nprocs

    def switch_p_copy_jobinfo(self, switch_job: dict[str, int]) -> dict[str, int]:
        """Return a copy."""
        return dict(switch_job)

    def switch_p_pack_jobinfo(self, switch_job: dict[str, int], buffer: Buf) -> int:
        """Pack the key."""
        buffer.pack32(switch_job["key"])
        return 4

    def switch_p_unpack_jobinfo(self, switch_job: dict[str, int], buffer: Buf) -> None:
        """Unpack the key."""
        switch_job["key"] = buffer.unpack32()

    def switch_p_job_preinit(self, switch_job: dict[str, int]) -> None:
        """Count, in the job manager, before the fork."""
        self.calls.append("preinit")

    async def switch_p_job_init(self, switch_job: dict[str, int], uid: int) -> None:
        """Count, in the session manager, and take two seconds of simulated time."""
        self.calls.append("init")
        await sleep(2)

    def switch_p_job_attach(
        self,
        switch_job: dict[str, int],
        env: dict[str, str],
        nodeid: int,
        procid: int,
        nnodes: int,
        nprocs: int,
        rank: int,
    ) -> None:
        """Count, in the task, and tell the program what was counted."""
        self.calls.append("attach")
        env["COUNTED"] = "+".join(self.calls)
        env["KEY"] = f"{switch_job['key']} on {process().hostname}"

    def switch_p_job_fini(self, switch_job: dict[str, int]) -> int:
        """Return how much the session manager has counted: 2, for the task's count is its own."""
        return len(self.calls)

    def switch_p_job_postfini(
        self, switch_job: dict[str, int], pgid: int, job_id: int, step_id: int
    ) -> int:
        """Return how much the job manager has counted: 1, for init ran in a fork of it."""
        return len(self.calls)
