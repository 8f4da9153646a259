"""Jobs with burst buffers as commands submit, show and cancel them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from simctl.cli import main
from simctl.commands.submission.burst_buffer import inserted
from simctl.world import CommandResult
from tests.cluster import Ran, run

DATAWARP = """\
slurm_conf: {BurstBufferType: burst_buffer/datawarp, AccountingStorageTRES: bb/datawarp}
burst_buffer:
  pools: {wlm_pool: {capacity: 100GiB, granularity: 1GiB}}
"""
FILES = """\
files:
  full.sh: |
    #!/bin/sh
    #DW jobdw type=scratch capacity=10GiB access_mode=striped
    #DW stage_in type=file source=/lus/in destination=$DW_JOB_STRIPED/a
    #DW stage_out type=file destination=/lus/out source=$DW_JOB_STRIPED/b
    sleep 3
  plain.sh: |
    #!/bin/sh
    #SBATCH --time=10
    sleep 3
  dw.txt: "#DW jobdw type=scratch capacity=20GiB access_mode=striped"
"""
DW = "#DW jobdw type=scratch capacity=20GiB access_mode=striped"


def typed(*lines: str, model: str = "modern", conf: str = DATAWARP) -> Ran:
    """Run a timeline of ``SECOND USER COMMAND`` lines on a cluster with DataWarp."""
    entries = []
    for line in lines:
        at, user, command = line.split(" ", 2)
        quoted = command.replace('"', '\\"')
        entries.append(f'  - {{at: {at}s, as: {user}, run: "{quoted}"}}\n')
    return run(conf + FILES + "timeline:\n" + "".join(entries), model=model)


def command(ran: Ran, text: str) -> CommandResult:
    """Return the first command of the timeline that has *text* in it."""
    return next(each for each in ran.result.commands if text in each.command)


# --bb and --bbf.


@pytest.mark.parametrize(
    ("script", "lines", "whole"),
    [
        ("#!/bin/sh\ntrue\n", "#DW a\n", "#!/bin/sh\n#DW a\ntrue\n"),
        ("#!/bin/sh\ntrue\n", "#DW a\n#DW b", "#!/bin/sh\n#DW a\n#DW b\ntrue\n"),
        ("#!/bin/sh", "#DW a", "#!/bin/sh\n#DW a\n"),
        ("true\n", "#DW a", "#DW a\ntrue\n"),
        ("#!/bin/sh\ntrue\n", "", "#!/bin/sh\ntrue\n"),
    ],
)
def test_directives_stand_below_the_first_line(script: str, lines: str, whole: str) -> None:
    """Where the interpreter is named; a plugin looks for them above the first command."""
    assert inserted(script, lines) == whole


@pytest.mark.parametrize("options", ["--bbf dw.txt", f"--bb='{DW}'"])
def test_directives_of_the_command_line_become_lines_of_the_script(options: str) -> None:
    """A file of them, or a text that is one; the plugin reads them as the script's own."""
    ran = typed(f"0 alice sbatch {options} plain.sh", "1 alice scontrol write batch_script 1 -")
    script = command(ran, "write").stdout
    assert script.startswith(f"#!/bin/sh\n{DW}\n#SBATCH --time=10\nsleep 3\n")
    assert ran.all("dw_setup", job=1)


def test_another_text_of_sbatch_is_for_the_plugin() -> None:
    """It goes beside the script, which stays as it is."""
    ran = typed(
        "0 alice sbatch --bb='capacity=5GiB access=striped type=scratch' plain.sh",
        "1 alice scontrol write batch_script 1 -",
        "1 alice squeue -h -O burstbuffer:70",
    )
    assert "#DW" not in command(ran, "write").stdout
    shown = command(ran, "squeue").stdout.strip()
    assert shown == "#DW jobdw capacity=5GiB access_mode=striped type=scratch"


@pytest.mark.parametrize(
    "line",
    [
        "srun --bb='capacity=20GiB access=striped type=scratch' true",
        "srun --bbf dw.txt true",
        "salloc --bb='capacity=20GiB access=striped type=scratch' true",
        "salloc --bbf dw.txt true",
    ],
)
def test_jobs_without_a_script_wait_for_their_burst_buffer(line: str) -> None:
    """Queued with the usual words, then allocated; a text, a file and a variable do alike."""
    ran = typed(f"0 alice {line}")
    told = command(ran, line).stderr
    assert "queued and waiting for resources" in told
    assert "has been allocated resources" in told
    assert "Waiting for burst buffer" not in told
    assert command(ran, line).exit == 0
    assert ran.all("dw_setup", job=1)


