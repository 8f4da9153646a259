"""What sacct prints, held against recordings of Slurm's."""

import json
import re
from typing import Any, Final

import msgspec
import pytest

from simctl.commands.sacct.lines import View
from simctl.commands.sacct.select import Query, choose, read_wanted, window
from simctl.wire.accounts import NOBODY, JobAccount, as_of
from simctl.world import CommandResult
from tests.cluster import run
from tests.entries import typed
from tests.printed import CLUSTER, assert_as_printed, blurred, read


def ask_all(situation: str, lines: list[str], *, first: int, at: str) -> list[CommandResult]:
    """Return what commands of alice print once the rest of the timeline has happened."""
    cluster = CLUSTER.replace("slurm_conf:\n", f"slurm_conf:\n  FirstJobId: {first}\n")
    timeline = "" if "timeline:" in situation else "timeline:\n"
    entries = "".join(f"  - {{at: {at}, as: alice, run: {line!r}}}\n" for line in lines)
    return list(run(situation + timeline + entries, cluster=cluster).result.commands[-len(lines) :])


def ask(situation: str, line: str, *, first: int = 1, at: str = "90s") -> CommandResult:
    """Return what one command of alice prints."""
    return ask_all(situation, [line], first=first, at=at)[0]


@pytest.mark.parametrize(
    "name",
    "bad_fmt bad_id bad_id2 bad_state badopt badtime comp e state_noend u_bad".split(),
)
def test_what_needs_no_jobs(name: str) -> None:
    """Errors, the list of fields, and headings above nothing."""
    recorded = read(f"sacct/{name}")
    assert_as_printed(f"sacct/{name}", ask("", recorded.line))


_NINE = """\
files:
  sub.sh: |
    #!/bin/sh
    #SBATCH -J submitit --mem=204 -t 3
    if [ $SLURM_ARRAY_TASK_ID = 2 ]; then
      srun -J python ./bad
      exit 1
    fi
    srun python
programs:
  python: {runs: 2s}
  ./bad: {runs: 2s, exit: 1}
timeline:
  - {at: 0s, as: alice, run: "sbatch -a 0-3%2 sub.sh"}
"""


@pytest.mark.parametrize(
    "name",
    "array_el b delim fmt_widths j_P long noconvert p step_sel submitit units".split(),
)
def test_an_array(name: str) -> None:
    """Tasks in the order in which accounting heard of them, each before its steps."""
    found = ask(_NINE, read(f"sacct/{name}").line, first=9)
    # How long sixteen programs of the recording took, and on which node, was chance.
    assert_as_printed(f"sacct/{name}", found, {r"00:00:0[12]": "LENGTH", r"\|n\d": "|NODE"})


_LISTS = ("states_all", "default", "X", "state_times", "cancelledby", "snk")
"""Recordings of a day: what they say of some of its jobs is held against a run of those alone."""


def _timeline(*entries: str) -> str:
    """Return a timeline: each entry is a moment and what alice, or another, runs."""
    lines = []
    for entry in entries:
        at, _, command = entry.partition(" ")
        who, colon, rest = command.partition(": ")
        user, command = (who, rest) if colon and " " not in who else ("alice", command)
        lines.append(f"  - {{at: {at}, as: {user}, run: {json.dumps(command)}}}\n")
    return "timeline:\n" + "".join(lines)


