"""Drive a burst buffer plugin with its own directive, and say what is not as in a good one."""

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from simctl.plugin import BurstBufferPlugin
from simctl.testing.plugin_check.burst_buffer.cluster import Run, Setting, run_cluster
from simctl.testing.plugin_check.burst_buffer.directives import Directive
from simctl.testing.plugin_check.burst_buffer.keeps import more_than, other_numbers
from simctl.testing.plugin_check.burst_buffer.lives import Chosen, NotDriven, choose
from simctl.testing.plugin_check.burst_buffer.trials import (
    Course,
    Trial,
    besides,
    course_of,
    states,
    submit,
    trials,
)
from simctl.testing.plugin_check.burst_buffer.watch import Watch, place_of
from simctl.wire.ids import SECOND


@attrs.frozen(kw_only=True)
class Mistake:
    rule: str
    function: str
    where: str
    cost: str
    remedy: str


_PATIENCE: Final = 12
_MORE_S: Final = 2400.0
_NUMBER: Final = re.compile(r"^(\w+=)?(\d+)([A-Za-z]*)$")
_LARGEST: Final = 24
_FAILED_AT: Final = re.compile(r"\((.+), line (\d+), in (\w+)\)$")


@attrs.define(kw_only=True)
class Seen:
    """A trial that has run."""

    trial: Trial
    run: Run
    watch: Watch
    kept: dict[str, int | float]


@attrs.define(kw_only=True)
class Outcome:
    """What came of a check."""

    mistakes: list[Mistake] = attrs.field(factory=list)
    driven: set[str] = attrs.field(factory=set)
    directive: str = ""
    not_driven: str = ""
    trials: int = 0


