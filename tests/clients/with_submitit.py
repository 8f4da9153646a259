"""submitit: a result, a failure, an array, a cancellation, and a job that is requeued in time."""

import sys
import time
from pathlib import Path

import submitit

FOLDER = Path(sys.argv[1])


def add(one: int, two: int) -> int:
    """Return a sum."""
    return one + two


def fail() -> None:
    """Fail."""
    raise ValueError("on purpose")


class Patient:
    """Runs out of time once, and is done at the second try."""

    def __init__(self) -> None:
        self.tries = 1

    def __call__(self) -> int:
        """Return which try it is, after longer than the first one may last."""
        while self.tries == 1:
            time.sleep(0.05)
        return self.tries

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """Go on with the next try."""
        self.tries += 1
        return submitit.helpers.DelayedSubmission(self)


def main() -> None:
    """Use the cluster as submitit's users do."""
    executor = submitit.AutoExecutor(folder=FOLDER / "log", cluster="slurm")
    executor.update_parameters(timeout_min=5, cpus_per_task=1, mem_gb=0.1)
    assert executor.submit(add, 2, 3).result() == 5
    jobs = executor.map_array(add, [1, 2, 3], [10, 20, 30])
    assert [job.result() for job in jobs] == [11, 22, 33]
    failed = executor.submit(fail)
    assert "on purpose" in str(failed.exception())
    running = executor.submit(time.sleep, 1000)
    wait_for(running, "RUNNING")
    running.cancel()
    wait_for(running, "CANCELLED")
    executor.update_parameters(timeout_min=2, slurm_signal_delay_s=90)
    assert executor.submit(Patient()).result() == 2


def wait_for(job: submitit.Job, state: str) -> None:
    """Wait until a job is in a state."""
    while not job.state.startswith(state):
        time.sleep(0.1)
        job.watcher.update()


if __name__ == "__main__":
    main()
