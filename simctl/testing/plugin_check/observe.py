"""Watch a plugin's calls: what each returned, what it left behind where, what it touched.

A function's state is followed by process. A fork inherits what its parent had written; a daemon
that loads the plugin starts with nothing. So a function that reads what only another process ever
wrote shows itself, whatever value it happens to find.
"""

import dis
import inspect
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import attrs

from simctl.kernel.procs import Process, RunsAs
from simctl.plugins.points.declare import Point, Returns
from simctl.testing.plugin_check.fingerprint import fingerprint
from simctl.testing.plugin_check.mistakes import (
    BLOCKS,
    BREAKS,
    HANGS,
    NONSENSE,
    NOT_AS_USER,
    READ_ONLY,
    SHARED,
    WRONG_PROCESS,
)
from simctl.wire.buf import Buf
from simctl.wire.burst_buffers import BurstBufferInfo
from simctl.wire.errno import SlurmError, errno_name
from simctl.wire.ids import SECOND
from simctl.world import World

_SLOW_US: Final = 10 * SECOND
"""MessageTimeout: what a daemon does not answer in that time its clients give up on."""

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


@attrs.define
class _Before:
    """What was so before a call."""

    tally: Tally
    started_us: int
    attributes: dict[str, int]
    shared: dict[str, int]
    inputs: dict[str, int]
    environment: frozenset[str]


class Observer:
    """Follows the calls of one plugin through trial clusters."""

    def __init__(self, kind: type[Any], names: Iterable[str]) -> None:
        self.kind = kind
        self.tallies = {name: Tally(name=name) for name in names}
        self.direct = False
        """Whether the calls at present are made for the trial's sake alone."""

        self._wrote: dict[int, dict[str, _Write]] = {}
        self._writes: dict[str, list[_Write]] = {}
        self._suspects: dict[tuple[str, str], list[str]] = {}
        self._reads = {name: frozenset(_reads(kind, name)) for name in self.tallies}

    def new_run(self, name: str, world: World) -> None:
        """Forget the processes of the run before; the calls of the run at hand come now."""
        self.run_name = name
        self._wrote.clear()
        self._writes.clear()

    def conclude(self) -> None:
        """Blame, now that it is known what each function writes itself."""
        for tally in self.tallies.values():
            slow = any(each.startswith("slurmctld") for each in tally.places)
            if slow and tally.longest_us >= _SLOW_US:
                tally.blame(BLOCKS, f"held slurmctld for {tally.longest_us // SECOND} s")
        for (function, name), texts in self._suspects.items():
            tally = self.tallies[function]
            if name not in tally.writes:
                for text in texts:
                    tally.blame(WRONG_PROCESS, text)
        self._suspects.clear()

    def before(
        self, point: Point | None, name: str, who: Process, instance: Any, values: tuple[Any, ...]
    ) -> _Before | None:
        """Look at what a call finds."""
        tally = self.tallies.get(name)
        if tally is None or not isinstance(instance, self.kind):
            return None
        self._look_at_reads(tally, who)
        return _Before(
            tally=tally,
            started_us=who.table.kernel.now_us,
            attributes=_attributes(instance),
            shared=_shared(self.kind),
            inputs=_inputs(point, values),
            environment=frozenset(_environment(point, values)),
        )

    def after(
        self,
        before: _Before | None,
        point: Point | None,
        who: Process,
        instance: Any,
        values: tuple[Any, ...],
        result: Any,
        error: SlurmError | None,
        problem: str,
    ) -> None:
        """Look at what a call has left."""
        if before is None:
            return
        tally = before.tally
        tally.calls += 1
        tally.directly += self.direct
        place = f"{who.role} as {who.runs_as.value}"
        tally.places[place] = tally.places.get(place, 0) + 1
        tally.longest_us = max(tally.longest_us, who.table.kernel.now_us - before.started_us)
        minus = type(result) is int and result < 0
        answers = point is not None and point.returns is Returns.THREE
        failed = error is not None or (minus and not answers)
        tally.failed += failed
        if problem:
            tally.blame(_rule_of(problem), problem)
        elif failed:
            self._note_failure(tally, who, error)
        elif point is not None and point.returns is Returns.INT and result > 0:
            tally.note(
                f"returned {result}, which is taken for success; an error number goes with "
                "`raise SlurmError(number)`"
            )
        elif minus and tally.name in _ENDS:
            tally.note("answered -1, a fatal error")
        for name in _changed(before.attributes, _attributes(instance)):
            self._note_write(tally, name, who)
        for name in _changed(before.shared, _shared(self.kind)):
            tally.blame(
                SHARED,
                f"changes {name}, which every process shares here and none would in Slurm: "
                "keep it on self",
            )
        for name in _changed(before.inputs, _inputs(point, values)):
            tally.blame(READ_ONLY, f"changes {name}, which its guide gives it to read")
        if tally.name == "bb_p_state_pack" and not failed and not _is_readable(values[1]):
            tally.blame(
                NONSENSE,
                "packs what `scontrol show burst` cannot read: "
                "`BurstBufferInfo(name=..., ...).pack(buffer)` packs what it can",
            )
        gone = before.environment - frozenset(_environment(point, values))
        if gone:
            tally.blame(READ_ONLY, f"takes {', '.join(sorted(gone))} out of the task's environment")

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

    def _note_write(self, tally: Tally, name: str, who: Process) -> None:
        write = _Write(tally.name, who.role, who.pid)
        self._known_to(who)[name] = write
        self._writes.setdefault(name, []).append(write)
        tally.writes.setdefault(name, set()).add(who.role)

    def _known_to(self, who: Process) -> dict[str, _Write]:
        """Return what was written in a process, or in those before its fork."""
        known = self._wrote.get(who.pid)
        if known is None:
            parent = self._wrote.get(who.ppid, {}) if who.role in _FORKED else {}
            known = self._wrote[who.pid] = dict(parent)
        return known

    def _look_at_reads(self, tally: Tally, who: Process) -> None:
        known = self._known_to(who)
        for name in sorted(self._reads[tally.name]):
            if name in known or name not in self._writes:
                continue
            writes = self._writes[name]
            # Where others of its kind do store it, this one has only not come to that.
            if any(each.role == who.role for each in writes):
                continue
            write = writes[0]
            self._suspects.setdefault((tally.name, name), []).append(
                f"reads self.{name} in the {who.role} process, where nothing was ever stored in "
                f"it: {write.function} did that in the {write.role} process, whose memory is its "
                "own"
            )


