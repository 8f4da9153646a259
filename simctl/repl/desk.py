"""What stays when a session goes back: the person's side of it, which can be handed on."""

from typing import Any

import attrs

from simctl.repl.acts import Act
from simctl.repl.breaks import Break


@attrs.define(kw_only=True)
class Target:
    """Where going back leads: after event *seq*, with the first *acts* acts done; then a stop."""

    seq: int
    acts: int


@attrs.define(kw_only=True)
class Desk:
    """Break points, settings, what was done so far and what is not read yet."""

    user: str
    acts: list[Act] = attrs.field(factory=list)
    """What was done, in its order; going back forgets the last of it."""
    done: int = 0
    """How many of them are done in the world at hand."""
    breaks: list[Break] = attrs.field(factory=list)
    breaks_made: int = 0
    acts_made: int = 0
    target: Target | None = None
    reading: Any = None
    """What the front end has read ahead, or where in a script it is."""
    settings: dict[str, Any] = attrs.field(factory=dict)
    """What commands remember for a person; plain values alone."""
