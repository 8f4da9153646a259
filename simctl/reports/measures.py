"""What a replay of a site's own jobs is judged by, beside what the site's cluster did with them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from simctl.ctld.state.job_rows import JobRow
from simctl.scenario.replay_report import ReplayJob, format_report, format_waits, measure
from simctl.wire.ids import SECOND

_ALIKE_US: Final = 60 * SECOND


@attrs.frozen(kw_only=True)
class AgainstRecorded:
    """How many jobs waited as long as at the site, within a minute, and how many did not."""

    jobs: int
    alike: int
    sooner: int
    later: int


def replayed(rows: Sequence[JobRow]) -> list[ReplayJob]:
    """Return the jobs that have run and ended."""
    return [
        ReplayJob(
            submit_us=row.submit_us,
            start_us=row.start_us,
            end_us=row.end_us,
            cpus=row.cpus,
            nodes=row.num_nodes,
        )
        for row in rows
        if row.start_us >= row.submit_us and row.end_us >= row.start_us and row.nodes
    ]


def against(rows: Sequence[JobRow], recorded: Mapping[str, int]) -> AgainstRecorded:
    """Return how the waits of jobs compare with those recorded, in virtual microseconds."""
    late = [
        row.start_us - row.submit_us - recorded[name]
        for row in rows
        if row.start_us >= 0 and (name := _name(row)) in recorded
    ]
    return AgainstRecorded(
        jobs=len(late),
        alike=sum(abs(each) <= _ALIKE_US for each in late),
        sooner=sum(each < -_ALIKE_US for each in late),
        later=sum(each > _ALIKE_US for each in late),
    )


def measured_lines(
    rows: Sequence[JobRow], capacity_cpus: int, recorded: Mapping[str, int]
) -> list[str]:
    """Return the measures of a replay as lines of at most 80 columns."""
    found = against(rows, recorded)
    states = Counter(row.state for row in rows)
    lines = format_report(measure(replayed(rows), capacity_cpus))
    if recorded:
        lines.append(format_waits("recorded", [each / SECOND for each in recorded.values()]))
        lines.append(
            f"of {found.jobs} jobs with a recorded wait {found.alike} waited as long, within a "
            "minute;"
        )
        lines.append(f"{found.sooner} started sooner, {found.later} later")
    told = ", ".join(f"{state} {states[state]}" for state in sorted(states))
    return [*lines, f"jobs by state: {told}"]


def measured_json(
    rows: Sequence[JobRow], capacity_cpus: int, recorded: Mapping[str, int]
) -> dict[str, Any]:
    """Return the same for programs."""
    measures = attrs.asdict(measure(replayed(rows), capacity_cpus))
    return measures | {"recorded": attrs.asdict(against(rows, recorded))}


def _name(row: JobRow) -> str:
    if row.array_task_id < 0:
        return str(row.job_id)
    return f"{row.array_job_id}_{row.array_task_id}"
