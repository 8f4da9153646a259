"""SchedulerParameters: the words that are built, and those that Slurm knows besides."""

import re
from decimal import Decimal
from typing import Any, Final

import attrs

from simctl.wire.conf.readers import Refused, did_you_mean, optional_text
from simctl.wire.ids import SECOND

_SCHEDULER_WORDS: Final = """
    allow_zero_lic assoc_limit_continue assoc_limit_stop bb_array_stage_cnt bf_busy_nodes
    bf_continue bf_hetjob_immediate bf_hetjob_prio bf_interval bf_job_part_count_reserve
    bf_max_job_array_resv bf_max_job_assoc bf_max_job_part bf_max_job_start bf_max_job_test
    bf_max_job_user bf_max_job_user_part bf_max_time bf_min_age_reserve bf_min_prio_reserve
    bf_one_resv_per_job bf_resolution bf_running_job_reserve bf_window bf_window_linear
    bf_yield_interval bf_yield_sleep build_queue_timeout default_gbytes default_queue_depth defer
    delay_boot disable_hetero_steps disable_hetjob_steps disable_job_shrink disable_user_top
    bf_allow_magnetic_slot enable_job_state_cache max_submit_line_size
    enable_hetero_steps enable_hetjob_steps
    enable_user_top ignore_numa inventory_interval jobs_per_user_per_hour
    max_array_tasks max_depend_depth max_rpc_cnt max_sched_time max_switch_wait
    no_backup_scheduling no_env_cache nohold_on_prolog_fail pack_serial_at_end partition_job_depth
    permit_job_expansion preempt_reorder_count preempt_strict_order preempt_youngest_first
    reduce_completing_frag requeue_setup_env_fail salloc_wait_nodes sbatch_wait_nodes
    sched_max_job_start sched_min_interval spec_cores_first step_retry_count step_retry_time
    time_min_as_soft_limit whole_hetjob whole_pack
    bf_allow_magnetic_resv bf_licenses bf_node_space_size bf_topopt_enable bf_topopt_iterations
    bf_yield_rpc_cnt correspond_after_task_cnt defer_batch extra_constraints
    ignore_constraint_validation ignore_prefer_validation requeue_delay
"""

SCHEDULER_NAMES: Final = frozenset(_SCHEDULER_WORDS.split())

_MINUTE: Final = 60 * SECOND

WITHOUT_EFFECT: Final = frozenset({"bf_continue"})
"""Words that ask for what holds here anyway: a pass takes no time and is never interrupted."""

_COUNT: Final = re.compile(r"[0-9]{1,10}")

_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?|\.[0-9]{1,6}")


@attrs.frozen
class Word:
    """A word of SchedulerParameters that is built."""

    field: str
    unit: int
    """What its number counts, in what the field holds; 0 for a word without a number."""

    least: int


def word(name: str, default: Any, *, unit: int = 0, least: int = 0) -> Any:
    """Declare the field that a word of SchedulerParameters sets."""
    return attrs.field(default=default, metadata={"word": (name, unit, least)})


