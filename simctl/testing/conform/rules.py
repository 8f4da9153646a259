"""What does not count: declared rules that take acts out of both sides, each with its reason."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from simctl.testing.conform.acts import MARK, OF_NO_JOB, REGISTRATION, Act, Story
from simctl.testing.conform.answers import ENDING
from simctl.testing.conform.check_records import UNKNOWN
from simctl.testing.conform.passes import passes_told
from simctl.testing.conform.races import (
    blinks,
    exits_apart,
    node_records,
    polls_between,
    stand_in,
    threads_apart,
)

Settle = Callable[[Story, Story], tuple[Story, Story]]
"""Takes a run and a recording, and gives them back without what does not count."""


@attrs.frozen
class Rule:
    """One thing that does not count, and why."""

    name: str
    reason: str
    settle: Settle


def _dropping(unwanted: Callable[[Act], bool]) -> Settle:
    def settle(ours: Story, theirs: Story) -> tuple[Story, Story]:
        return tuple(  # type: ignore[return-value]
            story.having(act for act in story.acts if not unwanted(act)) for story in (ours, theirs)
        )

    return settle


# Packs and queries.


def _is_packing(act: Act) -> bool:
    return "_pack_" in act.name or "_unpack_" in act.name or act.name in _NOT_RECORDED


_NOT_RECORDED: Final = frozenset(
    {
        *("switch_p_get_errno", "switch_p_strerror", "switch_p_free_node_info"),
        *("bb_p_state_pack", "bb_p_job_get_est_start"),
    }
)


def _is_question_to_the_appliance(act: Act) -> bool:
    return act.name == "dw_pools" or act.name.startswith("dw_show_")


# Other switch plugins.


def _only_the_recorded_plugins(ours: Story, theirs: Story) -> tuple[Story, Story]:
    configured = {
        act.key
        for act in (*ours.acts, *theirs.acts)
        if act.name == "init" and not act.strand.startswith("srun")
    }

    def keeps(act: Act) -> bool:
        if act.name != "init" or not act.strand.startswith("srun"):
            return True
        return act.key in configured

    return (
        ours.having(filter(keeps, ours.acts)),
        theirs.having(filter(keeps, theirs.acts)),
    )


def _is_made_anew(act: Act) -> bool:
    return act.name == "node_state" and act.key.endswith("> UNKNOWN")


def _exec_once(acts: Sequence[Act]) -> Iterable[Act]:
    restarted = any(act.name == "slurm_ckpt_restart_task" for act in acts)
    return [act for act in acts if not (restarted and act.name == "exec")]


def _no_exec_of_restarted(ours: Story, theirs: Story) -> tuple[Story, Story]:
    return ours.by_strand(_exec_once), theirs.by_strand(_exec_once)


# What repeats by the clock.

_POLLS: Final = frozenset({"bb_p_job_test_stage_in", "bb_p_job_test_stage_out"})
_REPEATED: Final = frozenset(
    {
        *("REQUEST_TERMINATE_JOB", "REQUEST_KILL_TIMELIMIT", "REQUEST_CANCEL_JOB_STEP"),
        *("switch_p_job_suspend_info_pack", "REQUEST_JOB_STEP_CREATE", "REQUEST_STEP_COMPLETE"),
    }
)
_ANSWERED_AGAIN: Final = frozenset(
    f"{name}{ENDING}" for name in (*_REPEATED, "MESSAGE_TASK_EXIT", "REQUEST_SIGNAL_TASKS")
)
"""Requests that are repeated, and the answers with them."""


def _once(acts: Sequence[Act]) -> Iterator[Act]:
    """Give each poll once as long as only polls follow, and each repeated message once."""
    polls: set[str] = set()
    last: Act | None = None
    asked_in_earnest = False
    for act in acts:
        if act.name == "bb_p_job_test_stage_in":
            only_tests = bool(act.args.get("test_only"))
            if only_tests and asked_in_earnest:
                # Backfill asks like this by the clock, and who submits for those ahead of it.
                continue
            asked_in_earnest = not only_tests
        elif act.kind == "state":
            asked_in_earnest = False
        if act.name in _POLLS:
            answer = f"{act.name} {act.args} {act.result}"
            if answer in polls:
                continue
            polls.add(answer)
        else:
            polls.clear()
            if last is not None and _is_again(act, last):
                continue
        last = act
        yield act


def _is_again(act: Act, last: Act) -> bool:
    if act.name in _ANSWERED_AGAIN:
        return (act.what, act.args, act.result) == (last.what, last.args, last.result)
    return act.name in _REPEATED and last.what == act.what


def _repeated_once(ours: Story, theirs: Story) -> tuple[Story, Story]:
    return ours.by_strand(_once), theirs.by_strand(_once)


_NODE_INFO: Final = frozenset({"switch_p_alloc_node_info", "switch_p_build_node_info"})


def _registrations_once(ours: Story, theirs: Story) -> tuple[Story, Story]:
    """Leave out registrations but the first after each start that the recording has, too."""
    spare = {who: count - theirs.starts.get(who, 0) for who, count in ours.starts.items()}
    return ours.having(_first_registrations(ours, spare)), theirs.having(
        _first_registrations(theirs, {})
    )


def _first_registrations(story: Story, spare: Mapping[str, int]) -> Iterator[Act]:
    """Give what a slurmd does to register once after its own start, and after one of slurmctld.

    Of the record of the switch after its own start alone.
    """
    lives = Counter[str]()
    told: dict[tuple[str, str], tuple[int, int]] = {}
    for act in story.acts:
        lives[_started(act)] += 1
        if act.name not in (*_NODE_INFO, REGISTRATION):
            yield act
            continue
        own = f"slurmd@{act.node}"
        of_daemons = lives["slurmctld"] if act.name == REGISTRATION else 0
        life = (
            max(0, lives[own] - spare.get(own, 0)),
            max(0, of_daemons - spare.get("slurmctld", 0)),
        )
        if act.name in _NODE_INFO:
            life = lives[own], 0
        before = told.setdefault((act.name, act.node), (0, 0))
        if life != before:
            yield act
        told[act.name, act.node] = life


def _started(act: Act) -> str:
    """Return which daemon starts with an act."""
    if act.name != "init":
        return ""
    first = "checkpoint/" if act.strand == "slurmctld" else "switch/"
    return act.strand if act.key.startswith(first) else ""


# The ends of a recording.

_START: Final = frozenset(
    {
        *("init", "switch_p_slurmctld_init", "switch_p_libstate_restore", "switch_p_reconfig"),
        *("switch_p_node_init", "switch_p_slurmd_init", "bb_p_load_state"),
        *("switch_p_clear_node_state", *_NODE_INFO),
    }
)
_END: Final = frozenset({"switch_p_libstate_save", "fini", "switch_p_node_fini"})


def _not_its_start(ours: Story, theirs: Story) -> tuple[Story, Story]:
    """Leave out how daemons start and stop that do neither in the recording."""
    if not theirs.cut:
        return ours, theirs
    recorded = theirs.strands()
    spare_starts = {
        daemon: count - theirs.starts.get(daemon, 0) for daemon, count in ours.starts.items()
    }

    def within(acts: Sequence[Act]) -> Iterable[Act]:
        strand = acts[0].strand
        if strand in ours.starts:
            spare = _ends(acts) - _ends(recorded.get(strand, ()))
            return _without_ends(_without_starts(acts, spare_starts[strand]), spare)
        if strand.startswith("node ") and spare_starts.get("slurmctld", 0) > 0:
            return acts[1:] if acts[0].key == "UNKNOWN > IDLE" else acts
        return acts

    return ours.by_strand(within), theirs


def _is_of_a_start(act: Act) -> bool:
    """Return whether an act is of a daemon's start: slurmd reads no configuration again then."""
    if act.name == "switch_p_reconfig":
        return act.strand == "slurmctld"
    return act.name in _START


