"""The loader: where plugins come from, what must fit, and what is told of those that do not."""

import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from simctl.cli import main
from simctl.plugin import CheckpointPlugin, SwitchPlugin
from simctl.plugins.fitting import check_class, slurm_version_number
from simctl.plugins.guard import PluginError
from simctl.plugins.importing import find
from simctl.plugins.registry import Registry, find_plugins
from tests.cluster import STEP, run

GOOD = """\
from simctl.plugin import SwitchPlugin


class Mine(SwitchPlugin):
    plugin_type = "switch/mine"
    plugin_name = "a plugin of a test"
"""

CONF = "slurm_conf: {SwitchType: switch/mine}\n"


def write(folder: Path, name: str = "mine.py", text: str = GOOD) -> Path:
    """Write a plugin's file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def install(folder: Path, package: str, entries: str) -> None:
    """Make what pip would: a distribution's metadata with entry points."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[simctl.plugins]\n{entries}\n")


def mistakes(kind: type[Any], model: str = "guide") -> str:
    """Return what is wrong with a class, or nothing."""
    try:
        check_class(kind, "here", model)
    except PluginError as error:
        return str(error)
    return ""


# Where plugins come from.


@pytest.mark.parametrize(
    "reference", ["./mine.py:Mine", "mine.py", "{folder}/mine.py:Mine", "mine:Mine", "mine.Mine"]
)
def test_a_scenario_names_a_file_or_a_module(tmp_path: Path, reference: str) -> None:
    """By path from its folder or absolute, with or without the only class; or by dotted name."""
    write(tmp_path)
    name = reference.format(folder=tmp_path)
    try:
        ran = run(f'plugins: ["{name}"]\n{CONF}{STEP}', folder=tmp_path)
    finally:
        sys.modules.pop("mine", None)
    assert ran.one("switch_p_job_preinit", node="n1").plugin == "switch/mine"


def test_a_dotted_name_goes_through_packages(tmp_path: Path) -> None:
    """Modules beside the scenario are found after the installed ones, and sys.path is restored."""
    write(tmp_path, "fabric/__init__.py", "")
    write(tmp_path, "fabric/plugins.py")
    before = list(sys.path)
    try:
        (found,) = find("fabric.plugins:Mine", tmp_path)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "fabric"]:
            del sys.modules[name]
    assert found.kind.plugin_type == "switch/mine"
    assert sys.path == before


def test_files_of_one_name_in_two_folders_do_not_meet(tmp_path: Path) -> None:
    """Each is a module of its own."""
    write(tmp_path / "a")
    write(tmp_path / "b", text=GOOD.replace("switch/mine", "switch/other"))
    (first,) = find("mine.py:Mine", tmp_path / "a")
    (second,) = find("mine.py:Mine", tmp_path / "b")
    assert (first.kind.plugin_type, second.kind.plugin_type) == ("switch/mine", "switch/other")


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    """Its folder is on the path while it is imported."""
    write(tmp_path, "neighbour_of_mine.py", "NAME = 'from next door'\n")
    write(
        tmp_path,
        text="from neighbour_of_mine import NAME\n" + GOOD.replace('"a plugin of a test"', "NAME"),
    )
    try:
        (found,) = find("mine.py:Mine", tmp_path)
    finally:
        sys.modules.pop("neighbour_of_mine", None)
    assert found.kind.plugin_name == "from next door"


@pytest.mark.parametrize("name", ["switch/mine", "mine"])
def test_an_installed_plugin_needs_no_word_in_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By the entry-point group, under its type or any other name."""
    site = tmp_path / "site"
    write(site, "mine_installed.py")
    install(site, "mine-switch", f"{name} = mine_installed:Mine")
    monkeypatch.syspath_prepend(str(site))
    ran = run(CONF + STEP, folder=tmp_path)
    assert ran.one("switch_p_job_preinit", node="n1").plugin == "switch/mine"


@pytest.mark.parametrize("what", ["switch/mine", "mine_checked", "./copy.py"])
def test_an_installed_plugin_can_be_checked_by_each_of_its_names(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
) -> None:
    """By type, by module, and as the file that is being worked on."""
    site = tmp_path / "site"
    write(site, "mine_checked.py")
    write(tmp_path, "copy.py")
    install(site, "mine-switch", "switch/mine = mine_checked:Mine")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)
    assert main(["plugins", "check", "--model", "guide", what]) == 0
    assert "switch/mine: fine" in capsys.readouterr().out


def test_a_module_that_is_also_installed_is_one_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same class by two ways is no duplicate."""
    site = tmp_path / "site"
    write(site, "mine_twice.py")
    install(site, "mine-switch", "switch/mine = mine_twice:Mine")
    monkeypatch.syspath_prepend(str(site))
    ran = run(f'plugins: ["mine_twice:Mine"]\n{CONF}{STEP}', folder=tmp_path)
    assert ran.job()[0] == "COMPLETED"


