"""Read event patterns of a scenario, held against the names that can occur in its run."""

from collections.abc import Collection
from typing import Final

from simctl.kernel.pattern import Pattern, PatternError, near
from simctl.scenario.model import LOGIN
from simctl.scenario.positions import Reading, Unreadable, Value
from simctl.scenario.shapes import Scalar
from simctl.stepd.environment import BURST_BUFFER_SCRIPTS, SCRIPT_CONTEXTS

SWITCH_FUNCTIONS: Final = (
    "switch_p_build_jobinfo",
    "switch_p_job_init",
    "switch_p_get_errno",
    "switch_p_strerror",
    "switch_p_libstate_save",
    "switch_p_libstate_restore",
    "switch_p_no_frag",
    "switch_p_clear_node_state",
    "switch_p_alloc_node_info",
    "switch_p_build_node_info",
    "switch_p_pack_node_info",
    "switch_p_unpack_node_info",
    "switch_p_free_node_info",
    "switch_p_sprintf_node_info",
    "switch_p_alloc_jobinfo",
    "switch_p_copy_jobinfo",
    "switch_p_free_jobinfo",
    "switch_p_pack_jobinfo",
    "switch_p_unpack_jobinfo",
    "switch_p_get_jobinfo",
    "switch_p_get_data_jobinfo",
    "switch_p_job_step_complete",
    "switch_p_print_jobinfo",
    "switch_p_sprint_jobinfo",
    "switch_p_node_init",
    "switch_p_node_fini",
    "switch_p_job_preinit",
    "switch_p_job_attach",
    "switch_p_job_fini",
    "switch_p_job_postfini",
)
CHECKPOINT_FUNCTIONS: Final = (
    "slurm_ckpt_alloc_job",
    "slurm_ckpt_free_job",
    "slurm_ckpt_pack_job",
    "slurm_ckpt_unpack_job",
    "slurm_ckpt_copy_job",
    "slurm_ckpt_op",
    "slurm_ckpt_comp",
    "slurm_ckpt_task_comp",
    "slurm_ckpt_stepd_prefork",
    "slurm_ckpt_signal_tasks",
    "slurm_ckpt_restart_task",
)
BURST_BUFFER_FUNCTIONS: Final = (
    "bb_p_load_state",
    "bb_p_state_pack",
    "bb_p_reconfig",
    "bb_p_get_system_size",
    "bb_p_job_validate",
    "bb_p_job_validate2",
    "bb_p_job_set_tres_cnt",
    "bb_p_job_get_est_start",
    "bb_p_job_try_stage_in",
    "bb_p_job_test_stage_in",
    "bb_p_job_begin",
    "bb_p_job_revoke_alloc",
    "bb_p_job_start_stage_out",
    "bb_p_job_test_post_run",
    "bb_p_job_test_stage_out",
    "bb_p_job_cancel",
    "bb_p_xlate_bb_2_tres_str",
)
BESIDES: Final = (
    "switch_p_slurmctld_init",
    "switch_p_slurmd_init",
    "switch_p_slurmd_step_init",
    "switch_p_reconfig",
    "switch_p_part_comp",
    "switch_p_job_step_part_comp",
    "switch_p_job_step_allocated",
    "switch_p_job_suspend_test",
    "switch_p_job_suspend_info_get",
    "switch_p_job_suspend_info_pack",
    "switch_p_job_suspend_info_unpack",
    "switch_p_job_suspend_info_free",
    "switch_p_job_suspend",
    "switch_p_job_resume",
    "switch_p_job_step_pre_suspend",
    "switch_p_job_step_post_suspend",
    "switch_p_job_step_pre_resume",
    "switch_p_job_step_post_resume",
)
"""What real Slurm calls of a switch plugin that has it, and no guide describes."""

FUNCTIONS: Final = (
    "init",
    "fini",
    *SWITCH_FUNCTIONS,
    *BESIDES,
    *CHECKPOINT_FUNCTIONS,
    *BURST_BUFFER_FUNCTIONS,
)
"""The functions that the three plugin guides describe, and those that are called besides."""

ACTS: Final = (
    *("become_user", "setsid", "chdir", "setrlimit", "fork", "create_container"),
    "select_g_job_begin",
)
"""What daemons do for themselves and a fault can make fail, besides plugin functions.

The last is slurmctld's, when it gives a job its nodes; all others are a step daemon's.
"""

