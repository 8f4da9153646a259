"""Logs, for those who work on simctl: what `--debug` shows on standard error.

The trace is for people who use simctl; a log line says the same in the words of the code, with
`sim_us` for its time, and adds what no simulated process does.
"""

import sys

import structlog
from msgspec import UNSET

from simctl.kernel.events import Event


class LogSink:
    """Logs what daemons go through: processes, states, faults and their own complaints."""

    def __init__(self) -> None:
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, pad_level=False),
            ],
            logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        )
        self._log = structlog.get_logger()

    def __call__(self, event: Event) -> None:
        """Log one event, unless it is one of those that the trace alone is for."""
        if event.kind in ("plugin", "message"):
            return
        values = {
            key: value
            for key in ("daemon", "node", "pid", "uid", "job", "step", "task", "rc", "args")
            if (value := getattr(event, key)) is not UNSET
        }
        self._log.debug(event.name, sim_us=event.time_us, seq=event.seq, **values)
