"""The lines of slurm.conf that describe one thing each: which keys act, and how they are read."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from simctl.wire.conf import values as read
from simctl.wire.conf.cluster import Ignored
from simctl.wire.conf.lines import Setting, SiteMistake
from simctl.wire.conf.readers import NOT_SIMULATED, did_you_mean
from simctl.wire.features import feature_names
from simctl.wire.ids import NO_VAL

_COUNT: Final = read.whole(1, 0xFFFD)
_MEGABYTES: Final = read.memory
Readers = Mapping[str, Callable[[str], Any]]

NODE_KEYS: Final[Readers] = {
    "CPUs": _COUNT,
    "Procs": _COUNT,
    "Boards": _COUNT,
    "Sockets": _COUNT,
    "SocketsPerBoard": _COUNT,
    "CoresPerSocket": _COUNT,
    "ThreadsPerCore": _COUNT,
    "RealMemory": read.whole(1, 2**63 - 1),
    "Gres": read.gres,
    "Feature": feature_names,
    "Features": feature_names,
    "State": read.node_state,
    "Reason": str,
}
"""The keys of a NodeName line that act."""

PARTITION_KEYS: Final[Readers] = {
    "Nodes": str,
    "Default": read.boolean,
    "MaxTime": read.time_limit,
    "DefaultTime": read.default_time,
    "MaxNodes": read.node_count,
    "MinNodes": read.whole(0, NO_VAL - 1),
    "State": read.part_state,
    "PriorityTier": read.whole(0, 0xFFFE),
    "Priority": read.whole(0, 0xFFFE),
    "OverSubscribe": read.over_subscribe,
    "Shared": read.over_subscribe,
    "PreemptMode": read.preempt_mode,
    "GraceTime": read.whole(0, NO_VAL - 1),
    "RootOnly": read.boolean,
    "AllowAccounts": read.accounts,
    "DenyAccounts": read.words,
    "DefMemPerCPU": _MEGABYTES,
    "DefMemPerNode": _MEGABYTES,
}
"""The keys of a PartitionName line that act."""

DOWN_KEYS: Final[Readers] = {"State": read.down_state, "Reason": str}
NODE_SET_KEYS: Final[Readers] = {"Nodes": str, "Feature": str}

_NODE_WITHOUT_EFFECT: Final = """
    BcastAddr CoreSpecCount CpuBind CPUSpecList MemSpecLimit NodeAddr NodeHostname Port
    RestrictedCoresPerGPU Topology TmpDisk TRESWeights Weight
"""
_PARTITION_WITHOUT_EFFECT: Final = """
    AllocNodes AllowGroups AllowQOS Alternate CpuBind DefCpuPerGPU DefMemPerGPU DenyQOS
    DisableRootJobs ExclusiveTopo ExclusiveUser Hidden JobDefaults LLN MaxCPUsPerNode
    MaxCPUsPerSocket MaxMemPerCPU MaxMemPerNode OverTimeLimit PowerDownOnIdle PriorityJobFactor QOS
    ReqResv ResumeTimeout SelectTypeParameters SuspendTime SuspendTimeout Topology
    TRESBillingWeights
"""
NO_EFFECT: Final = {
    "NodeName": tuple(_NODE_WITHOUT_EFFECT.split()),
    "PartitionName": tuple(_PARTITION_WITHOUT_EFFECT.split()),
    "DownNodes": (),
    "NodeSet": (),
}
"""Keys of each kind of line that Slurm knows and nothing here depends on."""

ACTING: Final[Mapping[str, Readers]] = {
    "NodeName": NODE_KEYS,
    "PartitionName": PARTITION_KEYS,
    "DownNodes": DOWN_KEYS,
    "NodeSet": NODE_SET_KEYS,
}
_FOLDED: Final = {
    kind: {key.casefold(): (key, reader) for key, reader in readers.items()}
    for kind, readers in ACTING.items()
}
_FOLDED_WITHOUT: Final = {
    kind: {key.casefold(): key for key in keys} for kind, keys in NO_EFFECT.items()
}


@attrs.define(kw_only=True)
class RecordReader:
    """Reads the values of such lines; lines that say the same of themselves are read once."""

    mistakes: list[SiteMistake]
    ignored: Ignored

    def known(self, kind: str, settings: Mapping[str, Setting]) -> dict[str, Setting]:
        """Return the settings that act, by Slurm's names; note the others."""
        acting, without = _FOLDED[kind], _FOLDED_WITHOUT[kind]
        found = {}
        for folded, setting in settings.items():
            if folded in acting:
                found[acting[folded][0]] = setting
            elif folded in without:
                self.ignored.add(f"{kind}.{without[folded]}")
            else:
                hint = did_you_mean(setting.key, {*ACTING[kind], *NO_EFFECT[kind]})
                message = f'"{setting.key}" is no key of {kind} lines{hint}'
                self.mistakes.append(SiteMistake(setting.key_place, "", message))
        return found

    def values(
        self, kind: str, settings: Mapping[str, Setting], owners: tuple[str, ...]
    ) -> dict[str, Any]:
        """Return what the settings say, by Slurm's names; what cannot be taken is left out."""
        found = {}
        for name, setting in settings.items():
            try:
                found[name] = ACTING[kind][name](setting.value)
            except ValueError as error:
                self.note(setting, str(error), owners)
        return found

    def note(self, setting: Setting, message: str, owners: tuple[str, ...] = ()) -> None:
        """Note what is wrong with a value."""
        unbuilt = NOT_SIMULATED in message
        # Of DEFAULT lines only what is plainly wrong is told: a value may be overridden below.
        if not unbuilt or owners:
            mistake = SiteMistake(setting.place, setting.key, message, unbuilt, owners)
            self.mistakes.append(mistake)
