"""The fields of sacct: their names and widths, and what they show of a job and of a step.

What is not simulated, such as the memory that programs use, is shown as Slurm shows it of a step
that ended before it was measured: empty, or 0.
"""

import enum
from collections.abc import Callable
from typing import Final

import attrs

from simctl.commands.columns.formats import bounded_width, padded_time
from simctl.commands.sacct.lines import Line, exit_text
from simctl.wire.accounts import BATCH_STEP
from simctl.wire.ids import SECOND

Read = Callable[[Line], str]


class Kind(enum.Enum):
    """What a field that is too narrow does with its text."""

    TEXT = "it is cut, and ends with a plus"
    MOMENT = "it is cut"
    NUMBER = "it stands out"


@attrs.frozen
class Field:
    """A field; a negative width puts its texts at the left."""

    name: str
    width: int
    read: Read
    kind: Kind = Kind.TEXT

    def show(self, line: Line) -> str:
        """Return the text of a line as it stands in a table."""
        text, room = self.read(line), abs(self.width)
        if len(text) > room and self.kind is Kind.TEXT:
            text = text[: room - 1] + "+" if room else ""
        elif len(text) > room and self.kind is Kind.MOMENT:
            text = text[:room]
        return text.rjust(room) if self.width > 0 else text.ljust(room)

    def heading(self) -> str:
        """Return the name as it stands above a table."""
        text = self.name[: abs(self.width)]
        return text.rjust(self.width) if self.width > 0 else text.ljust(-self.width)


def _job(read: Read) -> Read:
    """Show something of jobs alone."""
    return lambda line: read(line) if line.step is None else ""


def _step(read: Read) -> Read:
    """Show something of steps alone."""
    return lambda line: read(line) if line.step is not None else ""


def _fixed(job: str, step: str, batch: str | None = None) -> Read:
    """Show what is always the same of jobs, of steps and of batch scripts."""

    def read(line: Line) -> str:
        if line.step is None:
            return job
        return batch if batch is not None and line.step.step_id == BATCH_STEP else step

    return read


def _nodes(line: Line) -> str:
    if line.step is not None:
        return str(line.step.num_nodes)
    return str(line.job.alloc_nodes or line.job.req_nodes)


_NOTHING: Final = _fixed("", "")
_ZERO: Final = _fixed("0", "0")
_NO_TIME: Final = _fixed("00:00:00", "00:00:00")
_ENERGY: Final = _fixed("", "energy=0")
_FREQUENCY: Final = _fixed("Unknown", "Unknown", "0")
_TEXT, _MOMENT, _NUMBER = Kind.TEXT, Kind.MOMENT, Kind.NUMBER

