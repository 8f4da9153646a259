"""Read `options`: switches of the simulator itself, which Slurm does not have."""

from typing import Final

from simctl.scenario.scalars import BOOLEAN, DURATION, choice
from simctl.scenario.shapes import Field, Record
from simctl.site import Options

OPTIONS: Final[Record[Options]] = Record(
    what="the options",
    fields=(
        Field(
            name="bb_load_first",
            shape=BOOLEAN,
            doc="Whether a restart loads plugins' state before jobs begin; else by model.",
        ),
        Field(
            name="bb_post_run_gate",
            shape=BOOLEAN,
            doc="Whether nodes are freed only as bb_p_job_test_post_run says; else by the model.",
        ),
        Field(
            name="bb_stageout_after_epilog",
            shape=BOOLEAN,
            default=False,
            shown=False,
            doc="Whether stage-out begins once the epilogs are over.",
        ),
        Field(
            name="real_scripts",
            shape=BOOLEAN,
            default=False,
            shown=False,
            doc="Whether scripts of burst buffer plugins may be executables of the real machine.",
        ),
        Field(
            name="step_missing",
            shape=choice("abort", "go_on"),
            default="abort",
            shown="abort",
            doc="What srun does that is told that a node lacks its step; real Slurm's goes on.",
        ),
        Field(
            name="batch_start",
            shape=choice("at_once", "as_real"),
            default="at_once",
            shown="at_once",
            doc="When a batch job may start first; as_real: at the next turn of slurmctld's loop.",
        ),
        Field(
            name="accounting_lag",
            shape=DURATION,
            default=0,
            shown="0s",
            doc="How late sacct shows what has happened to a job, as slurmdbd does by seconds.",
        ),
        Field(
            name="trace_values",
            shape=BOOLEAN,
            default=False,
            shown=False,
            doc="Whether traces tell what plugin calls hand out and keep, as `run --values` does.",
        ),
        Field(
            name="state_saves",
            shape=choice("auto", "always", "never"),
            default="auto",
            shown="auto",
            doc="Whether slurmctld saves its state while it runs; auto: where that can show.",
        ),
    ),
    build=lambda values, _value, _reading: Options(**values),
    not_built={"strict_source": "not simulated yet; leave it out"},
)
