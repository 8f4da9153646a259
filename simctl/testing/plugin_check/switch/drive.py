"""Drive a switch plugin as its users would, and judge what was seen."""

from collections.abc import Iterable
from typing import Any, Final

from simctl.testing.plugin_check.bench import Bench, Ran
from simctl.testing.plugin_check.code import starts_threads
from simctl.testing.plugin_check.drive import Driver
from simctl.testing.plugin_check.lives import call_directly
from simctl.testing.plugin_check.mistakes import (
    ALWAYS_FAILS,
    BREAKS,
    FAILS,
    NO_ROUND_TRIP,
    Outcome,
)
from simctl.testing.plugin_check.observe import Call, Observer
from simctl.testing.plugin_check.switch import judge
from simctl.testing.plugin_check.switch import lab as laboratory
from simctl.testing.plugin_check.switch.chance import look_for_chance, look_for_hash_order
from simctl.testing.plugin_check.switch.rules import AGAIN, EARLY, FILES, HALF, LOST, NEVER, TWICE
from simctl.testing.plugin_check.switch.trials import PLAIN, RESTARTS, failures, one_by_one
from simctl.testing.plugin_check.trials import IDLE, STEPS, Trial, scenario_text
from simctl.world import World

_MAY_REFUSE: Final = frozenset({"switch_p_get_jobinfo", "switch_p_get_data_jobinfo"})
"""Functions that are asked for data which a plugin need not have."""

_BUILD: Final = "switch_p_build_jobinfo"
_COMPLETE: Final = "switch_p_job_step_complete"
_SAVE, _RESTORE = "switch_p_libstate_save", "switch_p_libstate_restore"
_CARRIES: Final = frozenset({_SAVE, _RESTORE, "switch_p_pack_jobinfo", "switch_p_unpack_jobinfo"})
_ALONE: Final = frozenset(
    {
        *("init", "switch_p_alloc_jobinfo", _BUILD, _COMPLETE, "switch_p_copy_jobinfo"),
        "switch_p_free_jobinfo",
    }
)
"""What the lab calls for steps one after another: nothing else has a part in what it shows."""


def drive_switch(bench: Bench) -> Outcome:
    """Drive a switch plugin: in slurmctld alone, then through steps, restarts and failures."""
    for model in bench.models:
        _Switch(bench, model).drive()
    look_for_chance(bench, PLAIN[0])
    look_for_hash_order(bench, PLAIN[0])
    return Outcome()