def test_a_broken_installed_plugin_is_the_concern_of_those_who_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other runs go on; the run that names it is told why, and so is the listing."""
    site = tmp_path / "site"
    write(site, "broken_installed.py", "raise RuntimeError('no adapter')\n")
    install(site, "broken-switch", "switch/broken = broken_installed:Broken")
    monkeypatch.syspath_prepend(str(site))
    assert run(STEP, folder=tmp_path).job()[0] == "COMPLETED"
    with pytest.raises(PluginError, match=r"broken-switch.*RuntimeError: no adapter"):
        run("slurm_conf: {SwitchType: switch/broken}\n" + STEP, folder=tmp_path)
    assert main(["plugins", "list"]) == 2
    assert "cannot be used: plugin 'switch/broken'" in capsys.readouterr().out


def test_an_installed_plugin_under_another_type_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry says one type and its class another."""
    site = tmp_path / "site"
    write(site, "mine_misnamed.py", GOOD.replace("switch/mine", "switch/yours"))
    install(site, "misnamed", "switch/mine = mine_misnamed:Mine")
    monkeypatch.syspath_prepend(str(site))
    with pytest.raises(PluginError, match="offered as switch/mine, and its plugin_type is"):
        run(CONF + STEP, folder=tmp_path)


# Two of one type.


def test_two_of_one_type_are_refused_with_both_origins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files, a file and a bundled one, a file and an installed one, two installed ones."""
    write(tmp_path)
    write(tmp_path, "again.py")
    with pytest.raises(PluginError) as caught:
        run(f'plugins: ["./mine.py:Mine", "./again.py:Mine"]\n{CONF}{STEP}', folder=tmp_path)
    assert "'./again.py:Mine': switch/mine is there already, ./mine.py:Mine" in str(caught.value)

    write(tmp_path, "none.py", GOOD.replace("switch/mine", "switch/none"))
    with pytest.raises(PluginError, match=r"there already, bundled with simctl as SwitchNone"):
        run(f'plugins: ["./none.py:Mine"]\n{STEP}', folder=tmp_path)

    site = tmp_path / "site"
    write(site, "mine_first.py")
    write(site, "mine_second.py")
    install(site, "first", "switch/mine = mine_first:Mine")
    monkeypatch.syspath_prepend(str(site))
    with pytest.raises(PluginError, match=r"mine_first:Mine of first.*there already, ./mine.py"):
        run(f'plugins: ["./mine.py:Mine"]\n{CONF}{STEP}', folder=tmp_path)

    install(site, "second", "switch/mine = mine_second:Mine")
    with pytest.raises(PluginError) as caught:
        run(CONF + STEP, folder=tmp_path)
    assert "mine_first:Mine of first" in str(caught.value)
    assert "mine_second:Mine of second" in str(caught.value)


# What cannot be found.


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("./mien.py:Mine", "did you mean mine.py?"),
        ("./mine.py:Mein", "Mein is not there; plugin classes there: Mine; did you mean Mine?"),
        ("./mine.py:GOOD", "is not there"),
        ("./mine.py:os", "os is no class"),
        ("no_such_package.plugins:Mine", "there is no module 'no_such_package.plugins'"),
        ("./two.py", "several plugin classes in it; name one: A, B"),
        ("./empty.py", "there is no plugin class in it"),
        ("./syntax.py:X", "syntax.py:2: "),
        ("./raises.py:X", "importing ./raises.py failed: ZeroDivisionError: division by zero"),
        ("./leaves.py:X", "importing ./leaves.py failed: SystemExit: 3"),
        (":X", "expected a file and a class"),
    ],
)
def test_what_cannot_be_loaded_is_told(tmp_path: Path, reference: str, text: str) -> None:
    """What was asked, what stood in the way, and what is near; nothing of it stays behind."""
    write(tmp_path, text="import os\n" + GOOD)
    write(tmp_path, "two.py", GOOD.replace("Mine", "A") + GOOD.replace("Mine", "B"))
    write(tmp_path, "empty.py", "")
    write(tmp_path, "syntax.py", "x = 1\ndef f(:\n")
    write(tmp_path, "raises.py", "1 / 0\n")
    write(tmp_path, "leaves.py", "raise SystemExit(3)\n")
    before = (set(sys.modules), list(sys.path))
    with pytest.raises(PluginError) as caught:
        Registry().add(reference, tmp_path)
    assert text in str(caught.value)
    assert list(sys.path) == before[1]
    left = {name for name in set(sys.modules) - before[0] if "simctl_plugin" in name}
    assert not [name for name in left if "syntax" in name or "raises" in name]


def test_mistakes_of_all_plugins_come_at_once_with_their_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` tells them all, at the line of the scenario that names them."""
    write(tmp_path, text=GOOD.replace("switch/mine", "swich/mine").replace("plugin_name", "x"))
    write(tmp_path, "raises.py", "1 / 0\n")
    path = tmp_path / "s.yaml"
    path.write_text(
        "nodes: [{name: n1}]\n"
        "partitions: [{name: p, nodes: n1, default: true}]\n"
        "plugins:\n"
        "  - ./mine.py:Mine\n"
        "  - ./raises.py:X\n"
    )
    assert main(["check", str(path)]) == 2
    err = capsys.readouterr().err
    assert f"{path.name}:4:5: plugin './mine.py:Mine': plugin_type is 'swich/mine'" in err
    assert "did you mean 'switch/mine'?" in err
    assert f"{path.name}:4:5: plugin './mine.py:Mine': plugin_name is missing" in err
    assert f"{path.name}:5:5: plugin './raises.py:X': importing" in err