FIELDS: Final = (
    Field("Account", 10, lambda line: line.job.account),
    Field("AdminComment", 20, _NOTHING),
    Field("AllocCPUS", 10, lambda line: str(line.cpus), _NUMBER),
    Field(
        "AllocNodes",
        10,
        lambda line: str(line.step.num_nodes if line.step else line.job.alloc_nodes),
        _NUMBER,
    ),
    Field("AllocTRES", 10, Line.tres),
    Field("AssocID", 7, _job(lambda _: "0"), _NUMBER),
    Field("AveCPU", 10, _NOTHING),
    Field("AveCPUFreq", 10, _fixed("", "0")),
    Field("AveDiskRead", 14, _NOTHING),
    Field("AveDiskWrite", 14, _NOTHING),
    Field("AvePages", 10, _NOTHING),
    Field("AveRSS", 10, _NOTHING),
    Field("AveVMSize", 10, _NOTHING),
    Field("BlockID", 16, _NOTHING),
    Field("Cluster", 10, lambda line: line.view.cluster),
    Field("Comment", 14, _job(lambda line: line.job.comment)),
    Field("Constraints", 19, _NOTHING),
    Field("ConsumedEnergy", 14, _ZERO),
    Field("ConsumedEnergyRaw", 17, _ZERO, _NUMBER),
    Field("Container", 20, _NOTHING),
    Field("CPUTime", 10, lambda line: padded_time(line.elapsed_s * line.cpus)),
    Field("CPUTimeRAW", 10, lambda line: str(line.elapsed_s * line.cpus), _NUMBER),
    Field("DBIndex", 15, _job(lambda line: str(line.job.db_index)), _NUMBER),
    Field("DerivedExitCode", 15, _job(lambda line: exit_text(line.job.derived_exit_code))),
    Field("Elapsed", 10, lambda line: padded_time(line.elapsed_s)),
    Field("ElapsedRaw", 10, lambda line: str(line.elapsed_s), _NUMBER),
    Field("Eligible", 19, lambda line: line.since(line.job.eligible_us), _MOMENT),
    Field("End", 19, lambda line: line.known(line.record.end_us), _MOMENT),
    Field("ExitCode", 8, lambda line: exit_text(line.record.exit_code)),
    Field("Flags", 19, _NOTHING),
    Field("GID", 6, _job(lambda line: str(line.job.group_id)), _NUMBER),
    Field(
        "Group",
        9,
        _job(lambda line: line.view.groups.get(line.job.group_id, str(line.job.group_id))),
    ),
    Field("JobID", -12, lambda line: line.job_id),
    Field("JobIDRaw", -12, lambda line: line.raw_id),
    Field("JobName", 10, lambda line: line.record.name),
    Field("Layout", 9, _step(lambda line: line.step.layout if line.step else "")),
    Field("MaxDiskRead", 12, _NOTHING),
    Field("MaxDiskReadNode", 15, _NOTHING),
    Field("MaxDiskReadTask", 15, _NOTHING),
    Field("MaxDiskWrite", 12, _NOTHING),
    Field("MaxDiskWriteNode", 16, _NOTHING),
    Field("MaxDiskWriteTask", 16, _NOTHING),
    Field("MaxPages", 8, _NOTHING),
    Field("MaxPagesNode", 12, _NOTHING),
    Field("MaxPagesTask", 14, _NOTHING),
    Field("MaxRSS", 10, _NOTHING),
    Field("MaxRSSNode", 10, _NOTHING),
    Field("MaxRSSTask", 10, _NOTHING),
    Field("MaxVMSize", 10, _NOTHING),
    Field("MaxVMSizeNode", 14, _NOTHING),
    Field("MaxVMSizeTask", 14, _NOTHING),
    Field("McsLabel", 12, _NOTHING),
    Field("MinCPU", 10, _NOTHING),
    Field("MinCPUNode", 10, _NOTHING),
    Field("MinCPUTask", 10, _NOTHING),
    Field("NCPUS", 10, lambda line: str(line.cpus), _NUMBER),
    Field("NNodes", 8, _nodes, _NUMBER),
    Field("NodeList", 15, lambda line: line.record.node_list or "None assigned"),
    Field("NTasks", 8, _step(lambda line: str(line.step.num_tasks if line.step else "")), _NUMBER),
    Field("Partition", 10, _job(lambda line: line.job.partition)),
    Field("Priority", 10, _job(lambda line: str(line.job.priority)), _NUMBER),
    Field("QOS", 10, _fixed("normal", "")),
    Field("QOSRAW", 6, _fixed("1", ""), _NUMBER),
    Field("Reason", 22, _job(lambda line: line.job.reason)),
    Field("ReqCPUFreq", 10, _FREQUENCY),
    Field("ReqCPUFreqGov", 13, _FREQUENCY),
    Field("ReqCPUFreqMax", 13, _FREQUENCY),
    Field("ReqCPUFreqMin", 13, _FREQUENCY),
    Field(
        "ReqCPUS",
        8,
        lambda line: str(line.step.num_cpus if line.step else line.job.req_cpus),
        _NUMBER,
    ),
    Field("ReqMem", 10, _job(lambda line: line.view.memory(line.job.req_memory_mb))),
    Field(
        "ReqNodes",
        8,
        lambda line: str(line.step.num_nodes if line.step else line.job.req_nodes),
        _NUMBER,
    ),
    Field("ReqTRES", 10, _job(Line.asked_tres)),
    Field("Reservation", 20, _job(lambda line: line.job.reservation)),
    Field("ReservationId", 8, _NOTHING, _NUMBER),
    Field("Reserved", 10, _job(lambda line: padded_time(line.reserved_s))),
    Field("ResvCPU", 10, _job(lambda line: padded_time(line.reserved_s * line.job.req_cpus))),
    Field("ResvCPURAW", 10, _job(lambda line: str(line.reserved_s * line.job.req_cpus)), _NUMBER),
    Field("Start", 19, Line.start, _MOMENT),
    Field("State", 10, lambda line: line.state),
    Field("Submit", 19, lambda line: line.since(line.job.submit_us), _MOMENT),
    Field("SubmitLine", 20, lambda line: line.record.submit_line),
    Field("Suspended", 10, lambda line: padded_time(line.record.suspended_us // SECOND)),
    Field("SystemComment", 20, _NOTHING),
    Field("SystemCPU", 10, _NO_TIME),
    Field("Timelimit", 10, _job(lambda line: line.time_limit(raw=False))),
    Field("TimelimitRaw", 10, _job(lambda line: line.time_limit(raw=True))),
    Field("TotalCPU", 10, _NO_TIME),
    Field("TRESUsageInAve", 14, _ENERGY),
    Field("TRESUsageInMax", 14, _NOTHING),
    Field("TRESUsageInMaxNode", 18, _NOTHING),
    Field("TRESUsageInMaxTask", 18, _NOTHING),
    Field("TRESUsageInMin", 14, _NOTHING),
    Field("TRESUsageInMinNode", 18, _NOTHING),
    Field("TRESUsageInMinTask", 18, _NOTHING),
    Field("TRESUsageInTot", 14, _ENERGY),
    Field("TRESUsageOutAve", 15, _ENERGY),
    Field("TRESUsageOutMax", 15, _NOTHING),
    Field("TRESUsageOutMaxNode", 19, _NOTHING),
    Field("TRESUsageOutMaxTask", 19, _NOTHING),
    Field("TRESUsageOutMin", 15, _NOTHING),
    Field("TRESUsageOutMinNode", 19, _NOTHING),
    Field("TRESUsageOutMinTask", 19, _NOTHING),
    Field("TRESUsageOutTot", 15, _ENERGY),
    Field("UID", 6, _job(lambda line: str(line.job.user_id)), _NUMBER),
    Field("User", 9, _job(lambda line: line.job.user)),
    Field("UserCPU", 10, _NO_TIME),
    Field("WCKey", 10, _job(lambda line: line.job.wckey)),
    Field("WCKeyID", 10, _job(lambda _: "0"), _NUMBER),
    Field("WorkDir", 20, _job(lambda line: line.job.work_dir)),
)
"""All fields, in the order in which ``sacct -e`` lists them."""

USUAL: Final = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF: Final = "jobid,state,exitcode"
LONG: Final = (
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,"
    "maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,"
    "mincputask,avecpu,ntasks,alloccpus,elapsed,state,exitcode,avecpufreq,reqcpufreqmin,"
    "reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,"
    "maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,"
    "reqtres,alloctres,tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,"
    "tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutmax,"
    "tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot"
)
_A_LINE: Final = 4
_LISTED_WIDTH: Final = 19


class UnknownFieldError(ValueError):
    """A format names a field that there is not."""


def read_format(text: str) -> list[Field]:
    """Return the fields of a format: names or beginnings of names, a width after a percent sign.

    Raises:
        UnknownFieldError: With the name that is none.
    """
    found: list[Field] = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        if part.upper() == "ALL":
            found += FIELDS
            continue
        name, percent, width = part.partition("%")
        field = next((one for one in FIELDS if one.name.lower().startswith(name.lower())), None)
        if field is None or not name:
            raise UnknownFieldError(name)
        if percent:
            try:
                field = attrs.evolve(field, width=bounded_width(width))
            except ValueError:
                raise UnknownFieldError(part) from None
        found.append(field)
    return found


def listed() -> list[str]:
    """Return the lines of ``sacct -e``."""
    names = [field.name.ljust(_LISTED_WIDTH) for field in FIELDS]
    return [" ".join(names[at : at + _A_LINE]) for at in range(0, len(names), _A_LINE)]
