"""slurm.conf: the keys that change what the simulator does, and what is said of all others.

Three kinds of keys: those that are built; those Slurm 18.08 or 22.05 knows but that are not
simulated, which may be given only where their default already holds; and unknown ones.
"""

import difflib
import enum
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import attrs

from simctl.wire.ids import INFINITE, NO_VAL, SECOND

_UINT16_MAX: Final = 0xFFFF
_JOB_ID_MAX: Final = 0x03FFFFFF  # six bits above it name a federated cluster
_DEFAULT_MAX_JOB_ID: Final = 0x03FF0000


@attrs.frozen(kw_only=True)
class SchedulerParameters:
    """The parts of SchedulerParameters that are built."""

    batch_sched_delay_us: int = 3 * SECOND
    """Shortest time between two passes that an event asked for."""
    sched_interval_us: int = 60 * SECOND
    """Time between passes over the whole queue."""
    default_queue_depth: int = 100
    """How many jobs a pass between these asks burst buffers about."""
    bb_array_stage_cnt: int = 10
    """How many tasks of an array with a burst buffer may be staged in before they run."""
    defer: bool = False
    """Start no job inside its own submission."""
    bf_interval_us: int = 30 * SECOND
    """Time between backfill passes."""
    bf_window_us: int = 1440 * 60 * SECOND
    """How far ahead backfill looks."""
    bf_resolution_us: int = 60 * SECOND
    """The grain of what it plans."""
    bf_max_job_test: int = 100
    """How many jobs a backfill pass looks at."""
    bf_max_job_start: int = 0
    """How many it starts; 0 for any number, as below."""
    bf_max_job_user: int = 0
    bf_max_job_part: int = 0
    bf_min_prio_reserve: int = 0
    """Jobs of a lower priority get no reservation."""
    bf_min_age_reserve_us: int = 0
    """Nor do jobs that have waited for less."""
    preempt_youngest_first: bool = False
    kill_invalid_depend: bool = False
    """Jobs whose dependency can never be met are cancelled."""

    def __str__(self) -> str:
        """Write the parameters as slurm.conf does."""
        words = []
        for name, (field, unit_us, _) in _SCHEDULER_BUILT.items():
            value = getattr(self, field)
            if isinstance(value, bool):
                words += [name] * value
            else:
                words.append(f"{name}={value / unit_us:g}" if unit_us > 1 else f"{name}={value}")
        return ",".join(words)


@attrs.frozen
class ExitCodes:
    """Some exit codes, as RequeueExit lists them: ``1,5-8``."""

    text: str = ""
    codes: frozenset[int] = frozenset()

    def __str__(self) -> str:
        """Write the codes as slurm.conf does."""
        return self.text


@attrs.frozen(kw_only=True)
class SlurmConf:
    """A cluster's slurm.conf."""

    cluster_name: str = "cluster"
    slurm_user: str = "slurm"
    switch_type: str = "switch/none"
    switch_parameters: str = ""
    debug_flags: str = ""
    checkpoint_type: str = "checkpoint/none"
    burst_buffer_types: tuple[str, ...] = ()
    """The plugins of BurstBufferType, such as ``burst_buffer/generic``, in their order."""
    accounting_storage_type: str = "accounting_storage/slurmdbd"
    accounting_storage_tres: tuple[str, ...] = ()
    """What is counted beside the usual, such as ``bb/generic``."""
    enforce_part_limits: str = "NO"
    """Whether submissions that exceed limits of partitions are refused: `NO`, `ANY` or `ALL`."""

    scheduler_type: str = "sched/backfill"
    scheduler_parameters: SchedulerParameters = SchedulerParameters()
    select_type: str = "select/linear"
    select_type_parameters: str = ""
    def_mem_per_cpu_mb: int = 0
    def_mem_per_node_mb: int = 0
    gres_types: tuple[str, ...] = ()
    preempt_type: str = "preempt/none"
    preempt_mode: str = "OFF"
    first_job_id: int = 1
    max_job_id: int = _DEFAULT_MAX_JOB_ID
    max_job_count: int = 10000
    kill_wait_s: int = 30
    min_job_age_s: int = 300
    """0: finished jobs are never purged."""
    message_timeout_s: int = 10
    slurmctld_timeout_s: int = 120
    backup_controller: str = ""
    slurmctld_hosts: tuple[str, ...] = ()
    """The primary and the backup, where SlurmctldHost names them; what they are both in."""

    """How long an answer is waited for."""
    slurmd_timeout_s: int = 300
    """0: a node that does not answer is never set down."""
    return_to_service: int = 0
    over_time_limit_min: int = 0
    """INFINITE: jobs may pass their time limit for ever."""
    tree_width: int = 50
    max_tasks_per_node: int = 512
    job_requeue: bool = True
    kill_on_bad_exit: bool = False
    wait_time_s: int = 0
    """How long srun lets a step go on whose first task has ended; 0: as long as it takes."""
    requeue_exit: ExitCodes = ExitCodes()
    """Batch jobs that exit so go back into the queue."""
    requeue_exit_hold: ExitCodes = ExitCodes()
    """Batch jobs that exit so go back into the queue and are held there."""
    state_save_location: str = "/var/spool"
    slurmd_spool_dir: str = "/var/spool/slurmd"
    job_checkpoint_dir: str = "/var/slurm/checkpoint"
    plugin_dir: str = ""
    prolog: str = ""
    epilog: str = ""
    prolog_slurmctld: str = ""
    epilog_slurmctld: str = ""
    task_prolog: str = ""
    task_epilog: str = ""
    srun_prolog: str = ""
    srun_epilog: str = ""
    prolog_flags: str = ""
    """``Alloc`` or nothing."""

    @property
    def plugin_types(self) -> tuple[str, ...]:
        """Return the plugins that daemons load, such as ``switch/none``."""
        return (self.switch_type, self.checkpoint_type, *self.burst_buffer_types)

    @property
    def accounts(self) -> bool:
        """Tell whether slurmdbd keeps accounts, users have theirs there, and jobs a QOS."""
        return self.accounting_storage_type != "accounting_storage/none"

    @property
    def shares_memory(self) -> bool:
        """Tell whether slurm.conf says that memory is shared out as cpus are."""
        return "MEMORY" in self.select_type_parameters

    def value(self, key: str) -> str | int | bool:
        """Return what a key of slurm.conf is set to, or Slurm's default, whatever the key's case.

        Raises:
            KeyError: Slurm has no such key, or it is not simulated; the text says which.
        """
        built = _BUILT_BY_KEY.get(key.casefold())
        if built is not None:
            found = getattr(self, built.field)
            if isinstance(found, tuple):
                return ",".join(found)
            return found if isinstance(found, str | int) else str(found)
        name = _KNOWN_BY_KEY.get(key.casefold())
        if name in _HONOURED:
            return _HONOURED[name][0]
        if name is not None:
            raise KeyError(f"{name} is known to Slurm but not simulated yet")
        raise KeyError(unknown_key(key))

    @staticmethod
    def keys() -> tuple[str, ...]:
        """Return the keys that `value` knows."""
        return (*BUILT_KEYS, *_HONOURED)


