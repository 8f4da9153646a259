"""Expectations by themselves, without a scenario around them."""

import re
from collections.abc import Collection, Mapping
from typing import Final

import yaml

from simctl.scenario.expectations import EXPECT, EXPECTATION
from simctl.scenario.model import Expectation
from simctl.scenario.pattern_words import Known
from simctl.scenario.positions import (
    Reading,
    ScenarioErrors,
    Unreadable,
    Value,
    compose,
    pairs,
    sort_mistakes,
)

_EMPTY: Final = 'nothing is expected; write one such as {count: "switch_p_job_attach", is: 4}'


def read_expectations(
    text: str, *, file: str, known: Known, users: Mapping[str, int]
) -> tuple[Expectation, ...]:
    """Read one expectation, a list of them, or those of a scenario, about a run that is over.

    Args:
        text: YAML; of a mapping with a key `expect` what stands there.
        file: Where it is said to stand.
        known: What words there are in the run.
        users: The uids behind the names that `user=` may give.

    Raises:
        ScenarioErrors: The text holds mistakes: all of them.
    """
    reading = Reading(
        file=file,
        lines=tuple(re.split(r"\r\n|\r|\n", text)),
        users=dict(users),
        known=known,
    )
    root = Value(node=compose(text, file, empty=_EMPTY), path="")
    found: Collection[Expectation] = ()
    try:
        if isinstance(root.node, yaml.MappingNode):
            inner = {key: value for _, key, value in pairs(root, reading)}.get("expect")
            if inner is None:
                found = (EXPECTATION.read(root, reading),)
            else:
                found = EXPECT.read(inner, reading)
        else:
            found = EXPECT.read(root, reading)
    except Unreadable:
        pass
    if reading.mistakes:
        raise ScenarioErrors(sort_mistakes(reading.mistakes))
    return tuple(found)
