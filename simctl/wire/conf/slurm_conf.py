"""slurm.conf: the keys that change what the simulator does.

Three kinds of keys: those that are built, one line each in `SlurmConf`; those Slurm 18.08 or 22.05
knows but that are not simulated (`known`), which may be given only where their default already
holds; and unknown ones.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from simctl.wire.conf import readers as read
from simctl.wire.conf.known import ELSEWHERE, HONOURED, KNOWN_BY_KEY, folded_value
from simctl.wire.conf.readers import NOT_SIMULATED, UINT16_MAX, Reader, Refused, did_you_mean
from simctl.wire.conf.scheduler import SchedulerParameters, scheduler_parameters
from simctl.wire.ids import NO_VAL

JOB_ID_MAX: Final = 0x03FFFFFF  # six bits above it name a federated cluster
DEFAULT_MAX_JOB_ID: Final = 0x03FF0000
PROLOG_FLAGS: Final = ("Contain", "DeferBatch", "ForceRequeueOnFail", "NoHold", "Serial", "X11")
DEBUG_FLAGS: Final = (
    *("Backfill", "BackfillMap", "BurstBuffer", "CPU_Bind", "CPU_Freq", "Elasticsearch", "Energy"),
    *("ExtSensors", "Federation", "FrontEnd", "Gang", "Gres", "HeteroJobs", "JobContainer"),
    *("License", "NO_CONF_HASH", "NodeFeatures", "Power", "Priority", "Protocol", "Reservation"),
    *("SelectType", "Steps", "TimeCray", "TraceJobs", "Triggers", "Wiki"),
)
SCHEDULERS: Final = ("sched/hold",)
SELECTS: Final = (
    "select/cons_res",
    "select/cray",
    "select/cray_aries",
    "select/alps",
    "select/serial",
)


@attrs.frozen
class Built:
    """A key that is built: its name, its field in SlurmConf, and how its value is read."""

    name: str
    field: str
    read: Reader


def key(name: str, reader: Reader, default: Any) -> Any:
    """Declare the field that a key of slurm.conf sets: how its value is read, and its default."""
    return attrs.field(default=default, metadata={"key": (name, reader)})


@attrs.frozen(kw_only=True)
class SlurmConf:
    """A cluster's slurm.conf."""

    cluster_name: str = key("ClusterName", read.text, "cluster")
    slurm_user: str = key("SlurmUser", read.text, "slurm")
    switch_type: str = key("SwitchType", read.plugin_type("switch"), "switch/none")
    switch_parameters: str = key("SwitchParameters", read.optional_text, "")
    debug_flags: str = key("DebugFlags", read.one_built_of("DebugFlags", "Switch", DEBUG_FLAGS), "")
    checkpoint_type: str = key("CheckpointType", read.plugin_type("checkpoint"), "checkpoint/none")
    burst_buffer_types: tuple[str, ...] = key("BurstBufferType", read.burst_buffer_types, ())
    """The plugins of BurstBufferType, such as ``burst_buffer/generic``, in their order."""
    job_submit_types: tuple[str, ...] = key("JobSubmitPlugins", read.plugin_names("job_submit"), ())
    """The plugins of JobSubmitPlugins, such as ``job_submit/lua``, in their order."""
    cli_filter_types: tuple[str, ...] = key("CliFilterPlugins", read.plugin_names("cli_filter"), ())
    """The plugins of CliFilterPlugins, such as ``cli_filter/lua``, in their order."""
    accounting_storage_type: str = key(
        "AccountingStorageType",
        read.one_of(
            "accounting_storage",
            ("accounting_storage/slurmdbd", "accounting_storage/none"),
            ("accounting_storage/mysql", "accounting_storage/filetxt"),
        ),
        "accounting_storage/slurmdbd",
    )
    accounting_storage_tres: tuple[str, ...] = key("AccountingStorageTRES", read.tracked, ())
    """What is counted beside the usual, such as ``bb/generic``."""
    scheduler_type: str = key(
        "SchedulerType",
        read.one_of("sched", ("sched/backfill", "sched/builtin"), SCHEDULERS),
        "sched/backfill",
    )
    scheduler_parameters: SchedulerParameters = key(
        "SchedulerParameters", scheduler_parameters, SchedulerParameters()
    )
    select_type: str = key(
        "SelectType",
        read.one_of("select", ("select/linear", "select/cons_tres"), SELECTS),
        "select/linear",
    )
    select_type_parameters: str = key("SelectTypeParameters", read.select_parameters, "")
    enforce_part_limits: str = key("EnforcePartLimits", read.enforced, "NO")
    """Whether submissions that exceed limits of partitions are refused: `NO`, `ANY` or `ALL`."""
    def_mem_per_cpu_mb: int = key("DefMemPerCPU", read.number(0, NO_VAL - 1), 0)
    def_mem_per_node_mb: int = key("DefMemPerNode", read.number(0, NO_VAL - 1), 0)
    gres_types: tuple[str, ...] = key("GresTypes", read.names, ())
    preempt_type: str = key(
        "PreemptType",
        read.one_of("preempt", ("preempt/none", "preempt/partition_prio"), ("preempt/qos",)),
        "preempt/none",
    )
    preempt_mode: str = key("PreemptMode", read.preempt_mode, "OFF")
    first_job_id: int = key("FirstJobId", read.number(1, JOB_ID_MAX), 1)
    max_job_id: int = key("MaxJobId", read.number(1, JOB_ID_MAX), DEFAULT_MAX_JOB_ID)
    max_job_count: int = key("MaxJobCount", read.number(1, NO_VAL - 1), 10000)
    kill_wait_s: int = key("KillWait", read.number(0, UINT16_MAX - 2), 30)
    min_job_age_s: int = key("MinJobAge", read.number(0, NO_VAL - 1), 300)
    """0: finished jobs are never purged."""
    message_timeout_s: int = key("MessageTimeout", read.number(1, UINT16_MAX - 2), 10)
    """How long an answer is waited for."""
    slurmctld_timeout_s: int = key("SlurmctldTimeout", read.number(1, UINT16_MAX - 2), 120)
    backup_controller: str = key("BackupController", read.optional_text, "")
    slurmctld_hosts: tuple[str, ...] = key("SlurmctldHost", read.controllers, ())
    """The primary and the backup, where SlurmctldHost names them; what they are both in."""
    slurmd_timeout_s: int = key("SlurmdTimeout", read.number(0, UINT16_MAX - 2), 300)
    """0: a node that does not answer is never set down."""
    return_to_service: int = key("ReturnToService", read.number(0, 2), 0)
    over_time_limit_min: int = key("OverTimeLimit", read.over_time_limit, 0)
    """INFINITE: jobs may pass their time limit for ever."""
    tree_width: int = key("TreeWidth", read.number(1, UINT16_MAX - 2), 50)
    max_tasks_per_node: int = key("MaxTasksPerNode", read.number(1, UINT16_MAX - 2), 512)
    job_requeue: bool = key("JobRequeue", read.flag, True)
    kill_on_bad_exit: bool = key("KillOnBadExit", read.flag, False)
    wait_time_s: int = key("WaitTime", read.number(0, UINT16_MAX - 2), 0)
    """How long srun lets a step go on whose first task has ended; 0: as long as it takes."""
    requeue_exit: read.ExitCodes = key("RequeueExit", read.exit_codes, read.ExitCodes())
    """Batch jobs that exit so go back into the queue."""
    requeue_exit_hold: read.ExitCodes = key("RequeueExitHold", read.exit_codes, read.ExitCodes())
    """Batch jobs that exit so go back into the queue and are held there."""
    state_save_location: str = key("StateSaveLocation", read.text, "/var/spool")
    slurmd_spool_dir: str = key("SlurmdSpoolDir", read.text, "/var/spool/slurmd")
    job_checkpoint_dir: str = key("JobCheckpointDir", read.text, "/var/slurm/checkpoint")
    plugin_dir: str = key("PluginDir", read.optional_text, "")
    prolog: str = key("Prolog", read.script, "")
    epilog: str = key("Epilog", read.script, "")
    prolog_slurmctld: str = key("PrologSlurmctld", read.script, "")
    epilog_slurmctld: str = key("EpilogSlurmctld", read.script, "")
    task_prolog: str = key("TaskProlog", read.script, "")
    task_epilog: str = key("TaskEpilog", read.script, "")
    srun_prolog: str = key("SrunProlog", read.script, "")
    srun_epilog: str = key("SrunEpilog", read.script, "")
    prolog_flags: str = key(
        "PrologFlags", read.one_built_of("PrologFlags", "Alloc", PROLOG_FLAGS), ""
    )
    """``Alloc`` or nothing."""

    @property
    def plugin_types(self) -> tuple[str, ...]:
        """Return the plugins that daemons load, such as ``switch/none``."""
        return (
            self.switch_type,
            self.checkpoint_type,
            *self.burst_buffer_types,
            *self.job_submit_types,
            *self.cli_filter_types,
        )

    @property
    def accounts(self) -> bool:
        """Return whether slurmdbd keeps accounts, users have theirs there, and jobs a QOS."""
        return self.accounting_storage_type != "accounting_storage/none"

    @property
    def shares_memory(self) -> bool:
        """Return whether slurm.conf says that memory is shared out as cpus are."""
        return "MEMORY" in self.select_type_parameters

    def value(self, key: str) -> str | int | bool:
        """Return what a key of slurm.conf is set to, or Slurm's default, whatever the key's case.

        Raises:
            KeyError: Slurm has no such key, or it is not simulated; the text says which.
        """
        built = BUILT_BY_KEY.get(key.casefold())
        if built is not None:
            found = getattr(self, built.field)
            if isinstance(found, tuple):
                return ",".join(found)
            return found if isinstance(found, str | int) else str(found)
        name = KNOWN_BY_KEY.get(key.casefold())
        if name in HONOURED:
            return HONOURED[name][0]
        if name is not None:
            raise KeyError(f"{name} is known to Slurm but not simulated yet")
        raise KeyError(unknown_key(key))

    @staticmethod
    def keys() -> tuple[str, ...]:
        """Return the keys that `value` knows."""
        return (*BUILT_KEYS, *HONOURED)