@pytest.mark.parametrize(
    ("variable", "name"), [("SLURM_BURST_BUFFER", "srun"), ("SALLOC_BURST_BUFFER", "salloc")]
)
def test_variables_stand_for_the_option(variable: str, name: str) -> None:
    """Of srun and salloc; sbatch has none."""
    wish = "capacity=20GiB access=striped type=scratch"
    script = f"unset SLURM_JOB_ID; export SBATCH_BURST_BUFFER=x; {variable}='{wish}' {name} true"
    ran = typed(f'0 alice salloc -N1 sh -c "{script}"')
    assert ran.result.commands[0].exit == 0
    assert not ran.all("dw_setup", job=1)
    assert ran.all("dw_setup", job=2)


@pytest.mark.parametrize("name", ["sbatch", "srun", "salloc"])
def test_both_options_and_a_file_that_is_missing_are_refused(name: str) -> None:
    """As Slurm does, before anything is submitted."""
    what = "plain.sh" if name == "sbatch" else "true"
    ran = typed(f"0 alice {name} --bb=x --bbf=dw.txt {what}", f"0 alice {name} --bbf=no {what}")
    both, missing = ran.result.commands
    assert both.stderr == f"{name}: error: Cannot specify both --burst-buffer and --bbf\n"
    assert missing.stderr == f"{name}: error: Invalid --bbf specification\n"
    assert (both.exit, missing.exit) == (1, 1)
    assert not ran.all("bb_p_job_validate")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sbatch --bb='#DW jobdw capacity=1XB' plain.sh", "Batch job submission failed"),
        ("srun --bb='capacity=1XB' true", "Unable to allocate resources"),
        ("salloc --bb='capacity=1XB' true", "Job submit/allocate failed"),
    ],
)
def test_a_refusal_has_the_plugins_words_before_slurms(line: str, told: str) -> None:
    """What the plugin says stands in a line of its own."""
    ran = typed(f"0 alice {line}")
    name = line.partition(" ")[0]
    *words, last = ran.stderr().splitlines()
    assert last == f"{name}: error: {told}: Burst Buffer request invalid"
    assert words
    assert all(each.startswith(f"{name}: error: ") for each in words)
    assert ran.result.commands[0].exit == 1
    assert not ran.result.rows


# Displays.


def test_a_job_is_shown_with_its_burst_buffer() -> None:
    """Directives, state, TRES; in place of the reason what the plugin says."""
    ran = typed(
        "0 alice sbatch full.sh",
        "3 alice scontrol show job 1",
        "3 alice squeue -h -O burstbufferstate,reason",
        "11 alice squeue -h -O tres-alloc:60",
        "15 alice squeue -h -t STAGE_OUT -o '%T %t %r %R'",
        "15 alice squeue -h -t so -o %i",
        "15 alice scontrol show job=1",
        "20 alice squeue -h -t all -O jobid,state,burstbufferstate,reason",
        "20 alice sacct -n -X -P -o alloctres,reqtres",
    )
    before = command(ran, "show job 1").stdout
    for line in (
        "   JobState=PENDING Reason=BurstBufferStageIn Dependency=(null)",
        "   BurstBuffer=#DW jobdw type=scratch capacity=10GiB access_mode=striped",
        "#DW stage_in type=file source=/lus/in destination=$DW_JOB_STRIPED/a",
        "   BurstBufferState=staging-in",
    ):
        assert f"{line}\n" in before
    pending = command(ran, "burstbufferstate,reason").stdout.split()
    assert pending == ["staging-in", "BurstBufferStageIn"]
    assert command(ran, "tres-alloc").stdout.strip().endswith(",billing=4,bb/datawarp=10G")
    after = command(ran, "show job=1").stdout
    assert "   TRES=cpu=4,node=1,billing=4,bb/datawarp=10G\n" in after
    said = "burst_buffer/datawarp: Stage-out in progress"
    assert f"JobState=STAGE_OUT Reason={said.replace(' ', '_')} Dep" in after
    assert command(ran, "STAGE_OUT").stdout == f"STAGE_OUT SO {said} ({said})\n"
    assert command(ran, "-t so").stdout == "1\n"
    assert command(ran, "-t all").stdout.split() == ["1", "COMPLETED", "complete", "None"]
    allocated, asked = command(ran, "sacct").stdout.strip().split("|")
    assert "bb/datawarp=10G,billing=" in allocated
    assert asked.startswith("bb/datawarp=10G")


