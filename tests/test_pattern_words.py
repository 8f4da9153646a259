"""A word in a pattern that no event can have is a mistake wherever the pattern is written."""

from pathlib import Path
from typing import Any

import pytest

from simctl import cli
from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.status import InputError
from simctl.testing import run_scenario
from tests.repl import Held

SCENARIO = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]"}]
users: {alice: 1001}
files:
  job.sh: |
    #!/bin/bash
    #SBATCH -N2
    srun ./app
programs: {./app: {runs: 5s}}
timeline:
  - {at: 0s, as: alice, run: sbatch job.sh}
"""

SLIPS = [
    ("switch_p_job_fini role=manger", "no role 'manger'; did you mean manager?"),
    ("switch_p_job_fini daemon=slurmstep", "no daemon 'slurmstep'; did you mean slurmstepd?"),
    ("job_state state=RUNING", "no state of a job is called 'RUNING'; did you mean RUNNING?"),
    ("job_state state=COMPLETED|COMPLETNG", "'COMPLETNG'; did you mean COMPLETING?"),
    ("job_state state=IDLE", "no state of a job is called 'IDLE'; it is one of node_state"),
    ("node_state state=DRAINED", "no state of a node is called 'DRAINED'; did you mean DRAIN?"),
    ("step_state state=RUN", "no state of a step is called 'RUN'; did you mean RUNNING?"),
    ("bb_state state=STAGNG_IN", "did you mean STAGING_IN?"),
    ("*_state state=ALOCATED", "no state of anything is called 'ALOCATED'"),
    ("switch_p_job_init state=RUNNING", "switch_p_job_init has no state=; job_state"),
    ("* kind=plugn", "kind is one of plugin"),
    ("REQUEST_LAUNCH_TASKS phase=recieve", "did you mean receive?"),
    ("switch_p_job_init node=n3", "no node 'n3'; there are n1, n2, login"),
    ("init node=slurmctld", "no node 'slurmctld'; the controller is node=null"),
    ("* errno=ESLURM_DISABLD", "did you mean ESLURM_DISABLED?"),
    ("* errno=2017", "traces have ESLURM_INVALID_JOB_ID for errno 2017"),
    ("* errno=XSLURM*", "no errno 'XSLURM*'"),
    ("* plugin=switch/nne", "no plugin 'switch/nne'; did you mean switch/none?"),
    ("* plugin=switch/elan", "no plugin 'switch/elan'"),
    ("switch_p_job_attach args.rnk=0", "no argument 'rnk'; did you mean rank?"),
    ("switch_p_job_attach args.colour=0", "no argument 'colour'; there are switch_job, env"),
    ("job_state args.form=PENDING", "no argument 'form'; did you mean from?"),
    ("switch_p_job_init step=0", "a step is JOB.STEP such as 1.0 or 1.batch, not '0'"),
    ("switch_p_job_int", "did you mean switch_p_job_init?"),
    ("REQUEST_LAUNCH_TASK", "did you mean REQUEST_LAUNCH_TASKS?"),
]

FINE = [
    "switch_p_job_fini role=manager",
    "switch_p_job_* role=man*",
    "* role=backup",
    "* daemon=sbatch",
    "* role=script daemon=slurmd",
    "job_state state=BOOT_FAIL",
    "job_state state=*PLET*",
    "job_state state=COMPLETED|COMPLETING",
    "bb_state state=SOME_STATE_OF_MY_OWN",
    "*_state state=STAGING_IN",
    "* node=login",
    "* node=null",
    "* node=n*",
    "* plugin=null",
    "* plugin=checkpoint/none",
    "* plugin=*/none",
    "* errno=3042",
    "* errno=ESLURM*",
    "switch_p_job_attach args.rank=0",
    "switch_p_build_jobinfo args.task_cnt=4",
    "plugin_log args.whatever=1",
    "* args.signal=9",
    "* step=1.batch",
    "* step=*.0",
    "* job=null",
    "my_own_event",
]


@pytest.mark.parametrize(("pattern", "told"), SLIPS)
@pytest.mark.parametrize("how", ["never", "when", "within"])
def test_a_scenario_is_refused_with_the_place(how: str, pattern: str, told: str) -> None:
    """An expectation would hold without being asked, or a moment never come."""
    text = {
        "never": f'expect: [{{never: "{pattern}"}}]\n',
        "when": f'  - {{when: "{pattern}", as: alice, run: scancel 1}}\n',
        "within": f'expect: [{{order: [init, fini], within: "kind=plugin {_keys(pattern)}"}}]\n',
    }[how]
    if how == "within" and not _keys(pattern).replace("kind=plugn", ""):
        return
    with pytest.raises(ScenarioErrors) as caught:
        read_scenario(SCENARIO + text, file="own.yaml")
    (mistake,) = caught.value.mistakes
    assert mistake.line == SCENARIO.count("\n") + 1
    if how != "within":
        assert told in mistake.message
        key = next((word for word in pattern.split()[1:] if "=" in word), "")
        where = (SCENARIO + text).splitlines()[mistake.line - 1]
        at = where[mistake.column - 1 :]
        assert not key or at.startswith((key, key.partition("=")[2]))


def _keys(pattern: str) -> str:
    """Return the conditions of a pattern that mean the same whatever the NAME is."""
    words = [word for word in pattern.split()[1:] if not word.startswith(("args.", "state="))]
    return " ".join(words)


@pytest.mark.parametrize("pattern", FINE)
def test_a_scenario_may_say_what_can_be(pattern: str) -> None:
    """Words of Slurm's, those with a `*` that fit one, and what a plugin may choose itself."""
    read_scenario(SCENARIO + f'expect: [{{never: "{pattern}"}}]\n', file="own.yaml")


