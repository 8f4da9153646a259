"""The pytest plugin: scenarios as test items, fixtures, markers, golden traces.

pytest loads this wherever simctl is installed, so it imports nothing of a cluster before a scenario
is run.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from simctl.testing.frames import hide
from simctl.testing.options import GOLDEN_MODES

__tracebackhide__ = hide


if TYPE_CHECKING:
    from simctl.testing.cases import Outcome, Settings, Variant
    from simctl.testing.cluster import Cluster
    from simctl.testing.runs import Run, Surroundings
    from simctl.testing.served import Served

_FIXTURES: Final = ("simctl_run", "world")
_SEED: Final = "_simctl_seed"
_MODEL: Final = "_simctl_model"
_CURRENT: Final = pytest.StashKey[pytest.Item]()
_RUNS: Final = pytest.StashKey["list[Run]"]()
"""The runs of a test, where pages of them may be wanted."""

_SCOPES: Final = {
    "function": (pytest.Item, pytest.Class, pytest.Module, pytest.Package),
    "class": (pytest.Class, pytest.Module, pytest.Package),
    "module": (pytest.Module, pytest.Package),
    "package": (pytest.Package,),
    "session": (),
}
"""How long a cluster may last, and where a marker can name one that lasts so long."""

_MARKERS: Final = (
    "simctl: a scenario that was collected from its file",
    "simctl_seeds(count or seeds, schedule='random'): run the test once for each seed",
    "simctl_models(*models): run the test once for each model, guide or modern",
    "simctl_cluster(file or text, *options): what the fixture of that name serves, and how",
    "simctl_ignore(*whats): leave fields and events out when golden traces are compared",
)


# Options.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the keys of pytest's configuration."""
    group = parser.getgroup("simctl", "scenarios of simctl")
    group.addoption(
        "--simctl-seeds",
        metavar="N",
        help="run each scenario under N random schedules as well",
    )
    group.addoption("--simctl-schedule", metavar="S", help="the schedule instead of fifo")
    group.addoption(
        "--simctl-model",
        action="append",
        metavar="M",
        help="run each scenario in a model: guide, modern, or guide,modern",
    )
    group.addoption(
        "--simctl-rewrite",
        action="store_true",
        help="write golden traces anew, and the first of scenarios whose file is named",
    )
    group.addoption(
        "--simctl-check-determinism",
        action="store_true",
        help="run each scenario twice, in two processes, and compare",
    )
    group.addoption(
        "--simctl-no-orderings",
        action="store_true",
        help="do not check the built-in orderings of scenarios",
    )
    group.addoption(
        "--simctl-html",
        metavar="DIR",
        help="leave a page of each run of a test that fails in this folder",
    )
    group.addoption("--no-scenarios", action="store_true", help="collect no scenarios")
    parser.addini("simctl_folders", "folders whose YAML files are scenarios", "args", ["scenarios"])
    parser.addini("simctl_seeds", "as --simctl-seeds", default="0")
    parser.addini("simctl_schedule", "as --simctl-schedule", default="")
    parser.addini("simctl_models", "models to run each scenario in", "args", [])
    parser.addini("simctl_golden", f"golden traces: {', '.join(GOLDEN_MODES)}", default="existing")
    parser.addini("simctl_cluster", "what simctl_cluster serves: a file and options", "args", [])
    parser.addini("simctl_cluster_scope", "how long simctl_cluster lasts", default="function")
    parser.addini("simctl_ignore", "what is left out of golden traces, a line each", "linelist", [])


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and refuse settings that cannot be."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    mode = config.getini("simctl_golden")
    if mode not in GOLDEN_MODES:
        raise pytest.UsageError(f"simctl_golden: expected {', '.join(GOLDEN_MODES)}, got {mode!r}")
    scope = config.getini("simctl_cluster_scope")
    if scope not in _SCOPES:
        raise pytest.UsageError(
            f"simctl_cluster_scope: expected {', '.join(_SCOPES)}, got {scope!r}"
        )
    if _seeds(config) or _models(config):
        _variants(config)
    if config.getoption("--simctl-html") is not None:
        from simctl.status import InputError  # noqa: PLC0415 - see the module
        from simctl.testing.pages import check_folder  # noqa: PLC0415

        try:
            check_folder(config.getoption("--simctl-html"), "--simctl-html")
        except InputError as error:
            raise pytest.UsageError(str(error)) from error


