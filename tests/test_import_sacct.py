"""`simctl import sacct`: what sacct printed, imported and run, gives the same jobs."""

import json
import re
import tempfile
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.cli import main
from simctl.scenario.load import read_scenario
from simctl.status import OK
from simctl.world import World

HEAD = """\
start_time: 2026-11-20T00:00:00Z
slurm_conf: {SelectType: select/cons_tres, SelectTypeParameters: CR_CPU_Memory, DefMemPerCPU: 10}
nodes: [{name: "n[1-3]", cpus: 4, memory_mb: 1000}]
partitions:
  - {name: debug, nodes: "n[1-3]", default: true}
  - {name: long, nodes: "n[2-3]"}
users:
  alice: {uid: 1001, account: proj1}
  bob: {uid: 1002, account: proj2}
"""
ASKED = (
    "jobid,submit,start,end,eligible,elapsedraw,state,exitcode,user,uid,account,partition,jobname,"
    "timelimit,alloccpus,nnodes,nodelist,reqmem"
)
COMPARED = (
    "jobid,jobname,user,account,partition,submit,alloccpus,nnodes,reqmem,elapsedraw,state,"
    "timelimit,exitcode"
)
LATE = "9000s"


def run_and_ask(text: str, *commands: str) -> list[str]:
    """Return what commands of root print long after all the rest of a timeline."""
    entries = "".join(f'  - {{at: {LATE}, as: root, run: "{command}"}}\n' for command in commands)
    scenario = read_scenario(text + entries, file="s.yaml")
    result = World(scenario, model=scenario.model).run()
    assert not result.stalled
    return [command.stdout for command in result.commands[-len(commands) :]]


def sacct(fields: str) -> str:
    """Return a command line that prints all records."""
    return f"sacct -a -D -P -S 2026-11-20 -o {fields}"


def imported(printed: str, folder: Path) -> str:
    """Return the scenario that is made of what sacct printed."""
    (folder / "in.txt").write_text(printed)
    assert (
        main(["import", "sacct", str(folder / "in.txt"), "--force", "-o", str(folder / "out.yaml")])
        == 0
    )
    return (folder / "out.yaml").read_text()


def jobs_of(printed: str) -> list[str]:
    """Return the lines of jobs; when a run was given up, and so the next submitted, is chance."""
    lines, given_up = [], set()
    for line in printed.splitlines():
        job_id = line.partition("|")[0]
        if "." not in job_id:
            lines.append(re.sub(r"\d{4}-[^|]*", "", line) if job_id in given_up else line)
        if "|REQUEUED|" in line:
            given_up.add(job_id)
    return sorted(lines)


@st.composite
def jobs(draw: st.DrawFn) -> list[str]:
    """Return entries of a timeline: jobs that end in every way that a replay repeats."""
    entries = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        at = draw(st.integers(0, 40))
        user = draw(st.sampled_from(["alice", "bob"]))
        nodes = draw(st.integers(1, 2))
        size = f"-N{nodes} -n{nodes * draw(st.integers(1, 3))} -t 30 --jobid={number * 100}"
        where = draw(st.sampled_from(["", " -p long", " --mem=50", " -A other"]))
        length = draw(st.integers(0, 50))
        kind = draw(st.sampled_from(["ends", "fails", "killed", "array", "own", "again", "some"]))
        script = {
            "ends": f"srun sleep {length}",
            "fails": f"sleep {length}; exit {1 + length % 7}",
            "killed": f"srun sleep {length}; kill -9 $$",
            "array": f"srun sleep {length}",
            "some": f"sleep {length}; [ $SLURM_ARRAY_TASK_ID = 7 ] && "
            "scancel ${SLURM_ARRAY_JOB_ID}_7; sleep 20",
            "own": f"sleep {length}; scancel $SLURM_JOB_ID; sleep 9",
            "again": f"sleep {length}; scontrol requeue $SLURM_JOB_ID; sleep 9",
        }[kind]
        if kind == "again":
            script = f"[ $SLURM_RESTART_COUNT ] && exit; {script}"
        more = " -a 0-2,7" if kind in ("array", "some") else ""
        entries.append(
            f"{{at: {at}s, as: {user}, run: \"sbatch {size}{where}{more} --wrap '{script}'\"}}"
        )
    return entries


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_a_run_that_is_imported_gives_the_same_jobs(entries: list[str]) -> None:
    """At the same times, of the same sizes, as long, and in the same states."""
    text = HEAD + "timeline:\n" + "".join(f"  - {entry}\n" for entry in entries)
    told, wanted = run_and_ask(text, sacct(ASKED), sacct(COMPARED))
    with tempfile.TemporaryDirectory() as folder:
        again = imported(told, Path(folder))
    assert jobs_of(run_and_ask(again, sacct(COMPARED))[0]) == jobs_of(wanted)


