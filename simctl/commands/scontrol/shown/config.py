"""``scontrol show config``: slurm.conf as simctl runs it, and Slurm's defaults for the rest."""

from typing import Final

from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.ping import ping
from simctl.commands.scontrol.shown.node import VERSION
from simctl.commands.scontrol.text import NULL, moment
from simctl.wire.conf.slurm_conf import BUILT_KEYS, SlurmConf, can_checkpoint
from simctl.wire.ids import INFINITE
from simctl.wire.messages import RequestBuildInfo, ResponseBuildInfo

_WIDTH: Final = 23
_OF_CHECKPOINTS: Final = ("CheckpointType", "JobCheckpointDir")


async def show_config(order: Order, _: str | None) -> int:
    """Print the configuration, then whether the controller answers."""
    answer = await order.load(RequestBuildInfo(), "slurm_load_ctl_conf")
    if not isinstance(answer, ResponseBuildInfo):
        return 1
    order.call.out(f"Configuration data as of {moment(answer.now_s)}")
    own = {
        "BOOT_TIME": moment(answer.boot_s),
        "MaxNodeCount": str(answer.num_nodes),
        "NEXT_JOB_ID": str(answer.next_job_id),
        "SLURM_VERSION": VERSION,
    }
    conf = order.call.site.conf
    user = order.call.site.users[conf.slurm_user]
    own["SlurmUser"] = f"{user.name}({user.uid})"
    for line in _LINES.strip().splitlines():
        name, _, usual = line.partition(" ")
        if name in _OF_CHECKPOINTS and not can_checkpoint(conf):
            # Slurm 22.05 has neither key any more.
            continue
        value = own.get(name) or _value(conf, name, usual)
        if name == "DefMemPerCPU" and not conf.def_mem_per_cpu_mb:
            name, value = "DefMemPerNode", str(conf.def_mem_per_node_mb or "UNLIMITED")
        order.call.out(f"{name:{_WIDTH}} = {value}")
        if name == "SlurmctldHost[0]" and conf.backup_controller:
            order.call.out(f"{'SlurmctldHost[1]':{_WIDTH}} = {conf.backup_controller}")
    order.call.out("")
    return await ping(order.with_words(()))


def _value(conf: SlurmConf, name: str, usual: str) -> str:
    """Return what a key is set to, in the unit of its usual value; else that."""
    if name == "SelectTypeParameters":
        return conf.select_type_parameters.upper() or "NONE"
    if name == "SchedulerParameters":
        return _set_words(str(conf.scheduler_parameters)) or NULL
    if name == "AccountingStorageTRES":
        return ",".join((usual, *conf.accounting_storage_tres))
    if name not in BUILT_KEYS:
        return usual
    found = conf.value(name)
    if found == INFINITE:
        return "UNLIMITED"
    text = str(int(found)) if isinstance(found, bool) else str(found)
    number, _, unit = usual.partition(" ")
    return f"{text} {unit}" if unit and number.isdecimal() else text or NULL


def _set_words(words: str) -> str:
    """Return those words of SchedulerParameters that are not as they are by default."""
    usual = str(SlurmConf().scheduler_parameters).split(",")
    return ",".join(word for word in words.split(",") if word not in usual)