@pytest.mark.parametrize(
    "fault",
    [
        '{fail: "switch_p_job_init node=n4"}',
        '{raise: "switch_p_job_init role=sesion"}',
        '{hang: "switch_p_job_attach args.rnk=0"}',
    ],
)
def test_the_pattern_of_a_fault_is_held_to_words_too(fault: str) -> None:
    """It would strike nobody."""
    with pytest.raises(ScenarioErrors, match=r"did you mean|there are"):
        read_scenario(SCENARIO + f"  - {{at: 0s, fault: {fault}}}\n", file="own.yaml")


def test_every_slip_of_a_pattern_is_told_at_once() -> None:
    """One mistake does not hide the next."""
    text = 'expect: [{never: "switch_p_job_fini role=manger node=n7 errno=EPERN"}]\n'
    with pytest.raises(ScenarioErrors) as caught:
        read_scenario(SCENARIO + text, file="own.yaml")
    assert len(caught.value.mistakes) == 3


@pytest.mark.parametrize(
    ("what", "fields", "told"),
    [
        ("switch_p_job_fini", {"role": "manger"}, "did you mean manager?"),
        ("switch_p_job_fini", {"daemon": "slurmdd"}, "did you mean slurmd?"),
        ("job_state", {"state": "RUNING"}, "did you mean RUNNING?"),
        ("switch_p_job_fini", {"job": 9}, "there was no job 9 in the run; its jobs: 1"),
        ("switch_p_job_fini", {"step": "9.0"}, "there was no job 9 in the run"),
        ("switch_p_job_fini", {"step": "0"}, "a step is JOB.STEP"),
        ("switch_p_job_fini", {"plugin": "switch/elan"}, "no plugin 'switch/elan'"),
        ("switch_p_job_fini", {"node": "n3"}, "no node 'n3'; there are n1, n2"),
        ("switch_p_job_attach", {"args": {"rnk": 0}}, "did you mean rank?"),
    ],
)
def test_assertions_in_python_are_held_to_the_same(
    what: str, fields: dict[str, Any], told: str
) -> None:
    """With what the run itself tells of, its jobs among it."""
    run = run_scenario(SCENARIO)
    for claim in (
        lambda: run.trace.assert_never(what, **fields),
        lambda: run.trace.assert_count(what, 0, **fields),
        lambda: run.trace.matching(what, **fields),
        lambda: run.trace.assert_process(what, same=True, **fields),
    ):
        with pytest.raises(InputError) as caught:
            claim()
        assert told in str(caught.value)
    run.trace.assert_never("switch_p_job_fini", role="manager", job=1)


def test_a_job_that_was_refused_may_be_asked_after() -> None:
    """It might have been: that nothing came of it is worth a claim."""
    text = SCENARIO + "  - {at: 1s, as: alice, run: sbatch -A nobody none.sh}\n"
    run = run_scenario(text + 'expect: [{never: "job_state job=2"}]\n')
    assert run.held
    run.trace.assert_never("job_state", job=2)
    with pytest.raises(InputError, match="there was no job 3"):
        run.trace.assert_never("job_state", job=3)


@pytest.mark.parametrize(
    "line",
    [
        'expect: [{never: "switch_p_job_fini job=9"}]',
        'expect: [{count: "switch_p_job_fini step=9.0", is: 0}]',
        'expect: [{order: [{match: init, optional: true}, fini], within: "job=9"}]',
        '  - {when: "job_state job=9", run: scancel 9}',
        '  - {at: 0s, fault: {fail: "switch_p_job_init job=9"}}',
    ],
)
def test_a_job_that_never_was_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """Which jobs there are shows in the run; what is about another ends it with 2."""
    path = tmp_path / "own.yaml"
    path.write_text(SCENARIO + line + "\n")
    assert cli.main(["run", str(path)]) == cli.WRONG_INPUT
    told = capsys.readouterr().out
    assert f"WRONG  own.yaml:{SCENARIO.count(chr(10)) + 1}: " in told
    assert "there was no job 9 in the run; its jobs: 1" in told
    assert cli.main(["test", str(path)]) == cli.WRONG_INPUT


def test_a_run_that_was_cut_short_knows_not_all_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second job comes after the end of what is looked at."""
    path = tmp_path / "own.yaml"
    later = "  - {at: 1m, as: alice, run: sbatch job.sh}\n"
    path.write_text(SCENARIO + later + 'expect: [{never: "switch_p_job_fini job=2 role=task"}]\n')
    assert cli.main(["run", str(path), "--until", "30s"]) == cli.OK
    assert cli.main(["run", str(path)]) == cli.OK
    capsys.readouterr()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("break switch_p_job_fini role=manger", "did you mean manager?"),
        ("break switch_p_job_fini plugin=switch/elan", "no plugin 'switch/elan'"),
        ("tbreak job_state state=RUNING", "did you mean RUNNING?"),
        ("until switch_p_job_attach args.rnk=1", "did you mean rank?"),
    ],
)
def test_a_session_takes_no_break_that_never_comes(command: str, told: str) -> None:
    """It would run on past all that its user wanted to see."""
    held = Held(command)
    assert any(told in line for line in held.said)
