"""What `simctl trace conform` decides of a few acts: each clause by a row with it and one without.

A story is written as acts parted by ``; ``: the strand up to a colon, the name, what it is called
by, and fields such as ``job=1`` or ``=0``, a result.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import attrs
import pytest

from simctl.testing.conform.acts import MARK, Act, Story
from simctl.testing.conform.alignment import align
from simctl.testing.conform.compare import compare
from simctl.testing.conform.facts import FACTS, broken_facts, kept_facts
from simctl.testing.conform.passes import passes_told
from simctl.testing.conform.races import (
    blinks,
    exits_apart,
    node_records,
    polls_between,
    stand_in,
    threads_apart,
)
from simctl.testing.conform.reasons import nonsense
from simctl.testing.conform.threads import swapped
from simctl.testing.conform.times import FACTOR, SLACK_S, other_times, unlike
from tests.conformance_runs import NAMES, held

_NUMBERS: Final = {"job", "when_s"}
_SHORT: Final = {
    "ask": "bb_p_job_test_stage_in",
    "exit": "MESSAGE_TASK_EXIT",
    "gone": "MESSAGE_EPILOG_COMPLETE",
    "done": "REQUEST_STEP_COMPLETE",
    "state": "job_state",
    "node": "node_state",
}


def acts_of(text: str) -> Story:
    """Return the story of some acts; of ``state`` and ``node`` the rest is the change."""
    acts = []
    for place, said in enumerate(each for each in text.split("; ") if each):
        strand, _, what = said.rpartition(": ")
        name, *words = what.split()
        fields: dict[str, Any] = {"args": {}, "says": {}}
        keys = []
        for word in words:
            key, sign, value = word.partition("=")
            if not sign or key in ("tasks", "status"):
                keys.append(word)
            elif not key:
                fields["result"] = None if value == "None" else int(value)
            elif key in ("reason", "exit_code"):
                fields["says"][key] = value.replace("~", " ")
            elif key in ("job_rc", "test_only", "init_config", "arg", "pgid", "image_dir"):
                fields["args"][key] = int(value) if value.lstrip("-").isdigit() else value
            else:
                number = float(value) if key in _NUMBERS else value
                fields[key] = int(number) if key == "job" else number
        fields.setdefault("kind", "state" if name in ("state", "node") else "call")
        acts.append(
            Act(
                strand=strand or "slurmctld",
                name=_SHORT.get(name, name.replace("~", " ")),
                key=" ".join(keys),
                place=place,
                **fields,
            )
        )
    return Story(acts=tuple(acts))


def told_by(story: Story) -> list[str]:
    """Return the acts that are left, shortly."""
    return [f"{act.strand}: {act.name} {act.key}".strip() for act in story.acts]


# Reasons and exit codes.


@pytest.mark.parametrize(
    ("change", "reason", "told"),
    [
        ("IDLE > ALLOCATED", "None", ""),
        ("IDLE > ALLOCATED", "Not~responding", "reason=Not responding, recorded None"),
        ("IDLE|DRAIN > IDLE", "Not~responding", "reason=Not responding, recorded None"),
        *(
            (f"IDLE > {unfit}", "Kill~task~failed", "")
            for unfit in ("DOWN", "IDLE|DRAIN", "FAIL", "ERROR", "FUTURE")
        ),
        ("IDLE > DOWN", "None", ""),
        ("IDLE > DOWN", "Nonsense", "reason=Nonsense, and that is none"),
    ],
)
def test_reasons_of_nodes_go_with_their_states(change: str, reason: str, told: str) -> None:
    """A node in service has none, another one of Slurm's; where a node is updated any will do."""
    ours = acts_of(f"node n1: node {change} reason={reason}")
    assert [each.text for each in nonsense(ours, ours)] == (
        [f"node_state {change}: {told}"] if told else []
    )
    updated = acts_of(f"{MARK}: REQUEST_UPDATE_NODE~received; node n1: node {change}")
    assert not list(nonsense(ours, updated))
    assert not list(nonsense(ours, acts_of("node n1: node IDLE > X")))
    assert not list(nonsense(attrs.evolve(ours, cut=True), ours))


