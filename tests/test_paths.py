"""Paths through the lifecycle that no shipped scenario takes: each has a short golden trace.

A line is an event: when, where, who (with its uid), what, for which job, step and task, with which
arguments and result, and the event that caused it. `pytest --rewrite-golden tests/test_paths.py`
renews the files; their diff is for review. They hold what the code did when they were recorded:
they tell that a path has changed, and the tests of each module tell what is right.
"""

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from tests.cluster import Ran, run

GOLDEN = Path(__file__).parent / "golden" / "paths"

CLUSTER = """\
nodes: [{name: "n[1-3]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-3]", default: true}]
users: {alice: 1001, bob: 1002, op: {uid: 1003, admin: operator}}
programs:
  ./deaf: {runs: 900s, on_signal: {TERM: ignore, TSTP: ignore}}
  ./bad: {runs: 3s, exit: 3}
  ./hungry: {runs: 3s, oom: true}
  ./long: {runs: 400s}
  ./talks: {runs: 2s, output: "done\\n"}
"""

TWO = "0s alice srun -N2 -n4 sleep 10"
SCRIPT = "0s alice sbatch -N2 --wrap 'srun -N2 sleep 20'"

PATHS: dict[str, tuple[str, ...]] = {
    # Ends.
    "immediate_refused": (TWO, "1s bob srun -I -N3 true"),
    "cancelled_while_deaf": ("0s alice sbatch -N2 --wrap 'srun -N2 ./deaf'", "5s alice scancel 1"),
    "step_cancelled": (SCRIPT, "5s alice scancel 1.0"),
    "step_terminated": (SCRIPT, "5s alice scancel -s TERM 1.0"),
    "script_signalled": (SCRIPT, "5s alice scancel -b -s USR1 1"),
    "all_signalled": (SCRIPT, "5s alice scancel -f -s INT 1"),
    "stopped_and_continued": (SCRIPT, "5s alice scancel -s STOP 1", "9s alice scancel -s CONT 1"),
    "left_stopped": (SCRIPT, "5s alice scancel -s STOP 1"),
    "srun_at_its_limit": ("0s alice srun -N2 -t1 ./deaf",),
    "step_at_its_limit": ("0s alice sbatch -N2 --wrap 'srun -t1 -N2 ./deaf; srun true'",),
    "requeue_exit": ("conf RequeueExit: 3", "0s alice sbatch --wrap ./bad", "4s alice scancel 9",
                     "200s alice scancel 1"),
    "requeue_exit_hold": ("conf RequeueExitHold: 3", "0s alice sbatch --wrap ./bad"),
    "requeued_by_hand": (SCRIPT, "5s root scontrol requeue 1"),
    "requeued_and_held": (SCRIPT, "5s root scontrol requeuehold 1"),
    "cancelled_while_requeued": (SCRIPT, "5s root scontrol requeue 1", "20s alice scancel 1"),
    "deadline": ("0s alice sbatch --deadline=now+2minutes --wrap ./long",),
    "deadline_of_a_cancelled_job": ("0s alice sbatch -H --deadline=now+2hours --wrap true",
                                    "5s alice scancel 1"),
    "limits_of_a_cancelled_job": ("0s alice sbatch -t60 --signal=USR1 --wrap 'sleep 300'",
                                  "5s alice scancel 1"),
    "limit_of_a_cancelled_step": ("5s alice scancel 1.0",
                                  "0s alice sbatch --wrap 'srun -t60 sleep 300; true'"),
    "limit_set_while_configuring": ("conf PrologSlurmctld: /p", "prog /p runs: 40s",
                                    "0s alice srun -t9 ./long",
                                    "5s alice scontrol update jobid=1 timelimit=2"),
    "array_held_to_one": ("0s alice sbatch -a 0-2%1 --wrap 'sleep 2'", "1s alice scancel 1_1"),
    "ends_after_its_limit": ("0s alice sbatch -t1 --wrap 'sleep 70'",),
    "after_a_requeued_job": (SCRIPT, "5s root scontrol requeue 1",
                             "40s alice sbatch -d after:1 --wrap true"),
    "tasks_end_apart": ("0s alice srun -N2 -n4 sh -c 'sleep $((SLURM_PROCID * 2))'",),
    "cancelled_by_slurm_user": (SCRIPT, "5s slurm scancel 1"),
    "end_asked_for_twice": ("0s alice sbatch -w n2 --wrap 'srun ./deaf'", "5s alice scancel 1",
                            "5.00015s ! cut: [slurmctld, n2], for: 5s"),
    "out_of_memory": ("0s alice srun -n2 ./hungry",),
    # Suspension.
    "suspended_before_its_limit": ("0s alice srun -N2 -t2 ./long", "5s op scontrol suspend 1",
                                   "45s op scontrol resume 1"),
    "suspended_in_both_runs": ("0s alice sbatch -t2 --wrap ./long", "5s op scontrol suspend 1",
                               "65s op scontrol resume 1", "70s op scontrol requeue 1",
                               "200s op scontrol suspend 1", "210s op scontrol resume 1"),
    "resumed_on_a_completing_node": (SCRIPT, "5s op scontrol suspend 1", "6s bob srun -N3 ./deaf",
                                     "9s bob scancel 2", "15s op scontrol resume 1",
                                     "60s op scontrol resume 1"),
    "start_after_another": (TWO.replace("-N2", "-N3"), "1s bob sbatch -N3 --wrap 'sleep 5'",
                            "2s bob sbatch -d after:2 -N1 --wrap true"),
    "resumed_on_a_silent_node": (SCRIPT, "5s op scontrol suspend 1",
                                 "10s ! cut: [slurmctld, n2], for: 200s",
                                 "150s op scontrol resume 1", "350s op scontrol resume 1"),
    "suspended_and_cancelled": (SCRIPT, "5s op scontrol suspend 1", "20s alice scancel 1"),
    "suspended_and_requeued": (SCRIPT, "5s op scontrol suspend 1", "20s op scontrol requeue 1"),
    "suspended_past_its_limit": ("0s alice sbatch -t1 -N2 --wrap 'srun -N2 ./long'",
                                 "20s op scontrol suspend 1", "100s op scontrol resume 1"),
    "resumed_when_others_run": (SCRIPT, "5s op scontrol suspend 1", "6s bob srun -N3 sleep 10",
                                "9s op scontrol resume 1", "30s op scontrol resume 1"),
    "suspended_and_node_lost": (SCRIPT, "5s op scontrol suspend 1", "20s ! crash: n2"),
    # Nodes.
    "node_down_by_hand": (SCRIPT, "5s root scontrol update nodename=n2 state=down reason=x"),
    "srun_loses_a_node": ("conf SlurmdTimeout: 60", "0s alice srun -N2 ./long", "20s ! crash: n2"),
    "norequeue_loses_a_node": ("conf SlurmdTimeout: 60", "20s ! crash: n1",
                               "0s alice sbatch --no-requeue -N2 --wrap 'srun -N2 ./long'"),
    "no_kill_step_ends": ("conf SlurmdTimeout: 60", "20s ! crash: n3",
                          "0s alice sbatch -k -N3 --wrap 'srun -N3 ./long'"),
    "no_kill_set_down": ("0s alice sbatch -k -N3 --wrap 'srun -N3 ./long'",
                         "20s root scontrol update nodename=n3 state=down reason=x"),
    "node_cut_off_and_back": ("conf SlurmdTimeout: 60", "conf ReturnToService: 1", SCRIPT,
                              "5s ! cut: [slurmctld, n2], for: 300s"),
    "node_cut_off_for_a_while": ("conf SlurmdTimeout: 300", SCRIPT,
                                 "5s ! cut: [slurmctld, n2], for: 130s"),
    "srun_cut_off": ("0s alice srun -N2 ./talks", "1s ! cut: [login, n2], for: 30s"),
    "completing_node_crashes": ("conf SlurmdTimeout: 60", "5s alice scancel 1", "6s ! crash: n2",
                                "0s alice sbatch -N2 --wrap 'srun -N2 ./deaf'"),
    "leftover_ends_before_its_node_restarts": (
        "conf SlurmdTimeout: 60", "conf ReturnToService: 1", "324s ! crash: n2", "330s ! start: n2",
        "0s alice sbatch -w n2 --wrap ./deaf", "5s ! cut: [slurmctld, n2], for: 295s"),
    "leftover_crashes": ("conf SlurmdTimeout: 60", "conf ReturnToService: 1", "322s ! crash: n2",
                         "0s alice sbatch -w n2 --wrap 'trap : TERM; ./deaf'",
                         "5s ! cut: [slurmctld, n2], for: 295s"),
    "end_answered_in_vain": ("conf Epilog: /e", "prog /e runs: 2500ms",
                             "0s alice sbatch -N2 --wrap 'srun -N2 sleep 5'",
                             "5.00075s ! cut: [slurmctld, n2], for: 9600ms"),
    "step_of_a_run_given_up": ("conf SlurmdTimeout: 60", "conf ReturnToService: 1",
                               "0s alice sbatch --wrap 'sleep 210; srun true; sleep 30'",
                               "5s ! cut: [slurmctld, n1], for: 200s"),
    "job_nobody_knows": ("conf SlurmdTimeout: 60", "conf ReturnToService: 1",
                         "0s alice sbatch --no-requeue --wrap 'srun ./deaf; sleep 3000'",
                         "5s ! cut: [slurmctld, n1], for: 906s"),
    "node_restarts_under_a_job": (SCRIPT, "5s ! crash: n2", "8s ! start: n2"),
    "cancelled_while_srun_is_cut_off": ("0s alice srun -N2 ./talks", "9s alice scancel 1",
                                        "1s ! cut: [login, n2], for: 300s"),
    "completing_node_restarts": ("0s alice sbatch -N2 --wrap 'srun -N2 ./deaf'",
                                 "5s alice scancel 1",
                                 "6s ! crash: n2", "15s ! start: n2"),
    "leftover_restarts": ("conf SlurmdTimeout: 60", "conf ReturnToService: 1", "322s ! crash: n2",
                          "0s alice sbatch -w n2 --wrap 'trap : TERM; ./deaf'", "328s ! start: n2",
                          "5s ! cut: [slurmctld, n2], for: 295s"),
    "silent_node_set_down_and_resumed": (
        "conf SlurmdTimeout: 0", SCRIPT, "5s ! cut: [slurmctld, n2], for: 300s",
        "10s root scontrol update nodename=n2 state=down reason=x",
        "30s root scontrol update nodename=n2 state=resume"),
    # Prologs and epilogs.
    "one_prolog_reported_late": ("conf PrologFlags: Alloc", "conf Prolog: /p", TWO,
                                 "prog /p runs: 2s", "1s ! cut: [slurmctld, n2], for: 10s"),
    "prolog_under_two_steps": ("conf Prolog: /p", "prog /p runs: 4s",
                               "0s alice salloc -N2 sh -c 'srun sleep 1 & srun true; wait'"),
    "prologs_at_allocation": ("conf PrologFlags: Alloc", "conf Prolog: /p", "conf Epilog: /e",
                              TWO, "prog /p runs: 2s", "prog /e runs: 3s"),
    "prolog_fails_at_allocation": ("conf PrologFlags: Alloc", "conf Prolog: /p", SCRIPT,
                                   "prog /p runs: 2s, exit: 1"),
    "alloc_without_prolog": ("conf PrologFlags: Alloc", TWO),
    "cancelled_in_prolog": ("conf Prolog: /p", "conf Epilog: /e", SCRIPT, "5s alice scancel 1",
                            "prog /p runs: 30s", "prog /e runs: 3s"),
    "slurmctld_scripts": ("conf PrologSlurmctld: /p", "conf EpilogSlurmctld: /e", TWO,
                          "prog /p runs: 4s", "prog /e runs: 5s"),
    "prologslurmctld_fails": ("conf PrologSlurmctld: /p", TWO, "prog /p runs: 1s, exit: 2"),
    "prologslurmctld_requeues": ("conf PrologSlurmctld: /p", "prog /p runs: 1s, exit: 2",
                                 "200s alice scancel 1",
                                 "0s alice sbatch --wrap true"),
    "cancelled_while_configuring": ("conf PrologSlurmctld: /p", TWO, "5s alice scancel 1",
                                    "prog /p runs: 30s"),
    "task_scripts": ("conf TaskProlog: /p", "conf TaskEpilog: /e", TWO,
                     "prog /p runs: 1s, output: \"export A=1\\n\"", "prog /e runs: 2s"),
    "epilog_fails": ("conf Epilog: /e", TWO, "prog /e runs: 1s, exit: 1"),
    # salloc.
    "salloc_cancelled": ("0s alice salloc -N2 srun ./long", "9s alice scancel 1"),
    "salloc_at_its_limit": ("0s alice salloc -t1 -N2 sleep 100",),
    "salloc_waits": (TWO.replace("-N2", "-N3"), "1s bob salloc -N2 true"),
    # Failing calls.
    "init_fails": (TWO, "0s ! fail: switch_p_job_init node=n2"),
    "fini_fails": (TWO, "0s ! fail: switch_p_job_fini node=n2"),
    "unpack_fails_in_slurmd": (TWO, "0s ! fail: switch_p_unpack_jobinfo role=slurmd node=n2"),
    "prefork_fails": (TWO, "0s ! fail: slurm_ckpt_stepd_prefork node=n2"),
    "fork_fails": (TWO, "0s ! fail: fork role=session node=n2"),
    "fork_fails_in_modern": (TWO, "0s ! fail: fork role=manager step=1.0 node=n2"),
    "one_fork_fails_in_modern": (TWO, "0s ! fail: fork role=manager step=1.0 node=n2 | skip: 1"),
    "slurmctld_init_fails": ("0s ! fail: init role=slurmctld | skip: 1", TWO),
    "slurmctld_init_fails_to_restore": ("0s ! fail: switch_p_libstate_restore", TWO),
    "slurmctld_init_fails_for_checkpoint": ("0s ! fail: init role=slurmctld", TWO),
    "node_init_fails": ("0s ! fail: switch_p_node_init node=n3", TWO),
}  # fmt: skip