def test_what_waited_is_cancelled_where_it_was(tmp_path: Path) -> None:
    """A held job by its user, the tasks of an array that never started by root."""
    text = (
        HEAD
        + """\
timeline:
  - {at: 0s, as: alice, run: "sbatch -H -J held --wrap true"}
  - {at: 1s, as: bob, run: "sbatch -J many -a 1-5%1 --wrap 'sleep 20'"}
  - {at: 9s, as: alice, run: scancel 1}
  - {at: 30s, as: root, run: scancel 2}
"""
    )
    query = "sacct -a -P -X -S 2026-11-20 -E now -s CD,CA -o "
    fields = "jobid,submit,jobname,elapsedraw,state"
    told, wanted = run_and_ask(text, query + ASKED, query + fields)
    assert run_and_ask(imported(told, tmp_path), query + fields)[0] == wanted
    assert "2_[3-5%1]|2026-11-20T00:00:01|many|0|CANCELLED by 0" in wanted


def rows(*lines: str, head: str = "JobID|Submit|Elapsed|NCPUS|State|ExitCode|User") -> str:
    """Return what sacct printed: a header, and lines whose times are of one day."""
    return "\n".join([head, *lines]).replace(" T", "2026-01-05T") + "\n"


def make(text: str, folder: Path, status: int = 0) -> str:
    """Import a text; return the scenario."""
    source, target = folder / "in.txt", folder / "out.yaml"
    source.write_text(text)
    assert main(["import", "sacct", str(source), "--force", "-o", str(target)]) == status
    return target.read_text() if not status else ""


def test_columns_come_in_any_order_and_case(tmp_path: Path) -> None:
    """With a delimiter at the end or without, and with headers again where files were joined."""
    one = make(rows("7| T10:00:30|00:00:09|2|COMPLETED|0:0|amy"), tmp_path)
    text = "state|USER|ncpus|Submit|JobID|CPUTimeRAW|\n" * 2
    text += "COMPLETED|amy|2|2026-01-05T10:00:30|7|18|\n"
    assert make(text, tmp_path).partition("start_time")[2] == one.partition("start_time")[2]
    assert "start_time: 2026-01-05T10:00:00Z" in one
    assert (
        '{at: 30s, as: "amy", run: "sbatch --jobid=7 -N1 -n1 -c2 \'--wrap=srun sleep 9\'"}' in one
    )


def test_lines_that_are_no_use_are_told_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error, in the head of the scenario, and in the last line."""
    text = rows(
        "1| T10:00:00|00:00:09|2|COMPLETED|0:0|amy",
        "1| T10:00:00|00:00:09|2|COMPLETED|0:0|amy",
        "1.batch| T10:00:00|00:00:09|2|COMPLETED|0:0|",
        "2| T10:00:00|00:00:00|2|PENDING|0:0|amy",
        "3|yesterday|00:00:00|2|COMPLETED|0:0|amy",
        "4| T10:00:00|nine|2|COMPLETED|0:0|amy",
        "5| T10:00:00|00:00:09||COMPLETED|0:0|amy",
        "6| T10:00:00|00:00:09|2|FAILED|0:0|a|b",
        "x| T10:00:00|00:00:09|2|COMPLETED|0:0|amy",
        "8| T10:00:00|00:00:00|2|FAILED|1:0|amy",
        "9| T10:00:00|00:00:01|2|STRANGE|1:0|amy",
        "10| T10:00:00|00:00:00|2|CANCELLED|0:0|amy",
        "11| T10:00:00|00:00:01|2|FAILED|one|amy",
        "12_[x]| T10:00:00|00:00:01|2|FAILED|1:0|amy",
    )
    scenario = make(text, tmp_path)
    told = capsys.readouterr()
    *lines, last = told.err.splitlines()
    assert last.endswith("1 job from 14 lines, 1 of steps, 1 that stand there twice, 11 left out")
    assert len(lines) == 11
    assert "in.txt:5: job 2 is PENDING: how long it will run nobody knows; left out" in told.err
    assert "#   line 6: Submit is 'yesterday': expected a time as 2026-11-20T23:15:23" in scenario
    assert "#   line 9: 8 fields where the header has 7; a | in a name?" in scenario


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "in.txt:the file is empty"),
        ("JobID Submit\n1 2\n", "in.txt:1: expected a header with the columns JobID and Submit"),
        ("JobID|State\n", "in.txt:1: no column Submit; name it in sacct's -o"),
        ("JobID|Submit\n", "in.txt:1: no column one of AllocCPUS, NCPUS"),
        ("JobID|Submit|NCPUS\n", "in.txt:1: no column one of ElapsedRaw, Elapsed"),
        ("JobID|Submit|NCPUS|Start\n", "in.txt:1: no column End beside Start"),
        ("JobID|Submit|NCPUS|Elapsed\n", "no line of 0 tells of a job that ran"),
    ],
)
def test_files_that_are_no_use(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong, and what would do."""
    make(text, tmp_path, 2)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out.yaml").exists()
    assert main(["import", "sacct", str(tmp_path / "none"), "-o", "-"]) == 2
    assert "cannot read" in capsys.readouterr().err
    assert main(["import", "slurm.conf", "x", "-o", "y"]) == 2


