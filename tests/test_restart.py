"""slurmctld stops in good order and starts again: what survives it, and what may go wrong."""

import random

import pytest

from simctl.plugin import Buf
from tests.cluster import Ran, run
from tests.entries import entries

ELAN = "slurm_conf: {SwitchType: switch/elan}\n"
LINES = entries(
    "0s alice srun -N2 -n4 sleep 60",
    "1s bob sbatch -N2 --wrap 'srun sleep 30'",
    "{at: 10s, fault: {restart: slurmctld, for: 30s}}",
    "20s bob squeue",
    "3m bob srun -N1 true",
)


def controller(ran: Ran, since_us: int, until_us: int) -> list[str]:
    """Return slurmctld's plugin calls in a stretch of time, with job or step."""
    return [
        f"{each.name.split('_', 2)[2] if '_' in each.name else each.name} "
        f"{each.step or each.job or ''}".strip()
        for each in ran.all(kind="plugin", daemon="slurmctld")
        if since_us <= each.time_us <= until_us
    ]


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_state_is_saved_and_restored_in_order(model: str) -> None:
    """Global state first, then each job's records and each step's credential, packed and read."""
    ran = run(ELAN + LINES, model=model)
    guide = model == "guide"
    assert controller(ran, 10_000_000, 10_000_000) == [
        *("libstate_save", "pack_job 1", "pack_jobinfo 1.0", "pack_job 1.0", "pack_job 2"),
        *(["fini", "fini"] if guide else []),
    ]
    assert controller(ran, 40_000_000, 43_000_000)[: -1 if guide else None] == [
        *("init", "init", "libstate_restore"),
        *("alloc_job 1", "unpack_job 1"),
        *(["alloc_jobinfo 1.0"] if guide else []),
        *("unpack_jobinfo 1.0", "alloc_job 1.0", "unpack_job 1.0"),
        *("alloc_job 2", "unpack_job 2"),
    ]
    inits = [each.pid for each in ran.all("init", daemon="slurmctld", plugin="switch/elan")]
    assert len(set(inits)) == 2
    asked = ran.all("REQUEST_NODE_REGISTRATION_STATUS", phase="send")
    assert {each.time_us for each in asked} == {44_000_000}


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_what_runs_goes_on_and_the_allocator_remembers(model: str) -> None:
    """The step ends on its credential's copy; programs go on counting where they stopped."""
    ran = run(ELAN + LINES, model=model)
    assert [row.state for row in ran.result.rows] == ["COMPLETED"] * 3
    assert "Unable to contact slurm controller" in ran.stderr(2)
    over = ran.one("switch_p_job_step_complete", step="1.0")
    unpacked = ran.one("switch_p_unpack_jobinfo", daemon="slurmctld")
    assert over.args["switch_job"] == unpacked.args["switch_job"]  # type: ignore[index]
    assert over.rc == 0
    saved = ran.world.disk.view("slurmctld", 0).read(
        f"{ran.world.scenario.slurm_conf.state_save_location}/qsw_state"
    )
    buffer = Buf(saved)
    numbers = [buffer.unpack32() for _ in range(4)]
    assert numbers[2:] == [3, 0]


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_step_whose_credential_cannot_be_read_is_lost(model: str) -> None:
    """It is told, released, and never told as over; the job goes on and ends by its srun."""
    fault = '  - {at: 5s, fault: {fail: "switch_p_unpack_jobinfo daemon=slurmctld"}}\n'
    ran = run(ELAN + LINES.replace("timeline:\n", f"timeline:\n{fault}"), model=model)
    assert ran.one("incomplete_state").step == "1.0"
    assert len(ran.all("slurm_ckpt_free_job", step="1.0")) == 1
    assert ran.all("switch_p_job_step_complete", step="1.0") == []
    lost = ran.one("switch_p_unpack_jobinfo", daemon="slurmctld").args["switch_job"]  # type: ignore[index]
    freed = ran.all("switch_p_free_jobinfo", daemon="slurmctld", args_switch_job=lost)
    assert len(freed) == 1
    states = [event.args["to"] for event in ran.all("step_state", step="1.0")]  # type: ignore[index]
    assert states == ["RUNNING", "COMPLETED"], "who reads the trace sees that it is no more"
    assert ran.job(1)[0] == "COMPLETED"


