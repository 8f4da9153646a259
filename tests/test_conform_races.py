"""`simctl trace conform` takes a race for a race, and a damage for a damage.

Two runs of a scenario that differ in schedule, latency or moment stand for two days of the same
cluster: one of them is written down as real Slurm's recordings are.
"""

import copy
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Final

import pytest

from simctl.kernel.events import Event
from simctl.scenario.load import read_scenario
from simctl.testing.conform.acts import CALL_ARGUMENTS
from simctl.testing.conform.command import compare_events
from simctl.testing.conform.real import read_real
from simctl.world import World
from tests.conformance_runs import FOLDER, held, recording_of
from tests.recorder import recorded

Recording = list[dict[str, Any]]
_BEGINS_US: Final = 900_000
"""The daemons are up: recordings begin while they run."""


def _told(events: list[Event], recording: Recording) -> list[str]:
    return [each.line() for each in compare_events(events, recording).differences]


@cache
def _run(
    name: str, seed: int = 0, schedule: str = "fifo", latency: str = "", later: str = ""
) -> tuple[Event, ...]:
    """Run a scenario of tests/conformance, otherwise than its recording was made."""
    text = (FOLDER / name / "scenario.yaml").read_text()
    if latency:
        text = text.replace("model: modern", f"model: modern\nlatency: {latency}")
    if later:

        def moved(found: re.Match[str]) -> str:
            return f"at: {float(found.group(1)) + float(later)}s"

        text = re.sub(r"at: ([1-9][0-9.]*)s", moved, text)
    scenario = read_scenario(text, file=str(FOLDER / name / "scenario.yaml"))
    world = World(scenario, seed=seed, schedule=schedule)
    world.trace.add_sink(world.events.append)
    world.run()
    return tuple(world.events)


def _piece(events: tuple[Event, ...]) -> Recording:
    """Write a run down, but for the start of the daemons and their end."""
    ends_us = next(event.time_us for event in events if event.name == "REQUEST_SHUTDOWN")
    lines = recorded(events, begins_us=_BEGINS_US)
    return [
        line
        for line in lines
        if line["dt"] < (ends_us - 1000) / 1_000_000 or line["fn"] == "slurm_ckpt_free_job"
    ]


_OTHERWISE: Final = (
    {"seed": 1, "schedule": "random"},
    {"seed": 4, "schedule": "random,jitter=60ms,calls"},
    {"seed": 3, "schedule": "pct"},
    {"latency": "3ms"},
    {"latency": "30ms", "later": "0.4"},
)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("s03_srun_2x2", 0),
        ("s05_sbatch_two_steps", 1),
        ("s06a_exit_nonzero", 4),
        ("s07a_scancel_running", 1),
        ("s10_requeue", 3),
        ("s12_ctld_restart", 4),
        ("s13_suspend_resume", 2),
        ("s14_prolog_fail", 1),
        ("s15_job_attach_err_n2", 2),
        ("s16i_periodic", 1),
        ("s17a_bb_full", 4),
        ("s17d_bb_too_big", 0),
    ],
)
def test_another_run_of_the_same_is_no_difference(name: str, how: int) -> None:
    """Other schedules, messages that are late, slower links, other moments."""
    other = _run(name, **_OTHERWISE[how])
    assert _told(list(held(name).events), _piece(other)) == []


def test_what_the_recorder_writes_is_compared() -> None:
    """As many calls, and more, as of the recording itself."""
    events = list(held("s05_sbatch_two_steps").events)
    comparison = compare_events(events, _piece(tuple(events)))
    assert comparison.calls >= held("s05_sbatch_two_steps").comparison.calls
    assert not comparison.differences


# Races, made in the recordings of real Slurm.


def _changed(name: str, change: Callable[[Recording], Recording]) -> list[str]:
    """Return what is told of a recording that is changed."""
    recording = change(copy.deepcopy(read_real(recording_of(name))))
    return _told(held(name).events, recording)


def _of(recording: Recording, fn: str, **args: Any) -> list[int]:
    """Return where the events of a name with these arguments are."""
    return [
        at
        for at, event in enumerate(recording)
        if event["fn"] == fn and all(event["args"].get(key) == args[key] for key in args)
    ]


def _split_exits(recording: Recording, *, status: int = 0, apart_s: float = 0.0) -> Recording:
    """Tell of the tasks of a node one by one, the first of them before job_fini."""
    at = next(
        each
        for each in _of(recording, "send", msg="MESSAGE_TASK_EXIT")
        if len(recording[each]["args"]["task_ids"]) > 1
    )
    event = recording.pop(at)
    first, *rest = event["args"]["task_ids"]
    early, late = copy.deepcopy(event), copy.deepcopy(event)
    early["args"].update(task_ids=[first], num_tasks=1, return_code=status)
    late["args"].update(task_ids=rest, num_tasks=len(rest))
    role, node = event["pid_role"], event["node"]
    fini = next(
        each
        for each in _of(recording, "switch_p_job_fini")
        if (recording[each]["pid_role"], recording[each]["node"]) == (role, node)
    )
    for each in _of(recording, "task_reaped"):
        if (recording[each]["pid_role"], recording[each]["node"]) == (role, node):
            recording[each]["dt"] -= apart_s
            break
    return [*recording[:fini], early, *recording[fini:at], late, *recording[at:]]


