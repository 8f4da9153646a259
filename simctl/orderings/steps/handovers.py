"""Rules about who waits for whose word: slurmd for a step daemon's, that for srun's and others'."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_seq
from simctl.orderings.observed import Observed, StepDaemon, arg, by, sending_of
from simctl.orderings.rules import KEPT, MODERN, Finding, broken, rule
from simctl.orderings.steps.daemons import CUT_SHORT, DAEMON, steps
from simctl.orderings.steps.steps import FREE, REPORT
from simctl.stepd.outcome import patience_us

_LAUNCH: Final = "REQUEST_LAUNCH_TASKS"
_RC: Final = "RESPONSE_SLURM_RC"
_STEP_INIT: Final = "switch_p_slurmd_step_init"
_ACKNOWLEDGED: Final = ("RESPONSE_LAUNCH_TASKS", "MESSAGE_TASK_EXIT")


@rule(
    72,
    "launch-answered-once-handed-over",
    says="slurmd answers a launch, and releases its copy of the credential, only once the step "
    "daemon has loaded its switch plugin and has called slurmd_step_init",
    key="a srun step that a slurmd launches",
    exceptions="a step daemon that died before it had; what becomes of the same launch when it "
    "comes again; before or after preinit is a race",
    source="held in 249 launches of recordings of real Slurm 18.08",
    models=MODERN,
    functions=(FREE, _STEP_INIT),
)
def launch_answered_once_handed_over(run: Observed) -> Iterator[Finding]:
    """Look at what each slurmd does about a step it has forked a daemon for."""
    answers = (each for each in run.sent(_RC) if arg(each, "answers") == _LAUNCH)
    acts = [each for each in (*run.calls(FREE), *answers) if each.role == "slurmd"]
    after = by(acts, "pid", "step")
    for daemon in steps(run):
        fork = run.forks.get(daemon.manager)
        if fork is not None:
            yield _handed_over(run, daemon, fork, after[fork.pid, daemon.step])


def _handed_over(run: Observed, daemon: StepDaemon, fork: Event, after: list[Event]) -> Finding:
    there = [
        each
        for each in daemon.events
        if each.pid == daemon.manager
        and each.phase != "enter"
        and (each.name == _STEP_INIT or (each.name == "init" and _is_switch(each)))
    ]
    launch = run.request_of(fork)
    for event in after:
        if event.seq < fork.seq or run.request_of(event) not in (launch, None):
            continue
        late = next((each for each in there if each.seq > begin_seq(event)), None)
        if late is not None:
            return broken(daemon, f"{event.name} came before its {late.name}", event, late)
        if not there and not run.was_killed(daemon.manager):
            return broken(daemon, f"{event.name} came before it was there", fork, event)
    return KEPT


def _is_switch(load: Event) -> bool:
    return str(load.plugin).startswith("switch/")


def acknowledged(run: Observed, daemon: StepDaemon) -> Mapping[int, int]:
    """Return what srun has acknowledged: numbers of sendings, and of the receipts of answers."""
    found: dict[int, int] = {}
    for event in daemon.events:
        if event.name != _RC or event.phase != "receive":
            continue
        answer = sending_of(run, event)
        heard = run.request_of(answer) if answer is not None else None
        told = sending_of(run, heard) if heard is not None else None
        if told is not None and told.pid == daemon.manager:
            found.setdefault(told.seq, event.seq)
    return found


@rule(
    73,
    "srun-heard-before-step-end",
    says="a step daemon reports the end of its step only once srun has acknowledged how the launch "
    "went and how each task ended",
    key=DAEMON,
    exceptions=f"{CUT_SHORT}. A srun that does not is told for 2.3 seconds, and a little longer "
    "for 1024 nodes and more",
    source="held in 144 step daemons of recordings of real Slurm 18.08",
    models=MODERN,
)
def srun_heard_before_step_end(run: Observed) -> Iterator[Finding]:
    """Look at what each step daemon has said and heard when it reports the end."""
    for daemon in steps(run):
        reports = daemon.sent(REPORT)
        if reports:
            yield _heard_before(run, daemon, reports[0])


def _heard_before(run: Observed, daemon: StepDaemon, report: Event) -> Finding:
    heard = acknowledged(run, daemon)
    shortest_us = patience_us(1)
    for name in _ACKNOWLEDGED:
        tries: dict[str, list[Event]] = defaultdict(list)
        for message in daemon.sent(name):
            if message.seq < report.seq:
                tries[str(message.args)].append(message)
        for told in tries.values():
            first, last = told[0], told[-1]
            if any(heard.get(each.seq, report.seq) < report.seq for each in told):
                continue
            if report.time_us - first.time_us < shortest_us:
                what = f"srun had not acknowledged {name} when it reported its end"
                return broken(daemon, what, last, report)
    return KEPT


@rule(
    74,
    "children-reported-before-own-rank",
    says="a step daemon with a gap behind its own rank reports the ranges of its children first, "
    "and its own rank last; else its own is the first of the first range",
    key=DAEMON,
    exceptions="children that come later are reported later",
    source="held in 1 step daemon of recordings of real Slurm 18.08",
)
def children_reported_before_own_rank(run: Observed) -> Iterator[Finding]:
    """Look at the order of the ranges that each step daemon reports."""
    for daemon in steps(run):
        reports = daemon.sent(REPORT)
        if len(reports) > 1:
            yield _own_last(daemon, reports)


def _own_last(daemon: StepDaemon, reports: list[Event]) -> Finding:
    known: set[int] = set()
    for event in daemon.events:
        if event.name == REPORT and event.phase == "receive" and event.seq < reports[0].seq:
            known |= _ranks(event)
    own = min(min(_ranks(report)) for report in reports)
    mine = next(report for report in reports if own in _ranks(report))
    if len(_ranks(mine)) == 1:
        if own + 1 in known:
            return broken(daemon, "its first child had reported, and was left out", mine)
        for report in reports:
            if report.seq > mine.seq and _ranks(report) <= known:
                return broken(daemon, "its own rank came before its children's", mine, report)
    return KEPT


def _ranks(report: Event) -> set[int]:
    return set(range(arg(report, "range_first"), arg(report, "range_last") + 1))