@pytest.mark.parametrize("failing", ["slurm_ckpt_alloc_job", "slurm_ckpt_unpack_job"])
def test_a_step_whose_checkpoint_record_cannot_be_read_is_lost(failing: str) -> None:
    """Where no record is made nothing is unpacked into one, and there is none to release."""
    fault = f'  - {{at: 5s, fault: {{fail: "{failing} step=1.0 daemon=slurmctld"}}}}\n'
    ran = run(ELAN + LINES.replace("timeline:\n", f"timeline:\n{fault}"))
    failed = ran.one(failing, step="1.0", rc=-1)
    later = [event for event in ran.all(kind="plugin", step="1.0") if event.seq > failed.seq]
    names = [event.name for event in later if event.role == "slurmctld"]
    assert names == ["switch_p_free_jobinfo", "slurm_ckpt_free_job"]
    assert ran.one("incomplete_state").step == "1.0"
    assert ran.all("switch_p_job_step_complete", step="1.0") == []


def test_a_credential_that_slurmctld_makes_no_record_for_ends_it() -> None:
    """As it does when a step is made: it cannot go on without memory."""
    fault = '  - {at: 5s, fault: {fail: "switch_p_alloc_jobinfo daemon=slurmctld"}}\n'
    ran = run(ELAN + LINES.replace("timeline:\n", f"timeline:\n{fault}"))
    failed = ran.one("switch_p_alloc_jobinfo", daemon="slurmctld", rc=-1)
    assert failed.seq < ran.one("fatal", daemon="slurmctld").seq
    unpacked = ran.all("switch_p_unpack_jobinfo", role="slurmctld")
    assert [each for each in unpacked if each.seq > failed.seq] == []


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_slurmctld_that_cannot_restore_stays_down(model: str) -> None:
    """A restore that fails is fatal; whoever waits for it is named, and nothing hangs."""
    fault = '  - {at: 5s, fault: {fail: "switch_p_libstate_restore"}}\n'
    ran = run(ELAN + LINES.replace("timeline:\n", f"timeline:\n{fault}"), model=model)
    assert len(ran.all("fatal", daemon="slurmctld")) == 1
    assert ran.all("slurm_ckpt_unpack_job") == []
    assert ran.result.stalled


def test_away_for_longer_than_limits_and_node_timeouts() -> None:
    """What was due meanwhile happens at once when it is back; nodes are not taken for dead."""
    text = entries(
        "0s alice sbatch -N1 -t1 --wrap 'srun sleep 6000'",
        "{at: 10s, fault: {restart: slurmctld, for: 10m}}",
        head="slurm_conf: {SlurmdTimeout: 30}\n",
    )
    ran = run(text)
    row = ran.result.rows[0]
    assert row.state == "TIMEOUT"
    assert 610_000_000 <= row.end_us <= 650_000_000
    assert all("DOWN" not in each.args["to"] for each in ran.all("node_state"))  # type: ignore[index]


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("switch", ["elan", "federation"])
@pytest.mark.parametrize("seed", range(6))
def test_random_runs_with_restarts_lose_nothing(seed: int, switch: str, model: str) -> None:
    """Every job ends, each credential is told as over once, and no resource is left."""
    chance = random.Random(seed)
    lines = []
    for number in range(1, 11):
        wide = f"-N{chance.randint(1, 2)} -n{chance.randint(2, 4)}"
        sleep = f"sleep {chance.randint(1, 60)}"
        how = chance.choice([f"srun {wide} {sleep}", f"sbatch {wide} --wrap 'srun {sleep}'"])
        lines.append(f'  - {{at: {chance.randint(0, 120)}s, as: alice, run: "{how}"}}\n')
        if chance.random() < 0.3:
            lines.append(f"  - {{at: {chance.randint(20, 150)}s, run: scancel {number}}}\n")
    for _ in range(3):
        at, away = chance.randint(1, 150), chance.choice(["0s", "1s", "5s", "20s"])
        lines.append(f"  - {{at: {at}s, fault: {{restart: slurmctld, for: {away}}}}}\n")
    text = f"slurm_conf: {{SwitchType: switch/{switch}}}\ntimeline:\n" + "".join(lines)
    ran = run(text, model=model, schedule="random", seed=seed)
    assert ran.result.stalled == ()
    assert {each.rc for each in ran.all("switch_p_job_step_complete")} <= {0}
    built = {str(each.step) for each in ran.all("switch_p_build_jobinfo", rc=0)}
    over = [str(each.step) for each in ran.all("switch_p_job_step_complete")]
    assert sorted(over) == sorted(built)
    assert ran.all("switch_p_job_init", rc=-1) == []
    for node in ("n1", "n2"):
        view = ran.world.disk.view(node, 0)
        if switch == "elan" and view.is_dir("/run/qsnet/prg"):
            assert view.listdir("/run/qsnet/prg") == []
        if switch == "federation" and view.is_dir("/var/lib/sni"):
            assert all(
                view.read(f"/var/lib/sni/{name}") == b"" for name in view.listdir("/var/lib/sni")
            )


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("switch", ["elan", "federation"])
def test_a_step_that_the_saved_state_does_not_know_keeps_what_it_has(
    switch: str, model: str
) -> None:
    """Saving fails: what its credential names is taken again, and nobody else gets it."""
    text = entries(
        '{at: 5s, fault: {fail: "switch_p_libstate_save"}}',
        "0s alice srun -N2 -n2 sleep 60",
        "{at: 10s, fault: {restart: slurmctld, for: 1s}}",
        "20s bob srun -N2 -n2 sleep 5",
        head=f"slurm_conf: {{SwitchType: switch/{switch}, SelectType: select/cons_tres}}\n",
    )
    ran = run(text, model=model)
    assert [row.state for row in ran.result.rows] == ["COMPLETED"] * 2
    assert ran.all("switch_p_job_init", rc=-1) == []
    assert ran.result.rows[1].end_us == pytest.approx(25_000_000, abs=100_000)


