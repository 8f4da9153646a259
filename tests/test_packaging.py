"""What is shipped: the archives' contents, and that the wheel runs where nothing else is."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import simctl


def execute(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run *command* in *cwd* with nothing of the tests' own Python settings."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [os.fspath(part) for part in command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def build(kind: str, source: Path, target: Path) -> Path:
    """Build the sdist or wheel of *source* into the empty folder *target*; no network is used."""
    backend = (sys.executable, "-m", "hatchling", "build")
    built = execute(*backend, "-t", kind, "-d", target, cwd=source)
    assert built.returncode == 0, built.stderr
    (archive,) = target.iterdir()
    return archive


def requirements_of(wheel: Path) -> list[str]:
    """Read what *wheel* says it needs, extras included."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    return [str(line) for line in metadata.get_all("Requires-Dist") or ()]


def runtime_distributions(
    requires: list[str], extra: str = ""
) -> Iterator[importlib.metadata.Distribution]:
    """Yield what *requires* asks for, with an extra or none, each distribution once."""
    waiting, seen = list(requires), set[str]()
    while waiting:
        needed = Requirement(waiting.pop(0))
        wanted = needed.marker is None or needed.marker.evaluate({"extra": extra})
        if wanted and (key := canonicalize_name(needed.name)) not in seen:
            seen.add(key)
            distribution = importlib.metadata.distribution(needed.name)
            waiting.extend(distribution.requires or ())
            yield distribution


def link_into(site_packages: Path, distribution: importlib.metadata.Distribution) -> None:
    """Make *distribution* importable from *site_packages* without a copy or an index."""
    tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
    for top in sorted(tops):
        (site_packages / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())


