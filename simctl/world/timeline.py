"""The timeline of a scenario: what happens, and when."""

from collections.abc import Callable, Iterable
from typing import Final

from simctl.faults.injector import FaultInjector
from simctl.kernel.due import pick_turn
from simctl.kernel.events import Event
from simctl.kernel.footprint import EVERYTHING
from simctl.scenario.faults import CutFault, FailFault, HangFault, MessageFault, RaiseFault
from simctl.scenario.model import (
    AnswerEntry,
    ApplianceEntry,
    At,
    ConfEntry,
    Entry,
    FaultEntry,
    FilesEntry,
    OutsideEntry,
    PickEntry,
    ProgramsEntry,
    RunEntry,
    StayEntry,
    Stopped,
    When,
)
from simctl.site import Site
from simctl.world.build import describe
from simctl.world.files import Files
from simctl.world.login import LoginShell
from simctl.world.outside import Outside

_IN_FORCE_FIRST: Final = (FailFault, RaiseFault, HangFault, CutFault, MessageFault)
"""Faults that are in force before any daemon starts, if they are there at time 0."""


class Timeline:
    """Has the entries of a scenario's timeline happen, each at its moment."""

    def __init__(
        self,
        site: Site,
        *,
        files: Files,
        shell: LoginShell,
        injector: FaultInjector,
        outside: Outside,
    ) -> None:
        self._site = site
        self._outside = outside
        self._files = files
        self._shell = shell
        self._injector = injector

    def arrange_first(self, entries: Iterable[Entry]) -> list[Entry]:
        """Put in force what holds before any daemon starts; return the other entries."""
        return [entry for entry in entries if not self._is_in_force_first(entry)]

    def _is_in_force_first(self, entry: Entry) -> bool:
        """Put what holds from time 0 in force before any daemon starts: rules, cuts, appliance."""
        if entry.moment != At(time_us=0):
            return False
        if isinstance(entry, ApplianceEntry):
            self._change_appliance(entry)
            return True
        if not isinstance(entry, FaultEntry):
            return False
        if not isinstance(entry.fault, _IN_FORCE_FIRST):
            return False
        self._injector.happen(entry)
        return True

    def arrange(self, entry: Entry) -> None:
        """Have an entry happen at its moment, or on the events that match."""
        moment = entry.moment
        if isinstance(moment, At):
            if isinstance(entry, OutsideEntry) and isinstance(entry.deed, Stopped):
                self._site.kernel.stop_at(moment.time_us)
            self._site.kernel.call_at(moment.time_us, self.happen, entry)
        elif isinstance(moment, When):
            self._site.trace.add_sink(_Trigger(moment, lambda: self.happen(entry)))

    def happen(self, entry: Entry) -> None:
        """Have an entry of the timeline happen now."""
        if not isinstance(entry, RunEntry):
            self._site.kernel.touch(EVERYTHING)
        if isinstance(entry, FilesEntry):
            self._files.write(entry)
        elif isinstance(entry, ProgramsEntry):
            for name, program in entry.programs.items():
                self._site.programs.describe(name, describe(program))
        elif isinstance(entry, PickEntry):
            pick_turn(self._site.kernel, entry.rank)
        elif isinstance(entry, StayEntry | AnswerEntry):
            # An answer is given as the call begins, by the visitor of the run.
            pass
        elif isinstance(entry, RunEntry):
            self._shell.run(entry)
        elif isinstance(entry, OutsideEntry):
            self._outside.happen(entry.deed)
        elif isinstance(entry, ConfEntry):
            self._site.trace.note("fault", "edit_conf", args={"conf": entry.text})
            self._files.edit_burst_buffer_conf(entry)
        elif isinstance(entry, ApplianceEntry):
            self._change_appliance(entry)
        else:
            self._injector.happen(entry)

    def _change_appliance(self, entry: ApplianceEntry) -> None:
        """Change something about the appliance behind burst buffer plugins."""
        self._site.trace.note("fault", "appliance", args={"change": entry.text})
        self._site.appliance.change(entry.change)


class _Trigger:
    """A sink that lets an entry happen on the first event that matches, or on each, after some."""

    def __init__(self, moment: When, happen: Callable[[], None]) -> None:
        self._moment = moment
        self._happen = happen
        self._armed = True
        self._skip = moment.skip

    def __call__(self, event: Event) -> None:
        if self._armed and self._moment.pattern.matches(event):
            if self._skip:
                self._skip -= 1
                return
            self._armed = self._moment.each
            self._happen()
