"""`simctl plugins check` of burst buffer plugins: they run as BurstBufferType of trial clusters."""

from typing import Any, ClassVar

import pytest

from simctl.plugin import (
    Buf,
    BurstBufferPlugin,
    JobDesc,
    JobRecord,
    SlurmError,
    errno,
    sleep,
    slurmctld,
    start,
)
from simctl.plugins import points
from simctl.plugins.burst_buffer.datawarp.plugin import BurstBufferDatawarp
from simctl.plugins.burst_buffer.generic.plugin import BurstBufferGeneric
from simctl.testing.plugin_check.check import check_plugin


@pytest.mark.parametrize("kind", [BurstBufferDatawarp, BurstBufferGeneric])
def test_the_bundled_plugins_are_fine_and_all_of_them_is_run(kind: type[Any]) -> None:
    """In both models each function is called by slurmctld, none by the check itself."""
    result = check_plugin(kind, "from a test")
    assert result.mistakes == ()
    for model, tallies in result.tallies.items():
        for point in points.BY_CLASS["burst_buffer"]:
            # test_post_run is called in model modern where an option asks for it.
            called = bool(point.places(model) or point.modern_often)
            assert bool(tallies[point.name].calls) == called, point.name
            assert tallies[point.name].directly == 0


class Named(BurstBufferPlugin):
    """What every plugin of these tests has."""

    plugin_name: ClassVar[str] = "a plugin of a test"


class NeverReady(Named):
    """Says for ever that data are on their way."""

    plugin_type: ClassVar[str] = "burst_buffer/never_ready"

    def bb_p_job_test_stage_in(self, job_ptr: JobRecord, test_only: bool) -> int:
        """Keep every job waiting."""
        return 0


class Slow(Named):
    """Stages in while slurmctld waits."""

    plugin_type: ClassVar[str] = "burst_buffer/slow"

    async def bb_p_job_try_stage_in(self) -> None:
        """Take as long as a stage takes."""
        await sleep(30)


class Garbage(Named):
    """Packs what nobody can read."""

    plugin_type: ClassVar[str] = "burst_buffer/garbage"

    def bb_p_state_pack(self, uid: int, buffer: Buf, protocol_version: int) -> None:
        """Pack a number."""
        buffer.pack32(7)


class Rewrites(Named):
    """Makes another job of a submission."""

    plugin_type: ClassVar[str] = "burst_buffer/rewrites"

    def bb_p_job_validate(self, job_desc: JobDesc, submit_uid: int) -> None:
        """Change what the user asked for."""
        object.__setattr__(job_desc, "name", "better")


class Interrupted(Named):
    """Has a thread that fails."""

    plugin_type: ClassVar[str] = "burst_buffer/interrupted"

    def bb_p_job_begin(self, job_ptr: JobRecord) -> None:
        """Start the thread."""
        start(self.thread, "mounts")

    async def thread(self) -> None:
        """Look for what is not there."""
        raise KeyError("buffer")


class Greedy(Named):
    """Locks in a function, which has the lock."""

    plugin_type: ClassVar[str] = "burst_buffer/greedy"

    async def bb_p_job_cancel(self, job_ptr: JobRecord) -> None:
        """Wait for itself."""
        async with slurmctld.locked():
            pass


class Refuses(Named):
    """Takes no job at all, so that no run comes further than its first function."""

    plugin_type: ClassVar[str] = "burst_buffer/refuses"

    def bb_p_job_validate(self, job_desc: JobDesc, submit_uid: int) -> None:
        """Refuse."""
        raise SlurmError(errno.ESLURM_BURST_BUFFER_PERMISSION)

    def bb_p_job_begin(self, job_ptr: JobRecord) -> Any:
        """Return what is no errno."""
        return "mounted"


class Held(Named):
    """Holds launches back that nobody releases."""

    plugin_type: ClassVar[str] = "burst_buffer/held"

    def bb_p_job_begin(self, job_ptr: JobRecord) -> None:
        """Hold."""
        slurmctld.hold_launch(job_ptr)


@pytest.mark.parametrize(
    ("kind", "function", "text"),
    [
        (NeverReady, "bb_p_job_test_stage_in", "waits for ever"),
        (Slow, "bb_p_job_try_stage_in", "held slurmctld for 30s"),
        (Garbage, "bb_p_state_pack", "BurstBufferInfo"),
        (Rewrites, "bb_p_job_validate", "changes job_desc"),
        (Interrupted, "thread", "KeyError"),
        (Greedy, "bb_p_job_cancel", "locked"),
        (Refuses, "bb_p_job_begin", "'mounted'"),
        (Held, "bb_p_job_begin", "stays CONFIGURING"),
    ],
)
def test_what_is_wrong_is_named(kind: type[Any], function: str, text: str) -> None:
    """Each by its function, or as the plugin's where jobs are left waiting."""
    result = check_plugin(kind, "from a test", models=("guide",))
    found = [(each.function, each.text) for each in result.mistakes]
    assert [each for each in found if function in each[0] and text in each[1]], found
