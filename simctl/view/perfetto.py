"""A run for Perfetto and chrome://tracing: hosts are its processes, processes its threads.

The clock is the number of the event, a tick each, since most of a run happens in a few moments:
the virtual time of each event is among its arguments.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET

from simctl import __version__
from simctl.kernel.events import Event
from simctl.outputs import Kind
from simctl.view.processes import pid_of, processes_of
from simctl.view.reading import Seen

PERFETTO: Final = Kind("trace for Perfetto", (b'{"otherData":{"simctl":',))

_TICK: Final = 1000
_WIDTH: Final = 900
_FORKS: Final = 1 << 40
"""Beyond all numbers of messages."""
_SPANS: Final = ("plugin", "script", "command")


def to_perfetto(seen: Seen) -> bytes:
    """Return a run as JSON of the Chrome trace event format."""
    told = [*_Converter(seen).events()]
    header = {"simctl": __version__, **{key: str(value) for key, value in seen.header.items()}}
    return msgspec.json.encode({"otherData": header, "traceEvents": told}, enc_hook=str)


class _Track:
    """A row of one process; calls that overlap without one lying in the other need several."""

    def __init__(self, tid: int) -> None:
        self.tid = tid
        self.open: list[int] = []
        """When the calls end that are under way, the outer ones first."""

    def takes(self, start: int, end: int) -> bool:
        """Return whether a call fits in here; if so, it is under way from now on."""
        while self.open and self.open[-1] <= start:
            self.open.pop()
        if self.open and self.open[-1] < end:
            return False
        self.open.append(end)
        return True


class _Converter:
    def __init__(self, seen: Seen) -> None:
        self._events = seen.events
        self._numbers = {event.seq for event in seen.events}
        model = str(seen.header.get("model", "guide"))
        self._processes = {each.pid: each for each in processes_of(seen.events, model)}
        hosts = dict.fromkeys(each.host for each in self._processes.values())
        self._hosts = {host: number for number, host in enumerate(hosts, start=1)}
        self._tracks: dict[int, list[_Track]] = {}
        self._tids = 0
        self._ends = self._spans()
        self._ended = {end.seq for start, end in self._ends.items() if start in self._numbers}
        self._sent = {event.seq for event in seen.events if event.phase == "send"}

    def _spans(self) -> dict[int, Event]:
        """Return the ends of calls, scripts and commands that have a line for their beginning."""
        ends: dict[int, Event] = {}
        open_: dict[tuple[int, str], int] = {}
        for event in self._events:
            if event.kind not in _SPANS:
                continue
            key = (pid_of(event), event.name)
            if event.phase == "enter":
                open_[key] = event.seq
            elif event.phase == "exit":
                start = event.enter if event.enter is not UNSET else open_.pop(key, 0)
                ends[start] = event
        return ends

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the records, the names of hosts and processes first."""
        names: list[dict[str, Any]] = []
        for name, number in self._hosts.items():
            names.append(_name("process_name", number, 0, name))
        found = [each for event in self._events for each in self._records(event)]
        for order, (pid, process) in enumerate(self._processes.items()):
            host = self._hosts[process.host]
            for number, track in enumerate(self._tracks.get(pid, ())):
                label = f"{process.name} pid {pid}" if pid else process.name
                more = f" ({number + 1})" if number else ""
                names.append(_name("thread_name", host, track.tid, label + more))
                place = {"sort_index": order}
                names.append(_meta("thread_sort_index", host, track.tid, place))
        yield from names
        yield from found

    def _track(self, pid: int, start: int, end: int) -> int:
        tracks = self._tracks.setdefault(pid, [])
        for track in tracks:
            if track.takes(start, end):
                return track.tid
        self._tids += 1
        fresh = _Track(self._tids)
        fresh.takes(start, end)
        tracks.append(fresh)
        return fresh.tid

    def _records(self, event: Event) -> list[dict[str, Any]]:
        if event.seq in self._ended:
            return []
        end = self._ends.get(event.seq, event)
        start_ts, end_ts = event.seq * _TICK, end.seq * _TICK + _WIDTH
        process = self._processes[pid_of(event)]
        tid = self._track(process.pid, start_ts, end_ts)
        place = {"pid": self._hosts[process.host], "tid": tid}
        told = {
            key: value
            for key, value in msgspec.to_builtins(end, enc_hook=str).items()
            if key not in ("kind", "name", "phase")
        }
        records = [
            {
                "ph": "X",
                "name": _label(event),
                "cat": event.kind,
                **place,
                "ts": start_ts,
                "dur": end_ts - start_ts,
                "args": told,
            }
        ]
        records += self._flows(event, place, start_ts)
        return records

    def _flows(self, event: Event, place: dict[str, int], ts: int) -> list[dict[str, Any]]:
        """Return the arrows that begin or end at an event: of messages and of forks."""
        found: list[dict[str, Any]] = []

        def flow(phase: str, number: int, name: str) -> None:
            ends = {"bp": "e"} if phase == "f" else {}
            found.append(
                {"ph": phase, "id": number, "name": name, "cat": "flow", "ts": ts, **place, **ends}
            )

        if event.kind == "message" and event.phase == "send":
            flow("s", event.seq, event.name)
        if event.phase == "receive" and event.cause is not UNSET and event.cause in self._sent:
            flow("f", event.cause, event.name)
        if event.kind == "process" and event.name == "fork" and isinstance(event.args, dict):
            child = event.args.get("child")
            if isinstance(child, int) and child in self._processes:
                flow("s", _FORKS + child, "fork")
        process = self._processes[pid_of(event)]
        if process.first is event and process.parent is not None:
            flow("f", _FORKS + process.pid, "fork")
        return found


def _label(event: Event) -> str:
    if event.kind == "state" and isinstance(event.args, dict):
        return f"{event.name} {event.args.get('to')}"
    sign = {"send": "→ ", "receive": "← "}.get(str(event.phase), "")
    return f"{sign}{event.name}"


def _name(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return _meta(what, pid, tid, {"name": name})


def _meta(what: str, pid: int, tid: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}
