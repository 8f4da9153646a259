"""What tests and readers of traces use.

from simctl.testing import run_scenario

def test_my_plugin():
    run = run_scenario("scenarios/step.yaml", model="modern")
    run.assert_held()
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simctl.testing.runs import Run

__all__ = ["run_scenario"]


def run_scenario(
    scenario: str | Path,
    *,
    model: str = "",
    schedule: str = "fifo",
    seed: int | None = None,
    folder: str | Path = ".",
    orderings: bool = True,
) -> "Run":
    """Run a scenario in virtual time and return what came of it.

    Args:
        scenario: A file, or the text of a scenario: what has a line break in it is a text.
        model: ``guide`` or ``modern``, instead of the scenario's.
        schedule: Order of the turns due at one moment, ``fifo`` or ``random``.
        seed: Of chance and of a random schedule, instead of the scenario's.
        folder: What the plugins of a text are found from.
        orderings: Whether the built-in orderings are checked, and a broken one fails the run.

    Raises:
        InputError: The scenario or a plugin is wrong; with every mistake in it.
    """
    from simctl.testing.runs import run  # noqa: PLC0415 - readers of traces build no cluster

    return run(
        scenario,
        model=model,
        schedule=schedule,
        seed=seed,
        folder=Path(folder),
        orderings=orderings,
    )