def test_ends_of_tasks_may_be_told_in_several_messages() -> None:
    """They are gathered for a tenth of a second (A4); with another status it is no race."""
    name = "s03_srun_2x2"
    assert _changed(name, _split_exits) == []
    assert _changed(name, lambda each: _split_exits(each, status=256))
    assert _changed(name, lambda each: _split_exits(each, apart_s=2.0))


def _other_node_states(recording: Recording) -> Recording:
    """Have the second of two jobs on n1 end after the epilog of the first."""
    ends = _of(recording, "node_state", node="n1")
    last = [at for at in ends if recording[at]["args"]["from"].startswith("ALLOCATED")][-1]
    extra = copy.deepcopy(recording[last]), copy.deepcopy(recording[last])
    for event, (before, after) in zip(extra, ((0x403, 0x3), (0x3, 0x403)), strict=True):
        event["args"].update({"from": f"X(0x{before:x})", "to": f"X(0x{after:x})"})
    return [*recording[: last + 1], *extra, *recording[last + 1 :]]


def _drained(recording: Recording) -> Recording:
    at = _of(recording, "node_state", node="n1")[-1]
    recording[at]["args"]["to"] = "IDLE+DRAIN(0x202)"
    return recording


def test_a_node_that_jobs_share_goes_through_states_as_they_end() -> None:
    """But not where one job is on it alone; and that it is drained counts."""
    assert _changed("s16i_periodic", _other_node_states) == []
    assert _changed("s03_srun_2x2", _other_node_states)
    assert _changed("s16i_periodic", _drained)


def _drained_later(recording: Recording, *, at_all: bool = True) -> Recording:
    """Have n1 be drained after its last job has left it, not before, or not at all."""
    ends = _of(recording, "node_state", node="n1")[-5:]
    assert recording[ends[0]]["args"]["to"].endswith("(0x203)")
    drained, *others = ends[:4]
    states = pairwise((0x3, 0x403, 0x402, 0x2, 0x202))
    for at, (before, after) in zip((*others, drained), states, strict=True):
        recording[at]["args"].update({"from": f"X(0x{before:x})", "to": f"X(0x{after:x})"})
    gone = {drained} if at_all else {drained, ends[-1]}
    put = {others[-1]: [recording[drained]]} if at_all else {}
    return [
        each
        for at, event in enumerate(recording)
        if at not in gone
        for each in (event, *put.get(at, []))
    ]


def test_a_node_is_drained_before_or_after_a_job_has_left_it() -> None:
    """Reports of different daemons race; that it is drained counts."""
    assert _changed("s16g_prefork_err", _drained_later) == []
    assert _changed("s16g_prefork_err", lambda each: _drained_later(each, at_all=False))


def _blinking(recording: Recording, *, down: bool = False) -> Recording:
    """Have n2 not answer for a moment, or until it is given up."""
    last = _of(recording, "node_state", node="n2")[-1]
    states = ["IDLE(0x2)", "IDLE*(0x802)", "DOWN*(0x801)" if down else "IDLE(0x2)"]
    extra = []
    for before, after in pairwise(states):
        event = copy.deepcopy(recording[last])
        event["args"].update({"from": before, "to": after})
        extra.append(event)
    return [*recording[: last + 1], *extra, *recording[last + 1 :]]


def test_a_node_may_miss_a_ping() -> None:
    """That it is given up counts."""
    assert _changed("s03_srun_2x2", _blinking) == []
    assert _changed("s03_srun_2x2", lambda each: _blinking(each, down=True))


def _without_a_question(recording: Recording, which: int) -> Recording:
    """Leave out an answer to wait, and its like until another answer comes."""
    waits = [
        at
        for at in _of(recording, "bb_p_job_test_stage_in", job=2, test_only=0)
        if recording[at]["rc"] == 0
    ]
    gone = {waits[which]}
    return [event for at, event in enumerate(recording) if at not in gone]


def _asked_once_more(recording: Recording) -> Recording:
    """Have a pass come just before the buffer is ready, after the state was packed."""
    (ready,) = [
        at
        for at in _of(recording, "bb_p_job_test_stage_in", job=2, test_only=0)
        if recording[at]["rc"] == 1
    ]
    wait = copy.deepcopy(recording[ready])
    wait["rc"] = 0
    return [*recording[:ready], wait, *recording[ready:]]


def test_passes_come_or_not_while_a_job_waits_for_its_buffer() -> None:
    """One more question is none; that nobody asked in earnest before it was ready is told."""
    assert _changed("s17a_bb_full", _asked_once_more) == []
    assert any(
        "extra call" in each or "missing call" in each
        for each in _changed("s17a_bb_full", lambda each: _without_a_question(each, 0))
    )


