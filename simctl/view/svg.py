"""A still picture of a part of a run, for pages and slides: SVG, light and dark."""

import html
import re
from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.outputs import Kind
from simctl.scenario.durations import format_moment, format_us
from simctl.status import InputError
from simctl.view.page import asset
from simctl.view.processes import (
    BOOKKEEPING,
    Process,
    columns_of,
    pid_of,
    processes_of,
    user_names,
)
from simctl.view.reading import Seen

SVG: Final = Kind("picture", (b"<!-- simctl view",))

_MOST: Final = 400
_ROW: Final = 24
_TOP: Final = 34
_LEFT: Final = 210
_CHARACTER: Final = 6.3
_BARS: Final = ("plugin", "command", "script", "fault", "log")
_FAMILIES: Final = ("switch", "slurm", "bb", "command", "script", "fault", "log")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def to_svg(seen: Seen, shown: Sequence[Event], title: str) -> bytes:
    """Return a picture of the events that are to be shown.

    Raises:
        InputError: They are none, or too many to be read.
    """
    told = [event for event in shown if not _is_left_out(event)]
    if not told:
        raise InputError("--svg: none of these events is drawn; calls that keep records are not")
    if len(told) > _MOST:
        raise InputError(
            f"--svg: {len(told):,} events are more than a picture holds ({_MOST}); name a part of "
            "them with --job, --from, --to or --only, or write a page"
        )
    return _Drawing(seen, told, title).text().encode()


def _is_left_out(event: Event) -> bool:
    keeps = event.kind == "plugin" and bool(BOOKKEEPING.fullmatch(event.name))
    return event.phase == "enter" or (keeps and event.errno is UNSET)