DAEMONS = ("slurmctld", "slurmd", UNSET)
"""Whose events there are before anybody types a command."""

MODERN = (
    "immediate_refused", "tasks_end_apart", "cancelled_while_deaf", "step_cancelled",
    "requeued_by_hand",
    "suspended_and_cancelled", "srun_loses_a_node", "prologs_at_allocation", "task_scripts",
    "srun_at_its_limit", "init_fails", "prefork_fails", "fork_fails_in_modern",
    "one_fork_fails_in_modern", "fini_fails", "unpack_fails_in_slurmd", "node_init_fails",
)  # fmt: skip


def scenario(lines: tuple[str, ...]) -> str:
    """Write a path's lines as a scenario: ``conf``, ``prog``, ``TIME ! FAULT``, commands."""
    conf = {"SlurmdTimeout": "300"}
    programs: list[str] = []
    timeline: list[str] = []
    for line in lines:
        first, rest = line.split(" ", 1)
        if first == "conf":
            key, value = rest.split(": ")
            conf[key] = value
        elif first == "prog":
            path, spec = rest.split(" ", 1)
            programs.append(f"  {path}: {{{spec}}}\n")
        elif rest.startswith("! "):
            kind, _, pattern = rest[2:].partition(": ")
            pattern, _, more = pattern.partition(" | ")
            value = f'"{pattern}"' if kind == "fail" else pattern
            value += f", {more}" if more else ""
            timeline.append(f"  - {{at: {first}, fault: {{{kind}: {value}}}}}")
        else:
            user, command = rest.split(" ", 1)
            timeline.append(f"  - {{at: {first}, as: {user}, run: {command!r}}}")
    keys = ", ".join(f"{key}: {value}" for key, value in conf.items())
    return (
        "".join(programs)
        + f"slurm_conf: {{{keys}}}\n"
        + "".join(["timeline:\n", *(f"{entry}\n" for entry in timeline)])
    )


