"""When a job that its command waits for may start: options of salloc and srun."""

from collections.abc import Mapping
from typing import Any, Final

from simctl.commands.arguments.job_values import moment, priority
from simctl.commands.arguments.options import Option, nice, text, yes_or_no
from simctl.site import CommandCall
from simctl.wire.ids import NO_VAL, SECOND
from simctl.wire.times import parse_moment

QUEUE_OPTIONS: Final = (
    Option(long="hold", short="H"),
    Option(long="begin", short="b", read=moment),
    Option(long="dependency", short="d", read=text),
    Option(long="kill-on-invalid-dep", read=yes_or_no),
    Option(long="nice", read=nice),
    Option(long="priority", read=priority),
)
QUEUE_NAMES: Final = "H hold b begin d dependency kill-on-invalid-dep nice priority"
"""Their names, for those that leave them out of what is not built."""


def queue_wishes(call: CommandCall, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a job description says of them."""
    return {
        "priority": 0 if "hold" in options else options.get("priority", NO_VAL),
        "nice": options.get("nice", 0),
        "begin_s": _begin(call, options.get("begin", "")),
        "dependency": options.get("dependency", ""),
        "kill_on_invalid_dep": options.get("kill-on-invalid-dep", NO_VAL),
    }


def _begin(call: CommandCall, word: str) -> int:
    """Return when the job may begin, in seconds since the epoch; 0 for at once."""
    now_s = call.site.start_time_s + call.site.kernel.now_us // SECOND
    return parse_moment(word, now_s) if word else 0