@attrs.frozen(kw_only=True)
class ConfMistake:
    """Something in slurm.conf that cannot be taken: the key as it was written, and why."""

    key: str
    message: str

    @property
    def unbuilt(self) -> bool:
        """Whether Slurm takes it, and it is not simulated."""
        return NOT_SIMULATED in self.message


NOT_SIMULATED: Final = "not simulated yet"


class _Refused(Exception):
    """A value cannot be taken, for the reasons given as arguments."""

    args: tuple[str, ...]


@attrs.frozen
class _Built:
    """A key that is built: its name, its field in SlurmConf, and how its value is read."""

    name: str
    field: str
    read: Callable[[object], object]


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _text(value: object) -> str:
    """Read a text; a number, which YAML makes of digits, is one too."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        shown = "nothing" if value in (None, "") else _quoted(value)
        message = f"expected a text, got {shown}"
        raise _Refused(message)
    return str(value)


def _optional_text(value: object) -> str:
    return "" if value is None or value == "" else _text(value)


def _controllers(value: object) -> tuple[str, ...]:
    """Read SlurmctldHost: the primary, and the backup if there is one, each with its address."""
    hosts = tuple(
        host_name(_text(each)) for each in (value if isinstance(value, list) else [value])
    )
    if len(hosts) > _CONTROLLERS:
        raise _Refused("one backup controller is simulated; name the primary and one other host")
    if not hosts or not all(hosts):
        raise _Refused("expected the host of the primary, or a list of it and of the backup's")
    if len(set(hosts)) < len(hosts):
        raise _Refused(f"{hosts[0]} cannot be both the primary and its backup")
    return hosts


_CONTROLLERS: Final = 2


def host_name(text: str) -> str:
    """Return the host of a value of SlurmctldHost, without the address it may have."""
    return text.partition("(")[0].strip()


def _script(value: object) -> str:
    """Read the path of a script; "(null)" is how Slurm prints that there is none."""
    return "" if value is None or str(value).strip() in ("", "(null)") else _text(value)


_PROLOG_FLAGS: Final = ("Contain", "DeferBatch", "ForceRequeueOnFail", "NoHold", "Serial", "X11")


def _prolog_flags(value: object) -> str:
    """Read the flags of prologs, of which Alloc is built."""
    found = ""
    for word in filter(None, map(str.strip, _script(value).split(","))):
        if word.casefold() == "alloc":
            found = "Alloc"
        elif word.casefold() in map(str.casefold, _PROLOG_FLAGS):
            message = f"{word} is known to Slurm but not simulated yet; Alloc is"
            raise _Refused(message)
        elif word.casefold() != "none":
            message = (
                f'"{word}" is not a flag of prologs{did_you_mean(word, {"Alloc", *_PROLOG_FLAGS})}'
            )
            raise _Refused(message)
    return found


_DEBUG_FLAGS: Final = (
    *("Backfill", "BackfillMap", "BurstBuffer", "CPU_Bind", "CPU_Freq", "Elasticsearch", "Energy"),
    *("ExtSensors", "Federation", "FrontEnd", "Gang", "Gres", "HeteroJobs", "JobContainer"),
    *("License", "NO_CONF_HASH", "NodeFeatures", "Power", "Priority", "Protocol", "Reservation"),
    *("SelectType", "Steps", "TimeCray", "TraceJobs", "Triggers", "Wiki"),
)


def _debug_flags(value: object) -> str:
    """Read what the daemons are to tell more of; Switch is built."""
    found = ""
    for word in filter(None, map(str.strip, _script(value).split(","))):
        if word.casefold() == "switch":
            found = "Switch"
        elif word.casefold() in map(str.casefold, _DEBUG_FLAGS):
            raise _Refused(f"{word} is known to Slurm but not simulated yet; Switch is")
        elif word.casefold() != "none":
            hint = did_you_mean(word, {"Switch", *_DEBUG_FLAGS})
            raise _Refused(f'"{word}" is no word of DebugFlags{hint}')
    return found


def _number(lowest: int, highest: int) -> Callable[[object], int]:
    """Return a reader of whole numbers in a range."""

    def read(value: object) -> int:
        text = str(value).strip()
        whole = not isinstance(value, bool | float) and re.fullmatch(r"[0-9]+", text)
        if not whole or not lowest <= int(text) <= highest:
            shown = "nothing" if value in (None, "") else _quoted(value)
            message = f"expected a whole number from {lowest} to {highest}, got {shown}"
            raise _Refused(message)
        return int(text)

    return read


def _flag(value: object) -> bool:
    try:
        return _number(0, 1)(value) == 1
    except _Refused:
        message = f"expected 0 or 1, got {_quoted(value)}"
        raise _Refused(message) from None


def _enforced(value: object) -> str:
    """Read EnforcePartLimits; YES is ANY, as in Slurm."""
    text = ("YES" if value else "NO") if isinstance(value, bool) else str(value).upper()
    if text in ("YES", "UP", "TRUE", "1", "ANY"):
        return "ANY"
    if text in ("NO", "DOWN", "FALSE", "0", "ALL"):
        return "ALL" if text == "ALL" else "NO"
    message = f"expected ALL, ANY or NO, got {_quoted(value)}"
    raise _Refused(message)


def _over_time_limit(value: object) -> int:
    if str(value).upper() in {"UNLIMITED", "INFINITE"}:
        return INFINITE
    try:
        return _number(0, _UINT16_MAX - 1)(value)
    except _Refused as error:
        message = f"{error.args[0]}; a number of minutes, or UNLIMITED"
        raise _Refused(message) from None


def _exit_codes(value: object) -> ExitCodes:
    """Read single exit codes and ranges of them that stand apart by commas."""
    text = "" if value is None else str(value).replace(" ", "")
    codes: set[int] = set()
    for part in filter(None, text.split(",")):
        match = _CODES.fullmatch(part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if high > _LAST_CODE or low > high:
            message = f'expected exit codes from 0 to {_LAST_CODE}, such as 1,5-8, got "{value}"'
            raise _Refused(message)
        codes.update(range(low, high + 1))
    return ExitCodes(text, frozenset(codes))


_CODES: Final = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")
_LAST_CODE: Final = 255


def _plugin_type(kind: str) -> Callable[[object], str]:
    """Return a reader of plugin types of one kind; whether the plugin exists shows at its load."""

    def read(value: object) -> str:
        text = _optional_text(value)
        if not re.fullmatch(rf"{kind}/[A-Za-z0-9_.+-]+", text):
            hint = f"; did you mean {kind}/{text}?" if re.fullmatch(r"\w+", text) else ""
            shown = _quoted(text) if text else "nothing"
            message = f"expected {kind}/NAME, such as {kind}/none, got {shown}{hint}"
            raise _Refused(message)
        return text

    return read


def _burst_buffer_types(value: object) -> tuple[str, ...]:
    """Read the plugins of a list; "none" and "(null)" are how Slurm says that there are none."""
    text = "" if value is None else str(value).strip()
    if text.casefold() in ("", "none", "(null)"):
        return ()
    found: list[str] = []
    for word in map(str.strip, text.split(",")):
        found.append(_plugin_type("burst_buffer")(word))
        if found.count(word) > 1:
            raise _Refused(f"{word} is given twice")
    return tuple(found)


def _tracked(value: object) -> tuple[str, ...]:
    """Read what is to be counted: burst buffers beside what always is."""
    found: list[str] = []
    for word in filter(None, map(str.strip, _script(value).split(","))):
        folded = word.casefold()
        if folded in _ALWAYS_TRACKED:
            continue
        kind, _, name = word.partition("/")
        if kind.casefold() == "bb" and name:
            found.append(f"bb/{name}")
        elif name and kind.casefold() in _TRACKED_KINDS:
            raise _Refused(f"{word} is known to Slurm but not simulated yet; bb/NAME is")
        else:
            hint = did_you_mean(word, {*_ALWAYS_TRACKED, "bb/generic", "bb/datawarp"})
            raise _Refused(f'"{word}" is nothing that AccountingStorageTRES counts{hint}')
    return tuple(dict.fromkeys(found))


_ALWAYS_TRACKED: Final = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
_TRACKED_KINDS: Final = ("fs", "gres", "ic", "license")


def _one_of(kind: str, built: tuple[str, ...], others: tuple[str, ...]) -> Callable[[object], str]:
    """Return a reader that takes some plugin types and tells Slurm's others from unknown ones."""
    are = f"{' and '.join(built)} {'is' if len(built) == 1 else 'are'}"

    def read(value: object) -> str:
        text = _optional_text(value)
        if text in built:
            return text
        if text in others:
            message = f"{text} is known to Slurm but not simulated yet; {are}"
            raise _Refused(message)
        known = (*built, *others)
        near = difflib.get_close_matches(text, (*known, *_short(known)), n=1)
        hint = f"; did you mean {_full(kind, near[0])}?" if near else ""
        shown = _quoted(text) if text else "nothing"
        message = f"expected {' or '.join(built)}, got {shown}{hint}"
        raise _Refused(message)

    return read