SCRIPTS: Final = (*SCRIPT_CONTEXTS, *BURST_BUFFER_SCRIPTS)
"""Prologs, epilogs and scripts of burst buffers, which a fault can make fail as well."""

_PREFIXES: Final = ("switch_p_", "slurm_ckpt_", "bb_p_")
_OTHER_NAMES: Final = (
    *("job_state", "node_state", "step_state", "bb_state"),
    *ACTS,
    *("exec", "signal", "exit"),
    *SCRIPTS,
)
_NEAR: Final = 0.8
_JSON: Final = {"type": "string", "minLength": 1}


def read_pattern(value: Value, reading: Reading) -> Pattern:
    """Read `NAME key=value ...` and refuse what no event of this scenario can match.

    Raises:
        Unreadable: it cannot be read, or could never match; that has been noted.
    """
    return _read(value, reading, filter_only=False)


def _read(value: Value, reading: Reading, *, filter_only: bool) -> Pattern:
    parse = Pattern.parse_filter if filter_only else Pattern.parse
    try:
        pattern = parse(value.scalar, reading.users)
    except PatternError as error:
        reading.mistake_within(value, error.position, error.reason)
        raise Unreadable from error
    _check_name(pattern, value, reading)
    for node in pattern.values("node"):
        _check_node(node, value, reading)
    return pattern


def _check_name(pattern: Pattern, value: Value, reading: Reading) -> None:
    """Refuse a NAME that is a slip of the pen: as `never` it would hold without being asked."""
    known = (*reading.functions, *reading.event_names, *reading.commands)
    if trouble := name_trouble(pattern, known):
        raise reading.refuse(value, trouble)


def name_trouble(pattern: Pattern, names: Collection[str]) -> str:
    """Say of a NAME what it may have been meant for; nothing if an event can be called so.

    Args:
        pattern: the pattern.
        names: what events can be called, beside what they are in every run.
    """
    known = (*names, *_OTHER_NAMES)
    if pattern.names(known):
        return ""
    stem = pattern.name.replace("*", "")
    hint = near(stem, known, cutoff=_NEAR)
    if pattern.name.startswith(_PREFIXES) or (hint and not pattern.any_name):
        what = "no plugin function" if pattern.name.startswith(_PREFIXES) else "no event"
        return f"{what} is called {pattern.name!r}{hint or near(stem, known)}"
    return ""


def _check_node(node: str, value: Value, reading: Reading) -> None:
    if "*" in node or node in reading.nodes or node in {LOGIN, "null"}:
        return
    if "nodes" not in reading.unsure:
        hint = near(node, list(reading.nodes)) or "; the controller is node=null"
        reading.mistake(value, f"no node {node!r}{hint}")


def read_call_pattern(value: Value, reading: Reading) -> Pattern:
    """Read the pattern of a call that is about to be made, as `fail` and `raise` have it.

    Raises:
        Unreadable: it could match no plugin call; that has been noted.
    """
    pattern = read_pattern(value, reading)
    for key in ("rc", "errno", "phase", "state"):
        if pattern.values(key):
            raise reading.refuse(value, f"{key}= is not known before a call is made; leave it out")
    for kind in pattern.values("kind"):
        if kind != "plugin":
            raise reading.refuse(value, f"only plugin calls can fail this way, not kind={kind}")
    if not pattern.names((*reading.functions, *ACTS, *SCRIPTS)):
        hint = near(pattern.name, (*reading.functions, *ACTS, *SCRIPTS))
        raise reading.refuse(value, f"no plugin function is called {pattern.name!r}{hint}")
    return pattern


def _read_filter(value: Value, reading: Reading) -> Pattern:
    return _read(value, reading, filter_only=True)


PATTERN: Final = Scalar(
    expected="a pattern of events such as switch_p_job_attach job=1",
    convert=read_pattern,
    json=_JSON,
)
CALL_PATTERN: Final = Scalar(
    expected="a pattern of plugin calls such as switch_p_job_attach job=1",
    convert=read_call_pattern,
    json=_JSON,
)
FILTER: Final = Scalar(
    expected='a filter of events such as "step=1.0 node=n1"', convert=_read_filter, json=_JSON
)