def _seeds(config: pytest.Config) -> int:
    from simctl import numbers  # noqa: PLC0415 - see the module
    from simctl.status import InputError  # noqa: PLC0415

    asked = config.getoption("--simctl-seeds")
    try:
        if asked is not None:
            return int(numbers.TESTED_BY_PYTEST(asked))
        return int(numbers.TESTED_BY_SETTING(config.getini("simctl_seeds")))
    except InputError as error:
        raise pytest.UsageError(str(error)) from error


def _models(config: pytest.Config) -> list[str]:
    asked = config.getoption("--simctl-model") or config.getini("simctl_models")
    return [word for words in asked for word in words.split(",") if word]


def _variants(config: pytest.Config) -> "tuple[Variant, ...]":
    """Return the runs that are asked of each scenario."""
    from simctl.status import InputError  # noqa: PLC0415 - see the module
    from simctl.testing.cases import variants  # noqa: PLC0415

    schedule = config.getoption("--simctl-schedule") or config.getini("simctl_schedule")
    try:
        return variants(seeds=_seeds(config), schedule=schedule, models=_models(config))
    except InputError as error:
        raise pytest.UsageError(f"simctl: {error}") from error


# Scenarios as items.


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    """Collect a scenario: one that is named, is called so, or stands in a folder of some."""
    if file_path.suffix not in (".yaml", ".yml") or parent.config.getoption("--no-scenarios"):
        return None
    from simctl.testing.finding import is_test  # noqa: PLC0415 - see the module

    named = parent.session.isinitpath(file_path)
    if named or is_test(file_path, parent.config.getini("simctl_folders")):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


class ScenarioFile(pytest.File):
    """A scenario's file."""

    def collect(self) -> Iterable["ScenarioItem"]:
        """Yield an item for each run that is asked of it."""
        from simctl.testing.cases import Case  # noqa: PLC0415 - see the module

        for variant in _variants(self.config):
            name = Case(path=self.path, variant=variant).name
            yield ScenarioItem.from_parent(self, name=name, variant=variant)