def _without_starts(acts: Sequence[Act], spare: int) -> list[Act]:
    """Leave out what a daemon does as it starts, in its first *spare* lives."""
    kept: list[Act] = []
    seen: set[tuple[str, str]] = set()
    life = 0
    for act in acts:
        if _is_of_a_start(act):
            if act.what in seen:
                life += 1
                seen.clear()
            seen.add(act.what)
            if life < spare:
                continue
        kept.append(act)
    return kept


def _ends(acts: Sequence[Act]) -> int:
    return sum(act.name in _END for act in acts)


def _without_ends(acts: Sequence[Act], spare: int) -> Iterator[Act]:
    """Leave out the last *spare* acts with which a daemon stops."""
    left = _ends(acts)
    for act in acts:
        if act.name in _END:
            left -= 1
            if left < spare:
                continue
        yield act


def _not_what_follows(ours: Story, theirs: Story) -> tuple[Story, Story]:
    """Leave out what happens before the recording begins, and after it ends."""
    if not theirs.cut:
        return ours, theirs
    recorded = theirs.strands()
    reached = _reached(ours, theirs)
    kept: set[int] = set()
    for strand, acts in ours.strands().items():
        kept.update(map(id, _within(acts, recorded.get(strand, []), theirs, reached)))
    gone = _forgotten(theirs) - {act.job for act in ours.acts if act.job is not None}
    theirs = theirs.having(
        act for act in theirs.acts if act.step != UNKNOWN and act.job not in gone
    )
    ours = ours.having(
        act for act in ours.acts if act.strand == MARK or (id(act) in kept and act.step != UNKNOWN)
    )
    return ours, theirs


def _forgotten(theirs: Story) -> set[int]:
    """Return the jobs from before that do nothing on nodes: they are cancelled, or forgotten."""
    return set(theirs.old_jobs) - {act.job for act in theirs.acts if act.node}


def _reached(ours: Story, theirs: Story) -> dict[int | None, int]:
    """Return how far the run is in each job where it last does what the recording has, too."""
    left = Counter((act.strand, act.what, act.job, act.node) for act in theirs.acts)
    reached: dict[int | None, int] = {}
    for act in ours.acts:
        if act.job is None or act.kind == "message" or act.name in OF_NO_JOB:
            # Messages are repeated until they are answered.
            continue
        like = act.strand, act.what, act.job, act.node
        if left[like] and act.place > reached.get(act.job, 0):
            left[like] -= 1
            reached[act.job] = act.place
    return reached


