"""Watch a plugin's calls: what each returned, what it left behind where, what it touched.

A function's state is followed by process. A fork inherits what its parent had written; a daemon
that loads the plugin starts with nothing. So a function that reads what only another process ever
wrote shows itself, whatever value it happens to find.
"""

import dis
import inspect
import time  # noqa: TID251 - what a call takes on the wall clock
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.procs import Process, RunsAs
from simctl.plugins.compiled.classes import CompiledPlugin
from simctl.plugins.points.declare import Point, Returns
from simctl.testing.plugin_check.canon import attributes, mutable_parts, plain
from simctl.testing.plugin_check.mistakes import (
    BREAKS,
    HANGS,
    NONSENSE,
    NOT_AS_USER,
    READ_ONLY,
    REAL_TIME,
    SHARED,
    WRONG_PROCESS,
)
from simctl.testing.plugin_check.watching import READS
from simctl.wire.buf import Buf
from simctl.wire.burst_buffers import BurstBufferInfo
from simctl.wire.errno import SlurmError, errno_name

_SLOW_S: Final = 0.5
"""What a call may take on the wall clock: this machine may be busy."""

_PREEMPTED_S: Final = 0.25
_NOTED_S: Final = 0.1
"""From what a call takes on the wall clock it counts for what all of them take."""

SLEEPS_S: Final = 0.05
_KNOWN: Final = 12
_LAZY_AT_MOST: Final = 3
_AT_THE_START: Final = frozenset({"init", "__init__"})
_READS_ANYTHING: Final = frozenset(
    {"init", "fini", "switch_p_get_errno", "switch_p_strerror", "switch_p_free_jobinfo"}
)
"""Functions that run wherever the plugin is, and clean up or tell what there happens to be."""

_NOTHING: Final = object()

_FORKED: Final = frozenset({"session", "task"})

_INPUT_ONLY: Final = frozenset(
    """
    switch_p_copy_jobinfo switch_p_pack_jobinfo switch_p_get_jobinfo switch_p_job_step_complete
    switch_p_print_jobinfo switch_p_sprint_jobinfo switch_p_get_data_jobinfo
    switch_p_pack_node_info switch_p_sprintf_node_info
    slurm_ckpt_pack_job slurm_ckpt_copy_job
    """.split()
)
"""Functions that get their object to read; the job functions may note things in it."""

_ENDS: Final = frozenset({"bb_p_job_test_post_run", "bb_p_job_test_stage_out"})
"""Functions whose -1 means that something is wrong; test_stage_in's also that nothing has begun."""

_RECORDS: Final = frozenset({"job_desc", "slurmd_job"})
"""Parameters that are records for reading in every function."""


@attrs.define(kw_only=True)
class Tally:
    """What is known of one function of the plugin."""

    name: str
    calls: int = 0
    directly: int = 0
    places: dict[str, int] = attrs.field(factory=dict)
    """Where it was called and as whom, and how often."""

    failed: int = 0
    longest_us: int = 0
    writes: dict[str, set[str]] = attrs.field(factory=dict)
    """Attributes of the instance that it changed, each with the roles in which."""

    problems: dict[tuple[str, str], int] = attrs.field(factory=dict)
    """What is wrong with it, by rule and text, and how often that showed."""

    notes: dict[str, int] = attrs.field(factory=dict)

    def blame(self, rule: str, text: str, times: int = 1) -> None:
        """Note that something is wrong."""
        self.problems[rule, text] = self.problems.get((rule, text), 0) + times

    def note(self, text: str) -> None:
        """Note what its author may want to know."""
        self.notes[text] = self.notes.get(text, 0) + 1


@attrs.frozen
class _Write:
    function: str
    role: str
    pid: int