def test_a_restart_asked_for_while_slurmctld_is_away_starts_it() -> None:
    """There is nothing to stop, and the start that was due later finds slurmctld there."""
    text = entries(
        "0s alice srun -N2 sleep 60",
        "{at: 10s, fault: {restart: slurmctld, for: 100s}}",
        "{at: 20s, fault: {restart: slurmctld, for: 1s}}",
    )
    ran = run(text)
    times = [event.time_us for event in ran.events]
    assert times == sorted(times)
    restored = [each.time_us for each in ran.all("switch_p_libstate_restore")]
    assert restored == [0, 21_000_000]
    assert ran.job()[0] == "COMPLETED"


def test_a_node_that_dies_while_slurmctld_is_away_is_given_its_time() -> None:
    """Silence is counted from the restart on: nobody has pinged it before."""
    text = entries(
        "0s alice sbatch --no-requeue -w n2 --wrap 'sleep 6000'",
        "{at: 10s, fault: {restart: slurmctld, for: 10m}}",
        "{at: 20s, fault: {crash: n2}}",
        head="slurm_conf: {SlurmdTimeout: 30}\n",
    )
    ran = run(text)
    down = [each for each in ran.all("node_state") if "DOWN" in each.args["to"]]  # type: ignore[index]
    assert [each.args["node"] for each in down] == ["n2"]  # type: ignore[index]
    assert 640_000_000 <= down[0].time_us <= 660_000_000
    assert ran.job()[0] == "NODE_FAIL"


@pytest.mark.parametrize("kind", ["switch", "checkpoint"])
def test_plugins_are_unloaded_in_the_guide_after_everything_is_packed(kind: str) -> None:
    """Fini is the last that the old process asks of a plugin, and init the first of the new one."""
    ran = run(ELAN + LINES)
    old, new = dict.fromkeys(each.pid for each in ran.all("init", daemon="slurmctld"))
    for pid in (old, new):
        calls = [
            each for each in ran.all(kind="plugin", pid=pid) if str(each.plugin)[:6] == kind[:6]
        ]
        assert (calls[0].name, calls[-1].name) == ("init", "fini")


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("fault", ["crash: slurmctld, saved: true", "stop: slurmctld"])
@pytest.mark.parametrize("died_s", [5, 30])
def test_a_client_that_missed_the_end_of_its_job_is_told_again(
    died_s: int, fault: str, model: str
) -> None:
    """Of one that was purged, too: what slurmctld had yet to send again has died with it."""
    ran = run(
        entries(
            "0s alice salloc -N2 sleep 600",
            "1s bob salloc -N2 sleep 5",
            "{at: 2s, fault: {drop: SRUN_JOB_COMPLETE}}",
            "3s bob scancel 2",
            f"{{at: {died_s}s, fault: {{{fault}}}}}",
            "{at: 40s, fault: {start: slurmctld}}",
            head="slurm_conf: {MinJobAge: 5}\n",
        ),
        model=model,
    )
    assert ran.result.stalled == ()
    assert [event.time_us // 1_000_000 for event in ran.all("SRUN_JOB_COMPLETE", phase="send")] == [
        *(3, 40),
    ]
    waited = next(each for each in ran.result.commands if each.user == "bob")
    assert "Job allocation 2 has been revoked" in waited.stderr
