"""What happens to jobs with burst buffers: lives undisturbed, and one trouble at every moment."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from simctl.testing.plugin_check.burst_buffer.directives import Directive
from simctl.testing.plugin_check.watched import Run
from simctl.wire.ids import SECOND

_SHORT_US: Final = 1000
_NODE_BACK_S: Final = 1200.0
_LATER_S: Final = 90.0
_LATE_S: Final = 1800.0
_LONG_S: Final = 4000.0
FAILS_ONCE: Final = """\
#!/bin/sh
if [ -e /tmp/has_failed ]; then sleep 5; exit 0; fi
echo once > /tmp/has_failed
echo "it failed"
exit 1
"""
"""A script that fails the first time it is run on a host."""

_RESERVATION: Final = (
    "scontrol create reservation starttime=now+10 duration=5 nodes=n3 users=bob burstbuffer=10G"
)
_ASKED_AGAIN: Final = ("bb_p_job_test_stage_in",)
"""Functions that must fail several times before backfill asks when the job may start."""

PHASES: Final = ("stage-in", "pre-run", "run", "stage-out")


@attrs.frozen(kw_only=True)
class Trial:
    """One situation.

    `victims` are the jobs that something happens to, `healthy` those that must complete.
    """

    name: str
    timeline: tuple[Mapping[str, Any], ...]
    healthy: tuple[int, ...] = ()
    leaves: str = "bb_p_job_start_stage_out"
    """The function by which the plugin learns that what it keeps of the job is free."""

    what: str = ""
    """What happens, in words that go on from "after"."""

    restarts: bool = False
    one_at_a_time: bool = False
    """Whether its jobs are so large that two can never run at once."""

    lost_call: str = ""
    """A function that a fault of the trial keeps from the plugin: nothing can follow from it."""

    options: Mapping[str, Any] = {}
    plain: bool = False
    """Whether nothing happens to its jobs."""

    followed: bool = False
    """Whether the plugin's threads are followed line by line, which takes its time."""

    observed: bool = False
    """Whether each call is looked at from close by even where threads are not followed."""

    failed_script: str = ""
    """The path of a script that fails the first time."""

    scripts: Mapping[str, str] = {}
    """What it submits besides the scripts of all trials."""


@attrs.frozen(kw_only=True)
class Course:
    """When what of a job's life began, in seconds from its submission; None where nothing did."""

    staged_s: float = 0.0
    launched_s: float = 0.0
    ended_s: float = 30.0
    out_s: float = 30.0

    def moments(self) -> Iterator[tuple[str, float]]:
        """Return a moment in the middle of each phase that takes time."""
        edges = (0.0, self.staged_s, self.launched_s, self.ended_s, self.out_s)
        for phase, begin, end in zip(PHASES, edges, edges[1:], strict=False):
            if (end - begin) * SECOND > _SHORT_US:
                yield phase, (begin + end) / 2


def course_of(run: Run, job: int = 1) -> Course:
    """Return the course of a job that ran undisturbed."""
    staged = launched = ended = out = 0.0
    for event in run.events:
        if event.job != job or event.kind != "state":
            continue
        at_s = event.time_us / SECOND
        to = str(event.args["to"]) if isinstance(event.args, dict) else ""
        if event.name == "job_state":
            before = str(event.args["from"]) if isinstance(event.args, dict) else ""
            if not staged and ("RUNNING" in to or "CONFIGURING" in to):
                staged = launched = at_s
            elif staged and not ended and to == "RUNNING":
                launched = at_s
            elif staged and not ended and "COMPLETING" in to:
                ended = out = at_s
            if "STAGE_OUT" in before and "STAGE_OUT" not in to:
                out = max(out, at_s)
        elif event.name == "bb_state" and ended:
            out = max(out, at_s)
    return Course(staged_s=staged, launched_s=launched, ended_s=ended, out_s=out)


def submit(
    script: str, at_s: float = 0.0, options: str = "", user: str = "alice"
) -> dict[str, Any]:
    """Return the timeline's entry that submits a script."""
    return {
        "at": f"{at_s:.6f}s",
        "as": user,
        "run": f"sbatch {options} {script}".replace("  ", " "),
    }


def _at(at_s: float, **entry: Any) -> dict[str, Any]:
    return {"at": f"{at_s:.6f}s", **entry}