class BurstBufferCheck:
    """Checks one plugin in one model."""

    def __init__(self, kind: type[Any], chosen: Chosen, outcome: Outcome, model: str) -> None:
        self._kind = kind
        self._chosen = chosen
        self._outcome = outcome
        self._model = model
        self._directive = chosen.directive
        self._blamed: set[tuple[str, str]] = {
            (each.rule, each.function) for each in outcome.mistakes
        }
        self._leaked: set[str] = set()
        self._limited = False
        self._course: Course
        self._whole_s = 0.0
        self._idle: dict[str, int | float] = {}
        self._once: dict[str, int | float] | None = None
        self._returns: dict[str, int | float] = {}

    # Running.

    def _see(self, trial: Trial, directive: Directive | None = None) -> Seen:
        directive = directive or self._directive
        watch = Watch(self._kind, f"bb/{self._kind.plugin_type.partition('/')[2]}")
        scripts = {
            "job.sh": directive.script("srun ./app"),
            "fails.sh": directive.script("srun ./fails\nexit 3"),
            "stays.sh": directive.script("srun ./stays"),
            "bare.sh": "#!/bin/sh\nsrun ./app\n",
        }
        text = self._chosen.setting.scenario(
            trial.timeline, scripts, model=self._model, options=trial.options
        )
        last_s = max((float(str(each["at"]).rstrip("s")) for each in trial.timeline), default=0)
        run = run_cluster(
            self._kind,
            text,
            name=trial.name,
            observer=watch,
            until_s=last_s + _PATIENCE * self._whole_s + _MORE_S,
        )
        self._outcome.trials += 1
        self._outcome.driven |= set(watch.called)
        return Seen(trial=trial, run=run, watch=watch, kept=watch.conclude())

    # The order of things.

    def check(self) -> None:
        """Check; what goes wrong in the plainest life is all that is told, and then the rest."""
        idle = self._see(Trial(name="nobody wants anything", timeline=({"at": "300s", "run": "sinfo"},)))
        self._idle = idle.kept
        plain = self._see(Trial(name="one job", timeline=(submit("job.sh", 0, self._option),), healthy=(1,)))
        if self._judge(plain):
            return
        self._whole_s = plain.run.result.end_time_us / SECOND
        self._find_limit()
        plain = self._see(Trial(name="one job", timeline=(submit("job.sh", 0, self._option),), healthy=(1,)))
        self._course = course_of(plain.run)
        self._whole_s = max(self._course.out_s, 30.0)
        self._returns = plain.kept
        self._once = plain.kept
        for trial in trials(self._course, limited=self._limited, option=self._option):
            if trial.leaves != "bb_p_job_revoke_alloc" or self._takes_back():
                self._judge(self._see(trial))
        self._judge(self._see(besides(self._directive, self._option)))

    def _takes_back(self) -> bool:
        """Tell whether the plugin has a revoke_alloc, and the model takes the flag off after it."""
        stub = BurstBufferPlugin.bb_p_job_revoke_alloc
        own = getattr(self._kind, "bb_p_job_revoke_alloc", stub) is not stub
        return own and self._model == "guide"

    @property
    def _option(self) -> str:
        return f"--bb='{self._directive.option}'" if self._directive.option else ""

    def _find_limit(self) -> None:
        """Make the job so large that one fits and two do not, if there is such a size."""
        for word in self._directive.words:
            found = _NUMBER.match(word)
            if found is None:
                continue
            fits = self._directive
            for power in range(1, _LARGEST):
                number = int(found[2]) << power
                larger = self._directive.replaced(word, f"{found[1] or ''}{number}{found[3]}")
                seen = self._see(
                    Trial(
                        name="how much there is",
                        timeline=(submit("job.sh", 0, self._option.replace(word, f"{found[1] or ''}{number}{found[3]}")),),
                    ),
                    larger,
                )
                if _refused_or_waits(seen.run):
                    if power > 1 or fits == self._directive:
                        self._directive = fits
                        self._limited = True
                    return
                if states(seen.run.events, 1)[-1:] and not states(seen.run.events, 1)[-1][1].startswith("COMPLETED"):
                    break
                fits = larger

    # Judging.

    def _judge(self, seen: Seen) -> bool:
        """Say what was wrong in a trial; return whether anything was."""
        failures = list(self._failures(seen))
        for mistake in failures:
            self._tell(mistake)
        for (rule, name), (cost, remedy) in seen.watch.faults.items():
            self._blame(rule, name, cost, remedy)
        held = self._look_at_time(seen)
        if failures:
            return True
        ended = self._look_at_ends(seen)
        return ended or self._look_at_space(seen) or self._look_at_kept(seen) or held

    def _tell(self, mistake: Mistake) -> None:
        key = (mistake.rule, mistake.function)
        if key not in self._blamed:
            self._blamed.add(key)
            self._outcome.mistakes.append(mistake)

    def _blame(self, rule: str, function: str, cost: str, remedy: str) -> None:
        self._tell(
            Mistake(
                rule=rule,
                function=function,
                where=place_of(self._kind, function),
                cost=cost,
                remedy=remedy,
            )
        )

    def _failures(self, seen: Seen) -> Iterator[Mistake]:
        for each in seen.run.result.complaints:
            found = _FAILED_AT.search(each.problem)
            where = f"{found[1]}:{found[2]}" if found else place_of(self._kind, each.function)
            yield Mistake(
                rule="a call does not fail",
                function=each.function.removeprefix("thread "),
                where=where,
                cost=f"{each.problem}: {seen.trial.name}",
                remedy="",
            )

    def _look_at_time(self, seen: Seen) -> bool:
        """Look for calls that kept slurmctld from everything else."""
        held: dict[str, int] = {}
        for event in seen.run.events:
            if event.kind == "plugin" and isinstance(event.t0_us, int):
                held[event.name] = max(held.get(event.name, 0), event.time_us - event.t0_us)
        for name, took_us in held.items():
            if took_us >= SECOND:
                self._blame(
                    "slurmctld does not wait",
                    name,
                    f"it held slurmctld for {took_us / SECOND:.1f} s: nobody else is answered "
                    "meanwhile, and squeue gives up after MessageTimeout",
                    "let a thread do it (`start`), answer 0 until that is done",
                )
        return any(took_us >= SECOND for took_us in held.values())

    def _look_at_ends(self, seen: Seen) -> bool:
        """Look for jobs that did not come to their end."""
        trial, run = seen.trial, seen.run
        after = f" after {trial.what}" if trial.what else ""
        for job in trial.healthy:
            ways = states(run.events, job)
            if not ways:
                continue
            last = ways[-1][1]
            if last.startswith("COMPLETED") and "|" not in last:
                continue
            if self._stuck(seen, job, last, after):
                return True
        kept = [
            record.job_id
            for record in run.world.ctld.jobs.values()
            if record.state.finished and not record.state.completing
        ]
        if kept and run.result.stopped_at_limit:
            return self._stuck(seen, kept[0], states(run.events, kept[0])[-1][1], after)
        return False

    def _stuck(self, seen: Seen, job: int, last: str, after: str) -> bool:
        trial = seen.trial
        first = job == 1
        if "STAGE_OUT" in last:
            function = "bb_p_load_state" if trial.restarts else "bb_p_job_start_stage_out"
            self._blame(
                "a stage-out ends",
                function,
                f"job {job} keeps the flag STAGE_OUT for ever{after}: its record and its space are "
                "never free, and who depends on it with afterburstbuffer never starts",
                "let the thread that stages out take the flag off (`job.stage_out = False`), also "
                "when its script failed, and take up stage-outs in load_state(True)",
            )
        elif "COMPLETING" in last:
            self._blame(
                "a job leaves its nodes",
                "bb_p_job_test_post_run",
                f"job {job} stays COMPLETING for ever{after}: its nodes are lost to others",
                "answer 1 once what follows the run is over, and for jobs without any of it",
            )
        elif "CONFIGURING" in last:
            function = "bb_p_load_state" if trial.restarts else "bb_p_job_begin"
            self._blame(
                "a launch goes on",
                function,
                f"job {job} has its nodes and stays CONFIGURING for ever{after}",
                "release each hold_launch once what it waited for is over, however that went",
            )
        elif last.startswith("PENDING"):
            self._waits(seen, job, after)
        elif last.startswith("RUNNING"):
            return False
        elif last.startswith("COMPLETED") or job not in trial.healthy:
            self._blame(
                "a job is let go",
                "bb_p_job_test_stage_out",
                f"it never answers 1 for job {job}{after}: the job's record stays in slurmctld for "
                "ever, and every purge asks again",
                "answer 1 once nothing of the job is staged any more, also for one that was "
                "cancelled or never staged",
            )
        elif first and trial.restarts:
            return False
        else:
            return False
        return True

    def _waits(self, seen: Seen, job: int, after: str) -> None:
        trial = seen.trial
        if trial.name == "one job":
            self._blame(
                "a job starts",
                "bb_p_job_test_stage_in",
                "a job alone in the cluster waits for ever for its burst buffer",
                "let what stages in note that it is done, call `slurmctld.schedule()`, and answer "
                "1 from then on",
            )
            return
        if job == 1:
            self._blame(
                "a job starts again",
                trial.leaves,
                f"the job itself waits for ever{after}",
                "begin anew with a job that comes back: what is noted of its run before is no "
                "state to go on from",
            )
            return
        self._blame(
            "space comes back",
            trial.leaves,
            f"job {job} waits for ever{after}: the space of that job is never given out again",
            "give back what a job has booked, once, on every way that it can end",
        )

    def _look_at_space(self, seen: Seen) -> bool:
        """Look for jobs that ran at once though only one has space."""
        if not seen.trial.one_at_a_time:
            return False
        spans = sorted(_runs(seen.run))
        for (_, end_s, one), (begin_s, _, other) in zip(spans, spans[1:], strict=False):
            if begin_s < end_s:
                self._blame(
                    "space is given once",
                    seen.trial.leaves,
                    f"jobs {one} and {other} ran at once after {seen.trial.what}, each with more "
                    "than half of all the space: the buffer is full before both have what they "
                    "were granted",
                    "book in load_state(True) what jobs hold by their state, and give back what "
                    "a job holds only once",
                )
                return True
        return False

    def _look_at_kept(self, seen: Seen) -> bool:
        """Look for what is kept of jobs that are gone."""
        if self._once is None or seen.run.result.stopped_at_limit or seen.trial.lost_call:
            return False
        for path in more_than(seen.kept, self._once):
            if path in self._leaked:
                continue
            self._leaked.add(path)
            self._blame(
                "nothing is kept of jobs that are gone",
                seen.trial.leaves,
                f"{path} has {seen.kept[path]} entries when no job is left after {seen.trial.what}, "
                f"and {self._idle.get(path, 0)} before the first: what is booked there is lost to "
                "others, and slurmctld grows for as long as it runs",
                "drop the entry where the job lets go of its buffer: at the end of its stage-out, "
                "in job_cancel, and for a job that load_state no longer finds",
            )
            return True
        if not self._returns or seen.trial.restarts:
            return False
        steady = [path for path in self._idle if self._returns.get(path) == self._idle[path]]
        for path in other_numbers(seen.kept, self._idle):
            if path in steady and path not in self._leaked:
                self._leaked.add(path)
                self._blame(
                    "space comes back",
                    seen.trial.leaves,
                    f"{path} is {seen.kept[path]} when no job is left after {seen.trial.what}, and "
                    f"was {self._idle[path]} before the first: space is lost, or given out twice",
                    "give back what a job has booked, once, on every way that it can end",
                )
                return True
        return False


