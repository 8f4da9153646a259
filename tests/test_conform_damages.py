"""`simctl trace conform` notices what is wrong in a trace: none of these damages passes.

Each damage is planted in the trace of a run that agrees with its recording, or in the recording.
"""

import copy
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import msgspec
import pytest

from simctl.kernel.events import Event
from simctl.testing.conform.accepted import Accepted, sort_out
from simctl.testing.conform.acts import Act, Story
from simctl.testing.conform.answers import ENDING
from simctl.testing.conform.command import compare_events, report
from simctl.testing.conform.compare import Difference
from simctl.testing.conform.real import read_real, real_story
from simctl.testing.conform.rules import RULES
from tests.conformance_runs import NAMES, accepted_of, held, recording_of

Events = list[Event]
Recording = list[dict[str, Any]]
Choice = Callable[[Event], bool]

STEP: Final = "s03_srun_2x2"
BATCH: Final = "s05_sbatch_two_steps"
CANCELLED: Final = "s07a_scancel_running"
LIMIT: Final = "s08_timelimit"
REQUEUED: Final = "s10_requeue"
RESTARTED: Final = "s12_ctld_restart"
SUSPENDED: Final = "s13_suspend_resume"
PROLOG: Final = "s14_prolog_fail"
CHECKPOINTS: Final = "s16a_ckpt_batch"
SHARED: Final = "s16i_periodic"
BUFFER: Final = "s17a_bb_full"
FAILED: Final = "s06a_exit_nonzero"


def told(events: Sequence[Event], recording: Recording, name: str) -> list[str]:
    """Return what is told of a trace beside a recording, but for what is accepted of it."""
    found = sort_out(compare_events(events, recording).differences, accepted_of(name))
    return [each.line() for each in found.left]


@cache
def _recording(name: str) -> str:
    return msgspec.json.encode(read_real(recording_of(name))).decode()


def recording(name: str) -> Recording:
    """Return a recording that may be damaged."""
    return list(msgspec.json.decode(_recording(name)))


# Choosing events.


def of(name: str, **fields: Any) -> Choice:
    """Choose events by name and fields; of `args` by what is in them."""

    def chosen(event: Event) -> bool:
        args = event.args if isinstance(event.args, dict) else {}
        return (event.name == name or name == "*") and all(
            value(args) if key == "args" else getattr(event, key) == value
            for key, value in fields.items()
        )

    return chosen


def saying(**wanted: Any) -> Callable[[dict[str, Any]], bool]:
    """Choose arguments with these values."""
    return lambda args: all(args.get(key) == value for key, value in wanted.items())


# Damages to a trace.


def args_of(event: Event) -> dict[str, Any]:
    """Return the arguments of an event."""
    return event.args if isinstance(event.args, dict) else {}


def with_args(chosen: Choice, *, first: bool = False, **new: Any) -> Callable[[Events], Events]:
    """Change arguments of events, or of the first."""

    def damage(events: Events) -> Events:
        places = [at for at, event in enumerate(events) if chosen(event)]
        assert places
        for at in places[:1] if first else places:
            args = {**args_of(events[at]), **new}
            events[at] = msgspec.structs.replace(events[at], args=args)
        return events

    return damage


def with_fields(chosen: Choice, **new: Any) -> Callable[[Events], Events]:
    """Change fields of the first event that is chosen."""

    def damage(events: Events) -> Events:
        at = next(at for at, event in enumerate(events) if chosen(event))
        changed = msgspec.structs.replace(events[at], **new)
        return [*events[:at], changed, *events[at + 1 :]]

    return damage


def without(chosen: Choice, *, first: bool = False) -> Callable[[Events], Events]:
    """Leave events out, or the first."""

    def damage(events: Events) -> Events:
        gone = [at for at, event in enumerate(events) if chosen(event)]
        assert gone
        left_out = {gone[0]} if first else set(gone)
        return [event for at, event in enumerate(events) if at not in left_out]

    return damage


def before(chosen: Choice, other: Choice, *, last: bool = False) -> Callable[[Events], Events]:
    """Put the first event that is chosen before another, the first or the last of its kind."""

    def damage(events: Events) -> Events:
        at = next(at for at, event in enumerate(events) if chosen(event))
        places = [place for place, event in enumerate(events) if other(event)]
        to = places[-1] if last else places[0]
        assert to < at
        return [*events[:to], events[at], *events[to:at], *events[at + 1 :]]

    return damage


