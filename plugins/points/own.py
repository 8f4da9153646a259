"""What every plugin may have beside its guide's functions: init and fini, a pair a class."""

from typing import Final

from simctl.plugins.points.declare import (
    MANAGER,
    NOT_YET,
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
    "switch": "0.4 to today",
    "checkpoint": "1.0 to 19.05; the whole interface left Slurm with 20.02",
    "burst_buffer": "15.08 to today",
}


def _declare(
    plugin_class: str,
    places: Places,
    *,
    failure: str,
    modern_failure: str,
    ends: Places,
    later: str = "",
) -> tuple[Point, Point]:
    @point(
        c="int init(void)",
        guide=places,
        modern=places,
        returns=Returns.INT,
        on_error=OnError.FATAL,
        often="once a process that loads the plugin; forks of it have no init of their own",
        failure=failure,
        modern_failure=modern_failure,
        versions=_VERSIONS[plugin_class],
        glossary={},
        plugin_class=plugin_class,
        later=later,
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
        failure="nothing",
        modern_moment="Real Slurm leaves it out in every other process." if ends != places else "",
        versions=_VERSIONS[plugin_class],
        glossary={},
        plugin_class=plugin_class,
        later=later,
    )
    def fini() -> None:
        """Clean up, when a process is done with the plugin, after every other function."""
        raise AssertionError

    return init, fini


_STEPD_FAILURE: Final = (
    "slurmctld stops; in slurmstepd the launch fails with SLURM_PLUGIN_NAME_INVALID, and no "
    "switch function is called"
)
_BATCH: Final = (
    "as in guide; a batch job ends COMPLETED 0:0 without having run, and the node is drained"
)

OWN: Final[dict[tuple[str, str], Point]] = {
    (each.plugin_class, each.name): each
    for pair in (
        _declare(
            "switch",
            {**SLURMCTLD, **SLURMD, **SRUN, **MANAGER},
            failure=f"{_STEPD_FAILURE}; slurmd and srun stop",
            modern_failure=_BATCH,
            ends=SLURMD,
        ),
        _declare(
            "checkpoint",
            {**SLURMCTLD, **MANAGER},
            failure=_STEPD_FAILURE,
            modern_failure=_BATCH,
            ends=NOWHERE,
        ),
        _declare(
            "burst_buffer",
            SLURMCTLD,
            failure="slurmctld stops",
            modern_failure="",
            ends=SLURMCTLD,
            later=NOT_YET,
        ),
    )
    for each in pair
}
"""init and fini, by class and name."""
