"""A plugin function explained: what its guide says, and what came of it in this session."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.page import is_general, listed, rules_about
from simctl.plugins.points import ALL, BY_CLASS, OPTIONAL, OWN
from simctl.plugins.points.page import describe
from simctl.repl.session import Session
from simctl.repl.showing import event_lines
from simctl.story.vocabulary import explained, words
from simctl.story.words import RPCS

NAMES: Final = (*ALL, *OPTIONAL, "init", "fini")
"""Every plugin function there is."""

EXPLAINED: Final = (*NAMES, *RPCS, *words())
"""Every word that `explain` knows."""

_LOOKED_AT: Final = 2_000
"""How many events after a call are looked at for what follows it."""

_FOLLOW: Final = 3


def tell_point(session: Session, name: str) -> Iterator[str]:
    """Say all there is to say of a plugin function."""
    if name in ("init", "fini"):
        for plugin_class in BY_CLASS:
            yield from describe(OWN[plugin_class, name])
            yield ""
    else:
        yield from describe((ALL | OPTIONAL)[name])
        yield ""
    rules = rules_about(name)
    own = [rule for rule in rules if not is_general(rule)]
    if own:
        yield "Built-in orderings about it:"
        yield from listed(own)
    if len(own) < len(rules):
        yield f"{len(rules) - len(own)} orderings are about every function: docs/orderings.md"
    yield from _here(session, name)


def tell_word(session: Session, word: str) -> Iterator[str]:
    """Say what an RPC, state, reason, daemon or term is; of a state with flags, each of them."""
    name = word.upper() if word.upper() in RPCS else word
    if name in RPCS:
        yield f"{name}, an RPC: {RPCS[name]}."
        last = session.seen().last(name)
        yield "It has not been sent in this session yet." if last is None else "Seen last:"
        if last is not None:
            yield from event_lines(last, session.world)
        return
    for part in word.split("|"):
        for head, text in explained(part):
            yield f"{head}: {text}"


def _here(session: Session, name: str) -> Iterator[str]:
    """Say where it was called last in this session, and what followed."""
    plugins = _plugin(session, name)
    yield f"Here: model {session.world.model}{plugins}."
    last = session.seen().last_call(name)
    if last is None:
        yield "It has not been called in this session yet."
        return
    yield "Called last:"
    yield from event_lines(last, session.world)
    following = list(_following(session, last))
    if following:
        yield "What followed, of the same step, job or process:"
        for event in following:
            yield from event_lines(event, session.world)


def _plugin(session: Session, name: str) -> str:
    conf = session.world.site.conf
    kinds = {
        "switch": conf.switch_type,
        "checkpoint": conf.checkpoint_type,
        "burst_buffer": ", ".join(conf.burst_buffer_types) or "no burst buffer plugin",
    }
    point = (ALL | OPTIONAL).get(name)
    if point is None:
        return ""
    return f", {kinds[point.plugin_class]}"


def _following(session: Session, call: Event) -> Iterator[Event]:
    """Return the next plugin calls and states that concern what a call concerned."""
    found = 0
    for event in session.world.events[call.seq : call.seq + _LOOKED_AT]:
        if event.kind not in ("plugin", "state") or event.phase == "enter":
            continue
        if _concerns(event, call):
            yield event
            found += 1
            if found == _FOLLOW:
                return


def _concerns(event: Event, call: Event) -> bool:
    if call.step is not UNSET:
        return event.step == call.step
    if call.job is not UNSET:
        return event.job == call.job
    return event.pid == call.pid
