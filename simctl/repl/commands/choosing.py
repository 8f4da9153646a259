"""Faults and answers for plugins."""

import re
from typing import Any

import yaml

from simctl import yaml_text
from simctl.kernel.due import next_turns
from simctl.repl import words
from simctl.repl.acts import Deed
from simctl.repl.commands.timing import count, go
from simctl.repl.errors import CommandError
from simctl.repl.goals import CallEnds
from simctl.repl.registry import command
from simctl.repl.session import Session
from simctl.scenario.durations import format_moment

_FOR = re.compile(r"\s+for[\s=]+(\S+)$")
_OPTION = re.compile(r"\s+(errno|rc|times|skip|chance|by|from|to|how)=(\S+)$")
_ANSWER = re.compile(r"[A-Z][A-Z0-9_]*|-?[0-9]+")
_MESSAGE = re.compile(r"[A-Z*][A-Z_*]+")
_STRIKES = "[from=X] [to=Y] [times=N] [skip=N] [chance=P] [for TIME]"
_TURNS_SHOWN = 20
_ACCOUNTING = {"off": "away", "on": "back", "lag": "late"}


def _do(session: Session, fault: Deed) -> None:
    before = len(session.world.events)
    session.act({"fault": fault})
    for event in session.world.events[before:]:
        if event.kind == "fault" or event.name == "fault_met_nobody":
            session.show_event(event)


def _with_time(rest: str, fault: Deed, key: str = "for") -> str:
    match = _FOR.search(rest)
    if match is not None:
        fault[key] = match[1]
        return rest[: match.start()].strip()
    return rest


def _numbers(rest: str, fault: Deed) -> str:
    """Take `times=2` and its like from the end of a line."""
    while match := _OPTION.search(rest):
        value: Any = match[2]
        fault[match[1]] = int(value) if re.fullmatch("-?[0-9]{1,10}", value) else value
        rest = rest[: match.start()].strip()
    return rest


def _wanted(rest: str, usage: str) -> str:
    if not rest:
        raise CommandError(f"expected `{usage}`")
    return rest


@command(
    "crash", usage="crash WHO [noticed]", topic="choosing", example="crash n1", words=words.struck
)
def crash(session: Session, rest: str) -> None:
    """Let a node go down with all its processes, or slurmd@n1, stepd 1.0@n1 or task 1.0.3 die.

    noticed: slurmctld gives a node up at once, not after SlurmdTimeout.
    """
    who = _wanted(rest, "crash n1").removesuffix(" noticed").strip()
    _do(session, {"crash": who, **({"noticed": True} if who != rest.strip() else {})})


@command(
    "stop",
    usage="stop slurmd@NODE",
    topic="choosing",
    example="stop slurmd@n1",
    words=words.slurmds,
)
def stop(session: Session, rest: str) -> None:
    """Let a slurmd stop in good order."""
    _do(session, {"stop": _wanted(rest, "stop slurmd@n1")})


@command(
    "start", usage="start WHO [clean]", topic="choosing", example="start n1", words=words.started
)
def start(session: Session, rest: str) -> None:
    """Start a node that is down, or slurmd@n1; clean: it clears the state of the node's switch."""
    name, _, how = _wanted(rest, "start n1").partition(" ")
    if how not in ("", "clean"):
        raise CommandError(f"expected `start {name}` or `start {name} clean`")
    _do(session, {"start": name, **({"clean": True} if how else {})})


@command(
    "cut",
    usage="cut HOST HOST [for TIME]",
    topic="choosing",
    example="cut n1 slurmctld for 30s",
    words=words.hosts,
)
def cut(session: Session, rest: str) -> None:
    """Let the link between two hosts carry nothing for a while, or for ever."""
    fault: Deed = {"cut": []}
    fault["cut"] = _with_time(f" {rest}", fault).split()
    _do(session, fault)


