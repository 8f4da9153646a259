"""A checker of runs with burst buffers: it looks at every event as it happens, and at the end."""

import re
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.appliance.store import Buffer
from simctl.ctld.choose import dependencies
from simctl.ctld.jobs import eligible
from simctl.kernel.events import Event
from simctl.orderings.checking import tell
from simctl.wire.ids import SECOND
from simctl.wire.states import JobBase
from simctl.world import RunResult, World

GIB: Final = 1 << 30
MOST_JOBS: Final = 40
CANCEL_S: Final = 4000
"""When whatever is left is cancelled."""


@attrs.define(eq=False)
class Checker:
    """Looks at every event of a run as it happens, and at the end at all of them."""

    world: World
    plugin: str
    problems: list[str] = attrs.field(factory=list)
    filled: set[int] = attrs.field(factory=set)
    """Jobs whose stage-in is over."""

    mounted: set[int] = attrs.field(factory=set)
    """Jobs whose last pre_run was good."""

    ran: set[int] = attrs.field(factory=set)
    """Jobs that were launched and whose buffers are full of what they wrote."""

    given_up: set[int] = attrs.field(factory=set)
    """Jobs whose buffers a site's script was to drop, and has not."""

    named: set[str] = attrs.field(factory=set)
    """Persistent buffers that were made and not destroyed."""

    unclear: set[str] = attrs.field(factory=set)
    """Persistent buffers whose making or destroying was cut short."""

    restarts: int = 0
    late: bool = False
    """Whether the time has come at which whatever is left is cancelled."""

    @property
    def events(self) -> list[Event]:
        """Return all events so far."""
        return self.world.events

    def see(self, event: Event) -> None:
        """Check one event."""
        self.events.append(event)
        if len(self.events) > 400_000:
            raise AssertionError("the run does not end")
        if event.kind == "script":
            self._may_go(event)
        if event.time_us >= CANCEL_S * SECOND and not self.late:
            self.late = True
            self._nobody_starves(event)
        if event.phase == "enter":
            return
        self._space()
        self._keeps_what_is_written(event)
        if event.kind == "state" and event.name == "bb_state":
            self._state(event)
        elif event.kind == "script":
            self._script(event)
        elif event.kind == "message" and event.phase == "send":
            self._message(event)
        elif event.kind == "plugin":
            self._call(event)
        elif event.kind == "log" and event.name == "plugin_error":
            self._wrong(event, f"a plugin's mistake: {event.args}")

    def _call(self, event: Event) -> None:
        modern = self.world.ctld.site.model == "modern"
        if event.name == "bb_p_load_state" and _args(event).get("init_config"):
            self.restarts += 1
            if modern:
                # What was to be staged out is lost to real Slurm.
                self.ran.clear()
        elif event.name == "bb_p_job_begin" and event.rc and modern:
            # As a job is claimed anew after a restart; elsewhere it does not run.
            self.mounted.add(_job(event))
        elif event.name == "bb_p_job_cancel":
            self.ran.discard(_job(event))

    def _wrong(self, event: Event | None, text: str) -> None:
        where = "at the end" if event is None else f"{event.time_us / 1e6} s, seq {event.seq}"
        self.problems.append(f"{where}: {text}")

    def _space(self) -> None:
        buffers = self._buffers()
        for pool in self.world.site.appliance.store.pools.values():
            given = sum(each.size for each in buffers if each.pool == pool.name)
            if not given == pool.used <= pool.capacity:
                self._wrong(self.events[-1], f"{pool.name}: {given} {pool.used} of {pool.capacity}")

    def _buffers(self) -> list[Buffer]:
        appliance = self.world.site.appliance
        stores = (appliance.store, appliance.generic_store)
        return [buffer for store in stores for buffer in store.buffers.values()]

    def _nobody_starves(self, event: Event) -> None:
        """Check that nobody still waits for space that is free, long after all was put right."""
        store, ctld = self.world.site.appliance.store, self.world.ctld
        waits = [job.bb_state for job in ctld.jobs.values()]
        if ctld.site.model == "modern" or "STAGING_IN" in waits or "STAGING_OUT" in waits:
            # There, and where a script failed that nobody waits for, space may be kept for long.
            return
        for job in ctld.jobs.values():
            # What makes, uses or destroys persistent buffers may wait for others for ever.
            simple = "persistent" not in job.burst_buffer and "swap" not in job.burst_buffer
            if not (job.queued and simple and job.bb_answer != 1):
                continue
            asked = re.search(r"(?:size|capacity)=(\d+)G", job.burst_buffer)
            named = re.search(r"pool=(\w+)", job.burst_buffer)
            pools = [store.pools[named[1]]] if named else list(store.pools.values())[:1]
            if asked and pools[0].rounded(int(asked[1]) * GIB) <= pools[0].free:
                self._wrong(event, f"job {job.job_id} waits for space: {job.reason}")

    def _state(self, event: Event) -> None:
        if event.job is UNSET:
            return
        after = _args(event)["to"]
        if after == "STAGING_IN":
            self.filled.discard(_job(event))
            self.mounted.discard(_job(event))
            self.ran.discard(_job(event))
            self._may_stage(event)
        elif after == "STAGED_IN":
            self.filled.add(_job(event))

    def _may_stage(self, event: Event) -> None:
        """Check that a job whose data are moved could run, if only they were there."""
        ctld = self.world.ctld
        job = ctld.jobs[_job(event)]
        taken_over = self.plugin != "datawarp" and _args(event)["from"] is None
        waits = job.state.base is JobBase.PENDING
        why = eligible.obstacle(ctld, job, dependencies.verdict(ctld, job, ctld.now_us))
        if (not waits or why) and not taken_over:
            self._wrong(event, f"job {event.job} is staged in: {job.state} {why}")

    def _script(self, event: Event) -> None:
        good = event.rc == 0
        job = _job(event)
        if event.name in ("dw_create_persistent", "dw_teardown"):
            argv = _args(event)["argv"]
            token = argv[argv.index("-t" if "create" in event.name else "--token") + 1]
            if not token.isdecimal():
                self._named(event, token, good=good)
        elif event.name == "dw_pre_run" and good:
            self.mounted.add(job)
        elif event.name == "dw_post_run" and not good:
            # Its stage-out is given up.
            self.ran.discard(job)
        elif event.name in ("stop_stage_in", "stop_stage_out") and good:
            self.given_up.discard(job)

    def _may_go(self, event: Event) -> None:
        """Note that a job's data leave its buffer, by the script that does it."""
        if event.name in ("dw_data_out", "start_stage_out", "stop_stage_out"):
            self.ran.discard(_job(event))
        if event.name in ("stop_stage_in", "stop_stage_out") and event.phase == "enter":
            self.given_up.add(_job(event))

    def _keeps_what_is_written(self, event: Event) -> None:
        """Check that the buffers of jobs that were launched are there until they are emptied."""
        if self.ran:
            there = {each.token for each in self._buffers() if each.size}
            for job in sorted(self.ran - {int(each) for each in there if each.isdecimal()}):
                self._wrong(event, f"job {job}: its buffer went before it was staged out")
                self.ran.discard(job)

    def _named(self, event: Event, name: str, *, good: bool) -> None:
        made = event.name == "dw_create_persistent"
        if not good:
            self.unclear.add(name)
        elif made:
            self.named.add(name)
        else:
            self.named.discard(name)
            self.unclear.discard(name)

    def _message(self, event: Event) -> None:
        if event.name == "RESPONSE_JOB_STEP_CREATE" and event.rc in (0, UNSET):
            self._may_run(event)
        elif event.name == "REQUEST_BATCH_JOB_LAUNCH":
            self._may_run(event)
            if any(each.token == str(event.job) and each.size for each in self._buffers()):
                self.ran.add(_job(event))

    def _may_run(self, event: Event) -> None:
        """Check that a job's buffer is filled and mounted when something of it is launched."""
        job = self.world.ctld.jobs.get(_job(event))
        if job is None or not self.wants(job.burst_buffer):
            return
        if job.state.configuring or job.job_id not in self.filled:
            self._wrong(event, f"job {job.job_id} runs: {job.state}, filled {self.filled}")
        mounts = self.plugin != "generic" and self._mounts(job.burst_buffer)
        if mounts and job.job_id not in self.mounted:
            self._wrong(event, f"job {job.job_id} runs and its buffer is not mounted")

    def wants(self, burst_buffer: str) -> bool:
        """Return whether a job asks the plugin for anything."""
        return bool(burst_buffer)

    @staticmethod
    def _mounts(burst_buffer: str) -> bool:
        return re.search(r"#DW +(jobdw|persistentdw|swap)", burst_buffer) is not None

    # The end.

    def at_the_end(self, result: RunResult) -> None:
        """Check what is left."""
        if result.stalled:
            self._wrong(None, f"stalled: {result.stalled}")
        if result.complaints:
            self._wrong(None, f"complaints: {result.complaints}")
        if result.fatalities:
            self._wrong(None, f"fatal: {result.fatalities}")
        self._left(result)
        self._books(result)
        if result.orderings.skipped:
            self._wrong(None, f"orderings: {result.orderings.skipped}")
        self.problems += ["\n".join(tell(each)) for each in result.orderings.broken]

    def _left(self, result: RunResult) -> None:
        """Check that all jobs are gone, with their buffers, or that it is known why not."""
        ctld = self.world.ctld
        modern = result.model == "modern"
        for job in ctld.jobs.values():
            # Real Slurm keeps a job that was cancelled while its data came in.
            kept = ctld.bb is not None and job.job_id in ctld.bb.kept
            if not (modern and kept):
                self._wrong(None, f"job {job.job_id} is left: {job.state} {job.bb_state}")
        names = {each.token for each in self._buffers() if not each.token.isdecimal()}
        if (names ^ self.named) - self.unclear:
            self._wrong(None, f"named: {names}, made {self.named}, unclear {self.unclear}")
        for buffer in self._buffers():
            lost = buffer.token.isdecimal() and buffer.size and int(buffer.token)
            if lost and lost not in self.given_up and not (modern and self.restarts > 1):
                self._wrong(None, f"space is lost: {buffer}")

    def _books(self, result: RunResult) -> None:
        """Check that slurmctld's books are what there is."""
        shown = next(
            command.stdout
            for command in reversed(result.commands)
            if command.command == "scontrol show burst"
        )
        entries = re.findall(r"^    (?:JobID|Name)=(\S+) .*?Size=(\S+) ", shown, re.MULTILINE)
        books = {token: _bytes(size) for token, size in entries if _bytes(size)}
        there = {each.token: each.size for each in self._buffers() if each.size}
        known = {str(job) for job in self.given_up} | self.unclear
        if {each for each in books.items() ^ there.items() if each[0] not in known}:
            self._wrong(None, f"books {books}, store {there}")


def _args(event: Event) -> dict[str, Any]:
    return {} if event.args is UNSET else event.args


def _job(event: Event) -> int:
    return event.job if isinstance(event.job, int) else 0


def _bytes(text: str) -> int:
    number = re.match(r"\d+", text)
    assert number is not None
    units = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": GIB, "TiB": GIB << 10}
    thousands = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    return int(number[0]) * (units | thousands)[text[number.end() :]]