@attrs.define(kw_only=True, eq=False)
class Call:
    """One call of the run at hand: who called what, and what was kept before and after it."""

    function: str
    role: str
    host: str
    pid: int
    step: str
    """The step that the process is there for, `1.0`; empty in daemons that serve many."""

    at_us: int
    values: tuple[Any, ...]
    """What it was called with; the objects themselves."""

    given: Any
    """Its first argument as plain data before the call."""

    kept_before: dict[str, Any]
    """What the process of the plugin keeps, as plain data by attribute."""

    environment: dict[str, str]
    shared: dict[str, Any]
    inputs: dict[str, Any]
    tally: Tally
    direct: bool
    began_s: float
    began_cpu_s: float
    buffer_at: int

    took_us: int = -1
    """How long it took; -1 while it is under way, or if it never came back."""

    left: Any = None
    """Its first argument as plain data after the call."""

    kept_after: dict[str, Any] = attrs.field(factory=dict)
    added: dict[str, str] = attrs.field(factory=dict)
    """What it has put into a task's environment."""

    result: Any = None
    made: Any = None
    """The object that it has made, as plain data."""

    shares: str = ""
    """The first part of a credential that its copy has in common with it, if one can change."""

    packed: bytes = b""
    """What it has packed into a buffer, or was given to unpack."""

    failed: bool = False
    slept_s: float = 0.0
    """How long it slept on the wall clock."""


