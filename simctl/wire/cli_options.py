"""The options of a command line, while cli_filter plugins look at them."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

EARLY: Final = frozenset({"help", "ignore-pbs", "quiet", "usage", "verbose", "version", "wrap"})
"""What sbatch reads before anything else, and so all that its early pass may set."""


class CliOptions:
    """The options of sbatch, salloc or srun by their long names: texts, to be read and set.

    An option that was not given is None; a flag that was given is ``set``. What is set counts as if
    it had been typed: before all else in `setup_defaults`, after all else in `pre_submit`.
    One of Slurm's that simctl has not may be set and read, and changes nothing.
    """

    __slots__ = ("_before", "_names", "_others", "_values", "argv", "command", "early", "work_dir")

    def __init__(
        self,
        command: str,
        values: Mapping[str, str],
        argv: tuple[str, ...],
        names: Collection[str],
        *,
        early: bool,
        others: Collection[str] = (),
        work_dir: str = "",
    ) -> None:
        self.command = command
        self.argv = argv
        self.early = early
        self.work_dir = work_dir
        self._before = dict(values)
        self._values = dict(values)
        self._names = names
        self._others = others

    def __getitem__(self, name: str) -> str | None:
        """Return an option's text; None for one that was not given, or that there is not."""
        return self._values.get(name)

    def __setitem__(self, name: str, value: object) -> None:
        """Set an option of the command; a flag is set by any text.

        In the early pass of sbatch what it does not read so early is passed over.

        Raises:
            ValueError: The command has no such option.
            TypeError: The value is no text and no number.
        """
        if not self.has(name):
            raise ValueError(f"{self.command} has no option {name!r} that a filter may set")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise TypeError(f"{name} is a text, not {type(value).__name__}")
        text = str(value)
        text.encode()
        if not self.early or self.command != "sbatch" or name in EARLY:
            self._values[name] = text

    def __contains__(self, name: object) -> bool:
        """Return whether an option was given."""
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the options that were given."""
        return iter(self._values)

    def has(self, name: str) -> bool:
        """Return whether the command has an option of a name in Slurm."""
        return name in self._names or name in self._others

    def counts(self, name: str) -> bool:
        """Return whether simctl simulates an option of the command."""
        return name in self._names

    def as_dict(self) -> dict[str, str]:
        """Return the options that are given by now."""
        return dict(self._values)

    def set_now(self) -> dict[str, str]:
        """Return what was set to another text than it had, of the options that count."""
        return {name: text for name, (_, text) in self.changed().items() if self.counts(name)}

    def changed(self) -> dict[str, list[Any]]:
        """Return what was set, by option: what it was (None for nothing), and what it is."""
        before, now = self._before, self._values
        return {
            name: [before.get(name), now[name]] for name in now if before.get(name) != now[name]
        }

    def __str__(self) -> str:
        """Name the command as traces do."""
        return f"options of {self.command}"
