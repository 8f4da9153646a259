"""The calls: from a daemon to a plugin function, checked, traced, and safe from the plugin.

A plugin never takes a daemon down: what it raises becomes SLURM_ERROR, what it returns by mistake
as well, and both are told in the trace.
"""

import reprlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import iscoroutinefunction
from types import CoroutineType
from typing import Any, Final, Protocol

import attrs
from msgspec import UNSET, UnsetType

from simctl.api.reach import reach_of
from simctl.api.stepd import Executed
from simctl.api.surroundings import in_words, told, told_failure
from simctl.kernel.faults import CallFault, CallFaults, InjectedError
from simctl.kernel.procs import BY_PLUGIN, CALLING, Process, RunsAs
from simctl.kernel.threads import ENDED, TornDown
from simctl.kernel.trace import OpenCall, Trace
from simctl.plugin import CheckpointStatus, SwitchPlugin
from simctl.plugins.guard import DiedError
from simctl.plugins.points import ALL, OPTIONAL, OWN
from simctl.plugins.points.declare import INT_MAX, Point, Returns
from simctl.plugins.points.switch import (
    switch_p_get_errno,
    switch_p_job_attach,
    switch_p_strerror,
)
from simctl.plugins.points.switch_besides import switch_p_job_suspend_info_get
from simctl.plugins.registry import PluginError, Registry
from simctl.plugins.values import Before as ValuesBefore
from simctl.wire.buf import Buf, Packed
from simctl.wire.cli_options import CliOptions
from simctl.wire.errno import (
    ESLURM_SWITCH_MAX,
    ESLURM_SWITCH_MIN,
    SLURM_ERROR,
    SLURM_SUCCESS,
    SlurmError,
    errno_name,
    slurm_strerror,
)
from simctl.wire.ids import NO_VAL
from simctl.wire.records import DraftJob


class MisplacedCallError(AssertionError):
    """A daemon called a function in the wrong process or as the wrong user: a bug of simctl's."""

    def __init__(self, point: Point, who: Process, model: str) -> None:
        places = point.places(model).items()
        wanted = " or ".join(f"{role} as {user.value}" for role, user in places)
        super().__init__(
            f"{point.name} was called in {who.role} (pid {who.pid}) as {who.runs_as.value}; "
            f"model {model} calls it in {wanted or 'no process'}"
        )


@attrs.define(eq=False)
class Handle:
    """A daemon's hold on an object of a plugin's; `value` None is C's NULL.

    `number` names the object in traces, the same in a process and its forks.
    """

    value: Any
    number: int

    def __str__(self) -> str:
        return f"#{self.number}"


NULL: Final = Handle(None, 0)
"""A hold on nothing: what a plugin gives that keeps no object."""


CREDENTIAL: Final = Handle(None, 0)
"""Stands for the credential of the step as the calling process has it."""


@attrs.frozen(kw_only=True)
class About:
    """Which job and step a call concerns, where the calling process serves many.

    `besides` is what real Slurm passes beside, or instead of, what the plugin is given (model
    modern): for the trace alone.
    """

    job: int | UnsetType = UNSET
    step: str | UnsetType = UNSET
    besides: Mapping[str, Any] = {}


NOTHING: Final = About()


def failed(result: Any) -> bool:
    """Return whether a call of an int or object function failed."""
    return type(result) is int and result < 0


class Observer(Protocol):
    """Somebody who looks at a plugin's calls from close by; see `simctl plugins check`."""

    def before(
        self, point: Point | None, name: str, who: Process, instance: Any, values: tuple[Any, ...]
    ) -> Any:
        """Look at what a call finds; the answer is handed to `after`, unless it is None."""

    def after(
        self,
        before: Any,
        point: Point | None,
        who: Process,
        instance: Any,
        values: tuple[Any, ...],
        result: Any,
        error: SlurmError | None,
        problem: str,
    ) -> None:
        """Look at what a call has left, how it failed, and what was wrong with it."""


class _Places(dict[str, RunsAs]):
    """As whom a function is called in each role; None in any other."""

    def __missing__(self, role: str) -> None:
        """Return None."""


