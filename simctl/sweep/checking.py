"""Check every combination of a sweep before a run is made, and note the files that runs need."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs
import yaml

from simctl.files import noting
from simctl.plugins.registry import Registry
from simctl.runners.bundle import Bundle, check_travels, pack, paths_of_plugins
from simctl.scenario.load import files_named, load_scenario, read_scenario
from simctl.scenario.model import Scenario
from simctl.scenario.positions import Mistake, ScenarioErrors, Value
from simctl.status import InputError
from simctl.sweep.file import Sweep
from simctl.sweep.options import conf_of, is_shipped, options_of, scenario_file
from simctl.sweep.plan import Cell, Plan
from simctl.sweep.settings import (
    OF_LOGS,
    OF_RUNS,
    PathError,
    parsed,
    parts,
    put,
)
from simctl.wire.conf.slurm_conf import read_conf
from simctl.world.build import plugin_mistakes

_EACH: Final = 200
"""Up to how many combinations each is checked; of more, each value with the first of the others."""


@attrs.define
class Checked:
    """A sweep whose combinations can be run, and what they read."""

    sweep: Sweep
    plan: Plan
    warnings: tuple[str, ...] = ()
    files: dict[Path, None] = attrs.field(factory=dict)
    """Scenarios, logs, what scenarios read, and their plugins' files."""
    needs: list[tuple[Path, tuple[str, ...], tuple[Path, ...]]] = attrs.field(factory=list)
    """Of each scenario its folder, plugins and files as it names them, and files that were read."""

    def digest(self) -> str:
        """Return what stands for all files, as they lie around the sweep's folder."""
        start = self.sweep.folder.resolve()
        paths = {os.path.relpath(path.resolve(), start): path for path in self.files}
        found = hashlib.sha256()
        for name in sorted(paths):
            content = hashlib.sha256(paths[name].read_bytes()).digest()
            found.update(f"\0{name}\0".encode() + content)
        return found.hexdigest()

    def bundle(self) -> Bundle:
        """Return the files, to travel.

        Raises:
            InputError: They cannot.
        """
        for folder, references, read in self.needs:
            check_travels(folder, references, read)
        for cell in self.plan.cells:
            for key in ("scenario", "swf"):
                if cell.scalar(key).startswith("/"):
                    raise InputError(
                        f"--dask: {cell.scalar(key)} cannot travel to other machines, where it "
                        "would lie elsewhere; name it by a path from the sweep's folder"
                    )
        return pack(self.sweep.folder, self.files)


def composed(root: yaml.Node, cell: Cell) -> yaml.Node:
    """Return the tree of a scenario with what a cell sets in it.

    Raises:
        PathError: It cannot be set.
    """
    for path, value in cell.settings.items():
        if path not in OF_RUNS:
            root = put(root, path, parsed(value))
    return root


def check(sweep: Sweep) -> Checked:
    """Return a sweep with its plan.

    Raises:
        InputError: A scenario, a log, a setting or a plugin is wrong; with every mistake.
    """
    cells = list(sweep.cells())
    plan = Plan(
        name=sweep.file,
        parameters=tuple(each.name for each in sweep.parameters),
        cells=tuple(cell for cell, _ in cells),
        seeds=sweep.seeds,
        jobs=sweep.jobs,
    )
    checking = _Checking(sweep)
    for cell, places in _some(sweep, cells):
        checking.check(cell, places)
    if checking.mistakes:
        lines = "\n".join(str(each) for each in dict.fromkeys(checking.mistakes.values()))
        raise InputError(lines, placed=True)
    kept = frozenset(_kept(sweep, plan))
    if len(kept) > _KEPT:
        raise InputError(f"{sweep.file}: keep: {len(kept):,} runs; the most are {_KEPT:,}")
    return Checked(
        sweep=sweep,
        plan=attrs.evolve(plan, kept=kept, texts=checking.texts),
        warnings=tuple(checking.warnings),
        files=checking.files,
        needs=checking.needs,
    )


_KEPT: Final = 1_000


def _some(
    sweep: Sweep, cells: list[tuple[Cell, Mapping[str, Value]]]
) -> Iterator[tuple[Cell, Mapping[str, Value]]]:
    first = cells[0][0].labels
    for cell, places in cells:
        others = sum(one != other for one, other in zip(cell.labels, first, strict=True))
        if len(cells) <= _EACH or others <= 1:
            yield cell, places


def _kept(sweep: Sweep, plan: Plan) -> Iterator[int]:
    """Give the trials of which something is kept, some more than once."""
    for wanted in sweep.keep:
        labels = {name: label for name, label in wanted.items() if name != "seed"}
        for number, cell in enumerate(plan.cells):
            values = dict(zip(plan.parameters, cell.labels, strict=True))
            if labels.items() <= values.items():
                for place, seed in enumerate(plan.seeds):
                    if wanted.get("seed", str(seed)) == str(seed):
                        yield number * len(plan.seeds) + place