@pytest.mark.parametrize(
    ("change", "codes", "reason", "code", "told"),
    [
        ("PENDING > RUNNING", [], "None", "0:0", ""),
        ("PENDING > RUNNING", [], "TimeLimit", "0:0", "reason=TimeLimit, recorded None"),
        ("RUNNING > TIMEOUT|COMPLETING", [], "TimeLimit", "0:0", ""),
        ("RUNNING > TIMEOUT|COMPLETING", [], "None", "0:0", "reason=None, recorded TimeLimit"),
        ("RUNNING > FAILED|COMPLETING", [256], "NonZeroExitCode", "1:0", ""),
        (
            *("RUNNING > FAILED|COMPLETING", [256], "JobLaunchFailure", "1:0"),
            "reason=JobLaunchFailure, recorded NonZeroExitCode",
        ),
        ("RUNNING > FAILED|COMPLETING", [9], "JobLaunchFailure", "0:9", ""),
        (
            *("RUNNING > FAILED|COMPLETING", [9, 256], "NonZeroExitCode", "0:9"),
            "reason=NonZeroExitCode, recorded JobLaunchFailure",
        ),
        ("RUNNING > FAILED|COMPLETING", [], "JobLaunchFailure", "0:0", ""),
        ("RUNNING > FAILED|COMPLETING", [0], "JobLaunchFailure", "0:0", ""),
        ("FAILED|COMPLETING > FAILED", [1], "JobLaunchFailure", "0:1", ""),
        ("CANCELLED|COMPLETING > NODE_FAIL|COMPLETING", [], "NodeDown", "77:77", ""),
        (
            *("RUNNING > FAILED|COMPLETING", [], "Nonsense", "0:0"),
            "reason=Nonsense, and that is none",
        ),
        ("RUNNING > CANCELLED", [], "burst_buffer/datawarp:~no~room", "0:0", ""),
        (
            *("RUNNING > CANCELLED", [], "no~burst_buffer/datawarp", "0:0"),
            "reason=no burst_buffer/datawarp, and that is none",
        ),
        # Exit codes, at the end alone.
        ("RUNNING > COMPLETED|COMPLETING", [], "None", "77:77", ""),
        ("RUNNING > COMPLETED", [], "None", "77:77", ""),
        ("COMPLETED|COMPLETING > PENDING", [], "None", "77:77", ""),
        ("COMPLETED|COMPLETING > COMPLETED", [], "None", "0:0", ""),
        ("COMPLETED|COMPLETING > COMPLETED", [], "None", "1:0", "exit_code=1:0, recorded 0:0"),
        ("COMPLETED|COMPLETING > COMPLETED", [], "None", "0:9", "exit_code=0:9, recorded 0:0"),
        ("COMPLETED|COMPLETING > COMPLETED", [256], "None", "0:0", "exit_code=0:0, recorded 1:0"),
        ("FAILED|COMPLETING > FAILED", [256, 9], "NonZeroExitCode", "1:0", ""),
        ("FAILED|COMPLETING > FAILED", [256, 9], "NonZeroExitCode", "0:9", ""),
        (
            *("FAILED|COMPLETING > FAILED", [256, 9], "NonZeroExitCode", "0:0"),
            "exit_code=0:0, recorded 0:9 or 1:0",
        ),
        ("FAILED|COMPLETING > FAILED", [], "NonZeroExitCode", "0:0", ""),
        (
            *("OUT_OF_MEMORY|COMPLETING > OUT_OF_MEMORY", [], "OutOfMemory", "0:9"),
            "exit_code=0:9, recorded 0:0",
        ),
        ("OUT_OF_MEMORY|COMPLETING > OUT_OF_MEMORY", [256], "OutOfMemory", "0:0", ""),
        *(
            (f"{state}|COMPLETING > {state}", [512], reason, code, told)
            for state, reason in (
                *(("NODE_FAIL", "NodeDown"), ("TIMEOUT", "TimeLimit")),
                *(("CANCELLED", "None"), ("DEADLINE", "DeadLine")),
            )
            for code, told in (
                *(("2:0", ""), ("0:0", ""), ("0:9", ""), ("0:15", "")),
                ("0:2", "exit_code=0:2, recorded 0:0 or 0:15 or 0:9 or 2:0"),
            )
        ),
    ],
)
def test_reasons_and_exit_codes_of_jobs_follow_from_what_was_told(
    change: str, codes: Sequence[int], reason: str, code: str, told: str
) -> None:
    """By what slurmctld got as the job's statuses, of this run of it and of no other."""
    state = f"state {change} job=1 reason={reason} exit_code={code}"
    got = "; ".join(
        f"{MARK}: REQUEST_COMPLETE_BATCH_SCRIPT~received job=1 job_rc={each}" for each in codes
    )
    start = "state PENDING > RUNNING job=1"
    other = f"{MARK}: REQUEST_COMPLETE_JOB_ALLOCATION~received job=1 job_rc=768"
    found = [
        each.text
        for each in nonsense(
            acts_of(f"{start}; {start}; {state}"),
            acts_of(f"{start}; {other}; {start}; {got}; {state}; {start}; {other}"),
        )
    ]
    assert found == ([f"job_state {change}: {told}"] if told else [])


# Facts between processes.

_BUILT: Final = {"b": "switch_p_build_jobinfo step=1.0", "l": "srun: REQUEST_LAUNCH_TASKS step=1.0"}
_TASKS: Final = {
    "f": "stepd: fork step=1.0 node=n1",
    "a": "task: switch_p_job_attach step=1.0 node=n1",
}


