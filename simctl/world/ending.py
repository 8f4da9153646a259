"""The end of a run: whether it is over, who waits for what in one that is not, and why."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from simctl.ctld.daemon import Slurmctld
from simctl.ctld.jobs.eligible import is_stuck
from simctl.ctld.jobs.staging import waits_for_stage_in
from simctl.ctld.state.queue import reason_to_wait
from simctl.ctld.state.records import JobRecord
from simctl.faults.daemons import Daemons
from simctl.faults.injector import FaultInjector
from simctl.kernel.events import Event
from simctl.kernel.procs import (
    Host,
)
from simctl.scenario.durations import format_moment
from simctl.wire.states import NodeBase, NodeFlag, node_text
from simctl.world.login import LoginShell

_PATIENCE_TURNS: Final = 100_000
"""How many turns plugins' threads may take while nothing else happens."""


_LAST_LOOKED_AT: Final = 10_000
"""Of how many events it is told what they were, where a run would not end."""


class Ending:
    """Decides what follows when nothing is due: a stall, the cluster's shutdown, the end."""

    def __init__(
        self, daemons: Daemons, *, login: Host, shell: LoginShell, injector: FaultInjector
    ) -> None:
        self._daemons = daemons
        self._site = daemons.site
        self._login = login
        self._shell = shell
        self._injector = injector
        self.running = True
        """Whether the cluster is in service: the daemons have not been told to stop yet."""
        self.stalled: tuple[str, ...] = ()
        """Who waits for what, if the run stalled."""
        self._patience = (-1, 0)

    def goes_on(self) -> bool:
        """Return whether the run goes on where nothing is due; if it is over, stop the daemons."""
        if not self.running:
            if self._threads_may_help():
                return True
            self.stalled = self.stalled or self._calls_under_way()
            return False
        waiting = self._who_waits()
        if waiting and self._threads_may_help():
            return True
        self.running = False
        self.stalled = waiting
        if self.stalled:
            return False
        self._injector.cease()
        if self._daemons.ctld.mailbox.open:
            self._daemons.ctld.shut_down()
        else:
            for slurmd in self._daemons.slurmds.values():
                slurmd.shut_down()
        return self._site.kernel.foreground > 0

    def at_rest(self) -> tuple[str, ...] | None:
        """Return who waits for what where nothing is due that keeps a run alive.

        None if a plugin's own thread is due that may end a wait.
        """
        waiting = self._who_waits()
        return None if waiting and self._threads_may_help() else waiting

    def _threads_may_help(self) -> bool:
        """Return whether a plugin's own thread is due that may end a wait.

        A thread that has gone on for long while no message was sent ends no wait.
        """
        if self._site.trace.messages != self._patience[0]:
            self._patience = (self._site.trace.messages, self._site.kernel.turns + _PATIENCE_TURNS)
        return self._site.kernel.lingering > 0 and self._site.kernel.turns < self._patience[1]

    def _calls_under_way(self) -> tuple[str, ...]:
        """Return which plugin calls have not come back."""
        lines = [
            f"{call.who.name} (pid {call.who.pid}) on {call.who.host.name} waits for "
            f"{call.name} of its plugin to return"
            for call in self._site.hooks.under_way
        ]
        holder = self._daemons.ctld.lock_holder
        if holder is not None:
            lines.append(f"slurmctld waits for its job write lock, which {holder.name} has")
        return tuple(lines)

    def _who_waits(self) -> tuple[str, ...]:
        """Return who waits for what in a run that can go no further; nothing if all is done."""
        ctld = self._daemons.ctld.tables
        jobs = [job for job in ctld.jobs.values() if _could_move(ctld, job)]
        lines = [_job_waits(job) for job in jobs]
        if lines and not self._daemons.ctld.mailbox.open:
            lines.append("slurmctld has ended, and nothing is due to start it again")
        held = any(not job.state.finished for job in ctld.jobs.values())
        if lines or not held:
            lines += [
                f"`{each.command}` of {each.user} ({each.label}) has not ended"
                for each in self._shell.unended()
            ]
        lines += self._calls_under_way()
        if not lines:
            return ()
        down = [
            f"{node.name} is {node_text(node.base, node.flags)}"
            + (f" ({node.reason})" if node.reason else "")
            for node in self._daemons.ctld.nodes
            if node.base < NodeBase.IDLE or node.flags & NodeFlag.DRAIN
        ]
        if down:
            lines.append("nodes that take no job: " + ", ".join(down[:20]))
        if self._injector.endless:
            lines.append("messages go wrong for ever: " + "; ".join(self._injector.endless))
        hosts: Iterable[Host] = (self._login, *self._daemons.hosts.values())
        for host in hosts:
            for process in host.processes.values():
                lines += [
                    f"{thread.name} (pid {process.pid}) on {host.name} waits for {thread.waits_for}"
                    for thread in process.threads
                    if thread.parked and process.daemon != "slurmd"
                ]
        return tuple(lines)


def why_ran_out(daemons: Daemons, events: Sequence[Event]) -> tuple[str, ...]:
    """Return what is to be said of a run that took too many turns."""
    kernel = daemons.site.kernel
    if not kernel.ran_out:
        return ()
    unfinished = sum(not job.state.finished for job in daemons.ctld.jobs.values())
    lines = [f"more than {kernel.most_turns} turns were caused; a run has no more by itself"]
    if unfinished:
        when = format_moment(kernel.now_us)
        lines.append(f"{unfinished} jobs are unfinished at {when} of virtual time")
    last = Counter(f"{event.kind} {event.name}" for event in events[-_LAST_LOOKED_AT:])
    if last:
        often = ", ".join(f"{what} ({times})" for what, times in last.most_common(4))
        lines.append(f"the last {sum(last.values())} events: {often}")
    lines.append("--until TIME ends a run at a moment; --max-turns N lets it go on, 0 for ever")
    return tuple(lines)


def _could_move(ctld: Slurmctld, job: JobRecord) -> bool:
    return not (job.state.finished and not job.state.completing) and not is_stuck(ctld, job)


def _job_waits(job: JobRecord) -> str:
    if job.state.completing:
        other = "EpilogSlurmctld" if job.epilog_running else "its burst buffer's post-run"
        names = ", ".join(sorted(job.completing_nodes)) or other
        return f"job {job.job_id} is {job.state} and waits for {names} to report that it is gone"
    if job.nodes:
        return f"job {job.job_id} is {job.state} on {job.node_list} and nothing is due to end it"
    if job.queued and waits_for_stage_in(job):
        return (
            f"job {job.job_id} is {job.state} ({reason_to_wait(job)}): bb_p_job_test_stage_in "
            f"returned {job.bb_answer} when it was asked last, and nothing else is due"
        )
    return (
        f"job {job.job_id} is {job.state} ({reason_to_wait(job)}): it waits for "
        f"{job.demand.min_nodes} node(s) of partition {job.desc.partition}, "
        f"where {sum(node.usable for node in job.part.nodes)} can take a job"
    )
