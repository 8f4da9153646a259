"""The command line: exit statuses, what goes where, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simctl import __version__, cli
from tests.cluster import SIMCTL

CLUSTER = """\
nodes: [{name: "n[1-2]", cpus: 2}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001}
"""


def write(tmp_path: Path, text: str, name: str = "s.yaml") -> str:
    """Write a scenario on a small cluster; return its path."""
    path = tmp_path / name
    path.write_text(CLUSTER + text)
    return str(path)


ONE_JOB = 'timeline: [{at: 0s, as: alice, run: sbatch --wrap "srun sleep 5"}]\n'


def test_a_run_that_holds_exits_0_and_prints_plain_text_into_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of jobs and the summary go to stdout; nothing goes to stderr, no escapes at all."""
    path = write(tmp_path, ONE_JOB + "expect: [{job: 1, state: COMPLETED}]\n")
    assert cli.main(["run", path]) == cli.OK
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "\x1b" not in captured.out
    lines = captured.out.splitlines()
    assert "JOBID NAME USER STATE EXIT START ELAPSED NODES(REASON)".split() in map(str.split, lines)
    assert "held   job 1 state=COMPLETED" in captured.out
    assert max(map(len, lines)) <= 80


def test_a_broken_expectation_exits_1_and_says_how_to_repeat_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was wanted, what was found, and the command that repeats the run."""
    path = write(tmp_path, ONE_JOB + "expect: [{job: 1, state: FAILED}]\n")
    assert cli.main(["run", path, "--seed", "7"]) == cli.NOT_HELD
    captured = capsys.readouterr()
    assert "BROKEN job 1 state=FAILED" in captured.out
    assert f"simctl run {path} --seed 7 --schedule fifo --model guide" in captured.err


def test_a_failing_job_is_no_failure_of_the_run(tmp_path: Path) -> None:
    """A program that fails and a command that is refused are recorded, and the run goes on."""
    path = write(
        tmp_path,
        "timeline:\n"
        '  - {at: 0s, as: alice, run: sbatch --wrap "exit 3"}\n'
        "  - {at: 1s, as: alice, run: scancel 99.0}\n",
    )
    assert cli.main(["run", path, "--quiet"]) == cli.OK


def test_json_has_the_promised_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object on stdout with every key of the interface, in its order."""
    path = write(tmp_path, ONE_JOB)
    assert cli.main(["run", path, "--json"]) == cli.OK
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [
        *("scenario", "seed", "schedule", "model", "end_time_us", "stalled", "ran_out", "jobs"),
        *("expectations", "orderings", "plugin_errors", "fatal", "damaged"),
        *("faults_missed", "lost_jobs", "ignored", "commands"),
        *("counts", "wall_s", "failures", "held_up"),
    ]
    assert list(found["commands"][0]) == [
        *("at_us", "user", "command", "exit", "errno", "stdout", "stderr"),
    ]
    assert list(found["jobs"][0]) == [
        *("job_id", "array_job_id", "array_task_id", "name", "user", "partition", "state"),
        *("reason", "exit_code", "num_nodes", "nodes", "submit_us", "start_us", "end_us"),
        "restarts",
    ]
    assert list(found["counts"]) == ["events", "turns", "plugin_calls", "messages"]
    assert found["jobs"][0]["exit_code"] == "0:0"


def test_sentences_about_calls_go_to_standard_error_beside_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output has the object and nothing else."""
    assert cli.main(["run", write(tmp_path, ONE_JOB), "--json", "--explain"]) == cli.OK
    shown = capsys.readouterr()
    json.loads(shown.out)
    assert "calls switch_p_job_preinit for step 1.0" in shown.err


def test_a_run_that_was_cut_short_is_repeated_as_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What holds later may not hold yet."""
    path = write(tmp_path, ONE_JOB + "expect: [{job: 1, state: COMPLETED}]\n")
    assert cli.main(["run", path, "--until", "2s", "--quiet"]) == cli.NOT_HELD
    assert f"to repeat: simctl run {path} --until 2s --seed 0" in capsys.readouterr().err