def after(chosen: Choice, other: Choice) -> Callable[[Events], Events]:
    """Put the first event that is chosen behind the last of another kind."""

    def damage(events: Events) -> Events:
        at = next(at for at, event in enumerate(events) if chosen(event))
        to = [place for place, event in enumerate(events) if other(event)][-1]
        assert at < to
        return [*events[:at], *events[at + 1 : to + 1], events[at], *events[to + 1 :]]

    return damage


def twice(chosen: Choice) -> Callable[[Events], Events]:
    """Have the first event that is chosen happen again at once."""

    def damage(events: Events) -> Events:
        at = next(at for at, event in enumerate(events) if chosen(event))
        return [*events[: at + 1], *events[at:]]

    return damage


def slower(factor: float, since: Choice | None = None) -> Callable[[Events], Events]:
    """Have everything take longer, or what comes after an event."""

    def damage(events: Events) -> Events:
        start = 0 if since is None else next(each.time_us for each in events if since(each))
        return [
            event
            if event.time_us < start
            else msgspec.structs.replace(
                event, time_us=start + round((event.time_us - start) * factor)
            )
            for event in events
        ]

    return damage


def _without_plugin_arguments(events: Events) -> Events:
    return [
        msgspec.structs.replace(event, args=msgspec.UNSET) if event.kind == "plugin" else event
        for event in events
    ]


def _checkpoints_answered_0(events: Events) -> Events:
    answers = saying(answers="REQUEST_CHECKPOINT")
    chosen = of("RESPONSE_SLURM_RC", phase="send", args=answers)
    return with_args(chosen, return_code=0)(events)


def _nonsense_exit_codes(events: Events) -> Events:
    return with_args(of("job_state"), exit_code="77:77")(events)


def _answers_of_slurmd_to(request: str) -> Choice:
    return of("RESPONSE_SLURM_RC", role="slurmd", phase="send", args=saying(answers=request))


