"""What a scenario says of the appliance, at its start and when something about it changes."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import attrs

from simctl.wire.ids import SECOND

DEFAULT_POOL: Final = "wlm_pool"
_GIB: Final = 1 << 30

FOREVER_US: Final = 1 << 62
"""How long a function takes that only its caller's patience ends."""

DW_FUNCTIONS: Final = (
    "job_process",
    "pools",
    "show_instances",
    "show_sessions",
    "show_configurations",
    "create_persistent",
    "destroy_persistent",
    "setup",
    "data_in",
    "real_size",
    "paths",
    "pre_run",
    "post_run",
    "data_out",
    "teardown",
)
GENERIC_FUNCTIONS: Final = (
    "get_sys",
    "start_stage_in",
    "stop_stage_in",
    "start_stage_out",
    "stop_stage_out",
)
FUNCTIONS: Final = (*DW_FUNCTIONS, *GENERIC_FUNCTIONS, "get_status")
"""What the appliance can be asked for, by the names that `functions:` of a scenario uses."""

DEFAULT_US: Final[Mapping[str, int]] = {
    "setup": SECOND,
    "data_in": 5 * SECOND,
    "pre_run": 2 * SECOND,
    "post_run": 2 * SECOND,
    "data_out": 4 * SECOND,
    "teardown": SECOND // 2,
    "create_persistent": SECOND,
    "destroy_persistent": SECOND,
    "start_stage_in": 5 * SECOND,
    "start_stage_out": 4 * SECOND,
}
"""How long functions take that no scenario describes; the others take no time."""


@attrs.frozen(kw_only=True)
class PoolSpec:
    """A pool: its bytes, and of how many bytes each grant is a multiple."""

    name: str = DEFAULT_POOL
    capacity: int = 1024 * _GIB
    granularity: int = _GIB


@attrs.frozen(kw_only=True)
class FunctionSpec:
    """How one call of a function goes; a `token` (a job, or a persistent buffer) limits it."""

    runs_us: int | None = None
    exit: int = 0
    signal: int = 0
    output: str = ""
    token: str = ""


@attrs.frozen(kw_only=True)
class ApplianceSpec:
    """What is said of the appliance; None stands for what is left as it is."""

    pools: tuple[PoolSpec, ...] | None = None
    bandwidth: int | None = None
    """Bytes a second, shared by all stages under way."""

    data: Mapping[str, int] | None = None
    functions: Mapping[str, tuple[FunctionSpec, ...]] | None = None
    up: bool | None = None


Answer = Callable[[FunctionSpec | None], Awaitable[str]]
"""Does what a call asks for, given what is said of it, and returns the text it writes."""


@attrs.frozen
class Function:
    """A call taken apart: the function, the token it is about, and what does it."""

    name: str
    token: str
    answer: Answer