def test_what_commands_print_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each below its line, by the time they were typed; --quiet shows nothing."""
    path = write(
        tmp_path,
        "timeline:\n"
        "  - {at: 9s, as: alice, run: 'squeue -h -o \"%i, %T\"'}\n"
        "  - {at: 0s, as: alice, run: 'sbatch --wrap \"sleep 20\"'}\n",
    )
    assert cli.main(["run", path]) == cli.OK
    assert capsys.readouterr().out.startswith(
        '0:00:00       alice$ sbatch --wrap "sleep 20"\n'
        "              Submitted batch job 1\n"
        '0:00:09       alice$ squeue -h -o "%i, %T"\n'
        "              1, RUNNING\n\n"
        "JOBID"
    )
    assert cli.main(["run", path, "--quiet"]) == cli.OK
    assert capsys.readouterr().out == ""


def test_failures_of_commands_are_shown_with_their_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that the scenario expects is told apart from one that nobody expected."""
    path = write(
        tmp_path,
        "timeline:\n"
        "  - {at: 0s, as: alice, run: salloc sleep 2}\n"
        "  - {at: 4s, as: alice, run: srun false}\n"
        "  - {at: 6s, as: alice, run: sbatch --wrap, exit: 255}\n",
    )
    cli.main(["run", path])
    shown = capsys.readouterr().out.partition("JOBID")[0]
    assert shown == (
        "0:00:00       alice$ salloc sleep 2\n"
        "              salloc: Granted job allocation 1\n"
        "              salloc: Relinquishing job allocation 1\n"
        "0:00:04       alice$ srun false\n"
        "              srun: error: n1: task 0: Exited with exit code 1\n"
        "              (exit 1)\n"
        "0:00:06       alice$ sbatch --wrap\n"
        "              sbatch: option '--wrap' requires an argument\n"
        '              Try "sbatch --help" for more information\n'
        "              (exit 255, as the scenario expects)\n\n"
    )


@pytest.mark.parametrize(("times", "more"), [(249, 0), (250, 0), (251, 2), (300, 100)])
def test_a_long_story_is_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], times: int, more: int
) -> None:
    """What is left out is counted; two lines a command here."""
    line = "  - {at: 0s, as: alice, run: sinfo -h -o here}\n"
    path = write(tmp_path, "timeline:\n" + line * times)
    assert cli.main(["run", path]) == cli.OK
    shown = capsys.readouterr().out.partition("no jobs")[0].splitlines()
    if more:
        assert shown[500:] == [f"... {more} more lines; run --json has all commands", ""]
    assert len(shown) == (502 if more else 2 * times + 1)


