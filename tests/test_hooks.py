"""The checks around every plugin call: place, user, what can be copied."""

from pathlib import Path

import pytest

from simctl.kernel.procs import RunsAs
from simctl.plugins.hooks import NULL, MisplacedCallError
from simctl.plugins.points.declare import Point
from simctl.plugins.points.switch import (
    switch_p_copy_jobinfo,
    switch_p_job_attach,
    switch_p_job_fini,
    switch_p_job_preinit,
)
from simctl.plugins.registry import PluginError
from simctl.scenario.load import read_scenario
from simctl.world import World
from tests.cluster import STEP, TWO_NODES, run, with_plugin


@pytest.mark.parametrize(
    ("model", "point", "role", "runs_as"),
    [
        ("guide", switch_p_job_preinit, "slurmd", RunsAs.ROOT),
        ("guide", switch_p_job_preinit, "manager", RunsAs.USER),
        ("guide", switch_p_job_fini, "manager", RunsAs.ROOT),
        ("guide", switch_p_job_fini, "session", RunsAs.ROOT),
        ("guide", switch_p_job_attach, "session", RunsAs.USER),
        ("guide", switch_p_job_attach, "task", RunsAs.ROOT),
        ("modern", switch_p_job_fini, "session", RunsAs.USER),
        ("modern", switch_p_copy_jobinfo, "slurmctld", RunsAs.SLURM_USER),
    ],
)
def test_a_call_in_the_wrong_process_or_as_the_wrong_user_is_our_bug(
    model: str, point: Point, role: str, runs_as: RunsAs
) -> None:
    """The check is always on: it ends the run, naming the function and both places."""
    world = World(read_scenario(TWO_NODES, file="s.yaml"), model=model)
    process = world.procs.add(
        world.login, ppid=1, daemon="slurmstepd", role=role, uid=0, runs_as=runs_as
    )
    call = world.site.hooks.call(point, process, NULL)
    with pytest.raises(MisplacedCallError, match=rf"{point.name} was called in {role}"):
        call.send(None)


def test_state_that_no_fork_could_copy_is_named(tmp_path: Path) -> None:
    """A lock in a plugin's memory: the error names the attribute and says what would do."""
    keys = with_plugin(tmp_path, setup="self.guard = threading.Lock()")
    with pytest.raises(PluginError, match=r"attribute 'guard' cannot be copied.*__deepcopy__"):
        run(keys + STEP, folder=tmp_path)


def test_a_plugin_may_say_how_it_is_copied(tmp_path: Path) -> None:
    """With a __deepcopy__ of its own the same plugin runs."""

    def __deepcopy__(self, memo):  # type: ignore[no-untyped-def] # noqa: N807
        return type(self)()

    keys = with_plugin(tmp_path, __deepcopy__, setup="self.guard = threading.Lock()")
    assert run(keys + STEP, folder=tmp_path).job() == ("COMPLETED", "0:0", "None")


PLUGIN = """\
from simctl.plugin import *


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Bare(BaseException):
    pass


class X(SwitchPlugin):
    plugin_type = "switch/x"
    plugin_name = "does one odd thing"

    {what} switch_p_job_init(self, switch_job, uid):
        {body}
"""

KEYS = 'plugins: ["./x.py:X"]\nslurm_conf: {SwitchType: switch/x}\n'


