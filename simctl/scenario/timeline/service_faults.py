"""Read faults of what Slurm does for users: accounting that is away or late, a job preempted."""

from typing import Final

from simctl.scenario.faults import AccountingFault, Fault, PreemptFault
from simctl.scenario.positions import Reading
from simctl.scenario.scalars import DURATION, choice, whole
from simctl.scenario.shapes import Field, Record, Values
from simctl.wire.ids import NO_VAL

_MOST_ID: Final = NO_VAL - 1


def _check_late(values: Values, reading: Reading) -> None:
    if values["accounting"] == "late" and values["by"] is None:
        reading.mistake(values.place("accounting"), "say how late: {accounting: late, by: 3s}")
    elif values["accounting"] in ("away", "back") and values["by"] is not None:
        reading.mistake(values.place("by"), "only accounting that is `late` is so by a time")


ACCOUNTING: Final[Record[Fault]] = Record(
    what="an `accounting` fault",
    fields=(
        Field(
            name="accounting",
            shape=choice("away", "late", "back"),
            required=True,
            doc="slurmdbd does not answer, tells later what has happened, or is as ever again.",
        ),
        Field(name="by", shape=DURATION, doc="How late it tells."),
        Field(name="for", shape=DURATION, doc="For how long; for ever if left out."),
    ),
    build=lambda values, _value, _reading: AccountingFault(
        how=values["accounting"], by_us=values["by"] or 0, for_us=values["for"]
    ),
    check=_check_late,
)
PREEMPT: Final[Record[Fault]] = Record(
    what="a `preempt` fault",
    fields=(
        Field(
            name="preempt",
            shape=whole("the id of a job", least=1, most=_MOST_ID),
            required=True,
            doc="The job that gives way.",
        ),
    ),
    build=lambda values, _value, _reading: PreemptFault(job_id=values["preempt"]),
)