class Observer:
    """Follows the calls of one plugin through trial clusters."""

    def __init__(self, kind: type[Any], names: Iterable[str]) -> None:
        self.kind = kind
        self.tallies = {name: Tally(name=name) for name in names}
        self.direct = False
        """Whether the calls at present are made for the trial's sake alone."""

        self.run_name = ""
        self.plain = True
        """Whether nothing is made to fail in the run at hand: no call of it may."""

        self.calls: list[Call] = []
        self.open: list[Call] = []
        """The calls under way, the innermost last."""

        self._wrote: dict[int, dict[str, _Write]] = {}
        self._writes: dict[str, list[_Write]] = {}
        self._suspects: dict[tuple[str, str, str], int] = {}
        self._flags: set[tuple[str, str]] = set()
        self.busy_s: dict[str, float] = {}
        """How long calls of each function took on the wall clock, those that took long."""

        self._reads = {name: frozenset(_reads(kind, name)) for name in self.tallies}
        self._last: dict[int, dict[str, Any]] = {}
        self._known: dict[str, list[Any]] = {}
        self._additions: dict[str, int] = {}

    def new_run(self, name: str, *, plain_run: bool = True) -> None:
        """Forget the processes of the run before; the calls of the run at hand come now."""
        self.run_name = name
        self.plain = plain_run
        self.calls = []
        self.open = []
        self._wrote.clear()
        self._last.clear()
        self._additions.clear()
        READS.clear()

    def conclude(self) -> None:
        """Blame, now that it is known what each function writes itself, in which processes."""
        for (function, name, role), times in self._suspects.items():
            writes = [
                each for each in self._writes.get(name, ()) if each.function not in _AT_THE_START
            ]
            # Where others of its kind do store it, this one has only not come to that.
            if not writes or any(each.role == role for each in writes):
                continue
            if name in self.tallies[function].writes:
                continue
            write = writes[0]
            roles = {each.partition(" ")[0] for each in self.tallies[function].places}
            if write.role in roles and (function, name) in self._flags:
                # What runs in several daemons may well ask in which it is.
                continue
            self.tallies[function].blame(
                WRONG_PROCESS,
                f"reads self.{name} in the {role} process, where nothing but its first value was "
                f"ever stored in it: {write.function} did that in the {write.role} process, whose "
                "memory is its own",
                times,
            )
        self._suspects.clear()

    def before(
        self, point: Point | None, name: str, who: Process, instance: Any, values: tuple[Any, ...]
    ) -> Call | None:
        """Look at what a call finds."""
        tally = self.tallies.get(name)
        if tally is None or not isinstance(instance, self.kind):
            return None
        READS.pop(id(instance), None)
        if isinstance(instance, CompiledPlugin):
            instance.adopt(values)
        kept = self._kept(instance)
        self._note_threads(who, kept)
        call = Call(
            function=name,
            role=who.role,
            host=who.host.name,
            pid=who.pid,
            step="" if who.step is UNSET else str(who.step),
            at_us=who.table.kernel.now_us,
            values=values,
            given=plain(values[0]) if values else None,
            kept_before=kept,
            environment=_environment(point, values),
            shared=shared_state(self.kind),
            inputs=_inputs(point, values),
            tally=tally,
            direct=self.direct,
            began_s=time.perf_counter(),
            began_cpu_s=time.thread_time(),
            buffer_at=_position(name, values),
        )
        self.open.append(call)
        READS[id(instance)] = set()
        return call

    def after(
        self,
        call: Call | None,
        point: Point | None,
        who: Process,
        instance: Any,
        values: tuple[Any, ...],
        result: Any,
        error: SlurmError | None,
        problem: str,
    ) -> None:
        """Look at what a call has left."""
        if call is None:
            return
        reads = READS.pop(id(instance), set())
        if isinstance(instance, CompiledPlugin):
            instance.adopt(values)
            reads = set(instance.reads)
        self.open.remove(call)
        call.took_us = who.table.kernel.now_us - call.at_us
        if not call.took_us:
            wall_s = time.perf_counter() - call.began_s
            call.slept_s += max(0.0, wall_s - _SLOW_S)
            cpu_s = time.thread_time() - call.began_cpu_s
            # Others may have had the processor for a while: that is no doing of the plugin's.
            wall_s = cpu_s + max(0.0, wall_s - cpu_s - _PREEMPTED_S)
            if wall_s > _NOTED_S:
                self.busy_s[call.function] = self.busy_s.get(call.function, 0.0) + wall_s
        call.kept_after = self._kept(instance)
        call.left = plain(values[0]) if values else None
        call.result = result
        call.made = plain(getattr(result, "value", None))
        if call.function == "switch_p_copy_jobinfo" and not problem:
            call.shares = self._shared_part(instance, values[0], getattr(result, "value", None))
        call.packed = _passed(values, call.buffer_at)
        now = _environment(point, values)
        before = call.environment
        call.added = {key: value for key, value in now.items() if before.get(key) != value}
        self.calls.append(call)
        self._count(call, who)
        self._judge_answer(call, point, who, error, problem)
        self._judge_changes(call, point, who, values)
        if call.slept_s >= SLEEPS_S and not problem:
            call.tally.blame(
                REAL_TIME,
                f"blocks on the wall clock: {_roughly(call.slept_s)} a call, which in the "
                f"{call.role} process nothing else gets",
            )
        gone = before.keys() - now.keys()
        if gone:
            text = f"takes {', '.join(sorted(gone))} out of the task's environment"
            call.tally.blame(READ_ONLY, text)
        self._note_reads(call, who, reads)
        self._last[who.pid] = call.kept_after

    def note_sleep(self, seconds: float) -> bool:
        """Note that a plugin sleeps on the wall clock; return whether it was one."""
        if not self.open:
            return False
        self.open[-1].slept_s += float(seconds)
        return True

    def _kept(self, instance: Any) -> dict[str, Any]:
        """Return what a plugin keeps; what is as it was shares its memory with what was."""
        kept = attributes(instance)
        for name, value in kept.items():
            if type(value) in (dict, list, frozenset, tuple):
                known = self._known.setdefault(name, [])
                same = next((each for each in known if each == value), None)
                if same is None:
                    known.append(value)
                    del known[:-_KNOWN]
                else:
                    kept[name] = same
        return kept

    def _shared_part(self, instance: Any, one: Any, copied: Any) -> str:
        """Return what of a credential and its copy is one object, and no constant of the plugin."""
        if one is None or copied is None or one is copied:
            return ""
        if isinstance(instance, CompiledPlugin):
            return str(one.shares(copied))
        common = mutable_parts(one).keys() & mutable_parts(copied).keys()
        kept = mutable_parts(instance)
        module = inspect.getmodule(self.kind)
        for owner in (*self.kind.__mro__, *((module,) if module else ())):
            for value in (*vars(owner).values(),):
                if isinstance(value, list | dict | set | tuple):
                    kept |= mutable_parts(value)
        return next(
            (path for number, path in mutable_parts(one).items() if number in common - kept.keys()),
            "",
        )

    def _count(self, call: Call, who: Process) -> None:
        tally = call.tally
        tally.calls += 1
        tally.directly += call.direct
        place = f"{who.role} as {who.runs_as.value}"
        tally.places[place] = tally.places.get(place, 0) + 1
        tally.longest_us = max(tally.longest_us, call.took_us)

    def _judge_answer(
        self, call: Call, point: Point | None, who: Process, error: SlurmError | None, problem: str
    ) -> None:
        tally, result = call.tally, call.result
        minus = type(result) is int and result < 0
        answers = point is not None and point.returns is Returns.THREE
        call.failed = error is not None or (minus and not answers)
        tally.failed += call.failed
        if problem:
            tally.blame(rule_of(problem), problem)
        elif call.failed:
            self._note_failure(tally, who, error)
        elif point is not None and point.returns is Returns.INT and result > 0:
            tally.note(
                f"returned {result}, which is taken for success; an error number goes with "
                "`raise SlurmError(number)`"
            )
        elif minus and tally.name in _ENDS:
            tally.note("answered -1, a fatal error")
        if tally.name == "bb_p_state_pack" and not call.failed and not _is_readable(call.values[1]):
            tally.blame(
                NONSENSE,
                "packs what `scontrol show burst` cannot read: "
                "`BurstBufferInfo(name=..., ...).pack(buffer)` packs what it can",
            )

    def _judge_changes(
        self, call: Call, point: Point | None, who: Process, values: tuple[Any, ...]
    ) -> None:
        tally = call.tally
        for name in _changed(call.kept_before, call.kept_after):
            self._note_write(tally.name, name, who)
            tally.writes.setdefault(name, set()).add(who.role)
        shared = shared_state(self.kind)
        for name in _changed(call.shared, shared):
            if not self._is_lazy(name, call.shared.get(name), shared.get(name)):
                tally.blame(
                    SHARED,
                    f"changes {name}, which every process shares here and none would in Slurm: "
                    "keep it on self",
                )
        for name in _changed(call.inputs, _inputs(point, values)):
            tally.blame(READ_ONLY, f"changes {name}, which its guide gives it to read")

    def _is_lazy(self, name: str, before: Any, after: Any) -> bool:
        """Return whether a table that all share has only been made, or a cache filled a little.

        In Slurm each process would make or fill one of its own, and work the same way.
        """
        self._additions[name] = self._additions.get(name, 0) + 1
        if self._additions[name] > _LAZY_AT_MOST:
            return False
        if before is None:
            return True
        return type(before) is dict and type(after) is dict and before.items() <= after.items()

    @staticmethod
    def _note_failure(tally: Tally, who: Process, error: SlurmError | None) -> None:
        """Note how a function failed; what is refused to a user is a mistake."""
        name = errno_name(error.errno) if error is not None and error.errno else "SLURM_ERROR"
        if name in ("EACCES", "EPERM") and who.runs_as is RunsAs.USER:
            tally.blame(
                NOT_AS_USER,
                f"is refused what it does ({name}): it runs as the user in the {who.role} "
                "process; what needs root belongs into a function that runs as root",
            )
        else:
            tally.note(f"failed with {name}")

    def _note_write(self, function: str, name: str, who: Process) -> None:
        write = _Write(function, who.role, who.pid)
        self._known_to(who)[name] = write
        writes = self._writes.setdefault(name, [])
        if not any((each.function, each.role) == (function, who.role) for each in writes):
            writes.append(write)

    def _note_threads(self, who: Process, kept: dict[str, Any]) -> None:
        """Note what threads of the plugin have changed since the last call in a process."""
        last = self._last.get(who.pid)
        if last is not None and not self.open:
            for name in _changed(last, kept):
                self._note_write("a thread", name, who)

    def _known_to(self, who: Process) -> dict[str, _Write]:
        """Return what was written in a process, or in those before its fork."""
        known = self._wrote.get(who.pid)
        if known is None:
            parent = self._wrote.get(who.ppid, {}) if who.role in _FORKED else {}
            known = self._wrote[who.pid] = dict(parent)
        return known

    def _note_reads(self, call: Call, who: Process, reads: set[str]) -> None:
        """Note what a call has read that was not stored in its process, but as it began."""
        if call.function in _READS_ANYTHING:
            return
        known = self._known_to(who)
        # An attribute of a credential may have the name of one of the plugin: the code is looked
        # at only where nothing is known of what is read.
        noted = "__getattribute__" in vars(self.kind) or issubclass(self.kind, CompiledPlugin)
        there = call.kept_before.keys()
        # What is not there was asked for by `hasattr`, or with a default.
        asked = {name for name in reads if name in there or not hasattr(self.kind, name)}
        for name in sorted(asked if noted else self._reads[call.function]):
            write = known.get(name)
            if write is None or write.function in _AT_THE_START:
                key = (call.function, name, who.role)
                self._suspects[key] = self._suspects.get(key, 0) + 1
                if isinstance(call.kept_before.get(name), bool | None):
                    self._flags.add((call.function, name))