def given(value: Any) -> Any:
    """Return a field, or an empty text where it does not apply."""
    return "" if value is UNSET or value is None else value


def told(event: Event, by_seq: dict[int, Event]) -> str:
    """Write an event as one line."""
    who = f"{given(event.role) or given(event.daemon)}:{given(event.euid) or given(event.uid)}"
    args = given(event.args) or {}
    words = [
        f"{event.time_us / 1_000_000:.4f}",
        str(given(event.node) or "-"),
        who,
        str(given(event.phase) or event.kind),
        event.name,
        str(given(event.step) or given(event.job)),
        str(given(event.task)),
        " ".join(f"{key}={value}" for key, value in args.items()),
        f"rc={event.rc}" if event.rc is not UNSET else "",
        str(given(event.errno)),
    ]
    cause = by_seq.get(event.cause) if isinstance(event.cause, int) else None
    if cause is not None:
        words.append(f"<- {cause.name}")
    return " ".join(word for word in words if word)


def trace(ran: Ran, *, whole: bool) -> list[str]:
    """Return the lines of a run, with its start only where that is what is looked at."""
    events = [event for event in ran.events if event.phase != "enter"]
    by_seq = {event.seq: event for event in ran.events}
    start = next(i for i, event in enumerate(events) if event.daemon not in DAEMONS)
    lines = [told(event, by_seq) for event in events[0 if whole else start :]]
    for number, result in enumerate(ran.result.commands):
        said = f"{result.stdout}{result.stderr}".splitlines()
        lines += [f"command {number} ended with {result.exit}", *(f"  {line}" for line in said)]
    return [*lines, *(f"job {row}" for row in ran.result.rows)]


@pytest.mark.parametrize(
    ("path", "model"),
    [
        *((path, "guide") for path in PATHS if "modern" not in path),
        *((path, "modern") for path in MODERN),
    ],
)
def test_takes_the_recorded_steps(path: str, model: str, request: pytest.FixtureRequest) -> None:
    """Every call, message and change of state, in order, by whom, and why."""
    ran = run(scenario(PATHS[path]), cluster=CLUSTER, model=model)
    lines = trace(ran, whole="_init_" in path)
    golden = GOLDEN / f"{path}{'.modern' if model == 'modern' else ''}.txt"
    if request.config.getoption("--rewrite-golden"):
        golden.write_text("\n".join(lines) + "\n")
    expected = golden.read_text().splitlines()
    for number, (line, wanted) in enumerate(zip(lines, expected, strict=False), start=1):
        assert line == wanted, f"line {number} of {golden.name}"
    assert len(lines) == len(expected)
