"""Exact places of a run in a timeline, and the deeds that a session saves."""

import pytest

from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from tests.cluster import TWO_NODES, run
from tests.entries import typed


def test_a_command_at_a_place_between_turns_is_typed_at_its_time() -> None:
    """The clock is put to `at` first, and never beyond the next turn or back."""
    ran = typed("{place: turn 1, at: 5s, as: alice, run: squeue}", "7s alice squeue")
    begun = [event.time_us for event in ran.all("squeue", phase="exit")]
    # Daemons start at 0: time cannot pass before that.
    assert begun[0] < 1_000_000
    assert begun[1] >= 7_000_000


def test_the_run_goes_on_to_its_last_place() -> None:
    """`stay` keeps a run going that would end, with timers that alone keep nothing alive."""
    text = "timeline: [{at: 0s, as: alice, run: squeue}"
    short = run(f"{text}]\n")
    turns = short.result.counts["turns"]
    longer = run(f"{text}, {{place: turn {turns + 3}, at: 1:00:00, stay: true}}]\n")
    assert short.result.end_time_us < longer.result.end_time_us
    assert longer.result.held


def test_a_place_that_never_comes_is_told() -> None:
    """An entry for an event that the run does not have is a broken expectation, not a hang."""
    ran = run("timeline: [{place: event 99999, as: alice, run: squeue}]\n")
    assert not ran.result.held
    assert "comes to event 99999" in ran.result.expectations[0].text


def test_an_event_is_a_place_before_its_process_goes_on() -> None:
    """What happens there comes right behind it in the trace."""
    first = typed("0s alice srun -n1 sleep 5")
    seq = first.first("switch_p_job_init")
    ran = typed("0s alice srun -n1 sleep 5", f"{{place: event {seq}, fault: {{crash: n1}}}}")
    assert ran.all("fault")[0].seq == seq + 1
    assert not ran.all("switch_p_job_attach", node="n1")


def test_files_and_programs_may_come_later() -> None:
    """A user writes a script, says what a program does, and submits it."""
    ran = run(
        "timeline:\n"
        '  - {at: 1s, as: alice, files: {late.sh: "#!/bin/bash\\nsrun ./late\\n"}}\n'
        "  - {at: 1s, programs: {./late: {runs: 3s, exit: 4}}}\n"
        "  - {at: 2s, as: alice, run: sbatch late.sh}\n"
        "expect: [{job: 1, state: FAILED, exit_code: '4:0'}]\n"
    )
    assert ran.result.held


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{place: here, run: squeue}", "expected a place such as event 12"),
        ("{place: turn 0, run: squeue}", "expected a place such as event 12"),
        ("{place: event 3, at: 5s, run: squeue}", "`at` goes with `place: turn N`"),
        ("{place: event 3, when: job_state, run: squeue}", "a place is exact"),
        ("{place: turn 3, each: true, run: squeue}", "`each` goes with `when`"),
        ("{at: 0s, answer: {return: 0}}", "`answer` is for one call: give its `place`"),
        ("{place: turn 3, answer: {return: 0}}", "`answer` goes with `place: call N`"),
        ("{place: call 3, answer: {}}", "missing key: `return`, `errno` or `delay`"),
        ("{place: call 3, answer: {delay: 3s, return: 1}}", "`delay` stands alone"),
        ("{place: call 3, pick: 2}", "`pick` goes with `place: turn N`"),
        ("{at: 3s, pick: 2}", "`pick` is for one turn: give its `place`"),
        ("{at: 0s, stay: false}", "leave it out"),
        ("{at: 0s, as: alice, files: {/etc/x: y}}", "is root's to write"),
        ("{at: 0s, as: alice, programs: {./x: {runs: 1s}}}", "`as` goes with `run`"),
    ],
)
def test_a_mistake_is_told_where_it_stands(entry: str, message: str) -> None:
    """Each wrong combination has its line and says what would do."""
    with pytest.raises(ScenarioErrors) as caught:
        read_scenario(TWO_NODES + f"timeline: [{entry}]\n", file="s.yaml")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("skip", "at_s"), [(0, [1, 2, 3]), (1, [2, 3]), (2, [3]), (3, [])], ids=str
)
def test_as_many_events_pass_as_an_entry_skips(skip: int, at_s: list[int]) -> None:
    """It happens at the next, or with `each` at all that follow."""
    lines = "".join(f"  - {{at: {at}s, run: sbatch --wrap true}}\n" for at in (1, 2, 3))
    for each in ("true", "false"):
        ran = run(
            f"timeline:\n{lines}  - {{when: REQUEST_SUBMIT_BATCH_JOB phase=receive, skip: {skip}, "
            f"each: {each}, run: squeue}}\n"
        )
        found = [e.time_us // 1_000_000 for e in ran.all("squeue", kind="command", phase="exit")]
        assert found == at_s[: None if each == "true" else 1]
