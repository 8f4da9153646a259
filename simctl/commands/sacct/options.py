"""The options of sacct."""

from typing import Final

from simctl.commands.arguments.job_values import hosts
from simctl.commands.arguments.options import Grammar, Option, UsageError, text
from simctl.wire.ids import INFINITE
from simctl.wire.time_limits import parse_time_limit_min


def _minutes(value: str) -> int:
    """Read a time limit in minutes.

    Raises:
        UsageError: It is none.
    """
    try:
        return parse_time_limit_min(value) or INFINITE
    except ValueError:
        raise UsageError(1, "sacct: fatal: Invalid time limit specification") from None


GRAMMAR: Final = Grammar(
    command="sacct",
    options=(
        Option(long="accounts", short="A", read=text, gathers=True),
        Option(long="allclusters", short="L"),
        Option(long="allocations", short="X"),
        Option(long="allusers", short="a"),
        Option(long="array"),
        Option(long="associations", short="x", read=text, gathers=True),
        Option(long="batch-script", short="B"),
        Option(long="brief", short="b"),
        Option(long="clusters", short="M", read=text, gathers=True),
        Option(long="completion", short="c"),
        Option(long="delimiter", read=text),
        Option(long="duplicates", short="D"),
        Option(long="endtime", short="E", read=text),
        Option(long="federation"),
        Option(long="format", short="o", read=text, gathers=True),
        Option(long="gid", short="g", read=text),
        Option(long="group", read=text),
        Option(long="helpformat", short="e"),
        Option(long="jobs", short="j", read=text, gathers=True),
        Option(long="local"),
        Option(long="long", short="l"),
        Option(long="me"),
        Option(long="name", read=text, gathers=True),
        Option(long="noconvert"),
        Option(long="ncpus", short="I", read=text),
        Option(long="nnodes", short="i", read=text),
        Option(long="nodelist", short="N", read=hosts),
        Option(long="noheader", short="n"),
        Option(long="parsable", short="p", ousts=("parsable2",)),
        Option(long="parsable2", short="P", ousts=("parsable",)),
        Option(long="partition", short="r", read=text, gathers=True),
        Option(long="qos", short="q", read=text, gathers=True),
        Option(long="reason", short="R", read=text, gathers=True),
        Option(long="starttime", short="S", read=text),
        Option(long="state", short="s", read=text, gathers=True),
        Option(long="timelimit-max", short="K", read=_minutes),
        Option(long="timelimit-min", short="k", read=_minutes),
        Option(long="truncate", short="T"),
        Option(long="uid", read=text),
        Option(long="units", read=text),
        Option(long="use-local-uid"),
        Option(long="user", short="u", read=text, gathers=True),
        Option(long="version", short="V"),
        Option(long="wckeys", short="W", read=text, gathers=True),
        Option(long="help", short="h"),
        Option(long="usage"),
    ),
    usage="[OPTIONS...]",
    unbuilt=frozenset(
        """
        constraints C env-vars flags F file f json v verbose whole-hetjob yaml
        """.split()
    ),
    bad_status=1,
)
