"""How a lifecycle point is declared."""

import enum
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from simctl.kernel.procs import RunsAs


class Returns(enum.Enum):
    """What a function gives back, and so what counts as its failure."""

    INT = "SLURM_SUCCESS or SLURM_ERROR"
    COUNT = "a number of bytes, or SLURM_ERROR"
    NUMBER = "any number; it cannot fail"
    OBJECT = "an opaque object"
    DATA = "any data"
    TEXT = "a text"
    BOOL = "true or false"
    VOID = "nothing"


class OnError(enum.Enum):
    """What the caller does when the function fails."""

    FATAL = "the daemon refuses to start"
    FAIL_LAUNCH = "the launch of the step fails on this node"
    FAIL_TASK = "the task leaves with exit code 1; the others go on"
    FAIL_STEP = "the step is not created; srun is told ESLURM_INTERCONNECT_FAILURE"
    REFUSE_JOB = "the submission is refused"
    DROP_MESSAGE = "the message is invalid and dropped"
    EMPTY_CREDENTIAL = "an empty credential is sent"
    STEP_RC = "the step's launch ends with an error on this node"
    LOGGED = "it is logged"
    IGNORED = "nothing"


Places = Mapping[str, RunsAs]
"""Roles of the processes that may call, each with the user it acts as."""

SLURMCTLD: Final[Places] = {"slurmctld": RunsAs.SLURM_USER}
SLURMD: Final[Places] = {"slurmd": RunsAs.ROOT}
SRUN: Final[Places] = {"srun": RunsAs.USER}
MANAGER: Final[Places] = {"manager": RunsAs.ROOT}
SESSION_AS_ROOT: Final[Places] = {"session": RunsAs.ROOT}
SESSION_AS_USER: Final[Places] = {"session": RunsAs.USER}
SESSION: Final[Places] = {"session": RunsAs.EITHER}
TASK: Final[Places] = {"task": RunsAs.USER}
NOWHERE: Final[Places] = {}


@attrs.frozen(eq=False)
class Point:
    """One function of a guide: who calls it, as whom, with what, and what a failure does.

    `guide` and `modern` hold the places of each model; an empty one means that the model has no
    call. `on_subject` is true when the first argument is an opaque object; `is_int` and
    `none_is_success` follow from `returns`.
    """

    name: str
    plugin_class: str
    parameters: tuple[str, ...]
    returns: Returns
    guide: Places
    modern: Places
    on_error: OnError
    on_subject: bool
    doc: str
    is_int: bool
    none_is_success: bool


_SUBJECTS = frozenset({"switch_job", "switch_node", "jobinfo"})


def point(
    *, guide: Places, modern: Places, returns: Returns, on_error: OnError = OnError.IGNORED
) -> Callable[[Callable[..., Any]], Point]:
    """Declare a point from a function that bears the guide's name, parameters and moment."""

    def declare(stub: Callable[..., Any]) -> Point:
        name = stub.__name__
        parameters = tuple(inspect.signature(stub).parameters)
        return Point(
            name=name,
            plugin_class="switch" if name.startswith("switch_p_") else "checkpoint",
            parameters=parameters,
            returns=returns,
            guide=guide,
            modern=modern,
            on_error=on_error,
            on_subject=bool(parameters) and parameters[0] in _SUBJECTS,
            doc=inspect.getdoc(stub) or "",
            is_int=returns in (Returns.INT, Returns.COUNT, Returns.NUMBER),
            none_is_success=returns in (Returns.INT, Returns.COUNT, Returns.NUMBER, Returns.VOID),
        )

    return declare
