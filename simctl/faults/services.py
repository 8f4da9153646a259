"""What goes wrong with what Slurm does for users: accounting away or late, a job preempted."""

from collections.abc import Callable

from simctl.ctld.state.notices import PreemptAsked
from simctl.faults.daemons import Daemons, Deeds
from simctl.scenario.faults import AccountingFault, PreemptFault


class ServiceInjector:
    """Lets slurmdbd fail, and jobs give way; *miss* is told of a fault that meets no target."""

    def __init__(self, daemons: Daemons, miss: Callable[[str, str], None]) -> None:
        self._daemons = daemons
        self._miss = miss
        self._faults = 0
        self.deeds: Deeds = {
            AccountingFault: self._accounting,
            PreemptFault: self._preempt,
        }

    def _accounting(self, fault: AccountingFault, _: str) -> None:
        """Let slurmdbd be away or late; of two such faults the later one counts."""
        site = self._daemons.site
        self._faults += 1
        self._set(away=fault.how == "away", late_us=fault.by_us)
        if fault.for_us is not None:
            site.kernel.call_at(site.kernel.now_us + fault.for_us, self._end, self._faults)

    def _end(self, number: int) -> None:
        if number == self._faults:
            self._set(away=False, late_us=0)

    def _set(self, *, away: bool, late_us: int) -> None:
        site = self._daemons.site
        site.books.away = away
        site.books.late_us = late_us

    def _preempt(self, fault: PreemptFault, text: str) -> None:
        ctld = self._daemons.ctld
        if ctld.process.exited:
            self._miss(text, "slurmctld is down")
        elif fault.job_id not in ctld.running:
            self._miss(text, f"job {fault.job_id} does not run")
        else:
            ctld.mailbox.post(PreemptAsked(job_id=fault.job_id))