def test_a_type_that_is_nowhere_names_those_there_are(tmp_path: Path) -> None:
    """And says how to name one's own."""
    with pytest.raises(
        PluginError,
        match=r"no plugin 'switch/mine'; known: switch/elan, switch/federation, switch/none",
    ):
        run(CONF + STEP, folder=tmp_path)


# What must fit.


class Base(SwitchPlugin):
    """What the classes below begin with."""

    plugin_type: ClassVar[str] = "switch/x"
    plugin_name: ClassVar[str] = "x"


def test_a_class_with_a_base_fits() -> None:
    """The base has a stub for every function."""
    assert mistakes(Base) == ""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"plugin_type": "switch"}, "plugin_type is 'switch'; expected 'switch/...'"),
        ({"plugin_type": 3}, "plugin_type is 3; expected 'switch/...'"),
        ({"plugin_type": "checkpont/x"}, "did you mean 'checkpoint/x'?"),
        ({"plugin_name": ""}, "plugin_name is missing"),
        ({"plugin_name": b"x"}, "plugin_name is b'x'"),
        ({"plugin_version": "1"}, "plugin_version is '1'"),
        ({"plugin_version": True}, "plugin_version is True"),
        ({"plugin_version": -1}, "plugin_version is -1"),
        ({"switch_p_job_init": 5}, "switch_p_job_init is a int"),
        (
            {"switch_p_job_init": lambda self, job, uid: None},
            "it is `def switch_p_job_init(self, job, uid)`, the guide wants "
            "`def switch_p_job_init(self, switch_job, uid)`",
        ),
        (
            {"switch_p_job_init": lambda self, switch_job, *, uid: None},
            "it is `def switch_p_job_init(self, switch_job, *, uid)`",
        ),
        ({"switch_p_job_init": staticmethod(lambda switch_job, uid: None)}, "is a staticmethod"),
        ({"init": lambda self, now: None}, "it is `def init(self, now)`"),
        ({"switch_p_job_atach": lambda self: None}, "did you mean `def switch_p_job_attach(self,"),
        ({"slurm_ckpt_op": lambda self: None}, "slurm_ckpt_op is no function of a switch plugin"),
        ({"__init__": lambda self, adapter: None}, "__init__ needs adapter"),
    ],
)
def test_what_does_not_fit_is_told(body: dict[str, Any], text: str) -> None:
    """Each with what it is and what would do."""
    assert text in mistakes(type("Mine", (Base,), body))


def test_a_generator_is_no_function_of_a_guide() -> None:
    """A stray yield makes a function that does nothing when it is called."""

    class Yields(Base):
        def switch_p_node_init(self) -> Any:
            yield 1

    assert "switch_p_node_init is a generator" in mistakes(Yields)


def test_functions_of_other_slurms_may_be_there() -> None:
    """Those that 18.08 or today's Slurm call are no mistakes."""
    later = ("switch_p_slurmctld_init", "switch_p_reconfig", "switch_p_fs_init", "switch_p_mine")
    body = {name: lambda self: None for name in later}
    assert mistakes(type("Mine", (Base,), body)) == ""


def test_without_a_base_every_function_must_be_there_and_all_missing_ones_are_told() -> None:
    """One error that names each, with the signature it should have."""

    class Bare:
        plugin_type = "checkpoint/x"

    with pytest.raises(PluginError) as caught:
        check_class(Bare, "here")
    told = caught.value.mistakes
    assert len([each for each in told if "is missing; the guide wants `def" in each]) == 10
    assert "plugin 'here': plugin_name is missing; any text that describes the plugin will do" in (
        told
    )


