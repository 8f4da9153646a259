"""Read what should come of a run: jobs as they end, orders, events that never or so often occur."""

import re
from typing import Any, Final

from simctl.kernel.pattern import EVERYTHING, Pattern, field_reader, near
from simctl.scenario.looking import ALWAYS, ENVIRONMENT, FILE, OUTPUT
from simctl.scenario.model import (
    CountExpect,
    Expectation,
    JobExpect,
    NeverExpect,
    OrderEntry,
    OrderExpect,
)
from simctl.scenario.pattern_words import JOB_FLAGS, JOB_STATES
from simctl.scenario.patterns import FILTER, PATTERN
from simctl.scenario.positions import Reading, Value
from simctl.scenario.scalars import BOOLEAN, text, whole
from simctl.scenario.shapes import (
    Built,
    Either,
    Field,
    Forms,
    Items,
    Nothing,
    Record,
    Scalar,
    Values,
)

NULL: Final = "null"
"""How a field that holds nothing is written."""

_ANY_COUNT: Final = 2**63 - 1
_JOB: Final = re.compile(r"[0-9]+(?:_[0-9]+)?")


def _read_job(value: Value, _: Reading) -> str:
    if _JOB.fullmatch(value.scalar) is None:
        raise ValueError
    return value.scalar


def _read_state(value: Value, _: Reading) -> str:
    for part in value.scalar.split("|"):
        if part not in JOB_STATES and part not in JOB_FLAGS:
            hint = near(part.upper(), (*JOB_STATES, *JOB_FLAGS))
            raise ValueError(f"no state of a job is called {part!r}{hint}")
    return value.scalar


def _read_exit_code(value: Value, _: Reading) -> str:
    if re.fullmatch(r"[0-9]+:[0-9]+", value.scalar) is None:
        raise ValueError
    return value.scalar


_STATE: Final = Scalar(
    expected="a state of a job such as COMPLETED", convert=_read_state, json={"type": "string"}
)
_EXIT_CODE: Final = Scalar(
    expected='an exit code as "STATUS:SIGNAL", such as "0:0"',
    convert=_read_exit_code,
    json={"type": "string", "pattern": "^[0-9]+:[0-9]+$"},
)
_TEXT: Final = text("a text", empty=True)
_COUNT: Final = whole("a whole number of 0 or more", least=0)
_TEXT_OR_NULL: Final = Either(expected="a text", scalar=_TEXT, empty=Nothing(value=NULL))
_COUNT_OR_NULL: Final[Either[Any]] = Either(
    expected="a whole number of 0 or more", scalar=_COUNT, empty=Nothing(value=NULL)
)
_JOB_FIELDS: Final = (
    Field(name="job_id", shape=_COUNT, doc="Job id."),
    Field(name="array_job_id", shape=_TEXT_OR_NULL, doc="Id of its job array, or `null`."),
    Field(name="array_task_id", shape=_TEXT_OR_NULL, doc="Number in its job array, or `null`."),
    Field(name="name", shape=_TEXT, doc="Name."),
    Field(name="user", shape=_TEXT, doc="Name of its owner."),
    Field(name="partition", shape=_TEXT, doc="Partition."),
    Field(name="state", shape=_STATE, doc="State, with its flags if there are any."),
    Field(name="reason", shape=_TEXT_OR_NULL, doc="Reason, as squeue prints it."),
    Field(name="exit_code", shape=_EXIT_CODE, doc="Exit status and signal, such as `0:0`."),
    Field(name="num_nodes", shape=_COUNT, doc="Number of nodes."),
    Field(name="nodes", shape=_TEXT_OR_NULL, doc="Nodes as a host list, such as `n[1-2]`."),
    Field(name="submit_us", shape=_COUNT, doc="When it was submitted, in microseconds."),
    Field(name="start_us", shape=_COUNT_OR_NULL, doc="When it started, in microseconds."),
    Field(name="end_us", shape=_COUNT_OR_NULL, doc="When it ended, in microseconds."),
    Field(name="restarts", shape=_COUNT, doc="How often it was put back into the queue."),
)


def _check_job(values: Values, reading: Reading) -> None:
    if "job" in values.places and len(values.whole.node.value) == 1:
        job = values.place("job").scalar
        reading.mistake(values.whole, f"says nothing about job {job}; add `state:` or others")


def _build_job(values: Values, value: Value, _: Reading) -> Expectation:
    fields = tuple((key, str(values[key])) for key in values.places if key != "job")
    said = " ".join(f"{key}={wanted}" for key, wanted in fields)
    return JobExpect(
        text=f"job {values['job']} {said}", line=value.line, job=values["job"], fields=fields
    )


def _order_entry(pattern: Pattern, _: Value, __: Reading) -> OrderEntry:
    return OrderEntry(pattern=pattern)


def _order_entry_mapping(values: Values, _: Value, __: Reading) -> OrderEntry:
    return OrderEntry(pattern=values["match"], optional=values["optional"])