_LINES: Final = """
AccountingStorageBackupHost (null)
AccountingStorageEnforce none
AccountingStorageHost localhost
AccountingStorageExternalHost (null)
AccountingStorageParameters (null)
AccountingStoragePort 0
AccountingStorageTRES cpu,mem,energy,node,billing,fs/disk,vmem,pages
AccountingStorageType accounting_storage/none
AccountingStorageUser root
AccountingStoreFlags (null)
AcctGatherEnergyType acct_gather_energy/none
AcctGatherFilesystemType acct_gather_filesystem/none
AcctGatherInterconnectType acct_gather_interconnect/none
AcctGatherNodeFreq 0 sec
AcctGatherProfileType acct_gather_profile/none
AllowSpecResourcesUsage No
AuthAltTypes (null)
AuthAltParameters (null)
AuthInfo (null)
AuthType auth/munge
BatchStartTimeout 10 sec
BcastExclude /lib,/usr/lib,/lib64,/usr/lib64
BcastParameters (null)
BOOT_TIME 2026-11-20T23:14:07
BurstBufferType (null)
CheckpointType checkpoint/none
CliFilterPlugins (null)
ClusterName golden
CommunicationParameters (null)
CompleteWait 0 sec
CoreSpecPlugin core_spec/none
CpuFreqDef Unknown
CpuFreqGovernors OnDemand,Performance,UserSpace
CredType cred/munge
DebugFlags (null)
DefMemPerCPU 100
DependencyParameters (null)
DisableRootJobs No
EioTimeout 60
EnforcePartLimits NO
Epilog (null)
EpilogMsgTime 2000 usec
EpilogSlurmctld (null)
ExtSensorsType ext_sensors/none
ExtSensorsFreq 0 sec
FairShareDampeningFactor 1
FederationParameters (null)
FirstJobId 1
GetEnvTimeout 2 sec
GresTypes gpu
GpuFreqDef high,memory=high
GroupUpdateForce 1
GroupUpdateTime 600 sec
HASH_VAL Match
HealthCheckInterval 0 sec
HealthCheckNodeState ANY
HealthCheckProgram (null)
InactiveLimit 0 sec
InteractiveStepOptions --interactive --preserve-env --pty $SHELL
JobAcctGatherFrequency 30
JobAcctGatherType jobacct_gather/none
JobAcctGatherParams (null)
JobCheckpointDir /var/slurm/checkpoint
JobCompHost localhost
JobCompLoc /var/log/slurm_jobcomp.log
JobCompPort 0
JobCompType jobcomp/none
JobCompUser root
JobContainerType job_container/none
JobCredentialPrivateKey (null)
JobCredentialPublicCertificate (null)
JobDefaults (null)
JobFileAppend 0
JobRequeue 1
JobSubmitPlugins (null)
KillOnBadExit 0
KillWait 5 sec
LaunchParameters (null)
LaunchType launch/slurm
Licenses (null)
LogTimeFormat iso8601_ms
MailDomain (null)
MailProg /bin/mail
MaxArraySize 1001
MaxDBDMsgs 0
MaxJobCount 10000
MaxJobId 67043328
MaxMemPerNode UNLIMITED
MaxNodeCount
MaxStepCount 40000
MaxTasksPerNode 512
MCSPlugin mcs/none
MCSParameters (null)
MessageTimeout 10 sec
MinJobAge 300 sec
MpiDefault none
MpiParams (null)
MULTIPLE_SLURMD No
NEXT_JOB_ID 67
NodeFeaturesPlugins (null)
OverTimeLimit 0 min
PluginDir
PlugStackConfig (null)
PowerParameters (null)
PowerPlugin
PreemptMode OFF
PreemptType preempt/none
PreemptExemptTime 00:00:00
PrEpParameters (null)
PrEpPlugins prep/script
PriorityParameters (null)
PrioritySiteFactorParameters (null)
PrioritySiteFactorPlugin (null)
PriorityDecayHalfLife 7-00:00:00
PriorityCalcPeriod 00:05:00
PriorityFavorSmall No
PriorityFlags
PriorityMaxAge 7-00:00:00
PriorityUsageResetPeriod NONE
PriorityType priority/basic
PriorityWeightAge 0
PriorityWeightAssoc 0
PriorityWeightFairShare 0
PriorityWeightJobSize 0
PriorityWeightPartition 0
PriorityWeightQOS 0
PriorityWeightTRES (null)
PrivateData none
ProctrackType proctrack/cgroup
Prolog (null)
PrologEpilogTimeout 65534
PrologSlurmctld (null)
PrologFlags
PropagatePrioProcess 0
PropagateResourceLimits ALL
PropagateResourceLimitsExcept (null)
RebootProgram (null)
ReconfigFlags (null)
RequeueExit (null)
RequeueExitHold (null)
ResumeFailProgram (null)
ResumeProgram (null)
ResumeRate 300 nodes/min
ResumeTimeout 60 sec
ResvEpilog (null)
ResvOverRun 0 min
ResvProlog (null)
ReturnToService
RoutePlugin route/default
SchedulerParameters bf_interval=2,sched_interval=2,sched_min_interval=0
SchedulerTimeSlice 30 sec
SchedulerType sched/backfill
ScronParameters (null)
SelectType select/cons_tres
SelectTypeParameters CR_CORE_MEMORY
SlurmUser
SlurmctldAddr (null)
SlurmctldDebug info
SlurmctldHost[0] slurmctld
SlurmctldLogFile (null)
SlurmctldPort 6817
SlurmctldSyslogDebug (null)
SlurmctldPrimaryOffProg (null)
SlurmctldPrimaryOnProg (null)
SlurmctldTimeout 120 sec
SlurmctldParameters (null)
SlurmdDebug info
SlurmdLogFile (null)
SlurmdParameters (null)
SlurmdPidFile /var/run/slurmd.pid
SlurmdPort 6818
SlurmdSpoolDir /home/spool/%n
SlurmdSyslogDebug (null)
SlurmdTimeout 60 sec
SlurmdUser root(0)
SlurmSchedLogFile (null)
SlurmSchedLogLevel 0
SlurmctldPidFile /var/run/slurmctld.pid
SlurmctldPlugstack (null)
SLURM_CONF /etc/slurm/slurm.conf
SLURM_VERSION 22.05.8
SrunEpilog (null)
SrunPortRange 0-0
SrunProlog (null)
StateSaveLocation /home/state
SuspendExcNodes (null)
SuspendExcParts (null)
SuspendProgram (null)
SuspendRate 60 nodes/min
SuspendTime INFINITE
SuspendTimeout 30 sec
SwitchParameters (null)
SwitchType
TaskEpilog (null)
TaskPlugin task/none
TaskPluginParam (null type)
TaskProlog (null)
TCPTimeout 2 sec
TmpFS /tmp
TopologyParam (null)
TopologyPlugin topology/none
TrackWCKey No
TreeWidth 50
UsePam No
UnkillableStepProgram (null)
UnkillableStepTimeout 60 sec
VSizeFactor 0 percent
WaitTime 0 sec
X11Parameters (null)
"""
"""What is printed of each key: its name, and the value that stands where simctl has no own."""
