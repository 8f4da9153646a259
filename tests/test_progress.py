"""The live line of a run: what it says, and that it fits a terminal of eighty columns."""

import pytest

from simctl.reports.progress import Reached, line

DAY_US = 86_400_000_000
START = Reached(wall_s=100.0, time_us=0, jobs=0, turns=0)


@pytest.mark.parametrize(
    ("now", "total", "says"),
    [
        (
            Reached(wall_s=110.0, time_us=DAY_US + 5, jobs=2_000, turns=40_000),
            10_000,
            "2,000/10,000 jobs, 12 known, at 1-00:00:00, 200 jobs/s, 40s left",
        ),
        (
            Reached(wall_s=101.0, time_us=5_000_000, jobs=2_000, turns=40_000),
            10_000,
            "2,000/10,000 jobs, 12 known, at 0:00:05, 2,000 jobs/s",
        ),
        (
            Reached(wall_s=110.0, time_us=5_500_000, jobs=20, turns=40_000),
            0,
            "20 jobs done, 12 known, at 0:00:05, 4,000 turns/s",
        ),
        (
            Reached(wall_s=110.0, time_us=0, jobs=0, turns=40_000),
            10_000,
            "0/10,000 jobs, 12 known, at 0:00:00, 4,000 turns/s",
        ),
    ],
)
def test_the_line_says_what_is_done_and_what_remains(now: Reached, total: int, says: str) -> None:
    """An estimate needs some seconds, and a number of jobs that is known beforehand."""
    assert line(START, now, total=total, known=12) == says


def test_a_long_run_fits_eighty_columns() -> None:
    """A million jobs over a year, with an estimate of hours."""
    now = Reached(wall_s=130.0, time_us=365 * DAY_US + 1, jobs=86_500, turns=10**7)
    said = line(START, now, total=1_000_000, known=10_000)
    assert said.endswith("2,883 jobs/s, 5m17s left")
    assert len(said) < 80