def _short(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.partition("/")[2] for name in names)


def _full(kind: str, name: str) -> str:
    return name if "/" in name else f"{kind}/{name}"


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
    max_array_tasks max_depend_depth max_rpc_cnt max_sched_time max_script_size max_switch_wait
    no_backup_scheduling no_env_cache nohold_on_prolog_fail pack_serial_at_end partition_job_depth
    permit_job_expansion preempt_reorder_count preempt_strict_order preempt_youngest_first
    reduce_completing_frag requeue_setup_env_fail salloc_wait_nodes sbatch_wait_nodes
    sched_max_job_start sched_min_interval spec_cores_first step_retry_count step_retry_time
    time_min_as_soft_limit whole_hetjob whole_pack
    bf_allow_magnetic_resv bf_licenses bf_node_space_size bf_topopt_enable bf_topopt_iterations
    bf_yield_rpc_cnt correspond_after_task_cnt defer_batch extra_constraints
    ignore_constraint_validation ignore_prefer_validation requeue_delay
"""
_SCHEDULER_NAMES: Final = frozenset(_SCHEDULER_WORDS.split())
_MINUTE: Final = 60 * SECOND
_SCHEDULER_BUILT: Final[dict[str, tuple[str, int, int]]] = {
    "batch_sched_delay": ("batch_sched_delay_us", SECOND, 0),
    "sched_interval": ("sched_interval_us", SECOND, 1),
    "default_queue_depth": ("default_queue_depth", 1, 0),
    "bb_array_stage_cnt": ("bb_array_stage_cnt", 1, 1),
    "defer": ("defer", 0, 0),
    "bf_interval": ("bf_interval_us", SECOND, 1),
    "bf_window": ("bf_window_us", _MINUTE, 1),
    "bf_resolution": ("bf_resolution_us", SECOND, 1),
    "bf_max_job_test": ("bf_max_job_test", 1, 1),
    "bf_max_job_start": ("bf_max_job_start", 1, 0),
    "bf_max_job_user": ("bf_max_job_user", 1, 0),
    "bf_max_job_part": ("bf_max_job_part", 1, 0),
    "bf_min_prio_reserve": ("bf_min_prio_reserve", 1, 0),
    "bf_min_age_reserve": ("bf_min_age_reserve_us", SECOND, 0),
    "preempt_youngest_first": ("preempt_youngest_first", 0, 0),
    "kill_invalid_depend": ("kill_invalid_depend", 0, 0),
}
"""What each word sets, in what unit (0 for a switch, 1 for a count), and its least value."""

_WITHOUT_EFFECT: Final = frozenset({"bf_continue"})
"""Words that ask for what holds here anyway: a pass takes no time and is never interrupted."""
_COUNT: Final = re.compile(r"[0-9]{1,10}")
_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?|\.[0-9]{1,6}")


def _scheduler_parameters(value: object) -> SchedulerParameters:
    """Read ``name=value`` pairs that stand apart by commas, and name every one that is wrong."""
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for part in filter(None, map(str.strip, _optional_text(value).split(","))):
        name, _, amount = map(str.strip, part.partition("="))
        if name.lower() in _WITHOUT_EFFECT and not amount:
            continue
        try:
            field, value_of = _scheduler_parameter(name.lower(), amount)
            if field in found:
                wrong.append(f"{name} is given twice")
            found[field] = value_of
        except _Refused as error:
            wrong.extend(error.args)
    if wrong:
        raise _Refused(*wrong)
    return SchedulerParameters(**found)


def _scheduler_parameter(name: str, amount: str) -> tuple[str, int | bool]:
    built = _SCHEDULER_BUILT.get(name)
    if built is None:
        if name in _WITHOUT_EFFECT:
            message = f'{name}: it is a word by itself, got "={amount}"'
        elif name in _SCHEDULER_NAMES:
            message = f"{name} is known to Slurm but not simulated yet"
        else:
            hint = did_you_mean(name, {*_SCHEDULER_BUILT, *_SCHEDULER_NAMES})
            message = f'"{name}" is not a SchedulerParameters option of Slurm{hint}'
        raise _Refused(message)
    field, unit, least = built
    if not unit:
        if amount:
            raise _Refused(f'{name}: it is a word by itself, got "={amount}"')
        return field, True
    shape = _COUNT if unit == 1 else _SECONDS
    value = int(Decimal(amount) * unit) if shape.fullmatch(amount) else -1
    if value < least:
        what = {SECOND: "number of seconds", _MINUTE: "number of minutes"}.get(unit, "whole number")
        bound = "above 0" if least else "of 0 or more"
        message = f'{name}: expected a {what} {bound}, got "{amount}"'
        raise _Refused(message)
    return field, value


class KeyKind(enum.Enum):
    """What becomes of a key of slurm.conf."""

    ACTS = "it changes what a run does"
    DEFAULT = "what it says holds with its default alone"
    NO_EFFECT = "Slurm knows it; nothing here depends on it"
    UNKNOWN = "Slurm has no such key"


def key_kind(key: str, value: str) -> KeyKind:
    """Tell what becomes of a key with a value in a site's own file."""
    folded = key.casefold()
    name = _KNOWN_BY_KEY.get(folded, "")
    if folded in _BUILT_BY_KEY:
        return KeyKind.ACTS
    if _folded_value(value) in _HONOURED.get(name, ()):
        return KeyKind.DEFAULT
    return KeyKind.NO_EFFECT if name else KeyKind.UNKNOWN