class Hooks:
    """Calls plugin functions for every process of a run; one for a world."""

    def __init__(
        self,
        *,
        trace: Trace,
        registry: Registry,
        model: str,
        types: Mapping[str, str],
        faults: CallFaults,
    ) -> None:
        self.calls = 0
        self.types = types
        self.model = model
        self._trace = trace
        self._registry = registry
        self._faults = faults
        self._objects = 0
        self._async: dict[str, bool] = {}
        self._switch_known = ""
        self._may_change_env = True
        self.wants_layout = False
        """Whether the switch plugin is given the layout of steps, as real Slurm's is."""
        self.observers: list[Observer] = []
        """Those who look at each call from close by, one after another."""
        self.values = False
        """Whether the trace tells what calls hand out and leave behind."""
        self.watch: Callable[[Process, str, str, Any], None] | None = None
        """Told of each call that has ended: process, plugin, function, the plugin's object."""
        self.switch: Callable[[], Awaitable[None]] | None = None
        """Lets other processes go first before a call, where the schedule may wish it."""
        self.under_way: list[OpenCall] = []
        """Calls that wait for something: virtual time, a message, an event."""
        self._own_places = {key: _Places(own.places(model)) for key, own in OWN.items()}
        self._places = {
            name: _Places(point.places(model)) for name, point in (ALL | OPTIONAL).items()
        }

    @contextmanager
    def unobserved(self) -> Iterator[None]:
        """Let nobody look at the calls meanwhile: an observer makes them for its own sake."""
        aside, self.observers = self.observers, []
        try:
            yield
        finally:
            self.observers = aside

    def permit(self, point: Point) -> None:
        """Let a function be called as in model guide, for the sake of an option, in any model."""
        self._places[point.name] = _Places(point.places("guide"))

    async def load(
        self,
        who: Process,
        plugin_class: str,
        about: About = NOTHING,
        *,
        plugin_type: str = "",
    ) -> bool:
        """Load the configured plugin into a process and run its init; false if that failed.

        One whose init failed is not loaded: nothing else of it is called, its fini neither.

        Where a class has several, *plugin_type* says which; it is known by its type from then on.
        """
        self._check_own(who, plugin_class, "init")
        known_as = plugin_type or plugin_class
        plugin_type = plugin_type or self.types[plugin_class]
        CALLING.set(who)
        try:
            instance = self._registry.make(plugin_type, who.host.name)
        except PluginError as error:
            self._trace.complain(who, "__init__", str(error))
            return False
        if plugin_class == "switch" and plugin_type != self._switch_known:
            self._switch_known = plugin_type
            stub = SwitchPlugin.switch_p_job_attach
            self.wants_layout = any(
                getattr(kind, "wants_layout", False) for kind in self._registry.kinds(plugin_type)
            )
            self._may_change_env = any(
                getattr(kind, "switch_p_job_attach", None) is not stub
                for kind in self._registry.kinds(plugin_type)
            )
        who.touch().load(known_as, instance)
        if await self.run_own(who, "init", instance, plugin_type, about) < 0:
            del who.touch().instances[known_as]
            return False
        return True

    async def load_others(self, who: Process, plugin_class: str) -> None:
        """Run init of every plugin of a class but the configured one; nothing is kept of them.

        As srun of 18.08 does with switch plugins. One that fails is passed over.
        """
        self._check_own(who, plugin_class, "init")
        for plugin_type in self._registry.at_hand(plugin_class):
            if plugin_type == self.types[plugin_class]:
                continue
            CALLING.set(who)
            try:
                instance = self._registry.make(plugin_type, who.host.name)
            except PluginError as error:
                self._trace.complain(who, "__init__", str(error))
                continue
            await self.run_own(who, "init", instance, plugin_type, NOTHING)

    async def unload(
        self,
        who: Process,
        plugin_class: str,
        about: About = NOTHING,
        *,
        plugin_type: str = "",
    ) -> None:
        """Run the plugin's fini, if the process has loaded it, and forget it."""
        self._check_own(who, plugin_class, "fini")
        known_as = plugin_type or plugin_class
        instances = who.touch().instances
        instance = instances.get(known_as)
        if instance is None:
            return
        of_type = plugin_type or self.types[plugin_class]
        await self.run_own(who, "fini", instance, of_type, about)
        del instances[known_as]

    def _check_own(self, who: Process, plugin_class: str, name: str) -> None:
        """Refuse an init or fini where the model has none: a bug of simctl's."""
        if self._own_places[plugin_class, name][who.role] is not who.runs_as:
            raise MisplacedCallError(OWN[plugin_class, name], who, self.model)

    async def run_own(
        self, who: Process, name: str, instance: Any, plugin_type: str, about: About
    ) -> Any:
        """Run a plugin's init or fini, where it has one."""
        method = _looked_up(instance, name, None)
        if method is None:
            return SLURM_SUCCESS
        if self.switch is not None:
            await self.switch()
        trace = self._trace
        if not (trace.recording or trace.open_calls or self._faults.rules or self.watch):
            self.calls += 1
            CALLING.set(who)
            before = trace.seq
            try:
                result = method()
            except BaseException as error:  # noqa: BLE001 - a plugin never takes a daemon down
                result = _Raised(error)
            if result is None or (type(result) is int and 0 <= result <= INT_MAX):
                trace.seq = who.cause = trace.seq + 1 + (trace.seq != before)
                return SLURM_SUCCESS
            self.calls -= 1
            trace.seq += trace.seq != before
            method = _Again(result)
        shown = {"plugin": plugin_type}
        return await self.run_function(None, name, who, method, (), shown, about)

    async def call(  # noqa: PLR0912, PLR0915 - a case for each way a plugin can answer
        self,
        point: Point,
        who: Process,
        *arguments: Any,
        about: About = NOTHING,
        plugin_type: str = "",
    ) -> Any:
        """Call one function of the process's plugin.

        Args:
            point: The function.
            who: The process that calls; its role and user must be the declared ones.
            arguments: As declared; a `Handle` stands for the object it holds, and `CREDENTIAL` for
                that of the process.
            about: The job and step, where `who` does not say.
            plugin_type: Which plugin, where the class has several.

        Returns:
            An int function's result (SLURM_ERROR if it failed in whatever way), a new `Handle` from
            a function that makes an object (or SLURM_ERROR), else what the function returned.
        """
        place = self._places[point.name][who.role]
        if place is not who.runs_as and place is not RunsAs.EITHER:
            raise MisplacedCallError(point, who, self.model)
        if self.switch is not None:
            await self.switch()
        memory = who.memory
        if who.ended_by:
            # Its plugin has ended it: nothing of it is called any more.
            return SLURM_ERROR
        who.about = about
        if memory.holders != 1 and not memory.inert:
            memory = who.touch()
        if arguments and arguments[0] is CREDENTIAL:
            arguments = (memory.credential, *arguments[1:])
        try:
            method = getattr(memory.instances[plugin_type or point.plugin_class], point.name)
        except BaseException as error:  # noqa: BLE001 - as in _looked_up, a call less
            method = _Again(_Raised(error))
        if point.on_subject:
            values = (arguments[0].value, *arguments[1:])
            if point is switch_p_job_suspend_info_get:
                values = (values[0], values[1].value)
        elif arguments and type(arguments[-1]) is Handle:
            values = (*arguments[:-1], arguments[-1].value)
        else:
            values = arguments
        trace = self._trace
        if trace.recording or trace.open_calls or self._faults.rules or self.watch:
            shown: dict[str, Any] = {}
            if trace.recording:
                shown = dict(zip(point.parameters, arguments, strict=True))
            result = await self.run_function(
                point, point.name, who, method, values, shown, about, plugin_type
            )
        else:
            # Nobody looks: call, and number the event that would have been recorded.
            self.calls += 1
            CALLING.set(who)
            before = trace.seq
            try:
                result = method(*values)
                if point is switch_p_job_attach and self._may_change_env:
                    check_environment(values[1])
            except BaseException as error:  # noqa: BLE001 - a plugin never takes a daemon down
                result = _Raised(error)
            if result is None and point.none_is_success:
                result = SLURM_SUCCESS
                trace.seq = who.cause = trace.seq + 1 + (trace.seq != before)
            elif result is None and point.returns is Returns.OBJECT:
                result = NULL
                trace.seq = who.cause = trace.seq + 1 + (trace.seq != before)
            elif type(result) is int and 0 <= result <= point.most:
                trace.seq = who.cause = trace.seq + 1 + (trace.seq != before)
            else:
                self.calls -= 1
                trace.seq += trace.seq != before
                result = await self.run_function(
                    point, point.name, who, _Again(result), values, {}, about, plugin_type
                )
        if type(result) is int and result < 0 and point.plugin_class == "switch" and not who.exited:
            await self._ask_errno(point, who, about)
        return result

    async def run_function(  # noqa: PLR0912, PLR0915 - a case for each way a plugin can fail
        self,
        point: Point | None,
        name: str,
        who: Process,
        method: Any,
        values: tuple[Any, ...],
        shown: dict[str, Any],
        about: About,
        plugin_type: str = "",
    ) -> Any:
        """Call what was looked up, with everything recorded; the watchdog knows this function."""
        self.calls += 1
        CALLING.set(who)
        trace = self._trace
        env_before = frozenset(values[1]) if point is switch_p_job_attach and values else None
        call = trace.open_call(
            who, name, self._show(who, shown, about) if trace.recording else shown
        )
        call.plugin = plugin_type or shown.get("plugin", "")
        if point is not None and self._faults.asked:
            call.values = dict(zip(point.parameters, values, strict=False))
        error: SlurmError | None = None
        died: DiedError | None = None
        problem, injected = "", False
        seen: list[tuple[Observer, Any]] = []
        instance = getattr(method, "__self__", None)
        values_before: ValuesBefore | None = None
        if self.values and trace.recording:
            values_before = ValuesBefore(who, values[1] if env_before is not None else None)
        try:
            faults = self._faults
            result = await self._strike(call) if faults.rules or faults.asked else None
            injected = result is not None
            if result is None:
                for each in self.observers:
                    found = each.before(point, name, who, instance, values)
                    if found is not None:
                        seen.append((each, found))
                result = method(*values)
                if type(result) is CoroutineType:
                    result = await self._see_through(call, result)
            if env_before is not None:
                check_environment(values[1])
            most = INT_MAX if point is None else point.most
            if result is None and (point is None or (point.is_int and point.none_is_success)):
                result = SLURM_SUCCESS
            elif not (type(result) is int and 0 <= result <= most):
                result, problem = self._settle(point, result)
            if point is not None and point.returns is Returns.TEXT and not problem:
                result, problem = _that_fits(point, values, result)
        except SlurmError as raised:
            error = raised
            result = raised.errno if point is not None and point.returns is Returns.ERRNO else -1
        except InjectedError as raised:
            problem = told_failure(raised)
            injected = True
            result = SLURM_ERROR
        except NonsenseError as raised:
            problem = str(raised)
            result = SLURM_ERROR
        except ENDED as raised:
            if who.table.kernel.ends(raised):
                trace.drop_call(call)
                if values_before is not None:
                    values_before.forget()
                raise
            problem = told_failure(raised)
            result = SLURM_ERROR
        except DiedError as raised:
            died = raised
            problem = f"ended its process: {raised}"
            result = SLURM_ERROR
        except Executed:
            trace.leave_call(call)
            who.cause = call.enter
            if values_before is not None:
                values_before.forget()
            for each, found in seen:
                each.after(found, point, who, instance, values, SLURM_SUCCESS, None, "")
            raise
        except BaseException as raised:  # noqa: BLE001 - a plugin never takes a daemon down
            problem = told_failure(raised)
            result = SLURM_ERROR
        for each, found in seen:
            each.after(found, point, who, instance, values, result, error, problem)
        if error is not None or (type(result) is int and result < 0):
            who.errno = error.errno if error is not None else 0
            who.why = error.message if error is not None else ""
        if trace.recording and point is not None:
            _show_result(call.shown, point, values, env_before)
        if values_before is not None:
            self._show_values(values_before, call, point, instance, values, result)
        who.cause = trace.close_call(
            call,
            UNSET if point is not None and point.returns is Returns.VOID else _plain(result),
            errno_name(error.errno) if error is not None and error.errno else UNSET,
            shown["plugin"] if point is None else plugin_type or self.types[point.plugin_class],
        )
        if problem:
            self._trace.complain(who, name, problem, counted=not injected)
        if died is not None:
            await _end(who, died)
            return result
        if self.watch is not None and instance is not None:
            of_type = plugin_type or (
                shown["plugin"] if point is None else self.types[point.plugin_class]
            )
            self.watch(who, of_type, name, instance)
        return result

    def _show_values(
        self,
        before: ValuesBefore,
        call: OpenCall,
        point: Point | None,
        instance: Any,
        values: tuple[Any, ...],
        result: Any,
    ) -> None:
        """Add to a call's arguments what it has handed out and left behind."""
        names = point.parameters if point is not None else ()
        objects = dict(zip(names, values, strict=False))
        if type(result) is Handle:
            objects["result"] = result.value
        env = objects.get("env") if point is switch_p_job_attach else None
        found = before.handed_out(self._trace, env, instance, objects)
        if found:
            call.shown["values"] = found

    async def _strike(self, call: OpenCall) -> int | None:
        """Let a call fail or hang for a fault's sake; return its result if it does not run."""
        fault = self._faults.strike(call)
        if fault is None:
            return None
        if fault.hangs:
            await self._see_through(call, self._hang(call.who, fault))
            return None
        return fault.strike()

    @staticmethod
    async def _hang(who: Process, fault: CallFault) -> None:
        """Let nothing happen for as long as a fault says."""
        if fault.hangs_us is None:
            await who.table.kernel.park("a call of its plugin that hangs")
        else:
            await who.table.kernel.sleep_us(fault.hangs_us)

    async def _see_through(self, call: OpenCall, running: Any) -> Any:
        """Let an `async def` run to its end; meanwhile it is known to be under way."""
        call.who.naps = 0
        self.under_way.append(call)
        try:
            # Whom a plugin runs for is known in its task's context, however long it takes.
            await call.who.table.kernel.enter_task()
            CALLING.set(call.who)
            result = await running
        except BaseException as error:
            # Where the run is over, what was under way is what it ended for.
            if not (isinstance(error, TornDown) and call.who.table.kernel.ends(error)):
                self.under_way.remove(call)
            raise
        self.under_way.remove(call)
        return result

    def _settle(self, point: Point | None, result: Any) -> tuple[Any, str]:
        """Bring what a plugin returned into the shape its callers rely on."""
        returns = Returns.INT if point is None else point.returns
        if returns is Returns.OBJECT:
            if type(result) is int and result < 0:
                return SLURM_ERROR, ""
            if result is None:
                return NULL, ""
            self._objects += 1
            return Handle(result, self._objects), ""
        if point is None or point.is_int:
            if result is None and (point is None or point.none_is_success):
                return SLURM_SUCCESS, ""
            if isinstance(result, int) and _in_range(returns, result):
                return int(result), ""
        elif returns is Returns.BOOL:
            if isinstance(result, int | None):
                return bool(result), ""
        elif returns is Returns.STATUS:
            if isinstance(result, CheckpointStatus | int | None):
                return result, ""
        elif isinstance(result, str | None) or returns is not Returns.TEXT:
            return result, ""
        return SLURM_ERROR, f"returned {told(_REPR.repr, result)}; expected {returns.value}"

    @staticmethod
    def packed(who: Process, buffer: Buf) -> Packed:
        """Return what the switch plugin of a process has packed, with the plugin's version."""
        return Packed(buffer.data(), _version(who))

    @staticmethod
    def has(who: Process, point: Point, plugin_type: str = "") -> bool:
        """Return whether the plugin of a process has a function that it need not have.

        *plugin_type* says which, where the class has several.

        None has it in a process that could not load its plugin, or has let go of it.
        """
        instance = who.memory.instances.get(plugin_type or point.plugin_class)
        return instance is not None and _looked_up(instance, point.name, None) is not None

    async def call_besides(
        self, point: Point, who: Process, *arguments: Any, about: About = NOTHING
    ) -> Any:
        """Call a function that no guide has, in the model and of the plugin that have it.

        Where there is none it is as if it had succeeded and done nothing.
        """
        if who.role not in self._places[point.name] or not self.has(who, point):
            return NULL if point.returns is Returns.OBJECT else SLURM_SUCCESS
        return await self.call(point, who, *arguments, about=about)

    def takes_time(self, point: Point) -> bool:
        """Return whether the configured plugin's function is an `async def`, or may hang."""
        if self._faults.rules and self._faults.may_hang(point.name):
            return True
        known = self._async.get(point.name)
        if known is None:
            kinds = self._registry.kinds(self.types[point.plugin_class])
            known = self._async[point.name] = any(
                iscoroutinefunction(getattr(kind, point.name)) for kind in kinds
            )
        return known

    async def blank(self, who: Process, alloc: Point) -> Handle:
        """Return a new object to unpack into, where the model makes no call for it.

        From Slurm 1.0 on a plugin's unpack makes its own object. The guide's unpack fills one in,
        so in model modern the plugin's alloc is run as part of unpack: no call of a daemon's, and
        not traced.
        """
        if who.ended_by:
            return NULL
        CALLING.set(who)
        instance = who.touch().instances[alloc.plugin_class]
        try:
            value = getattr(instance, getattr(instance, "simctl_blank", alloc.name))()
            if type(value) is CoroutineType:
                await who.table.kernel.enter_task()
                CALLING.set(who)
                value = await value
        except BaseException as error:
            if isinstance(error, ENDED) and who.table.kernel.ends(error):
                raise
            if isinstance(error, DiedError):
                self._trace.complain(who, alloc.name, f"ended its process: {error}")
                await _end(who, error)
            value = None  # unpack will fail on the missing object, and be told
        if value is None or (type(value) is int and value < 0):
            return NULL
        self._objects += 1
        return Handle(value, self._objects)

    def strikes(self, who: Process, name: str, job: int = 0) -> bool:
        """Return whether a fault makes an act of *who* fail, such as ``setsid`` or ``fork``."""
        if not self._faults.rules:
            return False
        fault = self._faults.find(OpenCall(who, name, {"job": job} if job else {}, 0, who.cause))
        return fault is not None and not fault.hangs

    def script_fault(self, who: Process, name: str) -> CallFault | None:
        """Return the fault that strikes a script which is about to run in *who*."""
        if not self._faults.rules:
            return None
        return self._faults.find(OpenCall(who, name, {}, 0, who.cause))

    async def _ask_errno(self, point: Point, who: Process, about: About) -> None:
        if point is switch_p_get_errno or point is switch_p_strerror:
            return
        number = await self.call(switch_p_get_errno, who, about=about)
        if type(number) is int and number:
            who.errno = number

    async def strerror(self, who: Process, number: int, about: About = NOTHING) -> str:
        """Describe an error number; the switch plugin describes its own range."""
        if ESLURM_SWITCH_MIN <= number <= ESLURM_SWITCH_MAX and "switch" in who.memory.instances:
            text = await self.call(switch_p_strerror, who, number, about=about)
            if isinstance(text, str):
                return text
        return slurm_strerror(number)

    def _show(self, who: Process, shown: dict[str, Any], about: About) -> dict[str, Any]:
        """Put arguments into the form traces hold, as they are before the call."""
        plain: dict[str, Any] = {}
        for key, value in shown.items():
            if value is None or (type(value) is int and 0 <= value < NO_VAL):
                plain[key] = value
                continue
            plain[key] = _shown(value)
            if type(value) is Buf and value.version not in (None, _version(who)):
                # Packed by another version of the plugin than the one that is to read it.
                plain[key]["version"] = value.version
        if about is not NOTHING:
            plain.update(about.besides)
            if about.job is not UNSET:
                plain["job"] = about.job
            if about.step is not UNSET:
                plain["step"] = about.step
        return plain


