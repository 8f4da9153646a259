"""`simctl check` tells of every slip at once: options, scripts, plugins, slurm.conf."""

from pathlib import Path

import pytest

from simctl import cli
from simctl.commands.slips import of_directive, of_line

CLUSTER = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]"}]
programs: {./app: {runs: 1s}}
files:
  job.sh: |
    #!/bin/bash
    #SBATCH %s
    srun ./app
timeline:
  - {at: 0s, run: "%s"%s}
"""


def check(path: Path, capsys: pytest.CaptureFixture[str], text: str) -> tuple[int, str]:
    """Return the status of `simctl check` of a scenario, and what it says of it."""
    path.write_text(text)
    status = cli.main(["check", str(path)])
    return status, capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sbatch --nodess=2 job.sh", "sbatch: unrecognized option '--nodess=2'; did you mean"),
        ("sbatch -Y job.sh", "sbatch: invalid option -- 'Y'"),
        ("sbatch -N job.sh", '"job.sh" is not a valid node count'),
        ("sbatch --time=soon job.sh", "sbatch: Invalid --time specification"),
        ("sbatch --gpu-bind=x job.sh", "--gpu-bind is an option of Slurm's that simctl does not"),
        ("salloc -N2 srun --lable ./app", "srun: unrecognized option '--lable'; did you mean"),
        ("srun --ntask=x ./app", "option '--ntask' is ambiguous"),
        ("srun_cr --lable ./app", "srun_cr: unrecognized option '--lable'"),
        ("scancel --satte=PENDING 1", "did you mean --state?"),
        ("squeue --fromat=%i", "did you mean --format?"),
        ("sinfo --nods=n1", "did you mean --nodes?"),
        ("sacct --jbos=1", "did you mean --jobs?"),
        ("scontrol shwo job 1", "scontrol: invalid keyword: shwo; did you mean show?"),
        ("scontrol --detials show job 1", "did you mean --details?"),
    ],
)
def test_a_slip_in_a_command_line_is_told(line: str, told: str) -> None:
    """One that the command would be refused for; those of what salloc runs are that one's."""
    argv = line.split()
    found = of_line(argv if argv[0] != "salloc" else argv[2:])
    assert len(found) == 1
    assert told in found[0]


@pytest.mark.parametrize("line", ["sbatch --nodess=2 job.sh", "salloc -N2 srun --lable ./app"])
def test_a_slip_in_a_command_line_has_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """The command would only fail once it runs; nobody expected it to."""
    path = tmp_path / "own.yaml"
    status, err = check(path, capsys, CLUSTER % ("-N2", line, ""))
    assert status == cli.WRONG_INPUT
    assert f"{path}:10:19: timeline[0].run: " in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--nttasks=4", "sbatch: unrecognized option '--nttasks=4'; did you mean --ntasks?"),
        ("--time=abc", "sbatch: Invalid --time specification"),
        ("-N2 whatever", "Invalid directive found in batch script: whatever"),
    ],
)
def test_a_slip_in_a_line_of_a_script_is_told_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, told: str
) -> None:
    """The line of the scenario's file is that of the script's line."""
    path = tmp_path / "own.yaml"
    status, err = check(path, capsys, CLUSTER % (options, "sbatch job.sh", ""))
    assert status == cli.WRONG_INPUT
    assert err.startswith(f'{path}:7:5: files["job.sh"]: ')
    assert told in err


@pytest.mark.parametrize("checks", [", exit: 255", ", expect: EINVAL", ", stderr: option"])
@pytest.mark.parametrize(
    ("options", "line"), [("--nttasks=4", "sbatch job.sh"), ("-N2", "sbatch --nodess=2 job.sh")]
)
def test_a_command_that_is_to_fail_may_be_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, line: str, checks: str
) -> None:
    """The scenario says so: it is about that."""
    status, err = check(tmp_path / "own.yaml", capsys, CLUSTER % (options, line, checks))
    assert (status, err) == (cli.OK, "")


