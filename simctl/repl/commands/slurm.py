"""Slurm's own commands, typed as on the login node."""

from simctl.repl import words
from simctl.repl.commands.timing import go
from simctl.repl.goals import UntilEnded
from simctl.repl.registry import Command, Run, add
from simctl.repl.session import Session
from simctl.scenario.timeline.timeline import COMMANDS

_EXAMPLES = {
    "sbatch": ("Submit a batch script of the user's folder.", "sbatch hello.sh"),
    "salloc": ("Get an allocation, and run a command in it.", "salloc -N1 srun ./app"),
    "srun": ("Run a step; with & at the end it goes on beside.", "srun -N2 ./app &"),
    "srun_cr": ("Run a step that can be checkpointed.", "srun_cr ./app &"),
    "scancel": ("Cancel jobs, or signal them.", "scancel 1"),
    "scontrol": ("Look at and change nearly everything.", "scontrol show job 1"),
    "squeue": ("List jobs.", "squeue"),
    "sinfo": ("List partitions and nodes.", "sinfo"),
    "sacctmgr": ("List accounts and users; nothing is changed.", "sacctmgr list user"),
    "sshare": ("List shares, of which nobody has used anything.", "sshare"),
    "sacct": ("List jobs and steps, those that are over as well.", "sacct"),
}

_WORDS = {
    "sbatch": words.files,
    "salloc": words.programs,
    "srun": words.programs,
    "srun_cr": words.programs,
    "scontrol": words.scontrol,
}


def type_command(session: Session, line: str) -> None:
    """Type a command line; time goes on until it has ended, unless it ends with ``&``."""
    beside = line.endswith("&")
    line = line.removesuffix("&").rstrip()
    label = session.act({"as": session.desk.user, "run": line})
    if not beside:
        session.follow(label)
        go(session, UntilEnded(label=label))


def _typed(name: str) -> Run:
    def run(session: Session, rest: str) -> None:
        type_command(session, f"{name} {rest}".strip())

    return run


for _name in COMMANDS:
    _doc, _example = _EXAMPLES[_name]
    add(
        Command(
            name=_name,
            usage=f"{_name} ... [&]",
            topic="slurm",
            doc=f"{_doc} Time goes on until it has ended.",
            example=_example,
            run=_typed(_name),
            words=_WORDS.get(_name, words.job_ids),
        )
    )