@pytest.mark.parametrize(
    ("recorded", "run", "broken", "kept"),
    [
        ("b l", "b l", 0, 1),
        ("b l", "l b", 1, 1),
        ("b l", "l", 1, 1),
        ("b l", "b", 0, 1),
        ("b l", "", 0, 0),
        ("l b", "l b", 0, 1),
        ("l b", "b l", 0, 1),
        ("l", "l b", 0, 0),
        ("b", "l b", 0, 0),
        ("b l", "b l b", 0, 1),
        ("b l", "l b l", 1, 1),
        ("f f a a", "f f a a", 0, 1),
        ("f f a a", "f a f a", 1, 1),
        ("f a f a", "f a f a", 0, 1),
    ],
)
def test_a_fact_is_held_where_the_recording_keeps_it(
    recorded: str, run: str, broken: int, kept: int
) -> None:
    """Of the first of its acts, or the last, as the fact says; what is missing later is told so."""
    words = _BUILT | _TASKS
    theirs, ours = (
        acts_of("; ".join(words[each] for each in side.split())) for side in (recorded, run)
    )
    assert len(list(broken_facts(ours, theirs))) == broken
    assert kept_facts(ours, theirs) == kept


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.text)
def test_each_fact_is_one_of_a_recording_and_told_where_it_is_turned_round(fact: Any) -> None:
    """A fact that no recording has would hold nothing."""
    for name in NAMES:
        story = our_acts(name)
        before = [act for act in story.acts if fact.before(act)]
        after = [act for act in story.acts if fact.after(act)]
        if before and after and fact.key(before[0]) == fact.key(after[0]) is not None:
            break
    else:
        pytest.fail("no run has it")
    assert not list(broken_facts(story, story))
    gone = {id(act) for act in before}
    late = [attrs.evolve(act, place=act.place + 1_000_000) for act in before]
    turned = story.having([*(act for act in story.acts if id(act) not in gone), *late])
    assert fact in [each.fact for each in broken_facts(turned, story)]


def our_acts(name: str) -> Story:
    """Return the story of the run of a recording."""
    from simctl.testing.conform.ours import jobs_of, our_story  # noqa: PLC0415

    events = held(name).events
    return our_story(events, {job: job for job in jobs_of(events)})


# Races.


@pytest.mark.parametrize(
    ("act", "strand"),
    [
        ("appliance job 1: dw_real_size", "appliance job 1 size"),
        ("appliance job 1: dw_setup", "appliance job 1"),
        ("slurmctld: bb_p_load_state", "slurmctld burst buffers"),
        ("slurmctld: init burst_buffer/datawarp", "slurmctld burst buffers"),
        ("slurmctld: init switch/none", "slurmctld"),
        ("slurmctld job 1: bb_p_load_state", "slurmctld job 1"),
        ("slurmd@n1: init burst_buffer/datawarp", "slurmd@n1"),
    ],
)
def test_what_threads_of_plugins_do_is_apart(act: str, strand: str) -> None:
    """Of slurmctld, and of the appliance's programs."""
    for sides in ((acts_of(act), acts_of("")), (acts_of(""), acts_of(act))):
        assert [each.strand for side in threads_apart(*sides) for each in side.acts] == [strand]


@pytest.mark.parametrize(
    ("run", "recorded", "left"),
    [
        ("ask =0; ask =0; ask =1", "ask =0; ask =1", (2, 2)),
        ("ask =0; ask =1", "ask =0; ask =0; ask =1", (2, 2)),
        ("ask =0; ask =1; ask =1", "ask =0; ask =1", (3, 2)),
        ("ask =0; ask =1", "ask =1", (2, 1)),
        ("ask =0; begin; begin; ask =1", "ask =0; begin; ask =1", (4, 3)),
        ("ask =0; ask test_only=1 =0; ask =1", "ask =0; ask =1", (3, 2)),
        ("slurmctld job 1: ask =0; slurmctld job 1: ask =0", "ask =0", (2, 1)),
    ],
)
def test_a_pass_more_is_left_out_where_both_have_had_one_like_it(
    run: str, recorded: str, left: tuple[int, int]
) -> None:
    """Not that a buffer is ready, nor what is no question."""
    settled = polls_between(acts_of(run), acts_of(recorded))
    assert tuple(len(each.acts) for each in settled) == left


_TOLD_APART: Final = ["tasks=0", "tasks=1", "tasks=2"]


@pytest.mark.parametrize(
    ("strand", "ends_s", "run"),
    [
        ("stepd[1.0]@n1", (1.0, 1.4, 1.49), _TOLD_APART),
        ("stepd[1.0]@n1", (1.0, 1.4, 1.5), ["tasks=0,1", "tasks=2"]),
        ("slurmd@n1", (1.0, 1.0, 1.0), ["tasks=0,1", "tasks=2"]),
    ],
)
def test_ends_of_tasks_are_told_apart_within_half_a_second(
    strand: str, ends_s: Sequence[float], run: Sequence[str]
) -> None:
    """By when they ended in the recording, on that node and in that step."""
    where = "step=1.0 node=n1"
    ends = [f"{MARK}: task~ended {where} when_s={at}" for at in ends_s]
    ends += [f"{MARK}: task~ended step=1.0 node=n2 when_s=9"]
    ends += [f"{MARK}: task~ended step=2.0 node=n1 when_s=9"]
    last = f"{strand}: done {where}; {strand}: fini {where}"
    recorded = f"{strand}: exit tasks=2,0 {where}; {strand}: fini {where}; {strand}: exit tasks=1"
    settled = exits_apart(
        acts_of(f"{strand}: exit tasks=0,1 {where}; {strand}: exit tasks=2 {where}; {last}"),
        acts_of(f"{recorded} {where}; {strand}: done {where}; {'; '.join(ends)}"),
    )
    told = [[act.key for act in side.acts if act.name == _SHORT["exit"]] for side in settled]
    assert told == [run, _TOLD_APART if run is _TOLD_APART else ["tasks=2,0", "tasks=1"]]
    if run is _TOLD_APART:
        for side in settled:
            names = [act.name for act in side.acts if act.strand == strand]
            assert names.index(_SHORT["done"]) > names.index(_SHORT["exit"]) + 2
            assert "fini" not in names[names.index(_SHORT["exit"]) : names.index(_SHORT["done"])]


