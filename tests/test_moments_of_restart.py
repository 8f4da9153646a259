"""What slurmctld tells plugins of what it finds when it is back."""

from pathlib import Path

import pytest
from msgspec import UNSET

from tests.cluster import run
from tests.moments import BOTH, SEES_JOBS, ran_with, said, timeline

# A restart.


def test_the_switch_hears_of_no_step_whose_checkpoint_record_is_lost(tmp_path: Path) -> None:
    """Both its records are read before job_step_allocated tells of it."""
    methods = """
    def switch_p_job_step_allocated(self, switch_job, nodelist):
        log.info(nodelist)
    """
    lines = [
        'at: 0s, as: alice, run: "srun -N2 sleep 60"',
        "at: 2s, fault: {restart: slurmctld, for: 1s}",
    ]
    lost = 'at: 1s, fault: {fail: "slurm_ckpt_unpack_job step=1.0"}'
    ran = ran_with(tmp_path, methods, timeline(*lines), model="modern")
    assert said(ran) == ["n[1-2]"]
    ran = ran_with(tmp_path, methods, timeline(lines[0], lost, lines[1]), model="modern")
    assert said(ran) == []
    assert ran.one("incomplete_state").step == "1.0"


@pytest.mark.parametrize(
    "away",
    [
        ("at: 2s, fault: {restart: slurmctld, for: 1s}",),
        (
            "at: 2s, run: scontrol suspend 1",
            "at: 9s, fault: {crash: slurmctld, saved: true}",
            "at: 15s, fault: {start: slurmctld}",
            "at: 20s, run: scontrol resume 1",
        ),
    ],
    ids=["stopped", "crashed and suspended"],
)
def test_the_switch_hears_of_the_nodes_of_each_step_that_was_found(
    tmp_path: Path, away: tuple[str, ...]
) -> None:
    """Not of those of its job."""
    methods = """
    def switch_p_job_step_allocated(self, switch_job, nodelist):
        log.info(nodelist)
    """
    text = (
        "files:\n  two.sh: |\n    #!/bin/sh\n    srun -N2 sleep 60 &\n    srun -N1 -w n2 sleep 60\n"
    )
    ran = ran_with(
        tmp_path,
        methods,
        text
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N2 two.sh"',
            *away,
        ),
        model="modern",
    )
    assert said(ran) == ["n[1-2]", "n2"]


@BOTH
def test_what_plugins_keep_of_jobs_and_steps_is_saved_and_restored_whole(model: str) -> None:
    """Of every step, and of a job that is over and not forgotten yet; by one version of Slurm's."""
    text = "files:\n  two.sh: |\n    #!/bin/sh\n    srun -N2 sleep 60 &\n    srun -N1 sleep 60\n"
    lines = timeline(
        "at: 0s, as: alice, run: \"sbatch --wrap 'true'\"",
        'at: 1s, as: alice, run: "sbatch -N2 two.sh"',
        "at: 9s, fault: {restart: slurmctld, for: 1s}",
    )
    ran = run(text + lines, model=model)
    for way in ("pack", "unpack"):
        records = ran.all(f"slurm_ckpt_{way}_job", args_protocol_version=18 << 8 | 8)
        about = [each.step if each.step is not UNSET else each.job for each in records]
        assert about[:4] == [1, 2, "2.0", "2.1"]
        at_9_s = ran.all(f"switch_p_{way}_jobinfo", role="slurmctld")
        assert {"2.0", "2.1"} <= {each.step for each in at_9_s if each.time_us >= 9e6}


@BOTH
def test_a_record_that_cannot_be_read_is_released_as_one_that_can(
    tmp_path: Path, model: str
) -> None:
    """The job goes on with it, empty as it is."""
    ran = ran_with(
        tmp_path,
        "",
        timeline(
            "at: 0s, as: alice, run: \"sbatch --wrap 'sleep 60'\"",
            'at: 1s, fault: {fail: "slurm_ckpt_unpack_job job=1"}',
            "at: 9s, fault: {restart: slurmctld, for: 1s}",
        ),
        checkpoint=SEES_JOBS,
        model=model,
    )
    assert ran.one("incomplete_state").job == 1
    assert said(ran) == ["['a record'] 1 COMPLETED"]


