"""The functions of cli_filter plugins: sbatch, salloc and srun show them their options."""

from typing import Any, Final

from simctl.kernel.procs import RunsAs
from simctl.plugins.points.declare import OnError, Places, Returns, point

COMMANDS: Final[Places] = dict.fromkeys(("sbatch", "salloc", "srun"), RunsAs.USER)
_GLOSSARY: Final = {
    "options": "in/out: the options of the command; what is set counts (CliOptions)",
    "early": "in: whether nothing has been parsed yet",
    "offset": "in: which component of a heterogeneous job; always 0 here",
    "job_id": "in: the job",
    "step_id": "in: the step; NO_VAL for a job",
}
_VERSIONS: Final = "18.08 to today"
_ENDS: Final = "the command says that a cli_filter plugin has ended it, and exits with status 1"


@point(
    c="int cli_filter_p_setup_defaults(slurm_opt_t *options, bool early)",
    guide=COMMANDS,
    modern=COMMANDS,
    returns=Returns.INT,
    on_error=OnError.END_COMMAND,
    often=(
        "of sbatch twice, early before anything is parsed; of salloc once; of srun once, early, "
        "and not inside a job"
    ),
    failure=_ENDS,
    versions=_VERSIONS,
    glossary=_GLOSSARY,
    plugin_class="cli_filter",
)
def setup_defaults(options: Any, early: bool) -> int:
    """Set options before those of the script, the environment and the command line."""
    raise AssertionError


@point(
    c="int cli_filter_p_pre_submit(slurm_opt_t *options, int offset)",
    guide=COMMANDS,
    modern=COMMANDS,
    returns=Returns.INT,
    on_error=OnError.END_COMMAND,
    often="once a command, of srun also for a step in a job",
    failure=_ENDS,
    versions=_VERSIONS,
    glossary=_GLOSSARY,
    plugin_class="cli_filter",
)
def pre_submit(options: Any, offset: int) -> int:
    """Look at all options, change them or end the command, before they are verified."""
    raise AssertionError


@point(
    c="void cli_filter_p_post_submit(int offset, uint32_t job_id, uint32_t step_id)",
    guide=COMMANDS,
    modern=COMMANDS,
    returns=Returns.VOID,
    on_error=OnError.LOGGED,
    often="once a command whose job or step was made",
    failure="it cannot fail",
    versions=_VERSIONS,
    glossary=_GLOSSARY,
    plugin_class="cli_filter",
)
def post_submit(offset: int, job_id: int, step_id: int) -> None:
    """Learn the number of the job, or of srun the step, once there is one."""
    raise AssertionError