@command(
    "restart",
    usage="restart slurmctld|slurmd@NODE [for TIME]",
    topic="choosing",
    example="restart slurmctld for 5s",
    words=words.restarted,
)
def restart(session: Session, rest: str) -> None:
    """Let slurmctld, or a slurmd, stop in good order, and start again."""
    fault: Deed = {"restart": ""}
    fault["restart"] = _with_time(_wanted(rest, "restart slurmctld"), fault)
    _do(session, fault)


@command(
    "hang",
    usage="hang PATTERN [times=N] [skip=N] [for TIME]",
    topic="choosing",
    example="hang switch_p_job_init for 30s",
    words=words.pattern,
)
def hang(session: Session, rest: str) -> None:
    """Let plugin calls that match block for a while before they run, or for ever."""
    fault: Deed = {"hang": ""}
    fault["hang"] = _numbers(_with_time(_wanted(rest, "hang PATTERN"), fault), fault)
    _do(session, fault)


@command(
    "raise",
    usage="raise PATTERN [times=N]",
    topic="choosing",
    example="raise switch_p_job_init",
    words=words.pattern,
)
def raise_in(session: Session, rest: str) -> None:
    """Let plugin calls that match raise an exception."""
    fault: Deed = {"raise": ""}
    fault["raise"] = _numbers(_wanted(rest, "raise PATTERN"), fault)
    _do(session, fault)


@command(
    "fail",
    usage="fail ERRNO | fail PATTERN [errno=E] [rc=N] [times=N] [skip=N]",
    topic="choosing",
    example="fail switch_p_job_init errno=ESLURM_INTERCONNECT_FAILURE",
    words=words.pattern,
)
def fail(session: Session, rest: str) -> None:
    """Let the plugin call at hand fail with an errno, or let calls that match fail later."""
    if not rest or _ANSWER.fullmatch(rest):
        _answer(session, {"errno": rest} if rest else {"return": -1})
        return
    fault: Deed = {"fail": ""}
    fault["fail"] = _numbers(rest, fault)
    _do(session, fault)


def _strike(session: Session, kind: str, rest: str) -> None:
    """Let messages go wrong that have yet to be sent."""
    fault: Deed = {kind: ""}
    fault[kind] = _numbers(_with_time(_wanted(rest, f"{kind} RPC"), fault), fault)
    _do(session, fault)


@command(
    "drop",
    usage=f"drop RPC {_STRIKES}",
    topic="choosing",
    example="drop MESSAGE_EPILOG_COMPLETE from=n1",
    words=words.rpcs,
)
def drop(session: Session, rest: str) -> None:
    """Let messages be lost on their way."""
    _strike(session, "drop", rest)


@command(
    "duplicate",
    usage=f"duplicate RPC [by=TIME] {_STRIKES}",
    topic="choosing",
    example="duplicate REQUEST_TERMINATE_JOB by=2s",
    words=words.rpcs,
)
def duplicate(session: Session, rest: str) -> None:
    """Let messages arrive twice."""
    _strike(session, "duplicate", rest)


@command(
    "reorder",
    usage=f"reorder RPC [by=TIME] {_STRIKES}",
    topic="choosing",
    example="reorder REQUEST_*",
    words=words.rpcs,
)
def reorder(session: Session, rest: str) -> None:
    """Let messages wait until the next one on their link has passed them."""
    _strike(session, "reorder", rest)


@command("slow", usage="slow TIME [for TIME]", topic="choosing", example="slow 2s for 30s")
def slow(session: Session, rest: str) -> None:
    """Let slurmctld hear everything later by a time."""
    fault: Deed = {"delay": "*", "to": "slurmctld"}
    fault["by"] = _with_time(_wanted(rest, "slow 2s"), fault)
    _do(session, fault)


