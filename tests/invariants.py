"""What holds in every random run."""

from tests.cluster import Ran

FUNCTIONS = [
    *("switch_p_job_preinit", "switch_p_job_init", "switch_p_job_attach", "switch_p_job_fini"),
    *("switch_p_job_postfini", "slurm_ckpt_stepd_prefork", "switch_p_build_jobinfo"),
    *("switch_p_unpack_jobinfo role=slurmd", "switch_p_unpack_jobinfo role=manager"),
    *("switch_p_unpack_jobinfo role=srun", "init role=manager", "switch_p_job_step_complete"),
    *("become_user", "setsid role=session", "fork role=session", "fork role=manager"),
    *("slurm_ckpt_free_job", "switch_p_pack_jobinfo role=srun", "create_container"),
]


SCRIPTS = [
    "srun ./quick",
    "srun ./slow & srun ./quick & wait",
    "srun ./quick && srun -N1 ./slow; exit 3",
    "trap 'srun ./quick' TERM; srun ./slow",
    "srun -n1 ./wild",
    "sleep 5; srun false || srun ./quick",
    "for i in 1 2 3; do srun ./quick; done",
]


def check(ran: Ran) -> None:
    """Check that every job ended, unless the run says what it waits for.

    What holds of the calls and messages in between `run` has checked: the built-in orderings.
    """
    for row in ran.result.rows:
        assert "COMPLETING" not in row.state or ran.result.stalled
        assert row.state != "RUNNING" or ran.result.stalled
