"""The processes of one step as a picture in text, drawn from the calls that a run made."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.wire.hostlist import compress

_CALLS: Final = tuple(
    f"switch_p_job_{each}" for each in ("preinit", "init", "attach", "fini", "postfini")
)
_WIDTH: Final = 27
_FORK: Final = "  |-- forks " + "-" * 14 + ">"


def picture(events: Sequence[Event], users: Mapping[str, int], model: str) -> list[str]:
    """Return the five job functions of a switch plugin in the processes that called them.

    It is about the first step in which all five were called; without one there is no picture.
    """
    steps: dict[str, dict[str, list[Event]]] = {}
    for event in events:
        if event.name in _CALLS and event.phase != "enter" and event.step is not UNSET:
            steps.setdefault(event.step, {}).setdefault(event.name, []).append(event)
    step = next((each for each, calls in steps.items() if len(calls) == len(_CALLS)), "")
    return list(_drawn(step, steps[step], events, users, model)) if step else []


def _drawn(
    step: str,
    calls: Mapping[str, Sequence[Event]],
    events: Sequence[Event],
    users: Mapping[str, int],
    model: str,
) -> Iterator[str]:
    names = {uid: name for name, uid in reversed([*users.items()])}
    nodes = compress(str(event.node) for event in calls[_CALLS[0]])
    program = next(
        (str(e.args["path"]) for e in events if e.name == "exec" and e.step == step and e.args),
        "",
    )

    def cell(name: str) -> str:
        event = calls[name][0]
        return f"{name.removeprefix('switch_p_')} ({names.get(int(event.euid or 0), event.euid)})"

    tasks = len({event.task for event in calls[_CALLS[2]]})
    yield f"Step {step} on each of {nodes}: who calls switch_p_..., as whom; time goes down"
    if model == "modern":
        yield _row("slurmstepd", f"each of {tasks} tasks")
        yield _row(cell(_CALLS[0]))
        yield _row(cell(_CALLS[1]))
        yield _row(_FORK, cell(_CALLS[2]))
        yield _row("  |", f"executes {program}, ends")
        yield _row(cell(_CALLS[3]))
        yield _row(cell(_CALLS[4]))
        yield ""
        return
    yield _row("P1, job manager", "P2, session manager", f"P3, each of {tasks} tasks")
    yield _row(cell(_CALLS[0]))
    yield _row(_FORK, cell(_CALLS[1]))
    yield _row("  |", _FORK, cell(_CALLS[2]))
    yield _row("  |", "  |", f"executes {program}, ends")
    yield _row("  |", cell(_CALLS[3]))
    yield _row(cell(_CALLS[4]))
    yield ""


def _row(*cells: str) -> str:
    return "  " + "".join(cell.ljust(_WIDTH) for cell in cells).rstrip()
