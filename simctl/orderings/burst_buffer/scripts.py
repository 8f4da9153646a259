"""Rules about the scripts that the burst buffer plugins run of a job."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from simctl.kernel.events import Event
from simctl.orderings.burst_buffer.story import Life, Story, broken, jobs, place, settle, story
from simctl.orderings.observed import Observed, arg
from simctl.orderings.rules import Broken as Wrong
from simctl.orderings.rules import Finding, rule

_GUIDE: Final = "burst buffer guide"
_DATAWARP: Final = (
    *("dw_job_process", "dw_create_persistent", "dw_setup", "dw_data_in", "dw_paths"),
    *("dw_pre_run", "dw_post_run", "dw_data_out", "dw_teardown"),
)
_GENERIC: Final = ("start_stage_in", "start_stage_out")
_ANEW: Final = ("dw_setup", "dw_create_persistent", "start_stage_in")
"""What begins another instance of a job's buffer."""

_NEEDS: Final = {
    "dw_data_in": ("dw_setup",),
    "dw_real_size": ("dw_setup",),
    "dw_pre_run": ("dw_paths",),
    "dw_data_out": ("dw_post_run",),
}
_INSIDE: Final = {"dw_paths": "begin", "dw_job_process": "validate2"}


@rule(
    28,
    "scripts-in-order",
    says=(
        "job_process, create_persistent, setup, data_in, paths, pre_run, post_run, data_out, "
        "teardown; of burst_buffer/generic StartStageIn, StartStageOut"
    ),
    key="a job, anew with each setup",
    exceptions=(
        "teardown --hurry may come at any time, and again; real_size is in no order but after "
        "setup; a restarted slurmctld may begin a part once more"
    ),
    source=f"{_GUIDE}; held in 27 groups of recordings of real Slurm",
    functions=("bb_p_job_begin", "bb_p_job_start_stage_out", "bb_p_job_try_stage_in"),
)
def scripts_in_order(run: Observed) -> Iterator[Finding]:
    """Look at the scripts of each job, in the order in which they began."""
    for job in run.once(jobs):
        if _scripts(job):
            yield settle(_in_order(story(run), job))


def _scripts(life: Life) -> list[Event]:
    """Return the scripts of a job, but for teardowns in a hurry."""
    found = [each for each in life.items if isinstance(each, Event) and each.kind == "script"]
    named = (*_DATAWARP, *_GENERIC, *_NEEDS)
    return [each for each in found if each.name in named and "--hurry" not in _argv(each)]


def _argv(script: Event) -> Sequence[str]:
    return arg(script, "argv") or ()


def _in_order(found: Story, life: Life) -> Iterator[Wrong]:
    for names in (_DATAWARP, _GENERIC):
        ran = [each for each in _scripts(life) if each.name in names]
        for one, other in pairwise(ran):
            backwards = names.index(other.name) < names.index(one.name)
            again = other.name in _ANEW or found.restarted(place(one), place(other))
            if backwards and not again:
                yield broken(life, f"{other.name} began after {one.name}", one, other)
            if not backwards and place(other) < one.seq and not again:
                yield broken(life, f"{other.name} began before {one.name} ended", one, other)


@rule(
    71,
    "scripts-inside-calls",
    says=(
        "paths runs inside begin, job_process inside validate2; pre_run needs paths, data_in and "
        "real_size need setup, data_out needs post_run"
    ),
    key="a job",
    exceptions="validate2 of a task that is split off an array runs no job_process",
    source=f"{_GUIDE}; held in 25 groups of recordings of real Slurm",
    functions=("bb_p_job_begin", "bb_p_job_validate2"),
)
def scripts_inside_calls(run: Observed) -> Iterator[Finding]:
    """Look at what ran before each script, and at the calls about its job."""
    for job in run.once(jobs):
        if _scripts(job):
            yield settle(_inside_calls(job))


def _inside_calls(life: Life) -> Iterator[Wrong]:
    seen: set[str] = set()
    for script in _scripts(life):
        for needed in _NEEDS.get(script.name, ()):
            if needed not in seen:
                yield broken(life, f"{script.name} ran without {needed}", script)
        seen.add(script.name)
        name = _INSIDE.get(script.name)
        if name is not None and not any(
            place(each) < place(script) < each.over_seq for each in life.asked(name)
        ):
            yield broken(life, f"{script.name} ran outside {name}", script)