def test_a_full_disk_is_no_fault_of_simctl(tmp_path: Path) -> None:
    """What cannot be written is told in a line, also where it is little."""
    path = write(tmp_path, "")
    for words in (["check", path], ["run", path, "--json"], ["schema"]):
        with Path("/dev/full").open("w") as full:
            ended = subprocess.run(
                [sys.executable, "-m", "simctl", *words],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert ended.returncode == cli.WRONG_INPUT
        assert ended.stderr == (
            "simctl: cannot write what there is to tell: No space left on device\n"
        )


def test_a_daemon_that_cannot_go_on_is_told_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the end of the run, with the words of the plugin that refused."""
    conf = "slurm_conf: {SwitchType: switch/elan, SwitchParameters: contexts=0}\n"
    path = write(tmp_path, conf + "timeline: []\n")
    cli.main(["run", path])
    out = capsys.readouterr().out
    why = "(SwitchParameters: 'contexts=0'; expected contexts=N, from 1 to 1023)"
    assert f"FATAL  slurmctld: Can't find plugin for switch/elan {why}\n" in out
    assert f"FATAL  slurmd on n1: Can't find plugin for switch/elan {why}\n" in out
    cli.main(["run", path, "--json"])
    told = json.loads(capsys.readouterr().out)["fatal"]
    assert told[0] == f"slurmctld: Can't find plugin for switch/elan {why}"
    cli.main(["run", path, "--quiet"])
    assert capsys.readouterr().err.startswith("simctl: slurmctld: Can't find plugin for switch")


def test_a_command_cut_by_its_comma_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inside braces a comma ends a text; what would do is said."""
    path = write(tmp_path, "timeline: [{at: 0s, run: sacct -o jobid,state}]\n")
    assert cli.main(["check", path]) == cli.WRONG_INPUT
    said = "no key `state`; if it is more of `run`, which a comma ended, quote that text"
    assert said in capsys.readouterr().err


def test_one_entry_may_have_several_commands_under_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `each` the next is typed before the last has its answer."""
    timeline = (
        "timeline:\n"
        "  - {at: 0s, as: alice, run: srun -n4 sleep 5}\n"
        "  - {when: exec role=task, each: true, run: squeue -h}\n"
    )
    assert cli.main(["run", write(tmp_path, timeline), "--json"]) == cli.OK
    typed = json.loads(capsys.readouterr().out)["commands"]
    assert [each["command"] for each in typed].count("squeue -h") == 4


@pytest.mark.parametrize("command", ["check", "run", "explore"])
def test_what_is_wrong_with_plugins_has_its_place_once(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the path as it was given, as editors like it."""
    path = write(tmp_path, "plugins: [./none_here.py:X]\nslurm_conf: {SwitchType: switch/nrt}\n")
    (tmp_path / "none_here.py").write_text("class Y: pass\n")
    assert cli.main([command, path]) == cli.WRONG_INPUT
    said = f"{path}:4:11: plugin './none_here.py:X': X is not there; plugin classes there: none\n"
    assert capsys.readouterr().err == said
    path = write(tmp_path, "slurm_conf: {SwitchType: switch/nrt}\n")
    assert cli.main([command, path]) == cli.WRONG_INPUT
    assert capsys.readouterr().err.startswith(f"{path}:4:26: slurm_conf.SwitchType: there is no")


def test_a_stalled_run_exits_1_and_says_who_waits_for_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that never ends, in a partition without limit, leaves nothing due."""
    path = write(tmp_path, 'timeline: [{at: 0s, as: alice, run: sbatch --wrap "srun sleep inf"}]\n')
    assert cli.main(["run", path]) == cli.NOT_HELD
    out = capsys.readouterr().out
    assert "STALLED" in out
    assert "job 1 is RUNNING on n1" in out
    assert "slurmstepd 1.0 (pid" in out
    assert "waits for a message" in out


def test_a_stalled_run_says_why_nodes_take_no_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the state that traces and sinfo show, and with the reason that was given."""
    path = write(
        tmp_path,
        "timeline:\n"
        "  - {at: 0s, as: root, run: scontrol update nodename=n1 state=drain reason=fans}\n"
        "  - {at: 1s, as: alice, run: sbatch -w n1 --wrap true}\n",
    )
    assert cli.main(["run", path]) == cli.NOT_HELD
    assert "nodes that take no job: n1 is IDLE|DRAIN (fans)" in capsys.readouterr().out


def test_a_job_too_large_ever_to_start_is_no_stall(tmp_path: Path) -> None:
    """It stays pending, and the run ends well."""
    path = write(
        tmp_path,
        'timeline: [{at: 0s, as: alice, run: sbatch -N5 --wrap "srun true"}]\n'
        "expect: [{job: 1, state: PENDING, reason: PartitionNodeLimit}]\n",
    )
    assert cli.main(["run", path, "--quiet"]) == cli.OK


def test_until_stops_there_and_exits_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was reached is shown; unfinished jobs are no stall."""
    path = write(tmp_path, ONE_JOB)
    assert cli.main(["run", path, "--until", "3s", "--json"]) == cli.OK
    found = json.loads(capsys.readouterr().out)
    assert found["end_time_us"] == 3_000_000
    assert found["jobs"][0]["state"] == "RUNNING"


def test_explain_says_who_where_as_whom_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence for each plugin call."""
    path = write(tmp_path, ONE_JOB)
    assert cli.main(["run", path, "--explain"]) == cli.OK
    story = " ".join(capsys.readouterr().out.split())
    assert story.count("calls switch_p_job_attach") == 1
    assert "task 0 (P3) on n1, as alice, calls switch_p_job_attach for step 1.0" in story
    assert "P2 on n1, as alice, calls switch_p_job_fini for step 1.0" in story


def test_trace_to_stdout_leaves_it_to_the_trace(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """With `--trace -` every line on stdout is JSON; the tables go to stderr."""
    path = write(tmp_path, ONE_JOB)
    assert cli.main(["run", path, "--trace", "-"]) == cli.OK
    sys.stdout.flush()
    captured = capfdbinary.readouterr()
    lines = captured.out.splitlines()
    assert json.loads(lines[0])["simctl_trace"] == 1
    assert [json.loads(line)["seq"] for line in lines[1:]] == list(range(1, len(lines)))
    assert b"JOBID" in captured.err


def test_trace_kinds_filters_the_file(tmp_path: Path) -> None:
    """Only events of the kinds asked for are written."""
    path = write(tmp_path, ONE_JOB)
    file = tmp_path / "t.jsonl"
    words = ["run", path, "--quiet", "--trace", str(file), "--trace-kinds", "plugin,state"]
    assert cli.main(words) == cli.OK
    kinds = {json.loads(line)["kind"] for line in file.read_text().splitlines()[1:-1]}
    assert kinds == {"plugin", "state"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run"], "name a scenario"),
        (["run", "nowhere.yaml"], "nowhere.yaml"),
        (["run", "SCENARIO", "--schedule", "lifo"], "'lifo'"),
        (["run", "SCENARIO", "--until", "tomorrow"], "--until"),
        (["run", "SCENARIO", "--trace-kinds", "plugin"], "--trace"),
        (["run", "SCENARIO", "--trace", "/nowhere/t", "--quiet"], "/nowhere/t"),
        (["run", "SCENARIO", "--trace", "T", "--trace-kinds", "plugins"], "'plugins'"),
        (["run", "SCENARIO", "--nodes", "3"], "--swf"),
        (["trace", "conform", "a", "b"], "a: cannot read it"),
    ],
)
def test_wrong_input_exits_2_with_a_message(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    told: str,
) -> None:
    """No traceback, nothing on stdout, and the message names what was wrong."""
    path = write(tmp_path, ONE_JOB)
    monkeypatch.chdir(tmp_path)
    assert cli.main([path if word == "SCENARIO" else word for word in words]) == cli.WRONG_INPUT
    captured = capsys.readouterr()
    assert told in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_check_tells_every_mistake_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """File, line and column of each, with a near name where there is one."""
    path = write(
        tmp_path,
        "slurm_conf: {SwitchTyp: switch/none}\n"
        "timeline:\n"
        "  - {at: soon, as: alice, run: sbatch x.sh}\n"
        "  - {at: 1s, as: alise, run: sbatch x.sh}\n",
    )
    assert cli.main(["check", path]) == cli.WRONG_INPUT
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 3
    assert all(line.startswith(f"{path}:") for line in lines)
    assert any("SwitchType" in line for line in lines)
    assert any("alice" in line for line in lines)


def test_check_finds_plugins_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A switch type nobody has, and a plugin whose function has other parameters."""
    path = write(tmp_path, "slurm_conf: {SwitchType: switch/myrinet}\n")
    assert cli.main(["check", path]) == cli.WRONG_INPUT
    assert "no plugin 'switch/myrinet'" in capsys.readouterr().err
    (tmp_path / "bad.py").write_text(
        "from simctl.plugin import SwitchPlugin\n"
        "class Bad(SwitchPlugin):\n"
        "    plugin_type = 'switch/bad'\n"
        "    def switch_p_job_init(self, job): pass\n"
    )
    path = write(
        tmp_path, 'plugins: ["./bad.py:Bad"]\nslurm_conf: {SwitchType: switch/bad}\n', "t.yaml"
    )
    assert cli.main(["check", path]) == cli.WRONG_INPUT
    err = capsys.readouterr().err
    assert "def switch_p_job_init(self, job)" in err
    assert "def switch_p_job_init(self, switch_job, uid)" in err


def test_check_of_good_scenarios_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Shipped scenarios are found by name as well."""
    assert cli.main(["check", "two_nodes", "own_plugin.yaml"]) == cli.OK
    assert capsys.readouterr().out == "two_nodes: fine\nown_plugin.yaml: fine\n"


def test_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The schema is one JSON object that knows the top-level keys."""
    assert cli.main(["schema"]) == cli.OK
    assert "timeline" in json.loads(capsys.readouterr().out)["properties"]


def test_debug_logs_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line an event that is neither call nor message, with its virtual time."""
    path = write(tmp_path, ONE_JOB)
    assert cli.main(["--debug", "run", path]) == cli.OK
    captured = capsys.readouterr()
    assert "job_state" in captured.err
    assert "sim_us=" in captured.err
    assert "sim_us=" not in captured.out


def test_version_imports_nothing_large() -> None:
    """`--version` starts fast because it loads neither trio nor YAML nor the daemons."""
    code = (
        "import sys\n"
        "from simctl import cli\n"
        "try:\n    cli.main(['--version'])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(sorted({'trio', 'yaml', 'attrs', 'msgspec'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"simctl {__version__}\n[]\n"


def test_ctrl_c_ends_with_130_and_what_was_reached(tmp_path: Path) -> None:
    """An interrupted run writes its trace and its table, and no traceback."""
    path = write(
        tmp_path,
        "files:\n  loop.sh: |\n    #!/bin/sh\n    while true; do sleep 1; done\n"
        "timeline: [{at: 0s, as: alice, run: sbatch loop.sh}]\n",
    )
    trace = tmp_path / "t.jsonl"
    process = subprocess.Popen(
        [*SIMCTL, "run", path, "--trace", str(trace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    while not any(each.stat().st_size for each in tmp_path.glob("*.part")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == cli.INTERRUPTED
    assert "interrupted: this is what was reached" in out
    assert "Traceback" not in err
    assert json.loads(trace.read_text().splitlines()[-1])["seq"] > 1