_BASH = "programs: {bash: %s}\n"
_HOSTNAME = "programs: {hostname: {runs: 0s}}\n"
_DAY = {
    "a script fails": (133, "", ("0s sbatch -w n4 -J failing --wrap 'exit 1'",)),
    "too long": (
        97,
        "",
        (
            "0s sbatch -J myjob -p short -t60 --wrap true",
            "0s sbatch -J myjob -t0 --wrap true",
            "80s root: scancel 97 98",
        ),
    ),
    "an array": (
        121,
        "",
        (
            "0s sbatch -J averyveryverylongjobname -w n4 -a 0-5%1 --wrap 'sleep 100'",
            "25s scancel -s USR1 -f 121_0",
            "20s scancel 121_4 121_[2-3]",
            "31s scancel 121",
        ),
    ),
    "what partitions and nodes say": (
        126,
        "",
        (
            "0s sbatch -J plim -p short -t60 --wrap true",
            "0s root: scontrol update nodename=n3 state=drain reason=x",
            "1s sbatch -J drained -w n3 --wrap true",
            "2s sbatch -J toobig -n100 --wrap true",
            "2s sbatch -J tootall -n5 -N5 --wrap true",
            "60s root: scontrol update nodename=n3 state=resume",
            "80s scancel 126 128 129",
        ),
    ),
    "srun exits with 3": (146, _BASH % "{exit: 3}", ("0s srun bash",)),
    "srun exits with 3 and 4": (
        147,
        _BASH % "[{tasks: 0, runs: 1s, exit: 3}, {runs: 1s, exit: 4}]",
        ("0s srun -n2 bash",),
    ),
    "killed": (148, _BASH % "{signal: 9}", ("0s srun bash",)),
    "segmentation fault": (149, _BASH % "{signal: 11}", ("0s srun bash",)),
    "srun that waits, or will not": (
        152,
        _HOSTNAME,
        (
            "0s srun -N5 -n5 hostname",
            "1s srun -I -N5 hostname",
            "1s srun -p short -t 60 hostname",
            "1s srun -I -N4 -n16 --exclusive hostname",
            "9s scancel 152 154",
        ),
    ),
    "kill on bad exit": (
        161,
        _BASH % "[{tasks: 0, runs: 1s, exit: 5}, {runs: 20s}]",
        ("0s srun -n2 -K bash", "9s srun -J sj -Q -n1 true"),
    ),
    "time limit of srun": (
        169,
        "",
        ("0s srun -t 0:05 sleep 100", "100s srun -N4 --exclusive sleep 3"),
    ),
    "salloc": (
        173,
        _HOSTNAME,
        ("0s salloc -n1 srun -t 1:00:00 hostname", "2s salloc -n2 true"),
    ),
    "salloc whose command fails": (
        175,
        'files: {x.sh: "#!/bin/sh\\nexit 4\\n"}\n',
        (
            "0s salloc -n1 ./x.sh",
            "2s salloc --no-shell -J no-shell -n1",
            "2s scancel 176",
            "6s salloc -N4 --exclusive true",
            "7s salloc -I -N5 -n5 true",
        ),
    ),
    "time limit of a script": (
        184,
        "",
        (
            "0s sbatch -J nm --wrap true",
            "1s sbatch -t1 -J tmo --wrap 'sleep 300'",
            "2s sbatch --wrap 'sleep 300'",
            "9s scancel 186",
            "10s sbatch --mem=50 --wrap 'sleep 8'",
        ),
    ),
    "a signal before the limit": (
        191,
        "",
        (
            "0s sbatch -t1 -J sigb --signal=B:USR1@40 "
            "--wrap \"trap 'exit 7' USR1; sleep 300 & wait\"",
        ),
    ),
}


@pytest.mark.parametrize("situation", _DAY)
def test_jobs_of_a_day(situation: str) -> None:
    """States, exit codes and what was waited for; which jobs a span of time and a state find."""
    first, more, entries = _DAY[situation]
    lines = [read(f"sacct/{name}").line.removeprefix("$ ") for name in _LISTS]
    found = ask_all(more + _timeline(*entries), lines, first=first, at="300s")
    told = re.findall(r"(?m)^(\d+)", found[0].stdout)
    for name, result in zip(_LISTS, found, strict=True):
        if name == "snk" and "_" in found[0].stdout:
            continue  # Which ids the tasks of an array get hangs on what else came meanwhile.
        recorded = read(f"sacct/{name}")
        rows = recorded.stdout.splitlines()
        head = [row for row in rows if not row[:1].isdigit()]
        body = [row for row in rows if re.split(r"[_|. ]", row)[0] in told]
        # How long a pass of the scheduler takes to come, and which of four nodes it takes.
        blur = {
            r"\d\d:\d\d:\d\d(?=\|[A-Z])": "LENGTH",
            r"\|n\d\|": "|NODE|",
            r"_\[.*?\]": "_TASKS",
            " {8} *C": " C",
        }
        assert blurred(result.stdout, blur) == blurred("\n".join([*head, *body, ""]), blur)


_STUBBORN = """\
programs:
  python: {runs: forever, on_signal: {TERM: ignore}}
  spawner: {runs: forever}
files:
  sub.sh: |
    #!/bin/sh
    #SBATCH -J submitit --mem=200 -t 3
    srun python
"""


