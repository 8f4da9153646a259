"""srun --multi-prog: a file says which program each task of a step runs."""

import json

import pytest

from simctl.commands.srun.multi_prog import MultiProgError, programs
from tests.cluster import TWO_NODES, Ran, run


def test_a_line_is_about_ranks() -> None:
    """The first line that names a rank counts; %t is the rank, %o its place in the line."""
    text = "# who does what\n0 ./master --of 4\n\n1,3 ./odd %t 'a b' %o # why\n* ./rest t%t.o%o\n"
    assert programs(text, "f", 4) == (
        ("./master", "--of", "4"),
        ("./odd", "1", "a b", "0"),
        ("./rest", "t2.o2"),
        ("./odd", "3", "a b", "1"),
    )


def test_lines_about_ranks_that_the_step_has_not_are_left_out() -> None:
    """A range may be longer than the step."""
    assert programs("0-100 ./app", "f", 2) == (("./app",), ("./app",))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 ./a", "Configuration file f invalid, no record for task id 1"),
        ("", "Configuration file f invalid, no record for task id 0"),
        ("0 ./a\n1", "Line 2 of configuration file f is invalid"),
        ("x ./a", "Line 1 of configuration file f is invalid"),
        ("0 './a", "Line 1 of configuration file f is invalid"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text: str, problem: str) -> None:
    """Each task needs a program."""
    with pytest.raises(MultiProgError, match=f"^{problem}$"):
        programs(text, "f", 2)


def multi(text: str, line: str = "srun -N2 -n3 -l --multi-prog mp.conf") -> Ran:
    """Run a step whose programs a file names."""
    return run(
        f"files: {{mp.conf: {json.dumps(text)}}}\n"
        'programs: {./one: {output: "first\\n"}}\n'
        f"timeline: [{{at: 0s, as: alice, run: {line!r}}}]\n",
        cluster=TWO_NODES,
    )


def test_each_task_runs_its_own_program() -> None:
    """On whatever node it is."""
    ran = multi("0 ./one\n1-2 echo b %t\n")
    assert sorted(ran.result.commands[0].stdout.splitlines()) == ["0: first", "1: b 1", "2: b 2"]
    assert [event.args for event in ran.all("exec", task=0)] == [{"path": "./one"}]
    assert [event.args for event in ran.all("exec", task=2)] == [{"path": "echo"}]
    assert ran.result.commands[0].exit == 0


def test_a_file_that_will_not_do_leaves_no_step_behind() -> None:
    """The step is made before its tasks are known, and is deleted again."""
    ran = multi("0 ./one")
    assert ran.stderr() == (
        "srun: error: Configuration file mp.conf invalid, no record for task id 1\n"
    )
    assert ran.result.commands[0].exit == 1
    assert ran.all("switch_p_job_preinit") == []
    assert len(ran.all("switch_p_job_step_complete")) == 1
    assert ran.result.stalled == ()


def test_a_file_that_is_not_there_is_named() -> None:
    """Nothing runs."""
    ran = multi("0 ./one", "srun --multi-prog gone.conf")
    assert ran.stderr() == "srun: error: Could not open multi_prog config file gone.conf\n"