IN_RUN: Final[dict[str, tuple[str, Callable[[Events], Events]]]] = {
    # What was found to pass once.
    "rank 0 is attached before rank 1 is forked": (
        STEP,
        before(of("switch_p_job_attach", task=0), of("fork", role="manager", node="n1"), last=True),
    ),
    "all arguments of plugin calls are gone": (STEP, _without_plugin_arguments),
    "a launch is answered 4022": (
        STEP,
        with_args(_answers_of_slurmd_to("REQUEST_LAUNCH_TASKS"), first=True, return_code=4022),
    ),
    "all answers are gone": (
        BATCH,
        lambda events: [each for each in events if not each.name.startswith("RESPONSE_")],
    ),
    "answers that are numbers are gone": (BATCH, without(of("RESPONSE_SLURM_RC"))),
    "refused checkpoint requests are answered 0": (CHECKPOINTS, _checkpoints_answered_0),
    "the end of a job is told with another state": (
        STEP,
        with_args(of("REQUEST_TERMINATE_JOB"), job_state="CANCELLED|COMPLETING"),
    ),
    "reasons of jobs are nonsense": (STEP, with_args(of("job_state"), reason="Nonsense")),
    "reasons of jobs are those of others": (STEP, with_args(of("job_state"), reason="TimeLimit")),
    "reasons of nodes are nonsense": (PROLOG, with_args(of("node_state"), reason="Nonsense")),
    "exit codes are nonsense": (STEP, _nonsense_exit_codes),
    "a job that failed has no exit code": (
        FAILED,
        lambda events: [
            msgspec.structs.replace(
                each, args={k: v for k, v in args_of(each).items() if k != "exit_code"}
            )
            if each.name == "job_state"
            else each
            for each in events
        ],
    ),
    "everything takes a hundred times as long": (STEP, slower(100)),
    "everything takes a hundred times as long, with a limit": (LIMIT, slower(100)),
    "a node that jobs share never changes its state": (
        SHARED,
        without(of("node_state", args=saying(node="n1"))),
    ),
    "no pass loads buffers": (
        BUFFER,
        without(of("bb_p_load_state", args=saying(init_config=False))),
    ),
    "no pass stages in": (BUFFER, without(of("bb_p_job_try_stage_in"))),
    "no pass at all": (
        BUFFER,
        lambda events: without(of("bb_p_job_try_stage_in"))(
            without(of("bb_p_load_state", args=saying(init_config=False)))(events)
        ),
    ),
    "no node registers after slurmctld was restarted": (
        RESTARTED,
        lambda events: [
            each
            for each in events
            if each.name != "MESSAGE_NODE_REGISTRATION_STATUS" or each.time_us < 15_000_000
        ],
    ),
    "a rank is wrong": (STEP, with_args(of("switch_p_job_attach", task=1), rank=2)),
    "a task is attached as root": (STEP, with_fields(of("switch_p_job_attach", task=1), euid=0)),
    "there is no postfini": (STEP, without(of("switch_p_job_postfini", node="n2"))),
    "a credential is released before the step is complete": (
        STEP,
        before(of("switch_p_free_jobinfo", daemon="slurmctld"), of("switch_p_job_step_complete")),
    ),
    # More.
    "the last task is forked after the first was attached": (
        STEP,
        after(of("fork", role="manager", node="n1"), of("switch_p_job_attach", node="n1")),
    ),
    "a batch launch is answered with an error": (
        BATCH,
        with_args(_answers_of_slurmd_to("REQUEST_BATCH_JOB_LAUNCH"), return_code=4010),
    ),
    "the end of a job is answered with an error": (
        BATCH,
        with_args(_answers_of_slurmd_to("REQUEST_TERMINATE_JOB"), return_code=2017),
    ),
    "the end of a script is answered with an error": (
        BATCH,
        with_args(
            of("RESPONSE_SLURM_RC", args=saying(answers="REQUEST_COMPLETE_BATCH_SCRIPT")),
            return_code=2021,
        ),
    ),
    "a submission is answered with an error": (
        BATCH,
        with_args(of("RESPONSE_SUBMIT_BATCH_JOB"), error_code=2015),
    ),
    "a step is answered with an error": (
        BATCH,
        with_args(of("RESPONSE_JOB_STEP_CREATE"), error_code=2059),
    ),
    "a cancellation is answered with an error": (
        CANCELLED,
        with_args(
            of("RESPONSE_SLURM_RC", args=saying(answers="REQUEST_KILL_JOB")), return_code=2002
        ),
    ),
    "a suspension is answered with another error": (
        SUSPENDED,
        with_args(
            of("RESPONSE_SLURM_RC", args=saying(answers="REQUEST_SUSPEND")), return_code=2049
        ),
    ),
    "srun does not confirm that tasks ended": (
        STEP,
        without(of("RESPONSE_SLURM_RC", daemon="srun", args=saying(answers="MESSAGE_TASK_EXIT"))),
    ),
    "a step daemon says that it launched fewer tasks": (
        STEP,
        with_args(of("RESPONSE_LAUNCH_TASKS", node="n1"), count_of_pids=1),
    ),
    "a signal is another": (
        PROLOG,
        with_args(of("REQUEST_SIGNAL_TASKS", role="slurmd", phase="receive"), signal=15),
    ),
    "a task ends with another status": (
        FAILED,
        with_fields(of("exit", role="task", rc=768), rc=1024),
    ),
    "a script ends with another status": (
        FAILED,
        with_args(of("REQUEST_COMPLETE_BATCH_SCRIPT"), job_rc=256),
    ),
    "a job that reached its limit was cancelled": (
        LIMIT,
        with_args(of("job_state", args=saying(to="TIMEOUT|COMPLETING")), to="CANCELLED|COMPLETING"),
    ),
    "a limit comes after five times the time": (
        LIMIT,
        slower(5, since=of("job_state", args=saying(to="RUNNING"))),
    ),
    "KillWait is ten times as long": (
        "s07a_scancel_running",
        slower(10_000, since=of("REQUEST_TERMINATE_JOB", phase="receive")),
    ),
    "stage-out takes ten times as long": (
        BUFFER,
        slower(10, since=of("bb_p_job_start_stage_out")),
    ),
    "srun is not told of the limit": (LIMIT, without(of("SRUN_TIMEOUT"))),
    "a node becomes IDLE before its last job is over": (
        STEP,
        before(
            of(
                "node_state", args=saying(**{"from": "IDLE|COMPLETING", "to": "IDLE", "node": "n1"})
            ),
            of("job_state", args=saying(to="COMPLETED")),
        ),
    ),
    "the switch hears of a step before its credential exists": (
        BATCH,
        before(of("switch_p_build_jobinfo"), of("switch_p_alloc_jobinfo")),
    ),
    "a job's nodes complete before the job does": (
        STEP,
        before(
            of("node_state", args=saying(to="MIXED|COMPLETING", node="n1")),
            of("job_state", args=saying(to="COMPLETED|COMPLETING")),
        ),
    ),
    "a slurmd registers without the steps that run there": (
        "s11a_slurmd_restart",
        with_args(of("MESSAGE_NODE_REGISTRATION_STATUS"), jobs=()),
    ),
    "a restarted slurmctld is told of no step": (
        RESTARTED,
        with_args(of("MESSAGE_NODE_REGISTRATION_STATUS"), jobs=()),
    ),
    "a node that was drained was not": (
        PROLOG,
        without(of("node_state", args=lambda args: "DRAIN" in str(args.get("to")))),
    ),
    "an epilog runs twice": (STEP, twice(of("epilog", phase="enter"))),
    "a prolog fails": (STEP, with_fields(of("prolog", phase="exit"), rc=256)),
    "a buffer's size is asked for before it is set up": (
        BUFFER,
        before(of("dw_real_size"), of("dw_setup")),
    ),
    "the script is launched before pre_run is over": (
        BUFFER,
        before(of("REQUEST_BATCH_JOB_LAUNCH"), of("dw_pre_run")),
    ),
    "a requeued job keeps its count of restarts": (
        REQUEUED,
        with_args(of("REQUEST_BATCH_JOB_LAUNCH"), restart_cnt=0),
    ),
    "a requeued job runs again at once": (
        REQUEUED,
        slower(0.01, since=of("job_state", args=saying(to="PENDING"))),
    ),
    "an image goes to another folder": (
        CHECKPOINTS,
        with_args(of("slurm_ckpt_signal_tasks"), image_dir="/elsewhere/0"),
    ),
    "a plugin is asked for another operation": (
        CHECKPOINTS,
        with_args(of("slurm_ckpt_op"), first=True, op=6),
    ),
    "a task's record tells another node": (
        SUSPENDED,
        with_args(of("switch_p_job_step_pre_suspend", node="n2"), nodeid=0),
    ),
    "a launch is sent twice": (STEP, twice(of("REQUEST_LAUNCH_TASKS", phase="send"))),
    "tasks are told twice to have ended": (STEP, twice(of("MESSAGE_TASK_EXIT", phase="send"))),
    "a signal comes twice": (
        PROLOG,
        twice(of("REQUEST_SIGNAL_TASKS", role="slurmd", phase="receive")),
    ),
    "a poll is answered otherwise in between": (
        BUFFER,
        with_fields(of("bb_p_job_test_stage_in", rc=1), rc=-1),
    ),
    "a resume comes before the suspension": (
        SUSPENDED,
        before(of("switch_p_job_resume"), of("switch_p_job_suspend")),
    ),
}