def test_states_that_are_not_repeated_are_counted(tmp_path: Path) -> None:
    """They last as long; the head says what became of them."""
    scenario = make(
        rows(
            "1| T10:00:00|00:00:09|2|NODE_FAIL|1:0|amy",
            "2| T10:00:00|00:00:08|2|RUNNING|0:0|amy",
            "3| T10:00:00|1-00:00:07|2|OUT_OF_MEMORY|0:125|amy",
            "4_2000| T10:00:00|00:00:06|2|COMPLETED|0:0|a@b",
        ),
        tmp_path,
    )
    assert "# 1 job: NODE_FAIL; cancelled after as long a run." in scenario
    assert "# 1 job: RUNNING; ends after as long a run as it had by then." in scenario
    assert "# 1 job: a task above 1000 of an array; a job by itself." in scenario
    query = "sacct -a -P -X -S 2026-01-01 -o jobid,elapsedraw,state,user"
    out = run_and_ask(scenario, query)
    assert [line.split("|") for line in out[0].splitlines()[1:]] == [
        ["1", "9", "CANCELLED by 20001", "amy"],
        ["2", "8", "COMPLETED", "amy"],
        ["3", "9000", "RUNNING", "amy"],
        ["4", "6", "COMPLETED", "a_b"],
    ]


def test_sizes_of_older_versions_and_limits(tmp_path: Path) -> None:
    """Memory by node and by cpu; a time limit is raised for what ran longer."""
    head = "JobID|Submit|ElapsedRaw|ReqCPUS|NNodes|ReqMem|Timelimit|AllocTRES"
    scenario = make(
        rows(
            "1| T10:00:00|9|4|2|4Gn|UNLIMITED|",
            "2| T10:00:00|90|4|2|100Mc|00:01:00|",
            "3| T10:00:00|9|5|2|1G|1-00:00:00|",
            "4| T10:00:00|9|3|3|1G|1-00:00:00|",
            "5| T10:00:00|9|3|3|1M|1-00:00:00|",
            "6| T10:00:00|9|3|3|3M|1-00:00:00|",
            head=head,
        ),
        tmp_path,
    )
    assert "--jobid=1 -N2 -n2 -c2 --mem=4096 --time=UNLIMITED" in scenario
    assert "--jobid=2 -N2 -n2 -c2 --mem=200 --time=2" in scenario
    assert "--jobid=3 -N2 -n5 --mem=512 --time=1440" in scenario
    for job, memory in ((4, 342), (5, 1), (6, 1)):
        assert f"--jobid={job} -N3 -n3 -c1 --mem={memory} " in scenario
    assert "1 job: ran longer than the time limit, which is raised" in scenario