def test_ends_of_tasks_that_are_told_alike_stay_as_they_are() -> None:
    """In groups, with what comes between."""
    where = "stepd[1.0]@n1"
    story = acts_of(f"{where}: exit tasks=0,1; {where}: fini; {where}: done")
    assert exits_apart(story, story) == (story, story)


def _node(*states: str, node: str = "n1") -> str:
    return "; ".join(
        f"node {node}: node {before} > {after} node={node}" for before, after in pairwise(states)
    )


_ALONE: Final = (
    "slurmd@n1: launch job=1 node=n1; slurmd@n1: gone job=1 node=n1; "
    "slurmd@n1: launch job=2 node=n1; slurmd@n1: gone job=2 node=n1"
)
_TOGETHER: Final = (
    "slurmd@n1: launch job=1 node=n1; stepd[2.0]@n1: launch job=2 node=n1; "
    "slurmd@n1: gone job=1 node=n1; slurmd@n1: gone job=2 node=n1"
)
_ELSEWHERE: Final = (
    "slurmd@n1: launch job=1 node=n1; slurmd@n2: launch job=2 node=n2; "
    "slurmctld: launch job=2 node=n1; slurmd@n1: launch node=n1"
)
_IN_ONE: Final = ("ALLOCATED", "IDLE|COMPLETING", "IDLE")
_IN_TWO: Final = ("ALLOCATED", "ALLOCATED|COMPLETING", "ALLOCATED", "IDLE|COMPLETING", "IDLE")


@pytest.mark.parametrize(
    ("beside", "shared"), [(_ALONE, False), (_TOGETHER, True), (_ELSEWHERE, False)]
)
def test_a_node_is_shared_by_jobs_that_are_there_at_the_same_time(
    beside: str, shared: bool
) -> None:
    """Until the epilog of the first; through which states it goes then depends on who is first."""
    for one, other in ((_IN_ONE, _IN_TWO), (_IN_TWO, _IN_ONE)):
        for sides in ((f"{_node(*one)}; {beside}", _node(*other)), (_node(*one), _node(*other))):
            mine, others = node_records(acts_of(sides[0]), acts_of(sides[1]))
            of_node = [
                [each for each in told_by(side) if each.startswith("node n1:")]
                for side in (mine, others)
            ]
            assert (of_node[0] == of_node[1]) is (shared and beside in sides[0])


_JOBS: Final = "node n1: node_state "
_HEALTH: Final = "node n1 health: node_state "


@pytest.mark.parametrize(
    ("states", "seen"),
    [
        (("IDLE", "ALLOCATED"), [f"{_JOBS}IDLE > ALLOCATED"]),
        (("ALLOCATED|DRAIN", "IDLE|DRAIN|COMPLETING"), [f"{_JOBS}ALLOCATED > IDLE|COMPLETING"]),
        (("IDLE|DRAIN|COMPLETING", "IDLE|DRAIN"), [f"{_JOBS}IDLE|COMPLETING > IDLE"]),
        (
            ("ALLOCATED", "IDLE|DRAIN"),
            [f"{_HEALTH}up > up|DRAIN", f"{_JOBS}ALLOCATED > IDLE"],
        ),
        (("IDLE", "DOWN"), [f"{_HEALTH}up > DOWN"]),
        (("ALLOCATED|COMPLETING", "DOWN|COMPLETING"), [f"{_HEALTH}up > DOWN"]),
        (("UNKNOWN", "IDLE"), [f"{_HEALTH}UNKNOWN > up"]),
    ],
)
def test_where_states_differ_health_and_jobs_are_told_apart(
    states: Sequence[str], seen: Sequence[str]
) -> None:
    """Of a node that is not up only its health is; where both sides agree all is left."""
    story = acts_of(_node(*states))
    assert node_records(story, story) == (story, story)
    for sides in ((story, acts_of("")), (acts_of(""), story)):
        assert [each for side in node_records(*sides) for each in told_by(side)] == seen


def test_of_a_node_that_jobs_share_it_counts_that_it_is_in_use() -> None:
    """And once, until it is free, that a job is COMPLETING."""
    states = ("IDLE", *_IN_TWO, "ALLOCATED", "ALLOCATED|COMPLETING", "IDLE")
    told = told_by(node_records(acts_of(f"{_node(*states)}; {_TOGETHER}"), acts_of(""))[0])
    use = [each.removeprefix(_JOBS) for each in told if each.startswith(_JOBS)]
    once = ["free > in use", "a job is COMPLETING", "in use > free"]
    assert use == once * 2