@attrs.frozen(kw_only=True)
class _Jobs:
    """The jobs of trials: their course, and how they are submitted."""

    course: Course
    limited: bool
    option: str

    @property
    def whole_s(self) -> float:
        """Return after how long nothing of a job is left."""
        return self.course.out_s + _LATER_S

    @property
    def middle_s(self) -> float:
        """Return when a job is in the middle of its run."""
        return (self.course.launched_s + self.course.ended_s) / 2

    @property
    def first(self) -> dict[str, Any]:
        """Return the job that things happen to."""
        return submit("job.sh", 0.0, self.option)

    def after(self, at_s: float) -> dict[str, Any]:
        """Return one more job, of another user."""
        return submit("job.sh", at_s, self.option, "bob")

    def last(self, at_s: float) -> dict[str, Any]:
        """Return one more job, so late that all that is kept for a while is dropped by then."""
        return self.after(at_s + _LATE_S)


def trials(course: Course, *, limited: bool, option: str) -> Iterator[Trial]:
    """Return the trials of a plugin whose job has this course.

    Args:
        course: How long its phases are.
        limited: Whether the job of ``job.sh`` is so large that two have no space at once.
        option: What sbatch is given, for a directive that is none of a script's.
    """
    jobs = _Jobs(course=course, limited=limited, option=option)
    yield from _undisturbed(jobs)
    yield from _cancelled(jobs)
    yield from _slurmctld_anew(jobs)
    yield from _ended_early(jobs)
    yield _without_nodes(jobs)
    yield from _not_at_once(jobs)
    yield _refused(jobs)


def _undisturbed(jobs: _Jobs) -> Iterator[Trial]:
    """Return trials of jobs that only want the same space."""
    yield Trial(
        name="jobs one after the other",
        plain=True,
        timeline=(
            jobs.first,
            jobs.after(jobs.whole_s),
            jobs.after(2 * jobs.whole_s),
            jobs.last(2 * jobs.whole_s),
        ),
        healthy=(1, 2, 3, 4),
        one_at_a_time=jobs.limited,
        what="a job that completed",
    )
    yield Trial(
        name="jobs that want more space than there is",
        followed=True,
        timeline=(
            jobs.first,
            submit("job.sh", 0.5, jobs.option, "bob"),
            submit("job.sh", 1, jobs.option),
            jobs.last(4 * jobs.whole_s),
        ),
        healthy=(1, 2, 3, 4),
        what="jobs that waited for each other",
    )
    if jobs.limited:
        yield from _beside_a_long_job(jobs.course, jobs.option)


def _cancelled(jobs: _Jobs) -> Iterator[Trial]:
    """Return trials of a job that is cancelled, in each phase."""
    for phase, at_s in jobs.course.moments():
        hurry = "--hurry " if phase == "stage-out" else ""
        yield Trial(
            name=f"cancelled in {phase}",
            followed=True,
            timeline=(
                jobs.first,
                _at(at_s, **{"as": "alice"}, run=f"scancel {hurry}1"),
                jobs.after(at_s + jobs.whole_s),
                jobs.after(at_s + jobs.whole_s + 1),
                jobs.last(at_s + 3 * jobs.whole_s),
            ),
            healthy=(2, 3, 4),
            leaves="bb_p_job_start_stage_out" if phase == "run" else "bb_p_job_cancel",
            one_at_a_time=jobs.limited,
            what=f"a job that was cancelled in {phase}",
        )
    yield Trial(
        name="killed in a hurry",
        timeline=(
            jobs.first,
            _at(jobs.middle_s, **{"as": "alice"}, run="scancel --hurry 1"),
            jobs.after(jobs.course.ended_s + jobs.whole_s),
            jobs.last(jobs.course.ended_s + 2 * jobs.whole_s),
        ),
        healthy=(2, 3),
        leaves="bb_p_job_cancel",
        one_at_a_time=jobs.limited,
        what="a job that was cancelled with --hurry while it ran",
    )


def _slurmctld_anew(jobs: _Jobs) -> Iterator[Trial]:
    """Return trials of a slurmctld that restarts or dies, in each phase of a job."""
    for how in ("restart", "crash"):
        for phase, at_s in jobs.course.moments():
            fault = [_at(at_s, fault={"restart": "slurmctld"})]
            if how == "crash":
                fault = [
                    _at(at_s, fault={"crash": "slurmctld"}),
                    _at(at_s + 3, fault={"start": "slurmctld"}),
                ]
            yield Trial(
                name=f"slurmctld {how} in {phase}",
                followed=how == "restart",
                timeline=(
                    jobs.first,
                    *fault,
                    jobs.after(at_s + 8),
                    jobs.last(at_s + 8 + 3 * jobs.whole_s),
                ),
                healthy=(1, 2, 3),
                leaves="bb_p_load_state",
                restarts=True,
                one_at_a_time=jobs.limited,
                what=f"a slurmctld that was started anew while a job was in {phase}",
            )