def test_runs_of_a_job_ids_used_again_and_uids(tmp_path: Path) -> None:
    """A wait is told of jobs that ran once; an operator who cancels often is not the user."""
    head = "JobID|Submit|Start|End|State|ExitCode|User|UID|AllocCPUS|Timelimit"
    scenario = make(
        rows(
            "1| T10:00:00| T10:00:10| T10:00:20|REQUEUED|0:0|amy||2|00:01:30",
            "1| T10:00:00| T10:02:30| T10:02:40|COMPLETED|0:0|amy||2|00:01:30",
            "2| T10:01:00| T10:01:10| T10:01:20|COMPLETED|0:0|amy|1001|2|00:01:00",
            "2| T11:01:00| T11:01:05| T11:01:20|COMPLETED|0:0|amy||2|00:01:00",
            *(
                f"{job}| T10:00:00| T10:00:10| T10:00:20|CANCELLED by 900|0:0|amy||2|00:01:00"
                for job in (3, 4, 5)
            ),
            head=head,
        ),
        tmp_path,
    )
    commands = [line for line in scenario.splitlines() if "run: " in line and "sbatch" in line]
    assert len(commands) == 6
    assert "--time=2" in commands[0]
    assert "uid: 1001" in scenario
    assert "uid: 900" not in scenario
    recorded = scenario.partition("\nrecorded:\n")[2]
    assert '"2": 10s' in recorded
    assert recorded.count('"2"') == 1  # The second of that id has another here.
    assert not read_scenario(scenario, file="s.yaml").warnings
    assert '"1"' not in recorded


def test_what_is_not_taken_over_is_told_with_how_many_had_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Generic resources, QOS, reservations and features: in the head and on standard error."""
    head = "JobID|Submit|ElapsedRaw|AllocCPUS|AllocTRES|ReqGRES|QOS|Reservation|Constraints"
    scenario = make(
        rows(
            "1| T10:00:00|9|4|cpu=4,gres/gpu=2,gres/gpu:a100=2||high||",
            "2| T10:00:01|9|4|cpu=4,license/matlab=1|gres:gpu:1|normal|maint|bigmem",
            "3| T10:00:02|9|4|cpu=4,mem=3G,billing=4|||  |",
            head=head,
        ),
        tmp_path,
    )
    told = [
        "2 jobs: had gres/gpu, license/matlab, which is not taken over: they do not wait for it",
        "1 job: had QOS high, which is not taken over: its priority and limits do not act",
        "1 job: ran in reservation maint, which is not taken over: nothing is kept free for them",
        "1 job: asked for features bigmem, which are not taken over",
    ]
    err = capsys.readouterr().err
    for line in told:
        assert f"# {line}" in scenario
        assert f"simctl: {line}" in err
    assert "Columns without a use" not in scenario


def test_limits_and_memory_end_jobs_again(tmp_path: Path) -> None:
    """A run into its time limit is as long, for limits are looked at at the same moments."""
    text = (
        HEAD
        + """\
programs: {./eat: {runs: 3s, oom: true}}
timeline:
  - {at: 7s, as: alice, run: "sbatch -t 1 --wrap 'srun sleep 300'"}
  - {at: 9s, as: bob, run: "sbatch -t 5 --wrap ./eat"}
  - {at: 9s, as: bob, run: "sbatch -t 5 --wrap 'kill -SEGV $$'"}
