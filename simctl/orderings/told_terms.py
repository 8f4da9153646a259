"""What the rules must know of a run, as the header of a trace tells its later reader."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from simctl.orderings.observed import Terms
from simctl.site import Options
from simctl.wire.conf.slurm_conf import SlurmConf

TERMS: Final = "terms"
"""The key of the header."""

_PLAIN: Final = (str, int, float, bool, type(None))


def _defaults() -> dict[str, Any]:
    return {
        name: getattr(record, name)
        for record in (SlurmConf(), Options())
        for name in attrs.fields_dict(type(record))
    }


def tell_terms(terms: Terms) -> dict[str, Any]:
    """Return the terms of a run as plain data: of its configuration what is not the default."""
    defaults = _defaults()
    return {
        "conf": {
            name: value
            for name, value in terms.conf.items()
            if isinstance(value, _PLAIN) and value != defaults.get(name)
        },
        "goes_on": terms.goes_on,
        "operators": sorted(terms.operators),
        "administrators": sorted(terms.administrators),
    }


def read_terms(header: Mapping[str, Any], *, finished: bool) -> Terms:
    """Return the terms of the run of a trace; defaults for what its header does not tell."""
    told = header.get(TERMS)
    told = told if isinstance(told, dict) else {}
    conf, users = told.get("conf"), header.get("users")
    return Terms(
        model=str(header.get("model", "guide")),
        finished=finished,
        conf=_defaults() | (conf if isinstance(conf, dict) else {}),
        goes_on=told.get("goes_on") is True,
        users=users if isinstance(users, dict) else {},
        operators=_uids(told.get("operators")),
        administrators=_uids(told.get("administrators")),
    )


def _uids(told: object) -> frozenset[int]:
    listed = told if isinstance(told, list) else []
    return frozenset(each for each in listed if type(each) is int)
