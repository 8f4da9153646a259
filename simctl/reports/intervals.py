"""Means of measures over runs, with 95 % confidence intervals by Student's t."""

import math
from collections.abc import Sequence
from typing import Any, Final

import attrs

_T: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""The 97.5 % points of Student's t for 1 to 30 degrees of freedom."""

_Z: Final = 1.959964


def student_t(freedom: int) -> float:
    """Return the 97.5 % point of Student's t, to three digits behind the point.

    Args:
        freedom: Degrees of freedom, at least 1.
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = _Z
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


@attrs.frozen(kw_only=True)
class Interval:
    """A mean over runs; `half` is how far its interval reaches to each side, None of one run."""

    runs: int
    mean: float
    deviation: float | None
    """The standard deviation of the runs."""
    half: float | None
    least: float
    most: float

    @property
    def low(self) -> float | None:
        """The lower end of the interval."""
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        """The upper end of the interval."""
        return None if self.half is None else self.mean + self.half

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "runs": self.runs,
            "mean": self.mean,
            "deviation": self.deviation,
            "low": self.low,
            "high": self.high,
            "least": self.least,
            "most": self.most,
        }


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of values and its confidence interval.

    Args:
        values: At least one.
    """
    count = len(values)
    mean = math.fsum(values) / count
    deviation = half = None
    if count > 1:
        # Equal values are that: their mean may be another by rounding.
        same = min(values) == max(values)
        squares = 0.0 if same else math.fsum((each - mean) ** 2 for each in values)
        deviation = math.sqrt(squares / (count - 1))
        half = student_t(count - 1) * deviation / math.sqrt(count)
        mean = values[0] if same else mean
    return Interval(
        runs=count,
        mean=mean,
        deviation=deviation,
        half=half,
        least=min(values),
        most=max(values),
    )