def _buffer(values: tuple[Any, ...]) -> Buf | None:
    return next((each for each in values if isinstance(each, Buf)), None)


def _position(name: str, values: tuple[Any, ...]) -> int:
    """Return where in its buffer a call begins: behind what is packed, or has been read."""
    buffer = _buffer(values)
    if buffer is None:
        return 0
    return buffer.offset if "_unpack" in name else buffer.size


def _passed(values: tuple[Any, ...], start: int) -> bytes:
    buffer = _buffer(values)
    return b"" if buffer is None else buffer.data()[start:]


def _roughly(seconds: float) -> str:
    return f"{seconds:.1f} s"


def rule_of(problem: str) -> str:
    """Return the rule that a complaint of the calls belongs to."""
    if "of wall time" in problem:
        return HANGS
    return NONSENSE if problem.startswith("returned ") else BREAKS


def shared_state(kind: type[Any]) -> dict[str, Any]:
    """Return what all instances share: class attributes, and data of the plugin's own module."""
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        if base is object or base.__module__.startswith("simctl."):
            continue
        found |= {
            f"the class attribute {base.__name__}.{name}": plain(value)
            for name, value in vars(base).items()
            if _is_data(name, value)
        }
    module = inspect.getmodule(kind)
    if module is not None and not module.__name__.startswith("simctl.plugins."):
        found |= {
            f"the module's global {name}": plain(value)
            for name, value in vars(module).items()
            if _is_data(name, value)
        }
    return found