@pytest.mark.parametrize(
    ("at_term", "told"),
    [("ignore", "TIMEOUT|0:9"), ("3", "TIMEOUT|3:0"), ("0", "COMPLETED|0:0")],
)
def test_a_step_whose_time_is_over_may_still_end_well(at_term: str, told: str) -> None:
    """It was sent SIGTERM as its time was over, and ended by itself with 0."""
    ran = typed(
        "0 alice sbatch -N1 --wrap 'srun -t1 ./saves'",
        "400 alice sacct -nP -j1.0 -o State,ExitCode",
        head=f"programs: {{./saves: {{runs: 30m, on_signal: {{TERM: {at_term}}}}}}}\n",
    )
    assert ran.result.commands[-1].stdout == f"{told}\n"


def test_steps_that_are_cancelled_with_their_jobs() -> None:
    """A script ends by TERM and its job then; a step that ignores that by KILL, later."""
    timeline = _timeline(
        "0s sbatch sub.sh",
        "5s scancel 13",
        "20s sbatch -a 0-1 sub.sh",
        "23s scancel 14_0",
        "31s scancel 14_1",
    )
    found = ask(_STUBBORN + timeline, read("sacct/steps").line, first=13)
    # Nothing measures memory, and how long things took differs by some seconds.
    sizes = {r"\d+K": "", r"n1\|\d+\|\d+": "NODE|LENGTH"}
    assert_as_printed("sacct/steps", found, sizes)


def test_runs_that_were_given_up() -> None:
    """Only -D shows them, as long as there is a later one."""
    sit = _timeline(
        "0s sbatch -J submitit --mem=204 --wrap 'sleep 60'",
        "5s scontrol requeue 16",
        "7s scancel 16",
    )
    lines = [read("sacct/dupes").line, "sacct -j 16 -P -X -n -o state"]
    every, last = ask_all(sit, lines, first=16, at="30s")
    assert_as_printed("sacct/dupes", every)
    assert last.stdout == "CANCELLED by 2001\n"


def test_a_run_that_was_given_up_is_shown_until_there_is_another() -> None:
    """What waits for its next run is not there yet, as far as a span of time is concerned."""
    sit = _timeline("0s sbatch --wrap 'sleep 60'", "5s scontrol requeue 188")
    found = ask_all(sit, ["sacct -X -n -o jobid,state"], first=188, at="9s")
    assert found[0].stdout.split() == ["188", "REQUEUED"]


def test_the_script_of_a_job() -> None:
    """As sbatch made it."""
    sit = _timeline("0s sbatch --wrap 'exit 3'")
    assert_as_printed("sacct/B", ask(sit, read("sacct/B").line, first=77))


def test_jobs_by_name_and_by_user() -> None:
    """Also those of others."""
    failing = _timeline("0s sbatch -w n4 -J failing --wrap 'exit 1'", "0s sbatch --wrap 'exit 1'")
    assert_as_printed("sacct/name", ask(failing, read("sacct/name").line, first=133))
    bob = _timeline(
        "0s bob: sbatch -n2 -J bobrun --wrap 'sleep 60'",
        "1s sbatch true.sh",
        "9s root: scancel 118",
    )
    assert_as_printed("sacct/other_user", ask(bob, read("sacct/other_user").line, first=118))


def test_where_and_until_when() -> None:
    """A script is on the first node of its job."""
    sit = "programs: {app: {runs: 1s}}\n" + _timeline(
        "0s sbatch -n2 -w n1 --wrap 'srun app'",
        "0s sbatch -p long --wrap true",
        "0s sbatch -n3 -N3 -w n[2-4] --wrap 'srun app'",
    )
    assert_as_printed("sacct/reframe", ask(sit, read("sacct/reframe").line, first=51))


_THREE = _timeline(
    "0s sbatch -n2 -J two --wrap 'sleep 20'",
    "5s sbatch -N2 -n2 -J wide --wrap 'sleep 100'",
    "5s bob: sbatch -J others --wrap true",
)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("", "two wide"),
        ("-a", "two wide others"),
        ("-a -I 2", "two wide"),
        ("-i 2-3", "wide"),
        ("-a -q normal -x 0 -L", "two wide others"),
        ("-a -x 7", ""),
        ("-A proj2 -a", "others"),
        ("-a -g bob", "others"),
        ("-a -r short", ""),
        ("-a --name two,others", "two others"),
        ("-u 2002", "others"),
        ("-s R", "wide"),
        ("-j 2,3", "wide others"),
        ("-S now-10 -E now", "wide"),
        ("-N n2", "wide"),
    ],
)
def test_what_narrows_the_jobs(options: str, names: str) -> None:
    """Each option by itself, on three jobs of which one still runs."""
    found = ask(_THREE, f"sacct -X -n -P -o jobname {options}", at="60s")
    assert (found.stdout.split(), found.stderr, found.exit) == (names.split(), "", 0)


