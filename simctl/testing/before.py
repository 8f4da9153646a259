"""Assert that some events of a run come before others, or that they have to."""

from collections.abc import Mapping, Sequence

from simctl.kernel.events import Event
from simctl.kernel.pattern import EVERYTHING, Pattern, PatternError, field_reader
from simctl.scenario.holding.orders import order_trouble
from simctl.scenario.holding.recorded import Recorded
from simctl.scenario.model import OrderEntry, OrderExpect
from simctl.scenario.pattern_words import Known, checked
from simctl.scenario.patterns import FUNCTIONS
from simctl.scenario.timeline.timeline import COMMANDS
from simctl.status import InputError
from simctl.testing.frames import hide

__tracebackhide__ = hide


def assert_before(
    events: Sequence[Event] | Recorded,
    first: str,
    second: str,
    *,
    proved: bool = False,
    within: str = "",
    each: str = "",
    users: Mapping[str, int] | None = None,
) -> None:
    """Raise AssertionError unless all that matches one pattern ends before what matches another.

    Args:
        events: All events of a run; `Recorded` where much is asserted of it.
        first: An event pattern such as ``switch_p_job_init role=session``.
        second: Another.
        proved: Causes have to force the order under every schedule; that it came so is not enough.
        within: A filter that events must pass first, such as ``step=1.0``.
        each: A field that makes groups, such as ``node``, in each of which this has to be so.
        users: The uids behind the names that ``user=`` may give.

    Raises:
        AssertionError: With the lines between, or with what would reverse them.
        InputError: A pattern or the field cannot be read.
    """
    known = users or {}
    try:
        words = Known(names=FUNCTIONS, commands=COMMANDS)
        patterns = [checked(Pattern.parse(text, known), words) for text in (first, second)]
        only = checked(Pattern.parse_filter(within, known), words) if within else EVERYTHING
        if each:
            field_reader(each)
    except (PatternError, ValueError) as error:
        raise InputError(f"assert_before: {error}") from error
    order = OrderExpect(
        text=f"{first} < {second}",
        line=0,
        entries=tuple(OrderEntry(pattern=pattern) for pattern in patterns),
        within=only,
        each=each,
        proved=proved,
    )
    trouble = order_trouble(order, events if isinstance(events, Recorded) else Recorded(events))
    if trouble:
        raise AssertionError(f"{order.text}{' is not proved' if proved else ''}\n{trouble.text}")