def _that_fits(point: Point, values: tuple[Any, ...], text: Any) -> tuple[Any, str]:
    """Cut a text off where the buffer ends that C would have it in, and say so."""
    if text is None or "size" not in point.parameters:
        return text, ""
    size = values[point.parameters.index("size")]
    octets = text.encode()
    if len(octets) <= size:
        return text, ""
    problem = f"returned {len(octets)} bytes; *size* was {size}"
    return octets[: max(size, 0)].decode(errors="ignore"), problem


def _in_range(returns: Returns, result: int) -> bool:
    if returns is Returns.THREE:
        return -1 <= result <= 1
    if returns in (Returns.TIME, Returns.SIZE_MB):
        return 0 <= result <= _INT64_MAX
    return -INT_MAX <= result <= INT_MAX


def _shown(value: Any) -> Any:
    if type(value) is Handle:
        return None if value.value is None else str(value)
    if type(value) is Buf:
        return {"bytes": value.size}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    # An environment is shown by what the call adds to it.
    return [] if isinstance(value, dict) else _plain(value)


_CHANGELESS: Final = frozenset({int, str, bool, type(None)})
"""The types of arguments that no call changes."""

_CHANGING: Final = (DraftJob, CliOptions)


def _show_result(
    shown: dict[str, Any], point: Point, values: tuple[Any, ...], env_before: frozenset[str] | None
) -> None:
    """Bring the arguments that a call has changed up to date."""
    for key, value in zip(point.parameters, values, strict=False):
        if type(value) in _CHANGELESS:
            continue
        if isinstance(value, Buf):
            shown[key]["bytes"] = value.size
        elif key == "tres_cnt" and type(value) is dict:
            shown[key] = {_plain(name): _plain(count) for name, count in value.items()}
        elif isinstance(value, _CHANGING) and (changed := value.changed()):
            shown["changed"] = changed
    if env_before is not None:
        shown["env"] = [_plain(key) for key in values[1] if key not in env_before]