def test_nodes_are_asked_in_their_time_however_long_the_switch_takes_to_start(
    tmp_path: Path,
) -> None:
    """Every twentieth ping from the start of slurmctld on, not from the end of its reconfig."""
    methods = """
    async def switch_p_reconfig(self):
        await sleep(10)
    """
    lines = timeline("at: 1s, as: alice, run: \"sbatch --wrap 'sleep 2500'\"")
    ran = ran_with(tmp_path, methods, lines, model="modern")
    asked = ran.all("REQUEST_NODE_REGISTRATION_STATUS", phase="send")
    assert {each.time_us for each in asked} == {2_000_000_000}


KEEPS_BOOKS = """
def slurm_ckpt_alloc_job(self):
    return []
def slurm_ckpt_pack_job(self, jobinfo, buffer, protocol_version):
    buffer.packstr(" ".join(jobinfo))
def slurm_ckpt_unpack_job(self, jobinfo, buffer, protocol_version):
    jobinfo.extend(buffer.unpackstr().split())
def slurm_ckpt_op(self, job_id, step_id, step_ptr, op, data, image_dir):
    (step_ptr or slurmctld.find_job(job_id)).check_job.append(f"op {op}")
def slurm_ckpt_comp(self, step_ptr, event_time, error_code, error_msg):
    step_ptr.check_job.append("comp")
def slurm_ckpt_free_job(self, jobinfo):
    log.info(" ".join(jobinfo))
"""


ENTERS = """
async def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
    from simctl.plugin import rpc
    await rpc.slurm_checkpoint_complete(1, 0, 7, 5, "text")
"""
START = "at: 15s, fault: {start: slurmctld}"
OPERATIONS = (
    "at: 0s, as: alice, run: \"sbatch --wrap 'srun sleep 100'\"",
    "at: 6s, as: alice, run: scontrol checkpoint able 1",
    "at: 7s, as: alice, run: scontrol checkpoint able 1.0",
)


@BOTH
@pytest.mark.parametrize(
    "away",
    [
        ("at: 9s, fault: {restart: slurmctld, for: 1s}",),
        (
            "at: 8s, as: alice, run: scontrol update jobid=1 name=another",
            "at: 14s, fault: {crash: slurmctld}",
            "at: 15s, fault: {start: slurmctld}",
        ),
        ("at: 9s, fault: {crash: slurmctld, saved: true}", "at: 15s, fault: {start: slurmctld}"),
    ],
    ids=["stopped", "crashed after a save", "crashed as if after a save"],
)
def test_what_a_plugin_has_entered_is_packed_before_the_state_is_written(
    tmp_path: Path, model: str, away: tuple[str, ...]
) -> None:
    """As slurmctld stops, and at each of its saves."""
    ran = ran_with(
        tmp_path,
        ENTERS,
        timeline(*OPERATIONS, *away),
        checkpoint=KEEPS_BOOKS,
        model=model,
        conf="JobCheckpointDir: /shared/ckpt",
    )
    assert said(ran) == ["comp op 0", "op 0"]


@pytest.mark.parametrize(
    ("model", "kept"), [("guide", ["comp op 0", "op 0"]), ("modern", ["comp", ""])]
)
def test_what_a_plugin_enters_in_its_records_outlives_a_crash_where_state_is_written_through(
    tmp_path: Path, model: str, kept: list[str]
) -> None:
    """Model guide packs a record after each call that may change it; modern every five seconds."""
    ran = ran_with(
        tmp_path,
        ENTERS,
        timeline(
            *OPERATIONS,
            "at: 9s, fault: {crash: slurmctld}",
            "at: 15s, fault: {start: slurmctld}",
        ),
        checkpoint=KEEPS_BOOKS,
        model=model,
        conf="JobCheckpointDir: /shared/ckpt",
    )
    assert [each.strip() for each in said(ran)] == kept
    packed = [each for each in ran.all("slurm_ckpt_pack_job") if each.time_us < 9_000_000]
    about = [str(each.step) if isinstance(each.step, str) else each.job for each in packed]
    assert about == ([1, "1.0", "1.0", 1, "1.0"] if model == "guide" else [1, "1.0"])