def test_a_job_that_was_cancelled_while_it_waited_waits_no_more() -> None:
    """Neither for -s PD nor in Reserved; and a span ends before who could start only at its end."""
    waits = _timeline(
        "0s sbatch -w n4 --exclusive -J first --wrap 'sleep 500'",
        "1s sbatch -w n4 -J waits --wrap true",
        "11s scancel 2",
    )
    lines = [
        "sacct -X -n -P -o jobname -s PD",
        "sacct -X -n -P -o jobname,reserved -j 2",
        "sacct -X -n -P -o jobname -S 23:14:00 -E 23:14:08",
        "sacct -X -n -P -o jobname -S 23:14:00 -E 23:14:09",
    ]
    found = [each.stdout.split() for each in ask_all(waits, lines, first=1, at="60s")]
    assert found == [[], ["waits|00:00:10"], ["first"], ["first", "waits"]]


def test_a_job_that_waits_starts_as_the_span_ends() -> None:
    """With -T; without, neither is known."""
    job = "  - {at: 0s, as: alice, run: \"sbatch -w n1 --exclusive --wrap 'sleep 99'\"}\n"
    held = f"timeline:\n{job}{job}"
    fields = "-o start,end,elapsed,state -P -n"
    found = ask(held, f"sacct -T -j 2 -S 00:00:00 -E now {fields}", at="60s")
    plain = ask(held, f"sacct -j 2 -S 00:00:00 -E now {fields}", at="60s")
    assert plain.stdout == "Unknown|Unknown|00:00:00|PENDING\n"
    now = "2026-11-20T23:15:07"
    assert found.stdout == f"{now}|{now}|00:00:00|PENDING\n"
    for since_s in (61, 60, 59, 30):
        span = f"-S now-{since_s}seconds -E now"
        assert ask(held, f"sacct -T -j 2 {span} {fields}", at="60s").stdout == found.stdout


def test_times_are_cut_off_at_the_ends_of_the_span() -> None:
    """With -T, of jobs and of steps."""
    fields = "-o jobid,start,end,elapsed,state -P -n"
    found = ask(_THREE, f"sacct -T -j 2 -S 23:15:00 -E now {fields}", at="60s")
    assert found.stdout.splitlines() == [
        "2|2026-11-20T23:15:00|2026-11-20T23:15:07|00:00:07|RUNNING",
        "2.batch|2026-11-20T23:15:00|2026-11-20T23:15:07|00:00:07|RUNNING",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("-q fast", "sacct: error: You gave a bad qos 'fast'.  Valid qos's are normal"),
        ("-i some", "sacct: error: invalid nnodes value: some"),
        ("--units=X", "sacct: fatal: Invalid unit type (X)"),
        (
            "--json",
            "sacct: error: --json is an option of Slurm's that simctl does not simulate yet",
        ),
    ],
)
def test_values_that_are_none(options: str, said: str) -> None:
    """And options that are not built."""
    found = ask("", f"sacct {options}")
    assert (found.stdout, found.stderr.splitlines()[0], found.exit) == ("", said, 1)


def test_words_that_belong_to_no_option() -> None:
    """They end sacct, without a word about it."""
    found = ask("", "sacct 7")
    assert (found.stdout, found.stderr, found.exit) == ("", "", 1)


_ASK = """\
files:
  ask.sh: |
    #!/bin/sh
    export SACCT_FORMAT=jobid%5
    sacct -n -j 1
    sacct -n -X -j 1 -o user
    export SLURM_TIME_FORMAT=%H
    sacct -n -P -X -j 1 -o submit
"""


def test_the_environment_has_formats() -> None:
    """Of fields, where the command line has none, and of times."""
    timeline = _timeline("0s sbatch --wrap true", "5s salloc -Q ./ask.sh")
    found = run(_ASK + timeline, cluster=CLUSTER).result.commands[-1]
    assert found.stdout.split() == ["1", "1.ba+", "alice", "23"]


