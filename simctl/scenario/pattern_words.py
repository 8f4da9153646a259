"""The closed sets of words in event patterns: a word outside its set is a slip of the pen.

A `never` with such a word would hold without being asked, a `when` would never come. `slips` tells
of every one in a pattern; scenarios, tests in Python, sessions and `simctl trace` all ask it.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.pattern import Condition, Pattern, PatternError, glob, near
from simctl.plugins.points import ALL, OPTIONAL
from simctl.stepd.environment import BURST_BUFFER_SCRIPTS, SCRIPT_CONTEXTS
from simctl.wire.errno import ERRNO_NAMES, errno_name, errno_number
from simctl.wire.hosts import CONTROLLER, LOGIN
from simctl.wire.states import NodeBase, NodeFlag

JOB_STATES: Final = (
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"),
    *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
)
JOB_FLAGS: Final = (
    *("LAUNCH_FAILED", "UPDATE_DB", "REQUEUE", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESIZING"),
    *("CONFIGURING", "COMPLETING", "STOPPED", "RECONFIG_FAIL", "POWER_UP_NODE", "REVOKED"),
    *("REQUEUE_FED", "RESV_DEL_HOLD", "SIGNALING", "STAGE_OUT"),
)
STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "job_state": (*JOB_STATES, *JOB_FLAGS),
    "step_state": JOB_STATES,
    "node_state": tuple(
        name for words in (NodeBase, NodeFlag) for name in words.__members__ if name != "NONE"
    ),
}
"""The words that states of jobs, steps and nodes are made of."""

BUFFER_STATES: Final = (
    *("PENDING", "ALLOCATING", "ALLOCATED", "DELETING", "DELETED", "STAGING_IN", "STAGED_IN"),
    *("PRE_RUN", "ALLOC_REVOKE", "RUNNING", "SUSPEND", "POST_RUN", "STAGING_OUT", "STAGED_OUT"),
    *("TEARDOWN", "TEARDOWN_FAIL", "COMPLETE"),
)
"""Slurm's own states of burst buffers; a plugin may have others."""

ACTS: Final = (
    *("become_user", "setsid", "chdir", "setrlimit", "fork", "create_container"),
    "select_g_job_begin",
)
"""What daemons do for themselves and a fault can make fail, besides plugin functions.

The last is slurmctld's, when it gives a job its nodes; all others are a step daemon's.
"""

SCRIPTS: Final = (*SCRIPT_CONTEXTS, *BURST_BUFFER_SCRIPTS)
"""Prologs, epilogs and scripts of burst buffers, which a fault can make fail as well."""

ROLES: Final = ("slurmctld", "backup", "slurmd", "manager", "session", "task", "script")
DAEMONS: Final = ("slurmctld", "slurmd", "slurmstepd", "task")
"""The roles and daemons there are beside the commands, each of which is one of both by its name."""

_BUFFER_STATE: Final = "bb_state"
_PREFIXES: Final = ("switch_p_", "slurm_ckpt_", "bb_p_")
_PLUGIN_CLASSES: Final = ("switch", "checkpoint", "burst_buffer", "job_submit", "cli_filter")
_OTHER_NAMES: Final = (
    *(*STATES, _BUFFER_STATE, *ACTS, "exec", "signal", "exit"),
    *SCRIPTS,
)
_VALUES: Final = "values"
"""What a call hands out and leaves behind, in a trace with values."""

_STATE_ARGUMENTS: Final = ("from", "to", "reason", "exit_code", "burst_buffer", "node", "buffer")
_STEP_RECORD: Final = (
    *("node_cnt", "task_cnt", "task_dist", "plane", "tasks", "tids", "nodeid", "ntasks"),
    *("node_tasks", "uid", "pgid", "jmgr_pid", "batch", "recover"),
)
"""What traces of model modern show of calls beside their parameters."""

_NEAR: Final = 0.8
_STEP: Final = re.compile(r"[0-9]+\.(?:[0-9]+|batch)")


@attrs.frozen(kw_only=True)
class Jobs:
    """The jobs of a run that is over, by id."""

    ids: frozenset[int]
    refused: int = 0
    """How many commands failed that submit jobs: so many ids more might have been."""

    @classmethod
    def of(cls, events: Sequence[Event], others: Collection[int] = ()) -> "Jobs":
        """Return those that the events of a whole run tell of, and *others*."""
        ids = {event.job for event in events} | {event.array_job for event in events}
        refused = sum(
            event.kind == "command"
            and event.name in ("sbatch", "salloc", "srun")
            and event.rc not in (UNSET, None, 0)
            for event in events
        )
        return cls(
            ids=frozenset({each for each in ids if isinstance(each, int)} | {*others}),
            refused=refused,
        )

    def trouble(self, job: int) -> str:
        """Say that a job never was, nor could have been; nothing if it was, or could."""
        last = max(self.ids, default=0)
        if job in self.ids or last < job <= last + self.refused:
            return ""
        there = ", ".join(str(each) for each in sorted(self.ids)[:_SHOWN])
        more = f" and {len(self.ids) - _SHOWN} more" if len(self.ids) > _SHOWN else ""
        return f"there was no job {job} in the run; its jobs: {there or 'none'}{more}"