def test_what_is_not_counted_is_in_no_tres() -> None:
    """AccountingStorageTRES has to name it."""
    conf = DATAWARP.replace(", AccountingStorageTRES: bb/datawarp", "")
    ran = typed("0 alice sbatch full.sh", "2 alice scontrol show job 1", conf=conf)
    assert "   TRES=cpu=1,node=1,billing=1\n" in command(ran, "show job").stdout


def test_failures_are_told_in_comments() -> None:
    """The system's comment has a date; the reason has none, and blanks only in squeue."""
    conf = DATAWARP + "  functions: {data_in: {exit: 1, output: no such file}}\n"
    ran = typed(
        "0 alice sbatch full.sh",
        "9 alice scontrol show job 1",
        "9 alice squeue -h -o %r",
        "9 alice squeue -h -O system_comment:80",
        conf=conf,
    )
    reason = command(ran, "%r").stdout.strip()
    assert reason.startswith("burst_buffer/datawarp: dws_data_in: no such file")
    shown = command(ran, "show job").stdout
    assert f"Reason={reason.replace(' ', '_')} " in shown
    comment = command(ran, "system_comment").stdout.strip()
    assert comment.startswith("01/01/26 00:00:0")
    assert f"SystemComment={comment}" in shown
    assert "Priority=0 " in shown


def test_the_state_of_burst_buffers_is_shown_while_a_job_has_one() -> None:
    """And nothing of it once it is torn down; any beginning of the word will do."""
    ran = typed(
        "0 alice sbatch full.sh",
        "3 alice scontrol show burst",
        "60 bob scontrol -o show burstbuffer",
        "60 bob scontrol show config",
    )
    lines = command(ran, "show burst").stdout.splitlines()
    space = "FreeSpace=90GiB UsedSpace=10GiB"
    assert lines[0].startswith("Name=datawarp DefaultPool=wlm_pool Granularity=1GiB")
    assert lines[0].endswith(f"TotalSpace=100GiB {space}")
    assert lines[-4:] == [
        "  Allocated Buffers:",
        "    JobID=1 CreateTime=2026-01-01T00:00:01 Pool=wlm_pool Size=10GiB State=allocated "
        "UserID=alice(1001)",
        "  Per User Buffer Use:",
        "    UserID=alice(1001) Used=10GiB",
    ]
    (later,) = command(ran, "-o show").stdout.splitlines()
    assert "FreeSpace=100GiB UsedSpace=0 Flags=" in later
    config = command(ran, "config").stdout
    assert "BurstBufferType         = burst_buffer/datawarp\n" in config
    assert ",vmem,pages,bb/datawarp\n" in config


def test_a_reservation_names_what_it_keeps() -> None:
    """In its own line, and translated by the plugin into TRES."""
    ran = typed(
        "0 root scontrol create reservation=r starttime=now+60 duration=9 users=alice nodes=n1 "
        "burstbuffer=datawarp:2G",
        "1 alice scontrol show reservation r",
        "2 root scontrol update reservation=r burst=datawarp:4G",
        "3 alice scontrol show reservation=r",
    )
    first = command(ran, "show reservation r").stdout
    assert "State=INACTIVE BurstBuffer=datawarp:2G Watts=n/a" in first
    assert "TRES=cpu=4,bb/datawarp=2G\n" in first
    later = command(ran, "show reservation=r").stdout
    assert "BurstBuffer=datawarp:4G" in later
    assert "bb/datawarp=4G\n" in later


# scancel and dependencies.


def test_hurry_gives_up_the_stage_out() -> None:
    """A plain scancel of a job that is over does nothing; with --hurry its buffer is torn down."""
    ran = typed("0 alice sbatch full.sh", "14 alice scancel 1", "15 alice scancel --hurry 1")
    plain, hurried = (each for each in ran.result.commands if "scancel" in each.command)
    assert [(each.stderr, each.exit) for each in (plain, hurried)] == [("", 0), ("", 0)]
    teardown = ran.all("dw_teardown", job=1)
    assert len(teardown) == 1
    assert "--hurry" in str(teardown[0].args)


@pytest.mark.parametrize("how", ["", "--hurry "])
def test_hurry_leaves_a_running_jobs_data_behind(how: str) -> None:
    """Without it what a cancelled job has written is staged out all the same."""
    ran = typed("0 alice sbatch full.sh", f"11 alice scancel {how}1")
    assert bool(ran.all("dw_data_out", job=1)) is not bool(how)
    assert ran.job()[0] == "CANCELLED"