def _tail(acts: Sequence[Act], known: Sequence[Act], theirs: Story, reached: int) -> Iterator[Act]:
    """Return of what the recording has nothing of any more what it should have seen.

    More of the job comes after it in the recording, or it went on for twice the time and longer.
    """
    end = _last_shared(acts, known)
    yield from acts[:end]
    if not end:
        return
    ends_s = max(act.when_s for act in theirs.acts)
    for act in acts[end:]:
        late_s = 2 * (act.when_s - acts[end - 1].when_s) + _SOON_S
        if act.job is not None and (act.place < reached or known[-1].when_s + late_s < ends_s):
            yield act


_SOON_S: Final = 2.0


def _within(
    acts: Sequence[Act], known: Sequence[Act], theirs: Story, reached: dict[int | None, int]
) -> Sequence[Act]:
    """Return of a strand what lies between the beginning and the end of the recording."""
    jobs = {act.job for act in acts}
    job = jobs.pop() if len(jobs) == 1 else None
    open_end = job in theirs.open_jobs or (job is None and bool(theirs.open_jobs))
    if open_end and job not in theirs.old_jobs:
        acts = list(_tail(acts, known, theirs, reached.get(job, 0)))
    if job in theirs.old_jobs or (job is None and theirs.runs_old_jobs):
        acts = acts[len(acts) - _last_shared(acts[::-1], known) :]
    for name in _PURGE:
        spare = _count(acts, name) - _count(known, name)
        while spare > 0 and acts and acts[-1].name == name and not acts[-1].step:
            acts, spare = acts[:-1], spare - 1
    return acts


def _count(acts: Sequence[Act], name: str) -> int:
    return sum(act.name == name for act in acts)


_PURGE: Final = ("slurm_ckpt_free_job", "bb_p_job_test_stage_out")
"""What is called when an old job is forgotten, the last first."""


def _last_shared(acts: Sequence[Act], known: Sequence[Act]) -> int:
    """Return where the tail begins that the recording has nothing of."""
    left = Counter(act.what for act in known)
    end = 0
    for at, act in enumerate(acts, start=1):
        if left[act.what]:
            left[act.what] -= 1
            end = at
    return end


RULES: Final = (
    Rule(
        "packing",
        "the recordings leave packs, unpacks and questions for an error's text out; real Slurm "
        "releases no record of a node that is NULL; get_est_start is asked now and then",
        _dropping(_is_packing),
    ),
    Rule(
        "questions to the appliance",
        "the program that answered them for the recordings wrote down only what it did",
        _dropping(_is_question_to_the_appliance),
    ),
    Rule(
        "other switch plugins",
        "srun sets up what is installed, which is another list here; only the configured one is "
        "compared",
        _only_the_recorded_plugins,
    ),
    Rule(
        "records made anew",
        "reading the configuration again makes new records of nodes, which are UNKNOWN; the "
        "recorder saw no change in that",
        _dropping(_is_made_anew),
    ),
    Rule(
        "restarted tasks",
        "what restart_task executes itself the recorder does not see",
        _no_exec_of_restarted,
    ),
    Rule(
        "passes",
        "scheduler passes run by the clock, and as often as something asks for one; that there was "
        "one before what it leads to is told with that",
        passes_told,
    ),
    Rule(
        "polls",
        "the plugin is asked again in each pass, with test_only by backfill and whoever submits, "
        "and messages are repeated, until something changes; each answer counts once",
        _repeated_once,
    ),
    Rule(
        "registrations",
        "slurmctld asks nodes to register now and then; only the one of a slurmd's start counts",
        _registrations_once,
    ),
    Rule(
        "starts and stops",
        "most recordings begin and end while the daemons run; a run of simctl begins and ends with "
        "them",
        _not_its_start,
    ),
    Rule(
        "nodes that blink",
        "a ping falls into the moment in which a slurmd is away, or none does",
        blinks,
    ),
    Rule(
        "records of nodes",
        "a node is drained before or after a job has left it; which of the jobs on it is over "
        "first decides through which states it goes",
        node_records,
    ),
    Rule(
        "cut off",
        "jobs may have begun before the recording or go on after it, and their records are "
        "released when they are purged, later than most recordings end",
        _not_what_follows,
    ),
    Rule(
        "passes between",
        "at most a pass that happened to come tells that a job goes on waiting for its buffer",
        polls_between,
    ),
    Rule(
        "threads of plugins",
        "a thread that stages in asks for the size of the buffer when it ends, also beside the "
        "teardown; the plugin is set up when jobs are read back or after that",
        threads_apart,
    ),
    Rule(
        "tasks that end together",
        "ends of tasks are gathered for a tenth of a second; on a busy machine those of tasks that "
        "sleep equally long are told in one message or in several",
        exits_apart,
    ),
    Rule(
        "the stand-in of the appliance",
        "it knew no buffers and answered for those that are gone, too; a script of it that is "
        "killed writes down no end",
        stand_in,
    ),
)
"""In the order in which they are applied."""