_SHOWN: Final = 12


@attrs.frozen(kw_only=True)
class Known:
    """What there is in a cluster, or was in a run; None where that cannot be told."""

    names: Collection[str]
    """What events can be called, beside what they are in every run."""
    commands: Collection[str]
    nodes: Collection[str] | None = None
    plugins: Collection[str] | None = None
    """The types of plugins that are loaded, such as ``switch/none``."""
    jobs: Jobs | None = None
    seen: Mapping[str, Collection[str]] = attrs.field(factory=dict)
    """Words that the run has had, by field: they are right, whatever the sets below say."""

    @classmethod
    def of_run(
        cls,
        events: Sequence[Event],
        *,
        functions: Collection[str],
        commands: Collection[str],
        nodes: Collection[str] = (),
        whole: bool = True,
    ) -> "Known":
        """Return what the events of a run tell of; unless they are *whole*, what is left counts."""
        seen = {
            key: dict.fromkeys(
                value for event in events if isinstance(value := getattr(event, key), str)
            )
            for key in ("name", "role", "daemon", "node", "plugin", "errno", "step")
        }
        named = [
            str(event.args["node"])
            for event in events
            if event.name == "node_state" and event.args is not UNSET and "node" in event.args
        ]
        return cls(
            names=(*functions, *commands, *seen["name"]),
            commands=commands,
            nodes=dict.fromkeys((*nodes, *named, *seen["node"])) if whole or nodes else None,
            plugins=seen["plugin"] if whole else None,
            jobs=Jobs.of(events) if whole else None,
            seen=seen,
        )


@attrs.frozen(kw_only=True)
class Slip:
    """A word that can be none: where in the text of a pattern, and what would do."""

    position: int
    message: str


def slips(pattern: Pattern, known: Known) -> Iterator[Slip]:
    """Tell of each word of a pattern that no event of such a run can have."""
    if trouble := name_trouble(pattern, known.names):
        yield Slip(position=0, message=trouble)
    for condition in pattern.conditions:
        look = _LOOKS.get(condition.key)
        if look is None and condition.key.startswith(_ARGUMENT):
            look = _argument
        if condition.value == "null" or (look is None):
            continue
        if condition.value in known.seen.get(condition.key, ()):
            continue
        if trouble := look(condition, pattern, known):
            in_key = look is _argument
            offset = 0 if in_key else len(condition.key) + 1
            yield Slip(position=condition.position + offset, message=trouble)


def checked(pattern: Pattern, known: Known) -> Pattern:
    """Return a pattern in which no word is a slip.

    Raises:
        PatternError: It has some; the message tells of each, the position is that of the first.
    """
    found = list(slips(pattern, known))
    if found:
        told = "; ".join(slip.message for slip in found)
        raise PatternError(told, text=pattern.text, position=found[0].position)
    return pattern


def name_trouble(pattern: Pattern, names: Collection[str]) -> str:
    """Say of a NAME what it may have been meant for; nothing if an event can be called so.

    Args:
        pattern: the pattern.
        names: what events can be called, beside what they are in every run.
    """
    known = (*names, *_OTHER_NAMES)
    if pattern.names(known):
        return ""
    stem = pattern.name.replace("*", "")
    hint = near(stem, known, cutoff=_NEAR)
    if pattern.name.startswith(_PREFIXES) or (hint and not pattern.any_name):
        what = "no plugin function" if pattern.name.startswith(_PREFIXES) else "no event"
        return f"{what} is called {pattern.name!r}{hint or near(stem, known)}"
    return ""


# Each field of which there is something to say.


def _outside(what: str, value: str, words: Collection[str], *, hint: str = "") -> str:
    """Say that a value is none of some words; nothing if it is one, or its `*` fit one."""
    fits = glob(value)
    if any(fits(word) for word in words):
        return ""
    return f"no {what} {value!r}{near(value.replace('*', ''), words) or hint or _listed(words)}"


def _listed(words: Collection[str]) -> str:
    unlike = list(dict.fromkeys(words))
    more = f" and {len(unlike) - _SHOWN} more" if len(unlike) > _SHOWN else ""
    return f"; there are {', '.join(unlike[:_SHOWN])}{more}"


def _role(condition: Condition, _: Pattern, known: Known) -> str:
    return _outside("role", condition.value, (*ROLES, *known.commands))