_TWO_USERS = _timeline(
    "0s sbatch -J mine -w n1 --comment 'for a friend' --wrap 'exit 2'",
    "0s bob: sbatch -J other -w n2 --wrap true",
    "1s sbatch -J again -w n2 --wrap 'sleep 200'",
    "5s root: scontrol requeue 3",
    "5s root: scontrol update jobid=3 reqnodelist=n3",
)


def test_jobs_on_nodes_are_everybodys_and_those_of_their_latest_run() -> None:
    """-N asks for the jobs of all users; a run that another one followed is not looked at."""
    fields = "sacct -X -n -P -o jobid,user"
    found = ask_all(
        _TWO_USERS, [f"{fields} -N n2", f"{fields} -N n3", f"{fields} -N n2 -D"], first=1, at="200s"
    )
    assert [each.stdout for each in found] == ["2|bob\n", "3|alice\n", "2|bob\n3|alice\n"]


def test_words_of_an_option_given_twice_add_up() -> None:
    """As Slurm appends to its lists; brief and long fields follow those that are named."""
    lines = {
        "sacct -n -P -X -j 1 -j 2 -o jobid -o state": "1|FAILED\n2|COMPLETED\n",
        "sacct -n -P -X -u bob -u alice -j 1,2 -o user": "alice\nbob\n",
        "sacct -n -P -X --name mine --name other -a -o jobname": "mine\nother\n",
        "sacct -n -P -X -S 00:00 -E now -s F -s CD -a -o jobid": "1\n2\n",
        "sacct -n -P -X -j 1 -o user -b": "alice|1|FAILED|2:0\n",
        "sacct -n -P -p -X -j 1 -b": "1|FAILED|2:0|\n",
        "sacct -n -p -P -X -j 1 -b": "1|FAILED|2:0\n",
    }
    found = ask_all(_TWO_USERS, list(lines), first=1, at="20s")
    assert [each.stdout for each in found] == list(lines.values())


def test_a_jobs_comment() -> None:
    """It is entered with the job, as the cluster of the recordings stores it."""
    assert ask(_TWO_USERS, "sacct -X -n -P -j 1 -o comment").stdout == "for a friend\n"


_PREEMPTION = """\
slurm_conf: {PreemptType: preempt/partition_prio, PreemptMode: REQUEUE}
nodes: [{name: n1, cpus: 4}]
partitions:
  - {name: low, nodes: n1, default: true, priority_tier: 1}
  - {name: high, nodes: n1, priority_tier: 2}
users: {alice: 1001}
"""


def test_a_run_that_another_job_ended_is_preempted() -> None:
    """A job that preemption sends back into the queue was PREEMPTED, not REQUEUED."""
    situation = _timeline(
        "0s sbatch -n4 --wrap 'sleep 100'",
        "5s sbatch -n4 -p high --wrap 'sleep 10'",
        "60s sacct -D -X -n -P -o jobid,state -j 1,2",
    )
    commands = run(situation, cluster=_PREEMPTION).result.commands
    assert commands[-1].stdout == "1|PREEMPTED\n2|COMPLETED\n1|PENDING\n"


_LIMITS = _timeline(
    "0s sbatch -J short -t 5 --wrap true",
    "0s sbatch -J long -t 1:00:00 --wrap true",
    "0s sbatch -J tasks -t 10 -a 1-3%1 --wrap 'sleep 1000'",
    "0s sbatch -J later -t 20 -b now+5 --wrap true",
)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("-k 5", "1 short"),
        ("-k 0:06:00 -K 1:00:00", "2 long,4 later,3_1 tasks"),
        ("-K 5", "1 short,2 long,4 later,3_1 tasks"),
        ("-R begintime", "4 later"),
        ("-R BeginTime -R Resources", "4 later"),
        ("-W key", ""),
        ("--local --federation --use-local-uid -k 5", "1 short"),
        ("-j 3", "3_1 tasks,3_[2-3%1] tasks"),
        ("-j 3 --array", "3_1 tasks,3_2 tasks,3_3 tasks"),
    ],
)
def test_limits_reasons_and_single_tasks(options: str, told: str) -> None:
    """A range of limits needs the least of them; nobody has a workload key."""
    found = ask(_LIMITS, f"sacct -X -n -P -o jobid,jobname --delimiter=_ {options}", at="60s")
    assert ",".join(found.stdout.splitlines()) == told.replace(" ", "_")