_CODE: Final = (
    types.FunctionType,
    types.ModuleType,
    type,
    property,
    classmethod,
    staticmethod,
    types.BuiltinFunctionType,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
)


def _is_data(name: str, value: Any) -> bool:
    kind: Any = type(value)
    return _holds_data(kind) and not name.startswith("__")


@lru_cache(maxsize=256)
def _holds_data(kind: type[Any]) -> bool:
    return not issubclass(kind, _CODE) and not kind.__module__.startswith(("simctl.", "typing"))


def _inputs(point: Point | None, values: tuple[Any, ...]) -> dict[str, Any]:
    if point is None:
        return {}
    found = {}
    for name, value in zip(point.parameters, values, strict=False):
        if name in _RECORDS or (point.name in _INPUT_ONLY and name == point.parameters[0]):
            found[name] = plain(_given(point, value))
    if point.name == "switch_p_print_jobinfo":
        found = {"switch_job": plain(values[1])}
    return found


def _given(point: Point, value: Any) -> Any:
    """Return what of an argument is only to be read."""
    if point.name != "bb_p_job_validate":
        return value
    # What a job asks for of burst buffers is the plugin's to enter.
    return {each.name: getattr(value, each.name) for each in attrs.fields(type(value))} | {
        "burst_buffer": ""
    }


def _is_readable(buffer: Buf) -> bool:
    """Return whether what a plugin packed is nothing, or its burst buffer."""
    try:
        copy = Buf(buffer.data())
        if copy.remaining:
            BurstBufferInfo.unpack(copy)
    except (SlurmError, ValueError):
        return False
    return not copy.remaining


def _environment(point: Point | None, values: tuple[Any, ...]) -> dict[str, str]:
    if point is not None and point.name == "switch_p_job_attach" and type(values[1]) is dict:
        return dict(values[1])
    return {}


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    names = dict.fromkeys((*before, *after))
    return [name for name in names if before.get(name, _NOTHING) != after.get(name, _NOTHING)]


def _reads(kind: type[Any], name: str) -> Iterator[str]:
    """Return the attributes that a function, or what it calls of its class, looks at.

    What it also assigns is its own business in whichever process, and left out.
    """
    method = inspect.getattr_static(kind, name, None)
    if not isinstance(method, types.FunctionType) or method.__module__.startswith("simctl.plugin"):
        return
    loads: dict[str, None] = {}
    stores: set[str] = set()
    waiting = [method]
    seen = {name}
    while waiting:
        for step in dis.get_instructions(waiting.pop()):
            if step.opname in ("STORE_ATTR", "DELETE_ATTR"):
                stores.add(step.argval)
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                found = inspect.getattr_static(kind, step.argval, None)
                if not isinstance(found, types.FunctionType):
                    loads[step.argval] = None
                elif step.argval not in seen:
                    seen.add(step.argval)
                    waiting.append(found)
    yield from (each for each in loads if each not in stores)
