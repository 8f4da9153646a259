"""Rules about who may do what: as whom programs run, who is listened to, what lets a step start."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.observed import (
    LAUNCHES,
    TERMINATIONS,
    Observed,
    StepDaemon,
    arg,
    by,
    owner_uid,
    sending_of,
)
from simctl.orderings.rules import AUTHORITY, KEPT, Finding, broken, rule
from simctl.wire.hostlist import expand
from simctl.wire.rights import OF_SLURMCTLD, OF_SLURMD, Right, Who

_SOURCE: Final = "what Slurm's manual says of users and daemons; no recording shows an attack"
_BUILD: Final = "switch_p_build_jobinfo"
_MADE: Final = "RESPONSE_JOB_STEP_CREATE"
_USERS_SCRIPTS: Final = ("task_prolog", "task_epilog", "user_task_prolog", "user_task_epilog")
_STATES: Final = ("job_state", "node_state", "step_state")


@rule(
    AUTHORITY + 1,
    "no-user-code-as-root",
    says="what a step executes runs as the job's owner, really and effectively: programs, scripts, "
    "what they start, and task prologs and epilogs",
    key="a step daemon",
    exceptions="a job whose submission the trace does not show, or that root or SlurmUser has "
    "submitted",
    source=_SOURCE,
)
def no_user_code_as_root(run: Observed) -> Iterator[Finding]:
    """Look at as whom everything of a step is executed."""
    executed = [e for name in ("exec", *_USERS_SCRIPTS) for e in run.by_name.get(name, ())]
    # What a plugin has run in a step daemon is the site's.
    of_users = (e for e in executed if (e.name, e.role) != ("exec", "script"))
    for (node, step), events in by(of_users, "node", "step").items():
        if step is UNSET:
            continue
        users = [(event, owner_uid(run, event)) for event in events]
        known = [(event, user) for event, user in users if user is not None]
        wrong = [(e, user) for e, user in known if (e.uid, e.euid) != (user, user)]
        if wrong:
            event, user = wrong[0]
            what = f"{event.name} as {event.uid}/{event.euid}, not as {user}"
            yield broken(f"step {step} on {node}", what, event)
        elif known:
            yield KEPT


@rule(
    AUTHORITY + 2,
    "only-who-may-changes-a-job",
    says="a request that changes the state of the job it names comes from its owner, root or "
    "SlurmUser, or from an operator, as docs/authority.md has it for that request",
    key="a change of a job's state",
    exceptions="a job whose submission the trace does not show, or that root or SlurmUser has "
    "submitted; what a request leads to later",
    source=_SOURCE,
)
def only_who_may_changes_a_job(run: Observed) -> Iterator[Finding]:
    """Look at who has sent the request behind each change."""
    for event in run.by_name.get("job_state", ()):
        request = run.request_of(event)
        right = OF_SLURMCTLD.get(request.name) if request is not None else None
        if request is None or right is None or request.job is UNSET:
            continue
        if request.job not in (event.job, event.array_job):
            continue
        sending = sending_of(run, request)
        owner = owner_uid(run, event)
        if sending is None or owner is None:
            continue
        if _may(run, right, sending, request, owner):
            yield KEPT
        else:
            what = f"{request.name} of uid {sending.uid} changed a job of {owner}"
            yield broken(f"job {event.job}", what, sending, event)


def _may(run: Observed, right: Right, sending: Event, request: Event, owner: int) -> bool:
    uid = sending.uid
    return bool(
        right.who & Who.ANYBODY
        or (right.who & Who.DAEMONS and uid in (0, request.uid))
        or (right.who & Who.ROOT and uid == 0)
        or (right.who & Who.OWNER and uid == owner)
        or (right.who & Who.OPERATOR and uid in run.terms.operators)
        or (right.who & Who.ADMINISTRATOR and uid in run.terms.administrators)
    )


@rule(
    AUTHORITY + 3,
    "daemons-heed-daemons",
    says="a message that only daemons may send and that is not refused was sent by root or "
    "SlurmUser",
    key="a message",
    source=_SOURCE,
)
def daemons_heed_daemons(run: Observed) -> Iterator[Finding]:
    """Look at as whom each such message was sent."""
    slurm_user = next((event.uid for event in run.events if event.role == "slurmctld"), UNSET)
    refused = {event.cause for event in run.by_name.get("refused", ())}
    for role, rights in (("slurmctld", OF_SLURMCTLD), ("slurmd", OF_SLURMD)):
        for name, right in rights.items():
            if right.who is not Who.DAEMONS:
                continue
            for receipt in run.received(name):
                sending = sending_of(run, receipt)
                if receipt.role != role or sending is None:
                    continue
                if sending.uid in (0, slurm_user) or receipt.seq in refused:
                    yield KEPT
                else:
                    what = f"{role} heeded what uid {sending.uid} had sent"
                    yield broken(f"{name} (seq {receipt.seq})", what, sending, receipt)


# Launches.


def _launch(run: Observed, daemon: StepDaemon) -> tuple[Event, Event | None] | None:
    """Return the receipt that a step daemon was forked upon, and where its credential was made.

    None for one whose fork or launch the trace does not show.
    """
    fork = run.forks.get(daemon.manager)
    if fork is None:
        return None
    key = daemon.node, daemon.step
    receipts = [each for each in run.once(_receipts).get(key, ()) if each.seq < fork.seq]
    if not receipts:
        return None
    receipt = receipts[-1]
    if daemon.batch:
        return receipt, sending_of(run, receipt)
    made = run.once(_made).get(daemon.step, ())
    before = [each for each in made if each.seq < receipt.seq]
    return receipt, before[-1] if before else None


def _receipts(run: Observed) -> Mapping[Any, list[Event]]:
    events = (event for name in LAUNCHES for event in run.received(name))
    return by(events, "node", "step")


def _made(run: Observed) -> Mapping[Any, list[Event]]:
    return by(run.sent(_MADE), "step")


@rule(
    AUTHORITY + 4,
    "launched-with-a-credential",
    says="slurmd forks a step daemon upon a launch whose credential slurmctld has made: for a "
    "batch script in the launch itself, for a step in the answer to its creation, and for that "
    "node",
    key="a step daemon",
    source=_SOURCE,
)
def launched_with_a_credential(run: Observed) -> Iterator[Finding]:
    """Look for the making of the credential behind each fork."""
    built = by(run.calls(_BUILD), "step")
    for daemon in run.daemons.values():
        fork = run.forks.get(daemon.manager)
        if fork is None or not daemon.events[0].step:
            continue
        found = _launch(run, daemon)
        if found is None:
            yield broken(daemon, "nobody had asked for it", fork)
            continue
        receipt, made = found
        if made is None or made.daemon != "slurmctld":
            yield broken(daemon, "slurmctld had made no credential for it", receipt, fork)
        elif (nodes := _built_for(built.get(daemon.step, []), made)) and (
            daemon.node not in expand(nodes)
        ):
            yield broken(daemon, f"its credential is for {nodes}", made, fork)
        else:
            yield KEPT


def _built_for(calls: list[Event], made: Event) -> str:
    """Return the nodes of a step that was answered then; a job that runs again counts anew."""
    before = [call for call in calls if call.seq < made.seq]
    return str(arg(before[-1], "nodelist")) if before else ""


@rule(
    AUTHORITY + 5,
    "nothing-launched-once-revoked",
    says="after slurmd was told that a job is over it launches nothing of it but with a credential "
    "that was made later than that was sent",
    key="a step daemon of a job that was told to end on its node before",
    source=_SOURCE,
)
def nothing_launched_once_revoked(run: Observed) -> Iterator[Finding]:
    """Hold each fork against the last word that its job is over."""
    told_to_end = [e for name in (*TERMINATIONS, "REQUEST_ABORT_JOB") for e in run.received(name)]
    ends = by((e for e in told_to_end if e.role == "slurmd" and e.step is UNSET), "node", "job")
    for daemon in run.daemons.values() if ends else ():
        fork = run.forks.get(daemon.manager)
        found = _launch(run, daemon) if fork is not None else None
        if fork is None or found is None or found[1] is None:
            continue
        told = [each for each in ends.get((daemon.node, daemon.job), ()) if each.seq < fork.seq]
        for end in told:
            sending = sending_of(run, end)
            if sending is not None and sending.seq > found[1].seq:
                what = f"it was launched after {end.name}"
                yield broken(daemon, what, found[1], end, fork)
                break
        else:
            if told:
                yield KEPT


@rule(
    AUTHORITY + 6,
    "refused-changes-nothing",
    says="a request that slurmctld refuses for who asks changes no state of a job, step or node",
    key="a request that is refused",
    exceptions="what a plugin that was asked about the request has refused with the same error",
    source=_SOURCE,
)
def refused_changes_nothing(run: Observed) -> Iterator[Finding]:
    """Look at what else was done upon such a request."""
    refusals = [event for event in run.by_name.get("refused", ()) if event.role == "slurmctld"]
    changed: dict[int, Event] = {}
    for name in _STATES if refusals else ():
        for event in run.by_name.get(name, ()):
            request = run.request_of(event)
            if request is not None:
                changed.setdefault(request.seq, event)
    theirs = {
        (request.seq, event.rc)
        for event in (run.events if changed else ())
        if event.kind == "plugin" and event.rc is not UNSET and event.rc
        if (request := run.request_of(event)) is not None
    }
    for event in refusals:
        request = run.request_of(event)
        if request is None or (request.seq, event.rc) in theirs:
            continue
        change = changed.get(request.seq)
        if change is None:
            yield KEPT
        else:
            what = f"{change.name} changed all the same"
            yield broken(f"{request.name} (seq {request.seq})", what, request, change)