def test_a_limit_that_is_none() -> None:
    """It is refused."""
    found = ask("", "sacct -k soon")
    assert (found.exit, found.stderr) == (1, "sacct: fatal: Invalid time limit specification\n")


def _job(job_id: int = 1, db_index: int = 1, **fields: Any) -> JobAccount:
    """Return what accounting knows of a job; moments of *fields* in seconds, -1 for none."""
    texts = dict.fromkeys(
        "name user account partition reason node_list work_dir submit_line".split(), ""
    )
    numbers = dict.fromkeys(
        """user_id group_id priority exit_code derived_exit_code suspended_us restarts
        alloc_nodes req_nodes alloc_cpus req_cpus alloc_memory_mb req_memory_mb""".split(),
        0,
    )
    moments = {
        f"{name}_us": max(-1, fields.pop(name, -1) * 1_000_000)
        for name in ("submit", "eligible", "start", "end")
    }
    given: dict[str, Any] = {
        **texts,
        **numbers,
        **moments,
        "state": "RUNNING",
        "batch": True,
        **fields,
    }
    return JobAccount(job_id=job_id, db_index=db_index, **given)


def _shown(query: Query, *jobs: JobAccount) -> list[int]:
    view = View(epoch_s=1000, now_s=1100, cluster="c", groups={})
    return [line.job.db_index for line in choose(query, view, jobs, ())]


_COMPLETED: Final = ("COMPLETED",)


@pytest.mark.parametrize(
    ("states", "moments", "state", "shown"),
    [
        # The job's moments: eligible, start, end; the span is from 20 to 30.
        *(((), (10, 12, end), "COMPLETED", end >= 20) for end in (19, 20, 21)),
        *(((), (eligible, -1, -1), "PENDING", eligible < 30) for eligible in (29, 30, 31)),
        *(((), (10, 12, -1), "RUNNING", True), ((), (-1, -1, -1), "PENDING", False)),
        *((("RUNNING",), (0, 10, end), "FAILED", end >= 20) for end in (19, 20, 40)),
        *((("RUNNING",), (0, start, -1), "RUNNING", start <= 30) for start in (29, 30, 31)),
        (("RUNNING",), (0, -1, 25), "CANCELLED", False),
        *((("PENDING",), (0, start, 40), "FAILED", start >= 20) for start in (19, 20, 21)),
        *((("PENDING",), (0, -1, end), "CANCELLED", end >= 20) for end in (19, 20, 21)),
        *((("PENDING",), (eligible, -1, -1), "PENDING", eligible <= 30) for eligible in (30, 31)),
        (("PENDING",), (-1, -1, -1), "PENDING", False),
        *((_COMPLETED, (0, 5, end), "COMPLETED", 20 <= end <= 30) for end in (19, 20, 30, 31)),
        *((_COMPLETED, (0, 5, 25), "FAILED", False), (_COMPLETED, (0, 5, -1), "RUNNING", False)),
        (("FAILED", "COMPLETED"), (0, 5, 25), "COMPLETED", True),
        (("SUSPENDED",), (0, 5, -1), "RUNNING", False),
        (("SUSPENDED",), (0, 5, -1), "SUSPENDED", True),
    ],
)
def test_a_job_is_shown_that_was_there_or_so_within_the_span(
    states: tuple[str, ...], moments: tuple[int, int, int], state: str, shown: bool
) -> None:
    """By when it could start, started and ended."""
    eligible, start, end = moments
    job = _job(eligible=eligible, start=start, end=end, state=state)
    query = Query(states=states, start_s=1020, end_s=1030)
    assert _shown(query, job) == [1] * shown