@pytest.mark.parametrize("what", IN_RUN)
def test_a_damaged_run_does_not_pass(what: str) -> None:
    """Also where both sides go on as if nothing had been."""
    name, damage = IN_RUN[what]
    assert told(damage(list(held(name).events)), recording(name), name)


# Damages to a recording.


def _at(events: Recording, fn: str, **args: Any) -> list[int]:
    return [
        at
        for at, event in enumerate(events)
        if event["fn"] == fn and all(event["args"].get(key) == args[key] for key in args)
    ]


def _still_running(events: Recording) -> Recording:
    """Let the states of the first job end with RUNNING."""
    gone = [at for at in _at(events, "job_state") if "COMPLET" in events[at]["args"]["to"]]
    return [event for at, event in enumerate(events) if at not in gone]


def _late(events: Recording) -> Recording:
    return [{**event, "dt": event["dt"] * 100} for event in events]


def _still_running_for_an_hour(events: Recording) -> Recording:
    """Let a job run to the end of the recording, and that be an hour later."""
    start = _at(events, "exec_task")[-1]
    kept = copy.deepcopy(events[: start + 1])
    last = copy.deepcopy(next(each for each in events if each["daemon"] == "slurmctld"))
    last.update(ev="mark", fn="driver", args={"what": "wait"}, dt=3600.0)
    return [*kept, last]


def _changed(fn: str, *, where: dict[str, Any] | None = None, **new: Any) -> Any:
    def damage(events: Recording) -> Recording:
        at = _at(events, fn, **(where or {}))[0]
        fields = {key: value for key, value in new.items() if key != "args"}
        events[at].update(fields)
        events[at]["args"].update(new.get("args", {}))
        return events

    return damage