def unknown_key(key: str) -> str:
    """Say that Slurm has no such key, with the name that is nearest."""
    hint = did_you_mean(key, {*BUILT_KEYS, *_KNOWN_BY_KEY.values()})
    return f'"{key}" is not a slurm.conf key{hint}'


def slurm_name(key: str) -> str:
    """Return a key as Slurm writes it."""
    built = _BUILT_BY_KEY.get(key.casefold())
    return built.name if built is not None else _KNOWN_BY_KEY.get(key.casefold(), key)


def holds_instead(key: str) -> str:
    """Return the default that holds of a key that is not acted on, or nothing."""
    return _HONOURED.get(slurm_name(key), ("",))[0]


_OPTIONAL_WORDS: Final[dict[str, frozenset[str]]] = {
    "schedulerparameters": _SCHEDULER_NAMES.difference(_SCHEDULER_BUILT, _WITHOUT_EFFECT),
    "prologflags": frozenset(map(str.casefold, _PROLOG_FLAGS)),
    "debugflags": frozenset(map(str.casefold, _DEBUG_FLAGS)),
    "selecttypeparameters": frozenset(
        "cr_one_task_per_core cr_core_default_dist_block cr_lln cr_pack_nodes".split()
    ),
}
"""Words of keys that act which may stand in a site's own file, and are not acted on."""