class NonsenseError(Exception):
    """A plugin left something behind that its guide does not allow."""


_TEXT_ALONE: Final = frozenset({str})


def check_environment(env: dict[Any, Any]) -> None:
    """Check what job_attach left in a task's environment.

    Raises:
        NonsenseError: A name or a value is no text.
    """
    if _TEXT_ALONE.issuperset(map(type, env)) and _TEXT_ALONE.issuperset(map(type, env.values())):
        whole = "".join(env) + "".join(env.values())
        if whole.isascii() and "\0" not in whole and "" not in env and "=" not in "".join(env):
            return
    for key, value in env.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            raise NonsenseError(
                f"left env[{told(_REPR.repr, key)}] = {told(_REPR.repr, value)}; "
                "the names and values of an environment are texts"
            )
        if not key or "=" in key or "\0" in key + value or told(str, key + value) != key + value:
            raise NonsenseError(
                f"left env[{told(_REPR.repr, key)}] = {told(_REPR.repr, value)}; "
                "no environment can hold that"
            )


async def _end(who: Process, died: DiedError) -> None:
    """End the process of a plugin as the plugin has; whoever runs in it comes no further.

    A task that attaches to the interconnect may be run by its parent, which goes on.
    """
    kernel = who.table.kernel
    who.ended_by = BY_PLUGIN
    if who.role == "srun":
        # A command is no daemon: whoever has started it sees how it ends.
        raise died
    reach_of(who).died(who, died.status)
    if kernel.current is not None and kernel.current.killed:
        await kernel.park("its end")


