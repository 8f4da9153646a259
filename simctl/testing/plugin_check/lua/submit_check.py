"""Judge what a job_submit.lua did to the jobs of the zoo."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from simctl.commands.salloc import command as salloc
from simctl.commands.srun import command as srun
from simctl.commands.submission import sbatch
from simctl.status import InputError
from simctl.testing.plugin_check.lua import rules
from simctl.testing.plugin_check.lua.found import Found
from simctl.testing.plugin_check.lua.given import GivenRun
from simctl.testing.plugin_check.lua.lines import asks_slurmctld
from simctl.testing.plugin_check.lua.marks import line_of, shown_error, shown_failure
from simctl.testing.plugin_check.lua.named import JOB_DESC, LATER_OPTIONS
from simctl.testing.plugin_check.lua.report import Treated
from simctl.testing.plugin_check.lua.source import Source
from simctl.testing.plugin_check.lua.static import formats_a_text, has_other
from simctl.testing.plugin_check.lua.submissions import (
    JOB_SUBMIT,
    Drive,
    Kind,
    Ruling,
    Submissions,
    all_reached,
    explore,
    of_given,
)
from simctl.testing.plugin_check.lua.zoo import HOLE, LET_PASS, Job
from simctl.wire import errno
from simctl.wire.hostlist import compress
from simctl.wire.ids import NO_VAL, SECOND

_LACKS: Final = re.compile(r"missing required function ([\w, ]+)")
_NO_NUMBER: Final = "non-numeric return code"
_UNRECOGNIZED: Final = re.compile(r"_set_job_field: unrecognized field: (.*)")
_NO_FIELD: Final = re.compile(r"job_desc has no field (.*)")
_NO_OPTION: Final = re.compile(r"options has no field (\S+)|options\.(\S+) is not set: ")
_USUAL: Final = re.compile("submission failed|job allocation|^salloc: job |queued and waiting")
_COMMANDS: Final = 3
_ENDLESS: Final = re.compile(r"without coming back|took too many steps")
_ORDERS: Final = (1, 2, 3)
_RUNS: Final = ("popen", "execute")


@attrs.define(eq=False)
class SubmitCheck:
    """A check of one job_submit.lua."""

    source: Source
    found: Found
    luas: Sequence[str]
    slurms: Sequence[str]
    trials: int = 0
    notes: list[str] = attrs.field(factory=list)
    kind: Kind = JOB_SUBMIT
    reached: frozenset[int] = frozenset()
    """The blocks that were reached under some version."""
    files: Mapping[str, str] = attrs.field(factory=dict)
    """What else there is in trial clusters."""

    def run(self) -> tuple[Drive, tuple[str, ...]]:
        """Drive the script under each Lua and Slurm; return the main drive, and where it was run.

        Raises:
            InputError: It loads under none.
        """
        submissions = Submissions(self.source, self._missing(), self.kind, self.files)
        drives: list[Drive] = []
        main, jobs = self._main(submissions)
        drives.append(main)
        under = [(main.lua, main.slurm)]
        for lua, slurm in self._others(main) if not main.endless else ():
            if submissions.over:
                self.notes.append("it took long: not all versions were tried")
                break
            drive = submissions.run(jobs, lua=lua, slurm=slurm)
            under.append((lua, slurm))
            if drive.failure:
                self._loads_not(drive)
            else:
                drives.append(drive)
        if main.lacking:
            self.notes.append(
                f"{', '.join(main.lacking)}: the trial clusters have no such program, and it ends "
                "with 127; describe it in a scenario, given by --scenario"
            )
        for drive in drives:
            self.reached |= all_reached(drive)
            self._judge(drive)
        for drive in drives[1:]:
            self._apart(main, drive)
        if not (main.endless or submissions.over) and re.search(
            r"\b(?:pairs|next)\s*\(", self.source.text
        ):
            self._orders(submissions, main, jobs)
        self.trials = submissions.clusters
        return main, tuple(f"Lua {lua} and Slurm {slurm}" for lua, slurm in under)

    def look_at(self, run: GivenRun) -> frozenset[int]:
        """Judge what the script did in a scenario of its author's; return the blocks reached."""
        drive = of_given(run)
        self._judge(drive)
        return all_reached(drive)

    def _missing(self) -> tuple[str, ...]:
        """Find required functions that are not there, and name them."""
        lacking = list(self.kind.calls.values())
        for lua in self.luas:
            # A filter is loaded by commands alone.
            drive = Submissions(self.source, (), self.kind, self.files).run(
                (), lua=lua, slurm=self.slurms[0], held=self.kind is not JOB_SUBMIT
            )
            self.trials += 1
            match = _LACKS.search(drive.failure)
            lacking = match[1].split(", ") if match else []
            if match or not drive.failure:
                break
        for name in lacking:
            local = self.source.function(name)
            where = f": it is local, on line {local.line}" if local is not None else ""
            self.found.blame(rules.MISSING, name, f"{name} is missing{where}", line=1)
        return tuple(lacking)

    def _main(self, submissions: Submissions) -> tuple[Drive, tuple[Job, ...]]:
        failed: list[Drive] = []
        for lua in reversed(self.luas):
            drive, jobs = explore(submissions, lua=lua, slurm=self.slurms[0])
            if not drive.failure:
                for each in failed:
                    self._loads_not(each)
                return drive, jobs
            failed.append(drive)
        failure = failed[0].failure
        at = f":{line_of(failure)}" if line_of(failure) else ""
        why = shown_failure(self.source.name, shown_error(failure))
        raise InputError(f"{self.source.name}{at}: it does not load: {why}")

    def _others(self, main: Drive) -> Iterator[tuple[str, str]]:
        for lua in self.luas:
            if lua != main.lua:
                yield lua, main.slurm
        for slurm in self.slurms:
            if slurm != main.slurm:
                yield main.lua, slurm

    def _loads_not(self, drive: Drive) -> None:
        text, line = shown_error(drive.failure), line_of(drive.failure)
        rule = rules.LUA_VERSION if len(self.luas) > 1 else rules.LOADS_NOT
        what = f"it does not load under Lua {drive.lua} and Slurm {drive.slurm}: {text}"
        self.found.blame(rule, "", what, line=line)

    # One drive.

    def _judge(self, drive: Drive) -> None:
        for complaint in drive.complaints:
            if complaint.startswith("os.exit("):
                line = self.source.line_with("exit")
                self.found.blame(rules.ENDS_SLURMCTLD, "", complaint, line=line)
        for ruling in drive.rulings:
            function = self._function(ruling)
            for error in ruling.errors:
                self._error(drive, ruling, function, error)
            for text in ruling.logs:
                self._logged(ruling, function, text)
            if ruling.hole and not self.found.has(rules.SHELL_HOLE, f"{ruling.hole_option} "):
                what = f"{ruling.hole_option} of a job runs as a command: {ruling.hole}"
                lines = [each.line for each in self.source.tokens if each.text in _RUNS]
                line = lines[0] if len(set(lines)) == 1 else 0
                self.found.blame(rules.SHELL_HOLE, function, what, line=line)
            for command in ruling.commands:
                asks = asks_slurmctld(command)
                of_ctld = self.kind is JOB_SUBMIT
                if of_ctld and asks and not self.found.has(rules.SELF_WAITING, f"runs {asks} "):
                    what = f"runs {asks} inside slurmctld: {command}"
                    self.found.blame(rules.SELF_WAITING, function, what, job=ruling.job.name)
            if (
                self.kind is JOB_SUBMIT
                and ruling.took_us >= SECOND
                and not self.found.has(rules.SELF_WAITING)
            ):
                what = f"holds slurmctld for {ruling.took_us / SECOND:g} s"
                ran = f", with {ruling.commands[0]}" if ruling.commands else ""
                self.found.blame(rules.SLOW, function, what + ran, job=ruling.job.name)
        for command in drive.loading:
            if self.kind is JOB_SUBMIT and asks_slurmctld(command):
                what = f"runs {asks_slurmctld(command)} as it is loaded: {command}"
                self.found.blame(rules.SELF_WAITING, "", what)

    def _error(self, drive: Drive, ruling: Ruling, function: str, error: str) -> None:
        text = shown_failure(self.source.name, shown_error(error))
        if _ENDLESS.search(text):
            self.found.blame(
                rules.ENDLESS, function, text, line=line_of(error), job=ruling.job.name
            )
            return
        rule = self._error_rule
        if "to 'format'" in text and "string.format" not in self._at(error):
            is_text = formats_a_text(self.source, line_of(error))
            rule = rules.TEXT_AS_FORMAT if is_text else rules.NIL_IN_LOG
        self.found.blame(
            rule, function, text, line=line_of(error), job=ruling.job.name, lua=drive.lua, one=True
        )

    def _at(self, error: str) -> str:
        return self.source.line_text(line_of(error))

    def _logged(self, ruling: Ruling, function: str, text: str) -> None:
        job = ruling.job.name
        found = _UNRECOGNIZED.fullmatch(text)
        option = _NO_OPTION.match(text)
        if _NO_NUMBER in text:
            self.found.blame(
                rules.NO_NUMBER,
                function,
                "returns what is no number",
                job=job,
                line=self.source.line_of(function),
            )
        elif found:
            self._strange(found[1], function, "writes", job)
        elif option:
            field = option[1] or option[2]
            if len(self._without(field)) == _COMMANDS:
                what = f"no command has an option {field}"
                lines = [use.line for use in self.source.uses if use.field == field]
                self.found.blame(rules.UNKNOWN_FIELD, function, what, line=lines[0] if lines else 0)
        elif _NO_FIELD.fullmatch(text):
            match = _NO_FIELD.fullmatch(text)
            assert match is not None
            self._strange(match[1], function, "reads", job)

    @staticmethod
    def _without(option: str) -> tuple[str, ...]:
        """Return the commands of Slurm's that have no such option."""
        if option in LATER_OPTIONS:
            return ()
        grammars = (sbatch.GRAMMAR, salloc.GRAMMAR, srun.GRAMMAR)
        return tuple(
            each.command
            for each in grammars
            if option not in each.unbuilt and all(option != known.long for known in each.options)
        )

    def _strange(self, field: str, function: str, does: str, job: str) -> None:
        rule = rules.READ_ONLY if does == "writes" and field in JOB_DESC else rules.UNKNOWN_FIELD
        what = f"{does} job_desc.{field}, which " + (
            "a script cannot change" if rule == rules.READ_ONLY else "is no field"
        )
        uses = [use for use in self.source.uses if use.field == field]
        if does == "reads" and any(has_other(self.source, use, JOB_DESC) for use in uses):
            return
        lines = [use.line for use in uses]
        if rule == rules.READ_ONLY:
            lines = [use.line for use in self.source.uses if use.field == field and use.set]
        if not self.found.told(rule, field):
            self.found.blame(rule, function, what, line=lines[0] if lines else 0, job=job)

    # Drives compared.

    def _apart(self, main: Drive, other: Drive) -> None:
        """Note where jobs fare otherwise under another Lua; another Slurm may well do otherwise."""
        if other.slurm != main.slurm:
            return
        for one, two in zip(main.rulings, other.rulings, strict=True):
            if one.asked and two.asked and one.verdict != two.verdict:
                if one.errors or two.errors:
                    self._error_apart(main, other, one, two)
                    continue
                what = (
                    f"{one.job.name}: {shown(one)} under Lua {main.lua}, {shown(two)} under "
                    f"Lua {other.lua}"
                )
                function = self._function(one)
                self.found.blame(rules.LUA_VERSION, function, what)
                return

    def _error_apart(self, main: Drive, other: Drive, one: Ruling, two: Ruling) -> None:
        """Say that an error is one of a version, where it is."""
        if bool(one.errors) != bool(two.errors):
            lua, errors = (main.lua, one.errors) if one.errors else (other.lua, two.errors)
            for error in errors:
                self.found.of_version(line_of(error), lua)

    def _orders(self, submissions: Submissions, main: Drive, jobs: Sequence[Job]) -> None:
        for order in _ORDERS:
            other = submissions.run(jobs, lua=main.lua, slurm=main.slurm, order=order)
            for one, two in zip(main.rulings, other.rulings, strict=True):
                if one.asked and two.asked and one.verdict != two.verdict:
                    what = (
                        f"{one.job.name}: {shown(one)}, or {shown(two)} where tables are gone "
                        "through in another order"
                    )
                    function = self._function(one)
                    line = self.source.line_with("pairs") or self.source.line_with("next")
                    self.found.blame(rules.PAIRS, function, what, line=line)
                    return

    def treated(self, main: Drive) -> tuple[Treated, ...]:
        """Return what each job was turned into."""
        return tuple(
            Treated(
                name=ruling.job.name,
                command=ruling.job.line,
                user=ruling.job.user,
                ruling=shown(ruling),
            )
            for ruling in main.rulings
            if ruling.asked and ruling.job != LET_PASS and HOLE not in ruling.job.line
        )

    def driven(self, main: Drive) -> tuple[str, ...]:
        """Return the functions that were called."""
        reached_in = {
            each.function for each in self.source.blocks if each.number in all_reached(main)
        }
        return tuple(name for name in self.kind.calls.values() if name in reached_in)

    def _function(self, ruling: Ruling) -> str:
        """Return the function that ruled over a job; of a filter the one that ends commands."""
        names = tuple(self.kind.calls.values())
        if self.kind is JOB_SUBMIT:
            return names[1] if ruling.job.change else names[0]
        return names[1]

    @property
    def _error_rule(self) -> str:
        return rules.LUA_ERROR if self.kind is JOB_SUBMIT else rules.FILTER_ERROR


