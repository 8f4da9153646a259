"""What real Slurm does wrong around Lua scripts, each to be had or left out of a run."""

from collections.abc import Collection, Mapping
from typing import Final

import attrs


@attrs.frozen(kw_only=True)
class Defect:
    """One of them: what happens, in which versions, and whether runs have it unless told."""

    text: str
    usual: bool = False
    first: str = ""
    last: str = ""

    def is_in(self, slurm: str) -> bool:
        """Return whether a version of Slurm has it."""
        return self.first <= slurm and (not self.last or slurm <= self.last)

    @property
    def versions(self) -> str:
        """Return the versions that have it, in words."""
        if self.first and self.last:
            return f"{self.first} to {self.last}"
        return f"up to {self.last}" if self.last else f"from {self.first} on" if self.first else ""


DEFECTS: Final[Mapping[str, Defect]] = {
    "timeout_success": Defect(
        text="a stage whose command was killed by the time limit, and that then returns 0, is a "
        "success",
        usual=True,
    ),
    "two_teardowns": Defect(
        text="`scancel --hurry` leaves a stage-out running: a second teardown follows it",
        usual=True,
    ),
    "empty_pools": Defect(
        text="a reconfiguration empties the pools until they are asked for next; free space goes "
        "below zero",
        usual=True,
    ),
    "pre_run_stuck": Defect(
        text="a job whose pre_run failed is never started again, until its begin time is changed",
        usual=True,
        last="22.05",
    ),
    "leak_race": Defect(
        text="a job that is cancelled after its stage-in failed gets no teardown, and its space "
        "stays charged until slurmctld starts again (really so in two of 25)",
    ),
    "stage_in_count": Defect(
        text="a stage-in that is killed counts as under way for ever; after 128 no job is staged "
        "in",
        last="22.05",
    ),
    "path_file": Defect(
        text="the file `path` of a job stays in StateSaveLocation when the job's other files go"
    ),
    "status_256": Defect(
        text="256, 512 and so on, returned by a function in a child, are a success", usual=True
    ),
    "missing_argument": Defect(
        text="the message about a request that is no good prints `(null)` in place of it",
        first="25.05",
        last="26.05",
    ),
    "paths_lines": Defect(
        text="as many lines of the file of paths are read as it has signs `=`, and none behind an "
        "empty one",
        usual=True,
    ),
    "mail_time890": Defect(
        text="slurm.MAIL_JOB_TIME90 is called MAIL_JOB_TIME890",
        usual=True,
    ),
}


def there_are(slurm: str, wanted: Collection[str], mended: Collection[str]) -> frozenset[str]:
    """Return the defects of a run: the usual ones of its Slurm, and what was asked for."""
    usual = {name for name, each in DEFECTS.items() if each.usual and each.is_in(slurm)}
    return frozenset((usual | set(wanted)) - set(mended))
