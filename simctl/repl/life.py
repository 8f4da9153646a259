"""A job's place in its lifecycle, drawn: what is done, where it is now, what is ahead.

Nothing here knows what a lifecycle looks like. What is done stands in the trace, what is ahead is
what a copy of the session has seen happen; the job's own states divide it.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.pattern import value_text
from simctl.repl.foresight import Foreseen
from simctl.repl.session import Session
from simctl.repl.showing import WIDTH
from simctl.scenario.durations import format_moment
from simctl.wire.hostlist import compress

_DONE: Final = "+"
_NOW: Final = "*"
_AHEAD: Final = "-"
_HERE: Final = ">>"
_KEY: Final = f"{_DONE} done   {_NOW} now   {_AHEAD} ahead, if nobody types anything"
_MOST_NODES: Final = 4
"""How many nodes of a step are drawn; the others do the same."""

_TIED: Final = "\u00a0"
"""A blank at which no line ends; printed as any other."""

_DAEMONS: Final = ("slurmctld", "srun")


@attrs.define(kw_only=True)
class Row:
    """What one host does about a job between two changes of its state."""

    where: str
    done: list[str] = attrs.field(factory=list)
    ahead: list[str] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class Stage:
    """What happens to a job in one state, or to a step of it."""

    title: str
    time_us: int
    begun: bool
    rows: dict[str, Row] = attrs.field(factory=dict)
    is_step: bool = False

    @property
    def is_under_way(self) -> bool:
        """Return whether a node has done a part of it, and not all."""
        return any(row.done and row.ahead for row in self.rows.values())

    def drawn(self) -> list[Row]:
        """Return its rows; nodes that have done the same, and will, share one."""
        alike: dict[tuple[str, ...], list[Row]] = {}
        for row in self.rows.values():
            daemon = row.where if row.where in _DAEMONS else ""
            alike.setdefault((daemon, *row.done, _NOW, *row.ahead), []).append(row)
        return [
            attrs.evolve(rows[0], where=compress([row.where for row in rows]))
            for rows in alike.values()
        ]


class Drawing:
    """The stages of a job's life, made from its events."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self._steps: dict[str, Stage] = {}
        self._state: Stage | None = None

    def add(self, events: Iterable[Event], *, begun: bool) -> None:
        """Note what has happened, or what will."""
        for event in events:
            self._add(event, begun=begun)

    def _add(self, event: Event, *, begun: bool) -> None:
        if event.name == "job_state" and event.kind == "state":
            self._state = self._new(_to(event), event.time_us, begun=begun)
            if _starts(event):
                # A job that runs anew has its steps anew, with the same numbers.
                self._steps.clear()
            return
        item = _item(event)
        if not item:
            return
        if event.step is not UNSET:
            stage = self._steps.get(event.step)
            if stage is None:
                title = f"step {event.step}"
                stage = self._new(title, event.time_us, begun=begun, is_step=True)
                self._steps[event.step] = stage
        else:
            if self._state is None:
                self._state = self._new("submission", event.time_us, begun=begun)
            stage = self._state
        where = _where(event)
        row = stage.rows.get(where)
        if row is None:
            row = stage.rows[where] = Row(where=where)
        (row.done if begun else row.ahead).append(item)

    def _new(self, title: str, time_us: int, *, begun: bool, is_step: bool = False) -> Stage:
        stage = Stage(title=title, time_us=time_us, begun=begun, is_step=is_step)
        self.stages.append(stage)
        return stage

    def lines(self, calls: Mapping[str, str], *, is_over: bool) -> Iterator[str]:
        """Draw it; *calls* says which plugin call is under way where."""
        begun = [stage for stage in self.stages if stage.begun and not stage.is_step]
        present = begun[-1] if begun and not is_over else None
        wide = max((len(row.where) for stage in self.stages for row in stage.drawn()), default=0)
        for stage in self.stages:
            # Beside the last of a job's states that has begun, steps may be under way.
            is_now = stage is present or stage.is_under_way
            mark = _NOW if is_now else _DONE if stage.begun else _AHEAD
            indent = "  " if stage.is_step else ""
            yield f"{mark} {format_moment(stage.time_us):>12}  {indent}{stage.title}"
            rows = stage.drawn()
            hosts = [row for row in rows if row.where not in _DAEMONS]
            for row in rows:
                if row not in hosts[_MOST_NODES:]:
                    yield from _row_lines(row, wide, calls if stage.begun else {})
            if hidden := hosts[_MOST_NODES:]:
                yield f"    and {len(hidden)} more, to {hidden[-1].where}"


