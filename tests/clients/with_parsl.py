"""parsl: a block of workers through sbatch and srun, a result and a failure."""

import os
import sys

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SrunLauncher
from parsl.providers import SlurmProvider


@parsl.python_app
def double(number):
    """Return twice a number."""
    return number * 2


@parsl.python_app
def fail():
    """Fail."""
    raise ValueError("on purpose")


def main() -> None:
    """Use the cluster as parsl's users do."""
    os.chdir(sys.argv[1])
    provider = SlurmProvider(
        "debug",
        cores_per_node=1,
        mem_per_node=1,
        exclusive=False,
        init_blocks=1,
        max_blocks=1,
        walltime="00:05:00",
        launcher=SrunLauncher(),
    )
    executor = HighThroughputExecutor(
        label="workers", address="127.0.0.1", max_workers_per_node=1, provider=provider
    )
    with parsl.load(Config(executors=[executor], strategy="none")):
        assert [double(number).result(timeout=60) for number in range(3)] == [0, 2, 4]
        error = fail().exception(timeout=60)
        assert "on purpose" in str(error)


if __name__ == "__main__":
    main()