@pytest.fixture(scope="module")
def wheel(repository_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the tree as it stands."""
    return build("wheel", repository_root, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(repository_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist from the tree as it stands."""
    return build("sdist", repository_root, tmp_path_factory.mktemp("sdist"))


def install(wheel: Path, home: Path, extra: str = "") -> Path:
    """Install the wheel beside its run-time dependencies alone, and those of *extra*.

    Returns the environment's folder.
    """
    environment = home / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    scheme = {"base": str(environment), "platbase": str(environment)}
    site_packages = Path(sysconfig.get_path("purelib", "venv", scheme))
    for distribution in runtime_distributions(requirements_of(wheel), extra):
        link_into(site_packages, distribution)
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python")
    options = ("--quiet", "--no-index", "--no-deps", "--no-compile")
    done = execute(*pip, "install", *options, wheel, cwd=home)
    assert done.returncode == 0, done.stderr
    return environment


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install what `pip install slurm-simctl` does."""
    return install(wheel, tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="module")
def pyproject(repository_root: Path) -> dict[str, Any]:
    """Read pyproject.toml."""
    return tomllib.loads((repository_root / "pyproject.toml").read_text(encoding="utf-8"))


def names_in(wheel: Path) -> list[str]:
    """List the files of *wheel*."""
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def modules_under(folder: Path) -> list[str]:
    """List the Python files below *folder*, relative to it, as an archive names them."""
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.py"))


@pytest.mark.parametrize("room", ["nodes", "stepd", "plugins"])
def test_wheel_holds_each_linked_room_as_a_real_package(
    wheel: Path, repository_root: Path, room: str
) -> None:
    """The folders at the top of the tree are imported as simctl.nodes and so on, everywhere."""
    modules = modules_under(repository_root / room)
    assert "__init__.py" in modules
    assert {f"simctl/{room}/{module}" for module in modules} <= set(names_in(wheel))


def test_wheel_holds_every_module_and_scenario(wheel: Path, repository_root: Path) -> None:
    """What is in the tree is shipped: each module, each scenario, and the types' marker."""
    names = set(names_in(wheel))
    own = repository_root / "simctl"
    scenarios = [file.name for file in (repository_root / "scenarios").glob("*.yaml")]
    assert {f"simctl/{module}" for module in modules_under(own)} <= names
    assert scenarios
    assert {f"simctl/scenarios/{name}" for name in scenarios} <= names
    assert "simctl/py.typed" in names


def test_wheel_holds_nothing_but_simctl_its_start_and_its_metadata(wheel: Path) -> None:
    """A top-level `tests`, `nodes` or `plugins` would shadow a folder of somebody else's."""
    tops = {name.split("/")[0] for name in names_in(wheel)}
    (metadata,) = tops - {"simctl", "slurm_simctl.py"}
    assert re.fullmatch(r"slurm_simctl-\d+\.\d+\.\d+\.dist-info", metadata)
    left_behind = [name for name in names_in(wheel) if name.endswith(".pyc") or "/." in name]
    assert left_behind == []


def test_wheel_built_from_the_unpacked_sdist_is_the_same(
    wheel: Path, sdist: Path, tmp_path: Path
) -> None:
    """Who builds from the sdist, without the links of the tree, gets the same files."""
    unpacked, built = tmp_path / "unpacked", tmp_path / "built"
    with tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.3 lacks it, 3.12 warns without it
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(unpacked)
    (source,) = unpacked.iterdir()
    assert names_in(build("wheel", source, built)) == names_in(wheel)


def test_sdist_holds_what_its_users_need_to_work_on_it(sdist: Path) -> None:
    """Licence, lock, recipes and tests travel with the source, and no link does."""
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    names = {member.name.split("/", 1)[1] for member in members}
    assert {"LICENSE", "Makefile", ".ci/setup", "requirements.lock"} <= names
    assert {"tests/test_packaging.py", "scenarios/two_nodes.yaml"} <= names
    assert not any(member.issym() or member.islnk() for member in members)


def test_installed_command_says_its_version(installed: Path, tmp_path: Path) -> None:
    """The wheel and its declared dependencies are enough to run `simctl`."""
    answer = execute(installed / "bin" / "simctl", "--version", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert simctl.__version__ in answer.stdout


def test_installed_module_runs_as_the_command_does(installed: Path, tmp_path: Path) -> None:
    """`python -m simctl` is `simctl`."""
    answer = execute(installed / "bin" / "python", "-m", "simctl", "--version", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert simctl.__version__ in answer.stdout


@pytest.mark.parametrize("subcommand", ["check", "run"])
def test_installed_command_accepts_a_shipped_scenario(
    installed: Path, tmp_path: Path, subcommand: str
) -> None:
    """The scenarios inside the wheel are found, valid, and run without the repository."""
    (scenario,) = installed.rglob("simctl/scenarios/two_nodes.yaml")
    answer = execute(installed / "bin" / "simctl", subcommand, scenario, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr


AUTHORS_REPOSITORY = {
    "pyproject.toml": """
[project]
name = "fabric-switch"
version = "0.1"

[project.entry-points."simctl.plugins"]
"switch/fabric" = "fabric_switch:FabricSwitch"

[project.optional-dependencies]
test = ["slurm-simctl[pytest]"]

[tool.pytest.ini_options]
filterwarnings = ["error"]
addopts = ["--strict-config", "--strict-markers"]
""",
    "fabric_switch.py": """
from simctl.plugin import SwitchPlugin

class FabricSwitch(SwitchPlugin):
    plugin_type = "switch/fabric"
    plugin_name = "ours"
""",
    "scenarios/step.yaml": """
slurm_conf: {SwitchType: switch/fabric}
plugins: ["../fabric_switch.py:FabricSwitch"]
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001}
timeline: [{at: 0s, as: alice, run: srun -N2 -n4 sleep 10}]
expect: [{count: "switch_p_job_attach plugin=switch/fabric", is: 4}]
""",
    "tests/test_fabric.py": """
import pytest
from simctl.testing import points

@pytest.mark.simctl_seeds(2)
@pytest.mark.simctl_models("guide", "modern")
def test_attach_comes_after_init(simctl_run):
    trace = simctl_run("../scenarios/step.yaml").trace
    trace.assert_order(points.switch_p_job_init, points.switch_p_job_attach, each="node")
    trace.assert_count(points.switch_p_job_attach, 4, user="alice")
""",
}
"""What docs/testing.md says: one line asks for simctl, the rest are the tests themselves."""


def test_an_authors_repository_runs_its_tests_with_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """The plugin is found by itself; without pytest `simctl test` runs the scenarios."""
    (asked,) = re.findall(r"(?m)^test = .*", AUTHORS_REPOSITORY["pyproject.toml"])
    assert asked in (Path(__file__).parent.parent / "docs" / "testing.md").read_text()
    environment = install(wheel, tmp_path, extra="pytest")
    repository = tmp_path / "fabric-switch"
    for name, text in AUTHORS_REPOSITORY.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = execute(environment / "bin" / "python", "-m", "pytest", "-rA", cwd=repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED scenarios/step.yaml::step" in done.stdout
    assert "PASSED tests/test_fabric.py::test_attach_comes_after_init[modern-seed1]" in done.stdout
    assert re.search(r"=+ 5 passed in ", done.stdout)
    told = execute(environment / "bin" / "simctl", "test", ".", cwd=repository)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("held    scenarios/step.yaml\n1 run: 1 held, in ")


def test_lock_pins_every_declared_package_to_one_version(
    repository_root: Path, pyproject: dict[str, Any]
) -> None:
    """`make setup` installs what the lock says: all pyproject asks for, at versions it allows."""
    lines = (repository_root / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) and not pin.url for pin in pins)
    locked = {canonicalize_name(pin.name): str(pin.specifier)[2:] for pin in pins}
    assert len(locked) == len(pins)
    project = pyproject["project"]
    declared = [*pyproject["build-system"]["requires"], *project["dependencies"]]
    declared += chain.from_iterable(project["optional-dependencies"].values())
    for wanted in map(Requirement, declared):
        if wanted.name != "slurm-simctl":
            assert wanted.specifier.contains(locked[canonicalize_name(wanted.name)]), wanted.name


def test_make_help_names_each_target_that_the_readme_needs(repository_root: Path) -> None:
    """`make` alone says what can be made, so nobody has to read the Makefile."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    listed = execute(make, "-s", cwd=repository_root)
    assert listed.returncode == 0, listed.stderr
    shown = {line.split()[0] for line in listed.stdout.splitlines() if line.startswith("  ")}
    assert {"setup", "demo", "test", "bench", "check", "format", "wheel", "clean"} <= shown
