"""What every plugin may have beside its guide's functions: init and fini, a pair a class."""

from typing import Final

from simctl.plugins.points.cli_filter import COMMANDS
from simctl.plugins.points.declare import (
    MANAGER,
    NOWHERE,
    SLURMCTLD,
    SLURMD,
    SRUN,
    OnError,
    Places,
    Point,
    Returns,
    point,
)

_VERSIONS: Final = {
    "switch": "0.4 to today; optional",
    "checkpoint": "1.0 to 19.05, optional; the whole interface left Slurm with 20.02",
    "burst_buffer": "15.08 to today; optional",
    "job_submit": "1.3 to today; optional",
    "cli_filter": "18.08 to today; optional",
}


def _declare(
    plugin_class: str,
    places: Places,
    *,
    failure: str,
    ends: Places,
    order: str = "",
    on_error: OnError = OnError.FATAL,
) -> tuple[Point, Point]:
    @point(
        c="int init(void)",
        guide=places,
        modern=places,
        returns=Returns.INT,
        on_error=on_error,
        often="once a process that loads the plugin; forks of it have no init of their own",
        failure=failure,
        modern_moment=order,
        versions=_VERSIONS[plugin_class],
        glossary={},
        plugin_class=plugin_class,
    )
    def init() -> int:
        """Set up, when a process has loaded the plugin, before any other function."""
        raise AssertionError

    @point(
        c="void fini(void)",
        guide=places,
        modern=ends,
        returns=Returns.VOID,
        often="once a process that ran init, when it ends cleanly",
        failure="it cannot fail",
        modern_often="once a slurmd run, at a clean end" if ends is SLURMD else "",
        versions=_VERSIONS[plugin_class],
        glossary={},
        plugin_class=plugin_class,
    )
    def fini() -> None:
        """Clean up, when a process is done with the plugin, after every other function."""
        raise AssertionError

    return init, fini


_STEPD_FAILURE: Final = (
    "slurmctld stops; in slurmstepd the launch fails with SLURM_PLUGIN_NAME_INVALID (1011), and "
    "job_preinit and what follows it are not called: a batch job ends COMPLETED 0:0 without having "
    "run, and the node is drained"
)

OWN: Final[dict[tuple[str, str], Point]] = {
    (each.plugin_class, each.name): each
    for pair in (
        _declare(
            "switch",
            {**SLURMCTLD, **SLURMD, **SRUN, **MANAGER},
            failure=f"{_STEPD_FAILURE}; slurmd stops before its node registers, srun with status 1",
            ends=SLURMD,
        ),
        _declare(
            "checkpoint",
            {**SLURMCTLD, **MANAGER},
            failure=_STEPD_FAILURE,
            ends=NOWHERE,
            order="In slurmstepd after the switch plugin's, and after the credential is unpacked.",
        ),
        _declare(
            "burst_buffer",
            SLURMCTLD,
            failure="slurmctld stops",
            ends=SLURMCTLD,
        ),
        _declare(
            "job_submit",
            SLURMCTLD,
            failure="slurmctld stops",
            ends=SLURMCTLD,
        ),
        _declare(
            "cli_filter",
            COMMANDS,
            failure="the command ends with status 1",
            ends=COMMANDS,
            on_error=OnError.END_COMMAND,
        ),
    )
    for each in pair
}
"""init and fini, by class and name."""
