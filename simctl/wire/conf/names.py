"""Keys of slurm.conf that other releases have, and those that may stand several times."""

from typing import Final

RENAMED: Final = {
    "AccountingStorageLoc": "",
    "AccountingStoreJobComment": "AccountingStoreFlags=job_comment",
    "AcctGatherInfinibandType": "AcctGatherInterconnectType",
    "BackupAddr": "SlurmctldHost",
    "CacheGroups": "",
    "ChosLoc": "",
    "ControlAddr": "SlurmctldHost",
    "ControlMachine": "SlurmctldHost",
    "CryptoType": "CredType",
    "DefaultStorageHost": "AccountingStorageHost",
    "DefaultStorageLoc": "",
    "DefaultStoragePass": "AccountingStoragePass",
    "DefaultStoragePort": "AccountingStoragePort",
    "DefaultStorageType": "AccountingStorageType",
    "DefaultStorageUser": "AccountingStorageUser",
    "FastSchedule": "SlurmdParameters=config_overrides",
    "Layouts": "",
    "MemLimitEnforce": "JobAcctGatherParams",
    "MsgAggregationParams": "",
    "SallocDefaultCommand": "LaunchParameters=use_interactive_step",
    "SchedulerAuth": "",
    "SchedulerPort": "",
    "SchedulerRootFilter": "",
}
"""Keys of older releases: what stands in their place by Slurm 22.05, or nothing."""

_NEWER: Final = """
    CertgenParameters CertgenType CertmgrParameters CertmgrType CliFilterParameters
    DataParserParameters EpilogTimeout HashPlugin MetricsType NamespaceType PrologTimeout
    SlurmctldStartTimeout SuspendExcStates TLSParameters TLSType UrlParserType
"""
NEWER: Final = {key.casefold(): key for key in _NEWER.split()}
"""Keys that came after Slurm 22.05, by their folded names: a site's own file may hold them."""

REPEATED: Final = frozenset({"slurmctldhost"})
"""Keys, folded, of which each further line adds something."""


def renamed(name: str) -> str:
    """Say what has become of a key that is out of use; nothing of any other."""
    if name not in RENAMED:
        return ""
    return f"now {RENAMED[name]}" if RENAMED[name] else "gone from newer releases"