def test_what_a_plugin_enters_before_it_fails_outlives_a_crash_as_well(tmp_path: Path) -> None:
    """In model guide: a record is packed whatever the call that may have changed it came to."""
    books = KEEPS_BOOKS.replace('{op}")', '{op}")\n    raise SlurmError(22)')
    books = books.replace('("comp")', '("comp")\n    raise SlurmError(22)')
    ran = ran_with(
        tmp_path,
        ENTERS,
        timeline(*OPERATIONS, "at: 9s, fault: {crash: slurmctld}", START),
        checkpoint=books,
        conf="JobCheckpointDir: /shared/ckpt",
    )
    assert len(ran.all("slurm_ckpt_op", rc=-1)) == 2
    assert said(ran) == ["comp op 0", "op 0"]


def test_what_a_report_that_fails_makes_a_plugin_enter_outlives_a_crash(tmp_path: Path) -> None:
    """Though nothing else is asked about the step before slurmctld dies."""
    books = KEEPS_BOOKS.replace('("comp")', '("comp")\n    raise SlurmError(22)')
    ran = ran_with(
        tmp_path,
        ENTERS,
        timeline(OPERATIONS[0], "at: 9s, fault: {crash: slurmctld}", START),
        checkpoint=books,
    )
    assert ran.one("slurm_ckpt_comp").rc == -1
    assert said(ran) == ["comp", ""]


NUMBERS = """
def __init__(self):
    self.count = 0
def slurm_ckpt_alloc_job(self):
    self.count += 1
    return [self.count]
def slurm_ckpt_pack_job(self, jobinfo, buffer, protocol_version):
    buffer.pack32(jobinfo[0])
def slurm_ckpt_unpack_job(self, jobinfo, buffer, protocol_version):
    jobinfo[0] = buffer.unpack32()
def slurm_ckpt_free_job(self, jobinfo):
    log.info(f"{jobinfo and jobinfo[0]}")
"""
"""A checkpoint plugin that tells which of the records it has made is released."""


@BOTH
@pytest.mark.parametrize(
    ("away", "freed"),
    [
        ((), "3 2 1 4"),
        (("at: 9s, fault: {restart: slurmctld, for: 1s}",), "3 2 1 4"),
        (("at: 9s, fault: {crash: slurmctld, saved: true}", START), "3 2 1 4"),
        (
            (
                "at: 9s, fault: {restart: slurmctld, for: 1s}",
                'at: 8s, fault: {fail: "switch_p_unpack_jobinfo step=1.0 daemon=slurmctld"}',
            ),
            "None 3 1 4",
        ),
    ],
    ids=["no restart", "stopped", "crashed", "a credential is lost"],
)
def test_each_job_and_step_has_a_record_of_its_own(
    tmp_path: Path, model: str, away: tuple[str, ...], freed: str
) -> None:
    """Whatever happens in between, it is the one that was made for it that is released with it."""
    ran = ran_with(
        tmp_path,
        "",
        "files:\n  two.sh: |\n    #!/bin/sh\n"
        "    srun -n1 sleep 40 &\n    srun -n1 sleep 30\n    wait\n"
        + timeline(
            'at: 0s, as: alice, run: "sbatch two.sh"',
            'at: 1s, as: alice, run: "sbatch --begin=now+100 --wrap true"',
            "at: 50s, as: alice, run: scancel 2",
            *away,
        ),
        checkpoint=NUMBERS,
        model=model,
    )
    assert said(ran) == freed.split()


COPIES = """
def slurm_ckpt_copy_job(self, jobinfo):
    return [10 * jobinfo[0]]
"""