@pytest.mark.parametrize(
    ("states", "left"),
    [
        (("IDLE", "IDLE|NO_RESPOND", "IDLE"), 0),
        (("DOWN", "DOWN|NO_RESPOND", "DOWN"), 0),
        (("IDLE", "IDLE|NO_RESPOND", "DOWN|NO_RESPOND"), 2),
        (("IDLE", "IDLE|NO_RESPOND"), 1),
        (("IDLE", "IDLE|DRAIN", "IDLE"), 2),
        (("IDLE", "IDLE|NO_RESPOND", "ALLOCATED"), 2),
        (("IDLE", "IDLE|NO_RESPOND", "IDLE", "ALLOCATED"), 1),
    ],
)
def test_a_node_blinks_that_answers_again_as_it_was(states: Sequence[str], left: int) -> None:
    """And what is no node does not."""
    story = acts_of(_node(*states))
    assert [len(side.acts) for side in blinks(story, story)] == [left, left]
    other = acts_of(_node(*states).replace("node n1: ", "job 1: "))
    assert blinks(other, other) == (other, other)


_BUFFER: Final = "appliance job 1: dw_setup job=1 =0; "


@pytest.mark.parametrize(
    ("run", "recorded", "same"),
    [
        ("dw_real_size job=1 =0", "dw_real_size job=1 =1", True),
        ("dw_teardown job=1 =0", "dw_teardown job=1 =1", True),
        (f"{_BUFFER}dw_real_size job=1 =0", f"{_BUFFER}dw_real_size job=1 =1", False),
        (f"{_BUFFER}dw_real_size job=2 =0", f"{_BUFFER}dw_real_size job=2 =1", True),
        (
            f"{_BUFFER.replace('=0', '=1')}dw_real_size job=1 =0",
            f"{_BUFFER.replace('=0', '=1')}dw_real_size job=1 =1",
            True,
        ),
        (
            f"{_BUFFER}dw_teardown job=1 =0; dw_teardown job=1 =0",
            f"{_BUFFER}dw_teardown job=1 =0; dw_teardown job=1 =1",
            True,
        ),
        ("dw_data_in job=1 =0", "dw_data_in job=1 =1", False),
        ("dw_data_in job=1 =0", "dw_data_in job=1 =None", True),
        ("dw_data_in job=1 =None", "dw_data_in job=1 =1", True),
        ("slurmctld: dw_data_in job=1 =0", "slurmctld: dw_data_in job=1 =None", False),
    ],
)
def test_what_the_stand_in_said_of_no_buffer_does_not_count(
    run: str, recorded: str, same: bool
) -> None:
    """Nor how a script of it was killed."""
    sides = [acts_of(_at_the_appliance(each)) for each in (run, recorded)]
    mine, others = stand_in(*sides)
    assert ([act.result for act in mine.acts] == [act.result for act in others.acts]) is same


def _at_the_appliance(text: str) -> str:
    return "; ".join(
        each if ": " in each else f"appliance job 1: {each}" for each in text.split("; ")
    )


@pytest.mark.parametrize(("result", "left"), [("None", 1), ("0", 2)])
def test_who_waited_for_a_script_that_is_killed_need_not_ask_for_the_size(
    result: str, left: int
) -> None:
    """Else it has to."""
    ours = acts_of(
        f"appliance job 1: dw_data_in job=1 ={result}; appliance job 1 size: dw_real_size job=1"
    )
    theirs = acts_of("appliance job 1: dw_data_in job=1 =0")
    for sides in ((ours, theirs), (theirs, ours)):
        assert sorted(len(side.acts) for side in stand_in(*sides)) == sorted((left, 1))


# Passes.


@pytest.mark.parametrize(
    ("acts", "told"),
    [
        ("load; ask", [True]),
        ("ask", [False]),
        ("load; ask; ask", [True, False]),
        ("load; ask; load; ask", [True, True]),
        ("load; submitted; ask", [False]),
        ("submitted; load; ask", [True]),
        ("load_of_start; ask", [False]),
        ("load; ask_tests; ask", [False, True]),
        ("try; setup", [True]),
        ("setup", [False]),
        ("try; submitted; setup", [False]),
        ("try; setup; setup", [True, True]),
        ("load; setup", [False]),
        ("try; ask", [False]),
    ],
)
def test_a_pass_is_told_with_what_it_led_to(acts: str, told: Sequence[bool]) -> None:
    """One since the submission, and since the job was asked about last."""
    words = {
        "load": "bb_p_load_state init_config=0",
        "load_of_start": "bb_p_load_state init_config=1",
        "ask": "ask job=1 test_only=0",
        "ask_tests": "ask job=1 test_only=1",
        "submitted": "bb_p_job_validate2 job=1",
        "try": "bb_p_job_try_stage_in",
        "setup": "dw_setup job=1",
    }
    story = acts_of("; ".join(words[each] for each in acts.split("; ")))
    for settled in passes_told(story, story):
        after = [
            bool(act.args.keys() & {"after load_state", "after try_stage_in"})
            for act in settled.acts
            if act.name in ("dw_setup", _SHORT["ask"])
        ]
        assert after == told
        assert [act.name for act in settled.acts if act.name == "bb_p_job_try_stage_in"] == []
        assert ("load_of_start" in acts) == any("load_state" in act.name for act in settled.acts)


# What stands beside what, and how it differs.


