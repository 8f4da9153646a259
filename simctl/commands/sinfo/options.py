"""What sinfo is asked for: its command line, and the variables that stand in for options."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from simctl.commands.arguments.options import Grammar, Option, UsageError, text
from simctl.commands.asking.showing import interval, usual_names
from simctl.commands.columns.node_states import VALID, is_in, parse_state
from simctl.wire.hostlist import HostlistError, expand
from simctl.wire.info import NodeInfo
from simctl.wire.states import NodeFlag

GRAMMAR: Final = Grammar(
    command="sinfo",
    options=(
        Option(long="all", short="a"),
        Option(long="dead", short="d"),
        Option(long="exact", short="e"),
        Option(long="federation"),
        Option(long="Format", short="O", read=text),
        Option(long="format", short="o", read=text),
        Option(long="hide"),
        Option(long="iterate", short="i", read=text),
        Option(long="list-reasons", short="R"),
        Option(long="long", short="l"),
        Option(long="local"),
        Option(long="clusters", short="M", read=text),
        Option(long="noconvert"),
        Option(long="Node", short="N"),
        Option(long="noheader", short="h"),
        Option(long="nodes", short="n", read=text),
        Option(long="partition", short="p", read=text),
        Option(long="reservation", short="T"),
        Option(long="responding", short="r"),
        Option(long="sort", short="S", read=text),
        Option(long="states", short="t", read=text),
        Option(long="summarize", short="s"),
        Option(long="version", short="V"),
        Option(long="help"),
        Option(long="usage"),
    ),
    usage="[OPTIONS...]",
    unbuilt=frozenset("json v verbose yaml".split()),
    bad_status=1,
    permutes=True,
)

_OTHER_NAMES: Final = {"cluster": "clusters", "node": "nodes", "state": "states"}

_VALUES: Final = {
    "SINFO_FORMAT": "format",
    "SINFO_PARTITION": "partition",
    "SINFO_SORT": "sort",
    "SLURM_CLUSTERS": "clusters",
}
VARIABLES: Final = ("SINFO_ALL", *_VALUES, "SLURM_TIME_FORMAT")
"""The variables that sinfo reads."""

_USUAL: Final = "%#P %.5a %.10l %.6D %.6t %N"
_LONG: Final = "%#P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
_SUMMARY: Final = "%#P %.5a %.10l %.16F %N"
_NODES: Final = "%#N %.6D %.#P %6t"
_LONG_NODES: Final = "%#N %.6D %.#P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
_REASONS: Final = "%20E %9u %19H %N"
_LONG_REASONS: Final = "%20E %12U %19H %6t %N"


@attrs.frozen(kw_only=True)
class Query:
    """What is asked for; None where everything is wanted.

    A node has to be in one of `states`, which means in all that this one joins.
    """

    given: Mapping[str, Any]
    nodes: frozenset[str] | None = None
    partitions: tuple[str, ...] | None = None
    states: tuple[tuple[str, ...], ...] | None = None
    clusters: tuple[str, ...] = ()
    interval_s: int = 0

    def has(self, flag: str) -> bool:
        """Return whether a flag was given."""
        return flag in self.given

    @property
    def dated(self) -> bool:
        """Return whether a date stands above the table."""
        return (self.has("long") or self.interval_s > 0) and not self.has("noheader")

    def usual_format(self) -> str:
        """Return the format where none is given."""
        long = self.has("long")
        if self.has("summarize"):
            return _SUMMARY
        if self.has("Node"):
            return _LONG_NODES if long else _NODES
        if self.has("list-reasons"):
            return _LONG_REASONS if long else _REASONS
        return _LONG if long else _USUAL

    def wants(self, node: NodeInfo) -> bool:
        """Return whether a node is among those asked for."""
        silent = bool(node.flags & NodeFlag.NO_RESPOND)
        return (
            (self.nodes is None or node.name in self.nodes)
            and not (self.has("dead") and not silent)
            and not (self.has("responding") and silent)
            and not (self.has("list-reasons") and not node.reason)
            and (
                self.states is None
                or any(all(is_in(node, name) for name in each) for each in self.states)
            )
        )


def usual(argv: Sequence[str]) -> list[str]:
    """Return a command line with the usual names of options in place of others."""
    return usual_names(argv, _OTHER_NAMES)


def read_query(argv: Sequence[str], environment: Mapping[str, str]) -> Query:
    """Return what a command line asks for, with what variables say of the rest.

    Raises:
        UsageError: With what sinfo prints.
    """
    # As Slurm's own, it does not look at words that are no options.
    given, _ = GRAMMAR.parse(usual(argv))
    found = {option: environment[name] for name, option in _VALUES.items() if name in environment}
    if "Format" in given:
        found.pop("format", None)
    if "SINFO_ALL" in environment:
        found["all"] = "1"
    given = {**found, **given}
    try:
        return Query(
            given=given,
            nodes=frozenset(expand(given["nodes"])) if "nodes" in given else None,
            partitions=_words(given["partition"]) if "partition" in given else None,
            states=_states(given["states"]) if "states" in given else None,
            clusters=_words(given.get("clusters", "")),
            interval_s=interval(given["iterate"]) if "iterate" in given else 0,
        )
    except HostlistError:
        raise UsageError(1, f"sinfo: error: '{given['nodes']}' invalid entry for --nodes") from None
    except ValueError as error:
        raise UsageError(1, f"sinfo: error: {error}") from None


def _words(value: str) -> tuple[str, ...]:
    return tuple(filter(None, value.split(",")))


def _states(value: str) -> tuple[tuple[str, ...], ...] | None:
    """Read ``idle,mix`` and ``idle&drain``; ``all`` is None."""
    if value.lower() == "all":
        return None
    return tuple(tuple(map(_state, filter(None, part.split("&")))) for part in _words(value))


def _state(word: str) -> str:
    try:
        return parse_state(word)
    except ValueError:
        raise UsageError(
            1,
            f'sinfo: error: Bad state string: "{word}"',
            f"sinfo: error: valid states: {VALID}",
        ) from None
