"""Rules about a launch, from srun over slurmd to a fork, and about a job's end on a node."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_seq
from simctl.orderings.observed import (
    LAUNCHES,
    TERMINATIONS,
    Observed,
    arg,
    between,
    by,
    failed,
    pid_of,
)
from simctl.orderings.rules import KEPT, Finding, broken, rule
from simctl.orderings.steps.daemons import FINI, JOB_FUNCTIONS, POSTFINI
from simctl.orderings.steps.steps import ALLOC, FREE, PACK, UNPACK, lives, nodes_of

_LAUNCH: Final = "REQUEST_LAUNCH_TASKS"
_EPILOG: Final = "MESSAGE_EPILOG_COMPLETE"
_RC: Final = "RESPONSE_SLURM_RC"
_REGISTRATION: Final = "MESSAGE_NODE_REGISTRATION_STATUS"
_FORK: Final = "fork"


def _epilog_starts(run: Observed) -> Iterator[tuple[Event, Event]]:
    """Return each report that a job is gone from a node, and what ended the wait for its steps."""
    begun = (script for script in run.by_name.get("epilog", ()) if script.phase == "enter")
    scripts = by(begun, "node", "job")
    last: dict[tuple[Any, Any], int] = {}
    for report in run.sent(_EPILOG):
        key = (report.node, report.job)
        found = [
            script for script in scripts.get(key, ()) if last.get(key, 0) < script.seq < report.seq
        ]
        last[key] = report.seq
        yield report, found[0] if found else report


@rule(
    35,
    "steps-gone-before-epilog",
    says="fini and postfini of all steps of a job on a node are over, and their step daemons gone, "
    "before the node's epilog begins, and that is over before the job is reported gone",
    key="a job on a node, each time that it ends there",
    exceptions="a slurmstepd that was killed; an epilog whose slurmd died: the next one reports "
    "without it",
    source="held in 182 ends of jobs on nodes in recordings of real Slurm",
    functions=(FINI, POSTFINI),
)
def steps_gone_before_epilog(run: Observed) -> Iterator[Finding]:
    """Look for step daemons that outlive the moment at which they must be gone."""
    for report, start in _epilog_starts(run):
        group = f"job {report.job} on {report.node}"
        wrong: Finding = KEPT
        for daemon in run.step_daemons_of.get((report.job, report.node), ()):
            fork = run.forks.get(daemon.manager)
            if fork is None or fork.seq > start.seq:
                continue
            end = run.exits.get(daemon.manager)
            late = [
                call
                for name in (FINI, POSTFINI)
                for call in daemon.called(name)
                if call.seq > start.seq
            ]
            if late:
                what = f"{late[0].name} of {daemon} came after {start.name}"
                wrong = broken(group, what, start, late[0])
            elif end is None or end.seq > start.seq:
                what = f"{daemon} was still there at its {start.name}"
                wrong = broken(group, what, start, *([end] if end else []))
        if start is not report and _slurmd_of(run, start) == report.pid:
            over = [e for e in run.by_name["epilog"] if e.enter == start.seq]
            if not over or over[0].seq > report.seq:
                wrong = broken(group, "it was reported gone during its epilog", start, report)
        yield wrong


@rule(
    45,
    "prolog-before-launch",
    says="a step daemon is forked upon a launch request alone; where there is a prolog it ended "
    "with 0 before the first fork of the job's run on the node, and does not run again before the "
    "job has ended there; after one that failed nothing is forked",
    key="a fork of a step daemon; a job on a node",
    exceptions="a prolog that was under way when slurmd died: another slurmd runs it again; a job "
    "whose node was DOWN meanwhile",
    source="held in 393 launches of recordings of real Slurm",
)
def prolog_before_launch(run: Observed) -> Iterator[Finding]:
    """Follow launches, prologs and ends of each job in each slurmd."""
    events: list[Event] = [*run.sent(_EPILOG)]
    for name in LAUNCHES:
        events += run.received(name)
    for pid in run.daemons:
        if pid in run.forks:
            events.append(run.forks[pid])
    scripts = run.by_name.get("prolog", ()) if run.terms.conf.get("prolog") else ()
    events += scripts
    events.sort(key=lambda event: event.seq)
    asked: dict[tuple[int, str], int] = defaultdict(int)
    prologs: dict[tuple[Any, Any], Event] = {}
    for event in events:
        if event.name == _FORK:
            yield _forked(run, event, asked, prologs)
        elif event.name == "prolog":
            before = prologs.get((event.node, event.job))
            prologs[event.node, event.job] = event
            if event.phase == "enter" and before is not None and not _given_up(run, before, event):
                group = f"job {event.job} on {event.node}"
                yield broken(group, "its prolog ran again before it had ended", before, event)
        elif event.name == _EPILOG:
            prologs.pop((event.node, event.job), None)
        else:
            asked[pid_of(event), str(event.step)] += 1


def _slurmd_of(run: Observed, script: Event) -> int:
    """Return the slurmd that runs a script."""
    return pid_of(run.forks[pid_of(script)])


def _given_up(run: Observed, before: Event, again: Event) -> bool:
    """Return whether a job was given up on a node between two prologs of it, or its slurmd died."""
    if _slurmd_of(run, before) != _slurmd_of(run, again):
        return True
    return run.node_was_down(str(again.node), before.seq, again.seq)


def _forked(
    run: Observed,
    fork: Event,
    asked: dict[tuple[int, str], int],
    prologs: dict[tuple[Any, Any], Event],
) -> Finding:
    daemon = run.daemons[arg(fork, "child")]
    key = (pid_of(fork), daemon.step)
    if not asked[key]:
        return broken(daemon, "nobody had asked for it", fork)
    asked[key] -= 1
    if run.terms.conf.get("prolog"):
        prolog = prologs.get((fork.node, daemon.job))
        if prolog is None:
            return broken(daemon, "it was forked without a prolog of its job", fork)
        if prolog.phase == "enter" or prolog.rc:
            what = "it was forked though its job's prolog had not ended well"
            return broken(daemon, what, prolog, fork)
    return KEPT


@rule(
    54,
    "slurmd-launch",
    says="slurmd unpacks the credential of a launch, forks one step daemon, packs the credential "
    "for it, answers, and releases it, each once; for a batch script it answers and forks",
    key="a launch request in a slurmd",
    exceptions="a launch that is refused, or whose prolog failed: no fork and no pack. One whose "
    "record cannot be made is refused at once. One that comes doubled while the first is under way",
    source="switch guide; held in 227 launches of recordings of real Slurm",
    functions=(ALLOC, UNPACK, PACK, FREE),
)
def slurmd_launch(run: Observed) -> Iterator[Finding]:
    """Look at what a slurmd does about each launch, in order."""
    acts: dict[tuple[Any, Any], list[Event]] = defaultdict(list)
    for name in (ALLOC, UNPACK, PACK, FREE):
        for call in run.calls(name):
            if call.role == "slurmd":
                acts[call.pid, call.step].append(call)
    for name in LAUNCHES:
        for event in run.received(name):
            acts[event.pid, event.step].append(event)
    for event in run.sent(_RC):
        if event.role == "slurmd" and arg(event, "answers") in LAUNCHES:
            acts[event.pid, event.step].append(event)
    for daemon in run.daemons.values():
        fork = run.forks.get(daemon.manager)
        if fork is not None:
            acts[fork.pid, daemon.step].append(fork)
    for (pid, step), events in acts.items():
        events.sort(key=lambda event: event.seq)
        if not _doubled(run, events):
            yield from _launches(run, f"launch of {step} in slurmd {pid}", events)


def _launches(run: Observed, group: str, events: Sequence[Event]) -> Iterator[Finding]:
    """Look at the launches of one step in one slurmd, one after the other."""
    starts = [place for place, event in enumerate(events) if event.name in LAUNCHES]
    if starts[:1] != [0]:
        yield broken(group, f"{events[0].name} came before it was asked for", events[0])
    for start, end in zip(starts, [*starts[1:], len(events)], strict=False):
        yield _launched(run, group, events[start:end])


def _doubled(run: Observed, events: Sequence[Event]) -> bool:
    """Return whether the network has doubled a launch, so that two are under way at once."""
    doubled = [each for each in run.by_name.get("duplicate", ()) if arg(each, "rpc") in LAUNCHES]
    names = [event.name for event in events if event.name in (*LAUNCHES, _RC)]
    return bool(doubled) and any(one in LAUNCHES and one == two for one, two in pairwise(names))


def _launched(run: Observed, group: str, events: Sequence[Event]) -> Finding:
    names = [event.name for event in events[1:]]
    alloc = [ALLOC] if run.terms.model == "guide" else []
    if events[0].name == _LAUNCH:
        whole = [
            [*alloc, UNPACK, _FORK, PACK, _RC, FREE],
            [*alloc, UNPACK, _RC, FREE],
            [*alloc, _RC],
        ]
    else:
        whole = [[_RC, _FORK], [_RC]]
    if names in whole:
        refused = _FORK not in names
        answers = [event for event in events if event.name == _RC]
        if refused and not arg(answers[0], "return_code") and events[0].name == _LAUNCH:
            return broken(group, "it was taken on, and nothing was forked", events[0], answers[0])
        return KEPT
    slurmd = pid_of(events[0])
    if any(each[: len(names)] == names for each in whole) and not (
        run.terms.finished and run.left(slurmd) and not run.died(slurmd)
    ):
        return KEPT
    # A daemon that has done nothing yet as a run is broken off is not known to have been forked.
    unseen = [[name for name in each if name != _FORK] for each in whole]
    if not run.terms.finished and any(each[: len(names)] == names for each in unseen):
        return KEPT
    return broken(group, f"it went: {', '.join(names) or 'nothing'}", *events)


@rule(
    59,
    "silence-after-epilog",
    says="no step daemon or task of a job calls a plugin on a node that has reported the job gone; "
    "an epilog runs only while the node ends the job",
    key="a job on a node, each time that it ends there",
    exceptions="step daemons of the job's next run",
    source="held in 182 ends of jobs on nodes in recordings of real Slurm",
    functions=JOB_FUNCTIONS,
)
def silence_after_epilog(run: Observed) -> Iterator[Finding]:
    """Look for calls that come too late, and for epilogs that were not asked for."""
    asked: set[tuple[Any, Any]] = set()
    for name in TERMINATIONS:
        for event in run.received(name):
            asked.add((event.pid, event.job))
    for report, start in _epilog_starts(run):
        group = f"job {report.job} on {report.node}"
        wrong: Finding = KEPT
        if (report.pid, report.job) not in asked:
            wrong = broken(group, "nobody had asked for its end", start, report)
        for daemon in run.step_daemons_of.get((report.job, report.node), ()):
            fork = run.forks.get(daemon.manager)
            if fork is None or fork.seq > start.seq or daemon.events[-1].seq < report.seq:
                continue
            late = next(
                (e for e in daemon.events if begin_seq(e) > report.seq and e.kind == "plugin"), None
            )
            if late is not None:
                wrong = broken(group, f"{late.name} came after its last word", report, late)
        yield wrong


_ALLOC_NODE, _BUILD_NODE, _PACK_NODE, _UNPACK_NODE, _FREE_NODE = _NODE_CALLS = tuple(
    f"switch_p_{verb}_node_info" for verb in ("alloc", "build", "pack", "unpack", "free")
)


@rule(
    60,
    "node-info",
    says="a registration of status 0 is preceded by alloc, build and pack of the node's record, "
    "and followed by its release; slurmctld unpacks it once, into a record that it allocates "
    "(guide) or not (modern), and releases that. One that tells of a failure bears no record",
    key="a registration, where it is sent and where it is received",
    exceptions="a record that cannot be allocated: the node registers without it, and slurmctld "
    "drops the message",
    source="switch guide; held in 309 registrations of recordings of real Slurm",
    functions=_NODE_CALLS,
)
def node_info(run: Observed) -> Iterator[Finding]:
    """Look at the calls around each registration, on either side."""
    by_pid = by((call for name in _NODE_CALLS for call in run.calls(name)), "pid")
    requests = sorted(
        (*run.received("REQUEST_SWITCH_INFO"), *run.by_name.get(_REGISTRATION, ())),
        key=lambda event: event.seq,
    )
    last: dict[Any, int] = {}
    following: dict[int, float] = {}
    for event in reversed(requests):
        following[event.seq] = last.get(event.pid, run.events[-1].seq + 1)
        last[event.pid] = event.seq
    last.clear()
    for event in requests:
        calls = by_pid[event.pid]
        if event.name == _REGISTRATION and event.phase == "send":
            before = between(calls, last.get(event.pid, 0), event.seq)
            following_calls = between(calls, event.seq, int(following[event.seq]))[:1]
            after = [call for call in following_calls if call.name == _FREE_NODE]
            if arg(event, "status"):
                # What comes next belongs to the next registration.
                after = []
            yield _registered(run, event, before, after)
            last[event.pid] = after[0].seq if after else event.seq
        elif event.name == _REGISTRATION:
            found = between(calls, event.seq, int(following[event.seq]))
            yield _taken_in(run, event, found)
        else:
            # A user asks what a node's switch is like: its record, if there is one, is shown.
            found = between(calls, event.seq, int(following[event.seq]))
            shown = [c for c in found if c.name == _FREE_NODE or _no_record(c)][:1]
            last[event.pid] = shown[0].seq if shown else event.seq


def _no_record(call: Event) -> bool:
    return call.name == _ALLOC_NODE and failed(call)


def _registered(
    run: Observed, event: Event, before: Sequence[Event], after: Sequence[Event]
) -> Finding:
    """Look at the calls about a node's record around the sending of a registration."""
    names = [call.name for call in (*before, *after)]
    if arg(event, "status"):
        wanted: list[str] = []
        names = [call.name for call in before]
    elif before and _no_record(before[-1]):
        wanted = [_ALLOC_NODE]
        names = [call.name for call in before]
    else:
        wanted = [_ALLOC_NODE, _BUILD_NODE, _PACK_NODE, _FREE_NODE]
    return _as_wanted(run, event, names, wanted)


