"""How a lifecycle point is declared.

A declaration is a stub that bears the guide's name and parameters, whose docstring is the moment of
the call. Around it stands what else is to be known: who calls, as whom, how often, what a failure
does, and in which Slurm the function is to be found.
"""

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
    ERRNO = "a Slurm errno: 0, or the number of an error"
    THREE = "1, 0 or -1"
    NUMBER = "any number; it cannot fail"
    TIME = "seconds since the epoch"
    SIZE_MB = "a size in MB"
    OBJECT = "an opaque object"
    STATUS = "a CheckpointStatus, SLURM_SUCCESS, or an error number"
    DATA = "any data"
    TEXT = "a text"
    BOOL = "true or false"
    VOID = "nothing"


class OnError(enum.Enum):
    """What the caller does when the function fails, in a few words."""

    FATAL = "the daemon stops"
    FAIL_LAUNCH = "the step's launch fails on this node"
    FAIL_TASK = "the task exits with 1; the others go on"
    FAIL_STEP = "the step is not created"
    REFUSE_JOB = "the submission is refused"
    HOLD_JOB = "the job is held"
    JOB_WAITS = "the job waits, and is asked about again"
    KEEP_JOB = "the job's record is kept"
    DROP_MESSAGE = "the message is invalid and dropped"
    STOP_LOADING = "saved state is read no further"
    EMPTY_CREDENTIAL = "an empty credential is sent"
    STEP_RC = "the launch ends with an error on this node"
    END_TASK = "the task exits with the error"
    END_COMMAND = "the command ends with status 1"
    ANSWERED = "who asked is told"
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

Glossary = Mapping[str, str]
"""What parameters mean, by name; each text begins with ``in``, ``out`` or ``in/out``."""


@attrs.frozen(eq=False)
class Point:
    """One function of a guide: who calls it, as whom, with what, and what a failure does.

    `guide` and `modern` hold the places of each model; an empty one means that the model has no
    call. `on_subject` is true when the first argument is an opaque object; `is_int`, `most` and
    `none_is_success` follow from `returns`. `arguments` has a text for every parameter, and for
    those of C that Python returns instead. `later` says what calls the function as long as no run
    of simctl does; it is empty for one that runs reach. Texts that begin with `modern` are empty
    where model modern is as model guide.
    """

    name: str
    plugin_class: str
    parameters: tuple[str, ...]
    returns: Returns
    guide: Places
    modern: Places
    on_error: OnError
    modern_on_error: OnError
    on_subject: bool
    doc: str
    is_int: bool
    most: int
    """The largest int that is an answer without a mistake; -1 where none is."""

    none_is_success: bool
    c: str
    arguments: Glossary
    modern_arguments: str
    """What Slurm 18.08 passes instead or besides; a plugin here never sees it."""

    result: str
    """What the result means, where `returns` does not tell."""

    often: str
    modern_often: str
    failure: str
    modern_failure: str
    modern_moment: str
    locks: str
    """Which locks a real slurmctld holds during the call."""

    versions: str
    later: str
    optional: bool = False
    """Not in the guide: a plugin need not have it."""

    def places(self, model: str) -> Places:
        """Return who may call it in a model, and as whom."""
        return self.guide if model == "guide" else self.modern


INT_MAX: Final = (1 << 31) - 1
"""The largest int of C's."""

_SUBJECTS = frozenset({"switch_job", "switch_node", "jobinfo", "suspend_info"})
_PREFIXES = {"switch_p_": "switch", "slurm_ckpt_": "checkpoint", "bb_p_": "burst_buffer"}
_INTS = frozenset(
    {
        Returns.INT,
        Returns.COUNT,
        Returns.ERRNO,
        Returns.THREE,
        Returns.NUMBER,
        Returns.TIME,
        Returns.SIZE_MB,
    }
)
_NONE_IS_SUCCESS = frozenset(
    {Returns.INT, Returns.COUNT, Returns.ERRNO, Returns.NUMBER, Returns.VOID}
)


def point(
    *,
    c: str,
    guide: Places,
    modern: Places,
    returns: Returns,
    often: str,
    failure: str,
    versions: str,
    glossary: Glossary,
    on_error: OnError = OnError.IGNORED,
    modern_on_error: OnError | None = None,
    plugin_class: str = "",
    result: str = "",
    modern_arguments: str = "",
    modern_failure: str = "",
    modern_moment: str = "",
    modern_often: str = "",
    locks: str = "",
    later: str = "",
    optional: bool = False,
    **arguments: str,
) -> Callable[[Callable[..., Any]], Point]:
    """Declare a point from a function that bears the guide's name, parameters and moment.

    Args:
        c: The guide's declaration.
        guide: Who calls it in model guide, and as whom.
        modern: The same for model modern.
        returns: What it gives back.
        often: How often it is called.
        failure: What its caller does when it fails.
        versions: In which versions of real Slurm it is to be found.
        glossary: What the class's usual parameters mean.
        on_error: The same as `failure`, in a few words for overviews.
        modern_on_error: The same for model modern, where it differs.
        plugin_class: For functions whose name does not tell.
        result: What the result means, where that is not clear from `returns`.
        modern_arguments: What Slurm 18.08 passes instead or besides.
        modern_failure: What is different in model modern.
        modern_moment: What is different about the moment there.
        modern_often: How often it is called there, where that differs.
        locks: The locks a real slurmctld holds meanwhile.
        later: What calls it, where no run does.
        optional: The guide does not have it, and a plugin need not.
        arguments: Parameters that mean something else here, and C's that Python returns.
    """

    def declare(stub: Callable[..., Any]) -> Point:
        name = stub.__name__
        parameters = tuple(inspect.signature(stub).parameters)
        known = {each: arguments.get(each) or glossary[each] for each in parameters}
        found = next((kind for start, kind in _PREFIXES.items() if name.startswith(start)), "")
        return Point(
            name=name,
            plugin_class=plugin_class or found,
            parameters=parameters,
            returns=returns,
            guide=guide,
            modern=modern,
            on_error=on_error,
            modern_on_error=modern_on_error or on_error,
            on_subject=bool(parameters) and parameters[0] in _SUBJECTS,
            doc=inspect.getdoc(stub) or "",
            is_int=returns in _INTS,
            most=-1 if returns not in _INTS else 1 if returns is Returns.THREE else INT_MAX,
            none_is_success=returns in _NONE_IS_SUCCESS,
            c=c,
            arguments=known | arguments,
            modern_arguments=modern_arguments,
            result=result,
            often=often,
            modern_often=modern_often,
            failure=failure,
            modern_failure=modern_failure,
            modern_moment=modern_moment,
            locks=locks,
            versions=versions,
            later=later,
            optional=optional,
        )

    return declare