def test_an_error_of_the_plugin_is_the_answer_to_scancel() -> None:
    """Where a stage-out cannot be given up."""
    fault = "  - {at: 0s, fault: {fail: bb_p_job_cancel, rc: 2094}}\n"
    lines = (
        "  - {at: 0s, as: alice, run: sbatch full.sh}\n"
        "  - {at: 15s, as: alice, run: scancel --hurry 1}\n"
    )
    ran = run(DATAWARP + FILES + "timeline:\n" + fault + lines, model="modern")
    result = command(ran, "scancel")
    told = "scancel: error: Kill job error on job id 1: Burst Buffer request invalid\n"
    assert result.stderr == told
    assert result.exit == 2094 & 0xFF


def test_a_job_may_wait_for_the_stage_out_of_another() -> None:
    """Until its data is out, not only its run over."""
    ran = typed(
        "0 alice sbatch full.sh",
        "1 alice sbatch -d afterburstbuffer:1 plain.sh",
        "2 alice squeue -h -j 2 -o '%r %E'",
    )
    assert command(ran, "squeue").stdout == "Dependency afterburstbuffer:1(unfulfilled)\n"
    out_us = ran.all("bb_state", job=1, args_to="TEARDOWN")[0].time_us
    started = ran.all("job_state", job=2, args_to="RUNNING")[0].time_us
    assert started >= out_us


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_each_task_of_an_array_has_a_burst_buffer_of_its_own(model: str) -> None:
    """Staged in under the task's own id, and shown as the task's."""
    ran = typed(
        "0 alice sbatch --array=0-2 full.sh",
        "8 alice scontrol show burst",
        "40 alice squeue -h -t all -o '%i %A'",
        model=model,
    )
    ids = dict(line.split() for line in command(ran, "squeue").stdout.splitlines())
    assert sorted(ids) == ["1_0", "1_1", "1_2"]
    staged = {event.job for event in ran.all("bb_state", args_to="STAGING_IN")}
    assert staged == set(map(int, ids.values()))
    assert f"    JobID=1_0({ids['1_0']}) CreateTime=" in command(ran, "burst").stdout
    assert [ran.job(int(job_id))[0] for job_id in ids.values()] == ["COMPLETED"] * 3


# The picture.

SCENARIO = """\
nodes: [{name: n1, cpus: 4}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
"""


@pytest.fixture
def simctl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return what runs a scenario with the command, and returns what it prints."""

    def printed(text: str, *options: str) -> str:
        (tmp_path / "s.yaml").write_text(SCENARIO + text)
        assert main(["run", str(tmp_path / "s.yaml"), *options]) == 0
        return capsys.readouterr().out

    return printed


def test_a_run_with_burst_buffers_ends_with_a_picture(simctl: Callable[..., str]) -> None:
    """Of jobs that have one; the same each time, 80 columns wide, not with --quiet and --json."""
    text = (
        DATAWARP
        + FILES
        + "timeline:\n"
        + "  - {at: 0s, as: alice, run: sbatch full.sh}\n"
        + "  - {at: 0s, as: alice, run: sbatch plain.sh}\n"
    )
    printed = simctl(text)
    lines = printed.splitlines()
    head = "> stages in  - pre-run  # runs  < stages out  x teardown"
    (place,) = (number for number, line in enumerate(lines) if line.endswith(head))
    assert lines[place].startswith("burst buffers: ")
    assert lines[place + 1].startswith("          |0s")
    assert lines[place + 2].startswith("1 full.sh >>>>")
    assert lines[place + 3] == ""
    assert max(map(len, lines[place : place + 3])) <= 80
    order = [mark for mark in ">-#<x" if mark in lines[place + 2]]
    assert order == sorted(order, key=lines[place + 2].index)
    assert simctl(text, "--model", "modern").count(head) == 1
    for option in ("--quiet", "--json"):
        assert "burst buffers:" not in simctl(text, option)


def test_a_run_without_burst_buffers_has_no_picture(simctl: Callable[..., str]) -> None:
    """Nor one that has plugins and no job that uses them."""
    job = "timeline: [{at: 0s, as: alice, run: sbatch plain.sh}]\n"
    for conf in ("", DATAWARP):
        assert "burst buffers" not in simctl(conf + FILES + job)
