"""A command that finds nobody tries each second for MessageTimeout, the backup controller too."""

from pathlib import Path

import pytest

from simctl.wire.ids import SECOND
from tests.cluster import Ran, run
from tests.crashes import states, timeline

BACKUP = (
    "slurm_conf: {SlurmctldHost: [slurmctld, spare], SlurmctldTimeout: 30, MessageTimeout: 5, "
    "StateSaveLocation: /shared/slurm}\n"
)


def ends(ran: Ran) -> list[tuple[str, int, int]]:
    """Return each command of the timeline with the second it ended in, and its exit status."""
    found = ran.all(kind="command", node="login", phase="exit")
    return [(each.name, each.time_us // SECOND, int(each.rc or 0)) for each in found]


def test_a_command_given_during_a_short_restart_succeeds() -> None:
    """At its first try after slurmctld is back: of tries a second apart from its own beginning."""
    words = ("squeue", "sinfo", "scontrol show partition", "sbatch --wrap true", "srun true")
    ran = run(
        timeline(
            "1 {restart: slurmctld, for: 5s}",
            *(f"2 {word}" for word in words),
            "3 salloc true",
            "3 scancel 700",
        )
    )
    assert {(name, at_s) for name, at_s, _ in ends(ran)} == {
        *(("squeue", 6), ("sinfo", 6), ("scontrol", 6), ("sbatch", 6), ("srun", 6)),
        *(("salloc", 6), ("scancel", 6)),
    }
    assert {each.exit for each in ran.result.commands} == {0}
    sent = ran.all("REQUEST_JOB_INFO", phase="send", daemon="squeue")
    assert [each.time_us for each in sent] == [2 * SECOND, 6 * SECOND]
    assert set(states(ran).values()) == {"COMPLETED"}


@pytest.mark.parametrize(("limit_s", "end_s"), [(10, 14), (4, 8), (1, 5)])
def test_a_command_during_a_long_outage_fails_after_message_timeout(
    limit_s: int, end_s: int
) -> None:
    """With as many tries as MessageTimeout has seconds, the first of them at once."""
    ran = run(
        f"slurm_conf: {{MessageTimeout: {limit_s}}}\n"
        + timeline("1 {restart: slurmctld, for: 100s}", "5 squeue", "5 salloc true")
    )
    assert {each.exit for each in ran.result.commands} == {1}
    assert "slurm_load_jobs error: Unable to contact slurm controller (conn" in ran.stderr()
    assert "salloc: error: Job submit/allocate failed: Unable to contact" in ran.stderr(1)
    assert [at_s for _, at_s, _ in ends(ran)] == [end_s] * 2
    assert ran.result.stalled == ()


def test_a_command_of_a_script_tries_as_well() -> None:
    """On its node: the script finds neither of the two changed by a restart."""
    script = "sleep 3; squeue -h -o %i && srun true && echo both"
    ran = run(
        timeline(f"0 sbatch --wrap '{script}'", "2 {crash: slurmctld}", "8 {start: slurmctld}")
    )
    assert ran.world.disk.read("slurm-1.out", "/home/alice", host="n1") == "1\nboth\n"


def test_ping_and_shutdown_ask_once() -> None:
    """What tells whether the controller is there does not wait for it."""
    ran = run(
        timeline("1 {restart: slurmctld, for: 5s}", "2 scontrol ping").replace("alice", "root")
    )
    assert "is DOWN" in ran.result.commands[0].stdout
    assert ends(ran) == [("scontrol", 2, 1)]


def test_a_plugin_that_asks_slurmctld_tries_as_well(tmp_path: Path) -> None:
    """What libslurm does for a command it does for everybody."""
    plugin = tmp_path / "asks.py"
    plugin.write_text(
        "from simctl.plugin import SwitchPlugin, now, rpc\n"
        "class Asks(SwitchPlugin):\n"
        "    plugin_type = 'switch/asks'\n"
        "    plugin_name = 'asks'\n"
        "    async def switch_p_job_attach(\n"
        "        self, switch_job, env, nodeid, procid, nnodes, nprocs, rank\n"
        "    ):\n"
        "        await rpc.slurm_ping()\n"
    )
    ran = run(
        f"plugins: ['{plugin}:Asks']\nslurm_conf: {{SwitchType: switch/asks}}\n"
        + timeline(
            "1 srun -N1 sleep 1",
            "switch_p_job_preinit {restart: slurmctld, for: 6s}",
        )
    )
    attach = ran.one("switch_p_job_attach")
    assert attach.rc == 0
    assert attach.time_us // SECOND == 7


def test_a_backup_in_standby_says_so_until_it_has_taken_over() -> None:
    """It is asked where the primary does not answer; half a SlurmctldTimeout later all again."""
    ran = run(
        BACKUP
        + timeline("1 sbatch --wrap 'sleep 100'", "20 {crash: slurmctld, saved: true}", "32 squeue")
    )
    asked = ran.all("REQUEST_JOB_INFO", phase="receive", role="backup")
    assert [each.time_us // SECOND for each in asked] == [32, 47]
    assert ran.one("takeover").time_us == 50 * SECOND
    assert ends(ran)[1:] == [("squeue", 62, 0)]
    assert "wrap" in ran.result.commands[1].stdout


def test_a_backup_that_stays_in_standby_ends_the_command_in_the_end() -> None:
    """The primary is there, and only this host cannot see it: 1.5 SlurmctldTimeout is enough."""
    ran = run(
        BACKUP + timeline("1 {cut: [login, slurmctld], for: 10m}", "2 squeue", "3 sbatch --wrap :")
    )
    assert [at_s for _, at_s, _ in ends(ran)] == [47, 48]
    assert [each.errno for each in ran.result.commands] == ["ESLURM_IN_STANDBY_MODE"] * 2
    assert "slurm_load_jobs error: This slurmctld is a backup in standby" in ran.stderr()
    assert ran.all("takeover") == []


def test_a_dead_backup_is_passed_over() -> None:
    """The command then fails as without one."""
    ran = run(BACKUP + timeline("1 {crash: slurmctld}", "2 {crash: spare}", "3 squeue"))
    assert ends(ran) == [("squeue", 7, 1)]
