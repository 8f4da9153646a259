"""How many Python calls a job costs: exact on one version of Python, the same on every machine."""

import cProfile
import pstats
from pathlib import Path

import attrs

from benchmarks.replaying import jobs_of, options
from simctl.replay import scenario, submit_all
from simctl.scenario.swf import SwfLog
from simctl.world import World

_ROOMS = ("simctl", "nodes", "stepd", "plugins")
_ROOT = Path(__file__).resolve().parent.parent


@attrs.frozen(kw_only=True)
class Calls:
    """Calls of a one-node batch job with one step but those that each node costs, and these."""

    fixed: float
    node: float


def calls_of_a_job(*, own: bool, jobs: int = 20, width: int = 9) -> Calls:
    """Return what a job costs, start-up of the cluster left out, with no trace recorded.

    Functions of C's count as well, and of Python's library and trio; *own* counts simctl's alone.
    """
    few, many = jobs // 4, jobs // 4 + jobs
    # What the first job imports is no job's cost.
    _calls(1, width, own=own)
    narrow, wide = (
        (_calls(many, each, own=own) - _calls(few, each, own=own)) / jobs for each in (1, width)
    )
    node = (wide - narrow) / (width - 1)
    return Calls(fixed=narrow - node, node=node)


def _calls(count: int, width: int, *, own: bool) -> int:
    jobs = jobs_of(count, width)
    log = SwfLog(path="bench", header={}, jobs=tuple(jobs), malformed=(), partial_lines=())
    world = World(scenario(log, jobs, options(16)), most_turns=0)
    submit_all(world, jobs, 1)
    profile = cProfile.Profile(builtins=not own)
    profile.enable()
    world.run()
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # it has; stubs do not
    return sum(row[1] for (file, _, _), row in stats.items() if not own or _is_own(file))


def _is_own(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(_ROOT) and path.relative_to(_ROOT).parts[0] in _ROOMS
