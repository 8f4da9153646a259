"""``scontrol show hostnames``, ``hostlist`` and ``hostlistsorted``: no daemon is asked."""

from simctl.commands.scontrol.order import Order
from simctl.wire.hostlist import HostlistError, compress, expand, sort_unique


async def show_hostnames(order: Order, value: str | None) -> int:
    """Print the names that a host list stands for, or those of the job's own nodes."""
    env = order.call.env
    text = value if value is not None else env.get("SLURM_JOB_NODELIST", env.get("SLURM_NODELIST"))
    if text is None:
        order.call.err("scontrol: error: host list is empty")
        return 0
    for name in _read(order, text) or ():
        order.call.out(name)
    return 0


async def show_hostlist(order: Order, value: str | None) -> int:
    """Print the host list of names in the order given."""
    return _encode(order, value, sort=False)


async def show_hostlistsorted(order: Order, value: str | None) -> int:
    """Print the host list of names in Slurm's order, each once."""
    return _encode(order, value, sort=True)


def _read(order: Order, text: str) -> tuple[str, ...] | None:
    """Return the names in a text, or None after it was said what cannot be read."""
    try:
        return expand(text, tolerant=True)
    except HostlistError as error:
        if error.range_text:
            order.call.err(
                f"scontrol: error: _parse_single_range: Invalid range: `{error.range_text}'"
            )
        order.call.err(f"Invalid hostlist: {text}")
        return None


def _encode(order: Order, value: str | None, *, sort: bool) -> int:
    if value is None:
        order.call.err("invalid encode argument")
        return 1
    text: str | None = value
    if value == "-":
        text = order.call.stdin
    elif value.startswith("/"):
        call = order.call
        text = call.files.find_text(value)
        if text is None:
            call.err(f"Can't open input file {value}")
            return 1
    names = _read(order, text or "")
    if names is None:
        return 1
    order.call.out(compress(sort_unique(names) if sort else names))
    return 0