@BOTH
@pytest.mark.parametrize(
    "away",
    [
        (),
        ("at: 9s, fault: {restart: slurmctld, for: 1s}",),
        ("at: 9s, fault: {crash: slurmctld, saved: true}", START),
    ],
    ids=["no restart", "stopped", "crashed"],
)
def test_each_task_of_an_array_has_its_record_back(
    tmp_path: Path, model: str, away: tuple[str, ...]
) -> None:
    """The first has the one that was made, the next a copy, the last a copy of that."""
    ran = ran_with(
        tmp_path,
        "",
        timeline("at: 0s, as: alice, run: \"sbatch --array=0-2%1 --wrap 'sleep 20'\"", *away),
        checkpoint=NUMBERS + COPIES,
        model=model,
    )
    assert said(ran) == ["1", "10", "100"]
    assert {each.job for each in ran.all("slurm_ckpt_unpack_job")} == ({1, 2} if away else set())


CREDENTIALS = """
def switch_p_alloc_jobinfo(self):
    return []
def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
    switch_job.append(nodelist)
def switch_p_copy_jobinfo(self, switch_job):
    return list(switch_job)
def switch_p_pack_jobinfo(self, switch_job, buffer):
    buffer.packstr(" ".join(switch_job))
def switch_p_unpack_jobinfo(self, switch_job, buffer):
    switch_job.extend(buffer.unpackstr().split())
def switch_p_job_step_complete(self, switch_job, nodelist):
    log.info(" ".join(switch_job))
"""


@BOTH
@pytest.mark.parametrize(
    "away",
    [
        ("at: 9s, fault: {restart: slurmctld, for: 1s}",),
        ("at: 9s, fault: {crash: slurmctld, saved: true}", START),
    ],
    ids=["stopped", "crashed"],
)
@pytest.mark.parametrize(
    "deeds",
    [
        ("at: 5s, run: scontrol suspend 1", "at: 20s, run: scontrol resume 1"),
        ("at: 5s, run: scancel 1",),
    ],
    ids=["suspended", "completing"],
)
def test_a_step_has_its_credential_back_whatever_its_job_is_at(
    tmp_path: Path, model: str, deeds: tuple[str, ...], away: tuple[str, ...]
) -> None:
    """Its switch is told with it that the step is complete."""
    ran = ran_with(
        tmp_path,
        CREDENTIALS,
        "programs: {./app: {runs: 100s, on_signal: {TERM: ignore}}}\n"
        + timeline('at: 0s, as: alice, run: "srun -N2 ./app"', *deeds, *away),
        model=model,
    )
    assert said(ran) == ["n[1-2]"]
    assert ran.one("switch_p_job_step_complete").time_us > 20_000_000
    packed = ran.all("switch_p_pack_jobinfo", role="slurmctld", step="1.0")
    assert 9_000_000 in [each.time_us for each in packed]


@BOTH
def test_tasks_of_an_array_share_no_record_where_it_cannot_be_copied(
    tmp_path: Path, model: str
) -> None:
    """The first takes it, and those that wait still have none."""
    ran = ran_with(
        tmp_path,
        "",
        timeline(
            "at: 0s, fault: {fail: slurm_ckpt_copy_job}",
            'at: 0s, as: alice, run: "sbatch --array=0-1 --wrap true"',
        ),
        checkpoint=NUMBERS,
        model=model,
    )
    assert sorted(said(ran)) == ["1", "None"]


def test_burst_buffer_plugins_are_loaded_when_the_switch_has_read_its_configuration(
    tmp_path: Path,
) -> None:
    """As real Slurm's slurmctld does when it starts."""
    methods = """
    def switch_p_reconfig(self):
        pass
    """
    ran = ran_with(
        tmp_path,
        methods,
        timeline("at: 1s, as: alice, run: 'sbatch --wrap true'"),
        model="modern",
        also='./mine.py:OfCheckpoint", "tests.staging_plugin:Staging',
        conf="BurstBufferType: burst_buffer/staging",
    )
    loaded = ran.one("init", plugin="burst_buffer/staging")
    assert ran.one("switch_p_reconfig", role="slurmctld").seq < loaded.seq