def _row_lines(row: Row, wide: int, calls: Mapping[str, str]) -> Iterator[str]:
    done, ahead = list(_counted(row.done)), list(_counted(row.ahead))
    call = calls.get(row.where)
    mark = _DONE if not ahead else _NOW if done or call else _AHEAD
    items = [f"{each}," for each in done]
    if ahead and mark == _NOW:
        items.append(_HERE)
    items += [f"{each}," for each in ahead]
    if call and ahead:
        items[len(done) + 1] = items[len(done) + 1].replace(call, f"[{call}]", 1)
    head = f"  {mark} {row.where:<{wide}}  "
    yield from textwrap.wrap(
        " ".join(items).rstrip(","),
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


_LONGEST_PERIOD: Final = 3


def _counted(items: list[str]) -> Iterator[str]:
    """Return items, those that come several times running once, with how often.

    So do several that come in turn, as what each task of a step does.
    """
    place = 0
    while place < len(items):
        length, times = _repeats(items, place)
        text = ", ".join(items[place : place + length]).replace(" ", _TIED)
        if times == 1:
            yield text
        elif length == 1:
            yield f"{text}{_TIED}x{times}"
        else:
            yield f"({text.replace(f',{_TIED}', ', ')}){_TIED}x{times}"
        place += length * times


def _repeats(items: list[str], place: int) -> tuple[int, int]:
    """Return how many items are repeated from a place on, and how often they come."""
    for length in range(1, _LONGEST_PERIOD + 1):
        part = items[place : place + length]
        times = 1
        while items[place + times * length : place + (times + 1) * length] == part and part:
            times += 1
        if times > 1:
            return length, times
    return 1, 1


def _to(event: Event) -> str:
    return "?" if event.args is UNSET else str(event.args.get("to"))


def _starts(event: Event) -> bool:
    """Return whether a job gets its nodes with an event."""
    if event.args is UNSET:
        return False
    base, *flags = str(event.args.get("to")).split("|")
    return (base == "RUNNING" and str(event.args.get("from")).startswith("PENDING")) or (
        "CONFIGURING" in flags
    )


def _where(event: Event) -> str:
    if event.daemon in ("slurmctld", "srun", "srun_cr"):
        return str(event.daemon).removesuffix("_cr")
    return str(event.node) if event.node else "slurmctld"


def _item(event: Event) -> str:
    """Return what is drawn of an event; nothing for what is only the way there."""
    args: dict[str, Any] = {} if event.args is UNSET else event.args
    if event.kind == "plugin":
        if event.phase == "enter":
            return ""
        result = ""
        if event.rc is not UNSET and isinstance(event.rc, int) and event.rc < 0:
            result = f" ({event.rc})"
        name = event.name
        if name in ("init", "fini"):
            name = f"{name} {value_text(args.get('plugin', ''))}".rstrip()
        return name + result
    if event.kind == "script":
        if event.phase == "enter":
            return f"{event.name} begins"
        return f"{event.name} ends" + ("" if event.rc in (UNSET, 0) else f" ({event.rc})")
    if event.kind == "state":
        what = event.name.removesuffix("_state")
        return f"{'buffer' if what == 'bb' else what} {args.get('to')}"
    if event.kind == "process" and event.role == "task":
        if event.name == "exec":
            return f"{str(args.get('path', '')).rpartition('/')[2]} begins"
        if event.name == "exit":
            return "task ends" + ("" if event.rc in (UNSET, 0) else f" ({event.rc})")
    return ""


def tell_life(
    session: Session, events: list[Event], foreseen: Foreseen, head: str, *, is_over: bool
) -> Iterator[str]:
    """Draw a job's life."""
    drawing = Drawing()
    drawing.add(_before_it_had_a_number(session, events), begun=True)
    drawing.add(events, begun=True)
    drawing.add(foreseen.events, begun=False)
    yield head
    if absent := without_controller(session):
        yield f"{'':16}{absent}"
    yield _KEY
    calls: dict[str, str] = {}
    for call in session.open_calls():
        host = call.who.host
        calls.setdefault(host.name if host.node else call.who.name, call.name)
    for line in drawing.lines(calls, is_over=is_over):
        yield line.replace(_TIED, " ")
    if is_over:
        yield f"{_DONE} {'':>12}  purged: slurmctld has forgotten it"
    elif foreseen.purged_us >= 0:
        yield f"{_AHEAD} {format_moment(foreseen.purged_us):>12}  purged: slurmctld forgets it"
    elif foreseen.why:
        yield from textwrap.wrap(
            foreseen.why, WIDTH, initial_indent=f"{'':14}  ", subsequent_indent=f"{'':16}"
        )


def without_controller(session: Session) -> str:
    """Say that slurmctld is not there, where that is so."""
    if session.world.ctld.mailbox.open:
        return ""
    return "slurmctld is down: this is what it had last"


_BRIGHT: Final = {_DONE: "2", _NOW: "1"}


def coloured(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return a drawing with the colour of each line: what is done dim, what is under way bright."""
    mark = ""
    for line in lines:
        first = line.lstrip()[:2].strip()
        if first in (_DONE, _NOW, _AHEAD):
            mark = first
        yield line, "" if line.startswith(_KEY) else _BRIGHT.get(mark, "")


def _before_it_had_a_number(session: Session, events: list[Event]) -> list[Event]:
    """Return what slurmctld asked plugins about the submission before the job had its number."""
    found: list[Event] = []
    event = events[0] if events else None
    while event is not None and isinstance(event.cause, int) and event.cause > 0:
        event = session.world.events[event.cause - 1]
        if event.kind != "plugin" or event.job is not UNSET:
            break
        found.insert(0, event)
    return found