def shown(ruling: Ruling) -> str:
    """Return in words what became of a job."""
    parts = []
    filters = ruling.script != JOB_SUBMIT.script
    if ruling.errors:
        let_in = "goes on after a Lua error" if filters else "let in by a Lua error"
        parts.append(let_in if not ruling.rc else "a Lua error")
    elif ruling.rc and filters:
        parts.append("ended")
    elif ruling.rc:
        parts.append(f"refused ({errno_name(ruling.rc)})")
    parts += [
        f"{name} {_value(was)} becomes {_value(now)}" for name, (was, now) in ruling.changed.items()
    ]
    prefix = f"{ruling.job.command}: "
    said = [
        line.removeprefix(prefix).removeprefix("error: ")
        for line in ruling.lines
        if line.startswith(prefix) and not _USUAL.search(line)
    ]
    if not parts:
        parts.append(
            "as it is"
            if not ruling.exit or ruling.job.change
            else "not changed; refused by slurmctld"
        )
    if said and not ruling.job.change:
        parts.append(f"told: {said[0]}")
    return "; ".join(parts)


def errno_name(rc: int) -> str:
    """Return the name of an error number, or the number."""
    for name, value in vars(errno).items():
        if value == rc and name.startswith(("ESLURM", "SLURM_ERROR", "EAGAIN")):
            return f"{name}, {rc}"
    return str(rc)


def _value(value: Any) -> str:
    if value == NO_VAL:
        return "not set"
    if value is None or value in ("", [], {}):
        return "nothing"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return compress(value)
    return str(value) if not isinstance(value, str) else value