@pytest.mark.parametrize(
    ("suspended_us", "end", "shown"), [(0, 25, False), (1, 25, True), (1, 19, False)]
)
def test_a_job_was_suspended_that_ran_in_the_span_and_was_so_once(
    suspended_us: int, end: int, shown: bool
) -> None:
    """Accounting does not know when."""
    job = _job(eligible=0, start=5, end=end, state="COMPLETED", suspended_us=suspended_us)
    assert _shown(Query(states=("SUSPENDED",), start_s=1020, end_s=1030), job) == [1] * shown


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (Query(), [2, 3, 4]),
        (Query(duplicates=True), [1, 2, 3, 4]),
        (Query(nodes=frozenset({"n1"})), [3]),
        (Query(nodes=frozenset({"n1"}), duplicates=True), [1, 3]),
        (Query(nodes=frozenset({"n2"})), [2]),
        (Query(nodes=frozenset({"n2", "n1"})), [2, 3]),
        (Query(wanted=read_wanted("7")), [2]),
        (Query(wanted=read_wanted("8")), [3, 4]),
        (Query(wanted=read_wanted("8_1")), [3]),
        (Query(wanted=read_wanted("8_[2-3],7")), [2, 4]),
        (Query(wanted=read_wanted("9_2,7_1")), []),
    ],
)
def test_of_a_job_that_ran_again_only_the_last_run_is_looked_at(
    query: Query, shown: list[int]
) -> None:
    """Unless all are asked for; tasks are meant by their numbers, all by that of their array."""
    jobs = (
        _job(7, 1, node_list="n1"),
        _job(7, 2, node_list="n2"),
        _job(9, 3, array_job_id=8, array_task_id=1, node_list="n1"),
        _job(8, 4, array_job_id=8, array_task_id=2, node_list="n3"),
    )
    assert _shown(query, *jobs) == shown


_NOW_S: Final = 10 * 86_400 + 500
_ONE: Final = read_wanted("1")


@pytest.mark.parametrize(
    ("query", "start_s", "end_s", "span"),
    [
        (Query(), None, None, (_NOW_S - 500, _NOW_S)),
        (Query(), 5, None, (5, _NOW_S)),
        (Query(), None, 7, (_NOW_S - 500, 7)),
        (Query(), 5, 7, (5, 7)),
        (Query(wanted=_ONE), None, None, (0, 0)),
        (Query(wanted=_ONE), 5, None, (5, _NOW_S)),
        (Query(wanted=_ONE), None, 7, (0, 7)),
        (Query(states=_COMPLETED), None, None, (_NOW_S, _NOW_S)),
        (Query(states=_COMPLETED), None, 7, (7, 7)),
        (Query(states=_COMPLETED), 5, None, (5, 5)),
        (Query(states=_COMPLETED), _NOW_S, None, (_NOW_S, _NOW_S)),
        (Query(states=_COMPLETED), 5, 7, (5, 7)),
        (Query(states=_COMPLETED, wanted=_ONE), None, None, (0, _NOW_S)),
        (Query(states=_COMPLETED, wanted=_ONE), None, 7, (0, 7)),
    ],
)
def test_the_span_of_time_that_is_asked_about(
    query: Query, start_s: int | None, end_s: int | None, span: tuple[int, int]
) -> None:
    """Today; with jobs at any time, with states as of a moment."""
    assert window(query, start_s, end_s, _NOW_S) == span


_OVER: Final[dict[str, Any]] = {
    "state": "FAILED",
    "cancel_uid": 0,
    "exit_code": 256,
    "derived_exit_code": 512,
    "node_list": "n1",
    "suspended_us": 3,
    "alloc_nodes": 1,
    "alloc_cpus": 2,
    "alloc_memory_mb": 4,
    "alloc_tres": {"bb/generic": 5},
}
"""What accounting may know of a job only once it has begun or ended."""

_NO_END = {"cancel_uid": NOBODY, "exit_code": 0, "derived_exit_code": 0, "end_us": -1}
_NO_START = {
    **dict.fromkeys(("suspended_us", "alloc_nodes", "alloc_cpus", "alloc_memory_mb"), 0),
    "node_list": "",
    "alloc_tres": {},
    "start_us": -1,
}


@pytest.mark.parametrize(
    ("at_s", "state", "unknown"),
    [
        (9.999999, "PENDING", {**_NO_END, **_NO_START}),
        (10, "RUNNING", _NO_END),
        (19.999999, "RUNNING", _NO_END),
        (20, "FAILED", {}),
    ],
)
def test_accounting_that_is_late_knows_nothing_of_what_has_yet_to_come(
    at_s: float, state: str, unknown: dict[str, Any]
) -> None:
    """A job that started at 10 s and ended at 20 s, field by field."""
    whole = _job(submit=1, eligible=2, start=10, end=20, **_OVER)
    known = msgspec.structs.asdict(as_of(whole, round(at_s * 1_000_000)))
    assert known == {**msgspec.structs.asdict(whole), "state": state, **unknown}
