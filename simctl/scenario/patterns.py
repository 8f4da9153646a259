"""Read event patterns of a scenario, held against the names that can occur in its run."""

from typing import Final

from simctl.kernel.pattern import Pattern, PatternError, near
from simctl.plugins.points import ALL, OPTIONAL
from simctl.scenario.pattern_words import ACTS, SCRIPTS, Known, slips
from simctl.scenario.positions import Reading, Unreadable, Value
from simctl.scenario.shapes import Scalar

FUNCTIONS: Final = ("init", "fini", *ALL, *OPTIONAL)
"""The functions that the three plugin guides describe, and those that are called besides."""

_JSON: Final = {"type": "string", "minLength": 1}


def read_pattern(value: Value, reading: Reading) -> Pattern:
    """Read `NAME key=value ...` and refuse what no event of this scenario can match.

    Raises:
        Unreadable: it cannot be read, or could never match; that has been noted.
    """
    return _read(value, reading, filter_only=False)


def _read(value: Value, reading: Reading, *, filter_only: bool) -> Pattern:
    parse = Pattern.parse_filter if filter_only else Pattern.parse
    try:
        pattern = parse(value.scalar, reading.users)
    except PatternError as error:
        reading.mistake_within(value, error.position, error.reason)
        raise Unreadable from error
    for slip in slips(pattern, _known(reading)):
        reading.mistake_within(value, slip.position, slip.message)
    return pattern


def _known(reading: Reading) -> Known:
    if reading.known is not None:
        return reading.known
    return Known(
        names=(*reading.functions, *reading.event_names, *reading.commands),
        commands=reading.commands,
        nodes=None if "nodes" in reading.unsure else reading.nodes,
        plugins=reading.loaded or None,
    )


def read_call_pattern(value: Value, reading: Reading) -> Pattern:
    """Read the pattern of a call that is about to be made, as `fail` and `raise` have it.

    Raises:
        Unreadable: it could match no plugin call; that has been noted.
    """
    pattern = read_pattern(value, reading)
    for key in ("rc", "errno", "phase", "state"):
        if pattern.values(key):
            raise reading.refuse(value, f"{key}= is not known before a call is made; leave it out")
    for kind in pattern.values("kind"):
        if kind != "plugin":
            raise reading.refuse(value, f"only plugin calls can fail this way, not kind={kind}")
    if not pattern.names((*reading.functions, *ACTS, *SCRIPTS)):
        hint = near(pattern.name, (*reading.functions, *ACTS, *SCRIPTS))
        raise reading.refuse(value, f"no plugin function is called {pattern.name!r}{hint}")
    return pattern


def _read_filter(value: Value, reading: Reading) -> Pattern:
    return _read(value, reading, filter_only=True)


PATTERN: Final = Scalar(
    expected="a pattern of events such as switch_p_job_attach job=1",
    convert=read_pattern,
    json=_JSON,
)
CALL_PATTERN: Final = Scalar(
    expected="a pattern of plugin calls such as switch_p_job_attach job=1",
    convert=read_call_pattern,
    json=_JSON,
)
FILTER: Final = Scalar(
    expected='a filter of events such as "step=1.0 node=n1"', convert=_read_filter, json=_JSON
)
