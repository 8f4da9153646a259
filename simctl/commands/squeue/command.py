"""squeue: show jobs and steps."""

from typing import Any, Final

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
from simctl.commands.columns import jobs as job_columns
from simctl.commands.columns import steps as step_columns
from simctl.commands.columns.formats import (
    Column,
    Layout,
    date_line,
    read_all,
    read_letters,
    read_names,
)
from simctl.commands.squeue.options import GRAMMAR, Query, read_query
from simctl.commands.squeue.order import USUAL, USUAL_OF_STEPS, SortError, sorted_jobs, sorted_steps
from simctl.commands.squeue.rows import job_rows, step_rows
from simctl.site import CommandCall
from simctl.wire.messages import (
    RequestJobInfo,
    RequestJobStepInfo,
    RequestNodeInfo,
    RequestPartitionInfo,
    ResponseJobInfo,
    ResponseJobStepInfo,
    ResponseNodeInfo,
    ResponsePartitionInfo,
)

_USUAL: Final = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_LONG: Final = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
_START: Final = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
_STEPS: Final = "%.15i %.8j %.9P %.8u %.9M %N"

_SELECTORS: Final = (
    "select/cons_tres: common_init: select/cons_tres loaded",
    "select/cray_aries: init: Cray/Aries node selection plugin loaded",
    "select/linear: init: Linear node selection plugin loaded with argument 20",
    "select/cons_res: common_init: select/cons_res loaded",
)
"""What -v says of the plugins that a squeue of Slurm's loads."""


async def squeue(call: CommandCall) -> int:
    """Show the jobs, or the steps, that are asked for, once or every so many seconds."""
    try:
        query = read_query(call.argv[1:], call.env, call.user, call.site.users)
        for word in query.unknown_users:
            call.err(f"squeue: error: Invalid user: {word}\n")
        if query.has("help") or query.has("usage"):
            tell_usage(call, GRAMMAR, query.given)
            return 0
        if query.has("version"):
            call.out(f"slurm-wlm {VERSION}")
            return 0
        check_clusters(call, query.clusters)
        if query.has("verbose"):
            _tell_options(call, query)
        await _check_nodes(call, query)
        while True:
            await _show(call, query)
            if not query.interval_s or not await next_round(call, query.interval_s):
                return 0
            call.out("")
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return error.status
    except SortError as error:
        call.err(f"squeue: error: Invalid sort specification: {error.letter}")
        return 1
    except NoAnswerError:
        return 1


async def _check_nodes(call: CommandCall, query: Query) -> None:
    if query.nodes is None:
        return
    found = await answer(call, RequestNodeInfo(), "slurm_load_node error")
    assert isinstance(found, ResponseNodeInfo)
    known = {node.name for node in found.nodes}
    for name in query.nodes:
        if name not in known:
            raise UsageError(1, f"squeue: error: Invalid node name {name}")


async def _show(call: CommandCall, query: Query) -> None:
    """Print the table once."""
    if query.dated:
        call.out(date_line(clock_s(call)))
    if query.clusters and not query.has("noheader"):
        call.out(f"CLUSTER: {call.site.conf.cluster_name}")
    if query.of_steps:
        await _show_steps(call, query)
    else:
        await _show_jobs(call, query)


async def _show_jobs(call: CommandCall, query: Query) -> None:
    only = query.jobs[0].job_id if query.jobs and len(query.jobs) == 1 else 0
    found = await answer(call, RequestJobInfo(job_id=only), "slurm_load_jobs error")
    assert isinstance(found, ResponseJobInfo)
    tiers = await _tiers(call) if query.has("priority") else {}
    if query.has("verbose"):
        call.out(f"last_update_time={found.now_s} records={len(found.jobs)}")
    usual = _START if query.has("start") else _LONG if query.has("long") else _USUAL
    layout = _layout(call, query, usual, job_columns.LETTERS, job_columns.NAMES)
    _head(call, query, layout)
    rows = job_rows(found, query, call.site, tiers)
    order = query.text("sort") or ("S" if query.has("start") else USUAL)
    for row in sorted_jobs(rows, order):
        call.out(layout.line(row))


async def _tiers(call: CommandCall) -> dict[str, int]:
    found = await answer(call, RequestPartitionInfo(), "slurm_load_partitions error")
    assert isinstance(found, ResponsePartitionInfo)
    return {part.name: part.tier for part in found.partitions}


async def _show_steps(call: CommandCall, query: Query) -> None:
    found = await answer(call, RequestJobStepInfo(), "slurm_get_job_steps error")
    assert isinstance(found, ResponseJobStepInfo)
    if query.has("verbose"):
        call.out(f"last_update_time={found.now_s} records={len(found.steps)}")
    layout = _layout(call, query, _STEPS, step_columns.LETTERS, step_columns.NAMES)
    _head(call, query, layout)
    rows = step_rows(found, query, call.site)
    for row in sorted_steps(rows, query.text("sort") or USUAL_OF_STEPS):
        call.out(layout.line(row))


def _head(call: CommandCall, query: Query, layout: Layout[Any]) -> None:
    if not query.has("noheader"):
        call.out(layout.heading())


def _layout(
    call: CommandCall,
    query: Query,
    usual: str,
    letters: dict[str, Column[Any]],
    names: dict[str, Column[Any]],
) -> Layout[Any]:
    """Return the format that is asked for, and say what of it is none."""
    if query.text("Format"):
        layout = read_names(query.text("Format"), names)
    elif query.text("format").startswith("%all"):
        layout = read_all(letters)
    else:
        layout = read_letters(query.text("format") or usual, letters)
    kind = "job step" if query.of_steps else "job"
    for word in layout.unknown:
        call.err(f"squeue: error: Invalid {kind} format specification: {word}")
    return layout


_OPTIONS: Final = (
    *(("all         ", "all", "bool"), ("array       ", "array", "bool")),
    *(("federation  ", "federation", "bool"), ("format      ", "format", "text")),
    *(("iterate     ", "iterate", "count"), ("job_flag    ", "jobs", "flag")),
    *(("jobs        ", "jobs", "text"), ("licenses    ", "licenses", "text")),
    *(("local       ", "local", "bool"), ("names       ", "name", "text")),
    *(("nodes       ", "nodelist", "plain"), ("partitions  ", "partition", "text")),
    *(("priority    ", "priority", "bool"), ("reservation ", "reservation", "text")),
    *(("sibling      ", "sibling", "bool"), ("sort        ", "sort", "text")),
    *(("start_flag  ", "start", "flag"), ("states      ", "states", "text")),
    *(("step_flag   ", "steps", "flag"), ("steps       ", "steps", "text")),
    *(("users       ", "user", "text"), ("verbose     ", "verbose", "flag")),
)
"""What -v tells of the options: how it is called there, the option, how its value is shown."""


def _tell_options(call: CommandCall, query: Query) -> None:
    """Print what was asked for, as -v does."""
    for line in _SELECTORS:
        call.err(f"squeue: {line}")
    call.out("-" * 29)
    for name, option, kind in _OPTIONS:
        value = query.text(option) if query.text(option) != "-" else ""
        shown = {
            "bool": str(query.has(option)).lower(),
            "flag": str(int(query.has(option))),
            "count": value or "0",
            "plain": value,
            "text": value or "(null)",
        }
        call.out(f"{name}= {shown[kind]}")
    call.out("-" * 29 + "\n\n")
