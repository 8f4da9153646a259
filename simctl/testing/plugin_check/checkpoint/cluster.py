"""The clusters in which checkpoint plugins are asked for checkpoints."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

LIFE_S: Final = 2400
"""How long what is checkpointed computes."""

_FILES: Final = {
    "step.sh": "#!/bin/bash\n#SBATCH -N2 -n4 --ntasks-per-node=2\nsrun ./long\n",
    "batch.sh": "#!/bin/bash\n./long\n",
    "again.sh": "#!/bin/bash\n#SBATCH -N2 -n4 --ntasks-per-node=2\nsrun ./long\n"
    "srun --restart-dir=/home/alice/1.0 ./long\n",
    "both.sh": "#!/bin/bash\n#SBATCH -n2\nsrun -n1 ./long &\nsrun -n1 ./long &\nwait\n",
}


def scenario(
    plugin_type: str,
    timeline: Iterable[Mapping[str, Any]],
    *,
    model: str,
    programs: Mapping[str, Any] = {},
) -> str:
    """Return the scenario of a cluster in which *timeline* happens."""
    return json.dumps(
        {
            "model": model,
            "slurm_conf": {
                "CheckpointType": plugin_type,
                "JobCheckpointDir": "/shared/ckpt",
                "MinJobAge": "10",
            },
            "nodes": [{"name": "n[1-3]", "cpus": 4}],
            "partitions": [
                {"name": "debug", "nodes": "n[1-3]", "default": True, "max_time": "10:00:00"}
            ],
            "users": {"alice": 1001, "bob": 1002},
            "programs": {"./long": {"runs": f"{LIFE_S}s"}, **programs},
            "files": _FILES,
            "timeline": list(timeline),
        }
    )


def at(time_s: float, run: str, user: str = "alice") -> dict[str, Any]:
    """Return the entry of a command."""
    return {"at": f"{time_s:.3f}s", "as": user, "run": run}


def asked(time_s: float, request: str, user: str = "alice") -> dict[str, Any]:
    """Return the entry of a request about checkpoints."""
    return at(time_s, f"scontrol checkpoint {request}", user)


def fault(time_s: float, **what: Any) -> dict[str, Any]:
    """Return the entry of a fault."""
    return {"at": f"{time_s:.3f}s", "fault": what}


__all__ = ["LIFE_S", "asked", "at", "fault", "scenario"]