_OPTIONAL: Final = Field(
    name="optional",
    shape=BOOLEAN,
    default=False,
    shown=False,
    doc="Whether a group may lack matches.",
)
_ORDER_ENTRY: Final = Either(
    expected="a pattern, or {match: PATTERN, optional: true}",
    scalar=Built(shape=PATTERN, build=_order_entry),
    mapping=Record(
        what="an entry of an order",
        fields=(
            Field(name="match", shape=PATTERN, required=True, doc="The pattern."),
            _OPTIONAL,
        ),
        build=_order_entry_mapping,
    ),
)


def _read_each(value: Value, _: Reading) -> str:
    field_reader(value.scalar)
    return value.scalar


def _build_order(values: Values, value: Value, _: Reading) -> Expectation:
    entries = tuple(
        OrderEntry(pattern=entry.pattern, optional=entry.optional or values["optional"])
        for entry in values["order"]
    )
    said = "order " + " < ".join(_entry_text(entry) for entry in entries)
    if "within" in values.places:
        said += f" within {values['within'].text}"
    if values["each"]:
        said += f" each {values['each']}"
    return OrderExpect(
        text=f"{said} proved" if values["proved"] else said,
        line=value.line,
        entries=entries,
        within=values["within"],
        each=values["each"],
        proved=values["proved"],
    )


def _entry_text(entry: OrderEntry) -> str:
    return f"[{entry.pattern.text}]" if entry.optional else entry.pattern.text


def _build_never(values: Values, value: Value, _: Reading) -> Expectation:
    pattern = values["never"]
    return NeverExpect(text=f"never {pattern.text}", line=value.line, pattern=pattern)


def _check_count(values: Values, reading: Reading) -> None:
    bounds = _bounds(values)
    if not bounds:
        reading.mistake(values.whole, "missing key: `is`, or `min` or `max` or both")
    if "is" in bounds and len(bounds) > 1:
        message = f"`is` and `{bounds[1]}` together: `is` says it all"
        reading.mistake(values.place(bounds[1]), message)
    if values["min"] > values["max"]:
        reading.mistake(values.place("min"), "`min` is above `max`")


def _bounds(values: Values) -> list[str]:
    return [key for key in ("is", "min", "max") if key in values.places]


def _build_count(values: Values, value: Value, _: Reading) -> Expectation:
    pattern, bounds = values["count"], _bounds(values)
    exact = "is" in bounds
    said = " ".join(f"{key} {values[key]}" for key in bounds)
    return CountExpect(
        text=f"count {pattern.text} {said}",
        line=value.line,
        pattern=pattern,
        least=values["is"] if exact else values["min"],
        most=values["is"] if exact else values["max"],
    )


_JOB_FORM: Final[Record[Expectation]] = Record(
    what="an expectation of a job",
    fields=(
        Field(
            name="job",
            shape=Scalar(
                expected="a job id such as 1, or 1_2 for a task of an array",
                convert=_read_job,
                json={"type": ["integer", "string"]},
            ),
            required=True,
            doc="Id of the job the other keys are about.",
        ),
        *_JOB_FIELDS,
    ),
    build=_build_job,
    check=_check_job,
)
_ORDER_FORM: Final[Record[Expectation]] = Record(
    what="an order",
    fields=(
        Field(
            name="order",
            shape=Items(item=_ORDER_ENTRY, expected="a list of patterns", least=2),
            required=True,
            doc="Patterns; all that matches one ends before anything that matches the next begins.",
        ),
        Field(
            name="within",
            shape=FILTER,
            default=EVERYTHING,
            doc="Filter that events must pass first, such as `step=1.0`.",
        ),
        Field(
            name="each",
            shape=Scalar(
                expected="a field of events such as node",
                convert=_read_each,
                json={"type": "string"},
            ),
            default="",
            doc="Field that makes groups, each of which must be in order by itself.",
        ),
        _OPTIONAL,
        Field(
            name="proved",
            shape=BOOLEAN,
            default=False,
            shown=False,
            doc="Whether causes must prove the order for every interleaving, not just this run.",
        ),
    ),
    build=_build_order,
)
_NEVER_FORM: Final[Record[Expectation]] = Record(
    what="a `never`",
    fields=(Field(name="never", shape=PATTERN, required=True, doc="Events that must not occur."),),
    build=_build_never,
)
_COUNT_FORM: Final[Record[Expectation]] = Record(
    what="a `count`",
    fields=(
        Field(name="count", shape=PATTERN, required=True, doc="Events that are counted."),
        Field(name="is", shape=_COUNT, default=0, doc="How many there must be."),
        Field(name="min", shape=_COUNT, default=0, shown=0, doc="How many there must be at least."),
        Field(name="max", shape=_COUNT, default=_ANY_COUNT, doc="How many there may be at most."),
    ),
    build=_build_count,
    check=_check_count,
)
EXPECTATION: Final[Forms[Expectation]] = Forms(
    what="an expectation",
    forms={
        "job": _JOB_FORM,
        "order": _ORDER_FORM,
        "never": _NEVER_FORM,
        "count": _COUNT_FORM,
        "always": ALWAYS,
        "file": FILE,
        "output": OUTPUT,
        "environment": ENVIRONMENT,
    },
)
EXPECT: Final[Items[Any]] = Items(item=EXPECTATION, expected="a list of expectations")
