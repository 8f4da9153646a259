"""The ledger: what others were told is there after slurmctld dies, and nothing is there twice.

slurmctld dies after events of a run and starts again at once, with its state files damaged in one
way: a record that is not saved, saved late, or read wrongly. Each has to be noticed by its rule.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from simctl.ctld.recovery import restored
from simctl.ctld.saved import state_save, state_writing
from simctl.ctld.saved.saved_records import JOB, NODE, PART, RESV, SavedController
from simctl.kernel.procs import SIGKILL
from simctl.kernel.schedules import InTurn
from simctl.nodes.authority import Authority
from simctl.nodes.step_daemons import StepDaemons
from simctl.testing.explore.faults import deaths
from simctl.testing.explore.trial import Broken, Ran, Terms, load_text, run_trial
from simctl.wire.states import PENDING as WAITING
from simctl.wire.states import JobBase
from tests.test_shipped_scenarios import SCENARIOS

CLUSTER = """\
nodes: [{name: "n[1-3]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}, {name: other, nodes: n2}]
users: {alice: 1001}
timeline:
  - {at: 1s, as: alice, run: "sbatch -n1 --wrap 'srun sleep 20; srun sleep 30; srun true'"}
  - {at: 2s, as: alice, run: "sbatch -H -n1 --wrap 'sleep 3'"}
  - {at: 3s, as: alice, run: "sbatch -n1 --wrap 'exit 3'"}
  - {at: 4s, as: alice, run: "sbatch -n1 --wrap 'sleep 500'"}
  - {at: 5s, as: alice, run: "scontrol update jobid=2 timelimit=7"}
  - {at: 10s, as: root, run: "scontrol update nodename=n2 state=drain reason=dust"}
  - {at: 11s, as: root, run: "scontrol update partitionname=other state=down"}
  - {at: 12s, as: root, run: "scontrol create reservation reservationname=r starttime=now+1hour \
duration=60 nodes=n3 users=alice"}
  - {at: 20s, as: alice, run: "scancel 4"}
  - {at: 40s, as: alice, run: "scontrol release 2"}
  - {at: 45s, as: root, run: "scontrol delete reservation r"}
  - {at: 50s, as: alice, run: "sbatch -n1 --wrap true"}
  - {at: 60s, as: root, run: "scontrol update nodename=n2 state=resume"}
"""
A_JOB: Any = JOB.struct
A_NODE: Any = NODE.struct
A_PARTITION: Any = PART.struct
A_RESERVATION: Any = RESV.struct
FILE = Path("ledger.yaml")


def _run(text: str, model: str, file: Path = FILE) -> Ran:
    return run_trial(load_text(text, file), InTurn(), 0, Terms(model=model))


CRASHES = (15, 30, 47, 70)
"""When slurmctld dies, in seconds: after each kind of change."""


def crashed(model: str, *, at: str = "") -> Ran:
    """Run the scenario; slurmctld dies now and then, or upon an event, and starts at once."""
    moments = [f"when: '{at}'"] if at else [f"at: {at_s}s" for at_s in CRASHES]
    faults = "".join(f"  - {{{each}, fault: {{crash: slurmctld}}}}\n" for each in moments)
    again = "  - {when: exit role=slurmctld rc=9, each: true, fault: {start: slurmctld}}\n"
    return _run(CLUSTER + faults + again, model)


def rules(broken: tuple[Broken, ...]) -> set[str]:
    """Return the rules of the ledger that are broken."""
    return {each.text.partition(":")[0] for each in broken if each.kind == "ledger"}


QUIET = [
    path
    for path in SCENARIOS
    if not re.search(
        r"\b(crash|stop|start|restart): \"?(slurmctld|spare)|corrupt:|disk:", path.read_text()
    )
]
"""Those that restart nothing of slurmctld themselves, and damage nothing that it has written."""


SLOW = {("stage_in_fails", "modern"), ("burst_buffer_datawarp", "modern")}
"""What waits for a day there, and saves all the while."""


@pytest.mark.parametrize(
    ("path", "model"),
    [
        pytest.param(path, model, id=f"{path.stem}-{model}")
        for path in QUIET
        for model in ("guide", "modern")
        if (path.stem, model) not in SLOW
    ],
)
def test_slurmctld_dies_in_every_shipped_scenario_and_the_ledger_holds(
    path: Path, model: str
) -> None:
    """After a few events: other ones in each scenario, so that all kinds have their turn."""
    text = path.read_text()
    scenario = load_text(text, path)
    places = deaths(text, scenario, lambda text: _run(text, model, path).events)
    turn = zlib.crc32(f"{path.stem} {model}".encode())
    for step in range(2):
        each = places[(turn + step * len(places) // 2) % len(places)]()
        broken = _run(each.text, model, path).broken
        assert not [b for b in broken if b.kind in ("ledger", "ordering", "crash")], each.where


Damage = Callable[[pytest.MonkeyPatch], None]
Change = Callable[[Any], Any]


def saved_as(file: str, change: Change) -> Damage:
    """Return the damage that each record of a file is saved changed, or, for None, not at all."""

    def damage(patch: pytest.MonkeyPatch) -> None:
        write = state_writing._WRITERS[file]

        def records(ctld: Any) -> Iterator[Any]:
            for saved in write(ctld):
                if isinstance(saved, bytes):
                    saved = msgspec.json.decode(saved, type=A_JOB)  # noqa: PLW2901
                changed = change(saved)
                if changed is not None:
                    yield changed

        patch.setitem(state_writing._WRITERS, file, records)

    return damage


def of(kind: Any, **changes: Any) -> Change:
    """Return the change of the fields of records of a kind."""

    def change(saved: Any) -> Any:
        return msgspec.structs.replace(saved, **changes) if isinstance(saved, kind) else saved

    return change


def jobs_where(test: Callable[[Any], bool], **changes: Any) -> Change:
    """Return the change of the fields of those jobs of which a test is true."""

    def change(saved: Any) -> Any:
        if not isinstance(saved, A_JOB) or not test(saved):
            return saved
        return msgspec.structs.replace(saved, **changes)

    return change


def without(kind: Any, name: str, value: Any) -> Change:
    """Return the change that leaves a record out."""
    return lambda saved: (
        None if isinstance(saved, kind) and getattr(saved, name) == value else saved
    )


def late(patch: pytest.MonkeyPatch) -> None:
    """Have state written as it was at an earlier moment."""
    records_of = state_writing.records_of
    known: dict[str, list[tuple[int, Any]]] = {}

    def records(ctld: Any, name: str) -> Any:
        history = known.setdefault(name, [])
        history.append((ctld.now_us, records_of(ctld, name)))
        earlier = [each for at_us, each in history if at_us < ctld.now_us]
        return earlier[-1] if earlier else []

    patch.setattr(state_save, "records_of", records)


def rarely(patch: pytest.MonkeyPatch) -> None:
    """Have state saved every minute."""
    patch.setattr(state_save, "SAVE_MAX_WAIT_US", 60_000_000)


def never(patch: pytest.MonkeyPatch) -> None:
    """Have nothing saved."""
    patch.setattr(state_save.StateSave, "_write", lambda _self, *, forced: None)


def _steps_again(patch: pytest.MonkeyPatch) -> None:
    """Have a step that is over saved with its job still."""
    steps: dict[tuple[int, int], Any] = {}

    def change(saved: Any) -> Any:
        if not isinstance(saved, A_JOB):
            return saved
        for step in saved.steps:
            steps[saved.job_id, step.step_id] = step
        kept = tuple(step for (job, _), step in steps.items() if job == saved.job_id)
        return msgspec.structs.replace(saved, steps=kept)

    saved_as("job_state", change)(patch)


def _reservation_again(patch: pytest.MonkeyPatch) -> None:
    """Have a reservation that was deleted still be there."""
    seen: dict[str, Any] = {}
    write = state_writing._WRITERS["resv_state"]

    def records(ctld: Any) -> Iterator[Any]:
        for saved in write(ctld):
            if isinstance(saved, A_RESERVATION):
                seen[saved.name] = saved
            else:
                yield saved
        yield from seen.values()

    patch.setitem(state_writing._WRITERS, "resv_state", records)


def _twice(patch: pytest.MonkeyPatch) -> None:
    """Have a job that has ended begin again, and a slurmd that does not mind."""
    patch.setattr(Authority, "replay", lambda *_: 0)
    saved_as("job_state", jobs_where(_is(JobBase.FAILED), state=PENDING))(patch)


def _read(change: Callable[[Any], None]) -> Damage:
    """Return the damage that slurmctld goes on with something else than it says."""

    def damage(patch: pytest.MonkeyPatch) -> None:
        whole = restored.tell

        def tell(ctld: Any) -> None:
            whole(ctld)
            change(ctld)

        patch.setattr(restored, "tell", tell)

    return damage


def _forget_2(ctld: Any) -> None:
    """Forget a job of which nobody asks before the next death."""
    ctld.jobs.pop(2, None)


def _forget_2_later(ctld: Any) -> None:
    """Forget it so that it is asked about while this slurmctld lives."""
    if ctld.now_us > 25_000_000:
        ctld.jobs.pop(2, None)


def _wait_again(ctld: Any) -> None:
    for job in ctld.jobs.values():
        if job.state.base is JobBase.RUNNING:
            job.state = WAITING


def _leave_alone(patch: pytest.MonkeyPatch) -> None:
    """Have a slurmd report jobs gone at once, and kill nothing."""
    patch.setattr(StepDaemons, "has_run", lambda *_: False)
    patch.setattr(StepDaemons, "signal_job", lambda *_: None)


RUNNING = (int(JobBase.RUNNING), 0)
PENDING = (int(JobBase.PENDING), 0)


def _is(base: JobBase) -> Callable[[Any], bool]:
    return lambda saved: saved.state[0] == base


DAMAGES: dict[str, tuple[str, Damage]] = {
    "a job is not saved": (
        "told-job-is-kept",
        saved_as("job_state", without(A_JOB, "job_id", 2)),
    ),
    "nothing is saved": ("told-job-is-kept", never),
    "an end is not saved": (
        "told-state-is-kept",
        saved_as("job_state", jobs_where(_is(JobBase.CANCELLED), state=PENDING)),
    ),
    "a start is not saved": (
        "told-state-is-kept",
        saved_as("job_state", jobs_where(_is(JobBase.RUNNING), state=PENDING)),
    ),
    "steps are not saved": ("told-step-is-kept", saved_as("job_state", of(A_JOB, steps=()))),
    "ends of steps are not saved": ("told-step-is-kept", _steps_again),
    "a limit is not saved": (
        "told-update-is-kept",
        saved_as("job_state", of(A_JOB, time_limit_min=90)),
    ),
    "a release is not saved": (
        "told-update-is-kept",
        saved_as("job_state", jobs_where(lambda saved: saved.job_id == 2, priority=0)),
    ),
    "a drain is not saved": (
        "told-change-of-the-cluster-is-kept",
        saved_as("node_state", of(A_NODE, flags=0)),
    ),
    "a resume is not saved": (
        "told-change-of-the-cluster-is-kept",
        saved_as("node_state", of(A_NODE, flags=0x200)),
    ),
    "a partition is not saved": (
        "told-change-of-the-cluster-is-kept",
        saved_as("part_state", of(A_PARTITION, state="UP")),
    ),
    "a reservation is not saved": (
        "told-change-of-the-cluster-is-kept",
        saved_as("resv_state", without(A_RESERVATION, "name", "r")),
    ),
    "a deletion is not saved": ("told-change-of-the-cluster-is-kept", _reservation_again),
    "job ids are counted anew": (
        "job-id-given-once",
        saved_as(
            "job_state",
            lambda saved: (
                msgspec.structs.replace(saved, next_job_id=1)
                if isinstance(saved, SavedController)
                else None
            ),
        ),
    ),
    "step ids are counted anew": (
        "step-id-given-once",
        saved_as("job_state", of(A_JOB, next_step_id=0)),
    ),
    "a run begins anew": ("run-begins-once", _twice),
    "a job that was read is not saved again": ("told-job-is-kept", _read(_forget_2)),
    "a job that was read is not there": ("restored-job-is-there", _read(_forget_2_later)),
    "a job that runs is read, and waits": ("restored-job-is-there", _read(_wait_again)),
    "tasks of a job that was cancelled run on": ("over-runs-nowhere", _leave_alone),
    "ends are not saved": (
        "run-ends-once",
        saved_as("job_state", jobs_where(_is(JobBase.FAILED), state=RUNNING)),
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_slurmctld_forgets_is_found_by_its_rule(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One rule for each kind of damage; others may be broken as well."""
    rule, damage = DAMAGES[name]
    damage(monkeypatch)
    assert rule in rules(crashed("guide").broken)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_nothing_is_found_where_nothing_is_forgotten(model: str) -> None:
    """The same deaths, with files that hold what they should."""
    assert not [each for each in crashed(model).broken if each.kind != "expectation"]


@pytest.mark.parametrize("answer", ["REQUEST_KILL_JOB", "REQUEST_UPDATE_JOB"])
def test_model_guide_saves_before_it_answers(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved one request late, what was just answered is gone."""
    at = f"RESPONSE_SLURM_RC phase=receive args.answers={answer}"
    assert not rules(crashed("guide", at=at).broken)
    late(monkeypatch)
    assert rules(crashed("guide", at=at).broken)


def test_model_modern_loses_no_more_than_six_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was told longer ago is there; saved every minute, it is not."""
    rarely(monkeypatch)
    assert rules(crashed("modern").broken)


@pytest.mark.parametrize("deed", ["scancel 1", "scontrol requeue 1"])
def test_tasks_that_outlive_their_run_are_found(deed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the job is over then, or waits to run again."""
    text = CLUSTER.partition("timeline")[0] + (
        "timeline:\n"
        "  - {at: 1s, as: alice, run: \"sbatch -N2 --wrap 'srun sleep 300'\"}\n"
        f"  - {{at: 20s, as: root, run: {deed}}}\n"
    )
    assert not _run(text, "modern").broken
    _leave_alone(monkeypatch)
    assert rules(_run(text, "modern").broken) == {"over-runs-nowhere"}


def test_a_hold_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As well as a release: the job has a priority that nobody gave it."""
    text = CLUSTER.partition("timeline")[0] + (
        "timeline:\n"
        "  - {at: 1s, as: alice, run: \"sbatch -N2 --wrap 'sleep 300'\"}\n"
        "  - {at: 2s, as: alice, run: \"sbatch -N2 --wrap 'sleep 300'\"}\n"
        "  - {at: 5s, as: alice, run: scontrol hold 2}\n"
        "  - {at: 30s, fault: {crash: slurmctld}}\n"
        "  - {at: 31s, fault: {start: slurmctld}}\n"
    )
    assert not _run(text, "guide").broken
    saved_as("job_state", jobs_where(lambda saved: saved.job_id == 2, priority=77))(monkeypatch)
    assert rules(_run(text, "guide").broken) == {"told-update-is-kept"}


RESERVED = CLUSTER.partition("timeline")[0] + (
    "timeline:\n"
    "  - {at: 0s, run: scontrol create reservation=r starttime=now duration=1 users=alice"
    " nodes=n1}\n"
    "  - {at: 1s, as: alice, run: sbatch -H -t5 --reservation=r --wrap true}\n"
    "  - {at: 2s, as: alice, run: scontrol uhold 1}\n"
    "  - {at: UPDATE, run: scontrol release 1}\n"
    "  - {at: 90s, fault: {crash: slurmctld}}\n"
    "  - {at: 91s, fault: {start: slurmctld}}\n"
)
"""A job is released; a minute after it came in its reservation is over, and it is held for that."""


@pytest.mark.parametrize(
    ("update", "lost", "found"),
    [("59s", False, False), ("61s", False, False), ("61s", True, True)],
)
def test_the_end_of_its_reservation_holds_a_job_that_was_released(
    update: str, lost: bool, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hold is no loss of a release before it; a release after it is to be there."""
    if lost:
        saved_as("job_state", of(A_JOB, priority=0, state=PENDING))(monkeypatch)
    ran = _run(RESERVED.replace("UPDATE", update).replace("-t5", "-t5 -b now+1hour"), "guide")
    assert any(each.name == "reservation_over" for each in ran.events)
    assert ("told-update-is-kept" in rules(ran.broken)) == found


def test_a_release_that_is_lost_before_the_reservation_ends_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What ends the reservation afterwards excuses nothing."""
    saved_as("job_state", of(A_JOB, priority=0))(monkeypatch)
    ran = _run(
        RESERVED.replace("UPDATE", "9s").replace("90s", "20s").replace("91s", "21s"), "guide"
    )
    assert any(each.name == "reservation_over" for each in ran.events)
    assert rules(ran.broken) == {"told-update-is-kept"}


@pytest.mark.parametrize(
    ("updates", "nice"),
    [(("nice=9", "priority=4"), 0), (("priority=4", "nice=9"), 9), (("nice=9 priority=4",), 0)],
)
def test_who_gives_a_job_a_priority_takes_its_nice_value(
    updates: tuple[str, ...], nice: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked for last is to be there."""
    text = CLUSTER.partition("timeline")[0] + (
        "timeline:\n"
        "  - {at: 1s, as: alice, run: sbatch -b now+1hour --nice=3 --wrap true}\n"
        + "".join(f"  - {{at: 5s, run: scontrol update jobid=1 {each}}}\n" for each in updates)
        + "  - {at: 30s, fault: {crash: slurmctld}}\n"
        "  - {at: 31s, fault: {start: slurmctld}}\n"
    )
    assert not _run(text, "guide").broken
    saved_as("job_state", of(A_JOB, nice=9 - nice))(monkeypatch)
    lost = _run(text, "guide").broken
    assert [each.detail.partition("\n")[0] for each in lost] == [
        f"job 1: nice was to be {nice}, and is {9 - nice}"
    ]


def test_a_job_whose_id_was_given_again_has_been_forgotten() -> None:
    """It is made anew from its checkpoint, and slurmctld dies before it has told anybody."""
    text = CLUSTER.partition("timeline")[0] + (
        "slurm_conf: {CheckpointType: checkpoint/blcr, MinJobAge: 10}\n"
        "timeline:\n"
        "  - {at: 0s, as: alice, run: \"sbatch --wrap 'srun_cr sleep 100'\"}\n"
        "  - {at: 20s, as: alice, run: scontrol checkpoint vacate 1}\n"
        "  - {at: 60s, as: alice, run: scontrol checkpoint restart 1, exit: 1}\n"
        "  - {when: job_state job=1 args.to=PENDING, skip: 1, fault: {crash: slurmctld}}\n"
        "  - {when: exit role=slurmctld rc=9, fault: {start: slurmctld}}\n"
    )
    ran = _run(text, "guide")
    assert any(each.name == "exit" and each.rc == SIGKILL for each in ran.events)
    assert not ran.broken


def test_who_is_told_that_there_is_no_such_job_is_told_nothing_of_it() -> None:
    """A job whose checkpoint record could not be made was never there for those who ask."""
    text = (
        "nodes: [{name: n1, memory_mb: 100}]\n"
        "partitions: [{name: debug, nodes: n1, default: true}]\n"
        "users: {alice: 1001}\n"
        "timeline:\n"
        "  - {at: 0s, fault: {raise: slurm_ckpt_alloc_job}}\n"
        "  - {at: 1s, as: alice, run: sbatch --wrap true, exit: 1}\n"
        "  - {at: 58s, as: root, run: scontrol hold 1, exit: 1}\n"
        "  - {at: 118s, fault: {crash: slurmctld, saved: true}}\n"
        "  - {at: 1500s, fault: {start: slurmctld}}\n"
    )
    assert not _run(text, "guide", Path("s.yaml")).broken


HELD_UP = (
    "nodes: [{name: n1}]\n"
    "partitions: [{name: debug, nodes: n1, default: true}]\n"
    "users: {alice: 1001}\n"
    "timeline:\n"
    "  - {at: 1s, as: alice, run: sbatch -H --wrap true}\n"
    "  - {at: 5s, as: alice, run: sbatch --wrap 'srun sleep 10'}\n"
    "  - {at: 13s, as: alice, run: sbatch -H --wrap true}\n"
    "  - {at: 14s, as: alice, run: sbatch -H --wrap true}\n"
    "  - {at: 15s, fault: {hang: CALL, for: LONG}}\n"
    "  - {at: 80s, fault: {crash: slurmctld}}\n"
    "  - {at: 81s, fault: {start: slurmctld}}\n"
    "  - {at: 100s, as: root, run: scancel 1}\n"
)
"""A plugin call takes time from when jobs 3 and 4 are there: for a save, or as step 2.0 ends."""


@pytest.mark.parametrize(
    "call", ["slurm_ckpt_pack_job", "slurm_ckpt_free_job", "switch_p_free_jobinfo"]
)
@pytest.mark.parametrize(
    ("long", "lost", "is_found"),
    [
        ("1h", 0, False),
        ("50s", 0, False),
        # It was saved well before; job 4 need not have been.
        ("1h", 1, True),
        ("1h", 4, False),
        # The call is over before slurmctld dies: what had waited for that is saved.
        ("50s", 4, True),
    ],
)
def test_a_save_that_a_plugin_holds_up_has_lost_what_came_since(
    call: str, long: str, lost: int, is_found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever call it is, and until it has ended."""
    if lost:
        saved_as("job_state", without(A_JOB, "job_id", lost))(monkeypatch)
    text = HELD_UP.replace("CALL", call).replace("LONG", long)
    ran = _run(text, "modern", Path("s.yaml"))
    found = [each.detail for each in ran.broken if each.text.startswith("told-job-is-kept")]
    assert [each.partition(":")[0] for each in found] == ([f"job {lost}"] if is_found else [])
    assert is_found or not rules(ran.broken)


@pytest.mark.parametrize(("dies", "is_found"), [("71.9s", True), ("72.1s", False)])
def test_a_reservation_from_now_on_ends_on_a_full_second(
    dies: str, is_found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began with the second in which it was asked for; before its end it is to be there."""
    saved_as("resv_state", without(A_RESERVATION, "name", "r"))(monkeypatch)
    text = CLUSTER.partition("timeline")[0] + (
        "timeline:\n"
        "  - {at: 12.3s, run: scontrol create reservation=r starttime=now duration=1 users=alice"
        " nodes=n3}\n"
        f"  - {{at: {dies}, fault: {{crash: slurmctld}}}}\n"
        "  - {at: 73s, fault: {start: slurmctld}}\n"
    )
    assert bool(rules(_run(text, "guide").broken)) is is_found