class _Checking:
    """Checks cells, and gathers what is wrong with them."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self.mistakes: dict[str, Mistake] = {}
        """Each once, by what is told; combinations that lack the same are not all named."""
        self.warnings: dict[str, None] = {}
        self.texts: dict[str, str] = {}
        self._roots: dict[str, yaml.Node] = {}
        self.files: dict[Path, None] = {}
        self.needs: list[tuple[Path, tuple[str, ...], tuple[Path, ...]]] = []

    def check(self, cell: Cell, places: Mapping[str, Value]) -> None:
        """Check a cell; note its mistakes, and the files that it needs."""
        which = [key for key in ("scenario", "swf") if key in places]
        if len(which) != 1:
            have = " and ".join(f"{key}: {cell.scalar(key)}" for key in which) or "neither"
            where = ", ".join(cell.labels)
            raise InputError(
                f"{self._sweep.file}: a run has either `scenario` or `swf`; "
                f"{f'with {where} ' if where else ''}it has {have}"
            )
        try:
            self._options(cell, places)
            (self._scenario if which == ["scenario"] else self._log)(cell, places)
        except _WrongError as error:
            self.mistakes.setdefault(str(error), error.mistake)

    def _wrong(self, places: Mapping[str, Value], path: str, message: str) -> "_WrongError":
        return _WrongError(self._sweep.mistake(places[path], message))

    def _options(self, cell: Cell, places: Mapping[str, Value]) -> None:
        for path in cell.settings:
            try:
                options_of(cell.only(path, "swf"))
            except InputError as error:
                raise self._wrong(places, path, str(error)) from error

    def _scenario(self, cell: Cell, places: Mapping[str, Value]) -> None:
        name = cell.scalar("scenario")
        path = scenario_file(name, self._sweep.folder)
        base = self._base(name, path)
        for setting in cell.settings:
            try:
                composed(base, cell.only(setting))
            except PathError as error:
                raise self._wrong(places, setting, str(error)) from error
        root = composed(base, cell)
        with noting() as read:
            try:
                scenario = read_scenario(self.texts[name], file=str(path), root=root)
            except ScenarioErrors as error:
                for each in error.mistakes:
                    self.mistakes.setdefault(str(each), self._placed(each, cell, places))
                return
        for told in plugin_mistakes(Registry(), scenario, scenario.model):
            # Where it stands in the scenario says nothing of what is set in it.
            said = re.sub(rf"^{re.escape(str(path))}:\d+:\d+: ", "", told)
            where = "plugins" if "plugins" in places else "scenario"
            self.mistakes.setdefault(said, self._told(said, cell, places[where]))
        self._note(path, scenario, (tuple(read), tuple(files_named(root))))

    def _base(self, name: str, path: Path) -> yaml.Node:
        """Return the tree of a scenario that can be read as it is."""
        if name not in self.texts:
            with noting() as read:
                try:
                    load_scenario(path)
                except ScenarioErrors as error:
                    lines = "\n".join(str(each) for each in error.mistakes)
                    raise InputError(lines, placed=True) from error
            if not is_shipped(path):
                self.files |= read
            self.texts[name] = path.read_text(encoding="utf-8-sig")
            self._roots[name] = parsed(self.texts[name])
        return self._roots[name]

    def _note(
        self, path: Path, scenario: Scenario, files: tuple[tuple[Path, ...], tuple[str, ...]]
    ) -> None:
        """Note what a scenario needs; *files* were read, and are named by keys of their own."""
        references, (read, named) = scenario.files_of_code, files
        self.warnings |= dict.fromkeys(f"{each.path}: {each.message}" for each in scenario.warnings)
        need = (path.parent, (*references, *named), read)
        if need not in self.needs and not is_shipped(path):
            self.needs.append(need)
            found = (*read, *paths_of_plugins(path.parent, references))
            self.files |= dict.fromkeys(found)

    def _placed(self, mistake: Mistake, cell: Cell, places: Mapping[str, Value]) -> Mistake:
        """Return a mistake of a composed scenario at the setting that made it."""
        if mistake.file != str(scenario_file(cell.scalar("scenario"), self._sweep.folder)):
            return mistake
        for setting in reversed(list(cell.settings)):
            if setting not in OF_RUNS and _touches(setting, mistake.path):
                return self._sweep.mistake(places[setting], f"{mistake.path}: {mistake.message}")
        return self._told(f"{mistake.path}: {mistake.message}", cell, places["scenario"])

    def _told(self, told: str, cell: Cell, place: Value) -> Mistake:
        labels = ", ".join(cell.labels)
        return self._sweep.mistake(place, f"{f'with {labels}: ' * bool(labels)}{told}")

    def _log(self, cell: Cell, places: Mapping[str, Value]) -> None:
        from simctl.replay import read_log, scenario  # noqa: PLC0415 - only logs need it

        for path in cell.settings:
            if path not in OF_RUNS and parts(path)[0] not in OF_LOGS:
                known = ", ".join(OF_LOGS)
                raise self._wrong(places, path, f"a log has no {path}; what can be set is {known}")
            for mistake in read_conf(conf_of(cell.only(path)))[1]:
                raise self._wrong(places, path, f"{mistake.key}: {mistake.message}")
        if "nodes" not in cell.settings:
            raise self._wrong(places, "swf", "a log needs a cluster: set nodes, and cpus_per_node")
        options = options_of(cell, self._sweep.folder)
        try:
            with noting() as read:
                log, jobs, told = read_log(options)
            scenario(log, jobs, options)
        except InputError as error:
            raise self._wrong(places, "swf", str(error)) from error
        self.warnings |= dict.fromkeys(told)
        self.files |= read


class _WrongError(Exception):
    def __init__(self, mistake: Mistake) -> None:
        super().__init__(str(mistake))
        self.mistake = mistake


def _touches(setting: str, path: str) -> bool:
    """Return whether a mistake at a path may come from a setting at, above or below it."""
    one, other = setting.casefold(), path.casefold()
    return one.startswith(other) or other.startswith(one)
