"""Ask a checkpoint plugin for checkpoints as people do, and hold what comes of them against it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from simctl.kernel.events import Event
from simctl.plugin import CheckpointPlugin
from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.burst_buffer.keeps import more_than
from simctl.testing.plugin_check.checkpoint import rules
from simctl.testing.plugin_check.checkpoint.cluster import LIFE_S, asked, at, fault, scenario
from simctl.testing.plugin_check.checkpoint.watch import Watch
from simctl.testing.plugin_check.lives import call_directly
from simctl.testing.plugin_check.mistakes import Outcome
from simctl.testing.plugin_check.watched import Run, run_watched, script_of
from simctl.wire.ids import SECOND
from simctl.world import World

_UNTIL_S: Final = 20_000.0
_ERROR: Final = re.compile(r"error\((\d+)\)")
_SLOWLY: Final = {"runs": "20s"}
_RESTART_S: Final = 1200.0
_PASSES_S: Final = 60.0
"""How much longer than its rest a task may take that goes on from an image."""


_ROOTS: Final = frozenset({rules.NOTHING_MADE, rules.NEVER_OVER, rules.SHARED_RECORD})
"""Where one of these is found, what is wrong after it follows from it."""


class _OverError(Exception):
    """There is no sense in another run."""


def drive_checkpoint(bench: Bench) -> Outcome:
    """Drive a checkpoint plugin through checkpoints of steps and scripts, in each model."""
    for model in bench.models:
        drive = CheckpointDrive(bench, model)
        try:
            drive.drive()
        except _OverError:
            return Outcome()
        if not drive.supported:
            call_directly(bench, model)
    return Outcome()


@attrs.define(kw_only=True)
class Seen:
    """A run of one trial."""

    name: str
    run: Run
    watch: Watch

    @property
    def broke(self) -> bool:
        """Return whether a call raised: what follows from that is told by it."""
        return bool(self.run.result.complaints)

    def said(self, place: int) -> str:
        """Return what a command of the timeline printed, by its place among the commands."""
        return self.run.result.commands[place].stdout

    def errno(self, place: int) -> str:
        """Return the error with which a command ended, or nothing."""
        return self.run.result.commands[place].errno

    def error(self, place: int) -> int | None:
        """Return the number that `scontrol checkpoint error` printed."""
        found = _ERROR.search(self.said(place))
        return int(found[1]) if found else None

    def accepted(self, place: int) -> bool:
        """Return whether a request was taken on."""
        return self.run.result.commands[place].exit == 0

    def helpers(self, job: int = 1) -> list[Event]:
        """Return the ends of programs that step daemons ran for a job."""
        return [
            event
            for event in self.run.events
            if event.kind == "script"
            and event.daemon == "slurmstepd"
            and event.phase == "exit"
            and event.job == job
        ]


class CheckpointDrive:
    """Drives one plugin in one model."""

    def __init__(self, bench: Bench, model: str) -> None:
        self._bench = bench
        self._kind = bench.kind
        self._model = model
        self._files = bench.files
        self.supported = False
        self._script_stuck = False
        """Whether the checkpoint of a batch script, once begun, is never over."""

        self._kept: dict[str, int | float] | None = None
        self._helper = ""
        self._told: set[str] = set()

    def _see(
        self,
        name: str,
        timeline: Iterable[Mapping[str, Any]],
        *,
        programs: Mapping[str, Any] = {},
        looks_at: tuple[float, ...] = (),
    ) -> Seen:
        watch = Watch(self._kind)
        text = scenario(self._kind.plugin_type, timeline, model=self._model, programs=programs)

        async def look(world: World) -> None:
            for time_s in looks_at:
                await world.kernel.sleep_us(round(time_s * SECOND) - world.kernel.now_us)
                await watch.look_at_records(world)

        run = run_watched(
            self._bench,
            name,
            text,
            model=self._model,
            watch=watch,
            files=self._files,
            until_s=_UNTIL_S,
            body=look if looks_at else None,
        )
        if run is None:
            raise _OverError
        seen = Seen(name=name, run=run, watch=watch)
        for (rule, function), what in watch.faults.items():
            self._tell(rule, function, what)
        return seen

    def _tell(self, rule: str, function: str, what: str) -> None:
        self._told.add(rule)
        self._bench.blame(rule, function, what, model=self._model)

    def drive(self) -> None:
        """Go from the plainest checkpoint to those that are disturbed."""
        step = self._of_a_step()
        self._of_a_script()
        self._others()
        self._restarts_at_rest()
        if not self.supported:
            timeline = (at(0, "srun -N2 -n2 --restart-dir=/home/alice ./long"),)
            self._see("a step that is to go on from images that nobody has made", timeline)
            return
        self._helper = next((script_of(event)[0] for event in step.helpers()), "")
        for trial in (
            self._two_at_once,
            self._disturbed,
            self._vacates,
            self._goes_on,
            self._requeues,
            self._switched_off,
            self._kept_of_many,
        ):
            if self._told & _ROOTS:
                return
            trial()

    # The plain ones.

    def _of_a_step(self) -> Seen:
        seen = self._see(
            "a step that is checkpointed twice",
            (
                at(0, "sbatch step.sh"),
                asked(1, "able 1.0"),
                asked(2, "error 1.0"),
                asked(60, "create 1.0 MaxWait=60"),
                asked(60.02, "able 1.0"),
                asked(60.05, "create 1.0 MaxWait=60"),
                asked(180, "error 1.0"),
                asked(300, "create 1.0 MaxWait=60"),
                asked(420, "error 1.0"),
                asked(421, "able 1.0"),
                asked(422, "complete 1.0"),
            ),
            looks_at=(3, 200, 430),
        )
        self._judge_made(seen, 3, "1.0", (6, 8))
        self._judge_over(seen, 7, "a checkpoint that went well")
        self._judge_images(seen)
        return seen

    def _of_a_script(self) -> None:
        seen = self._see(
            "a batch script that is checkpointed twice",
            (
                at(0, "sbatch batch.sh"),
                asked(1, "able 1"),
                asked(2, "error 1"),
                asked(60, "create 1 MaxWait=60"),
                asked(180, "error 1"),
                asked(300, "create 1 MaxWait=60"),
                asked(420, "error 1"),
            ),
            looks_at=(3, 200, 430),
        )
        self._judge_made(seen, 3, "a batch script", (4, 6))
        if seen.accepted(3) and seen.errno(5) == "EALREADY" and not seen.broke:
            self._script_stuck = True
            self._bench.observers[self._model].tallies["slurm_ckpt_op"].note(
                "takes a checkpoint of a batch script on once and refuses every later one with "
                "EALREADY: its end is noted in a step's record, and a script has the job's "
                "(`slurmctld.find_job(job_id).check_job`)"
            )

    def _two_at_once(self) -> None:
        seen = self._see(
            "steps and jobs that are checkpointed at once",
            (
                at(0, "sbatch both.sh"),
                at(0, "sbatch batch.sh", "bob"),
                asked(60, "create 1.0 MaxWait=60"),
                asked(60, "create 1.1 MaxWait=60"),
                asked(60, "create 2 MaxWait=60", "bob"),
                asked(300, "error 1.0"),
                asked(300, "error 1.1"),
                asked(300, "error 2", "bob"),
                asked(310, "create 1 MaxWait=60"),
                asked(500, "create 1.0 MaxWait=60"),
                asked(500, "create 1.1 MaxWait=60"),
                asked(500, "create 2 MaxWait=60", "bob"),
            ),
            looks_at=(30, 310, 700),
        )
        for first, again in ((2, 9), (3, 10), *(() if self._script_stuck else ((4, 11),))):
            if seen.accepted(first):
                self._judge_over(seen, again, "checkpoints of others at the same time")

    def _judge_made(self, seen: Seen, first: int, whose: str, errors: tuple[int, ...]) -> None:
        """Look whether a checkpoint that was taken on was made, and is told as made."""
        if not seen.accepted(first):
            return
        self.supported = True
        began_us = seen.run.result.commands[first].at_us
        made = [
            event
            for event in seen.run.events
            if event.time_us >= began_us
            and (
                (event.kind == "script" and event.phase == "enter")
                or event.name
                in ("REQUEST_CHECKPOINT_TASKS", "SRUN_EXEC", "slurm_ckpt_signal_tasks")
            )
        ]
        if seen.broke:
            return
        if not made:
            what = f"create of {whose} was answered with success, and no node ever heard of it"
            self._tell(rules.NOTHING_MADE, "slurm_ckpt_op", what)
            return
        helpers = seen.helpers()
        if helpers and all(event.rc == 0 for event in helpers) and _answered_well(seen.run):
            for place in errors:
                if seen.error(place):
                    said = seen.said(place).strip()
                    what = f"every image of {whose} was written, and error says {said!r}"
                    self._tell(rules.SUCCESS_FAILS, "slurm_ckpt_op", what)

    def _judge_over(self, seen: Seen, again: int, after: str) -> None:
        """Look whether one more checkpoint is taken on."""
        if rules.NOTHING_MADE in self._told:
            return
        if seen.errno(again) == "EALREADY" and not seen.broke:
            what = (
                f"{_minutes(seen, again)} after {after} another is refused: Operation already in "
                "progress"
            )
            self._tell(rules.NEVER_OVER, "slurm_ckpt_op", what)

    def _judge_images(self, seen: Seen) -> None:
        """Look whether tasks that are saved at one moment have images of their own."""
        images: dict[tuple[str, int], set[str]] = {}
        for event in seen.run.events:
            if event.kind == "script" and event.daemon == "slurmstepd" and event.phase == "enter":
                _, argv = script_of(event)
                if len(argv) > 1 and argv[-1].startswith("/"):
                    key = argv[-1], event.time_us // (120 * SECOND)
                    images.setdefault(key, set()).add(argv[0])
        for (image, _), tasks in images.items():
            if len(tasks) > 1:
                what = f"{len(tasks)} tasks were saved as {image} by one checkpoint"
                self._tell(rules.SAME_IMAGE, "slurm_ckpt_signal_tasks", what)
                return

    # Disturbed ones.

    def _disturbed(self) -> None:
        helper = self._helper
        if helper:
            self._helper_fails(helper)
        slowly = {helper: _SLOWLY} if helper else {"ompi-checkpoint": _SLOWLY}
        self._restarted(slowly)
        self._see(
            "jobs that end during a checkpoint",
            (
                at(0, "sbatch step.sh"),
                at(0, "sbatch batch.sh"),
                asked(60, "create 1.0 MaxWait=60"),
                asked(60, "create 2 MaxWait=60"),
                at(65, "scancel 1 2"),
                at(200, "sbatch step.sh"),
                asked(260, "create 3.0 MaxWait=60"),
                fault(265, crash="n2"),
                fault(1500, start="n2"),
            ),
            programs=slowly,
        )
        waits = self._see(
            "nodes that do not answer in time",
            (
                at(0, "sbatch step.sh"),
                asked(60, "create 1.0 MaxWait=5"),
                asked(200, "error 1.0"),
                asked(300, "create 1.0 MaxWait=60"),
            ),
            programs=slowly,
        )
        if waits.accepted(1):
            self._judge_over(waits, 3, "a checkpoint that took longer than MaxWait")

    def _helper_fails(self, helper: str) -> None:
        seen = self._see(
            "a helper that fails",
            (
                at(0, "sbatch step.sh"),
                asked(60, "create 1.0 MaxWait=60"),
                asked(200, "error 1.0"),
                asked(400, "create 1.0 MaxWait=60"),
            ),
            programs={helper: {"runs": "2s", "exit": 1, "output": "no space\n"}},
            looks_at=(250,),
        )
        if seen.accepted(1) and not seen.broke:
            if seen.helpers() and seen.error(2) == 0:
                said = seen.said(2).strip()
                what = f"{helper} exited with 1 on every node, and error says {said!r}"
                self._tell(rules.FAILURE_HIDDEN, "slurm_ckpt_signal_tasks", what)
            self._judge_over(seen, 3, "a checkpoint that failed")

    def _restarted(self, slowly: Mapping[str, Any]) -> None:
        cut = self._see(
            "a slurmctld that restarts during a checkpoint",
            (
                at(0, "sbatch step.sh"),
                at(0, "sbatch batch.sh"),
                asked(60, "create 1.0 MaxWait=60"),
                asked(60, "create 2 MaxWait=60"),
                fault(65, restart="slurmctld"),
                asked(400, "create 1.0 MaxWait=60"),
                asked(401, "create 2 MaxWait=60"),
            ),
            programs=slowly,
        )
        for first, again in ((2, 4), *(() if self._script_stuck else ((3, 5),))):
            if cut.accepted(first):
                self._judge_over(cut, again, "a restart of slurmctld in the middle of a checkpoint")

    def _restarts_at_rest(self) -> None:
        seen = self._see(
            "a slurmctld that restarts between checkpoints",
            (
                at(0, "sbatch step.sh"),
                at(0, "sbatch batch.sh"),
                asked(60, "create 1.0 MaxWait=60"),
                asked(60, "create 2 MaxWait=60"),
                asked(200, "error 1.0"),
                asked(200, "error 2"),
                fault(220, restart="slurmctld"),
                asked(300, "error 1.0"),
                asked(300, "error 2"),
                asked(400, "create 1.0 MaxWait=60"),
                asked(400, "create 2 MaxWait=60"),
            ),
        )
        if seen.broke:
            return
        for before, after in ((4, 6), (5, 7)):
            if seen.said(before) != seen.said(after) and seen.accepted(before):
                what = (
                    f"`scontrol checkpoint error` said {seen.said(before).strip()!r} before a "
                    f"restart of slurmctld and {seen.said(after).strip()!r} after it"
                )
                self._tell(rules.RECORD_LOST, "slurm_ckpt_unpack_job", what)
        for first, again in ((2, 8), *(() if self._script_stuck else ((3, 9),))):
            if seen.accepted(first):
                self._judge_over(seen, again, "a restart of slurmctld between checkpoints")

    def _vacates(self) -> None:
        seen = self._see(
            "what is vacated",
            (
                at(0, "sbatch step.sh"),
                at(0, "sbatch batch.sh"),
                asked(60, "vacate 1.0 MaxWait=60"),
                asked(60, "vacate 2 MaxWait=60"),
            ),
        )
        for place, job in ((2, 1), (3, 2)):
            if not seen.accepted(place) or seen.broke:
                continue
            ways = seen.run.states(job)
            ended_s = next((time_s for time_s, state in ways if "COMPLETING" in state), _UNTIL_S)
            if ended_s >= LIFE_S:
                whose = "the step" if job == 1 else "the batch script"
                what = (
                    f"{whose} ran to its own end, "
                    f"{LIFE_S - 60} s after vacate was answered with success"
                )
                self._tell(rules.STILL_RUNS, "slurm_ckpt_op", what)

    def _requeues(self) -> None:
        seen = self._see(
            "a batch job that is requeued and goes on from its image",
            (at(0, "sbatch batch.sh"), asked(600, "requeue 1 MaxWait=60")),
        )
        if seen.accepted(1) and not seen.broke:
            ways = seen.run.states(1)
            back = [time_s for time_s, state in ways if state == "RUNNING"]
            if not any("REQUEUE" in state or "PENDING" in state for _, state in ways[2:]):
                what = "the job ran to its own end after requeue was answered with success"
                self._tell(rules.NOT_REQUEUED, "slurm_ckpt_op", what)
            elif len(back) > 1 and self._restarts_tasks:
                self._judge_return(seen, 1, back[1], LIFE_S - 600)

    @property
    def _restarts_tasks(self) -> bool:
        """Return whether the plugin restarts tasks itself, each from an image of its own."""
        stub = CheckpointPlugin.slurm_ckpt_restart_task
        own = getattr(self._kind, "slurm_ckpt_restart_task", stub) is not stub
        return own and rules.SAME_IMAGE not in self._told

    def _goes_on(self) -> None:
        if not self._restarts_tasks:
            return
        seen = self._see(
            "a batch job that is vacated and restarted",
            (
                at(0, "sbatch batch.sh"),
                asked(600, "vacate 1 MaxWait=60"),
                asked(_RESTART_S, "restart 1"),
            ),
        )
        if seen.accepted(1) and seen.accepted(2) and not seen.broke:
            back = [
                time_s
                for time_s, state in seen.run.states(1)
                if state == "RUNNING" and time_s > _RESTART_S
            ]
            if back:
                self._judge_return(seen, 1, back[0], LIFE_S - 600)
        seen = self._see(
            "a step that is started from images",
            (
                at(0, "sbatch again.sh"),
                asked(600, "create 1.0 MaxWait=60 ImageDir=/home/alice"),
                asked(700, "error 1.0"),
                at(800, "scancel 1.0"),
            ),
        )
        wrote = [event for event in seen.helpers() if event.rc == 0]
        if seen.accepted(1) and seen.error(2) == 0 and wrote and not seen.broke:
            self._judge_return(seen, 1, 800, LIFE_S - 600)

    def _judge_return(self, seen: Seen, job: int, back_s: float, left_s: float) -> None:
        """Look whether what came back went on where it was saved."""
        ways = seen.run.states(job)
        ended_s, state = next(
            (
                (time_s, state)
                for time_s, state in ways
                if time_s > back_s and "COMPLETING" in state
            ),
            (_UNTIL_S, ""),
        )
        took_s = ended_s - back_s
        function = "slurm_ckpt_restart_task"
        if not state.startswith("COMPLETED"):
            why = _why_not(seen.run, job)
            what = f"{seen.name}: it ended {state.partition('|')[0]} after {took_s:.0f} s{why}"
            self._tell(rules.NO_WAY_BACK, function, what)
        elif took_s > left_s + _PASSES_S:
            what = f"{seen.name}: it computed for {took_s:.0f} s, and {left_s:.0f} s were left"
            self._tell(rules.STARTS_ANEW, function, what)

    def _switched_off(self) -> None:
        seen = self._see(
            "checkpoints that are disabled and enabled",
            (
                at(0, "sbatch step.sh"),
                at(0, "sbatch batch.sh", "bob"),
                asked(60, "disable 1.0"),
                asked(61, "able 1.0"),
                asked(62, "create 1.0 MaxWait=60"),
                asked(63, "create 2 MaxWait=60", "bob"),
                asked(200, "enable 1.0"),
                asked(201, "able 1.0"),
                asked(202, "create 1.0 MaxWait=60"),
            ),
            looks_at=(150,),
        )
        if not seen.accepted(2) or seen.broke:
            return
        if seen.accepted(4):
            what = "create was taken on though disable was answered with success"
            self._tell(rules.DISABLED_GOES, "slurm_ckpt_op", what)
        elif seen.accepted(6) and seen.errno(8) == "ESLURM_DISABLED":
            what = "create is refused with ESLURM_DISABLED after disable and enable"
            self._tell(rules.STAYS_DISABLED, "slurm_ckpt_op", what)
        if seen.errno(5) == "ESLURM_DISABLED":
            what = "disable of step 1.0 disabled checkpoints of job 2 as well"
            self._tell(rules.SHARED_RECORD, "slurm_ckpt_op", what)

    def _others(self) -> None:
        self._see(
            "a step of srun's, periodic checkpoints, and a job that comes back",
            (
                at(0, "srun -N2 -n2 ./long"),
                asked(60, "create 1.0 MaxWait=60"),
                asked(120, "error 1.0"),
                asked(130, "vacate 1.0 MaxWait=60"),
                at(300, "sbatch --checkpoint=2 batch.sh", "bob"),
                at(300, "srun --checkpoint=2 -n1 ./long", "bob"),
                at(1200, "scontrol requeue 2", "root"),
                at(1300, "sbatch -a 0-1 batch.sh", "bob"),
            ),
        )

    def _kept_of_many(self) -> None:
        """Look whether what the plugin keeps in slurmctld grows with each job."""
        kept = []
        for jobs in (1, 4):
            timeline: list[dict[str, Any]] = []
            for job in range(1, jobs + 1):
                begin_s = (job - 1) * 3000
                timeline += [
                    at(begin_s, "sbatch step.sh"),
                    asked(begin_s + 60, f"create {job}.0 MaxWait=60"),
                    asked(begin_s + 300, f"create {job} MaxWait=60"),
                ]
            seen = self._see("jobs one after the other", timeline)
            if seen.broke:
                return
            kept.append(seen.watch.conclude())
        for path in more_than(kept[1], kept[0]):
            what = (
                f"{path} has {kept[1][path]} entries after four jobs, and "
                f"{kept[0].get(path, 0)} after one"
            )
            self._tell(rules.KEPT, "slurm_ckpt_op", what)


def _answered_well(run: Run) -> bool:
    return all(
        event.rc in (0, None)
        for event in run.events
        if event.name == "slurm_ckpt_signal_tasks" and event.phase != "enter"
    )


def _minutes(seen: Seen, place: int) -> str:
    return f"{seen.run.result.commands[place].at_us / SECOND / 60:.0f} minutes into the job,"


def _why_not(run: Run, job: int) -> str:
    for event in run.events:
        if event.name == "slurm_ckpt_restart_task" and event.errno and event.job == job:
            return f": slurm_ckpt_restart_task failed with {event.errno}"
    return ""


__all__ = ["drive_checkpoint"]
