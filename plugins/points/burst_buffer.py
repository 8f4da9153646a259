"""The functions of the burst buffer plugin guide; slurmctld alone calls them, one at a time."""

from typing import Any, Final

from simctl.plugins.points.declare import NOWHERE, SLURMCTLD, OnError, Returns, point

_GLOSSARY: Final = {
    "job_ptr": "in/out: slurmctld's record of the job (JobRecord)",
    "uid": "in: who asks",
    "buffer": "in/out: the bytes, to be appended to",
    "protocol_version": "in: the version of the protocol that the bytes are for",
}

_ALL: Final = "15.08 to today"
_JOB_LOCKS: Final = "job write, node write, partition read"


@point(
    c="int bb_p_load_state(bool init_config)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    on_error=OnError.LOGGED,
    often=(
        "once while slurmctld starts, and before each scheduler pass of the main loop and of "
        "backfill"
    ),
    modern_often=(
        "once while slurmctld starts, when jobs are there; before each pass of the main loop, "
        "which runs every 60 s at least, and of backfill, every 30 s; not before one that an "
        "epilog sets off"
    ),
    failure="slurmctld logs it",
    locks="job write",
    versions=_ALL,
    glossary=_GLOSSARY,
    init_config="in: true while slurmctld starts",
)
def bb_p_load_state(init_config: bool) -> int:
    """Load the state of the burst buffer, when slurmctld starts and before it schedules."""
    raise AssertionError


@point(
    c="int bb_p_state_pack(uid_t uid, Buf buffer, uint16_t protocol_version)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    on_error=OnError.ANSWERED,
    often="once a request (`scontrol show burst`)",
    failure="the client gets the error number",
    versions=_ALL,
    glossary=_GLOSSARY,
)
def bb_p_state_pack(uid: int, buffer: Any, protocol_version: int) -> int:
    """Pack the state for a client that asks to see it."""
    raise AssertionError


@point(
    c="int bb_p_reconfig(void)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    on_error=OnError.LOGGED,
    often="once a reconfiguration",
    failure="slurmctld logs it",
    locks="job write",
    versions=_ALL,
    glossary=_GLOSSARY,
)
def bb_p_reconfig() -> int:
    """Read the configuration file again, when it may have changed."""
    raise AssertionError


@point(
    c="uint64_t bb_p_get_system_size(char *name)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.SIZE_MB,
    often="once while slurmctld starts, and once a reconfiguration",
    modern_arguments="nothing: slurmctld has looked the plugin up by its name",
    failure="it counts as 0",
    locks="TRES write",
    versions=_ALL + "; a plugin's has no argument",
    glossary=_GLOSSARY,
    name="in: the plugin's name; None asks for all of them",
)
def bb_p_get_system_size(name: str | None) -> int:
    """Tell the size of the burst buffer, for the table of trackable resources."""
    raise AssertionError


@point(
    c="int bb_p_job_validate(job_desc_msg_t *job_desc, uid_t submit_uid)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    on_error=OnError.REFUSE_JOB,
    often="once a submission, of jobs without burst buffer too",
    failure=(
        "the submission is refused with the error number, such as "
        "ESLURM_INVALID_BURST_BUFFER_REQUEST (2094); no job number is used up"
    ),
    locks=_JOB_LOCKS,
    versions=_ALL + "; today with an err_msg",
    glossary=_GLOSSARY,
    job_desc="in: what the submission asks for (JobDesc)",
    submit_uid="in: who submits",
)
def bb_p_job_validate(job_desc: Any, submit_uid: int) -> int:
    """Check a submission before it has a job id."""
    raise AssertionError


@point(
    c="int bb_p_job_validate2(job_record_t *job_ptr, char **err_msg)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    on_error=OnError.REFUSE_JOB,
    often="once a job, and once for each task split out of an array",
    failure=(
        "the job is gone, its number used up; error number and text go to the client. Of a "
        "split task nothing comes of it"
    ),
    locks=_JOB_LOCKS,
    versions=_ALL,
    glossary=_GLOSSARY,
    err_msg="out in C, the text of the SlurmError raised in Python: for who submits",
)
def bb_p_job_validate2(job_ptr: Any) -> int:
    """Check a new job once it has an id and its script is on disk."""
    raise AssertionError