def _size_late(recording: Recording) -> Recording:
    """Have the size asked for after the teardown, of a buffer that is gone."""
    (at,) = _of(recording, "dw_real_size")
    event = recording.pop(at)
    to = _of(recording, "dw_teardown")[-1]
    return [*recording[: to + 1], event, *recording[to + 1 :]]


def test_the_size_of_a_buffer_is_asked_for_beside_its_teardown() -> None:
    """A thread asks when it ends, of a buffer that may be gone; but never before it is made."""
    name = "s17c_bb_cancel_stagein"
    assert _changed(name, _size_late) == []
    events = list(held(name).events)
    asked = next(at for at, event in enumerate(events) if event.name == "dw_real_size")
    setup = next(at for at, event in enumerate(events) if event.name == "dw_setup")
    events.insert(setup, events.pop(asked))
    told = _told(events, read_real(recording_of(name)))
    assert any("has been set up" in each for each in told)


def _killed(recording: Recording, fn: str, *, without: str = "") -> Recording:
    recording[_of(recording, fn)[0]]["rc"] = None
    return [event for event in recording if event["fn"] != without]


def _lost(recording: Recording, fn: str) -> Recording:
    return [event for event in recording if event["fn"] != fn]


def _failed(recording: Recording, fn: str) -> Recording:
    recording[_of(recording, fn)[0]]["rc"] = 1
    return recording


def test_a_script_that_is_killed_writes_down_no_end() -> None:
    """That it failed is another thing."""
    assert _changed("s17a_bb_full", lambda each: _killed(each, "dw_data_in")) == []
    assert _changed("s17a_bb_full", lambda each: _failed(each, "dw_data_in"))
    # Who waited for it may end with it, and ask for no size.
    name, size = "s17a_bb_full", "dw_real_size"
    assert _changed(name, lambda each: _killed(each, "dw_data_in", without=size)) == []
    assert _changed(name, lambda each: _lost(each, size))


def test_jobs_from_before_do_not_shift_the_numbers() -> None:
    """A recording tells of an old job that it is forgotten; a run has other numbers from 1 on."""
    name = "s17c_bb_cancel_stagein"
    recording = read_real(recording_of(name))
    old = copy.deepcopy(recording[_of(recording, "bb_p_job_test_stage_in")[0]])
    old.update(fn="bb_p_job_test_stage_out", rc=1)
    old["args"] = {"job": 1, "state": "COMPLETED", "bb": ""}
    text = (FOLDER / name / "scenario.yaml").read_text()
    text = text.replace("FirstJobId: 8", "FirstJobId: 1").replace("scancel 8", "scancel 1")
    scenario = read_scenario(text, file=str(FOLDER / name / "scenario.yaml"))
    world = World(scenario)
    world.trace.add_sink(world.events.append)
    world.run()
    assert _told(world.events, [old, *recording]) == []


# Damages.


def _damages(name: str, count: int) -> Iterator[tuple[str, Recording]]:
    """Damage a recording at acts that are compared, and that no rule lets come or go."""
    recording = read_real(recording_of(name))
    chance = random.Random(name)
    compared = sorted(
        {
            other.place
            for pairs in held(name).comparison.pairs.values()
            for mine, other in pairs
            if mine is not None and other is not None and other.kind == "call"
        }
    )
    while count:
        at = chance.choice(compared)
        event = copy.deepcopy(recording[at])
        kind = chance.choice(("dropped", "user", "result", "argument", "process"))
        numbers = [
            key
            for key, value in event["args"].items()
            if key in CALL_ARGUMENTS - {"uid", "pgid", "batch"} and isinstance(value, int)
        ]
        put = [event]
        if kind == "dropped":
            put = []
        elif kind == "user":
            event["uid"] = event["euid"] = 0 if event["uid"] else 2001
        elif kind == "result" and event["rc"] is not None:
            event["rc"] = -1 if event["rc"] != -1 else 0
        elif kind == "argument" and numbers:
            event["args"][chance.choice(numbers)] += 1
        elif kind == "process" and event["node"]:
            event["node"] = "n2" if event["node"] == "n1" else "n1"
        else:
            continue
        count -= 1
        yield f"{kind} {event['fn']} at {at}", [*recording[:at], *put, *recording[at + 1 :]]


@pytest.mark.parametrize(
    "name",
    [
        "s03b_srun_2x2_even",
        "s06a_exit_nonzero",
        "s08_timelimit",
        "s15_job_preinit_err_n2",
        "s15_job_attach_err_n2",
        "s16g_prefork_err",
    ],
)
def test_a_damaged_recording_is_never_taken_for_a_race(name: str) -> None:
    """A call is left out, or has another user, result, argument or node."""
    for what, recording in _damages(name, 8):
        assert _told(held(name).events, recording), what
