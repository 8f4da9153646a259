"""scontrol: what there is shown, jobs and nodes and partitions changed, one keyword at a time."""

import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import attrs

from simctl.commands.arguments.command_line import tell_usage
from simctl.commands.arguments.options import Grammar, Option, UsageError
from simctl.commands.scontrol.checkpoint import checkpoint_keyword
from simctl.commands.scontrol.control import reconfigure, shutdown, version
from simctl.commands.scontrol.entities import create, delete, update
from simctl.commands.scontrol.jobs import (
    completing,
    hold,
    listpids,
    notify,
    requeue,
    suspend,
    top,
    wait_job,
    write,
)
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.ping import ping
from simctl.commands.scontrol.show import show
from simctl.site import CommandCall

GRAMMAR: Final = Grammar(
    command="scontrol",
    options=(
        Option(long="all", short="a"),
        Option(long="details", short="d"),
        Option(long="oneliner", short="o"),
        Option(long="quiet", short="Q"),
        Option(long="hide"),
        Option(long="version", short="V"),
        Option(long="help", short="h"),
        Option(long="usage"),
    ),
    usage="[OPTIONS...] [KEYWORD [WORDS...]]",
    unbuilt=frozenset(
        """
        cluster clusters M federation F future local sibling u uid v verbose
        """.split()
    ),
    bad_status=1,
)

_PROMPT: Final = "scontrol: "
Act = Callable[[Order], Awaitable[int]]


def split_options(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options, wherever they stand, and the words between them."""
    options: list[str] = []
    words: list[str] = []
    left = list(argv)
    while left:
        word = left.pop(0)
        if word == "--":
            return options, words + left
        (options if word.startswith("-") and word != "-" else words).append(word)
    return options, words


async def scontrol(call: CommandCall) -> int:
    """Do what the words say, or what standard input does; return the exit status."""
    flags, words = split_options(call.argv[1:])
    try:
        options = GRAMMAR.parse(flags)[0]
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return error.status
    order = Order(
        call=call,
        keyword="",
        oneliner="oneliner" in options,
        details="details" in options,
        quiet="quiet" in options,
    )
    if "help" in options:
        return await _help(order)
    if "usage" in options:
        tell_usage(call, GRAMMAR, ())
        return 0
    if "version" in options:
        return await version(order)
    if words:
        return await run(attrs.evolve(order, keyword=words[0], words=tuple(words[1:])))
    return await _converse(order)


async def _converse(order: Order) -> int:
    """Take a keyword a line from standard input, until there is no more, or it says to end."""
    call, status = order.call, 0
    last: list[str] = []
    for line in [*call.stdin.splitlines(), None]:
        call.write("stdout", _PROMPT if line is None else f"{_PROMPT}{line}\n")
        if line is None:
            break
        words = last if line.strip() == "!!" else _split(line)
        last = words
        if not words:
            continue
        if _leaves(words[0].lower()):
            break
        order = _switched(order, words[0].lower())
        status |= await run(attrs.evolve(order, keyword=words[0], words=tuple(words[1:])))
    return status


def _split(line: str) -> list[str]:
    """Return the words of a line; quotes keep blanks in a word."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _leaves(word: str) -> bool:
    return _begins(word, "exit", 1) or _begins(word, "quit", 4)


def _switched(order: Order, word: str) -> Order:
    """Return what holds for this line and those after it, where the line is a switch."""
    name = _find(word)
    return attrs.evolve(
        order,
        details=order.details or name == "details",
        oneliner=order.oneliner or name == "oneliner",
        quiet=(order.quiet or name == "quiet") and name != "verbose",
    )


def _begins(word: str, name: str, least: int) -> bool:
    """Return whether a word is a name, or the beginning of it that is long enough."""
    return len(word) >= least and name.startswith(word)


def _find(word: str) -> str:
    """Return the keyword that is meant; nothing if there is none."""
    return next((name for name, (least, _) in KEYWORDS.items() if _begins(word, name, least)), "")


def is_keyword(word: str) -> bool:
    """Return whether a word is one of scontrol's keywords, or a beginning of one that will do."""
    return bool(_find(word)) or _leaves(word) or word == "!!"


async def run(order: Order) -> int:
    """Do what one keyword says; return the exit status."""
    name = _find(order.keyword.lower())
    if not name:
        order.complain(f"invalid keyword: {order.keyword}")
        return 1
    try:
        return await KEYWORDS[name][1](attrs.evolve(order, name=name))
    except UsageError as error:
        for line in error.lines:
            order.complain(line)
        return error.status


async def _switch(order: Order) -> int:
    """Do nothing more: a switch is for the lines after it."""
    order.count(0, 0)
    return 0


async def _help(order: Order) -> int:
    """Print the options and the keywords that there are."""
    tell_usage(order.call, GRAMMAR, ("help",))
    order.call.out("Keywords:")
    for name, (_, act) in KEYWORDS.items():
        if act is not refuse:
            order.call.out(f"  {name}")
    return 0


async def refuse(order: Order) -> int:
    """Refuse a keyword that simctl lacks, by its name."""
    order.call.err(f"scontrol: error: {order.name} is known to Slurm but not simulated yet")
    return 1


KEYWORDS: Final[dict[str, tuple[int, Act]]] = {
    "abort": (5, refuse),
    "all": (2, _switch),
    "cancel_reboot": (3, refuse),
    "checkpoint": (2, checkpoint_keyword),
    "completing": (2, completing),
    "cluster": (2, refuse),
    "create": (2, create),
    "details": (1, _switch),
    "errnumstr": (2, refuse),
    "exit": (1, _switch),
    "federation": (3, refuse),
    "fsdampeningfactor": (3, refuse),
    "future": (3, refuse),
    "help": (2, _help),
    "hide": (2, _switch),
    "hold": (4, hold),
    "holdu": (5, hold),
    "uhold": (5, hold),
    "listpids": (1, listpids),
    "local": (3, refuse),
    "notify": (1, notify),
    "oneliner": (1, _switch),
    "pidinfo": (3, refuse),
    "ping": (3, ping),
    "quiet": (4, _switch),
    "quit": (4, _switch),
    "reboot": (3, refuse),
    "reconfigure": (3, reconfigure),
    "release": (3, hold),
    "requeue": (3, requeue),
    "requeuehold": (8, requeue),
    "resume": (3, suspend),
    "schedloglevel": (3, refuse),
    "setdebug": (2, refuse),
    "setdebugflags": (9, refuse),
    "show": (3, show),
    "shutdown": (8, shutdown),
    "sibling": (3, refuse),
    "suspend": (2, suspend),
    "takeover": (8, refuse),
    "token": (5, refuse),
    "top": (3, top),
    "update": (1, update),
    "delete": (3, delete),
    "verbose": (4, _switch),
    "version": (4, version),
    "wait_job": (2, wait_job),
    "write": (5, write),
}
"""The keywords, how much of each name is enough, and what does it; the first that fits counts."""