def _taken_in(run: Observed, event: Event, found: Sequence[Event]) -> Finding:
    """Look at slurmctld's calls about a node's record after the receipt of a registration."""
    names = [call.name for call in found]
    if arg(event, "status"):
        wanted: list[str] = []
    elif run.terms.model == "modern":
        wanted = [_UNPACK_NODE, _FREE_NODE]
    elif found and failed(found[0]):
        wanted = [_ALLOC_NODE]
    else:
        wanted = [_ALLOC_NODE, _UNPACK_NODE, _FREE_NODE]
    return _as_wanted(run, event, names, wanted)


def _as_wanted(run: Observed, event: Event, names: list[str], wanted: list[str]) -> Finding:
    pid = pid_of(event)
    cut_short = not run.terms.finished or not run.left(pid) or run.died(pid)
    if names == wanted or (cut_short and names == wanted[: len(names)]):
        return KEPT
    group = f"registration of {arg(event, 'node_name')} (seq {event.seq})"
    what = f"the calls were {', '.join(names) or 'none'}, not {', '.join(wanted) or 'none'}"
    return broken(group, what, event)


@rule(
    67,
    "launch-once-a-node",
    says="srun unpacks the credential, and then sends one launch to each node of the step, with a "
    "credential packed for it",
    key="a step in its srun",
    exceptions="a srun that was killed; a launch that a cut link held back, or that found no "
    "slurmd on a node where one starts before the next",
    source="held in 90 steps of recordings of real Slurm",
    functions=(UNPACK, PACK),
)
def launch_once_a_node(run: Observed) -> Iterator[Finding]:
    """Look at the launches that each srun sends."""
    sent = by(run.sent(_LAUNCH), "pid", "step")
    builds = {life.step: life.build for life in lives(run)}
    packs = by(run.calls(PACK), "pid", "step")
    unpacked: dict[tuple[Any, Any], Event] = {}
    for call in run.calls(UNPACK):
        unpacked.setdefault((call.pid, call.step), call)
    for key, launches in sent.items():
        build = builds.get(str(key[1]))
        wanted = len(nodes_of(build)) if build is not None and run.left(int(str(key[0]))) else 0
        yield _sent_once(run, key, launches, unpacked.get(key), packs[key], wanted)