@attrs.frozen(kw_only=True)
class SchedulerParameters:
    """The parts of SchedulerParameters that are built."""

    batch_sched_delay_us: int = word("batch_sched_delay", 3 * SECOND, unit=SECOND, least=0)
    """Shortest time between two passes that an event asked for."""
    sched_interval_us: int = word("sched_interval", 60 * SECOND, unit=SECOND, least=1)
    """Time between passes over the whole queue."""
    default_queue_depth: int = word("default_queue_depth", 100, unit=1, least=0)
    """How many jobs a pass between these asks burst buffers about."""
    bb_array_stage_cnt: int = word("bb_array_stage_cnt", 10, unit=1, least=1)
    """How many tasks of an array with a burst buffer may be staged in before they run."""
    defer: bool = word("defer", False)
    """Start no job inside its own submission."""
    bf_interval_us: int = word("bf_interval", 30 * SECOND, unit=SECOND, least=1)
    """Time between backfill passes."""
    bf_window_us: int = word("bf_window", 1440 * 60 * SECOND, unit=_MINUTE, least=1)
    """How far ahead backfill looks."""
    bf_resolution_us: int = word("bf_resolution", 60 * SECOND, unit=SECOND, least=1)
    """The grain of what it plans."""
    bf_max_job_test: int = word("bf_max_job_test", 100, unit=1, least=1)
    """How many jobs a backfill pass looks at."""
    bf_max_job_start: int = word("bf_max_job_start", 0, unit=1, least=0)
    """How many it starts; 0 for any number, as below."""
    bf_max_job_user: int = word("bf_max_job_user", 0, unit=1, least=0)
    bf_max_job_part: int = word("bf_max_job_part", 0, unit=1, least=0)
    bf_min_prio_reserve: int = word("bf_min_prio_reserve", 0, unit=1, least=0)
    """Jobs of a lower priority get no reservation."""
    bf_min_age_reserve_us: int = word("bf_min_age_reserve", 0, unit=SECOND, least=0)
    """Nor do jobs that have waited for less."""
    max_script_size: int = word("max_script_size", 4 << 20, unit=1, least=1)
    """How many bytes a batch script may have."""
    preempt_youngest_first: bool = word("preempt_youngest_first", False)
    kill_invalid_depend: bool = word("kill_invalid_depend", False)
    """Jobs whose dependency can never be met are cancelled."""

    def __str__(self) -> str:
        """Write the parameters as slurm.conf does."""
        words = []
        for name, built in BUILT_WORDS.items():
            value, unit = getattr(self, built.field), built.unit
            if isinstance(value, bool):
                words += [name] * value
            else:
                words.append(f"{name}={value / unit:g}" if unit > 1 else f"{name}={value}")
        return ",".join(words)


def _built_words() -> dict[str, Word]:
    found = {}
    for field in attrs.fields(SchedulerParameters):
        name, unit, least = field.metadata["word"]
        found[name] = Word(field.name, unit, least)
    return found


BUILT_WORDS: Final = _built_words()
"""The words that are built, by name."""


def scheduler_parameters(value: object) -> SchedulerParameters:
    """Read ``name=value`` pairs that stand apart by commas, and name every one that is wrong."""
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for part in filter(None, map(str.strip, optional_text(value).split(","))):
        name, _, amount = map(str.strip, part.partition("="))
        if name.lower() in WITHOUT_EFFECT and not amount:
            continue
        try:
            field, value_of = _scheduler_parameter(name.lower(), amount)
            if field in found:
                wrong.append(f"{name} is given twice")
            found[field] = value_of
        except Refused as error:
            wrong.extend(error.args)
    if wrong:
        raise Refused(*wrong)
    return SchedulerParameters(**found)


def _scheduler_parameter(name: str, amount: str) -> tuple[str, int | bool]:
    built = BUILT_WORDS.get(name)
    if built is None:
        if name in WITHOUT_EFFECT:
            message = f'{name}: it is a word by itself, got "={amount}"'
        elif name in SCHEDULER_NAMES:
            message = f"{name} is known to Slurm but not simulated yet"
        else:
            hint = did_you_mean(name, {*BUILT_WORDS, *SCHEDULER_NAMES})
            message = f'"{name}" is not a SchedulerParameters option of Slurm{hint}'
        raise Refused(message)
    field, unit, least = built.field, built.unit, built.least
    if not unit:
        if amount:
            raise Refused(f'{name}: it is a word by itself, got "={amount}"')
        return field, True
    shape = _COUNT if unit == 1 else _SECONDS
    value = int(Decimal(amount) * unit) if shape.fullmatch(amount) else -1
    if value < least:
        what = {SECOND: "number of seconds", _MINUTE: "number of minutes"}.get(unit, "whole number")
        bound = "above 0" if least else "of 0 or more"
        message = f'{name}: expected a {what} {bound}, got "{amount}"'
        raise Refused(message)
    return field, value
