"""The burst buffer plugins of slurmctld: every call goes to all of them, and one result comes back.

BurstBufferType may name several plugins. They are asked in its order; how their answers make one
differs from function to function. One mutex holds all calls apart: slurmctld's handlers run one at
a time, and so do these.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from simctl.ctld.port.port import Port
from simctl.ctld.state.records import JobRecord
from simctl.plugin import JobRecord as JobPtr
from simctl.plugins.hooks import NOTHING, About
from simctl.plugins.points.burst_buffer import (
    bb_p_get_status,
    bb_p_get_system_size,
    bb_p_job_begin,
    bb_p_job_cancel,
    bb_p_job_get_est_start,
    bb_p_job_revoke_alloc,
    bb_p_job_set_tres_cnt,
    bb_p_job_start_stage_out,
    bb_p_job_test_post_run,
    bb_p_job_test_stage_in,
    bb_p_job_test_stage_out,
    bb_p_job_try_stage_in,
    bb_p_job_validate,
    bb_p_job_validate2,
    bb_p_load_state,
    bb_p_reconfig,
    bb_p_state_pack,
    bb_p_xlate_bb_2_tres_str,
)
from simctl.plugins.points.declare import Point
from simctl.wire.buf import Buf
from simctl.wire.errno import SLURM_ERROR, SLURM_SUCCESS
from simctl.wire.ids import SECOND
from simctl.wire.records import JobDesc

DONE: Final = 1
"""What the three-valued functions return when nothing is left to wait for."""

FIRST_TRES: Final = 1001
"""The number of the first TRES that Slurm does not know by itself."""

_LONGEST_WORD: Final = 40
_MOST_MB: Final = (1 << 63) - 1

_PROTOCOL_VERSION: Final = 18 << 8 | 8


class BurstBuffers:
    """What slurmctld calls: one function for each of the guide's."""

    def __init__(
        self,
        port: Port,
        types: tuple[str, ...],
        *,
        views: Callable[[JobRecord], JobPtr],
        heard: Callable[[int], int],
    ) -> None:
        self._port = port
        self._views = views
        self._heard = heard
        self.types = types
        self.sizes: dict[str, int] = {}
        """MB of each plugin, by its TRES name."""
        self.why = ""
        """What the plugin said that refused last."""
        self.total_mb = 0
        self.waiting_in_pass = 0
        """How many jobs the present pass left waiting for their burst buffers."""
        self.owed: list[JobRecord] = []
        """Jobs that ended while they waited, and of which the plugins have yet to hear."""
        self.gated: dict[int, JobRecord] = {}
        """Jobs that stay COMPLETING until test_post_run lets them go."""
        self.kept: dict[int, JobRecord] = {}
        """Jobs old enough to be purged that test_stage_out keeps."""
        self.claiming: JobRecord | None = None
        """The job whose burst buffer is claimed at this moment, on its way from queue to nodes."""
        self.moved: list[JobRecord] = []
        """Jobs in the queue to which a plugin has given another priority."""
        self._loaded = False
        self.is_awaited = False
        """Whether jobs wait for others' stage-out (afterburstbuffer)."""

    @property
    def tres_names(self) -> tuple[str, ...]:
        """Return the trackable resources that the plugins stand for."""
        return tuple(tres_name(plugin_type) for plugin_type in self.types)

    async def load(self) -> str:
        """Load every plugin that is not loaded yet; return what is fatal, or nothing."""
        hooks, who = self._port.site.hooks, self._port.process
        loaded, self._loaded = self._loaded, True
        for plugin_type in () if loaded else self.types:
            if not await hooks.load(who, "burst_buffer", plugin_type=plugin_type):
                return f"failed to initialize burst_buffer plugin {plugin_type}"
        return ""

    async def unload(self) -> None:
        """Have every plugin run its fini."""
        for plugin_type in self.types:
            await self._port.site.hooks.unload(
                self._port.process, "burst_buffer", plugin_type=plugin_type
            )

    async def _ask(self, point: Point, *arguments: Any, about: About = NOTHING) -> list[Any]:
        """Call a function of every plugin; return what each returned."""
        hooks, who = self._port.site.hooks, self._port.process
        self.why = ""
        results = []
        for plugin_type in self.types:
            who.why = ""
            result = await hooks.call(point, who, *arguments, about=about, plugin_type=plugin_type)
            results.append(result)
            self.why = self.why or who.why
        return results

    async def _ask_of(self, point: Point, job: JobRecord, *arguments: Any) -> list[Any]:
        return await self._ask(point, self._views(job), *arguments, about=job.about)

    # The state as a whole.

    async def load_state(self, *, init_config: bool) -> int:
        """Have the plugins load their state, as slurmctld starts or before it schedules."""
        return _worst(await self._ask(bb_p_load_state, init_config))

    async def reconfig(self) -> int:
        """Have the plugins read their configuration again."""
        return _worst(await self._ask(bb_p_reconfig))

    async def state_pack(self, uid: int) -> tuple[int, list[bytes]]:
        """Return an error number, and what each plugin shows a user of its state."""
        packed = []
        worst = SLURM_SUCCESS
        for plugin_type in self.types:
            buffer = Buf()
            rc = await self._port.site.hooks.call(
                bb_p_state_pack,
                self._port.process,
                uid,
                buffer,
                _PROTOCOL_VERSION,
                plugin_type=plugin_type,
            )
            worst = _worst([worst, rc])
            if buffer.size:
                packed.append(buffer.data())
        return worst, packed

    async def status(self, argv: tuple[str, ...], uid: int, gid: int) -> tuple[int, str]:
        """Return an error number, and what the plugins that have something to say tell a user."""
        hooks, who = self._port.site.hooks, self._port.process
        texts = []
        worst = SLURM_SUCCESS
        for plugin_type in self.types:
            if hooks.has(who, bb_p_get_status, plugin_type):
                told = await hooks.call(
                    bb_p_get_status, who, argv, uid, gid, plugin_type=plugin_type
                )
                if isinstance(told, str):
                    texts.append(told)
                elif told is not None:
                    worst = who.errno or SLURM_ERROR
        return worst, "".join(texts)

    async def measure(self) -> None:
        """Find the sizes of all plugins, for the table of trackable resources."""
        hooks, who = self._port.site.hooks, self._port.process
        for plugin_type in self.types:
            name = plugin_type.partition("/")[2]
            size = await hooks.call(bb_p_get_system_size, who, name, plugin_type=plugin_type)
            self.sizes[tres_name(plugin_type)] = max(0, size)

    async def system_size(self) -> int:
        """Return the MB of all plugins together."""
        return sum(max(0, size) for size in await self._ask(bb_p_get_system_size, None))

    async def xlate_bb_2_tres_str(self, burst_buffer: str) -> str:
        """Return the TRES text of what a reservation asks for."""
        texts = await self._ask(bb_p_xlate_bb_2_tres_str, burst_buffer)
        return ",".join(text for text in texts if isinstance(text, str) and text)

    def sizes_in(self, text: str) -> dict[str, int]:
        """Read what such a text holds: MB by TRES name; what is none of ours is left out."""
        found: dict[str, int] = {}
        for word in text.split(","):
            number, _, size = word.partition("=")
            if number.isdecimal() and size.isdecimal() and len(word) < _LONGEST_WORD:
                place = int(number) - FIRST_TRES
                if 0 <= place < len(self.types):
                    found[self.tres_names[place]] = int(size)
        return found

    # A job, from its submission on.

    async def validate(self, desc: JobDesc, uid: int) -> int:
        """Check a submission; a plugin may enter what it has read of the request."""
        return _worst(await self._ask(bb_p_job_validate, desc, uid))

    async def validate2(self, job: JobRecord) -> int:
        """Check a new job."""
        return _worst(await self._ask_of(bb_p_job_validate2, job))

    async def set_tres_cnt(self, job: JobRecord, *, locked: bool) -> dict[str, int]:
        """Return how many MB a job takes of each plugin, by TRES name."""
        counts: dict[str, int] = {}
        await self._ask_of(bb_p_job_set_tres_cnt, job, counts, locked)
        good = {name: size for name, size in counts.items() if _is_count(name, size)}
        if len(good) < len(counts):
            self._port.site.trace.complain(
                self._port.process,
                bb_p_job_set_tres_cnt.name,
                "left something in tres_cnt that is no number of MB by the name of a TRES",
            )
        return good

    async def est_start_us(self, job: JobRecord) -> int:
        """Return when a job could start as far as its burst buffer tells, now at the earliest."""
        found = await self._ask_of(bb_p_job_get_est_start, job)
        zero_s = self._port.site.start_time_s
        return max(self._port.now_us, *(int(each - zero_s) * SECOND for each in found))

    async def try_stage_in(self) -> int:
        """Have burst buffers given to the jobs that are expected to start soonest."""
        return _worst(await self._ask(bb_p_job_try_stage_in))

    async def test_stage_in(self, job: JobRecord, *, test_only: bool) -> int:
        """Return whether a job may start: 1; while it is staged in 0, else -1."""
        answer = _least(await self._ask_of(bb_p_job_test_stage_in, job, test_only))
        job.buffer_answers(answer)
        return self._heard(answer)

    async def begin(self, job: JobRecord) -> int:
        """Claim the burst buffer of a job that is about to run."""
        self.claiming = job
        try:
            return _last_bad(await self._ask_of(bb_p_job_begin, job))
        finally:
            self.claiming = None

    async def revoke_alloc(self, job: JobRecord) -> int:
        """Take `begin` back."""
        return _last_bad(await self._ask_of(bb_p_job_revoke_alloc, job))

    async def start_stage_out(self, job: JobRecord) -> int:
        """Start the stage-out of a job that has run."""
        return _worst(await self._ask_of(bb_p_job_start_stage_out, job))

    async def test_post_run(self, job: JobRecord) -> int:
        """Return whether what follows a run is over; without a burst buffer no plugin is asked."""
        if not job.burst_buffer:
            return DONE
        return self._heard(_least(await self._ask_of(bb_p_job_test_post_run, job)))

    async def test_stage_out(self, job: JobRecord) -> int:
        """Return whether the stage-out is over; jobs without burst buffer are not asked about."""
        if not job.burst_buffer:
            return DONE
        return self._heard(_least(await self._ask_of(bb_p_job_test_stage_out, job)))

    async def cancel(self, job: JobRecord) -> int:
        """End any staging of a job, and have its space back."""
        return _worst(await self._ask_of(bb_p_job_cancel, job))


def tres_name(plugin_type: str) -> str:
    """Return the trackable resource that a plugin's space is: ``bb/generic``."""
    return f"bb/{plugin_type.partition('/')[2]}"


def _is_count(name: Any, size: Any) -> bool:
    """Return whether that is how much there is of a TRES."""
    named = isinstance(name, str) and name.isascii()
    return named and isinstance(size, int) and 0 <= size <= _MOST_MB


def _worst(results: Iterable[int]) -> int:
    """Return the greatest error number; SLURM_ERROR if nothing worse was said."""
    found = list(results)
    worst = max(found, default=SLURM_SUCCESS)
    return worst if worst > 0 or not any(found) else SLURM_ERROR


def _least(results: Iterable[int]) -> int:
    return min(results, default=DONE)


def _last_bad(results: Iterable[int]) -> int:
    bad = [each for each in results if each]
    return bad[-1] if bad else SLURM_SUCCESS