def _found_nobody(run: Observed, launch: Event, again: Event) -> bool:
    """Return whether a launch met no slurmd, and one started before it was sent again."""
    if any(each.cause == launch.seq for each in run.received(_LAUNCH)):
        return False
    firsts = (run.by_pid[pid][0] for pid in run.pids("slurmd"))
    return any(
        launch.seq < first.seq < again.seq and launch.peer == f"slurmd@{first.node}"
        for first in firsts
    )


def _sent_once(
    run: Observed,
    key: tuple[Any, Any],
    launches: list[Event],
    unpacked: Event | None,
    packs: list[Event],
    wanted: int,
) -> Finding:
    group = f"step {key[1]} of srun {key[0]}"
    told = by((each for each in launches if each.seq not in run.unreachable), "peer").values()
    if unpacked is None or unpacked.seq > launches[0].seq:
        return broken(group, "it was launched before its credential was unpacked", launches[0])
    if not all(_found_nobody(run, *pair) for same in told for pair in pairwise(same)):
        return broken(group, "a node was told twice to launch it", *launches)
    # What is sent again to a node that was not there has the credential of the first time.
    first: dict[Any, Event] = {}
    for each in launches:
        first.setdefault(arg(each, "nodeid"), each)
    if len(packs) < len(first):
        what = f"{len(first)} nodes were told, with {len(packs)} packed credentials"
        return broken(group, what, *launches)
    for pack, launch in zip(packs, first.values(), strict=False):
        if pack.seq > launch.seq:
            return broken(group, "a launch went out before its credential", launch, pack)
    if len(first) < wanted:
        what = f"{len(first)} of its {wanted} nodes were told to launch it"
        return broken(group, what, *launches)
    return KEPT
