"""sacct: what accounting knows of jobs and steps."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from simctl.commands.arguments.command_line import tell_usage
from simctl.commands.arguments.options import UsageError
from simctl.commands.asking.ask import ask, controller, is_slurmdbd_away, no_answer
from simctl.commands.sacct.fields import (
    BRIEF,
    LONG,
    USUAL,
    Field,
    UnknownFieldError,
    listed,
    read_format,
)
from simctl.commands.sacct.lines import Line, View
from simctl.commands.sacct.options import GRAMMAR
from simctl.commands.sacct.select import Query, choose, read_states, read_wanted, window
from simctl.site import CommandCall
from simctl.wire.accounts import Records
from simctl.wire.errno import SlurmError
from simctl.wire.ids import SECOND
from simctl.wire.messages import DbdGetJobsCond, DbdGotJobs
from simctl.wire.past_times import parse_past_moment, show_moment

_RULE_WIDTH: Final = 80
_VERSION: Final = "slurm-wlm 22.05.8"
"""The version of Slurm whose output is printed."""

_QOS: Final = "normal"
"""The only QOS there is."""


async def sacct(call: CommandCall) -> int:
    """Show records of accounting; return the exit status."""
    try:
        options, words = GRAMMAR.parse(call.argv[1:])
        if words:
            # Slurm says nothing either.
            return 1
        if "help" in options or "usage" in options:
            tell_usage(call, GRAMMAR, options)
            return 0
        if "helpformat" in options or "version" in options:
            for each in listed() if "helpformat" in options else [_VERSION]:
                call.out(each)
            return 0
        if not call.site.conf.accounts:
            call.err("Slurm accounting storage is disabled")
            return 1
        view = _view(call, options)
        query = _query(call, options, view.now_s)
        table = _table(call, options)
    except UsageError as error:
        # Unlike the other commands sacct does not point to its help.
        call.err(error.lines[0])
        return error.status
    if is_slurmdbd_away(call):
        return 1
    try:
        jobs, steps = await _records(call)
    except SlurmError as error:
        no_answer(call, error, "sacct: error: slurm_persist_conn_open")
        return 1
    lines = choose(query, view, jobs, steps)
    if "batch-script" in options:
        _show_scripts(call, lines)
        return 0
    for each in table.lines(lines):
        call.out(each)
    return 0


async def _records(call: CommandCall) -> Records:
    """Return the records of slurmdbd, in whose stead slurmctld answers as long as it is there.

    Raises:
        SlurmError: slurmctld does not answer, or the link to the controller's host is cut.
    """
    fabric, to = call.site.fabric, controller(call)
    books = call.site.books.known
    cut = to is not None and fabric.cut_between(call.process.host, to.host) is not None
    if books is not None and not cut and not fabric.can_connect(call.process, to):
        return books()
    reply = await ask(call, DbdGetJobsCond())
    assert isinstance(reply, DbdGotJobs)
    return reply.jobs, reply.steps


_UNIT_LETTERS: Final = ("K", "M", "G", "T", "P")


# What is asked.


def _view(call: CommandCall, options: Mapping[str, Any]) -> View:
    site = call.site
    unit = options.get("units", "").upper()
    if unit and unit not in _UNIT_LETTERS:
        raise UsageError(1, f"sacct: fatal: Invalid unit type ({options['units']})")
    if "completion" in options:
        raise UsageError(1, "Slurm job completion is disabled")
    for name in filter(None, options.get("clusters", "").split(",")):
        if name.lower() not in ("all", site.conf.cluster_name.lower()):
            raise UsageError(1, f"sacct: error: No cluster '{name}' known by database.")
    return View(
        epoch_s=site.start_time_s,
        now_s=site.start_time_s + site.kernel.now_us // SECOND,
        cluster=site.conf.cluster_name,
        groups={user.gid: user.name for user in reversed(list(site.users.values()))},
        time_format=call.env.get("SLURM_TIME_FORMAT", "standard"),
        unit=unit,
        convert="noconvert" not in options,
    )


def _query(call: CommandCall, options: Mapping[str, Any], now_s: int) -> Query:
    """Return what the options ask for.

    Raises:
        UsageError: One of them is wrong.
    """
    _check_qos(options)
    query = Query(
        wanted=read_wanted(options.get("jobs", "")),
        gids=_gids(call, options.get("gid", options.get("group", ""))),
        accounts=_words(options, "accounts"),
        partitions=frozenset(_words(options, "partition")),
        names=_words(options, "name"),
        nodes=frozenset(options.get("nodelist", ())),
        node_counts=_range(options, "nnodes"),
        cpu_counts=_range(options, "ncpus"),
        associations=_words(options, "associations"),
        reasons=tuple(word.lower() for word in _words(options, "reason")),
        wckeys=_words(options, "wckeys"),
        limits_min=_limits(options),
        expands="array" in options,
        truncated="truncate" in options,
        states=read_states(options.get("state", "")),
        duplicates="duplicates" in options,
        jobs_only="allocations" in options,
    )
    start_s = _moment(options, "starttime", now_s)
    end_s = _moment(options, "endtime", now_s)
    start_s, end_s = window(query, start_s, end_s, now_s)
    if end_s and start_s > end_s:
        shown = [show_moment(each, "standard", now_s) for each in (start_s, end_s)]
        raise UsageError(
            1,
            f"sacct: error: Start time ({shown[0]}) requested is after end time ({shown[1]}).",
        )
    uids = _uids(call, options, anybody=bool(query.wanted or query.nodes))
    return attrs.evolve(query, uids=uids, start_s=start_s, end_s=end_s)


def _check_qos(options: Mapping[str, Any]) -> None:
    """Take the only QOS there is; it narrows nothing.

    Raises:
        UsageError: Another is named.
    """
    for name in _words(options, "qos"):
        if name.lower() not in (_QOS, "1"):
            raise UsageError(
                1, f"sacct: error: You gave a bad qos '{name}'.  Valid qos's are {_QOS}"
            )


def _range(options: Mapping[str, Any], name: str) -> range:
    """Return the numbers of ``2`` or ``2-5``; an empty range if none are asked for."""
    if name not in options:
        return range(0)
    first, _, last = options[name].partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise UsageError(1, f"sacct: error: invalid {name} value: {options[name]}")
    return range(int(first), int(last or first) + 1)


def _limits(options: Mapping[str, Any]) -> range:
    """Return the time limits asked for: the least alone, or up to the greatest beside it."""
    if "timelimit-min" not in options:
        return range(0)
    least = options["timelimit-min"]
    return range(least, options.get("timelimit-max", least) + 1)


def _words(options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(filter(None, options.get(name, "").split(",")))


def _moment(options: Mapping[str, Any], name: str, now_s: int) -> int | None:
    if name not in options:
        return None
    try:
        return parse_past_moment(options[name], now_s)
    except (ValueError, OverflowError):
        raise UsageError(1, f"Invalid time specification (pos=0): {options[name]}") from None


def _uids(call: CommandCall, options: Mapping[str, Any], *, anybody: bool) -> frozenset[int]:
    """Return whose jobs are asked for: one's own, unless users, all, jobs or nodes are named."""
    if "me" in options:
        return frozenset({call.user.uid})
    named = _words(options, "user") or _words(options, "uid")
    if named:
        return frozenset(_uid(call, name) for name in named)
    if "allusers" in options or anybody or not call.user.uid:
        return frozenset()
    return frozenset({call.user.uid})


