"""What squeue is asked for: its command line, and the variables that stand in for options."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from simctl.commands.arguments.options import Grammar, Option, UsageError, text
from simctl.commands.asking.showing import interval, usual_names
from simctl.commands.columns.job_states import VALID, parse_state
from simctl.site import User
from simctl.wire.hostlist import HostlistError, expand
from simctl.wire.ids import NO_VAL
from simctl.wire.states import JobBase, JobFlag

_NONE: Final = "-"
"""What stands for the value of an option that has none attached."""

_JOB: Final = re.compile(r"(\d+)(?:_(\d+))?(?:\+\d+)?")
_STEP: Final = re.compile(r"(\d+)(?:_(\d+))?(?:\.(.*))?", re.DOTALL)

States = tuple[JobBase | JobFlag | None, ...]


@attrs.frozen
class JobId:
    """A job that is asked for, or a task of an array."""

    job_id: int
    task: int = NO_VAL


@attrs.frozen
class StepId:
    """A step that is asked for; NO_VAL for all those of the job."""

    job: JobId
    step: int


def _words(value: str) -> tuple[str, ...]:
    return tuple(filter(None, value.split(",")))


def _jobs(value: str) -> tuple[JobId, ...]:
    """Read ``77,78_3``."""
    found = []
    for word in _words(value) if value != _NONE else ():
        match = _JOB.fullmatch(word)
        if match is None or not int(match[1]):
            raise ValueError(f"Invalid job id: {word}")
        found.append(JobId(int(match[1]), int(match[2]) if match[2] else NO_VAL))
    return tuple(found)


def _steps(value: str) -> tuple[StepId, ...]:
    """Read ``77.0,78_3.1,79``."""
    found = []
    for word in _words(value) if value != _NONE else ():
        match = _STEP.fullmatch(word)
        if match is None:
            raise ValueError(f"Invalid job id: {word.partition('.')[0]}")
        if match[3] is not None and not match[3].isdecimal():
            raise ValueError(f"Invalid step id: {match[3]}")
        job = JobId(int(match[1]), int(match[2]) if match[2] else NO_VAL)
        found.append(StepId(job, int(match[3]) if match[3] else NO_VAL))
    return tuple(found)


def _states(value: str) -> States | None:
    """Read ``PD,running``; ``all`` is None."""
    if value.lower() == "all":
        return None
    found = []
    for word in _words(value):
        try:
            found.append(parse_state(word))
        except ValueError:
            raise UsageError(
                1,
                f"squeue: error: Invalid job state specified: {word}",
                f"squeue: error: Valid job states include: {VALID}",
                "",
            ) from None
    return tuple(found)


def _nodes(value: str) -> tuple[str, ...]:
    try:
        return expand(value)
    except HostlistError:
        raise ValueError(f"'{value}' invalid entry for --nodelist") from None


GRAMMAR: Final = Grammar(
    command="squeue",
    options=(
        Option(long="accounts", short="A", read=text),
        Option(long="all", short="a"),
        Option(long="array", short="r"),
        Option(long="federation"),
        Option(long="hide"),
        Option(long="local"),
        Option(long="sibling"),
        Option(long="noheader", short="h"),
        Option(long="iterate", short="i", read=text),
        Option(long="jobs", short="j", read=text, optional=_NONE),
        Option(long="long", short="l"),
        Option(long="licenses", short="L", read=text),
        Option(long="clusters", short="M", read=text),
        Option(long="name", short="n", read=text),
        Option(long="noconvert"),
        Option(long="format", short="o", read=text),
        Option(long="Format", short="O", read=text),
        Option(long="partition", short="p", read=text),
        Option(long="priority", short="P"),
        Option(long="qos", short="q", read=text),
        Option(long="reservation", short="R", read=text),
        Option(long="steps", short="s", read=text, optional=_NONE),
        Option(long="sort", short="S", read=text),
        Option(long="start"),
        Option(long="states", short="t", read=text),
        Option(long="user", short="u", read=text),
        Option(long="me"),
        Option(long="verbose", short="v"),
        Option(long="version", short="V"),
        Option(long="nodelist", short="w", read=text),
        Option(long="help"),
        Option(long="usage"),
    ),
    usage="[OPTIONS...]",
    unbuilt=frozenset("array-unique json yaml".split()),
    bad_status=1,
    permutes=True,
)

_OTHER_NAMES: Final = {
    "account": "accounts",
    "cluster": "clusters",
    "job": "jobs",
    "license": "licenses",
    "names": "name",
    "node": "nodelist",
    "nodes": "nodelist",
    "partitions": "partition",
    "sib": "sibling",
    "state": "states",
    "step": "steps",
    "users": "user",
}
_VALUES: Final = {
    "SQUEUE_ACCOUNT": "accounts",
    "SQUEUE_FORMAT": "format",
    "SQUEUE_FORMAT2": "Format",
    "SQUEUE_LICENSES": "licenses",
    "SQUEUE_NAMES": "name",
    "SQUEUE_PARTITION": "partition",
    "SQUEUE_QOS": "qos",
    "SQUEUE_SORT": "sort",
    "SQUEUE_STATES": "states",
    "SQUEUE_USERS": "user",
    "SLURM_CLUSTERS": "clusters",
}
_FLAGS: Final = {
    "SQUEUE_ALL": "all",
    "SQUEUE_ARRAY": "array",
    "SQUEUE_PRIORITY": "priority",
}
VARIABLES: Final = (*_VALUES, *_FLAGS, "SLURM_BITSTR_LEN", "SLURM_TIME_FORMAT")
"""The variables that squeue reads."""


@attrs.frozen(kw_only=True)
class Query:
    """What is asked for; None where everything is wanted.

    `given` has the options as they were written, for --verbose.
    """

    given: Mapping[str, Any]
    jobs: tuple[JobId, ...] | None = None
    steps: tuple[StepId, ...] | None = None
    states: States | None = None
    accounts: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    partitions: tuple[str, ...] | None = None
    qos: tuple[str, ...] | None = None
    reservation: str | None = None
    licenses: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    users: tuple[int, ...] | None = None
    unknown_users: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    interval_s: int = 0
    bits: int = -1
    time_style: str = "standard"

    def has(self, flag: str) -> bool:
        """Return whether a flag was given."""
        return flag in self.given

    def text(self, option: str) -> str:
        """Return the value of an option as it was written; nothing if there is none."""
        return str(self.given.get(option, ""))

    @property
    def of_steps(self) -> bool:
        """Return whether steps are asked for, not jobs."""
        return "steps" in self.given

    @property
    def dated(self) -> bool:
        """Return whether a date stands above the table."""
        several = self.has("long") or self.has("verbose") or self.interval_s > 0
        return several and not self.has("noheader")


_LISTS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "accounts": ("accounts", _words),
    "name": ("names", _words),
    "partition": ("partitions", _words),
    "qos": ("qos", _words),
    "reservation": ("reservation", text),
    "licenses": ("licenses", _words),
    "nodelist": ("nodes", _nodes),
    "states": ("states", _states),
    "jobs": ("jobs", _jobs),
    "steps": ("steps", _steps),
    "clusters": ("clusters", _words),
    "iterate": ("interval_s", interval),
}
"""What each option fills, and what reads it."""


def read_query(
    argv: Sequence[str], environment: Mapping[str, str], me: User, users: Mapping[str, User]
) -> Query:
    """Return what a command line asks for, with what variables say of the rest.

    Raises:
        UsageError: With what squeue prints.
    """
    given = _given(argv, environment)
    fields: dict[str, Any] = {}
    for option, (field, read) in _LISTS.items():
        if option in given:
            try:
                fields[field] = read(given[option])
            except ValueError as error:
                raise UsageError(1, f"squeue: error: {error}") from None
    if "states" not in given:
        fields["states"] = _usual_states("start" in given)
    if "me" in given:
        given["user"] = str(me.uid)
    if "user" in given:
        uids, unknown = _uids(_words(given["user"]), users)
        fields |= {"users": uids, "unknown_users": unknown}
    bits = environment.get("SLURM_BITSTR_LEN", "")
    for field in ("jobs", "steps"):
        fields[field] = fields.get(field) or None
    fields["time_style"] = environment.get("SLURM_TIME_FORMAT", "standard")
    return Query(given=given, bits=int(bits) if bits.isdecimal() else -1, **fields)


def usual(argv: Sequence[str]) -> list[str]:
    """Return a command line with the usual names of options in place of others."""
    return usual_names(argv, _OTHER_NAMES)


def _given(argv: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the options by their long names: those of the line, then those of variables."""
    given, words = GRAMMAR.parse(usual(argv))
    for option in ("jobs", "steps"):
        # The list may also be the next word.
        if words and given.get(option) == _NONE:
            given[option] = words.pop(0)
            break
    if words:
        raise UsageError(1, f"squeue: error: Unrecognized option: {words[0]}")
    found = {option: environment[name] for name, option in _VALUES.items() if name in environment}
    if "format" in given or "Format" in given:
        found.pop("format", None)
        found.pop("Format", None)
    flags = {option: True for name, option in _FLAGS.items() if name in environment}
    return {**flags, **found, **given}


_USUAL_STATES: Final[States] = (
    JobBase.PENDING,
    JobBase.RUNNING,
    JobBase.SUSPENDED,
    *(flag for flag in JobFlag if flag),
)


def _usual_states(start: bool) -> States:
    return (JobBase.PENDING,) if start else _USUAL_STATES


def _uids(
    words: Sequence[str], users: Mapping[str, User]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the uids of users, by name or number, and the words that are no user."""
    by_word = {str(user.uid): user.uid for user in users.values()}
    by_word |= {user.name: user.uid for user in users.values()}
    uids = tuple(by_word[word] for word in words if word in by_word)
    return uids, tuple(word for word in words if word not in by_word)