"""
    )
    told, wanted = run_and_ask(text, sacct(ASKED), sacct(COMPARED))
    assert jobs_of(run_and_ask(imported(told, tmp_path), sacct(COMPARED))[0]) == jobs_of(wanted)
    for state in ("TIMEOUT", "OUT_OF_MEMORY", "FAILED"):
        assert f"|{state}|" in wanted


ODD_NAMES: Final = [
    *(chr(code) for code in (*range(1, 10), *range(11, 33), *range(0x7F, 0xA1))),
    *("\u2028", "\u202e", "\ufeff", "\ufffe", "\uffff", "\U0001f600", "\U000e0001"),
    *("'", '"', "\\", "#", ": ", "- ", "--help", "$(x)", "%j", "*", "{a}", "null", "\u00e9"),
]


def test_odd_names_make_scenarios_that_run(tmp_path: Path) -> None:
    """Whatever users call their jobs, the name comes back; a partition has letters of its own."""
    columns = "JobID|JobName|User|Submit|Start|End|State|ExitCode|NNodes|NodeList|AllocCPUS|"
    columns += "Partition"
    lines = [
        f"{number}|a{odd}b|alice|2026-11-20T00:00:00|2026-11-20T00:00:01|2026-11-20T00:00:11|"
        f"COMPLETED|0:0|1|n1|1|p"
        for number, odd in enumerate(ODD_NAMES, start=1)
    ]
    # A null character ends a name, and cannot be in one.
    lines.append(lines[0].replace("1|a\x01b", "900|a\0b").replace("|p", "|a b"))
    text = imported("\n".join([columns, *lines]) + "\n", tmp_path)
    scenario = read_scenario(text, file="s.yaml")
    result = World(scenario, model=scenario.model).run()
    assert [row.state for row in result.rows] == ["COMPLETED"] * len(lines)
    assert [row.name for row in result.rows] == [*(f"a{odd}b" for odd in ODD_NAMES), "ab"]
    assert {row.partition for row in result.rows} == {"p", "a_b"}


REPLAYED = """\
JobID|Submit|Start|End|State|ExitCode|User|UID|Partition|AllocCPUS|NNodes|NodeList
101|2026-11-16T08:00:00|2026-11-16T08:00:10|2026-11-16T09:00:10|COMPLETED|0:0|amy|1001|p|4|1|n1
102|2026-11-16T08:00:05|2026-11-16T09:30:00|2026-11-16T10:00:10|COMPLETED|0:0|bob|1002|p|4|1|n1
103_1|2026-11-16T08:10:05|2026-11-16T08:10:06|2026-11-16T08:20:06|FAILED|3:0|bob|1002|p|4|1|n1
"""


def test_a_replay_prints_measures_with_the_recorded_waits_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no line for each job; programs find them under `replay`."""
    source, path = tmp_path / "week.txt", tmp_path / "week.yaml"
    source.write_text(REPLAYED)
    assert main(["import", "sacct", str(source), "-o", str(path)]) == OK
    capsys.readouterr()
    assert main(["run", str(path)]) == OK
    out = capsys.readouterr().out
    for told in ("utilisation", "recorded (s)", "jobs by state: COMPLETED 2, FAILED 1"):
        assert told in out
    assert "of 3 jobs with a recorded wait 1 waited as long" in out
    assert "1 started sooner, 1 later" in out
    assert "JOBID" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert main(["run", str(path), "--json"]) == OK
    found = json.loads(capsys.readouterr().out)["replay"]
    assert found["recorded"] == {"jobs": 3, "alike": 1, "sooner": 1, "later": 1}
    assert found["jobs"] == 3


def test_a_job_ran_that_had_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It may have FAILED within its first second; without nodes it failed before it started."""
    head = "JobID|Submit|Start|End|State|ExitCode|User|NodeList|AllocCPUS"
    moments = " T10:00:00| T10:00:00"
    make(
        rows(
            f"1| T10:00:00|{moments}|FAILED|1:0|amy|n1|1",
            f"2| T10:00:00|{moments}|FAILED|1:0|amy|None assigned|1",
            f"3| T10:00:00|{moments}|COMPLETED|0:0|amy|None assigned|1",
            "4| T10:00:00| T10:00:00| T10:00:01|FAILED|1:0|amy|None assigned|1",
            "5| T10:00:00|Unknown| T10:00:00|COMPLETED|0:0|amy||1",
            head=head,
        ),
        tmp_path,
    )
    told = capsys.readouterr().err
    assert re.findall(r"job (\d) is \w+ and never had nodes", told) == ["2", "5"]


@pytest.mark.parametrize(
    ("limits", "option"),
    [
        (("00:01:00", "00:10:00"), "--time=10 "),
        (("00:10:00", "00:01:00"), "--time=10 "),
        (("UNLIMITED", "00:01:00"), "--time=UNLIMITED "),
    ],
)
def test_an_array_has_the_longest_limit_of_its_tasks(
    limits: tuple[str, str], option: str, tmp_path: Path
) -> None:
    """So that none ends before its time."""
    head = "JobID|Submit|ElapsedRaw|AllocCPUS|Timelimit|State|ExitCode|User"
    tasks = [
        f"7_{number}| T10:00:00|9|1|{limit}|COMPLETED|0:0|amy"
        for number, limit in enumerate(limits, start=1)
    ]
    scenario = make(rows(*tasks, head=head), tmp_path)
    assert "--array=1-2" in scenario
    assert option in scenario
