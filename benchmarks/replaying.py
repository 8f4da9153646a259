"""Like jobs, and a cluster to replay them on."""

import argparse

from simctl.scenario.swf import SwfJob


def options(nodes: int, cpus: int = 1, **more: object) -> argparse.Namespace:
    """Return the options of a replay."""
    given = {
        "scheduler": "builtin",
        "nodes": nodes,
        "cpus_per_node": cpus,
        "conf": [],
        "latency": "100us",
    }
    return argparse.Namespace(**given | more)


def jobs_of(count: int, width: int, *, apart_s: float = 400.0) -> list[SwfJob]:
    """Return like jobs of one width, one after another."""
    return [
        SwfJob(
            number=number,
            submit_s=number * apart_s,
            run_s=60.0,
            processors=width,
            requested_s=None,
            user_id=1,
            group_id=1,
            queue=1,
            partition=1,
            status=1,
            line=number,
        )
        for number in range(1, count + 1)
    ]
