"""What a plugin call hands out and leaves behind: for traces with values.

The argument `values` of a call's event holds what there is of: `env` (what the call put into a
task's environment), `state` (what the plugin keeps after it), a name for each opaque object that
says what it holds, `result` for one that is made, and `files` (what the call wrote or removed).
"""

from collections.abc import Mapping
from typing import Any, Final

from simctl.api.kept import METHOD, NotPlainError, state_of, tells
from simctl.api.surroundings import told_failure
from simctl.kernel.procs import Process
from simctl.kernel.trace import Trace

_MOST_TEXT: Final = 1_000


class Before:
    """What there was before a call: its environment, and what had been written to the disk."""

    def __init__(self, who: Process, env: Mapping[str, str] | None) -> None:
        self._who = who
        self._env = dict(env) if env is not None else None
        self._notes = who.table.reach.disk.begin_notes()

    def forget(self) -> None:
        """Note no more of what is written: the call does not come back."""
        self._who.table.reach.disk.end_notes(self._notes)

    def handed_out(
        self,
        trace: Trace,
        env: Mapping[str, str] | None,
        instance: object,
        objects: Mapping[str, object],
    ) -> dict[str, Any]:
        """Return the values of a call that has ended, under the names that have any.

        Args:
            trace: Where it is told that a plugin says no plain data of itself.
            env: The environment as the call left it.
            instance: The plugin.
            objects: Its opaque objects, by the name of the parameter, and `result`.
        """
        self.forget()
        found: dict[str, Any] = {}
        if self._env is not None and env is not None:
            before = self._env
            changed = {key: env[key] for key in env if before.get(key) != env[key]}
            gone = {key: None for key in before if key not in env}
            found["env"] = changed | gone
        for name, kept in (("state", instance), *objects.items()):
            if kept is not None and tells(kept):
                try:
                    found[name] = state_of(kept)
                except NotPlainError as error:
                    trace.complain(self._who, METHOD, str(error))
                except Exception as error:  # noqa: BLE001 - a plugin never takes a daemon down
                    trace.complain(self._who, METHOD, told_failure(error))
        if files := self._written():
            found["files"] = files
        return found

    def _written(self) -> dict[str, Any]:
        disk, host = self._who.table.reach.disk, self._who.host.name
        found: dict[str, Any] = {}
        for where, path in sorted(set(self._notes)):
            if where in ("", host):
                data = disk.data(host, path)
                found[path] = None if data is None else _text(data)
        return found


def _text(data: bytes) -> Any:
    """Return what is in a file if that is a short text, else how long it is."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"bytes": len(data)}
    fits = len(text) <= _MOST_TEXT and all(each.isprintable() or each in "\n\t" for each in text)
    return text if fits else {"bytes": len(data)}
