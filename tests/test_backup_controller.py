"""A backup controller takes over after SlurmctldTimeout, with the same state, and gives it back."""

import pytest

from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from tests.cluster import TWO_NODES, run
from tests.crashes import BOTH, launches, states, timeline

CONF = (
    "slurm_conf: {BackupController: spare, SlurmctldTimeout: 30, "
    "StateSaveLocation: /shared/slurm, SwitchType: switch/elan}\n"
)


@BOTH
def test_the_backup_takes_over_after_the_timeout(model: str) -> None:
    """It pings three times a timeout; jobs go on, commands are answered by it."""
    ran = run(
        CONF
        + timeline(
            "1 sbatch -N2 --wrap 'srun sleep 60'",
            "20 {crash: slurmctld}",
            "70 squeue",
            "80 sbatch --wrap 'sleep 5'",
        ),
        model=model,
    )
    taken = ran.one("takeover")
    assert 50_000_000 <= taken.time_us <= 60_000_000
    pings = ran.all("REQUEST_PING", role="backup", phase="send")
    assert [each.time_us for each in pings] == [30_000_000, 40_000_000, 50_000_000]
    assert ran.result.commands[1].exit == 0
    assert states(ran) == {1: "COMPLETED", 2: "COMPLETED"}
    assert launches(ran, 1) == 1
    assert ran.world.ctld.process.host.name == "spare"


@BOTH
def test_the_primary_takes_control_back(model: str) -> None:
    """It asks for control when it starts; the backup saves first, and stands by again."""
    ran = run(
        CONF
        + timeline(
            "1 sbatch -N2 --wrap 'srun sleep 300'",
            "20 {crash: slurmctld}",
            "100 sbatch --wrap 'sleep 5'",
            "120 {start: slurmctld}",
            "200 {crash: slurmctld, saved: true}",
        ),
        model=model,
    )
    asked = ran.one("REQUEST_CONTROL", phase="receive")
    saved = ran.first("switch_p_libstate_save")
    restored = [each.seq for each in ran.all("switch_p_libstate_restore")]
    assert asked.seq < saved < restored[2]
    assert len(ran.all("takeover")) == 2
    assert states(ran) == {1: "COMPLETED", 2: "COMPLETED"}
    assert launches(ran, 1) == 1


@BOTH
def test_a_backup_unloads_its_plugins_before_it_answers_that_it_has_no_control_any_more(
    model: str,
) -> None:
    """As any slurmctld that stops; the primary loads its own after that."""
    ran = run(
        'plugins: ["tests.staging_plugin:Staging"]\n'
        + CONF.replace("}", ", BurstBufferType: burst_buffer/staging}")
        + timeline(
            "1 sbatch --wrap 'sleep 200'", "20 {crash: slurmctld}", "120 {start: slurmctld}"
        ),
        model=model,
    )
    answered = ran.all("RESPONSE_SLURM_RC", args_answers="REQUEST_CONTROL", phase="send")[0]
    before = ran.all(kind="plugin", pid=answered.pid)
    others = ["switch/elan", "checkpoint/none"] if model == "guide" else []
    unloaded = [each.plugin for each in before if each.name == "fini"]
    assert unloaded == ["burst_buffer/staging", *others]
    assert before[-1].seq < answered.seq
    loaded = [each for each in ran.all("init", role="slurmctld") if each.time_us >= 120_000_000]
    assert loaded[0].seq > answered.seq


def test_a_backup_that_is_dead_takes_nothing_over() -> None:
    """The run stalls, as without one; a fault that meets nobody is told."""
    ran = run(
        CONF
        + timeline(
            "1 sbatch --wrap 'sleep 60'",
            "5 {crash: spare}",
            "6 {crash: spare}",
            "20 {crash: slurmctld}",
        )
    )
    assert ran.all("takeover") == []
    assert ran.result.stalled
    assert len(ran.result.missed) == 1


def test_a_primary_that_is_back_in_time_keeps_control() -> None:
    """A restart that is shorter than the timeout."""
    ran = run(CONF + timeline("1 sbatch --wrap 'sleep 60'", "10 {restart: slurmctld, for: 15s}"))
    assert ran.all("takeover") == []
    assert states(ran) == {1: "COMPLETED"}


@BOTH
def test_the_backup_in_control_may_die_too(model: str) -> None:
    """The primary starts with what it has saved."""
    ran = run(
        CONF
        + timeline(
            "1 sbatch --wrap 'sleep 300'",
            "20 {crash: slurmctld, saved: true}",
            "100 {crash: spare, saved: true}",
            "150 {start: slurmctld}",
            "160 {start: spare}",
        ),
        model=model,
    )
    assert states(ran) == {1: "COMPLETED"}
    assert ran.result.missed == ()


@pytest.mark.parametrize(
    ("conf", "why"),
    [
        ("BackupController: spare", "needs it where all hosts share it"),
        ("BackupController: n1, StateSaveLocation: /shared/slurm", "a host of its own"),
        ("SlurmctldTimeout: 0", "SlurmctldTimeout"),
    ],
)
def test_a_backup_that_could_not_take_over_is_refused(conf: str, why: str) -> None:
    """Both have to see the same state files."""
    with pytest.raises(ScenarioErrors, match=why):
        read_scenario(f"{TWO_NODES}slurm_conf: {{{conf}}}\n", file="s.yaml")