def odd(tmp_path: Path, body: str, *, what: str = "def", recording: bool = True) -> World:
    """Run a step whose job_init consists of *body*."""
    (tmp_path / "x.py").write_text(PLUGIN.format(what=what, body=body))
    scenario = read_scenario(TWO_NODES + KEYS + STEP, file=str(tmp_path / "s.yaml"))
    world = World(scenario)
    if recording:
        world.trace.add_sink(world.events.append)
    result = world.run()
    # The cluster goes on to its end: every node's plugin is taken down.
    assert result.stalled == ()
    assert [row.state for row in result.rows] == ["COMPLETED"]
    return world


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise ValueError('odd')", "ValueError: odd (x.py, line 18, in switch_p_job_init)"),
        ("raise Odd", "Odd: a Odd that raises RuntimeError when it is shown"),
        ("raise Bare('odd')", "Bare: odd"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise StopIteration", "StopIteration"),
        ("raise BaseExceptionGroup('g', [KeyboardInterrupt()])", "BaseExceptionGroup: g"),
        ("raise ValueError('\\ud800')", "ValueError: \\ud800"),
        ("self.switch_p_job_init(switch_job, uid)", "RecursionError"),
        ("raise SlurmError('x')", "SlurmError takes an error number"),
        ("return 'text'", "returned 'text'; expected SLURM_SUCCESS or SLURM_ERROR"),
        ("return float('nan')", "returned nan"),
        ("return 10 ** 40", "returned 1000000000"),
        ("return object()", "returned <object object>"),
        ("return (each for each in 'ab')", "returned <generator object"),
        ("del disk", "UnboundLocalError"),
    ],
)
def test_whatever_a_plugin_raises_or_returns_is_a_failure_and_is_named(
    tmp_path: Path, body: str, text: str, *, recording: bool
) -> None:
    """The same with the trace on and off; the text is the same on every machine."""
    world = odd(tmp_path, body, recording=recording)
    ((function, problem),) = world.trace.complaints
    assert function == "switch_p_job_init"
    assert text in problem
    assert world.trace.complaints[function, problem] == 2


@pytest.mark.parametrize(
    "body", ["raise Bare('odd')", "raise StopIteration", "raise GeneratorExit"]
)
def test_so_it_is_in_a_function_that_takes_time(tmp_path: Path, body: str) -> None:
    """Raised after a wait."""
    world = odd(tmp_path, f"await sleep(1)\n        {body}", what="async def")
    ((function, _),) = world.trace.complaints
    assert function == "switch_p_job_init"


def test_waiting_in_real_time_is_refused_and_named(tmp_path: Path) -> None:
    """Trio's own sleep has no place in virtual time."""
    with pytest.raises(PluginError, match="switch_p_job_init waits in real time; `await sleep"):
        odd(tmp_path, "import trio\n        await trio.sleep(1)", what="async def")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("env[5] = 'x'", "left env[5] = 'x'; the names and values of an environment are texts"),
        ("env['X'] = 5", "left env['X'] = 5"),
        ("env['A=B'] = 'x'", "no environment can hold that"),
        ("env[''] = 'x'", "no environment can hold that"),
        ("env['X'] = 'a\\0b'", "no environment can hold that"),
        ("env['X'] = '\\ud800'", "no environment can hold that"),
    ],
)
def test_an_environment_that_no_task_could_have_fails_the_task(
    tmp_path: Path, change: str, text: str
) -> None:
    """It counts as a failed attach."""
    parameters = "self, switch_job, env, nodeid, procid, nnodes, nprocs, rank"
    (tmp_path / "x.py").write_text(
        PLUGIN.format(what="def", body="pass")
        + f"\n    def switch_p_job_attach({parameters}):\n        {change}\n"
    )
    ran = run(KEYS + STEP, folder=tmp_path)
    assert {event.rc for event in ran.all("switch_p_job_attach")} == {-1}
    ((function, problem),) = ran.world.trace.complaints
    assert function == "switch_p_job_attach"
    assert text in problem


def test_a_plugin_whose_methods_cannot_be_looked_up_fails_each_call(tmp_path: Path) -> None:
    """An odd __getattribute__ is the plugin's fault, and told as such."""
    (tmp_path / "x.py").write_text(
        PLUGIN.format(what="def", body="pass")
        + "\n    def __getattribute__(self, name):\n        raise ValueError('no ' + name)\n"
    )
    ran = run(KEYS + STEP, folder=tmp_path)
    assert ran.world.trace.complaints
    assert {function for function, _ in ran.world.trace.complaints} == {"init"}


@pytest.mark.parametrize("name", ["init", "fini"])
def test_init_and_fini_have_their_places_as_well(name: str) -> None:
    """A fork has neither."""
    world = World(read_scenario(TWO_NODES, file="s.yaml"))
    process = world.procs.add(
        world.login, ppid=1, daemon="slurmstepd", role="session", uid=0, runs_as=RunsAs.ROOT
    )
    hooks = world.site.hooks
    process.memory.instances["switch"] = object()
    call = hooks.load(process, "switch") if name == "init" else hooks.unload(process, "switch")
    with pytest.raises(MisplacedCallError, match=f"{name} was called in session"):
        call.send(None)