def _version(who: Process) -> int:
    version = getattr(who.memory.instances.get("switch"), "plugin_version", 0)
    return version if type(version) is int else 0


class _Raised:
    """What a plugin raised where nobody looked, to be told as if somebody had."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Again:
    """A call whose outcome is there already: it returns, or raises, that."""

    __slots__ = ("_outcome",)

    def __init__(self, outcome: Any) -> None:
        self._outcome = outcome

    def __call__(self, *_: Any) -> Any:
        if type(self._outcome) is _Raised:
            raise self._outcome.error
        return self._outcome


def _plain(value: Any) -> Any:
    if type(value) is Handle:
        return None if value.value is None else str(value)
    if type(value) is int and _INT64_MIN <= value <= _INT64_MAX:
        return "NO_VAL" if value == NO_VAL else value
    if value is None or isinstance(value, bool | UnsetType) or type(value) is float:
        return value
    if type(value) is str and value.isascii():
        return value
    return told(in_words, value)


_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1


def _looked_up(instance: Any, *name: Any) -> Any:
    """Return a plugin's method; if looking it up raises, what will raise that when it is called."""
    try:
        return getattr(instance, *name)
    except BaseException as error:  # noqa: BLE001 - a plugin never takes a daemon down
        return _Again(_Raised(error))


_REPR: Final = reprlib.Repr()
_REPR.maxother = 1000
"""Shortens what is long and sorts what has no order; what bears an address must stay whole."""


__all__ = [
    "CREDENTIAL",
    "NOTHING",
    "About",
    "CallFault",
    "Handle",
    "Hooks",
    "MisplacedCallError",
    "RunsAs",
    "failed",
]