@pytest.mark.parametrize(
    ("run", "recorded", "told"),
    [
        ("a; b", "a; b", []),
        ("a", "a; b", ["missing call"]),
        ("a; b", "a", ["extra call"]),
        ("b; a", "a; b", ["order"]),
        ("b; a; b", "a; b; a", ["missing call", "extra call"]),
        ("b; b; a", "a; b; b", ["order"]),
        ("a; a; b", "b; a", ["order", "extra call"]),
        ("b; a", "a; a; b", ["order", "missing call"]),
        ("c; a; b", "a; b; d", ["missing call", "extra call"]),
    ],
)
def test_an_act_is_missing_or_too_much_or_comes_elsewhere(
    run: str, recorded: str, told: Sequence[str]
) -> None:
    """Each told once, and as often as there are of it."""
    found = compare(acts_of(run), acts_of(recorded)).differences
    assert sorted(each.kind for each in found) == sorted(told)


@pytest.mark.parametrize(
    ("run", "recorded", "told"),
    [
        ("a user=root", "a user=root", []),
        ("a user=root", "a user=alice", ["user"]),
        ("a arg=1", "a arg=1", []),
        ("a arg=1", "a arg=2", ["argument"]),
        ("a", "a arg=2", ["argument"]),
        ("a arg=1", "a", []),
        ("a pgid=7", "a pgid=9", []),
        ("a pgid=0", "a pgid=9", ["argument"]),
        ("a pgid=7", "a pgid=0", ["argument"]),
        ("a image_dir=/x/7", "a image_dir=/y/7", []),
        ("a image_dir=/x/7", "a image_dir=/x/8", ["argument"]),
        ("a image_dir=7", "a image_dir=/y/7", ["argument"]),
        ("a =0", "a =0", []),
        ("a =0", "a =1", ["result"]),
        ("a", "a =0", ["result"]),
    ],
)
def test_an_act_differs_in_user_argument_and_result(
    run: str, recorded: str, told: Sequence[str]
) -> None:
    """Arguments that the recording does not tell do not count."""
    found = compare(acts_of(run), acts_of(recorded)).differences
    assert [each.kind for each in found] == told


@pytest.mark.parametrize(
    ("mine", "recorded", "same"),
    [
        *((0, "some number", True), (None, "some number", False)),
        *((4, (4, 5), True), (6, (4, 5), False), ((4, 5), (4, 5), True)),
    ],
)
def test_an_answer_may_be_any_that_the_recording_leaves_open(
    mine: Any, recorded: Any, same: bool
) -> None:
    """One of several, or a number that is not told."""
    sides = [
        story.having(attrs.evolve(act, result=result) for act in story.acts)
        for story, result in ((acts_of("a"), mine), (acts_of("a"), recorded))
    ]
    assert [each.kind for each in compare(*sides).differences] == ([] if same else ["result"])


def test_like_acts_stand_beside_each_other() -> None:
    """Those that agree in result and user, where as many do either way."""
    for run, recorded in (("a =0; a =1", "a =1"), ("a user=x; a user=y", "a user=y")):
        pairs = list(align(acts_of(run).acts, acts_of(recorded).acts))
        assert [other is not None for _, other in pairs] == [False, True]


# Times.


@pytest.mark.parametrize(
    ("mine_s", "other_s", "apart"),
    [
        (0.0, SLACK_S, False),
        (0.0, SLACK_S + 0.001, True),
        (SLACK_S + 0.001, 0.0, True),
        (10.0, 10 * FACTOR + SLACK_S, False),
        (10 * FACTOR + SLACK_S + 0.001, 10.0, True),
        (-5.0, SLACK_S, False),
        (-5.0, SLACK_S + 0.001, True),
    ],
)
def test_times_agree_up_to_a_factor_and_some_seconds(
    mine_s: float, other_s: float, apart: bool
) -> None:
    """A run and its recording come from clocks of their own."""
    assert unlike(mine_s, other_s, FACTOR, SLACK_S) is apart


def _limit(*moments_s: float) -> str:
    states = ("PENDING > RUNNING", "RUNNING > TIMEOUT")
    return "; ".join(
        f"job: state {states[at % 2]} job=1 when_s={moment}" for at, moment in enumerate(moments_s)
    )


def _stage_out(*moments_s: float) -> str:
    names = ("bb_p_job_start_stage_out", "dw_teardown", "dw_teardown")
    return "; ".join(
        f"job: {name} job=1 when_s={moment}" for name, moment in zip(names, moments_s, strict=True)
    )


def _size(*moments_s: float) -> str:
    names = ("dw_setup", "dw_real_size")
    return "; ".join(
        f"job: {name} job=1 when_s={moment}" for name, moment in zip(names, moments_s, strict=True)
    )