def _daemon(condition: Condition, _: Pattern, known: Known) -> str:
    return _outside("daemon", condition.value, (*DAEMONS, *known.commands))


def _node(condition: Condition, _: Pattern, known: Known) -> str:
    if known.nodes is None:
        return ""
    hint = "; the controller is node=null" if CONTROLLER in condition.value else ""
    return _outside("node", condition.value, (*known.nodes, LOGIN), hint=hint)


def _plugin(condition: Condition, _: Pattern, known: Known) -> str:
    value = condition.value
    if known.plugins is not None:
        return _outside("plugin", value, known.plugins)
    if "*" not in value and value.partition("/")[0] not in _PLUGIN_CLASSES:
        hint = near(value.partition("/")[0], _PLUGIN_CLASSES)
        return f"a plugin is TYPE/NAME such as switch/none, not {value!r}{hint}"
    return ""


def _errno(condition: Condition, _: Pattern, known: Known) -> str:
    value = condition.value
    if "*" in value:
        return _outside("errno", value, ERRNO_NAMES, hint="; names are as ESLURM_DISABLED")
    try:
        name = errno_name(errno_number(value))
    except ValueError as error:
        return str(error)
    return "" if name == value else f"traces have {name} for errno {value}"


def _state(condition: Condition, pattern: Pattern, _: Known) -> str:
    value = condition.value
    names = pattern.names((*STATES, _BUFFER_STATE))
    if not names:
        every = ", ".join((*STATES, _BUFFER_STATE))
        return f"{pattern.name} has no state=; {every} have one"
    words = dict.fromkeys(word for name in names for word in STATES.get(name, BUFFER_STATES))
    for part in value.split("|"):
        fits = glob(part)
        if any(fits(word) for word in words):
            continue
        stem = part.upper().replace("*", "")
        # What buffers may be in a plugin says: only what is nearly another word is a slip.
        hint = near(stem, words, cutoff=_NEAR)
        if _BUFFER_STATE not in names:
            hint = hint or _elsewhere(part) or near(stem, words) or _listed(words)
        if hint:
            of = f"a {names[0].removesuffix('_state')}" if len(names) == 1 else "anything"
            return f"no state of {of} is called {part!r}{hint}"
    return ""


def _elsewhere(word: str) -> str:
    """Say of which events a word is a state, if it is one at all."""
    names = [name for name, words in STATES.items() if word in words]
    return f"; it is one of {' and '.join(names)}" if names else ""


def _step(condition: Condition, _: Pattern, known: Known) -> str:
    value = condition.value
    if "*" in value:
        return ""
    if _STEP.fullmatch(value) is None:
        return f"a step is JOB.STEP such as 1.0 or 1.batch, not {value!r}"
    return known.jobs.trouble(int(value.partition(".")[0])) if known.jobs is not None else ""


def _job(condition: Condition, _: Pattern, known: Known) -> str:
    if "*" in condition.value or known.jobs is None:
        return ""
    return known.jobs.trouble(int(condition.value))


def _argument(condition: Condition, pattern: Pattern, known: Known) -> str:
    """Say that no event of this NAME has such an argument, where all that can match are known."""
    argument, _, _ = condition.key.removeprefix(_ARGUMENT).partition(".")
    words: dict[str, None] = {}
    for name in pattern.names((*known.names, *_OTHER_NAMES)):
        if name in (*STATES, _BUFFER_STATE):
            words |= dict.fromkeys(_STATE_ARGUMENTS)
            continue
        point = ALL.get(name) or OPTIONAL.get(name)
        if point is None:
            return ""
        words |= dict.fromkeys((*point.parameters, _VALUES))
    if not words or argument in words or argument in _STEP_RECORD:
        return ""
    return f"{pattern.name} has no argument {argument!r}{near(argument, words) or _listed(words)}"


_ARGUMENT: Final = "args."
_Look = Callable[[Condition, Pattern, Known], str]
_LOOKS: Final[Mapping[str, _Look]] = {
    "role": _role,
    "daemon": _daemon,
    "node": _node,
    "plugin": _plugin,
    "errno": _errno,
    "state": _state,
    "step": _step,
    "job": _job,
    "array_job": _job,
}


def of_jobs(pattern: Pattern, jobs: Jobs) -> str:
    """Say that a pattern is about a job that never was in a run; nothing if it is not."""
    for condition in pattern.conditions:
        look = {"job": _job, "array_job": _job, "step": _step}.get(condition.key)
        if look is not None and condition.value != "null":
            known = Known(names=(), commands=(), jobs=jobs)
            if trouble := look(condition, pattern, known):
                return trouble
    return ""


__all__ = ["JOB_FLAGS", "JOB_STATES", "Jobs", "Known", "Slip", "name_trouble", "of_jobs", "slips"]