def _shown(path: Path) -> Path:
    """Return a path as one would write it here, if that is shorter."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


class ScenarioFailure(Exception):
    """Something that a scenario expects did not come true, or it is no scenario."""


class ScenarioItem(pytest.Item):
    """A run of a scenario, which passes if all holds that is expected of it."""

    obj = None
    """The function of a test, which pytest-trio looks at; here there is none."""

    def __init__(self, *, variant: "Variant", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.variant = variant
        self.add_marker("simctl")

    def runtest(self) -> None:
        """Run the scenario."""
        from simctl.testing.cases import Case, Verdict  # noqa: PLC0415 - see the module
        from simctl.testing.judging import run_case  # noqa: PLC0415

        named = self.session.isinitpath(self.path)
        case = Case(path=_shown(self.path), variant=self.variant)
        outcome = run_case(case, _settings(self), named=named)
        if outcome.note:
            self.add_report_section("call", "simctl", outcome.note)
        if outcome.verdict is not Verdict.HELD:
            raise ScenarioFailure(_failure(outcome))

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Write what did not hold; where our code stood when it noticed says nothing."""
        if isinstance(excinfo.value, ScenarioFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where the test is, and the title of its failure."""
        return self.path, None, self.nodeid


def _failure(outcome: "Outcome") -> str:
    return "\n".join(outcome.lines)


def _ignored(item: pytest.Item) -> tuple[str, ...]:
    """Return what comparisons with golden traces leave out, by the configuration and markers."""
    marked = [text for marker in item.iter_markers("simctl_ignore") for text in marker.args]
    return (*item.config.getini("simctl_ignore"), *marked)


def _settings(item: pytest.Item) -> "Settings":
    from simctl.testing.cases import Settings  # noqa: PLC0415 - see the module

    config = item.config
    return Settings(
        golden=config.getini("simctl_golden"),
        rewrite=config.getoption("--simctl-rewrite"),
        ignore=_ignored(item),
        check_determinism=config.getoption("--simctl-check-determinism"),
        orderings=not config.getoption("--simctl-no-orderings"),
        html=config.getoption("--simctl-html") or "",
        command="pytest",
        rewrite_option="--simctl-rewrite",
        determinism_option="--simctl-check-determinism",
    )


# Fixtures.


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note which test runs: the fixtures are the session's, as Hypothesis wants them."""
    item.config.stash[_CURRENT] = item
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leave pages of the runs of a test that failed, where they are wanted."""
    report = yield
    runs = item.stash.get(_RUNS, [])
    if call.when == "call" and report.failed and runs:
        from simctl.testing.pages import leave_pages  # noqa: PLC0415 - see the module

        folder = item.config.getoption("--simctl-html")
        report.sections += [("simctl", line) for line in leave_pages(folder, item.nodeid, runs)]
    runs.clear()
    return report


class Runner:
    """Runs scenarios for the test that is under way."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def __call__(
        self,
        scenario: str | Path,
        *,
        model: str = "",
        schedule: str = "",
        seed: int | None = None,
        orderings: bool = True,
    ) -> "Run":
        """Run a scenario: a file, from the test's folder on, or a text.

        Model, seed and schedule are those that the test's markers say, if they are left out.

        Raises:
            InputError: The scenario or a plugin is wrong; with every mistake in it.
        """
        return self.prepare(
            scenario, model=model, schedule=schedule, seed=seed, orderings=orderings
        ).run()

    def prepare(
        self,
        scenario: str | Path,
        *,
        model: str = "",
        schedule: str = "",
        seed: int | None = None,
        orderings: bool = True,
    ) -> "Cluster":
        """Return the cluster of a scenario, to be changed and run."""
        from simctl.testing.cluster import Cluster  # noqa: PLC0415 - see the module

        item = self._config.stash[_CURRENT]
        params = getattr(getattr(item, "callspec", None), "params", {})
        if seed is None and _SEED in params:
            seed = params[_SEED]
            schedule = schedule or _schedule_of(item)
        return Cluster(
            scenario,
            model=model or params.get(_MODEL, ""),
            schedule=schedule or "fifo",
            seed=seed,
            orderings=orderings and not self._config.getoption("--simctl-no-orderings"),
            surroundings=self._surroundings(item, scenario),
        )

    def _surroundings(self, item: pytest.Item, scenario: str | Path) -> "Surroundings":
        from simctl.testing.runs import Surroundings, is_text  # noqa: PLC0415 - see the module

        folder = _shown(item.path.parent)
        path = "" if is_text(scenario) else os.path.normpath(folder / scenario)
        return Surroundings(
            folder=folder,
            path=path,
            rewrite=self._config.getoption("--simctl-rewrite"),
            ignore=_ignored(item),
            how_to_rewrite="pytest --simctl-rewrite",
            made=self._made(item),
        )

    def _made(self, item: pytest.Item) -> "Callable[[Run], None] | None":
        """Return what is told of each run of a test, if pages may be wanted of them."""
        if not self._config.getoption("--simctl-html"):
            return None
        return item.stash.setdefault(_RUNS, []).append


@pytest.fixture(scope="session")
def simctl_run(pytestconfig: pytest.Config) -> Runner:
    """Run a scenario, a file or a text, and return what came of it: `simctl_run("step.yaml")`."""
    return Runner(pytestconfig)


@pytest.fixture(scope="session")
def world(pytestconfig: pytest.Config) -> Any:
    """Return a function that makes a cluster, to be changed and run: `world("step.yaml")`."""
    return Runner(pytestconfig).prepare