@point(
    c="void bb_p_job_set_tres_cnt(job_record_t *job_ptr, uint64_t *tres_cnt, bool locked)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.VOID,
    often="at submission and at start",
    modern_often="once a start of the job; once a restart of slurmctld for jobs that have TRES",
    modern_moment="Directly after the job is RUNNING.",
    failure="it cannot fail",
    locks=_JOB_LOCKS,
    versions=_ALL,
    glossary=_GLOSSARY,
    tres_cnt="in/out: MB by TRES name, to be filled in",
    locked="in: whether slurmctld holds the TRES read lock",
)
def bb_p_job_set_tres_cnt(job_ptr: Any, tres_cnt: Any, locked: bool) -> None:
    """Enter what the job takes of the burst buffer into its TRES counts."""
    raise AssertionError


@point(
    c="time_t bb_p_job_get_est_start(job_record_t *job_ptr)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.TIME,
    often="at most once a backfill pass, for a job of which test_stage_in says -1",
    failure="the job counts as one that can start now",
    locks=_JOB_LOCKS,
    versions=_ALL,
    glossary=_GLOSSARY,
)
def bb_p_job_get_est_start(job_ptr: Any) -> int:
    """Estimate when the job could start, while backfill plans."""
    raise AssertionError


@point(
    c="int bb_p_job_try_stage_in(void)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    often=(
        "once a main pass that found a job waiting for its burst buffer, and once a backfill pass"
    ),
    modern_arguments="the waiting jobs, soonest first, and maybe none",
    failure="nothing",
    locks=_JOB_LOCKS,
    versions=_ALL + "; a plugin's gets a list of jobs",
    glossary=_GLOSSARY,
)
def bb_p_job_try_stage_in() -> int:
    """Give burst buffers to the jobs that are expected to start soonest."""
    raise AssertionError


@point(
    c="int bb_p_job_test_stage_in(job_record_t *job_ptr, bool test_only)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.THREE,
    on_error=OnError.JOB_WAITS,
    result=(
        "1 if the job may start, 0 while stage-in is under way, -1 if it has not begun or "
        "something is wrong"
    ),
    often="several times a job until it starts: at submission and in each pass",
    modern_often=(
        "in each pass; at a batch job's submission once with test_only, at an srun's request for "
        "nodes with test_only false and then true"
    ),
    failure=(
        "the job does not start: it waits for BurstBufferStageIn on 0, BurstBufferResources on -1"
    ),
    locks=_JOB_LOCKS,
    versions=_ALL,
    glossary=_GLOSSARY,
    test_only="in: if false, stage-in may be started",
)
def bb_p_job_test_stage_in(job_ptr: Any, test_only: bool) -> int:
    """Return whether the job's stage-in is complete, before it is given nodes."""
    raise AssertionError


@point(
    c="int bb_p_job_begin(job_record_t *job_ptr)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    on_error=OnError.HOLD_JOB,
    often="once a start of the job",
    modern_moment=(
        "The plugin may set CONFIGURING, and holds the launch back until it takes it off."
    ),
    failure="the job stays PENDING, held with priority 0; job_revoke_alloc is not called",
    locks=_JOB_LOCKS,
    versions=_ALL,
    glossary=_GLOSSARY,
)
def bb_p_job_begin(job_ptr: Any) -> int:
    """Claim the burst buffer, when nodes are chosen and before the job is RUNNING."""
    raise AssertionError


@point(
    c="int bb_p_job_revoke_alloc(job_record_t *job_ptr)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    often="at most once a begin",
    failure="nothing: the job waits again",
    locks=_JOB_LOCKS,
    modern_failure="nothing; but a CONFIGURING that begin has set stays, and the job never starts",
    versions="at the latest 19.05 to today; not in 15.08",
    glossary=_GLOSSARY,
)
def bb_p_job_revoke_alloc(job_ptr: Any) -> int:
    """Take back what begin did, when the job cannot have its nodes after all."""
    raise AssertionError


