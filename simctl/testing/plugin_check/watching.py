"""A plugin class that tells which attributes of it a call reads."""

from contextlib import suppress
from typing import Any, Final

from simctl.plugins.compiled.classes import CompiledPlugin

READS: Final[dict[int, set[str]]] = {}
"""What has been read of an instance since its present call began, by the instance's id."""


def watched(kind: type[Any]) -> type[Any]:
    """Return a class that is in all like *kind* and notes in `READS` what is read of an instance.

    Where a class will have no subclass it is returned as it is: nothing is known of its reads then.
    """
    if issubclass(kind, CompiledPlugin):
        return kind.looked_at()
    read: Any = kind.__getattribute__

    def __getattribute__(self: Any, name: str) -> Any:  # noqa: N807 - it becomes the method
        reads = READS.get(id(self))
        if reads is not None:
            reads.add(name)
        return read(self, name)

    body = {
        "__slots__": (),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__getattribute__": __getattribute__,
    }
    made: Any = type(kind)
    with suppress(Exception):
        kind = made(kind.__name__, (kind,), body)
    return kind