_BUILT: Final = tuple(
    Built(field.metadata["key"][0], field.name, field.metadata["key"][1])
    for field in attrs.fields(SlurmConf)
)
BUILT_KEYS: Final = tuple(key.name for key in _BUILT)
"""The slurm.conf keys that change what a run does."""

PLUGIN_KEYS: Final = (
    *("SwitchType", "CheckpointType", "BurstBufferType", "JobSubmitPlugins", "CliFilterPlugins"),
)
"""The slurm.conf keys that name the plugins that daemons and commands load."""

SCRIPT_KEYS: Final = tuple(key.name for key in _BUILT if key.read is read.script)
"""The slurm.conf keys that name a prolog or an epilog."""

BUILT_BY_KEY: Final = {key.name.casefold(): key for key in _BUILT}
_NO_CHECKPOINTS: Final = SlurmConf().checkpoint_type


def can_checkpoint(conf: SlurmConf) -> bool:
    """Return whether a checkpoint plugin is configured that is more than checkpoint/none."""
    return conf.checkpoint_type != _NO_CHECKPOINTS


@attrs.frozen(kw_only=True)
class ConfMistake:
    """Something in slurm.conf that cannot be taken: the key as it was written, and why."""

    key: str
    message: str

    @property
    def unbuilt(self) -> bool:
        """Whether Slurm takes it, and it is not simulated."""
        return NOT_SIMULATED in self.message


def unknown_key(key: str) -> str:
    """Say that Slurm has no such key, with the name that is nearest."""
    hint = did_you_mean(key, {*BUILT_KEYS, *KNOWN_BY_KEY.values()})
    return f'"{key}" is not a slurm.conf key{hint}'


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
                raise Refused(message)  # noqa: TRY301 - one place collects them all
            given[folded] = key
            fields.update(_read_key(key, value))
        except Refused as error:
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
    built = BUILT_BY_KEY.get(folded)
    if built is not None:
        return {built.field: built.read(value)}
    name = KNOWN_BY_KEY.get(folded)
    if name is None:
        raise Refused(unknown_key(key))
    if name in ELSEWHERE:
        raise Refused(ELSEWHERE[name])
    defaults = HONOURED.get(name, ())
    if folded_value(value) in defaults:
        return {}
    message = f"{name} is known to Slurm but not simulated yet"
    if defaults and defaults[0]:
        message += f"; leave it out, or give Slurm's default, {defaults[0]}"
    raise Refused(message)
