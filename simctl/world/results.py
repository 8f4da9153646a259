"""What came of a run and of its commands."""

from collections.abc import Mapping
from typing import Any

import attrs

from simctl.ctld.state.job_rows import JobRow
from simctl.orderings.checking import Report, not_checked
from simctl.scenario.holding.expect import Result
from simctl.scenario.model import (
    Checks,
)


@attrs.frozen(kw_only=True)
class CommandResult:
    """How a command of the timeline ended; `exit` is -1 while it has not."""

    label: str
    line: int
    at_us: int
    user: str
    command: str
    exit: int
    errno: str
    stdout: str
    stderr: str
    checks: Checks
    changed: Mapping[str, str] | None = None
    """What plugins of job_submit changed, where that is asked for and they saw it."""

    def as_json(self) -> dict[str, Any]:
        """Return what `run --json` says of it; `exit` is null while it has not ended."""
        return {
            "at_us": self.at_us,
            "user": self.user,
            "command": self.command,
            "exit": self.exit if self.exit >= 0 else None,
            "errno": self.errno,
            "stdout": self.stdout,
            "stderr": self.stderr,
        }


@attrs.frozen(kw_only=True)
class Complaint:
    """Something that a plugin did wrong, in which function, and how often."""

    function: str
    problem: str
    times: int


@attrs.frozen(kw_only=True)
class RunResult:
    """What a run came to; two runs of one scenario, seed and schedule differ in `wall_s` alone."""

    scenario: str
    seed: int
    schedule: str
    model: str
    end_time_us: int
    stalled: tuple[str, ...]
    """Who waits for what, when the run stalled; else empty."""

    ran_out: tuple[str, ...]
    """Why the run was ended before it was over, when it took too many turns; else empty."""

    stopped_at_limit: bool
    rows: tuple[JobRow, ...]
    commands: tuple[CommandResult, ...]
    expectations: tuple[Result, ...]
    counts: Mapping[str, int]
    wall_s: float
    interrupted: bool = False
    schedule_note: str = ""
    """What is to be said of the schedule: the run is not the one that its token was taken from."""

    damages: tuple[str, ...] = ()
    """State files that slurmctld could not read whole, and what was made of them."""

    complaints: tuple[Complaint, ...] = ()
    """What plugins did wrong by themselves, in the order of their first time."""
    fatalities: tuple[str, ...] = ()
    """Daemons that could not go on, each with its reason."""
    lost_jobs: tuple[int, ...] = ()
    """Jobs that a slurmctld knew nothing of any more which another had known."""
    missed: tuple[str, ...] = ()
    """Faults that met no target, each with the reason."""
    ignored: tuple[str, ...] = ()
    """What a site's own slurm.conf says that nothing here depends on."""
    orderings: Report = attrs.field(factory=lambda: not_checked("nobody asked for it"))
    """What came of checking the built-in orderings."""

    @property
    def held(self) -> bool:
        """Return whether all that was expected came true, every ordering held, nothing stalled."""
        return (
            not self.stalled
            and not self.ran_out
            and not self.orderings.broken
            and all(result.held for result in self.expectations)
        )

    def as_json(self) -> dict[str, Any]:
        """Return the object that `run --json` prints."""
        return {
            "scenario": self.scenario,
            "seed": self.seed,
            "schedule": self.schedule,
            "model": self.model,
            "end_time_us": self.end_time_us,
            "stalled": bool(self.stalled),
            "ran_out": bool(self.ran_out),
            "jobs": [row.as_json() for row in self.rows],
            "expectations": [
                {"text": each.text, "held": each.held, "detail": each.detail}
                for each in self.expectations
            ],
            "orderings": self.orderings.as_json(),
            "plugin_errors": [attrs.asdict(each) for each in self.complaints],
            "fatal": list(self.fatalities),
            "damaged": list(self.damages),
            "faults_missed": list(self.missed),
            "lost_jobs": list(self.lost_jobs),
            "ignored": list(self.ignored),
            "commands": [each.as_json() for each in self.commands],
            "counts": dict(self.counts),
            "wall_s": round(self.wall_s, 3),
        }


def _fields(fields: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{name}: {each}' for name, each in sorted(fields.items()))}}}"


def check_command(result: CommandResult) -> list[Result]:
    """Hold a command against what its entry expects of it."""
    checks = result.checks
    wrong: list[str] = []
    asked: list[str] = []
    if checks.errno:
        asked.append(f"expect: {checks.errno}")
        if result.errno != checks.errno:
            wrong.append(f"the error was {result.errno or 'none'}")
    for status in checks.exit:
        asked.append(f"exit: {status}")
        if result.exit != status:
            wrong.append("it has not ended" if result.exit < 0 else f"it exited {result.exit}")
    for name, wanted, found in (
        *(("stdout", text, result.stdout) for text in checks.stdout),
        *(("stderr", text, result.stderr) for text in checks.stderr),
    ):
        asked.append(f"{name}: {wanted!r}")
        if wanted not in found:
            wrong.append(f"{name} was {found!r}")
    if checks.becomes is not None:
        asked.append(f"becomes: {_fields(checks.becomes)}")
        if result.changed is None:
            wrong.append("no plugin of job_submit was asked")
        elif result.changed != checks.becomes:
            wrong.append(f"it became {_fields(result.changed)}")
    if not asked:
        return []
    if wrong and result.stderr and "stderr" not in "".join(wrong):
        wrong.append(f"stderr was {result.stderr!r}")
    text = f"{result.label}: `{result.command}` {', '.join(asked)}"
    return [Result(text=text, line=result.line, held=not wrong, detail="; ".join(wrong))]