def acting_words(key: str, value: str) -> tuple[str, tuple[str, ...]]:
    """Split what is built of a value that is a list of words from what Slurm alone acts on."""
    optional = _OPTIONAL_WORDS.get(key.casefold())
    if key.casefold() == "accountingstoragetres":
        optional = frozenset(_uncounted(value))
    if optional is None:
        return value, ()
    words = [word.strip() for word in value.split(",")]
    without = [word for word in words if _leads_to_nothing(key, word, optional)]
    acting = [word for word in words if word not in without]
    if _IMPLY_ALLOC.intersection(word.casefold() for word in without):
        acting = list(dict.fromkeys([*acting, "Alloc"]))
    return ",".join(acting), tuple(without)


def _uncounted(value: str) -> Iterator[str]:
    """Go through the words of AccountingStorageTRES that are of kinds nobody counts here."""
    for word in map(str.strip, value.casefold().split(",")):
        if word not in _ALWAYS_TRACKED and word.partition("/")[0] in _TRACKED_KINDS:
            yield word


def _leads_to_nothing(key: str, word: str, optional: frozenset[str]) -> bool:
    name = word.partition("=")[0].strip().casefold()
    return name in optional or bool(name and unknown_word(key, word))


def unknown_word(key: str, word: str) -> str:
    """Say that Slurm has no such word of SchedulerParameters: it passes over those in silence."""
    name = word.partition("=")[0].strip().casefold()
    known = {*_SCHEDULER_BUILT, *_SCHEDULER_NAMES, *_WITHOUT_EFFECT}
    if key.casefold() != "schedulerparameters" or name in known:
        return ""
    return f"no word of Slurm's{did_you_mean(name, known)}"


_IMPLY_ALLOC: Final = frozenset({"contain", "deferbatch", "forcerequeueonfail", "nohold", "x11"})
"""Words of PrologFlags, folded, that have prologs run when the nodes are allocated as well."""


def stands_in(key: str, value: str) -> str:
    """Return what is simulated in place of a plugin that does much the same, or the value."""
    if key.casefold() == "burstbuffertype":
        words = map(str.strip, value.split(","))
        return ",".join(_BURST_BUFFERS.get(word.casefold(), word) for word in words)
    return _STANDS_IN.get((key.casefold(), value.casefold()), value)


_STANDS_IN: Final = {
    ("selecttype", "select/cons_res"): "select/cons_tres",
    ("selecttype", "cons_res"): "select/cons_tres",
    ("selecttype", "cons_tres"): "select/cons_tres",
    ("selecttype", "linear"): "select/linear",
    ("schedulertype", "backfill"): "sched/backfill",
    ("schedulertype", "builtin"): "sched/builtin",
    ("switchtype", "none"): "switch/none",
    ("preempttype", "none"): "preempt/none",
    ("preempttype", "partition_prio"): "preempt/partition_prio",
    ("checkpointtype", "none"): "checkpoint/none",
}
"""The prefix of a plugin's type may be left out; and what cons_res shares out, cons_tres does."""

_BURST_BUFFERS: Final = {
    **{name: f"burst_buffer/{name}" for name in ("generic", "datawarp")},
    **dict.fromkeys(("cray", "burst_buffer/cray"), "burst_buffer/datawarp"),
}
"""What was called cray until 18.08 is datawarp since."""


def did_you_mean(name: str, known: set[str]) -> str:
    """Return a hint at the name nearest to *name*, whatever its case, or nothing."""
    folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f"; did you mean {folded[near[0]]}?" if near else ""


def _select_parameters(value: object) -> str:
    """Read SelectTypeParameters: what is shared out; cores are cpus, with one thread each."""
    words = [word for word in _optional_text(value).upper().split(",") if word]
    for word in words:
        if word not in _SELECT_WORDS:
            if word in _SELECT_UNBUILT:
                raise _Refused(f"{word} is known to Slurm but not simulated yet")
            raise _Refused(
                f'"{word}" is no word of SelectTypeParameters; {_and(_SELECT_WORDS)} are'
            )
    if len(words) > 1:
        raise _Refused(f"{' and '.join(words)} exclude each other")
    return "".join(words)


_SELECT_WORDS: Final = ("CR_CPU", "CR_CPU_MEMORY", "CR_CORE", "CR_CORE_MEMORY", "CR_MEMORY")
_SELECT_UNBUILT: Final = frozenset(
    """
    CR_SOCKET CR_SOCKET_MEMORY CR_BOARD CR_ONE_TASK_PER_CORE CR_CORE_DEFAULT_DIST_BLOCK CR_LLN
    CR_PACK_NODES OTHER_CONS_RES OTHER_CONS_TRES NHC_NO NHC_NO_STEPS NHC_ABSOLUTELY_NO
    """.split()
)