def _dropped(fn: str, **where: Any) -> Any:
    def damage(events: Recording) -> Recording:
        at = _at(events, fn, **where)[0]
        return events[:at] + events[at + 1 :]

    return damage


IN_RECORDING: Final[dict[str, tuple[str, Callable[[Recording], Recording]]]] = {
    "a job that is over in the run goes on": (STEP, _still_running),
    "a batch job that is over in the run goes on": (BATCH, _still_running),
    "a job that is over in the run runs for an hour": (STEP, _still_running_for_an_hour),
    "all of it took a hundred times as long": (STEP, _late),
    "another task was reaped with an error": (
        STEP,
        _changed("task_reaped", args={"status": 256}),
    ),
    "a checkpoint request was refused otherwise": (
        CHECKPOINTS,
        _changed("send", where={"return_code": 2037}, args={"return_code": 2077}),
    ),
    "a launch was refused": (
        BATCH,
        _changed("send", where={"msg": "RESPONSE_SLURM_RC"}, args={"return_code": 4022}),
    ),
    "a node did not register after a restart": (
        RESTARTED,
        _dropped("send", msg="MESSAGE_NODE_REGISTRATION_STATUS", node_name="n3"),
    ),
    "another step ran as slurmctld came back": (
        RESTARTED,
        _changed(
            "send",
            where={"msg": "MESSAGE_NODE_REGISTRATION_STATUS", "node_name": "n1"},
            args={"jobs": ["2.1"]},
        ),
    ),
    "a buffer was set up without a pass": (
        BUFFER,
        lambda events: [each for each in events if each["fn"] != "dw_setup"],
    ),
}


@pytest.mark.parametrize("what", IN_RECORDING)
def test_a_damaged_recording_does_not_pass(what: str) -> None:
    """What the recording has otherwise is told, whichever side is wrong."""
    name, damage = IN_RECORDING[what]
    assert told(list(held(name).events), damage(recording(name)), name)


# Good input.


def test_what_is_not_damaged_is_silent() -> None:
    """So that what the damages lead to is theirs."""
    for name in sorted({name for name, _ in (*IN_RUN.values(), *IN_RECORDING.values())}):
        assert told(list(held(name).events), recording(name), name) == []


def _begun_later(events: Recording) -> Recording:
    """Let a recording begin after the daemons have started, before a reconfigure."""
    return events[_at(events, "send", msg="REQUEST_RECONFIGURE")[0] :]


def test_a_reconfigure_is_not_taken_for_a_start() -> None:
    """A recording that begins later has slurmd's switch_p_reconfig, and not its start."""
    name = "s01_startup_shutdown"
    events = list(held(name).events)
    assert told(events, _begun_later(recording(name)), name) == []
    damaged = without(of("switch_p_reconfig", node="n2"))(events)
    assert told(damaged, _begun_later(recording(name)), name)


def _call(events: Recording, fn: str, rc: int = 0, **args: Any) -> dict[str, Any]:
    """Return a call of slurmctld at the end of a recording."""
    call = copy.deepcopy(next(each for each in events if each["daemon"] == "slurmctld"))
    call.update(ev="call", fn=fn, args=args, rc=rc, dt=events[-1]["dt"])
    return call


def test_a_plugin_has_its_name_of_now_when_it_ends() -> None:
    """burst_buffer/cray of the recordings is burst_buffer/datawarp here, at fini as at init."""
    events = recording(BUFFER)
    ends = [
        _call(events, "switch_p_libstate_save", dir="/cluster/run/state"),
        _call(events, "fini", plugin="burst_buffer/cray"),
    ]
    assert told(list(held(BUFFER).events), [*events, *ends], BUFFER) == []


def test_a_pointer_is_no_result() -> None:
    """copy_job gives back a record, which lies somewhere; -1 is an error all the same."""
    events = recording(STEP)
    calls = [_call(events, "slurm_ckpt_copy_job", rc, ji="#1", new="#2") for rc in (1, 0x7FF3, -1)]
    acts = real_story([*events, *calls]).acts
    assert [act.result for act in acts if act.name == "slurm_ckpt_copy_job"] == [0, 0, -1]


def test_an_old_job_may_only_change_its_state() -> None:
    """It is not new because nothing else is told of it."""
    events = recording(STEP)
    last = copy.deepcopy(next(each for each in events if each["fn"] == "job_state"))
    last["args"] = {"job": 1, "from": "PENDING", "to": "CANCELLED", "in": "job_signal"}
    last["dt"] = events[-1]["dt"]
    assert told(list(held(STEP).events), [*events, last], STEP) == []