@pytest.mark.parametrize(
    ("run", "recorded", "told"),
    [
        (_limit(0, 60), _limit(0, 60), 0),
        (_limit(0, 60), _limit(0, 121.5), 0),
        (_limit(0, 60), _limit(0, 121.6), 1),
        (_limit(0, 121.6), _limit(0, 60), 1),
        (_limit(0, 121.6), "", 0),
        ("", _limit(0, 121.6), 0),
        # Each run of a job by itself.
        (_limit(0, 60, 100, 160), _limit(0, 60, 500, 560), 0),
        (_limit(0, 60, 100, 160), _limit(0, 60, 500, 700), 1),
        # The first that follows, and not the last.
        (_stage_out(0, 10, 20), _stage_out(0, 10, 100), 0),
        (_stage_out(0, 10, 100), _stage_out(0, 100, 100), 1),
        # From the first that begins it.
        ("job: dw_setup job=1; " + _size(50, 60), "job: dw_setup job=1; " + _size(10, 20), 1),
        (_size(50, 60), _size(10, 20), 0),
    ],
)
def test_a_wait_takes_about_as_long_in_each_run_of_a_job(
    run: str, recorded: str, told: int
) -> None:
    """From what begins it to what ends it."""
    assert len(list(other_times(acts_of(run), acts_of(recorded), []))) == told


@pytest.mark.parametrize(
    ("name", "end_s", "told"),
    [("a", 34.0, 0), ("a", 34.1, 1), ("fini", 99.0, 0), ("slurm_ckpt_free_job", 99.0, 0)],
)
def test_the_whole_takes_about_as_long(name: str, end_s: float, told: int) -> None:
    """But for what comes when old jobs are forgotten, and what one side lacks."""
    mine = acts_of(f"a when_s=100; a when_s=110; {name} when_s=110; b when_s=999").acts
    others = acts_of(f"a when_s=0; a when_s=9; {name} when_s={end_s}").acts
    pairs = list(zip(mine, (*others, None), strict=True))
    assert len(list(other_times(acts_of(""), acts_of(""), pairs))) == told


# One turn of slurmctld.


@pytest.mark.parametrize(
    ("run", "recorded", "told"),
    [
        ("j1: a; j2: b", "j1: a; j2: b", 0),
        ("j2: b; j1: a", "j1: a; j2: b", 1),
        ("j2: b; j1: a when_s=0.02", "j1: a; j2: b", 1),
        ("j2: b; j1: a when_s=0.021", "j1: a; j2: b", 0),
        ("j2: b; j1: a", "j1: a; j2: b when_s=0.021", 0),
        ("j2: b; srun: send kind=message user=SlurmUser; j1: a", "j1: a; j2: b", 0),
        ("j2: b; srun: send kind=message user=root; j1: a", "j1: a; j2: b", 1),
        ("j2: b; j3: switch_p_part_comp; j1: a", "j1: a; j2: b", 0),
        ("j2: b; j1: a", "j1: a; j3: switch_p_part_comp; j2: b", 0),
        ("j2: slurm_ckpt_free_job; j1: a", "j1: a; j2: slurm_ckpt_free_job", 0),
        ("j2: slurm_ckpt_free_job; j3: b; j1: a", "j1: a; j3: b", 1),
        ("slurmd@n1: b; j1: a", "j1: a; slurmd@n1: b", 0),
        ("node n1: b; j1: a", "j1: a; node n1: b", 1),
    ],
)
def test_what_one_turn_does_keeps_its_order(run: str, recorded: str, told: int) -> None:
    """A message, an epilog's end or a pause ends it."""
    mine, others = (
        acts_of(
            each.replace("j1:", "slurmctld job 1:")
            .replace("j2:", "slurmctld job 2:")
            .replace("j3:", "slurmctld job 3:")
        ).acts
        for each in (run, recorded)
    )
    pairs = [
        (next((each for each in mine if each.what == other.what), None), other) for other in others
    ]
    assert len(list(swapped(mine, others, pairs))) == told


