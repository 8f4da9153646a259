"""What is to be run: cells, each a combination of settings, times seeds."""

import re
from collections.abc import Mapping
from typing import Final

import attrs

from simctl.sweep.settings import parsed

_SLUG: Final = re.compile(r"[^A-Za-z0-9.=+-]+")
_NAME: Final = 60


@attrs.frozen(kw_only=True)
class Cell:
    """A combination: its values, one of each parameter, and all that it sets."""

    labels: tuple[str, ...]
    """What the table has in the columns of the parameters."""
    settings: Mapping[str, str]
    """YAML by path, as `settings.written` writes it."""

    def only(self, *paths: str) -> "Cell":
        """Return a cell that sets nothing else."""
        return Cell(
            labels=self.labels,
            settings={path: self.settings[path] for path in paths if path in self.settings},
        )

    def scalar(self, path: str, default: str = "") -> str:
        """Return the text of a setting that is a single word or number."""
        return str(parsed(self.settings[path]).value) if path in self.settings else default


@attrs.frozen(kw_only=True)
class Plan:
    """A sweep: all that workers need, beside files."""

    name: str
    """The sweep's file, for messages."""
    parameters: tuple[str, ...]
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    kept: frozenset[int] = frozenset()
    """The trials of which databases and pages are kept."""
    jobs: bool = False
    """Whether the table has a row for each job of each run."""
    texts: Mapping[str, str] = attrs.field(factory=dict)
    """The scenarios, by what the settings call them."""

    @property
    def trials(self) -> int:
        """How many runs there are to make."""
        return len(self.cells) * len(self.seeds)

    def of(self, trial: int) -> tuple[int, int]:
        """Return the number of a trial's cell, from 0, and its seed."""
        cell, place = divmod(trial, len(self.seeds))
        return cell, self.seeds[place]

    def slug(self, trial: int) -> str:
        """Return the name of the files that are kept of a trial."""
        cell, seed = self.of(trial)
        labels = "-".join(_SLUG.sub("_", label) for label in self.cells[cell].labels)[:_NAME]
        return "-".join(part for part in (f"{cell:03d}", labels, f"seed{seed}") if part)