@command(
    "accounting",
    usage="accounting off|on|lag TIME [for TIME]",
    topic="choosing",
    example="accounting off for 30s",
)
def accounting(session: Session, rest: str) -> None:
    """Let slurmdbd answer no client, tell later what has happened, or be as ever."""
    fault: Deed = {"accounting": ""}
    word, _, by = _with_time(rest, fault).partition(" ")
    if word not in _ACCOUNTING:
        raise CommandError("expected `accounting off`, `accounting lag 5s` or `accounting on`")
    fault["accounting"] = _ACCOUNTING[word]
    if by.strip():
        fault["by"] = by.strip()
    _do(session, fault)


@command("preempt", usage="preempt JOB", topic="choosing", example="preempt 1")
def preempt(session: Session, rest: str) -> None:
    """Let a job give way that runs, as if one of a higher partition had asked for its nodes."""
    words_of = _wanted(rest, "preempt 1").removeprefix("job ").strip()
    _do(session, {"preempt": int(words_of) if words_of.isdecimal() else words_of})


@command("fault", usage="fault {YAML}", topic="choosing", example="fault {crash: n1}")
def fault_of(session: Session, rest: str) -> None:
    """Let something go wrong, in the words of a scenario's `fault:`."""
    try:
        read = yaml_text.load(rest)
    except yaml.YAMLError as error:
        raise CommandError(f"not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(read, dict):
        raise CommandError("expected a fault as a scenario has it: `fault {crash: n1}`")
    _do(session, read)


def _answer(session: Session, answer: Deed) -> None:
    """Answer for the plugin, and go on to the end of its call unless it is only delayed."""
    call = session.call
    if call is None:
        raise CommandError("no plugin call begins here; `break switch_p_job_init` stops in one")
    session.act({"answer": answer})
    if "delay" in answer:
        session.say(f"{call.name} will run {answer['delay']} from now")
    else:
        go(session, CallEnds(call=call))


@command("return", usage="return N", topic="choosing", example="return 0")
def return_for(session: Session, rest: str) -> None:
    """Answer for the plugin: the call at hand returns N without running."""
    if not rest:
        what = "`return 0` is success for most functions, `return -1` or `fail ERRNO` failure"
        raise CommandError(f"return what? {what}")
    if not re.fullmatch("-?[0-9]{1,10}", rest):
        raise CommandError(f"expected a whole number, got {rest[:40]!r}")
    _answer(session, {"return": int(rest)})


@command(
    "delay",
    usage=f"delay TIME | delay RPC by=TIME {_STRIKES}",
    topic="choosing",
    example="delay REQUEST_TERMINATE_JOB by=5s to=n1",
)
def delay(session: Session, rest: str) -> None:
    """Answer for the plugin: the call at hand blocks before it runs; or let messages come late."""
    if _MESSAGE.match(rest):
        _strike(session, "delay", rest)
        return
    _answer(session, {"delay": _wanted(rest, "delay 5s")})


@command("turns", usage="turns [N]", topic="choosing", example="turns")
def turns(session: Session, rest: str) -> None:
    """List the turns that are due next, those of one moment together."""
    most = count(rest, "turns") if rest else _TURNS_SHOWN
    found = next_turns(session.world.kernel, most)
    if not found:
        session.say("no turn is due")
    for each in found:
        # Only those of the next moment can be picked, and have a number for that.
        rank = str(each.rank) if each.due_us == found[0].due_us else ""
        session.say(f"{rank:>3} {format_moment(each.due_us):>12} {each.who} {each.what}")


@command("pick", usage="pick N", topic="choosing", example="pick 2")
def pick(session: Session, rest: str) -> None:
    """Let the Nth of the turns that are due at one moment go first; `turns` lists them."""
    rank = count(rest, "th turn") if rest else 0
    due = next_turns(session.world.kernel, rank)
    if session.kind != "turn":
        raise CommandError("a turn is under way; `turn` takes its rest, then you may pick")
    if not rank or len(due) < rank or due[-1].due_us != due[0].due_us:
        raise CommandError("expected one of the turns of the next moment: `turns` numbers them")
    session.act({"pick": rank})
    session.say(f"next: {due[-1].who} {due[-1].what}")