def _refused_or_waits(run: Run) -> bool:
    """Tell whether a job was refused, or is not given space for ever."""
    ways = states(run.events, 1)
    answers = [
        event.rc for event in run.events if event.name == "bb_p_job_test_stage_in" and event.job == 1
    ]
    waits = bool(ways) and ways[-1][1].startswith("PENDING")
    return not ways or (waits and answers[-1:] == [-1])


def _runs(run: Run) -> Iterator[tuple[float, float, int]]:
    """Return when jobs ran: from, until, which."""
    jobs = {event.job for event in run.events if event.name == "job_state"}
    for job in sorted(each for each in jobs if isinstance(each, int)):
        begin: float | None = None
        for at_s, state in states(run.events, job):
            running = state == "RUNNING"
            if running and begin is None:
                begin = at_s
            elif not running and begin is not None:
                yield begin, at_s, job
                begin = None


def check(kind: type[Any], *, models: tuple[str, ...] = ("guide", "modern")) -> Outcome:
    """Check a burst buffer plugin."""
    setting = Setting(plugin_type=kind.plugin_type)
    chosen = choose(kind, setting)
    outcome = Outcome()
    if isinstance(chosen, NotDriven):
        outcome.not_driven = str(chosen)
        return outcome
    outcome.directive = str(chosen.directive)
    for model in models:
        BurstBufferCheck(kind, chosen, outcome, model).check()
    return outcome


__all__ = ["Mistake", "Outcome", "check"]