def _uid(call: CommandCall, name: str) -> int:
    user = call.site.users.get(name)
    if user is not None:
        return user.uid
    if name.isdecimal():
        return int(name)
    raise UsageError(1, f"sacct: error: Invalid user id: {name}")


def _gids(call: CommandCall, value: str) -> frozenset[int]:
    """Return groups by number or by name; a group has the name of the user it is the own one of."""
    found = set()
    for name in filter(None, value.split(",")):
        user = call.site.users.get(name)
        if user is None and not name.isdecimal():
            raise UsageError(1, f"sacct: error: Invalid group id: {name}")
        found.add(user.gid if user is not None else int(name))
    return frozenset(found)


# How it is shown.


@attrs.frozen(kw_only=True)
class Table:
    """The fields to show, and how: in columns, or with a delimiter between and maybe at the end."""

    fields: list[Field]
    delimiter: str = ""
    ends: bool = False
    heading: bool = True

    def lines(self, rows: Iterable[Line]) -> list[str]:
        """Return everything that is printed."""
        head = self._head() if self.heading else []
        return [*head, *map(self._line, rows)]

    def _head(self) -> list[str]:
        if self.delimiter:
            return [self._joined(field.name for field in self.fields)]
        rules = ("-" * abs(field.width) + " " for field in self.fields)
        return ["".join(f"{field.heading()} " for field in self.fields), "".join(rules)]

    def _line(self, row: Line) -> str:
        if self.delimiter:
            return self._joined(field.read(row) for field in self.fields)
        return "".join(f"{field.show(row)} " for field in self.fields)

    def _joined(self, texts: Iterable[str]) -> str:
        return self.delimiter.join(texts) + (self.delimiter if self.ends else "")


def _table(call: CommandCall, options: Mapping[str, Any]) -> Table:
    asked = [options["format"]] if "format" in options else []
    asked += [shape for name, shape in (("brief", BRIEF), ("long", LONG)) if name in options]
    try:
        fields = read_format(",".join(asked or [call.env.get("SACCT_FORMAT", "") or USUAL]))
    except UnknownFieldError as error:
        raise UsageError(1, f'sacct: error: Invalid field requested: "{error}"') from None
    parsable = "parsable" in options or "parsable2" in options
    return Table(
        fields=fields,
        delimiter=(options.get("delimiter") or "|") if parsable else "",
        ends="parsable2" not in options,
        heading="noheader" not in options,
    )


def _show_scripts(call: CommandCall, lines: Iterable[Line]) -> None:
    """Print the scripts of the batch jobs among the lines."""
    for line in lines:
        if line.step is None:
            call.out(f"Batch Script for {line.raw_id}")
            call.out("-" * _RULE_WIDTH)
            call.out(line.job.script or "NONE")
