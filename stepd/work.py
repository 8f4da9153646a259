"""What slurmd hands to a step daemon."""

import attrs

from simctl.plugin import StepdJob
from simctl.site import User
from simctl.stepd.tree import ALONE, Branch
from simctl.wire.buf import Packed


@attrs.frozen(kw_only=True)
class StepWork:
    """What slurmd hands to the step daemon it forks.

    `argv` is what each task runs; for a batch script it is the script's path and its arguments.
    `programs` stands for it, by local id, where tasks run different things.
    `env` is what the tasks start with. `switch_job` is the packed credential.
    """

    job: StepdJob
    user: User
    argv: tuple[str, ...]
    env: dict[str, str]
    work_dir: str
    tids: tuple[int, ...]
    nnodes: int
    programs: tuple[tuple[str, ...], ...] = ()
    inputs: tuple[str, ...] = ()
    """What tasks find on their standard input: one text for all, or one for each local id."""

    searches: bool = True
    """Whether tasks have a PATH on which programs are found."""

    switch_job: Packed = attrs.field(factory=Packed)
    script: str = ""
    std_in: str = ""
    std_out: str = ""
    std_err: str = ""
    appends: bool = False
    """Whether what these files hold stays."""

    task_prolog: str = ""
    task_epilog: str = ""
    branch: Branch = ALONE
    parent: str = ""
    """Address of the slurmd whose step daemon this one reports to."""

    restart_cnt: int = 0
    """Which run of its job a batch script is."""

    restart_dir: str = ""
    """Where the images are that its tasks go on from; empty for a plain start."""

    ckpt_dir: str = ""
    """Where images of it are to go."""