class _Drawing:
    def __init__(self, seen: Seen, told: list[Event], title: str) -> None:
        self._told = told
        self._title = title
        self._names = user_names(seen.header)
        self._users = seen.header.get("users", {})
        model = str(seen.header.get("model", "guide"))
        self._by_seq = {event.seq: event for event in told}
        self._columns = columns_of(seen.events, set(self._by_seq))
        used = {pid_of(event) for event in told}
        self._rows = [row for row in processes_of(seen.events, model) if row.pid in used]
        for row in self._rows:
            above = next((each for each in self._rows if each.pid == row.parent), None)
            row.depth = 0 if above is None else above.depth + 1
        self._row = {row.pid: number for number, row in enumerate(self._rows)}
        self._x = self._places()
        self._out: list[str] = []

    def _places(self) -> list[float]:
        """Return where each column begins, and where the last one ends."""
        widths = [18.0] * (max(self._columns.values()) + 1)
        begins: set[int] = set()
        before = -1
        for event in self._told:
            column = self._columns[event.seq]
            widths[column] = max(widths[column], _width(self._label(event)))
            if event.time_us != before:
                begins.add(column)
                before = event.time_us
        found, x = [], float(_LEFT)
        for column, width in enumerate(widths):
            x += 16 if column in begins else 4
            found.append(x)
            x += width
        return [*found, x + 50]

    def _label(self, event: Event) -> str:
        args = event.args if isinstance(event.args, dict) else {}
        if event.kind == "plugin":
            return event.name.partition("_p_")[2] or event.name.removeprefix("slurm_ckpt_")
        if event.kind == "state":
            return str(args.get("to"))
        if event.kind == "message":
            return event.name.partition("_")[2]
        if event.name == "become_user":
            return f"is {self._names.get(args.get('uid', -1), args.get('uid'))}"
        if event.name == "exec":
            return f"exec {str(args.get('path', '')).rpartition('/')[2]}"
        if event.kind in ("command", "fault"):
            return str(args.get("line") or args.get("fault") or event.name)
        return "" if event.name in ("fork", "exit") else event.name

    def text(self) -> str:
        """Return the picture."""
        width, height = int(self._x[-1]), _TOP + len(self._rows) * _ROW + 10
        self._out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
            f'width="{width}" height="{height}" role="img" font-size="11"',
            'font-family="system-ui, sans-serif">',
            "<!-- simctl view -->",
            f"<title>{_text(self._title)}</title>",
            f"<style>{asset('picture.css')}</style>",
            f'<rect width="{width}" height="{height}" class="paper"/>',
        ]
        self._moments(height)
        for number, row in enumerate(self._rows):
            self._lane(number, row)
        for event in self._told:
            self._arrow(event)
        for event in self._told:
            self._event(event)
        return "\n".join([*self._out, "</svg>", ""])

    def _moments(self, height: int) -> None:
        before, free = None, 0.0
        for event in self._told:
            if event.time_us == before:
                continue
            x = self._x[self._columns[event.seq]] - 8
            passed = ""
            if before is not None:
                passed = f' <tspan class="soft">+{format_us(event.time_us - before)}</tspan>'
            self._out.append(f'<line x1="{x}" x2="{x}" y1="6" y2="{height}" class="rule"/>')
            told = f"{format_moment(event.time_us)}{passed}"
            before = event.time_us
            if x + 5 >= free:
                self._out.append(f'<text x="{x + 5}" y="16" class="time">{told}</text>')
                free = x + 20 + 7 * len(format_moment(event.time_us)) + (60 if passed else 0)

    def _y(self, pid: int) -> float:
        return _TOP + self._row[pid] * _ROW + _ROW / 2

    def _lane(self, number: int, row: Process) -> None:
        y = self._y(row.pid)
        host = row.host if not number or self._rows[number - 1].host != row.host else ""
        name = _text(_cut(row.name, 24))
        self._out.append(f'<text x="8" y="{y + 4}" class="host">{_text(host)}</text>')
        self._out.append(f'<text x="{56 + row.depth * 8}" y="{y + 4}">{name}</text>')
        mine = [event for event in self._told if pid_of(event) == row.pid]
        for one, next_ in zip(mine, [*mine[1:], mine[-1]], strict=True):
            x, end = self._x[self._columns[one.seq]], self._x[self._columns[next_.seq]]
            if end > x:
                kind = self._user(one)
                self._out.append(
                    f'<line x1="{x}" x2="{end}" y1="{y}" y2="{y}" class="life {kind}"/>'
                )

    def _user(self, event: Event) -> str:
        if event.uid == 0:
            return "u-root"
        return "u-slurm" if event.uid == self._users.get("slurm", -1) else "u-user"

    def _arrow(self, event: Event) -> None:
        """Draw what leads from another row to an event: a message, a fork, what it waited for."""
        cause = self._by_seq.get(event.cause) if event.cause is not UNSET else None
        if cause is None or cause.pid == event.pid:
            return
        x, end = self._x[self._columns[cause.seq]] + 8, self._x[self._columns[event.seq]]
        y, to = self._y(pid_of(cause)), self._y(pid_of(event))
        path, kind = f"M{x} {y}V{to}H{end}", "fork" if cause.name == "fork" else "wait"
        if event.phase == "receive":
            path, kind = f"M{x} {y}C{x + 20} {y} {end - 20} {to} {end} {to}", "arrow"
        self._out.append(f'<path d="{path}" class="{kind}"/>')

    def _event(self, event: Event) -> None:
        x, y = self._x[self._columns[event.seq]], self._y(pid_of(event))
        label = _text(_cut(self._label(event), 30))
        title = f"<title>{_text(f'{event.seq} {event.name}')}</title>"
        if event.kind in _BARS:
            family = event.name.partition("_")[0] if event.kind == "plugin" else event.kind
            # A trace may be written by any program: what has no colour here is no class.
            family = family if family in _FAMILIES else "other"
            wide = _width(self._label(event)) - 4
            failed = " failed" if event.errno is not UNSET else ""
            self._out.append(
                f'<g class="event">{title}<rect x="{x}" y="{y - 8}" width="{wide:.0f}" height="16" '
                f'rx="3" class="bar f-{family}{failed}"/>'
                f'<text x="{x + 5}" y="{y + 4}" class="in">{label}</text></g>'
            )
            return
        shapes = {
            "message": f'<circle cx="{x + 4}" cy="{y}" r="4" class="f-message"/>',
            "state": f'<path d="M{x + 5} {y - 6}l6 6l-6 6l-6 -6z" class="f-state"/>',
        }
        process = {
            "exit": f'<path d="M{x} {y - 5}l9 10m0 -10l-9 10" class="gone"/>',
            "fork": f'<path d="M{x} {y - 5}h6l4 5l-4 5h-6z" class="f-process"/>',
        }
        circle = f'<circle cx="{x + 5}" cy="{y}" r="4.4" class="f-process"/>'
        shape = shapes.get(event.kind) or process.get(event.name, circle)
        wide = len(label) * _CHARACTER + 4
        under = f'<rect x="{x + 12}" y="{y - 7}" width="{wide:.0f}" height="14" class="paper"/>'
        beside = (
            f'{under}<text x="{x + 13}" y="{y + 4}" class="soft">{label}</text>' if label else ""
        )
        self._out.append(f'<g class="event">{title}{shape}{beside}</g>')


def _width(label: str) -> float:
    return max(18.0, len(_cut(label, 30)) * _CHARACTER + 18)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text(text: str) -> str:
    """Write a text so that it means nothing in XML; control characters must not even be there."""
    return html.escape(_CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text))
