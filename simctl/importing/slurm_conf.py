"""Import a slurm.conf: the scenario of the cluster that it describes."""

from simctl.importing.result import Imported
from simctl.scenario.differing import NOTHING, differences
from simctl.scenario.imported import read_imported
from simctl.scenario.positions import ScenarioErrors
from simctl.scenario.written import scenario_text
from simctl.status import InputError


def import_file(file: str) -> Imported:
    """Return a scenario of the cluster of a slurm.conf.

    Raises:
        InputError: The file cannot be read, or holds mistakes: all of them.
    """
    try:
        cluster = read_imported(file)
    except ScenarioErrors as error:
        raise InputError(
            "\n".join(str(mistake) for mistake in error.mistakes), placed=True
        ) from error
    counts = [
        (len(cluster.nodes), "node"),
        (len(cluster.partitions), "partition"),
        (len(cluster.settings), "key"),
    ]
    told = ", ".join(f"{count} {word}{'s'[: count != 1]}" for count, word in counts)
    silent = len(cluster.ignored) + len(cluster.left_out)
    if silent:
        told += f"; its comments say what was left out ({silent})"
    return Imported(
        text=scenario_text(cluster),
        told=told,
        warnings=(
            *(f"{each} (warning)" for each in cluster.warnings),
            *(
                f"{file}: {what}, for these are not simulated: {', '.join(keys)} (warning)"
                for what, keys in differences(cluster.ignored)
                if what != NOTHING
            ),
        ),
    )
