"""What slurmd knows of credentials lies in a file of its node, and outlives it as that does."""

import pytest

from tests.cluster import Ran, run
from tests.crashes import states, timeline

SCRIPTS = (
    "slurm_conf: {Prolog: /etc/prolog, Epilog: /etc/epilog}\n"
    "programs: {/etc/prolog: {runs: 1s}, /etc/epilog: {runs: 1s}}\n"
)
FILE = "/var/spool/slurmd/cred_state"
COPIES = "0 {duplicate: REQUEST_LAUNCH_TASKS, by: 20s, times: 2}"
BOTH = pytest.mark.parametrize("model", ["guide", "modern"])


def refusals(ran: Ran) -> list[tuple[str, object]]:
    """Return the nodes that refused a launch, each with the errno."""
    return [(str(e.node), e.errno) for e in ran.all("refused", args_rpc="REQUEST_LAUNCH_TASKS")]


@BOTH
@pytest.mark.parametrize("end", ["restart: slurmd@n1, for: 2s", "crash: slurmd@n1"])
def test_another_slurmd_refuses_what_was_revoked_or_used(model: str, end: str) -> None:
    """The copy of a launch comes when the job is over, and when its step is."""
    ran = run(
        SCRIPTS
        + timeline(
            COPIES,
            "1 srun -N1 -w n1 sleep 5",
            "1 sbatch -N1 -w n2 --wrap 'srun sleep 5; sleep 60'",
            f"14 {{{end}}}",
            "15 {restart: slurmd@n2, for: 1s}",
            *(["16 {start: slurmd@n1}"] if "crash" in end else []),
        ),
        model=model,
    )
    assert sorted(refusals(ran)) == [
        ("n1", "ESLURMD_CREDENTIAL_REVOKED"),
        ("n2", "ESLURMD_CREDENTIAL_REPLAYED"),
    ]
    assert len(ran.all("prolog")) == len(ran.all("epilog")) == 2
    assert ran.world.disk.view("n1", 0).exists(FILE)
    assert ran.result.damages == ()


@BOTH
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("truncate", "it ends after record"),
        ("flip", "damaged"),
        ("version", "it is of version 2, and this slurmd reads 1"),
        ("foreign", "it is of cluster 'elsewhere', and this is 'cluster'"),
    ],
)
def test_a_damaged_file_is_told_and_what_is_older_launches_nothing(
    model: str, how: str, why: str
) -> None:
    """Nobody knows what was revoked; a job that runs goes on, and its next step has its prolog."""
    ran = run(
        SCRIPTS
        + timeline(
            COPIES,
            "1 srun -N1 -w n1 sleep 5",
            "2 sbatch -N1 -w n1 --wrap 'sleep 20; srun sleep 5'",
            f"14 {{corrupt: {FILE}, how: {how}, host: n1}}",
            "15 {restart: slurmd@n1, for: 1s}",
        ),
        model=model,
    )
    told = ran.one("incomplete_credentials", daemon="slurmd", node="n1")
    assert why in str(told.args)
    assert [each.startswith(f"{FILE} of n1: ") for each in ran.result.damages] == [True]
    assert refusals(ran)[:1] == [("n1", "ESLURMD_CREDENTIAL_REVOKED")]
    assert len(ran.all("switch_p_job_attach")) == 2
    assert set(states(ran).values()) == {"COMPLETED"}


def test_a_disk_that_takes_nothing_keeps_what_it_had() -> None:
    """What slurmd learns meanwhile dies with it, which is told."""
    ran = run(
        timeline(
            "1 srun -N1 -w n1 sleep 1",
            "4 {disk: n1, how: full, for: 1h}",
            "5 srun -N1 -w n1 sleep 1",
            "10 {restart: slurmd@n1, for: 1s}",
        )
    )
    assert len(ran.all("credentials_not_saved", node="n1")) == 1
    text = ran.world.disk.view("n1", 0).read_text(FILE)
    assert '"key":[1,0]' in text
    assert '"key":[2,0]' not in text


def test_a_node_without_jobs_has_no_such_file() -> None:
    """A slurmd that starts there misses nothing."""
    ran = run(timeline("1 srun -N1 -w n2 sleep 1", "5 {restart: slurmd@n1, for: 1s}"))
    assert not ran.world.disk.view("n1", 0).exists(FILE)
    assert ran.world.disk.view("n2", 0).stat(FILE).mode == 0o600
    assert ran.world.disk.view("n2", 0).listdir("/var/spool/slurmd") == ["cred_state"]
    assert ran.result.damages == ()


@BOTH
@pytest.mark.parametrize("by", [119, 121, 299])
def test_an_epilog_is_not_run_again_for_a_message_that_was_long_under_way(
    model: str, by: int
) -> None:
    """A message is good for 300 s, and that the job is over is remembered for longer.

    Another job that ends shortly before has slurmd forget what is too old to matter.
    """
    ran = run(
        "slurm_conf: {Epilog: /etc/epilog}\nprograms: {/etc/epilog: {runs: 1s}}\n"
        + timeline(
            f"0 {{duplicate: REQUEST_TERMINATE_JOB, by: {by}s, times: 1}}",
            "0 sbatch -w n1 --wrap 'sleep 2'",
            f"{by - 5} sbatch -w n1 --wrap 'sleep 2'",
            f"{by + 25} squeue",
        ),
        model=model,
    )
    heard = ran.all("REQUEST_TERMINATE_JOB", phase="receive", job=1)
    assert [each.time_us // 1_000_000 for each in heard] == [2, by + 2]
    assert [each.job for each in ran.all("epilog")] == [1, 2]
