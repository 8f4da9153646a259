"""Drive a burst buffer plugin with its own directive, and say what is not as in a good one."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

import attrs

from simctl.plugin import BurstBufferPlugin
from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.burst_buffer import rules
from simctl.testing.plugin_check.burst_buffer.cluster import Life, Setting
from simctl.testing.plugin_check.burst_buffer.directives import Directive
from simctl.testing.plugin_check.burst_buffer.given import directives_of
from simctl.testing.plugin_check.burst_buffer.keeps import more_than, other_numbers
from simctl.testing.plugin_check.burst_buffer.lives import Chosen, NotDriven, choose, one_life
from simctl.testing.plugin_check.burst_buffer.persistent import (
    Pair,
    Persistent,
    find_pair,
    persistent_trials,
)
from simctl.testing.plugin_check.burst_buffer.trials import (
    FAILS_ONCE,
    Course,
    Trial,
    besides,
    course_of,
    every_call_fails,
    every_script_fails,
    scripts_of,
    submit,
    trials,
    typos,
)
from simctl.testing.plugin_check.burst_buffer.watch import Watch
from simctl.testing.plugin_check.lives import call_directly
from simctl.testing.plugin_check.mistakes import BREAKS, Outcome
from simctl.testing.plugin_check.watched import Run, run_watched, script_of
from simctl.wire.ids import SECOND

_PATIENCE: Final = 12
_MORE_S: Final = 2400.0
_NUMBER: Final = re.compile(r"^(\w+=)?(\d+)([A-Za-z]*)$")
_LARGEST: Final = 24
_MEGABYTE: Final = 1 << 20
_HOUR_US: Final = 3600 * SECOND


def drive_burst_buffer(bench: Bench) -> Outcome:
    """Drive a burst buffer plugin with a directive that it takes, in each model."""
    given = tuple(line for each in bench.given for line in directives_of(each))
    setting = Setting(
        plugin_type=bench.kind.plugin_type, given=bench.given[0] if bench.given else None
    )
    chosen = choose(bench.kind, setting, given)
    if isinstance(chosen, NotDriven):
        return _not_driven(bench, setting, chosen)
    space: dict[str, str] = {}
    pair = find_pair(bench.kind, chosen, given)
    for model in bench.models:
        BurstBufferDrive(bench, chosen, model, space, pair).drive()
    return Outcome()


def _not_driven(bench: Bench, setting: Setting, why: NotDriven) -> Outcome:
    """Call every function all the same, and say that no job made use of any."""
    anything = Directive(("#BB size=1G",))
    for model in bench.models:
        for trial in (
            besides(anything, ""),
            *trials(Course(), limited=False, option=""),
            *every_call_fails(("bb_p_job_test_stage_in",), Course(), ""),
        ):
            text = setting.scenario(
                trial.timeline, scripts_of(anything), model=model, options=trial.options
            )
            bench.run(trial.name, text, model=model, until_us=_HOUR_US)
        call_directly(bench, model)
    for answer in why.raised[:1]:
        what = f"{answer.raised}: for a script with `{answer.directive}`"
        bench.blame(BREAKS, "bb_p_job_validate", what)
    said = f"; it refused one with: {why.refusal}" if why.refusal else ""
    return Outcome(
        not_driven="no directive was found that bb_p_job_validate takes and that leads to "
        f"anything{said}. Show a line of a script in the plugin's docstring, such as "
        "`#BB copies DIRECTORY`, or give a scenario with `--scenario FILE`"
    )


@attrs.define(kw_only=True)
class Seen:
    """A trial that has run."""

    trial: Trial
    run: Run
    watch: Watch
    kept: dict[str, int | float]


class BurstBufferDrive:
    """Drives one plugin in one model."""

    def __init__(
        self,
        bench: Bench,
        chosen: Chosen,
        model: str,
        space: dict[str, str],
        pair: Pair | None = None,
    ) -> None:
        self._pair = pair
        """What makes and ends its persistent buffers, if it has any."""

        self._space = space
        """By which rule a function was blamed for what becomes of space: once is enough."""

        self._bench = bench
        self._kind = bench.kind
        self._chosen = chosen
        self._model = model
        self._directive = chosen.directive
        self._leaked: set[str] = set()
        self._limited = False
        self._course: Course
        self._whole_s = 0.0
        self._idle: dict[str, int | float] = {}
        self._once: dict[str, int | float] | None = None
        self._files_once: frozenset[str] = frozenset()

    # Running.

    def _see(self, trial: Trial) -> Seen | None:
        watch = Watch(self._kind, f"bb/{self._kind.plugin_type.partition('/')[2]}")
        scripts = scripts_of(self._directive) | dict(trial.scripts)
        setting = self._chosen.setting
        if trial.failed_script:
            scripts[trial.failed_script] = FAILS_ONCE
            setting = setting.lacking(trial.failed_script)
        text = setting.scenario(trial.timeline, scripts, model=self._model, options=trial.options)
        last_s = max((float(str(each["at"]).rstrip("s")) for each in trial.timeline), default=0)
        run = run_watched(
            self._bench,
            trial.name,
            text,
            model=self._model,
            watch=watch,
            files=self._chosen.vocabulary.files if trial.followed else frozenset(),
            light=not (trial.followed or trial.observed),
            until_s=last_s + _PATIENCE * self._whole_s + _MORE_S,
        )
        if run is None:
            return None
        return Seen(trial=trial, run=run, watch=watch, kept=watch.conclude())

    # The order of things.

    def drive(self) -> None:
        """Go from the plainest life to disturbed ones; where the plainest fails, stay with it."""
        idle = self._see(
            Trial(name="no job at all", observed=True, timeline=({"at": "300s", "run": "sinfo"},))
        )
        plain = self._see(self._one_job())
        if idle is None or plain is None:
            return
        self._idle = idle.kept
        if self._judge(plain):
            self._go_on_behind()
            return
        self._whole_s = plain.run.result.end_time_us / SECOND
        self._find_limit()
        plain = self._see(self._one_job())
        if plain is None:
            return
        self._course = course_of(plain.run)
        self._whole_s = max(self._course.out_s, 30.0)
        self._once = plain.kept
        self._files_once = _files(plain.run)
        self._look_at_units(plain)
        for trial in self._trials(plain):
            seen = self._see(trial)
            if seen is not None:
                self._judge(seen)
                if trial.plain and self._space:
                    # What is lost without any trouble is lost with every trouble as well.
                    function, rule = next(iter(self._space.items()))
                    self._space.setdefault(_ALWAYS, f"{rule} {function}")
        self._mistype()
        if self._pair is not None:
            self._persist(self._pair)

    def _persist(self, pair: Pair) -> None:
        """Go through lives of persistent buffers."""
        lives = Persistent(pair, self._idle, self._once or {})
        for trial in persistent_trials(pair):
            seen = self._see(trial)
            if seen is None or seen.run.result.complaints:
                return
            for (rule, function), what in seen.watch.faults.items():
                self._blame(rule, function, what)
            ways = tuple([state for _, state in seen.run.states(job)] for job in (1, 2))
            found = list(lives.judge(trial, (ways[0], ways[1]), seen.kept))
            for rule, function, what in found:
                self._blame(rule, function, what)
            if found:
                return

    def _one_job(self) -> Trial:
        return Trial(
            name="one job",
            observed=True,
            timeline=(
                submit("job.sh", 0, self._option),
                {"at": "1s", "run": "scontrol show burst"},
            ),
            healthy=(1,),
        )

    def _trials(self, plain: Seen) -> Iterator[Trial]:
        for trial in trials(self._course, limited=self._limited, option=self._option):
            judged = trial.leaves != "bb_p_job_revoke_alloc" or self._takes_back()
            yield trial if judged else attrs.evolve(trial, healthy=(), lost_call=trial.leaves)
        yield besides(self._directive, self._option)
        paths = [path for path in _scripts(plain.run) if self._chosen.setting.describes(path)]
        yield from every_script_fails(paths, self._course, self._option)
        own = [name for name in vars(BurstBufferPlugin) if name.startswith("bb_p_")]
        yield from every_call_fails(own, self._course, self._option)

    def _takes_back(self) -> bool:
        """Return whether the plugin has a revoke_alloc whose flag the model takes off after it."""
        stub = BurstBufferPlugin.bb_p_job_revoke_alloc
        own = getattr(self._kind, "bb_p_job_revoke_alloc", stub) is not stub
        return own and self._model == "guide"

    def _go_on_behind(self) -> None:
        """See what is wrong in what comes after a stage-in that breaks or never ends."""
        seen = self._see(
            Trial(
                name="one job whose stage-in is taken for done",
                timeline=(
                    {
                        "at": "0s",
                        "fault": {"fail": "bb_p_job_test_stage_in", "rc": 1, "times": 999},
                    },
                    submit("job.sh", 0, self._option),
                ),
                lost_call="bb_p_job_test_stage_in",
            )
        )
        if seen is not None:
            self._judge(seen)

    @property
    def _option(self) -> str:
        return f"--bb='{self._directive.option}'" if self._directive.option else ""

    def _find_limit(self) -> None:
        """Make the job so large that one fits and two do not, if there is such a size."""
        started_with = self._directive
        for word in started_with.words:
            found = _NUMBER.match(word)
            if found is None:
                continue
            larger = [
                started_with.replaced(word, f"{found[1] or ''}{int(found[2]) << power}{found[3]}")
                for power in range(_LARGEST)
            ]
            if self._fits(larger[-1]):
                continue
            for smaller, each in pairwise(larger):
                fits = self._fits(each)
                if fits is None:
                    break
                if not fits:
                    self._directive = smaller
                    self._limited = True
                    return

    def _fits(self, directive: Directive) -> bool | None:
        """Return whether a job has its space; None where it has it and does not complete."""
        life = one_life(self._kind, directive, self._chosen.setting, model=self._model)
        if _refused_or_waits(life):
            return False
        return True if life.ways(1)[-1].startswith("COMPLETED") else None

    # Judging.

    def _judge(self, seen: Seen) -> bool:
        """Say what was wrong in a trial; return whether anything was."""
        for (rule, function), what in seen.watch.faults.items():
            self._blame(rule, function, what)
        if seen.run.result.complaints:
            return True
        if seen.trial.failed_script and self._look_at_failure(seen):
            return True
        return self._look_at_ends(seen) or self._look_at_space(seen) or self._look_at_kept(seen)

    def _blame(self, rule: str, function: str, what: str) -> None:
        known = _AS_IN_SLURM.get((self._kind.plugin_type, rule))
        if known is not None and self._kind.__module__.startswith("simctl.plugins."):
            return
        if rule in _OF_SPACE:
            always = self._space.get(_ALWAYS, f"{rule} {function}")
            if always != f"{rule} {function}" or self._space.setdefault(function, rule) != rule:
                return
        self._bench.blame(rule, function, what, model=self._model)

    def _look_at_ends(self, seen: Seen) -> bool:
        """Look for jobs that did not come to their end."""
        for job in seen.trial.healthy:
            ways = seen.run.states(job)
            if ways and ways[-1][1] != "COMPLETED" and self._stuck(seen, job, ways[-1][1]):
                return True
        for job in sorted(seen.run.world.ctld.jobs):
            ways = seen.run.states(job)
            flags = ways[-1][1] if ways else ""
            stays = "STAGE_OUT" in flags or "COMPLETING" in flags
            if job not in seen.trial.healthy and stays and self._stuck(seen, job, flags):
                return True
        kept = [
            record.job_id
            for record in seen.run.world.ctld.jobs.values()
            if record.state.finished and not record.state.completing
        ]
        if kept and seen.run.result.stopped_at_limit and not seen.trial.lost_call:
            what = f"it never answers 1 for job {kept[0]}{_after(seen.trial)}"
            self._blame(rules.NOT_PURGED, "bb_p_job_test_stage_out", what)
            return True
        return False

    def _stuck(self, seen: Seen, job: int, last: str) -> bool:
        """Say what keeps a job that goes no further; return whether that is the plugin."""
        trial = seen.trial
        after = _after(trial)
        anew = "bb_p_load_state" if trial.restarts else ""
        if "STAGE_OUT" in last:
            if trial.lost_call:
                return False
            function = anew or "bb_p_job_start_stage_out"
            self._blame(
                rules.STAGE_OUT_STAYS, function, f"job {job} keeps the flag STAGE_OUT{after}"
            )
        elif "COMPLETING" in last:
            what = f"job {job} stays COMPLETING{after}"
            self._blame(rules.COMPLETING, "bb_p_job_test_post_run", what)
        elif "CONFIGURING" in last:
            what = f"job {job} has its nodes and stays CONFIGURING{after}"
            self._blame(rules.NEVER_LAUNCHED, anew or "bb_p_job_begin", what)
        elif last.startswith("PENDING"):
            self._waits(trial, job)
        else:
            return False
        return True

    def _waits(self, trial: Trial, job: int) -> None:
        if self._once is None:
            what = "a job alone in the cluster waits for ever for its burst buffer"
            self._blame(rules.NEVER_STARTS, "bb_p_job_test_stage_in", what)
        elif job == 1:
            what = f"the job itself waits for ever{_after(trial)}"
            self._blame(rules.NOT_AGAIN, trial.leaves, what)
        else:
            what = f"job {job} waits for ever{_after(trial)}, in a cluster with nobody else"
            self._blame(rules.SPACE_LOST, trial.leaves, what)

    def _look_at_space(self, seen: Seen) -> bool:
        """Look for jobs that ran at once though only one has space."""
        if not seen.trial.one_at_a_time:
            return False
        spans = sorted(_runs(seen.run))
        for (_, end_s, one), (begin_s, _, other) in pairwise(spans):
            if begin_s < end_s:
                self._blame(
                    rules.GIVEN_TWICE,
                    seen.trial.leaves,
                    f"jobs {one} and {other} ran at once{_after(seen.trial)}, each with more than "
                    "half of all the space",
                )
                return True
        return False

    def _look_at_kept(self, seen: Seen) -> bool:
        """Look for what is kept of jobs that are gone."""
        trial = seen.trial
        if self._once is None or seen.run.result.stopped_at_limit or trial.lost_call:
            return False
        for path in more_than(seen.kept, self._once):
            if path not in self._leaked:
                self._leaked.add(path)
                self._blame(
                    rules.KEPT,
                    trial.leaves,
                    f"{path} has {seen.kept[path]} entries when no job is left{_after(trial)}, and "
                    f"had {self._idle.get(path, 0)} before the first",
                )
                return True
        steady = {path for path in self._idle if self._once.get(path) == self._idle[path]}
        for path in other_numbers(seen.kept, self._idle):
            if path in steady and path not in self._leaked and not trial.restarts:
                self._leaked.add(path)
                what = (
                    f"{path} is {seen.kept[path]} when no job is left{_after(trial)}, and was "
                    f"{self._idle[path]} before the first"
                )
                rule = rules.SPACE_LOST if trial.leaves else rules.KEPT
                self._blame(rule, trial.leaves, what)
                return True
        return self._look_at_files(seen)

    def _look_at_files(self, seen: Seen) -> bool:
        """Look for files of jobs that are gone, where an undisturbed job leaves none."""
        if any(_is_of_a_job(path, 1) for path in self._files_once):
            return False
        left = [path for path in sorted(_files(seen.run)) if _is_of_a_job(path, 1)]
        if left and not seen.trial.restarts:
            what = f"{left[0]} is there when no job is left{_after(seen.trial)}"
            self._blame(rules.FILES_LEFT, seen.trial.leaves, what)
            return True
        return False

    def _look_at_failure(self, seen: Seen) -> bool:
        """Look whether a script that failed had any effect."""
        script = seen.trial.failed_script
        failed = [
            event
            for event in seen.run.events
            if event.kind == "script"
            and event.phase == "exit"
            and event.job == 1
            and script_of(event)[0] == script
        ]
        if (
            not failed
            or failed[0].rc == 0
            or failed[0].time_us / SECOND > self._course.launched_s + 1
        ):
            return False
        ways = seen.run.states(1)
        launched = [time_s for time_s, state in ways if state == "RUNNING"]
        again = [event for event in failed if event.rc == 0]
        goes_on = launched and not again
        if goes_on and not any(state.startswith(("FAILED", "CANCELLED")) for _, state in ways):
            what = f"{script} exited with 1 for job 1, and the job ran as if it had not"
            phase = failed[0].time_us / SECOND < self._course.staged_s
            self._blame(
                rules.FAILURE_IGNORED,
                "bb_p_job_test_stage_in" if phase else "bb_p_job_begin",
                what,
            )
            return True
        return False

    def _mistype(self) -> None:
        """Look what becomes of a directive that cannot be meant."""
        for directive in typos(self._chosen.directive):
            life = one_life(self._kind, directive, self._chosen.setting, model=self._model)
            for each in life.result.complaints[:1]:
                function = each.function
                if function in ("bb_p_job_validate", "bb_p_job_validate2"):
                    what = f"{each.problem}: for `{directive}`"
                    self._blame(rules.RAISES_AT_TYPO, function, what)
                else:
                    what = f"`{directive}` was taken on, and later: {each.problem}"
                    self._blame(rules.ACCEPTS_TYPO, "bb_p_job_validate", what)

    def _look_at_units(self, seen: Seen) -> None:
        """Hold the sizes that the plugin tells against each other."""
        totals = {info.total_space for info in seen.watch.packed if info.total_space}
        for size in seen.watch.sizes:
            if size in totals and size > _MEGABYTE:
                what = f"it answers {size}, which is what state_pack packs as bytes"
                self._blame(rules.WRONG_UNIT, "bb_p_get_system_size", what)
                return
        largest = max(seen.watch.sizes, default=0)
        for count in sorted(seen.watch.counted):
            if largest and count > largest * _MANY and self._limited:
                what = f"it counts {count} for a job, where get_system_size is {largest} MB"
                self._blame(rules.WRONG_UNIT, "bb_p_job_set_tres_cnt", what)
                return


_MANY: Final = 1000
_ALWAYS: Final = "always"
_OF_SPACE: Final = frozenset(
    {rules.SPACE_LOST, rules.GIVEN_TWICE, rules.KEPT, rules.FILES_LEFT, rules.NOT_AGAIN}
)
"""Of these one follows from another, where they are about the same function."""

_AS_IN_SLURM: Final[Mapping[tuple[str, str], str]] = {
    (
        "burst_buffer/datawarp",
        rules.STAGE_OUT_STAYS,
    ): "Slurm's own forgets a job in post-run when slurmctld is started anew",
    (
        "burst_buffer/datawarp",
        rules.KEPT,
    ): "Slurm's own keeps the record of a job that was cancelled in its pre-run",
}
"""What Slurm's own plugins do wrong as well; their likenesses here do it as they do."""