_HERE: Final = "job=1 step=1.0 node=n1"
_JOB: Final = "job: state"


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        # Facts: what may not be turned round. Waits: what may not take a hundred times as long.
        (f"slurmctld: REQUEST_STEP_COMPLETE~received {_HERE}", "switch_p_job_step_complete", "f"),
        (f"slurmctld: REQUEST_STEP_COMPLETE {_HERE}", "switch_p_job_step_complete", ""),
        (f"slurmd: REQUEST_LAUNCH_TASKS~received {_HERE}", "stepd: init", "f"),
        (f"slurmd: REQUEST_LAUNCH_TASKS~received {_HERE}", "srun: init", ""),
        (f"slurmd: REQUEST_LAUNCH_TASKS~received {_HERE}", "stepd: fini", ""),
        (f"slurmd: REQUEST_LAUNCH_TASKS~received {_HERE}", "stepd: init step=2.0", ""),
        (f"slurmd: REQUEST_LAUNCH_TASKS~received {_HERE}", "stepd: init node=n2", ""),
        ("slurmd: REQUEST_LAUNCH_TASKS~received node=n1 step=", "stepd: init step=", ""),
        ("slurmd: REQUEST_LAUNCH_TASKS~received step=1.0 node=", "stepd: init node=", ""),
        ("slurmctld: REQUEST_BATCH_JOB_LAUNCH job=1", "stepd: init step=1.batch", "f"),
        ("slurmctld: REQUEST_BATCH_JOB_LAUNCH job=1", "stepd: init step=1.0", ""),
        ("slurmctld: REQUEST_BATCH_JOB_LAUNCH job=1", "stepd: fini step=1.batch", ""),
        ("slurmctld: REQUEST_BATCH_JOB_LAUNCH job=1", "stepd: init step=1.batch job=2", ""),
        (f"{_JOB} PENDING > RUNNING job=1", "switch_p_build_jobinfo", "f"),
        (f"{_JOB} RUNNING > PENDING job=1", "switch_p_build_jobinfo", ""),
        ("node n1: node PENDING > RUNNING job=1", "switch_p_build_jobinfo", ""),
        ("slurmd: prolog job=1 node=n1", "stepd: init", "f"),
        ("slurmd: prolog node=n1", "stepd: init", ""),
        ("slurmd: prolog job=1", "stepd: init", ""),
        ("slurmd: prolog job=2 node=n1", "stepd: init job=1", ""),
        (f"slurmd: gone~x {_HERE}", f"{_JOB} COMPLETED|COMPLETING > COMPLETED", ""),
        (
            f"slurmctld: MESSAGE_EPILOG_COMPLETE~received {_HERE}",
            f"{_JOB} COMPLETED|COMPLETING > COMPLETED",
            "f",
        ),
        (
            f"slurmctld: MESSAGE_EPILOG_COMPLETE~received {_HERE}",
            f"{_JOB} COMPLETED|COMPLETING > FAILED|COMPLETING",
            "",
        ),
        (
            f"slurmctld: MESSAGE_EPILOG_COMPLETE~received {_HERE}",
            f"{_JOB} RUNNING > COMPLETED",
            "",
        ),
        (
            f"slurmctld: MESSAGE_EPILOG_COMPLETE~received {_HERE}",
            "node n1: node IDLE|COMPLETING > IDLE",
            "",
        ),
        (f"stepd: fork {_HERE}", "task: task~ended status=0", "w"),
        (f"stepd: fork {_HERE}", "task: task~ended status=256", ""),
        (f"stepd: fork {_HERE}", "task: exec status=0", ""),
        (f"stepd: exec {_HERE}", "task: task~ended status=0", ""),
        (f"stepd: fork {_HERE}", "task: task~ended status=0 node=n2", ""),
        (f"stepd: switch_p_job_postfini {_HERE}", "stepd: done", "w"),
        (f"stepd: switch_p_job_postfini {_HERE}", "srun: done", ""),
        (f"slurmd: REQUEST_TERMINATE_JOB~received {_HERE}", "task: task~ended status=9", "w"),
        (f"slurmd: REQUEST_KILL_TIMELIMIT~received {_HERE}", "task: task~ended status=9", "w"),
        (f"slurmd: REQUEST_TERMINATE_JOB {_HERE}", "task: task~ended status=9", ""),
        (f"{_JOB} RUNNING > FAILED|COMPLETING job=1", f"{_JOB} FAILED|COMPLETING > FAILED", "w"),
        (f"{_JOB} RUNNING > FAILED job=1", f"{_JOB} FAILED|COMPLETING > FAILED", ""),
        (f"{_JOB} PENDING > RUNNING job=1", f"{_JOB} RUNNING > TIMEOUT|COMPLETING", "w"),
        (f"{_JOB} PENDING > RUNNING job=1", f"{_JOB} SUSPENDED > TIMEOUT|COMPLETING", ""),
        (f"{_JOB} PENDING > RUNNING job=1", f"{_JOB} RUNNING > CANCELLED|COMPLETING", ""),
        (f"{_JOB} REQUEUED > PENDING job=1", f"{_JOB} PENDING > RUNNING", "w"),
        (f"{_JOB} COMPLETED > PENDING job=1", f"{_JOB} PENDING > RUNNING", ""),
        (
            "node n1: node IDLE > IDLE|NO_RESPOND node=n1",
            "node n1: node IDLE|NO_RESPOND > DOWN|NO_RESPOND",
            "w",
        ),
        (
            "node n1: node IDLE > IDLE|NO_RESPOND node=n1",
            "node n1: node IDLE|NO_RESPOND > IDLE",
            "",
        ),
        (
            "node n1: node IDLE > IDLE|NO_RESPOND node=n1",
            "node n1: node IDLE|NO_RESPOND > DOWN|NO_RESPOND node=n2",
            "",
        ),
        ("node n1: call IDLE > IDLE|NO_RESPOND", "call IDLE|NO_RESPOND > DOWN", ""),
    ],
)
def test_what_two_acts_owe_each_other(first: str, second: str, told: str) -> None:
    """The second has the job, step and node of the first, unless it says others."""
    mine = dict(each.split("=") for each in first.split() if "=" in each)
    own = {each.split("=")[0] for each in second.split() if "=" in each}
    second += "".join(
        f" {key}={value}"
        for key, value in mine.items()
        if key in ("job", "step", "node") and key not in own
    )
    recorded = acts_of(f"{first} when_s=0; {second} when_s=1")
    turned, late = acts_of(f"{second}; {first}"), acts_of(f"{first} when_s=0; {second} when_s=100")
    assert bool(list(broken_facts(turned, recorded))) is ("f" in told)
    assert bool(list(other_times(late, recorded, []))) is ("w" in told)
    assert not list(broken_facts(recorded, recorded))
    assert not list(other_times(recorded, recorded, []))