def test_a_script_that_two_submit_is_wrong_if_one_of_them_expects_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only what all of them expect is meant."""
    text = CLUSTER % ("--nttasks=4", "sbatch job.sh", ", exit: 255")
    text += "  - {at: 1s, run: sbatch -N1 job.sh}\n"
    assert check(tmp_path / "own.yaml", capsys, text)[0] == cli.WRONG_INPUT


def test_what_a_script_itself_runs_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may go on after it; and what is no line of options to sbatch looks like one."""
    text = (CLUSTER % ("-N2", "sbatch job.sh", "")).replace(
        "    srun ./app\n",
        "    #SBTACH -n4\n    srun --lable ./app\n    srun $OPTIONS ./app\n    #SBATCH -N1\n",
    )
    status, err = check(tmp_path / "own.yaml", capsys, text)
    assert status == cli.OK
    assert [line.split(":")[1] for line in err.splitlines()] == ["8", "9", "11"]
    assert "did you mean #SBATCH?" in err
    assert "srun: unrecognized option '--lable'; did you mean --label?" in err
    assert "sbatch reads no #SBATCH line behind the first command" in err


@pytest.mark.parametrize(
    "line",
    [
        "sbatch -N2 -n4 --time=10 --nice --wrap=hostname",
        "sbatch --begin=now+1hour --array=0-3%2 job.sh --not-mine",
        "srun -n2 --output=out ./app --fooo",
        "squeue --user=alice -o %i",
        "squeue --node=n1",
        "sinfo --state=idle",
        "scontrol -d show job 1",
        "scontrol ping",
        "scancel --state=PENDING",
        "sacct -j 1 --format=JobID",
        "cat file",
    ],
)
def test_a_good_command_line_is_no_slip(line: str) -> None:
    """Values, abbreviations and the words of programs are left alone."""
    assert of_line(line.split()) == []


@pytest.mark.parametrize("line", ["-N2 # nodes", '--comment="a b" -n4', "--nice", "-J x -t 5"])
def test_a_good_line_of_a_script_is_no_slip(line: str) -> None:
    """As sbatch splits it."""
    assert of_directive(line) == []


def test_every_mistake_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the scenario, of its plugins, and of the types that slurm.conf names."""
    (tmp_path / "loud.py").write_text("print('loud')\nclass Loud:\n    plugin_type = 'switch/x'\n")
    text = CLUSTER % ("--nttasks=2", "sbatch --hld job.sh", "")
    text += 'expect: [{never: "* role=manger"}]\nplugins: ["./none.py:None", "./loud.py:Loud"]\n'
    text += "slurm_conf:\n  SwitchType: switch/elann\n  SchedulerTyp: sched/builtin\n"
    path = tmp_path / "own.yaml"
    status, err = check(path, capsys, text)
    assert status == cli.WRONG_INPUT
    for told in (
        ":7:5: files[\"job.sh\"]: sbatch: unrecognized option '--nttasks=2'",
        " timeline[0].run: sbatch: unrecognized option '--hld'; did you mean --hold?",
        ":11:26: expect[0].never: no role 'manger'",
        ":12:11: plugins[0]: no file './none.py'",
        ":12:29: ",
        ":14:15: slurm_conf.SwitchType: there is no plugin 'switch/elann';",
        ":15:17: slurm_conf.SchedulerTyp",
        "loud\n",
    ):
        assert told in err, told


def test_mistakes_of_a_site_file_hide_none_of_plugins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line that cannot be read hides neither the lines behind it nor a type there is not."""
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=x\nthis is none\nSwitchType=switch/elann\nSchedulerTyp=sched/builtin\n"
        "NodeName=n1 CPUz=4\nPartitionName=debug Nodes=n1 MaxTime=abc\n"
    )
    status, err = check(tmp_path / "own.yaml", capsys, "slurm_conf_file: slurm.conf\n")
    assert status == cli.WRONG_INPUT
    lines = [line.split(":")[1] for line in err.splitlines()]
    assert lines == ["2", "4", "5", "6", "3"]


@pytest.mark.parametrize("name", ["two_node", "scenarios/two_node.yaml", "two-nodes.yml"])
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_shipped_scenario_may_be_meant(
    capsys: pytest.CaptureFixture[str], name: str, command: str
) -> None:
    """A name that is nearly one of theirs."""
    assert cli.main([command, name]) == cli.WRONG_INPUT
    assert "did you mean two_nodes?" in capsys.readouterr().err
