"""What of a site's files is not simulated, sorted by what will be different for it."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

_WHO_STARTS: Final = re.compile(
    r"Priority.*|.*QOS|.*\.Weight|.*Topolog.*|Licenses|AccountingStorageEnforce|FairShare.*"
    r"|.*TRESBillingWeights|.*PriorityJobFactor|.*\.MaxCPUsPer.*|.*\.LLN|.*\.ReqResv"
    r"|SchedulerTimeSlice|.*OverTimeLimit|Federation.*|.*\.(AllowGroups|AllocNodes|Alternate)"
    r"|.*\.Exclusive(User|Topo)|.*\.DisableRootJobs|Preempt.*|DependencyParameters"
)
_WHAT_RUNS: Final = re.compile(
    r"State=CLOUD.*|FrontendName|Resume.*|Suspend.*|.*PowerDownOnIdle|.*\.(Resume|Suspend).*"
    r"|RebootProgram|HealthCheck.*|NodeFeatures.*|TaskPlugin.*|CoreSpec.*|.*CpuBind|.*PerGPU"
    r"|.*MaxMemPer.*|JobSubmitPlugins|CliFilter.*|ResvProlog|ResvEpilog|UnkillableStep.*"
    r"|JobContainerType|.*JobDefaults"
)


def differences(ignored: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what will be different, each with the keys that decide it at the site.

    Args:
        ignored: Keys, each with or without a note in brackets behind it.
    """
    texts = tuple(ignored)
    who = tuple(text for text in texts if _WHO_STARTS.fullmatch(_key(text)))
    runs = tuple(text for text in texts if text not in who and _WHAT_RUNS.fullmatch(_key(text)))
    rest = tuple(text for text in texts if text not in (*who, *runs))
    if who:
        yield WHO_STARTS, who
    if runs:
        yield "what jobs get, and what runs beside them, will differ", runs
    if rest:
        yield NOTHING, rest


WHO_STARTS: Final = "who starts when, and where, will differ"
NOTHING: Final = "nothing that is simulated depends on these"


def _key(text: str) -> str:
    return text.partition(" (")[0]