def _cluster_scope(fixture_name: str, config: pytest.Config) -> Any:
    return config.getini("simctl_cluster_scope")


@pytest.fixture(scope=_cluster_scope)
def simctl_cluster(request: pytest.FixtureRequest) -> "Iterator[Served]":
    """Serve a cluster in real time for tests' own clients: `simctl_cluster.env` has its PATH.

    A test has one by itself, or those of a class, module, package or session have one, as the
    setting `simctl_cluster_scope` says. The marker `simctl_cluster`, or where several tests have
    one the setting of that name, names another than the usual one of two nodes.
    """
    from simctl.testing.served import CLUSTER, Served  # noqa: PLC0415 - few tests need it

    mark = request.node.get_closest_marker("simctl_cluster")
    if mark is not None:
        given, *options = mark.args or (CLUSTER,)
        folder = request.path.parent
    else:
        given, *options = request.config.getini("simctl_cluster") or (CLUSTER,)
        folder = request.config.inipath.parent if request.config.inipath else Path.cwd()
    if "\n" not in str(given):
        given = folder / given
    served = Served(given, *map(str, options))
    try:
        yield served
    finally:
        served.close()


# Markers.


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each seed and model that its markers name."""
    definition = metafunc.definition
    used = set(_FIXTURES).intersection(metafunc.fixturenames)
    scope = metafunc.config.getini("simctl_cluster_scope")
    for node, _ in definition.iter_markers_with_node("simctl_cluster"):
        if not isinstance(node, _SCOPES[scope]):
            pytest.fail(
                f"{definition.nodeid}: the marker simctl_cluster at {node.name} can name no "
                f"cluster: one is served for each {scope} (simctl_cluster_scope)",
                pytrace=False,
            )
    for name in ("simctl_models", "simctl_seeds", "simctl_ignore"):
        if not used and definition.get_closest_marker(name) is not None:
            pytest.fail(
                f"{definition.nodeid}: the marker {name} is for tests that use one of the "
                f"fixtures {', '.join(_FIXTURES)}",
                pytrace=False,
            )
    for name, argument, values in (
        ("simctl_models", _MODEL, _models_of),
        ("simctl_seeds", _SEED, _seeds_of),
    ):
        mark = definition.get_closest_marker(name)
        if mark is not None:
            found = values(mark)
            metafunc.fixturenames.append(argument)
            metafunc.parametrize(argument, found, ids=[_id(argument, value) for value in found])


def _id(argument: str, value: object) -> str:
    return f"seed{value}" if argument == _SEED else str(value)


def _seeds_of(mark: pytest.Mark) -> Sequence[int]:
    """Return the seeds of a marker: so many, or these."""
    given = mark.args[0] if len(mark.args) == 1 else mark.args
    seeds = range(given) if type(given) is int else given
    unknown = set(mark.kwargs) - {"schedule"}
    if (
        isinstance(seeds, str)
        or not isinstance(seeds, Iterable)
        or unknown
        or not (found := list(seeds))
        or not all(type(seed) is int and seed >= 0 for seed in found)
    ):
        pytest.fail(
            "the marker simctl_seeds takes a number of seeds, or seeds of 0 or more: "
            "simctl_seeds(20), simctl_seeds(3, 7), simctl_seeds([5]); and schedule=",
            pytrace=False,
        )
    return found


def _models_of(mark: pytest.Mark) -> Sequence[str]:
    from simctl.testing.cases import MODELS  # noqa: PLC0415 - see the module

    if not mark.args or mark.kwargs or not set(mark.args) <= set(MODELS):
        pytest.fail(
            'the marker simctl_models takes models: simctl_models("guide", "modern")',
            pytrace=False,
        )
    return list(dict.fromkeys(mark.args))


def _schedule_of(item: pytest.Item) -> str:
    mark = item.get_closest_marker("simctl_seeds")
    return str(mark.kwargs.get("schedule", "random")) if mark is not None else "random"
