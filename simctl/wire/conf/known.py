"""Keys of slurm.conf that Slurm 18.08 or 22.05 knows, and that are not built."""

from typing import Final

# Slurm's defaults that hold because the thing they switch off, or set, is as they say.
HONOURED: Final[dict[str, tuple[str, ...]]] = {
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
    JobCredentialPublicCertificate JobFileAppend KeepAliveTime
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
    AuthAltParameters AuthAltTypes BcastExclude BcastParameters CredType
    DependencyParameters GpuFreqDef InteractiveStepOptions JobCompParams JobCompPassScript
    JobDefaults MaxBatchRequeue MaxDBDMsgs MaxNodeCount NodeSet PreemptExemptTime
    PreemptParameters PrEpParameters PrEpPlugins PrioritySiteFactorParameters
    PrioritySiteFactorPlugin PriorityWeightAssoc ScronParameters
"""

NOT_BUILT: Final = frozenset(_NOT_BUILT_WORDS.split())

ELSEWHERE: Final = {
    "NodeName": "nodes are given beside slurm_conf, under nodes",
    "PartitionName": "partitions are given beside slurm_conf, under partitions",
}

KNOWN_BY_KEY: Final = {
    name.casefold(): name for name in (*HONOURED, *sorted(NOT_BUILT), *ELSEWHERE)
}
"""Their names as Slurm writes them, by the name folded."""


def folded_value(value: object) -> str:
    """Return *value* for a comparison; "(null)" is how Slurm prints what is not set."""
    text = "" if value is None else str(value).strip().casefold()
    return "" if text == "(null)" else text