def test_without_a_base_a_whole_plugin_runs(tmp_path: Path) -> None:
    """No class of simctl's is needed."""
    names = [name for name in vars(CheckpointPlugin) if name.startswith("slurm_ckpt_")]
    import inspect  # noqa: PLC0415 - to write the signatures

    body = ""
    for name in names:
        parameters = ", ".join(inspect.signature(getattr(CheckpointPlugin, name)).parameters)
        body += f"    def {name}({parameters}): return None\n"
    text = "class Bare:\n    plugin_type = 'checkpoint/bare'\n    plugin_name = 'bare'\n" + body
    write(tmp_path, "bare.py", text)
    scenario = (
        f'plugins: ["./bare.py:Bare"]\nslurm_conf: {{CheckpointType: checkpoint/bare}}\n{STEP}'
    )
    ran = run(scenario, folder=tmp_path)
    assert ran.all("slurm_ckpt_stepd_prefork")[0].plugin == "checkpoint/bare"
    assert ran.job()[0] == "COMPLETED"


# Versions.


@pytest.mark.parametrize(
    ("version", "model", "fits"),
    [
        (0, "guide", True),
        (1, "guide", True),
        (65535, "modern", True),
        (slurm_version_number(19, 5, 8), "guide", True),
        (slurm_version_number(19, 5, 8), "modern", False),
        (slurm_version_number(18, 8, 9), "modern", True),
        (slurm_version_number(20, 11, 0), "guide", False),
    ],
)
def test_a_version_is_of_the_interface_or_of_this_slurm(
    version: int, model: str, *, fits: bool
) -> None:
    """A small number is any version of the interface; a large one must be the simulated Slurm's."""
    kind = type("Mine", (Base,), {"plugin_version": version})
    assert (mistakes(kind, model) == "") is fits
    if not fits:
        assert "is that of Slurm" in mistakes(kind, model)


def test_a_version_of_another_slurm_is_refused_by_a_run(tmp_path: Path) -> None:
    """With both versions, and what would do."""
    write(tmp_path, text=GOOD + f"    plugin_version = {slurm_version_number(20, 11, 0)}\n")
    text = f'plugins: ["./mine.py:Mine"]\n{CONF}{STEP}'
    with pytest.raises(PluginError, match=r"that of Slurm 20\.11\.0, and model guide.*19\.05\.8"):
        run(text, folder=tmp_path)


# What a process does with it.


def test_a_constructor_that_fails_in_one_process_fails_that_load(tmp_path: Path) -> None:
    """The step daemon's launch fails; slurmctld and slurmd, which could load it, go on."""
    write(
        tmp_path,
        text="from simctl.plugin import process\n" + GOOD + "    def __init__(self):\n"
        "        if process().role == 'manager': raise OSError('no device')\n",
    )
    ran = run(f'plugins: ["./mine.py:Mine"]\n{CONF}{STEP}', folder=tmp_path)
    assert [each.function for each in ran.result.complaints] == ["__init__"]
    assert "OSError: no device" in ran.result.complaints[0].problem
    assert ran.all("switch_p_node_fini")
    assert not ran.all("switch_p_job_preinit")


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_init_comes_before_anything_and_fini_after_everything(tmp_path: Path, model: str) -> None:
    """In each process that loads it; forks have neither."""
    write(
        tmp_path,
        text=GOOD + "    def init(self): pass\n    def fini(self): pass\n",
    )
    ran = run(f'plugins: ["./mine.py:Mine"]\n{CONF}{STEP}', folder=tmp_path, model=model)
    calls = ran.all(kind="plugin", plugin="switch/mine")
    by_pid: dict[int, list[str]] = {}
    for event in calls:
        by_pid.setdefault(int(str(event.pid)), []).append(event.name)
    roles = {int(str(event.pid)): str(event.role) for event in calls}
    for pid, names in by_pid.items():
        loads = roles[pid] not in ("session", "task")
        assert (names[0] == "init") is loads
        assert names.count("init") == loads
        ends = loads and (model == "guide" or roles[pid] == "slurmd")
        assert (names[-1] == "fini") is ends
        assert names.count("fini") == ends


def test_find_plugins_knows_types_files_and_modules(tmp_path: Path) -> None:
    """What `plugins check` takes."""
    write(tmp_path)
    assert find_plugins("switch/none", tmp_path)[0].origin.startswith("bundled")
    assert find_plugins("mine.py", tmp_path)[0].kind.__name__ == "Mine"
