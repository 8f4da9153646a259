"""Rules about what plugins manage: contexts, windows, buffers. All of it is free again."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from simctl.appliance.store import Buffer
from simctl.kernel.events import Event
from simctl.plugins.switch import records
from simctl.plugins.switch.elan import SwitchElan
from simctl.plugins.switch.fed_records import LIBSTATE as FED_LIBSTATE
from simctl.plugins.switch.fed_records import read_state as read_fed_state
from simctl.plugins.switch.federation import SwitchFederation
from simctl.plugins.switch.qsw_records import LIBSTATE as QSW_LIBSTATE
from simctl.plugins.switch.qsw_records import read_state as read_qsw_state
from simctl.plugins.switch.sni import LOADED
from simctl.testing.swarm.rules import AtRest, rule
from simctl.wire.buf import Buf
from simctl.wire.errno import SlurmError
from simctl.wire.hosts import CONTROLLER

_CARD: Final = "/run/qsnet/prg"
_WINDOWS: Final = "/var/lib/sni"


@rule(
    "cards-empty",
    says="no node's interconnect has a program or a window of a step that is over",
    exceptions="switch_p_job_postfini that failed; nodes on which a step daemon was killed, until "
    "they crash; windows of federation that were loaded when their node crashed",
)
def cards_empty(run: AtRest) -> Iterator[str]:
    """Find programs in Elan cards and loaded windows of Federation adapters."""
    if run.has_failed("switch_p_job_postfini"):
        return
    for name in run.world.hosts:
        view = run.world.disk.view(name, 0)
        if name in run.killed:
            continue
        if view.is_dir(_CARD) and (programs := view.listdir(_CARD)):
            yield f"the Elan card of {name} still has the programs {sorted(programs)}"
        if name in run.crashed or not view.is_dir(_WINDOWS):
            continue
        for adapter in sorted(view.listdir(_WINDOWS)):
            loaded = view.read_text(f"{_WINDOWS}/{adapter}")
            if loaded:
                yield f"{adapter} of {name} still has loaded {loaded.split()}"


@rule(
    "switch-books-empty",
    says="slurmctld's switch plugin has given no contexts or windows away when it stops",
    exceptions="switch_p_job_step_complete, or an unpack of a credential or of a node's record, "
    "that failed; state that could not be saved, or is older than the slurmctld that died or gave "
    "up; windows of nodes that crashed; jobs that were lost with their file",
    ended=True,
)
def switch_books_empty(run: AtRest) -> Iterator[str]:
    """Find what is taken in the state that the plugin saved last."""
    if run.has_failed(
        *("switch_p_job_step_complete", "switch_p_libstate_save", "switch_p_unpack_jobinfo"),
        *("switch_p_unpack_node_info", "switch_p_job_postfini", "switch_p_copy_jobinfo"),
    ) or run.deeds & {"crash slurmctld", "disk slurmctld"}:
        return
    if run.result is not None and run.result.fatalities:
        return
    if run.lost:
        # What their steps had stands in the plugin's own file, which was read whole.
        return
    view = run.world.disk.view(CONTROLLER, 0)
    folder = run.world.site.conf.state_save_location
    try:
        if view.exists(f"{folder}/qsw_state"):
            saved = Buf(view.read(f"{folder}/qsw_state"))
            _, live = records.unpack(QSW_LIBSTATE, SwitchElan.plugin_version, saved, read_qsw_state)
            yield from (f"slurmctld has given contexts away: {each}" for each in live)
        if view.exists(f"{folder}/fed_state"):
            saved = Buf(view.read(f"{folder}/fed_state"))
            _, nodes = records.unpack(
                FED_LIBSTATE, SwitchFederation.plugin_version, saved, read_fed_state
            )
            for node in nodes:
                taken = [
                    (adapter.name, window.id)
                    for adapter in node.adapters
                    for window in adapter.windows
                    if window.status == LOADED
                ]
                if taken and node.name not in run.crashed:
                    yield f"slurmctld has given windows of {node.name} away: {taken}"
    except SlurmError as error:
        yield f"the saved state of the switch cannot be read: {error}"


@rule(
    "buffers-free",
    says="no space of the appliance is taken but by persistent buffers, and pools add up",
    exceptions="a buffer that a site's script was to drop and has not; in model modern one of a "
    "job that was there when another slurmctld started, as in real Slurm; in burst_buffer/generic "
    "one of a job that slurmctld has lost",
)
def buffers_free(run: AtRest) -> Iterator[str]:
    """Find buffers of jobs, and pools whose use is not the sum of their buffers."""
    appliance = run.world.site.appliance
    buffers = [
        buffer
        for store in (appliance.store, appliance.generic_store)
        for buffer in store.buffers.values()
    ]
    for pool in appliance.store.pools.values():
        given = sum(each.size for each in buffers if each.pool == pool.name)
        if given != pool.used:
            yield f"pool {pool.name} has {pool.used} in use, its buffers {given}"
    if not buffers or "fail" in run.faults or "raise" in run.faults:
        return
    # burst_buffer/generic drops what was staged out; of a job that is lost nothing ever is.
    listed = appliance.generic_store.buffers.values()
    lost = {each.token for each in listed if _of_a_job(each)} & {
        str(job_id) for job_id in run.world.trace.lost_jobs
    }
    given_up = _given_up(run.events)
    if run.world.model == "modern":
        given_up |= _from_before(run.events)
    for buffer in buffers:
        if _of_a_job(buffer) and int(buffer.token) not in given_up and buffer.token not in lost:
            yield f"the buffer of job {buffer.token} still has {buffer.size} of {buffer.pool}"


def _of_a_job(buffer: Buffer) -> bool:
    return buffer.token.isdecimal() and buffer.size > 0


def _from_before(events: list[Event]) -> set[int]:
    """Return the jobs that were there when the last slurmctld started, if it is not the first."""
    pids = dict.fromkeys(event.pid for event in events if event.role == "slurmctld")
    last, found = list(pids)[-1], set[int]()
    for event in events if len(pids) > 1 else ():
        if event.pid == last and event.role == "slurmctld":
            break
        if event.name == "job_state" and isinstance(event.job, int):
            found.add(event.job)
    return found


def _given_up(events: list[Event]) -> set[int]:
    """Return the jobs whose buffers a site's script was to drop, and failed the last time."""
    found: set[int] = set()
    for event in events:
        if event.kind != "script" or not isinstance(event.job, int):
            continue
        if event.name in ("stop_stage_in", "stop_stage_out"):
            if event.phase == "enter" or event.rc not in (0, UNSET):
                found.add(event.job)
            else:
                found.discard(event.job)
    return found