# What repeats by the clock counts once, and nothing else does.


def _acts(text: str) -> Story:
    """Return a story of slurmctld: ``NAME KEY [test_only] [= RESULT]``, one after another."""
    short = {"in": "bb_p_job_test_stage_in", "out": "bb_p_job_test_stage_out"}
    acts = []
    for place, said in enumerate(text.split("; ")):
        words, _, result = said.partition(" = ")
        name, *more = words.split()
        acts.append(
            Act(
                strand="slurmctld",
                kind="state" if name == "job_state" else "call",
                name=short.get(name, name) + (ENDING if "answered" in more else ""),
                key=next((each for each in more if each not in ("test_only", "answered")), ""),
                args={"test_only": int("test_only" in more)} if name == "in" else {},
                result=int(result) if result else None,
                place=place,
            )
        )
    return Story(acts=tuple(acts))


@pytest.mark.parametrize(
    ("acts", "left_out"),
    [
        ("in = 0; in = 0; in = 1; in = 0", [1, 3]),
        ("out = 0; out = 0; out = 1", [1]),
        ("in = 0; begin; in = 0", []),
        ("out = 0; in = 0; out = 0", [2]),
        ("in = 0; in test_only = 0; in = 1", [1]),
        ("in test_only = 0; in = 0", []),
        ("in = 0; job_state R; in test_only = 0", []),
        ("REQUEST_TERMINATE_JOB n1; REQUEST_TERMINATE_JOB n1", [1]),
        ("REQUEST_TERMINATE_JOB n1; REQUEST_TERMINATE_JOB n2", []),
        ("REQUEST_TERMINATE_JOB n1; begin; REQUEST_TERMINATE_JOB n1", []),
        ("REQUEST_SUSPEND_INT n1; REQUEST_SUSPEND_INT n1", []),
        ("REQUEST_BATCH_JOB_LAUNCH n1; REQUEST_BATCH_JOB_LAUNCH n1", []),
        ("MESSAGE_TASK_EXIT 0; MESSAGE_TASK_EXIT 0", []),
        ("MESSAGE_TASK_EXIT answered = 0; MESSAGE_TASK_EXIT answered = 0", [1]),
        ("REQUEST_STEP_COMPLETE answered = 0; REQUEST_STEP_COMPLETE answered = 2017", []),
        ("begin; begin", []),
    ],
)
def test_what_is_asked_by_the_clock_counts_once_for_each_answer(
    acts: str, left_out: list[int]
) -> None:
    """Until something else happens; of messages only those that are sent again unasked."""
    polls = next(each for each in RULES if each.name == "polls")
    for sides in ((_acts(acts), Story(acts=())), (Story(acts=()), _acts(acts))):
        settled = polls.settle(*sides)
        left = [act.place for story in settled for act in story.acts]
        assert left == [place for place in range(acts.count(";") + 1) if place not in left_out]


# Other recordings.


@pytest.mark.parametrize("name", NAMES)
def test_a_run_against_another_recording_says_first_what_differs(name: str) -> None:
    """The first line is a difference, whichever recordings are held against each other."""
    other = NAMES[(NAMES.index(name) + 1) % len(NAMES)]
    comparison = compare_events(held(name).events, recording(other))
    found = sort_out(comparison.differences, accepted_of(other))
    first = next(report(comparison, found))
    assert first.startswith(f"differs: {found.left[0].line()}")


@pytest.mark.parametrize(
    ("where", "what", "fits"),
    [
        ("job 1", "is? [2]", True),
        ("job *", "is? [*]", True),
        ("job ?", "is? [2]", False),
        ("job 1", "is?? [2]", False),
        ("job [1]", "is? [2]", False),
        ("job 1", "is?", False),
    ],
)
def test_only_the_star_of_an_accepted_difference_stands_for_more(
    where: str, what: str, fits: bool
) -> None:
    """A question mark and brackets are themselves."""
    entry = Accepted(
        kind="time", where=where, what=what, case="recording", reason="a test", recordings=()
    )
    found = Difference(
        kind="time", strand="job 1", ours=None, theirs=None, text="is? [2]", at=0, recorded_at=0.0
    )
    assert entry.fits(found) is fits
