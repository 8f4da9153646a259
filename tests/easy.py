"""A reference scheduler: EASY backfill on whole nodes that are alike, with exact knowledge.

It shares nothing with the simulator, so that replays can be held against it. What Slurm does at its
own pace is kept: the head of the queue starts whenever it can, and the queue behind it is looked at
every `interval`.
"""

from collections.abc import Sequence

import attrs


@attrs.frozen(kw_only=True)
class EasyJob:
    """A job to be run; times are whole numbers of any one unit, `limit` is what it asks for."""

    submit: int
    run: int
    limit: int
    nodes: int


@attrs.frozen(kw_only=True)
class EasyRun:
    """When and where a job ran."""

    start: int
    end: int
    nodes: tuple[int, ...]


def run_easy(jobs: Sequence[EasyJob], *, nodes: int, interval: int) -> list[EasyRun]:
    """Return when and where each of *jobs* runs, in the order they are given.

    They queue by submit time, equal ones as given. At one moment ends come first, then what is
    submitted, then starts from the head of the queue, and on the grid of the interval at last those
    that delay no head: they end before it begins, or leave alone the nodes it will have. All take
    the free nodes of the lowest numbers.
    """
    queue: list[int] = []
    coming = sorted(range(len(jobs)), key=lambda place: (jobs[place].submit, place))
    runs: dict[int, EasyRun] = {}
    running: list[int] = []
    now, looks = 0, False
    while coming or queue or running:
        moments = [jobs[coming[0]].submit] if coming else []
        moments += [runs[place].end for place in running]
        if looks:
            moments.append((now // interval + 1) * interval)
        now = min(moments)
        on_grid = looks and now % interval == 0
        looks = looks and not on_grid
        running = [place for place in running if runs[place].end > now]
        while coming and jobs[coming[0]].submit <= now:
            queue.append(coming.pop(0))
        free = set(range(nodes)).difference(*(runs[place].nodes for place in running))
        while queue and jobs[queue[0]].nodes <= len(free):
            _start(jobs, queue.pop(0), now, free, runs, running)
        if on_grid and queue:
            _backfill(jobs, queue, now, free, runs, running)
        looks = looks or (bool(queue) and not on_grid)
    return [runs[place] for place in range(len(jobs))]


def easy_starts(jobs: Sequence[EasyJob], *, nodes: int) -> list[int]:
    """Return when each of *jobs* starts if the queue is looked at upon every submission and end.

    It counts nodes and knows none by name: a job behind the head starts if it is over before the
    head begins, or if the nodes that the head will leave over are enough for it.
    """
    coming = sorted(range(len(jobs)), key=lambda place: (jobs[place].submit, place))
    queue: list[int] = []
    starts: dict[int, int] = {}
    running: list[int] = []
    while coming or queue:
        moments = [jobs[coming[0]].submit] if coming else []
        now = min(moments + [starts[place] + jobs[place].run for place in running])
        running = [place for place in running if starts[place] + jobs[place].run > now]
        while coming and jobs[coming[0]].submit <= now:
            queue.append(coming.pop(0))
        free = nodes - sum(jobs[place].nodes for place in running)
        begins, spare = now, 0
        for place in list(queue):
            job = jobs[place]
            if begins == now and job.nodes > free:
                begins, spare = _head_begins(jobs, starts, running, free, job.nodes)
                continue
            in_time = begins == now or now + job.limit <= begins
            if job.nodes > (free if in_time else min(free, spare)):
                continue
            spare -= 0 if in_time else job.nodes
            free -= job.nodes
            starts[place] = now
            running.append(place)
            queue.remove(place)
    return [starts[place] for place in range(len(jobs))]


def _head_begins(
    jobs: Sequence[EasyJob], starts: dict[int, int], running: list[int], free: int, need: int
) -> tuple[int, int]:
    """Return when the head has its nodes at the latest, and how many it leaves over then."""
    ends = sorted((starts[place] + jobs[place].limit, jobs[place].nodes) for place in running)
    begins = next(end for end, _ in ends if free + sum(n for e, n in ends if e <= end) >= need)
    return begins, free + sum(n for end, n in ends if end <= begins) - need


def _start(
    jobs: Sequence[EasyJob],
    place: int,
    now: int,
    free: set[int],
    runs: dict[int, EasyRun],
    running: list[int],
) -> None:
    """Start a job on free nodes."""
    taken = tuple(sorted(free)[: jobs[place].nodes])
    free.difference_update(taken)
    runs[place] = EasyRun(start=now, end=now + jobs[place].run, nodes=taken)
    running.append(place)


def _backfill(
    jobs: Sequence[EasyJob],
    queue: list[int],
    now: int,
    free: set[int],
    runs: dict[int, EasyRun],
    running: list[int],
) -> None:
    """Start what is behind the head and delays it not."""
    head = jobs[queue[0]]
    then = set(free)
    begins = now
    for place in sorted(running, key=lambda place: runs[place].start + jobs[place].limit):
        if len(then) >= head.nodes and runs[place].start + jobs[place].limit > begins:
            break
        begins = runs[place].start + jobs[place].limit
        then.update(runs[place].nodes)
    # What is idle already is kept for the head only if it needs more than comes free.
    kept = {*sorted(then - free)[: head.nodes]}
    kept |= {*sorted(then & free)[: head.nodes - len(kept)]}
    for place in queue[1:]:
        job = jobs[place]
        usable = free if now + job.limit <= begins else free - kept
        if job.nodes <= len(usable):
            chosen = set(usable)
            _start(jobs, place, now, chosen, runs, running)
            free.difference_update(runs[place].nodes)
            queue.remove(place)
