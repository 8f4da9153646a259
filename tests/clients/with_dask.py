"""dask-jobqueue: workers come as jobs, work, fail to work, and go."""

from dask_jobqueue import SLURMCluster
from distributed import Client


def main() -> None:
    """Use the cluster as dask-jobqueue's users do."""
    with SLURMCluster(
        queue="debug",
        cores=1,
        memory="500MB",
        interface="lo",
        scheduler_options={"dashboard_address": None},
        worker_extra_args=["--no-dashboard"],
    ) as cluster:
        cluster.scale(jobs=2)
        with Client(cluster) as client:
            client.wait_for_workers(2, timeout=60)
            assert sum(client.gather(client.map(lambda n: n * n, range(10)))) == 285
            failed = client.submit(lambda: 1 // 0)
            assert isinstance(failed.exception(timeout=30), ZeroDivisionError)
            cluster.scale(jobs=0)


if __name__ == "__main__":
    main()