def _after(trial: Trial) -> str:
    return f" after {trial.what}" if trial.what else ""


def _refused_or_waits(life: Life) -> bool:
    """Return whether a job was refused, or is not given space for ever."""
    ways = life.ways(1)
    answers = [
        event.rc
        for event in life.events
        if event.name == "bb_p_job_test_stage_in" and event.job == 1
    ]
    waits = bool(ways) and ways[-1].startswith("PENDING")
    return not ways or (waits and answers[-1:] == [-1])


def _runs(run: Run) -> Iterator[tuple[float, float, int]]:
    """Return when jobs ran: from, until, which."""
    jobs = {event.job for event in run.events if event.name == "job_state"}
    for job in sorted(each for each in jobs if isinstance(each, int)):
        begin: float | None = None
        for at_s, state in run.states(job):
            running = state == "RUNNING"
            if running and begin is None:
                begin = at_s
            elif not running and begin is not None:
                yield begin, at_s, job
                begin = None


def _scripts(run: Run) -> list[str]:
    """Return the scripts that the plugin ran, each once."""
    return list(
        dict.fromkeys(
            script_of(event)[0]
            for event in run.events
            if event.kind == "script" and event.daemon == "slurmctld" and event.job == 1
        )
    )


def _files(run: Run) -> frozenset[str]:
    """Return the files and directories there are where all can see them."""
    found: set[str] = set()
    disk = run.world.disk
    waiting = ["/shared", "/scratch"]
    while waiting:
        folder = waiting.pop()
        for name in disk.names(run.world.ctld.process.host.name, folder):
            path = f"{folder}/{name}"
            found.add(path)
            if disk.is_directory(path):
                waiting.append(path)
    return frozenset(found)


def _is_of_a_job(path: str, job: int) -> bool:
    return str(job) in re.split(r"[/._-]", path)


__all__ = ["drive_burst_buffer"]
