"""When slurmctld's records are packed and written, and what a slurmd does once it is back."""

from pathlib import Path

import pytest

from tests.cluster import Ran, began, run
from tests.moments import BOTH, THREE_NODES, ran_with, timeline
from tests.test_moments_of_restart import ENTERS, KEEPS_BOOKS

SAVES = "options: {state_saves: always}\n"


def test_records_are_read_once_slurmctld_knows_what_follows_from_its_tables() -> None:
    """What is on which node is found again before plugins are asked for what they hold."""
    lines = timeline(
        "at: 0s, as: alice, run: \"sbatch --wrap 'sleep 60'\"",
        "at: 10s, fault: {restart: slurmctld, for: 1s}",
    )
    ran = run(lines, cluster=THREE_NODES, model="modern")
    (read,) = ran.all("slurm_ckpt_unpack_job")
    unknown = [each.seq for each in ran.all("node_state", args_to="UNKNOWN")]
    assert len(unknown) == 2
    assert max(unknown) < read.seq


def test_a_slurmctld_that_dies_while_plugins_pack_has_not_stopped(tmp_path: Path) -> None:
    """Files that it writes then say so: the next one tells of allocations again."""
    packs = """
    def __init__(self):
        self.packed = 0
    async def slurm_ckpt_pack_job(self, jobinfo, buffer, protocol_version):
        self.packed += 1
        buffer.pack32(self.packed)
        if now() >= 10:
            await slurmctld.signal_step(1, 0, 18)
            await sleep(1)
    def slurm_ckpt_unpack_job(self, jobinfo, buffer, protocol_version):
        buffer.unpack32()
    """
    ran = ran_with(
        tmp_path,
        "",
        timeline(
            'at: 0s, as: alice, run: "srun -N1 sleep 60"',
            'at: 1s, as: alice, run: "salloc -N1 sleep 60"',
            "at: 10s, fault: {stop: slurmctld}",
            "at: 12500ms, fault: {crash: slurmctld}",
            "at: 20s, fault: {start: slurmctld}",
        ),
        checkpoint=packs,
    )
    told = ran.all("RESPONSE_RESOURCE_ALLOCATION", phase="send", job=2)
    assert [each.time_us // 1_000_000 for each in told] == [1, 20]


def test_the_next_save_is_five_seconds_after_the_last_began(tmp_path: Path) -> None:
    """However long plugins take to pack."""
    packs = """
    async def slurm_ckpt_pack_job(self, jobinfo, buffer, protocol_version):
        await sleep(2)
    """
    ran = ran_with(
        tmp_path,
        "",
        SAVES
        + timeline(
            "at: 1s, as: alice, run: \"sbatch --wrap 'sleep 30'\"",
            "at: 6s, as: alice, run: scontrol update jobid=1 name=another",
        ),
        checkpoint=packs,
        model="modern",
    )
    packed = [began(each) // 1_000_000 for each in ran.all("slurm_ckpt_pack_job")]
    assert packed[:2] == [5, 10]


def test_nothing_is_packed_where_nothing_has_changed() -> None:
    """A question is no reason for a save."""
    lines = timeline(
        "at: 1s, as: alice, run: \"sbatch --wrap 'sleep 60'\"",
        "at: 20s, as: alice, run: squeue",
    )
    ran = run(SAVES + lines, model="modern")
    packed = {each.time_us // 1_000_000 for each in ran.all("slurm_ckpt_pack_job")}
    assert packed
    assert 20 not in packed


@BOTH
@pytest.mark.parametrize("deed", ["restart: slurmctld, for: 1s", "crash: slurmctld, saved: true"])
def test_records_of_all_jobs_are_packed_whatever_they_are_at(model: str, deed: str) -> None:
    """Of tasks that run and that wait, of a job that was requeued, of one that is held or over."""
    lines = timeline(
        "at: 0s, as: alice, run: \"sbatch -N1 --array=0-1%1 --wrap 'sleep 60'\"",
        "at: 0s, as: alice, run: \"sbatch -N1 --wrap 'sleep 60'\"",
        'at: 0s, as: alice, run: "sbatch -N1 -H --wrap true"',
        'at: 0s, as: alice, run: "sbatch -N1 --wrap true"',
        "at: 2s, as: alice, run: scontrol requeue 2",
        f"at: 9s, fault: {{{deed}}}",
        "at: 20s, fault: {start: slurmctld}",
        "at: 30s, as: alice, run: scontrol release 3",
    )
    ran = run(lines, cluster=THREE_NODES, model=model)
    packed = [each for each in ran.all("slurm_ckpt_pack_job") if each.time_us == 9_000_000]
    read = ran.all("slurm_ckpt_unpack_job")
    assert sorted(int(str(each.job)) for each in packed) == [1, 2, 3, 4, 5]
    assert sorted(int(str(each.job)) for each in read) == [1, 2, 3, 4, 5]
    assert {row.job_id: row.restarts for row in ran.result.rows}[2] == 1
    assert {row.state for row in ran.result.rows} == {"COMPLETED"}


@BOTH
def test_one_that_dies_as_if_it_had_saved_has_packed_once(model: str) -> None:
    """Each record of a job and of a step, in the order of a save."""
    lines = timeline(
        'at: 0s, as: alice, run: "srun -N1 sleep 60"',
        "at: 10s, fault: {crash: slurmctld, saved: true}",
        "at: 20s, fault: {start: slurmctld}",
    )
    ran = run(lines, model=model)
    packed = [each for each in ran.all(kind="plugin") if each.time_us == 10_000_000]
    assert [each.name for each in packed] == [
        *("slurm_ckpt_pack_job", "switch_p_pack_jobinfo", "slurm_ckpt_pack_job")
    ]


def test_what_a_report_makes_a_plugin_enter_is_packed_behind_it(tmp_path: Path) -> None:
    """Model guide writes it before the report is answered."""
    ran = ran_with(
        tmp_path,
        ENTERS,
        SAVES + timeline('at: 0s, as: alice, run: "srun -N1 sleep 9"'),
        checkpoint=KEEPS_BOOKS,
    )
    entered = ran.one("slurm_ckpt_comp")
    packed = ran.all("slurm_ckpt_pack_job", step="1.0")
    assert [each.seq > entered.seq for each in packed] == [False, True]


# A slurmd that has to say what was lost, or could not be said.


def registered(ran: Ran) -> list[int]:
    """Return when n1 has tried to register, in seconds."""
    made = ran.all("MESSAGE_NODE_REGISTRATION_STATUS", phase="send", node="n1")
    return [each.time_us // 1_000_000 for each in made]


@BOTH
def test_a_slurmd_that_has_registered_says_what_it_could_not_and_no_more(model: str) -> None:
    """It registers when it is asked."""
    text = "slurm_conf: {Epilog: /e}\nprograms: {/e: {runs: 5s}}\n" + timeline(
        "at: 0s, as: alice, run: \"sbatch --wrap 'sleep 3'\"",
        "at: 5s, fault: {crash: slurmctld}",
        "at: 70s, fault: {start: slurmctld}",
    )
    ran = run(text, model=model)
    told = [each.time_us // 1_000_000 for each in ran.all("MESSAGE_EPILOG_COMPLETE", phase="send")]
    assert told[0] == 8
    assert told[-1] >= 70
    assert registered(ran) == [0, 74]


@BOTH
def test_a_slurmd_that_could_not_register_does_so_as_soon_as_slurmctld_is_back(model: str) -> None:
    """Once; and when it is asked again."""
    ran = run(
        timeline(
            "at: 0s, as: alice, run: \"sbatch --wrap 'sleep 100'\"",
            "at: 5s, fault: {crash: slurmctld}",
            "at: 6s, fault: {crash: slurmd@n1}",
            "at: 7s, fault: {start: slurmd@n1}",
            "at: 70s, fault: {start: slurmctld}",
        ),
        model=model,
    )
    assert registered(ran) == [0, 7, 70, 74]


def test_a_slurmd_tries_once_to_register_where_slurmctld_is_gone_again() -> None:
    """The node's switch is asked once for each try."""
    ran = run(
        timeline(
            "at: 0s, as: alice, run: \"sbatch --wrap 'sleep 100'\"",
            "at: 5s, fault: {crash: slurmctld}",
            "at: 6s, fault: {crash: slurmd@n1}",
            "at: 7s, fault: {start: slurmd@n1}",
            "at: 70500ms, fault: {start: slurmctld}",
            "at: 70800ms, fault: {crash: slurmctld}",
            "at: 90s, fault: {start: slurmctld}",
        )
    )
    assert registered(ran) == [0, 7, 71, 90, 94]
    assert len(ran.all("switch_p_build_node_info", node="n1")) == 5


def test_what_the_switch_has_to_say_of_a_suspension_is_unpacked_once(tmp_path: Path) -> None:
    """Not of a copy of the message."""
    methods = """
    def switch_p_job_suspend_info_get(self, switch_job, suspend_info):
        return 1
    def switch_p_job_suspend_info_unpack(self, buffer):
        return 1
    """
    ran = ran_with(
        tmp_path,
        methods,
        timeline(
            "at: 0s, fault: {duplicate: REQUEST_SUSPEND_INT, by: 1s}",
            'at: 0s, as: alice, run: "srun -N1 sleep 30"',
            "at: 5s, run: scontrol suspend 1",
            "at: 9s, run: scontrol resume 1",
        ),
        model="modern",
    )
    assert len(ran.all("REQUEST_SUSPEND_INT", phase="receive")) == 3
    assert len(ran.all("switch_p_job_suspend_info_unpack")) == 2


@BOTH
@pytest.mark.parametrize(
    ("dead", "suspended", "over_s"),
    [("n2", False, 200), ("n2 n3", False, 24), ("n2 n3", True, 24)],
)
def test_a_step_whose_srun_is_gone_is_over_once_no_node_runs_it(
    model: str, dead: str, suspended: bool, over_s: int
) -> None:
    """What its nodes run is known when they register with a slurmctld that was started again."""
    text = "files:\n  two.sh: |\n    #!/bin/sh\n    srun -N2 -w n2,n3 sleep 200\n"
    lines = timeline(
        'at: 0s, as: alice, run: "sbatch -N3 --no-requeue two.sh"',
        *(["at: 5s, run: scontrol suspend 1"] if suspended else []),
        "at: 10s, fault: {crash: slurmctld, saved: true}",
        "at: 11s, fault: {crash: n1}",
        *(f"at: 12s, fault: {{crash: stepd 1.0@{node}}}" for node in dead.split()),
        "at: 20s, fault: {start: slurmctld}",
    )
    ran = run(text + lines, model=model, cluster=THREE_NODES)
    over = ran.one("switch_p_job_step_complete", step="1.0")
    # The step daemon of n3 tries for 2.3 s to tell srun how its task ended.
    late_s = 2 if over_s == 200 and model == "modern" else 0
    assert over.time_us // 1_000_000 == over_s + late_s
    assert ran.job()[0] == "NODE_FAIL"
