"""The mistakes that switch plugins are looked at for."""

from typing import Final

from simctl.testing.plugin_check.mistakes import rule

COPIES: Final = rule(
    "copy",
    rank=1,
    cost="srun is sent another credential than the step has; in C, one that is freed twice",
    remedy="return a new object with all that the credential holds",
)
EARLY: Final = rule(
    "freed-early",
    rank=1,
    explains=("given-twice", "freed-twice", "leaks-on-failure", "lost-at-restart"),
    cost="what a step still uses is given to the next one: two steps talk on one resource",
    remedy="give back in switch_p_job_step_complete alone: copies and unpacked credentials are "
    "freed while the step lives, in every daemon",
)
TWICE: Final = rule(
    "given-twice",
    rank=2,
    cost="two steps that run at one time use the same resource and disturb each other",
    remedy="take what is handed out from what is free, and give it back when the step is over",
)
LOST: Final = rule(
    "lost-at-restart",
    rank=2,
    explains=("given-twice",),
    cost="after a restart of slurmctld what live steps hold is given out again, or gone for good",
    remedy="save what is taken in switch_p_libstate_save, read it in switch_p_libstate_restore",
)
NEVER: Final = rule(
    "never-freed",
    rank=2,
    explains=("given-twice", "leaks-on-failure", "lost-at-restart"),
    cost="each step takes some for good: in the end no step starts until slurmctld is restarted "
    "clean, or its memory is full",
    remedy="give back in switch_p_job_step_complete what build_jobinfo took",
)
AGAIN: Final = rule(
    "freed-twice",
    rank=2,
    explains=("given-twice", "leaks-on-failure", "lost-at-restart"),
    cost="what was given back twice is handed out twice",
    remedy="give back in one place: switch_p_job_step_complete is called exactly once for a step",
)
HALF: Final = rule(
    "leaks-on-failure",
    rank=2,
    cost="each step that fails on its way takes some for good: after enough of them no step starts",
    remedy="before build_jobinfo fails, give back what it has taken; job_step_complete and "
    "free_jobinfo are called for such a credential as well, with what is in it",
)
RANK: Final = rule(
    "wrong-rank",
    rank=2,
    cost="tasks on other nodes get what belongs to another task",
    remedy="`rank` counts the tasks of the step; `procid` only those of this node, from 0",
)
FILES: Final = rule(
    "left-on-disk",
    rank=2,
    cost="each step leaves a file behind: in the end the disk is full",
    remedy="remove in job_postfini (root) or job_step_complete what was made for a step",
)
CHANCE: Final = rule(
    "chance",
    rank=1,
    explains=("given-twice",),
    cost="a run cannot be repeated: what was seen once is not found again",
    remedy="choose in a fixed order, the smallest free one say: without random, uuid, clocks "
    "of the machine, id(), hash() or the order of a set of texts",
)
