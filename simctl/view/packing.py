"""Events as a page holds them: what many have in common stands once, in tables."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET

from simctl.kernel.events import Event

_WHO: Final = (
    *("daemon", "node", "role", "pid", "uid", "euid"),
    *("job", "array_job", "array_task", "step", "task"),
)
_WHAT: Final = ("kind", "name", "phase", "plugin", "peer")
_APART: Final = ("seq", "time_us", "args", "cause")
_MORE: Final = tuple(
    field
    for field in Event.__struct_fields__
    if field not in _WHO and field not in _WHAT and field not in _APART
)


class _Table:
    """Different values, each with a number; equal ones are told by their JSON."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, value: Any) -> int:
        key = msgspec.json.encode(value, enc_hook=str)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.values)
            self.values.append(msgspec.Raw(key))
        return found


def pack(events: Iterable[Event]) -> dict[str, Any]:
    """Return events as `unpack` of assets/model.js reads them.

    `rows` has a list for each: how much its `seq` is above the one before, `time_us`, the numbers
    of its rows in `who`, `what` and `args` (-1 for none), how far back its cause is (0 for none),
    and what else it has.
    """
    who, what, args = _Table(), _Table(), _Table()
    rows: list[list[Any]] = []
    before = 0
    for event in events:
        process = _fields(event, _WHO)
        row: list[Any] = [
            event.seq - before,
            event.time_us,
            who.number(process) if process else -1,
            what.number(_fields(event, _WHAT)),
            -1 if event.args is UNSET else args.number(event.args),
            0 if event.cause is UNSET else event.seq - event.cause,
        ]
        if more := _fields(event, _MORE):
            row.append(more)
        rows.append(row)
        before = event.seq
    return {"who": who.values, "what": what.values, "args": args.values, "rows": rows}


def _fields(event: Event, names: Iterable[str]) -> dict[str, Any]:
    found = ((name, getattr(event, name)) for name in names)
    return {name: value for name, value in found if value is not UNSET}