class _Switch:
    """One plugin in one model."""

    def __init__(self, bench: Bench, model: str) -> None:
        self.bench = bench
        self.model = model
        self.observer: Observer = bench.observers[model]
        self.lab = laboratory.Lab()
        self._followed = bench.files if starts_threads(bench.kind) else frozenset()
        """The code whose threads are followed."""

    def drive(self) -> None:
        """Go through all trials."""
        self._work_alone()
        self._run(STEPS[0], plain=True)
        for trial in PLAIN:
            self._run(trial, plain=True)
        self._look_at_growth()
        for trial in RESTARTS:
            self._run(trial, plain=True, blames=LOST)
        for trial in STEPS[1:]:
            restarts = "restarts" in trial.name
            self._run(trial, plain=restarts, blames=LOST if restarts else NEVER)
        for name, trial in failures(self._functions_that_may_fail()):
            self._run(trial, blames=HALF, after=f"a call of {name} that failed", function=name)
        call_directly(self.bench, self.model)
        self._judge_calls()
        for field in self.lab.not_carried:
            what = f"does not bring back {field} of what one of many live steps was given"
            self._blame(NO_ROUND_TRIP, "switch_p_unpack_jobinfo", what)

    def _functions_that_may_fail(self) -> Iterable[str]:
        return (
            "switch_p_alloc_jobinfo",
            _BUILD,
            "switch_p_unpack_jobinfo",
            "switch_p_job_preinit",
            "switch_p_job_init",
            "switch_p_job_attach",
            "switch_p_job_fini",
            "switch_p_job_postfini",
        )

    def _blame(
        self, rule: str, function: str, what: str, alone: frozenset[str] = frozenset()
    ) -> None:
        self.bench.blame(rule, function, what, model=self.model, alone=alone)

    # In slurmctld alone.

    def _work_alone(self) -> None:
        def prepare(world: World) -> None:
            hooks = world.site.hooks
            hooks.types = {**hooks.types, "switch": self.bench.kind.plugin_type}
            driver = Driver(world, "switch", self.observer)
            shape = (laboratory.NODES, 4, 0)
            driver.start(lambda: laboratory.work(self.bench, driver, self.lab, shape))

        ran = self.bench.run(
            "steps built in slurmctld alone",
            scenario_text(IDLE, {}, self.model),
            model=self.model,
            prepare=prepare,
        )
        # What was seen in there is surer than what the calls of it show by themselves.
        self._judge_lab()
        self._judge_calls()
        for complaint in ran.result.complaints if ran is not None else ():
            if complaint.function == _BUILD and not self.observer.tallies[_BUILD].problems:
                what = f"{complaint.problem}, when everything is taken"
                self.bench.blame(BREAKS, _BUILD, what, model=self.model, sometimes=True)

    def _judge_lab(self) -> None:
        lab = self.lab
        if lab.lost:
            self.bench.blame(
                LOST,
                self._keeper(),
                f"after a restart of slurmctld {lab.lost}",
                model=self.model,
                alone=_ALONE | _CARRIES,
                despite=frozenset({NEVER, AGAIN, EARLY}),
            )
        if lab.early:
            self._blame(
                EARLY,
                "switch_p_free_jobinfo",
                f"gives back to {lab.early} what a live step has, as a copy of its credential is "
                "freed",
                _ALONE,
            )
        grown = {name: net for name, net in lab.growing.items() if name not in lab.logs}
        self._judge_growth(grown)
        if lab.others and not lab.early and lab.others not in grown:
            self._blame(
                EARLY,
                _COMPLETE,
                f"gives back to {lab.others} what another step on the same nodes still has",
                _ALONE,
            )
        unequal = {name: net for name, net in lab.unequal.items() if name not in grown}
        for name, (taken, back) in unequal.items():
            self._blame(
                NEVER if abs(back) < abs(taken) else AGAIN,
                _COMPLETE,
                f"changes {name} by {back:+}, where the step's build had changed it by {taken:+}",
                _ALONE,
            )
        if lab.twice:
            self._blame(TWICE, _BUILD, lab.twice, _ALONE)
        grown |= dict.fromkeys(unequal, 0)
        if lab.runs_out and not grown:
            what = "with no step alive"
            self._blame(NEVER, _COMPLETE, what + self._in_the_end(), _ALONE)
        for name, (gone, more) in lab.half.items():
            if name in grown:
                continue
            what = f"a build that fails for want of more leaves {name} changed"
            if gone != more:
                what += f": {gone} gone, {more} more than before"
            self._blame(HALF, _BUILD, what, _ALONE)

    def _judge_growth(self, grown: dict[str, int]) -> None:
        """Blame what each step leaves more of, or less."""
        lab = self.lab
        for name, net in grown.items():
            taken = lab.claims.get(name, 0)
            if net > 0 and taken < 0:
                self._blame(
                    AGAIN,
                    _COMPLETE,
                    f"gives back more than was taken: a step takes {-taken} of {name}, and when it "
                    f"is over there are {net} more than before",
                    _ALONE,
                )
            elif net < 0:
                what = f"each step takes {-net} of {name} for good"
                self._blame(NEVER, _COMPLETE, what + self._in_the_end(), _ALONE)
            else:
                what = f"each step leaves {net} more in {name}"
                self._blame(NEVER, _COMPLETE, what + self._in_the_end(), _ALONE)

    def _in_the_end(self) -> str:
        if not self.lab.runs_out:
            return ""
        return f"; after {self.lab.runs_out - 1} steps one after another the next cannot be built"

    # In clusters.

    def _run(
        self,
        trial: Trial,
        *,
        plain: bool = False,
        blames: str = NEVER,
        after: str = "",
        function: str = "",
    ) -> Ran | None:
        conf = {self.bench.conf_key: self.bench.kind.plugin_type}
        text = scenario_text(trial, conf, self.model)
        ran = self.bench.run(
            trial.name,
            text,
            model=self.model,
            quiet=bool(function),
            files=self._followed if trial in (*PLAIN, *RESTARTS[:1]) else frozenset(),
        )
        self._judge_calls()
        if plain:
            self._judge_failures(trial)
        if ran is not None:
            self._judge_rest(trial, blames, after or f"'{trial.name}'", function)
        return ran

    def _judge_calls(self) -> None:
        calls = self.observer.calls
        for found in (
            judge.copies(calls),
            judge.packing(calls),
            judge.lives(calls, self.lab),
            judge.ranks(calls),
            judge.overlaps(calls),
        ):
            for rule, function, what in found:
                self._blame(rule, function or self._keeper(), what)

    def _keeper(self) -> str:
        """Return the function that should have carried state over a restart."""
        own = self._has(_SAVE)
        return _RESTORE if own else _SAVE

    def _has(self, name: str) -> bool:
        kind = self.bench.kind
        return any(
            name in vars(base) for base in kind.__mro__ if base.__module__ != "simctl.plugin"
        )

    def _judge_failures(self, trial: Trial) -> None:
        """Blame functions that fail where nothing is wrong."""
        by_name: dict[str, list[Call]] = {}
        for call in self.observer.calls:
            by_name.setdefault(call.function, []).append(call)
        for name, calls in by_name.items():
            failed = [call for call in calls if call.failed and not self._may_be_full(call)]
            if not failed or name in _MAY_REFUSE or (failed[0].given is None and failed[0].values):
                continue
            often = (
                "always" if len(failed) == len(calls) else f"{len(failed)} of {len(calls)} times"
            )
            self._blame(
                ALWAYS_FAILS if often == "always" else FAILS,
                name,
                f"fails {often} in the {failed[0].role} process, where nothing is wrong "
                f"('{trial.name}')",
            )

    def _may_be_full(self, build: Call) -> bool:
        """Return whether a build may have failed because other steps hold everything."""
        live = 0
        for call in self.observer.calls:
            if call is build:
                break
            live += call.function == _BUILD and not call.failed
            live -= call.function == _COMPLETE
        return build.function == _BUILD and live > 0

    def _judge_rest(self, trial: Trial, rule: str, after: str, function: str) -> None:
        """Compare what slurmctld's plugin keeps before the first step and after the last one."""
        calls = [call for call in self.observer.calls if call.role == "slurmctld"]
        builds = [call for call in calls if call.function == _BUILD]
        if not builds or not calls or self.bench.over:
            return
        start, end = builds[0].kept_before, calls[-1].kept_after
        last = [call for call in calls if call.function not in ("fini", _SAVE)]
        end = last[-1].kept_after
        for name in sorted(start):
            known = f"self.{name}"
            if known not in self.lab.returning or laboratory.alike(start[name], end.get(name)):
                continue
            gone, more = laboratory.sizes(start, end).get(name, (0, 0))
            what = f"after {after} {known} is not what it was"
            if gone != more:
                what += f": {gone} gone, {more} more than before"
            blamed = self._keeper() if rule == LOST else _COMPLETE
            if rule == HALF and function == _BUILD:
                blamed = _BUILD
            self._blame(rule, blamed, what)

    def _look_at_growth(self) -> None:
        """Run one step, and four: what slurmd and disks have more of afterwards."""
        few, many = self._left_by(1), self._left_by(4)
        if few is None or many is None:
            return
        # Of a folder that is a plugin's table it was told that it grows.
        new = sorted(
            (host, path)
            for host, path in many[1] - few[1]
            if f"the files in {path.rpartition('/')[0]}" not in self.lab.growing
        )
        if len(new) > 1:
            host, path = new[0]
            where = "slurmctld's host" if host == "ctl" else host
            self._blame(
                FILES,
                "switch_p_job_postfini",
                f"four steps leave {len(new)} files more than one: {path} on {where}",
            )
        for name, kept in many[0].items():
            gone, more = laboratory.sizes({name: few[0].get(name)}, {name: kept}).get(name, (0, 0))
            if more - gone >= 3 and not laboratory.is_log(few[0].get(name), kept):  # noqa: PLR2004 - steps more
                self._blame(
                    NEVER,
                    "switch_p_free_jobinfo",
                    f"in slurmd each step leaves more in self.{name}",
                )

    def _left_by(self, count: int) -> tuple[dict[str, Any], set[tuple[str, str]]] | None:
        ran = self._run(one_by_one(count), plain=True)
        if ran is None:
            return None
        calls = [
            call for call in self.observer.calls if call.role == "slurmd" and call.host == "n1"
        ]
        kept = calls[-1].kept_after if calls else {}
        disk = ran.world.disk
        hosts = (*ran.world.hosts, ran.world.ctld.process.host.name)
        return kept, {(host, path) for host in hosts for path in disk.contents(host)}
