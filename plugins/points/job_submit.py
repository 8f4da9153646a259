"""The functions of job_submit plugins: slurmctld shows them submissions and changes of jobs."""

from typing import Any, Final

from simctl.plugins.points.declare import SLURMCTLD, OnError, Returns, point

_GLOSSARY: Final = {
    "job_desc": "in/out: what is asked for; what the plugin sets counts (JobDesc)",
    "job": "in: slurmctld's record of the job (JobRecord)",
    "submit_uid": "in: who asks",
    "err_msg": "out in C, a SlurmError's text and `job_desc.tell` here: lines for the user",
}
_LOCKS: Final = "configuration, job, node and partition read"
_VERSIONS: Final = "1.3 to today; err_msg since 14.11"


@point(
    c="int job_submit(job_desc_msg_t *job_desc, uint32_t submit_uid, char **err_msg)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    on_error=OnError.REFUSE_JOB,
    often="once a submission of sbatch, salloc or srun, also with --test-only; not for steps",
    failure=(
        "the submission is refused with the error number; plugins behind it in JobSubmitPlugins "
        "are not asked, and no job number is used up"
    ),
    locks=_LOCKS,
    versions=_VERSIONS,
    glossary=_GLOSSARY,
    plugin_class="job_submit",
    err_msg=_GLOSSARY["err_msg"],
)
def job_submit(job_desc: Any, submit_uid: int) -> int:
    """Change or refuse a submission, before slurmctld looks at what it asks for."""
    raise AssertionError


@point(
    c=(
        "int job_modify(job_desc_msg_t *job_desc, job_record_t *job, uint32_t submit_uid, "
        "char **err_msg)"
    ),
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.ERRNO,
    on_error=OnError.ANSWERED,
    often="once a job that `scontrol update`, hold or release changes",
    failure="nothing is changed, and the client gets the error number",
    locks=_LOCKS,
    versions=_VERSIONS,
    glossary=_GLOSSARY,
    plugin_class="job_submit",
    err_msg=_GLOSSARY["err_msg"],
)
def job_modify(job_desc: Any, job: Any, submit_uid: int) -> int:
    """Change or refuse a change of a job, before slurmctld looks at it."""
    raise AssertionError
