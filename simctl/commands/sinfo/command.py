"""sinfo: show nodes and partitions."""

from typing import Final

from simctl.commands.arguments.command_line import tell_usage
from simctl.commands.arguments.options import UsageError
from simctl.commands.asking.showing import (
    VERSION,
    NoAnswerError,
    answer,
    check_clusters,
    clock_s,
    next_round,
)
from simctl.commands.columns.formats import (
    Clock,
    Layout,
    date_line,
    padded_time,
    read_all,
    read_letters,
    read_names,
)
from simctl.commands.sinfo.columns import LETTERS, NAMES, InfoColumn
from simctl.commands.sinfo.options import GRAMMAR, Query, read_query
from simctl.commands.sinfo.order import USUAL, USUAL_OF_NODES, sorted_rows
from simctl.commands.sinfo.rows import FACETS, Grouping, NodeRow, group
from simctl.site import CommandCall
from simctl.wire.messages import (
    RequestNodeInfo,
    RequestPartitionInfo,
    RequestReservationInfo,
    ResponseNodeInfo,
    ResponsePartitionInfo,
    ResponseReservationInfo,
)

_RESERVATION: Final = "{:<%d}  {:>8}  {:>19}  {:>19}  {:>11}  {}"
_LEAST_NAME: Final = 9


async def sinfo(call: CommandCall) -> int:
    """Show the nodes and partitions that are asked for, once or every so many seconds."""
    try:
        query = read_query(call.argv[1:], call.env)
        if query.has("help") or query.has("usage"):
            tell_usage(call, GRAMMAR, query.given)
            return 0
        if query.has("version"):
            call.out(f"slurm-wlm {VERSION}")
            return 0
        check_clusters(call, query.clusters)
        while True:
            await _show(call, query)
            if not query.interval_s or not await next_round(call, query.interval_s):
                return 0
            call.out("")
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return error.status
    except NoAnswerError:
        return 1


async def _show(call: CommandCall, query: Query) -> None:
    """Print the table once."""
    if query.dated:
        call.out(date_line(clock_s(call)))
    if query.clusters and not query.has("noheader"):
        call.out(f"CLUSTER: {call.site.conf.cluster_name}")
    if query.has("reservation"):
        await _show_reservations(call, query)
        return
    layout = _layout(call, query)
    rows = await _rows(call, query, _grouping(query, layout))
    layout = layout.fitted(rows)
    if not query.has("noheader"):
        call.out(layout.heading())
    for each in rows:
        call.out(layout.line(each))


async def _rows(call: CommandCall, query: Query, grouping: Grouping) -> list[NodeRow]:
    """Return the lines in their order."""
    parts = await answer(call, RequestPartitionInfo(), "slurm_load_partitions")
    nodes = await answer(call, RequestNodeInfo(), "slurm_load_node")
    assert isinstance(parts, ResponsePartitionInfo)
    assert isinstance(nodes, ResponseNodeInfo)
    names = query.partitions
    chosen = [part for part in parts.partitions if names is None or part.name in names]
    if not chosen:
        return []
    conf = call.site.conf
    row = NodeRow(
        part=chosen[0],
        cluster=conf.cluster_name,
        gres_types=conf.gres_types,
        clock=_clock(call),
    )
    rows = group(chosen, [node for node in nodes.nodes if query.wants(node)], grouping, row)
    order = query.given.get("sort") or (USUAL_OF_NODES if query.has("Node") else USUAL)
    return sorted_rows(rows, order, [part.name for part in parts.partitions])


def _clock(call: CommandCall) -> Clock:
    return Clock(call.env.get("SLURM_TIME_FORMAT", "standard"), clock_s(call))


def _grouping(query: Query, layout: Layout[NodeRow]) -> Grouping:
    columns = [field.column for field in layout.fields]
    facets = {column.facet for column in columns if isinstance(column, InfoColumn)}
    return Grouping(shown=facets & FACETS, each_node=query.has("Node"), exact=query.has("exact"))


def _layout(call: CommandCall, query: Query) -> Layout[NodeRow]:
    """Return the format that is asked for, and say what of it is none."""
    text = query.given.get("format", "")
    if query.given.get("Format"):
        layout = read_names(query.given["Format"], NAMES)
        for word in layout.unknown:
            call.err(f"sinfo: error: Invalid job format specification: {word}")
        return layout
    if text.startswith("%all"):
        return read_all(LETTERS, blank=True)
    layout = read_letters(text or query.usual_format(), LETTERS, fits=not text)
    for word in layout.unknown:
        call.err(f"Invalid node format specification: {word}")
    return layout


async def _show_reservations(call: CommandCall, query: Query) -> None:
    found = await answer(call, RequestReservationInfo(), "slurm_load_reservations")
    assert isinstance(found, ResponseReservationInfo)
    if not found.reservations:
        call.out("No reservations in the system")
        return
    longest = max(len(each.name) for each in found.reservations)
    clock = _clock(call)
    line = _RESERVATION % max(_LEAST_NAME, longest)
    if not query.has("noheader"):
        heads = ("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")
        call.out(line.format(*heads))
    for each in sorted(found.reservations, key=lambda each: each.name):
        state = "ACTIVE" if each.active else "INACTIVE"
        length = padded_time(each.end_s - each.start_s)
        times = (clock.moment(each.start_s), clock.moment(each.end_s), length)
        call.out(line.format(each.name, state, *times, each.node_list))
