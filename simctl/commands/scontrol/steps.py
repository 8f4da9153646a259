"""``scontrol update`` of steps: their time limit."""

import re
from typing import Final

from simctl.commands.arguments.options import UsageError
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.pairs import (
    Key,
    begins,
    find_key,
    read_value,
    refuse_key,
    split_pairs,
)
from simctl.wire.errno import slurm_strerror
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.messages import RequestUpdateJobStep
from simctl.wire.time_limits import parse_time_limit_min

STEP_KEYS: Final = {
    "timelimit": Key(2, "time_limit_min", lambda text: parse_time_limit_min(text) or INFINITE),
}
"""Keys of an update of a step."""

_UNBUILT: Final = frozenset({"compfile"})
_ID: Final = re.compile(r"(\d+)(?:\.(\d+))?")


async def update_step(order: Order) -> int:
    """Change a step, or all steps of a job."""
    job_id, step_id, limit_min = 0, NO_VAL, NO_VAL
    for pair in split_pairs(order.words):
        if begins(pair.key, "stepid", 4):
            match = _ID.fullmatch(pair.value)
            if match is None:
                raise UsageError(1, f"Invalid StepId format: {pair.word}")
            job_id, step_id = int(match[1]), int(match[2]) if match[2] else NO_VAL
            continue
        key = find_key(STEP_KEYS, pair.key)
        if key is None:
            raise refuse_key("stepid", pair, _UNBUILT)
        limit_min = read_value(key, pair)
    if limit_min == NO_VAL:
        raise UsageError(1, "No changes specified")
    request = RequestUpdateJobStep(job_id=job_id, step_id=step_id, time_limit_min=limit_min)
    rc = await order.ask(request)
    if rc:
        order.complain(f"slurm_update error: {slurm_strerror(rc)}")
    return 1 if rc else 0
