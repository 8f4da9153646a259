"""Write a run down as the instrumented Slurm 18.08 wrote its recordings.

So two runs can be held against each other as a run is held against a recording: whatever differs
between runs of one scenario under other schedules, latencies and seeds is a race.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from simctl.kernel.events import Event
from simctl.wire.errno import errno_number

_BATCH: Final = -2
_ROLES: Final = {"manager": "stepd", "slurmd": "slurmd", "srun": "srun", "slurmctld": "slurmctld"}
_RECORDS: Final = {
    *("slurm_ckpt_alloc_job", "slurm_ckpt_free_job", "slurm_ckpt_copy_job"),
}
_LEFT_OUT: Final = ("_pack_", "_unpack_")
_NAMELESS: Final = {"switch_p_part_comp", "slurm_ckpt_alloc_job", "slurm_ckpt_free_job"}
_UNRECORDED: Final = {
    *("switch_p_get_errno", "switch_p_strerror", "switch_p_free_node_info"),
    *("bb_p_state_pack", "bb_p_job_get_est_start"),
    *("dw_pools", "dw_show_instances", "dw_show_sessions", "dw_show_configurations"),
}
_NODE_STATES: Final = {"UNKNOWN": 0, "DOWN": 1, "IDLE": 2, "ALLOCATED": 3, "MIXED": 3}
_NODE_FLAGS: Final = {"DRAIN": 0x200, "COMPLETING": 0x400, "NO_RESPOND": 0x800}
_Line = tuple[str, str, str, dict[str, Any], Any]
"""A daemon, call or mark, the function, its arguments and result."""

_RENAMED: Final = {"nodelist": "node_list"}


def recorded(events: Sequence[Event], *, begins_us: int = 0) -> list[dict[str, Any]]:
    """Return what the recorder would have written of a run, from a time on."""
    return list(_Recorder(events).run(begins_us))


@attrs.define
class _Recorder:
    events: Sequence[Event]
    ends: dict[int, Event] = attrs.field(init=False)
    ranks: dict[int, int] = attrs.field(init=False)
    connected: set[object] = attrs.field(init=False)
    """The sendings of messages that had somebody to go to."""

    executed: set[int] = attrs.field(factory=set)
    started: set[object] = attrs.field(factory=set)
    pointers: dict[object, str] = attrs.field(factory=dict)
    given: int = 0

    def __attrs_post_init__(self) -> None:
        self.ends = {event.enter: event for event in self.events if isinstance(event.enter, int)}
        self.connected = {
            event.cause
            for event in self.events
            if event.phase == "receive" or event.name == "undeliverable"
        }
        forked = {
            _args(event).get("child")
            for event in self.events
            if event.name == "fork" and event.role == "manager"
        }
        self.ranks = {
            event.pid: event.task
            for event in self.events
            if event.pid in forked and isinstance(event.pid, int) and isinstance(event.task, int)
        }

    def run(self, begins_us: int) -> Iterator[dict[str, Any]]:
        seq = 0
        for event in self.events:
            if isinstance(event.enter, int) and event.kind != "script":
                continue
            for daemon, kind, name, args, rc in self._lines(event):
                seq += 1
                if event.time_us < begins_us:
                    continue
                yield {
                    "seq": seq,
                    "daemon": daemon,
                    "node": event.node if event.node not in (None, "login") else "",
                    "pid_role": self._role(event, daemon),
                    "uid": event.uid,
                    "euid": event.euid,
                    "ev": kind,
                    "fn": name,
                    "args": args,
                    "rc": rc,
                    "dt": event.time_us / 1e6,
                }

    def _role(self, event: Event, daemon: str) -> str:
        if event.role == "manager":
            return f"stepd[{event.step}]"
        if event.role == "task" and event.pid in self.ranks:
            return f"task{self.ranks[event.pid]}[{event.step}]"
        return daemon

    def _about(self, event: Event) -> dict[str, Any]:
        about: dict[str, Any] = {}
        if isinstance(event.job, int):
            about["job"] = event.job
        if isinstance(event.step, str):
            step = event.step.partition(".")[2]
            about["step"] = _BATCH if step == "batch" else int(step)
        return about

    def _lines(self, event: Event) -> Iterator[_Line]:
        if event.role in ("slurmctld", "slurmd", "manager") and event.pid not in self.started:
            self.started.add(event.pid)
            yield str(event.daemon), "mark", "proc_start", {"argv": ""}, None
        if event.kind == "plugin":
            yield from self._call(event)
        elif event.kind == "message":
            yield from self._message(event)
        elif event.kind == "state":
            yield from self._state(event)
        elif event.kind == "script":
            yield from self._script(event)
        elif event.kind == "process":
            yield from self._process(event)

    def _call(self, event: Event) -> Iterator[_Line]:
        name = event.name
        if name in _UNRECORDED or any(part in name for part in _LEFT_OUT):
            return
        end = self.ends.get(event.seq, event)
        given = {**_args(event), **_args(end)}
        args: dict[str, Any] = {} if name in _NAMELESS else self._about(event)
        if name in ("init", "fini"):
            args = {"plugin": f"{str(event.plugin).replace('/', '_')}.so"}
        elif name in _RECORDS:
            args = self._record(event, name)
        for key, value in given.items():
            if key in ("switch_job", "slurmd_job", "step_ptr", "step_id", "job_id", "plugin"):
                continue
            called = _RENAMED.get(key, key) if name == "switch_p_build_jobinfo" else key
            called = {"uid": "uid_arg", "op": "opnum"}.get(called, called)
            args[called] = list(value) if isinstance(value, tuple) else value
        if name in _RECORDS:
            args = {key: args[key] for key in ("ji", "from") if key in args}
        elif name in _NAMELESS:
            args = {}
        rc: Any = None if end.phase == "enter" else end.rc
        if isinstance(end.errno, str) and rc == -1 and name == "slurm_ckpt_op":
            rc = errno_number(end.errno)
        if not isinstance(rc, (int, type(None))) or (rc is None and end.phase != "enter"):
            rc = 0
        daemon = "slurmstepd" if event.role == "task" else str(event.daemon)
        yield daemon, "call", name, args, rc

    def _record(self, event: Event, name: str) -> dict[str, Any]:
        if event.plugin == "checkpoint/none":
            return {"ji": "(nil)"}
        if name == "slurm_ckpt_copy_job":
            old = self.pointers.get((event.job, None), "(nil)")
            # The rest of the array goes on with the copy.
            new = self.pointers[event.job, None] = self._new_pointer()
            return {"ji": old, "from": new}
        key = (event.job, event.step if isinstance(event.step, str) else None)
        if name == "slurm_ckpt_alloc_job":
            self.pointers[key] = self._new_pointer()
        return {"ji": self.pointers.pop(key, "(nil)") if "free" in name else self.pointers[key]}

    def _new_pointer(self) -> str:
        self.given += 1
        return f"#{self.given}"

    def _message(self, event: Event) -> Iterator[_Line]:
        peer, _, host = str(event.peer).partition("@")
        roles = {str(event.role), peer.split(" ")[0]}
        if host == event.node and roles in ({"slurmd", "stepd"}, {"manager", "slurmd"}):
            return
        if event.phase == "send" and event.seq not in self.connected:
            return
        args = {
            "msg": event.name,
            **self._about(event),
            **{
                key: list(value) if isinstance(value, tuple) else value
                for key, value in _args(event).items()
            },
        }
        if event.name == "REQUEST_JOB_REQUEUE":
            args.pop("job", None)
        way = "send" if event.phase == "send" else "recv"
        yield str(event.daemon), "mark", way, args, None

    def _state(self, event: Event) -> Iterator[_Line]:
        args = _args(event)
        if args.get("from") is None:
            return
        if event.name == "job_state":
            told = {"job": event.job, "from": args["from"], "to": args["to"], "in": ""}
            yield "slurmctld", "mark", "job_state", told, None
        elif event.name == "node_state":
            before, after = (_node_state(args[key]) for key in ("from", "to"))
            if before != after:
                told = {"node": args["node"], "from": before, "to": after, "in": ""}
                yield "slurmctld", "mark", "node_state", told, None

    def _script(self, event: Event) -> Iterator[_Line]:
        if (
            event.name.startswith("dw_")
            and event.phase == "enter"
            and event.name not in _UNRECORDED
        ):
            end = self.ends.get(event.seq, event)
            argv = " ".join(str(word) for word in _args(event).get("argv", ()))
            killed = isinstance(end.rc, int) and 0 < end.rc < 128 and end.rc == 9
            rc = None if killed else (end.rc or 0) >> 8 or 0
            yield "dw_wlm_cli", "call", event.name, {"argv": argv}, rc
        elif event.name in ("prolog", "epilog"):
            told: dict[str, Any] = {"name": event.name, "job": event.job}
            if event.phase == "enter":
                yield "slurmd", "mark", "run_script", {**told, "script": ""}, None
            else:
                yield "slurmd", "mark", "run_script_done", {**told, "status": event.rc}, None

    def _process(self, event: Event) -> Iterator[_Line]:
        if event.name == "fork" and event.role == "manager":
            child = _args(event).get("child")
            if child in self.ranks:
                yield "slurmstepd", "mark", "forked_task", {"gtid": self.ranks[child]}, None
        elif event.name == "become_user" and event.pid in self.ranks:
            yield "slurmstepd", "mark", "become_user", {"to_uid": event.uid}, None
        elif event.name == "exec" and event.pid in self.ranks and event.pid not in self.executed:
            self.executed.add(event.pid)
            yield "slurmstepd", "mark", "exec_task", {"gtid": self.ranks[event.pid]}, None
        elif event.name == "exit" and event.pid in self.ranks:
            yield "slurmstepd", "mark", "task_reaped", {"status": event.rc}, None


def _args(event: Event) -> dict[str, Any]:
    return event.args if isinstance(event.args, dict) else {}


def _node_state(text: str) -> str:
    base, *flags = str(text).split("|")
    value = _NODE_STATES[base] | sum(_NODE_FLAGS[flag] for flag in flags)
    return f"{base}(0x{value:x})"