def _rule_of(problem: str) -> str:
    """Return the rule that a complaint of the calls belongs to."""
    if "of wall time" in problem:
        return HANGS
    return NONSENSE if problem.startswith("returned ") else BREAKS


def _attributes(instance: Any) -> dict[str, int]:
    found = dict(getattr(instance, "__dict__", {}))
    for base in type(instance).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(instance, name):
                found[name] = getattr(instance, name)
    return {name: fingerprint(value) for name, value in found.items()}


def _shared(kind: type[Any]) -> dict[str, int]:
    """Return what all instances share: class attributes, and data of the plugin's own module."""
    found: dict[str, int] = {}
    for base in kind.__mro__:
        if base is object or base.__module__.startswith("simctl."):
            continue
        found |= {
            f"the class attribute {base.__name__}.{name}": fingerprint(value)
            for name, value in vars(base).items()
            if _is_data(name, value)
        }
    module = inspect.getmodule(kind)
    if module is not None and not module.__name__.startswith("simctl.plugins."):
        found |= {
            f"the module's global {name}": fingerprint(value)
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


def _inputs(point: Point | None, values: tuple[Any, ...]) -> dict[str, int]:
    if point is None:
        return {}
    found = {}
    for name, value in zip(point.parameters, values, strict=False):
        if name in _RECORDS or (point.name in _INPUT_ONLY and name == point.parameters[0]):
            found[name] = fingerprint(_given(point, value))
    if point.name == "switch_p_print_jobinfo":
        found = {"switch_job": fingerprint(values[1])}
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
    """Tell whether what a plugin packed is nothing, or its burst buffer."""
    try:
        copy = Buf(buffer.data())
        if copy.remaining:
            BurstBufferInfo.unpack(copy)
    except (SlurmError, ValueError):
        return False
    return not copy.remaining


def _environment(point: Point | None, values: tuple[Any, ...]) -> Iterator[str]:
    if point is not None and point.name == "switch_p_job_attach":
        yield from (key for key in values[1] if isinstance(key, str))


def _changed(before: dict[str, int], after: dict[str, int]) -> list[str]:
    names = dict.fromkeys((*before, *after))
    return [name for name in names if before.get(name) != after.get(name)]


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
