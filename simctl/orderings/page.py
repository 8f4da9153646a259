"""The built-in orderings in words: docs/orderings.md, and the lines of `simctl plugins show`.

`make docs` writes the page.
"""

import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from simctl.orderings.checking import declared
from simctl.orderings.rules import Rule

_WIDTH: Final = 100
_NARROW: Final = 79
_MANY: Final = 40
"""More functions than any class of plugins has."""

_HEAD: Final = """\
# Built-in orderings

Every run of a scenario is held against these rules, in addition to what its `expect:` says. The
summary tells how many held and on how many groups of events. One that is broken fails the run
(exit status 1): it is named, with what it says, what is wrong, the lines of the trace between, and
the command that repeats the run. `--no-orderings` turns all of them off. A replay of a log
(`run --swf`) keeps no events and is not checked. `run --json` has the result under `orderings`, and
`simctl plugins show FUNCTION` lists the rules about a function. A rule excuses what a run shows
(a process that was killed, a node that went down, a call that failed), never the mere presence
of a fault. A slurmctld that was killed, or gave up, excuses the rules that follow a job or step
from request to request, of the jobs it was at when it died; in model modern, where it loses what
was not saved, also of those it did anything about after its last save. In a run that was broken
off (`--until`, Ctrl-C, a stall) nothing is missed that would still have come.

Rules A1 and on are about who may do what ([authority.md](authority.md)). Rules L1 and on are the
ledger: what slurmctld has told others is so after it dies and starts again, and nothing is there
twice ([exploring.md](exploring.md)). No death excuses one of them.
Rules with one number are parts of one rule; where the models differ each has its own.
"Recordings of real Slurm" are traces of Slurm 18.08 with these plugin types, in which the rule
was looked for: the number is that of the groups in which it was looked for and held. This page is
written from the declarations by `make docs`.
"""

_TAIL: Final = """\
## What people expect, and what is false

Each of these has a scenario that shows it false: run it, and look at what it expects.

| belief | what is true | scenario |
|---|---|---|
"""

FALSE_FRIENDS: Final = {
    "stage_out_after_epilog": (
        "Stage-out starts after the last epilog.",
        "It starts when the run ends, before the nodes are told to end the job.",
    ),
    "stage_out_needs_stage_in": (
        "What was never staged in is never staged out.",
        "`bb_p_job_start_stage_out` is called at the end of every run; the plugin decides.",
    ),
    "postfini_follows_preinit": (
        "Where preinit succeeded, postfini follows.",
        "In model modern a container that cannot be created keeps postfini from being called.",
    ),
    "step_complete_per_node": (
        "job_step_complete is called for each node.",
        "It is called once for a step, with all its nodes.",
    ),
    "prefork_for_srun_alone": (
        "stepd_prefork is for parallel steps.",
        "The step daemon of a batch script calls it as well.",
    ),
    "init_means_fini": (
        "Who ran a plugin's init runs its fini.",
        "A plugin whose init failed is not loaded: nothing more of it is called.",
    ),
    "fini_as_root": (
        "job_fini runs as root.",
        "In the switch guide P2 calls it, as the job's owner; in model modern it is root.",
    ),
    "comp_ends_checkpoint": (
        "slurm_ckpt_comp marks a checkpoint as finished.",
        "checkpoint/blcr does not support it: the plugin's own agent knows when it is over.",
    ),
}
"""What is believed, and what is true, by the scenario in scenarios/false_friends that shows it."""


def rules_about(function: str) -> list[Rule]:
    """Return the rules about a plugin function."""
    return [rule for rule in declared() if function in rule.functions]


def is_general(rule: Rule) -> bool:
    """Return whether a rule is about every function alike."""
    return len(rule.functions) > _MANY


def listed(rules: Sequence[Rule]) -> list[str]:
    """Return a line or two for each rule, for a terminal."""
    lines: list[str] = []
    for rule in rules:
        where = "" if len(rule.models) != 1 else f" (model {rule.models[0]})"
        lines += textwrap.wrap(
            f"{rule.label} {rule.name}{where}: {rule.says}.",
            _NARROW,
            initial_indent="  ",
            subsequent_indent="    ",
        )
    return lines


def _section(rule: Rule) -> Iterator[str]:
    yield f"### {rule.label}. {rule.name}\n"
    yield textwrap.fill(f"{rule.says[0].upper()}{rule.says[1:]}.", _WIDTH) + "\n"
    facts = []
    if rule.key:
        facts.append(("holds in", rule.key))
    if rule.exceptions:
        facts.append(("exceptions", rule.exceptions))
    if rule.unchecked:
        facts.append(("not checked", rule.unchecked))
    facts.append(("source", rule.source))
    facts.append(("models", " and ".join(rule.models) or "none"))
    for name, text in facts:
        yield textwrap.fill(f"- *{name}*: {text}", _WIDTH, subsequent_indent="  ")
    if is_general(rule):
        yield "- *functions*: every one"
    elif rule.functions:
        names = ", ".join(f"`{name}`" for name in rule.functions)
        yield textwrap.fill(
            f"- *functions*: {names}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False
        )
    yield ""


def page() -> str:
    """Return docs/orderings.md."""
    parts = [_HEAD, "## The rules\n"]
    for rule in declared():
        parts += _section(rule)
    rows = [
        f"| {belief} | {truth} | `scenarios/false_friends/{name}.yaml` |"
        for name, (belief, truth) in FALSE_FRIENDS.items()
    ]
    return "\n".join([*parts, _TAIL + "\n".join(rows)]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
