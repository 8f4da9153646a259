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
