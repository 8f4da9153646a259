"""Requests and what they were answered, on either side.

A recording tells of an answer only what it says and who sent it. It belongs to the request that its
process has had longest; where a process had several at the time, any of their answers may be whose.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from simctl.testing.conform.acts import Act, number

_RC: Final = "RESPONSE_SLURM_RC"
_ANSWERS: Final = {
    "REQUEST_SUBMIT_BATCH_JOB": "RESPONSE_SUBMIT_BATCH_JOB",
    "REQUEST_RESOURCE_ALLOCATION": "RESPONSE_RESOURCE_ALLOCATION",
    "REQUEST_JOB_STEP_CREATE": "RESPONSE_JOB_STEP_CREATE",
    "REQUEST_JOB_PACK_ALLOC_INFO": "RESPONSE_JOB_PACK_ALLOCATION",
    "REQUEST_CHECKPOINT": "RESPONSE_CHECKPOINT",
}
"""What a request is answered if it is not a number alone."""

_OF_A_STEP: Final = frozenset(
    {
        *("REQUEST_STEP_COMPLETE", "REQUEST_LAUNCH_TASKS", "REQUEST_CHECKPOINT_COMP"),
        *("REQUEST_CHECKPOINT", "REQUEST_CHECKPOINT_TASKS", "REQUEST_SIGNAL_TASKS"),
        *("RESPONSE_LAUNCH_TASKS", "MESSAGE_TASK_EXIT"),
    }
)
_FROM_NODES: Final = frozenset({"RESPONSE_LAUNCH_TASKS", "MESSAGE_EPILOG_COMPLETE"})
"""What comes from several nodes at the same time; the second is not answered."""

_OF_A_JOB: Final = frozenset(
    {
        "MESSAGE_EPILOG_COMPLETE",
        *("REQUEST_COMPLETE_BATCH_SCRIPT", "REQUEST_COMPLETE_JOB_ALLOCATION"),
        *("REQUEST_JOB_STEP_CREATE", "REQUEST_BATCH_JOB_LAUNCH", "REQUEST_TERMINATE_JOB"),
        *("REQUEST_KILL_TIMELIMIT", "REQUEST_SUSPEND_INT"),
    }
)
_ON_ITS_WAY: Final = "REQUEST_STEP_COMPLETE"
"""A report that goes up the tree: here it is not answered by the slurmd that hands it on."""

_OF_NONE: Final = frozenset(
    {
        *("REQUEST_SUBMIT_BATCH_JOB", "REQUEST_RESOURCE_ALLOCATION", "REQUEST_KILL_JOB"),
        *("REQUEST_JOB_PACK_ALLOC_INFO", "REQUEST_SUSPEND", "REQUEST_JOB_REQUEUE"),
        *("REQUEST_UPDATE_JOB", "REQUEST_RECONFIGURE"),
    }
)
"""Requests of which recordings do not tell what they are about."""

ANSWERED: Final = _OF_A_STEP | _OF_A_JOB | _OF_NONE
"""Requests whose answers are looked at."""

_NOBODY_ASKED: Final = 2028
"""Answers a question that recordings leave out."""

_WITH_TEXT: Final = "RESPONSE_SLURM_RC_MSG"
_UNTOLD: Final = ("RESPONSE_RESOURCE_ALLOCATION", _WITH_TEXT)
"""Answers of which recordings do not tell the number."""

ANY: Final = "some number"
"""Stands for a number that a recording does not tell."""

ENDING: Final = " answered"
ANSWERING: Final = frozenset({"slurmctld", "slurmd", "srun"})
"""Processes whose answers are looked at."""


@attrs.define(eq=False)
class _Request:
    act: Act
    peer: str
    codes: list[object]
    """Its answers; all of those that were open at the same time have one list."""


@attrs.define
class Answers:
    """Finds the answers of requests, message by message."""

    requests: list[_Request] = attrs.field(factory=list)
    waiting: dict[str, list[_Request]] = attrs.field(factory=dict)

    def received(self, act: Act, who: str, *, peer: str = "") -> None:
        """Note a request; `act` tells its name, its job and its step."""
        request = _Request(act, peer, [])
        self.requests.append(request)
        self.waiting.setdefault(who, []).append(request)

    def sent(self, who: str, name: str, code: object, *, peer: str = "", to: str = "") -> None:
        """Note an answer: to whom and to which request, if that is known."""
        if code == _NOBODY_ASKED:
            return
        open_ones = self.waiting.get(who, [])
        fitting = [
            each
            for each in open_ones
            if each.act.name != "MESSAGE_EPILOG_COMPLETE"
            and name in (_RC, _WITH_TEXT, _ANSWERS.get(each.act.name))
            and each.peer == peer
            and to in ("", each.act.name)
        ]
        if not fitting:
            return
        codes = fitting[0].codes
        if not to:
            for each in fitting[1:]:
                codes += each.codes
                each.codes = codes
        codes.append(code)
        open_ones.remove(fitting[0])

    def restarted(self, who: str) -> None:
        """Forget what a process that is gone had to answer."""
        self.waiting.pop(who, None)

    def acts(self) -> Iterator[Act]:
        """Return for each request what it was answered; None where nothing was."""
        for request in self.requests:
            act, codes = request.act, request.codes
            yield attrs.evolve(
                act,
                kind="message",
                name=act.name + ENDING,
                result=codes[0] if len(set(map(str, codes))) == 1 else tuple(codes) or None,
            )


_SAYING: Final = {
    "REQUEST_SIGNAL_TASKS": ("signal",),
    "REQUEST_CHECKPOINT": ("op", "data"),
    "REQUEST_CHECKPOINT_TASKS": ("image_dir",),
    "REQUEST_SUSPEND_INT": ("op",),
    "REQUEST_STEP_COMPLETE": ("range_first", "range_last"),
}
"""Arguments of requests that both sides tell, beside those that count where they are sent."""


def asked(act: Act, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a request is compared with its answer."""
    if act.name == "MESSAGE_TASK_EXIT":
        # Tasks of several nodes end at the same time.
        return {}
    more = {key: number(args[key]) for key in _SAYING.get(act.name, ()) if key in args}
    return {**act.args, **more}


def looks_at(who: str, name: str) -> bool:
    """Return whether the answers of a process to a kind of request are looked at."""
    return name in ANSWERED and not (who.startswith("slurmd") and name == _ON_ITS_WAY)


def told_code(name: str, args: Mapping[str, Any]) -> Any:
    """Return the number in an answer, as far as recordings tell it."""
    if name in _UNTOLD:
        return ANY
    return number(args.get("return_code", args.get("error_code", 0)))


def answers_strand(who: str, name: str, *, job: int | None, step: str, node: str) -> str:
    """Return the strand of the answers to a kind of request."""
    about = f" {step}" if name in _OF_A_STEP else f" job {job}" if name in _OF_A_JOB else ""
    if name in _FROM_NODES:
        about += f" from {node}"
    return f"answers of {who} to {name}{about}"
