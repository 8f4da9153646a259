"""The timeline of a session: what was done, by the scenario and by hand, and what is ahead."""

from collections.abc import Iterator

import attrs
import yaml

from simctl.kernel.pattern import value_text
from simctl.repl.acts import Deed
from simctl.repl.session import Session
from simctl.scenario.durations import format_moment
from simctl.scenario.model import (
    AnswerEntry,
    ApplianceEntry,
    At,
    ConfEntry,
    Entry,
    FaultEntry,
    FilesEntry,
    PickEntry,
    Placed,
    ProgramsEntry,
    RunEntry,
    StayEntry,
)


@attrs.frozen(kw_only=True)
class _Row:
    time_us: int
    order: int
    when: str
    who: str
    what: str

    @property
    def line(self) -> str:
        return f"{self.when:>14}  {self.who:<8}  {self.what}"


def tell_timeline(session: Session) -> Iterator[str]:
    """Say what was done so far, where the session is, and what the scenario still has."""
    now_us = session.world.kernel.now_us
    waiting = {id(turn[3]) for turn in session.world.kernel.queued(_LOOKED_AT)}
    rows = [*_typed(session), *_dated(session.scenario.timeline, now_us, waiting)]
    done = sorted((row for row in rows if row.order < _AHEAD), key=_by_time)
    ahead = sorted((row for row in rows if row.order >= _AHEAD), key=_by_time)
    yield from (row.line for row in done)
    yield f"{format_moment(now_us):>14}  -- now, after event {session.world.trace.seq} --"
    yield from (row.line for row in ahead)
    for entry in session.scenario.timeline:
        if not isinstance(entry.moment, At | Placed):
            each = "each" if entry.moment.each else "when"
            yield f"{each:>14}  scenario  {what_of(entry)}, on {entry.moment.pattern.text}"
        elif isinstance(entry.moment, Placed):
            yield f"{'at':>14}  scenario  {what_of(entry)}, at {entry.moment.place}"


_AHEAD = 1 << 40
_LOOKED_AT = 5_000


def _by_time(row: _Row) -> tuple[int, int]:
    return row.time_us, row.order


def _typed(session: Session) -> Iterator[_Row]:
    for act in session.desk.acts:
        yield _Row(
            time_us=act.time_us,
            order=act.number,
            when=format_moment(act.time_us),
            who="typed",
            what=_deed(act.deed),
        )


def _dated(timeline: tuple[Entry, ...], now_us: int, waiting: set[int]) -> Iterator[_Row]:
    """Return the entries of a scenario that have a time; of those due now some are done."""
    for number, entry in enumerate(timeline):
        if isinstance(entry.moment, At):
            time_us = entry.moment.time_us
            is_done = time_us < now_us or (time_us == now_us and id(entry) not in waiting)
            yield _Row(
                time_us=time_us,
                order=number if is_done else _AHEAD + number,
                when=format_moment(time_us),
                who="scenario",
                what=what_of(entry),
            )


def _deed(deed: Deed) -> str:
    if "run" in deed:
        return f"{deed['as']}$ {deed['run']}"
    if "files" in deed:
        return f"{deed['as']} writes {', '.join(deed['files'])}"
    if "pick" in deed:
        return f"pick {deed['pick']}"
    key = next(iter(deed))
    if key in ("fault", "answer") and isinstance(deed[key], dict):
        inner = ", ".join(f"{name} {value_text(value)}" for name, value in deed[key].items())
        return f"{'answers: ' if key == 'answer' else ''}{inner}"
    return str(yaml.safe_dump(deed, default_flow_style=True, width=1000)).strip().strip("{}")


def what_of(entry: Entry) -> str:
    """Say in a line what an entry of a timeline does."""
    if isinstance(entry, RunEntry):
        return f"{entry.user}$ {entry.command}"
    if isinstance(entry, FilesEntry):
        return f"{entry.user} writes {', '.join(entry.files)}"
    if isinstance(entry, ProgramsEntry):
        return f"programs {', '.join(entry.programs)}"
    if isinstance(entry, FaultEntry | ConfEntry | ApplianceEntry):
        return entry.text
    if isinstance(entry, PickEntry):
        return f"pick {entry.rank}"
    if isinstance(entry, AnswerEntry):
        return "answers a plugin call"
    assert isinstance(entry, StayEntry)
    return "stays here"