def _and(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _names(value: object) -> tuple[str, ...]:
    return tuple(word.strip() for word in _optional_text(value).split(",") if word.strip())


def can_checkpoint(conf: SlurmConf) -> bool:
    """Tell whether a checkpoint plugin is configured that is more than checkpoint/none."""
    return conf.checkpoint_type != _NO_CHECKPOINTS


_NO_CHECKPOINTS: Final = SlurmConf().checkpoint_type


_PREEMPT_UNBUILT: Final = frozenset({"GANG", "WITHIN"})
PREEMPT_MODES: Final = ("OFF", "CANCEL", "CHECKPOINT", "REQUEUE", "SUSPEND")


def read_preempt_mode(value: object) -> str:
    """Read PreemptMode.

    Raises:
        ValueError: It is none, or not simulated.
    """
    text = _optional_text(value).upper()
    if text in PREEMPT_MODES:
        return text
    if {word for word in text.split(",") if word} & _PREEMPT_UNBUILT:
        raise ValueError(f"{text} is known to Slurm but not simulated yet")
    raise ValueError(f"expected {', '.join(PREEMPT_MODES[:-1])} or SUSPEND, got {_quoted(text)}")


def _preempt_mode(value: object) -> str:
    """Read the cluster's PreemptMode; SUSPEND stands beside GANG, which lets jobs go on again."""
    words = {word.strip() for word in _optional_text(value).upper().split(",")}
    if words == {"SUSPEND", "GANG"}:
        return "SUSPEND"
    if words == {"SUSPEND"}:
        raise _Refused("SUSPEND needs GANG beside it, which resumes the jobs: SUSPEND,GANG")
    try:
        return read_preempt_mode(value)
    except ValueError as error:
        raise _Refused(str(error)) from None


_SCHEDULERS: Final = ("sched/hold",)
_SELECTS: Final = (
    "select/cons_res",
    "select/cray",
    "select/cray_aries",
    "select/alps",
    "select/serial",
)
_BUILT: Final = (
    _Built("ClusterName", "cluster_name", _text),
    _Built("SlurmUser", "slurm_user", _text),
    _Built("SwitchType", "switch_type", _plugin_type("switch")),
    _Built("SwitchParameters", "switch_parameters", _optional_text),
    _Built("DebugFlags", "debug_flags", _debug_flags),
    _Built("CheckpointType", "checkpoint_type", _plugin_type("checkpoint")),
    _Built("BurstBufferType", "burst_buffer_types", _burst_buffer_types),
    _Built(
        "AccountingStorageType",
        "accounting_storage_type",
        _one_of(
            "accounting_storage",
            ("accounting_storage/slurmdbd", "accounting_storage/none"),
            ("accounting_storage/mysql", "accounting_storage/filetxt"),
        ),
    ),
    _Built("AccountingStorageTRES", "accounting_storage_tres", _tracked),
    _Built(
        "SchedulerType",
        "scheduler_type",
        _one_of("sched", ("sched/backfill", "sched/builtin"), _SCHEDULERS),
    ),
    _Built("SchedulerParameters", "scheduler_parameters", _scheduler_parameters),
    _Built(
        "SelectType",
        "select_type",
        _one_of("select", ("select/linear", "select/cons_tres"), _SELECTS),
    ),
    _Built("SelectTypeParameters", "select_type_parameters", _select_parameters),
    _Built("EnforcePartLimits", "enforce_part_limits", _enforced),
    _Built("DefMemPerCPU", "def_mem_per_cpu_mb", _number(0, NO_VAL - 1)),
    _Built("DefMemPerNode", "def_mem_per_node_mb", _number(0, NO_VAL - 1)),
    _Built("GresTypes", "gres_types", _names),
    _Built(
        "PreemptType",
        "preempt_type",
        _one_of("preempt", ("preempt/none", "preempt/partition_prio"), ("preempt/qos",)),
    ),
    _Built("PreemptMode", "preempt_mode", _preempt_mode),
    _Built("FirstJobId", "first_job_id", _number(1, _JOB_ID_MAX)),
    _Built("MaxJobId", "max_job_id", _number(1, _JOB_ID_MAX)),
    _Built("MaxJobCount", "max_job_count", _number(1, NO_VAL - 1)),
    _Built("KillWait", "kill_wait_s", _number(0, _UINT16_MAX - 2)),
    _Built("MinJobAge", "min_job_age_s", _number(0, NO_VAL - 1)),
    _Built("MessageTimeout", "message_timeout_s", _number(1, _UINT16_MAX - 2)),
    _Built("SlurmctldTimeout", "slurmctld_timeout_s", _number(1, _UINT16_MAX - 2)),
    _Built("BackupController", "backup_controller", _optional_text),
    _Built("SlurmctldHost", "slurmctld_hosts", _controllers),
    _Built("SlurmdTimeout", "slurmd_timeout_s", _number(0, _UINT16_MAX - 2)),
    _Built("ReturnToService", "return_to_service", _number(0, 2)),
    _Built("OverTimeLimit", "over_time_limit_min", _over_time_limit),
    _Built("TreeWidth", "tree_width", _number(1, _UINT16_MAX - 2)),
    _Built("MaxTasksPerNode", "max_tasks_per_node", _number(1, _UINT16_MAX - 2)),
    _Built("JobRequeue", "job_requeue", _flag),
    _Built("KillOnBadExit", "kill_on_bad_exit", _flag),
    _Built("WaitTime", "wait_time_s", _number(0, _UINT16_MAX - 2)),
    _Built("RequeueExit", "requeue_exit", _exit_codes),
    _Built("RequeueExitHold", "requeue_exit_hold", _exit_codes),
    _Built("StateSaveLocation", "state_save_location", _text),
    _Built("SlurmdSpoolDir", "slurmd_spool_dir", _text),
    _Built("JobCheckpointDir", "job_checkpoint_dir", _text),
    _Built("PluginDir", "plugin_dir", _optional_text),
    _Built("Prolog", "prolog", _script),
    _Built("Epilog", "epilog", _script),
    _Built("PrologSlurmctld", "prolog_slurmctld", _script),
    _Built("EpilogSlurmctld", "epilog_slurmctld", _script),
    _Built("TaskProlog", "task_prolog", _script),
    _Built("TaskEpilog", "task_epilog", _script),
    _Built("SrunProlog", "srun_prolog", _script),
    _Built("SrunEpilog", "srun_epilog", _script),
    _Built("PrologFlags", "prolog_flags", _prolog_flags),
)
BUILT_KEYS: Final = tuple(key.name for key in _BUILT)
"""The slurm.conf keys that change what a run does."""

SCRIPT_KEYS: Final = tuple(key.name for key in _BUILT if key.read is _script)
"""The slurm.conf keys that name a prolog or an epilog."""

# Slurm's defaults that hold because the thing they switch off, or set, is as they say.
_HONOURED: Final[dict[str, tuple[str, ...]]] = {
    "BatchStartTimeout": ("10",),
    "CompleteWait": ("0",),
    "DisableRootJobs": ("no", "0", "false"),
    "EpilogMsgTime": ("2000",),
    "HealthCheckInterval": ("0",),
    "InactiveLimit": ("0",),
    "MaxArraySize": ("1001",),
    "MpiDefault": ("none", ""),
    "PlugStackConfig": ("",),
    "ProctrackType": ("proctrack/cgroup", "proctrack/pgid"),
    "PropagateResourceLimits": ("all",),
    "ResumeTimeout": ("60",),
    "SlurmctldPort": ("6817",),
    "SlurmdPort": ("6818",),
    "SlurmdUser": ("root",),
    "SuspendTimeout": ("30",),
    "TmpFS": ("/tmp",),
    "UnkillableStepTimeout": ("60",),
}
_NOT_BUILT_WORDS: Final = """
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageHost AccountingStorageLoc
    AccountingStoragePass AccountingStoragePort
    AccountingStorageUser AccountingStoreJobComment AcctGatherEnergyType AcctGatherFilesystemType
    AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType
    AllowSpecResourcesUsage AuthInfo AuthType BackupAddr BurstBufferParameters
    CacheGroups ChosLoc CommunicationParameters ControlAddr ControlMachine CoreSpecPlugin CpuFreqDef
    CpuFreqGovernors CryptoType DefaultStorageHost DefaultStorageLoc DefaultStoragePass
    DefaultStoragePort DefaultStorageType DefaultStorageUser DefCPUPerGPU DefMemPerGPU DownNodes
    EioTimeout ExtSensorsFreq ExtSensorsType
    FairShareDampeningFactor FastSchedule FederationParameters FrontendName GetEnvTimeout GraceTime
    GroupUpdateForce GroupUpdateTime HealthCheckNodeState HealthCheckProgram Include
    JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc JobCompPass
    JobCompPort JobCompType JobCompUser JobContainerType JobCredentialPrivateKey
    JobCredentialPublicCertificate JobFileAppend JobSubmitPlugins KeepAliveTime
    LaunchParameters LaunchType Layouts Licenses LogTimeFormat MailDomain MailProg MaxMemPerCPU
    MaxMemPerNode MaxStepCount MCSParameters MCSPlugin MemLimitEnforce MpiParams
    MsgAggregationParams NodeFeaturesPlugins PowerParameters PowerPlugin PriorityCalcPeriod
    PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityParameters
    PriorityType PriorityUsageResetPeriod PriorityWeightAge PriorityWeightFairshare
    PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData
    PrologEpilogTimeout PropagatePrioProcess PropagateResourceLimitsExcept RebootProgram
    ReconfigFlags ResumeFailProgram ResumeProgram ResumeRate ResvEpilog
    ResvOverRun ResvProlog RoutePlugin SallocDefaultCommand SbcastParameters SchedulerAuth
    SchedulerPort SchedulerRootFilter SchedulerTimeSlice SlurmctldAddr
    SlurmctldDebug SlurmctldLogFile SlurmctldParameters SlurmctldPidFile
    SlurmctldPlugstack SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldSyslogDebug
    SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdSyslogDebug SlurmSchedLogFile
    SlurmSchedLogLevel SrunPortRange SuspendExcNodes SuspendExcParts
    SuspendProgram SuspendRate SuspendTime TaskPlugin TaskPluginParam TCPTimeout TopologyParam
    TopologyPlugin TrackWCKey UnkillableStepProgram UsePAM VSizeFactor X11Parameters
    AccountingStorageExternalHost AccountingStorageParameters AccountingStoreFlags
    AuthAltParameters AuthAltTypes BcastExclude BcastParameters CliFilterPlugins CredType
    DependencyParameters GpuFreqDef InteractiveStepOptions JobCompParams JobCompPassScript
    JobDefaults MaxBatchRequeue MaxDBDMsgs MaxNodeCount NodeSet PreemptExemptTime
    PreemptParameters PrEpParameters PrEpPlugins PrioritySiteFactorParameters
    PrioritySiteFactorPlugin PriorityWeightAssoc ScronParameters SwitchParameters
"""
_NOT_BUILT: Final = frozenset(_NOT_BUILT_WORDS.split())
_ELSEWHERE: Final = {
    "NodeName": "nodes are given beside slurm_conf, under nodes",
    "PartitionName": "partitions are given beside slurm_conf, under partitions",
}

_BUILT_BY_KEY: Final = {key.name.casefold(): key for key in _BUILT}
_KNOWN_BY_KEY: Final = {
    name.casefold(): name for name in (*_HONOURED, *sorted(_NOT_BUILT), *_ELSEWHERE)
}


def read_conf(mapping: Mapping[str, object]) -> tuple[SlurmConf, list[ConfMistake]]:
    """Read the keys and values of a slurm.conf.

    Keys match whatever their case, as in Slurm.

    Returns:
        The configuration, with the default wherever a value could not be taken, and every
        mistake there is, in the order of the keys.
    """
    fields: dict[str, object] = {}
    given: dict[str, str] = {}
    mistakes: list[ConfMistake] = []
    for raw_key, value in mapping.items():
        key = str(raw_key)
        folded = key.casefold()
        try:
            if folded in given:
                message = f"given twice: {given[folded]} is the same key"
                raise _Refused(message)  # noqa: TRY301 - one place collects them all
            given[folded] = key
            fields.update(_read_key(key, value))
        except _Refused as error:
            mistakes.extend(ConfMistake(key=key, message=message) for message in error.args)
    conf = SlurmConf(**fields)  # type: ignore[arg-type]  # each reader gives its field's type
    if conf.slurmctld_hosts:
        if conf.backup_controller:
            message = "SlurmctldHost names the controllers too; give one of the two forms"
            mistakes.append(ConfMistake(key=given["backupcontroller"], message=message))
        backup = "".join(conf.slurmctld_hosts[1:])
        conf = attrs.evolve(conf, backup_controller=backup)
    if conf.first_job_id > conf.max_job_id:
        key = given.get("firstjobid") or given["maxjobid"]
        message = f"FirstJobId {conf.first_job_id} is above MaxJobId {conf.max_job_id}"
        mistakes.append(ConfMistake(key=key, message=message))
    if (conf.preempt_type == "preempt/none") != (conf.preempt_mode == "OFF"):
        mistakes.append(_preemption_mistake(conf, given))
    return conf, mistakes


def _preemption_mistake(conf: SlurmConf, given: Mapping[str, str]) -> ConfMistake:
    """Say that PreemptType and PreemptMode do not go together, at the one that was given."""
    if conf.preempt_type == "preempt/none":
        message = "needs PreemptType=preempt/partition_prio; without it nobody is preempted"
        return ConfMistake(key=given["preemptmode"], message=message)
    message = "needs a PreemptMode beside it: CANCEL, REQUEUE or SUSPEND,GANG"
    return ConfMistake(key=given["preempttype"], message=message)


def _read_key(key: str, value: object) -> dict[str, object]:
    """Return the field a built key sets, nothing for a default that holds, or refuse."""
    folded = key.casefold()
    built = _BUILT_BY_KEY.get(folded)
    if built is not None:
        return {built.field: built.read(value)}
    name = _KNOWN_BY_KEY.get(folded)
    if name is None:
        raise _Refused(unknown_key(key))
    if name in _ELSEWHERE:
        raise _Refused(_ELSEWHERE[name])
    defaults = _HONOURED.get(name, ())
    if _folded_value(value) in defaults:
        return {}
    message = f"{name} is known to Slurm but not simulated yet"
    if defaults and defaults[0]:
        message += f"; leave it out, or give Slurm's default, {defaults[0]}"
    raise _Refused(message)


def _folded_value(value: object) -> str:
    """Return *value* for a comparison; "(null)" is how Slurm prints what is not set."""
    text = "" if value is None else str(value).strip().casefold()
    return "" if text == "(null)" else text


_DAYS_AND_TIME: Final = re.compile(r"([0-9]+)-([0-9]+)(?::([0-9]+))?(?::([0-9]+))?")
_TIME: Final = re.compile(r"([0-9]+)(?::([0-9]+))?(?::([0-9]+))?")
_TIME_FORMS: Final = (
    "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,"
    " days-hours:minutes:seconds or UNLIMITED"
)


def parse_time_limit(text: str) -> int:
    """Return a time limit in seconds, as ``--time`` and MaxTime are written.

    No part has an upper bound of its own: ``90:00`` is an hour and a half.

    Returns:
        Seconds, or INFINITE for ``UNLIMITED``, ``INFINITE`` and ``-1``.

    Raises:
        ValueError: The text has none of Slurm's forms, or the time does not fit 32 bits.
    """
    stripped = text.strip()
    if stripped.upper() in {"UNLIMITED", "INFINITE", "-1"}:
        return INFINITE
    seconds = _limit_seconds(stripped)
    if seconds is None:
        msg = f'expected {_TIME_FORMS}, got "{text}"'
        raise ValueError(msg)
    if seconds >= NO_VAL:
        msg = f'"{text}" is too long a time; write UNLIMITED for no limit'
        raise ValueError(msg)
    return seconds


def _limit_seconds(text: str) -> int | None:
    """Return the seconds that *text* spells, or None when it has no form of Slurm's."""
    match = _DAYS_AND_TIME.fullmatch(text)
    if match is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    parts = [int(part) for part in match.groups() if part is not None]
    if len(parts) == 1:
        return parts[0] * 60
    total = 0
    for part in parts:
        total = total * 60 + part
    return total


def parse_time_limit_min(text: str) -> int:
    """Return a time limit in whole minutes, seconds rounded up; INFINITE for no limit.

    Raises:
        ValueError: As `parse_time_limit`.
    """
    seconds = parse_time_limit(text)
    return INFINITE if seconds == INFINITE else -(-seconds // 60)


def format_time_limit_min(minutes: int, *, padded: bool = False) -> str:
    """Return a time limit as squeue prints it, ``10:00`` or ``1-02:00:00``.

    Args:
        minutes: The limit, or INFINITE.
        padded: Print hours always, as scontrol does: ``00:10:00``.
    """
    if minutes == INFINITE:
        return "UNLIMITED"
    days, rest = divmod(minutes, 24 * 60)
    hours, mins = divmod(rest, 60)
    if days:
        return f"{days}-{hours:02}:{mins:02}:00"
    if padded:
        return f"{hours:02}:{mins:02}:00"
    return f"{hours}:{mins:02}:00" if hours else f"{mins}:00"