def _ended_early(jobs: _Jobs) -> Iterator[Trial]:
    """Return trials of a job that is requeued, fails, is out of time, or loses its node."""
    yield Trial(
        name="requeued",
        followed=True,
        timeline=(
            jobs.first,
            _at(jobs.middle_s, **{"as": "alice"}, run="scontrol requeue 1"),
            jobs.last(jobs.middle_s + 4 * jobs.whole_s + 180),
        ),
        healthy=(1, 2),
        one_at_a_time=jobs.limited,
        what="a job that was requeued",
    )
    for name, script, more in (
        ("that fails", "fails.sh", ""),
        ("out of time", "stays.sh", "-t 1"),
    ):
        yield Trial(
            name=f"a job {name}",
            timeline=(
                submit(script, 0, f"{jobs.option} {more}"),
                jobs.after(jobs.whole_s + 180),
                jobs.last(3 * jobs.whole_s),
            ),
            healthy=(2, 3),
            one_at_a_time=jobs.limited,
            what=f"a job {name}",
        )
    yield Trial(
        name="a node that crashes",
        timeline=(
            submit("job.sh", 0, f"--no-requeue {jobs.option}"),
            _at(jobs.middle_s, fault={"crash": "n1"}),
            _at(jobs.middle_s + _NODE_BACK_S, fault={"start": "n1", "clean": True}),
            jobs.last(jobs.middle_s + _NODE_BACK_S + jobs.whole_s),
        ),
        healthy=(2,),
        one_at_a_time=jobs.limited,
        what="a job whose node crashed",
    )


def _without_nodes(jobs: _Jobs) -> Trial:
    """Return the trial of a job whose nodes cannot be had as it starts."""
    return Trial(
        name="nodes that cannot be had",
        observed=True,
        timeline=(
            _at(0, fault={"fail": "select_g_job_begin job=1", "times": 1}),
            jobs.first,
            jobs.last(3 * jobs.whole_s + 180),
        ),
        healthy=(1, 2),
        leaves="bb_p_job_revoke_alloc",
        one_at_a_time=jobs.limited,
        what="an allocation that was revoked",
    )


def _not_at_once(jobs: _Jobs) -> Iterator[Trial]:
    """Return trials of jobs that are held at first, or many."""
    yield Trial(
        name="held and released",
        timeline=(
            submit("job.sh", 0, f"-H {jobs.option}"),
            _at(30, **{"as": "alice"}, run="scontrol release 1"),
            jobs.last(30 + jobs.whole_s + 60),
        ),
        healthy=(1, 2),
        one_at_a_time=jobs.limited,
        what="a job that was held and released",
    )
    yield Trial(
        name="held and cancelled",
        timeline=(
            submit("job.sh", 0, f"-H {jobs.option}"),
            _at(30, **{"as": "alice"}, run="scancel 1"),
            jobs.after(60),
            jobs.last(jobs.whole_s),
        ),
        healthy=(2, 3),
        leaves="bb_p_job_cancel",
        one_at_a_time=jobs.limited,
        what="a job that was held and cancelled",
    )
    yield Trial(
        name="an array",
        timeline=(submit("job.sh", 0, f"-a 0-2 {jobs.option}"), jobs.last(5 * jobs.whole_s + 300)),
        healthy=(1, 2, 3, 4),
        what="an array",
    )


def _refused(jobs: _Jobs) -> Trial:
    """Return the trial of a job whose begin fails."""
    return Trial(
        name="begin fails",
        timeline=(
            _at(0, fault={"fail": "bb_p_job_begin job=1", "times": 1}),
            jobs.first,
            _at(jobs.whole_s, **{"as": "alice"}, run="scancel 1"),
            jobs.after(jobs.whole_s + 60),
        ),
        healthy=(2,),
        leaves="bb_p_job_cancel",
        lost_call="bb_p_job_begin",
        one_at_a_time=jobs.limited,
        what="a job whose start was refused",
    )