@point(
    c="int bb_p_job_start_stage_out(job_record_t *job_ptr)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    often=(
        "once a run of the job, however it ends, before its nodes are told to end it; not after "
        "`scancel --hurry`"
    ),
    failure="nothing: the job ends",
    locks=_JOB_LOCKS,
    versions=_ALL,
    glossary=_GLOSSARY,
)
def bb_p_job_start_stage_out(job_ptr: Any) -> int:
    """Start the stage-out, when the job completes."""
    raise AssertionError


@point(
    c="int bb_p_job_test_post_run(job_record_t *job_ptr)",
    guide=SLURMCTLD,
    modern=NOWHERE,
    returns=Returns.THREE,
    result="1 if it is complete, 0 while it is under way, -1 after a fatal error",
    often="polled while the job is COMPLETING",
    modern_often="never, but with `options: {bb_post_run_gate: true}`; then as in model guide",
    failure="0 keeps the job COMPLETING, -1 does not",
    locks=_JOB_LOCKS,
    versions="15.08 to today; since 16.05 slurmctld never calls it, and select/cray did to 17.11",
    glossary=_GLOSSARY,
)
def bb_p_job_test_post_run(job_ptr: Any) -> int:
    """Return whether what follows the job's run is complete."""
    raise AssertionError


@point(
    c="int bb_p_job_test_stage_out(job_record_t *job_ptr)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.THREE,
    on_error=OnError.KEEP_JOB,
    result="1 if it is complete, 0 while it is under way, -1 after a fatal error",
    often=(
        "polled every 60 s once the job is old enough to be purged, if it had a burst buffer; "
        "whenever a job is looked at that depends on it with `afterburstbuffer`"
    ),
    failure="on anything but 1 the job's record is kept, and jobs that depend on it wait",
    locks=_JOB_LOCKS,
    versions=_ALL,
    glossary=_GLOSSARY,
)
def bb_p_job_test_stage_out(job_ptr: Any) -> int:
    """Return whether the stage-out is complete, before the job is purged."""
    raise AssertionError


@point(
    c="int bb_p_job_cancel(job_record_t *job_ptr)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    on_error=OnError.ANSWERED,
    often="once a job that ends without nodes, or with `scancel --hurry`",
    failure="who cancels is told, with --hurry in stage-out; else nothing",
    locks=_JOB_LOCKS,
    versions=_ALL,
    glossary=_GLOSSARY,
)
def bb_p_job_cancel(job_ptr: Any) -> int:
    """End any staging of the job and give its space back."""
    raise AssertionError


@point(
    c="char *bb_p_xlate_bb_2_tres_str(char *burst_buffer)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.TEXT,
    often="once a reservation that is made, changed or resumed",
    failure="the reservation has no burst buffer",
    locks="TRES read",
    versions=_ALL,
    glossary=_GLOSSARY,
    burst_buffer="in: what a reservation asks for",
)
def bb_p_xlate_bb_2_tres_str(burst_buffer: str) -> str | None:
    """Translate a burst buffer's description into the text of a TRES."""
    raise AssertionError


@point(
    c="char *bb_p_get_status(uint32_t argc, char **argv, uint32_t uid, uint32_t gid)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.TEXT,
    on_error=OnError.ANSWERED,
    often="once a request (`scontrol show bbstat`)",
    failure="the client gets the error number",
    versions="17.11 to today; not in the guide; uid and gid from 21.08 on",
    glossary=_GLOSSARY,
    optional=True,
    argc="in in C, where nothing else tells it: how many words",
    argv="in: the words behind `scontrol show bbstat`",
    gid="in: the group of who asks",
)
def bb_p_get_status(argv: tuple[str, ...], uid: int, gid: int) -> str | None:
    """Return what people are told of the burst buffer, in the words of what is behind it."""
    raise AssertionError