def _beside_a_long_job(course: Course, option: str) -> Iterator[Trial]:
    """Return trials in which a job that lasts has all the space, and the next one wants it."""
    later_s = course.launched_s + 10
    long = submit("long.sh", 0.0, option)
    after = (submit("job.sh", later_s + 8, option, "bob"), submit("job.sh", _LONG_S, option))
    yield Trial(
        name="a job that lasts, and others that wait for its space",
        plain=True,
        timeline=(long, *after),
        healthy=(1, 2, 3),
        leaves="bb_p_job_test_stage_in",
        one_at_a_time=True,
    )
    yield Trial(
        name="slurmctld restart while a job lasts",
        timeline=(long, _at(later_s, fault={"restart": "slurmctld"}), *after),
        healthy=(1, 2, 3),
        leaves="bb_p_load_state",
        restarts=True,
        one_at_a_time=True,
        what="a slurmctld that was started anew while a job ran",
    )


def every_call_fails(names: Iterable[str], course: Course, option: str) -> Iterator[Trial]:
    """Return a trial for each function, in which it fails once without having run."""
    for name in names:
        yield Trial(
            name=f"{name} fails once",
            observed=name in _ASKED_AGAIN,
            timeline=(
                _at(0.5, fault={"fail": name, "times": 6 if name in _ASKED_AGAIN else 1}),
                submit("job.sh", 1, option),
                _at(course.out_s + 300, run="scontrol show burst"),
                _at(course.out_s + 400, **{"as": "alice"}, run="scancel --hurry 1"),
                submit("job.sh", course.out_s + 500, option),
            ),
            lost_call=name,
            what=f"a {name} that failed",
        )


def every_script_fails(paths: Iterable[str], course: Course, option: str) -> Iterator[Trial]:
    """Return a trial for each script, in which it fails once and the job is seen to be released."""
    later_s = 3 * course.out_s + 300
    for path in paths:
        name = path.rpartition("/")[2]
        yield Trial(
            name=f"{name} fails once",
            followed=True,
            timeline=(
                submit("job.sh", 0, option),
                _at(later_s, run="scontrol release 1"),
                _at(2 * later_s, **{"as": "alice"}, run="scancel 1"),
                submit("job.sh", 2 * later_s + 60, option),
                submit("job.sh", 2 * later_s + 60 + course.out_s + _LATE_S, option),
            ),
            healthy=(2, 3),
            failed_script=path,
            leaves="bb_p_job_cancel",
            what=f"a {name} that exited with 1",
        )


def typos(directive: Directive) -> Iterator[Directive]:
    """Return the ways to mistype a directive."""
    made: dict[Directive, None] = {}
    for word in directive.words[1:] if directive.lines else directive.words:
        key, equals, value = word.partition("=")
        if equals:
            if any(letter.isdigit() for letter in value) and "/" not in value:
                made[directive.replaced(word, f"{key}=lots")] = None
            made[directive.replaced(word, key)] = None
        elif word[:1].isdigit():
            made[directive.replaced(word, "lots")] = None
        made[directive.without(word)] = None
    made.pop(directive, None)
    yield from (each for each in made if each.words)


def scripts_of(directive: Directive) -> dict[str, str]:
    """Return the scripts that trials submit."""
    return {
        "job.sh": directive.script("srun ./app"),
        "fails.sh": directive.script("srun ./fails\nexit 3"),
        "long.sh": directive.script("srun ./long"),
        "stays.sh": directive.script("srun ./stays"),
        "bare.sh": "#!/bin/sh\nsrun ./app\n",
    }


def besides(directive: Directive, option: str) -> Trial:
    """Return the trial of jobs that ask for nothing, or in another way."""
    return Trial(
        name="jobs without a directive, and people who look",
        observed=True,
        timeline=(
            {"at": "0s", "run": _RESERVATION},
            submit("bare.sh"),
            submit("job.sh", 0, f"--begin=now+120 {option}"),
            {"at": "1s", "as": "alice", "run": "srun ./app"},
            {"at": "1s", "as": "bob", "run": "srun --bb=capacity=1GiB ./app"},
            {"at": "2s", "as": "bob", "run": "sbatch --bb=other=1 bare.sh"},
            {"at": "3s", "as": "alice", "run": "scontrol show burst"},
            submit("job.sh", 4, option),
            {"at": "20s", "as": "bob", "run": "scontrol show burst"},
            {"at": "21s", "run": "scontrol reconfigure"},
            {"at": "300s", "run": "scontrol show burst"},
            {
                "at": "300s",
                "as": "alice",
                "run": "srun --bb='%s' ./app" % (directive.option or "x=1"),
            },
        ),
        # Model modern asks about the post-run only then.
        options={"bb_post_run_gate": True},
        what="jobs without burst buffers",
    )


__all__ = [
    "Course",
    "Trial",
    "besides",
    "course_of",
    "every_call_fails",
    "every_script_fails",
    "scripts_of",
    "submit",
    "trials",
    "typos",
]
