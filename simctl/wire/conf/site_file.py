"""A site's own slurm.conf: what becomes of each key and word, most of which nothing acts on."""

import enum
from collections.abc import Iterator
from typing import Final

from simctl.wire.conf.known import HONOURED, KNOWN_BY_KEY, folded_value
from simctl.wire.conf.readers import ALWAYS_TRACKED, TRACKED_KINDS, did_you_mean
from simctl.wire.conf.scheduler import BUILT_WORDS, SCHEDULER_NAMES, WITHOUT_EFFECT
from simctl.wire.conf.slurm_conf import BUILT_BY_KEY, DEBUG_FLAGS, PROLOG_FLAGS


class KeyKind(enum.Enum):
    """What becomes of a key of slurm.conf."""

    ACTS = "it changes what a run does"
    DEFAULT = "what it says holds with its default alone"
    NO_EFFECT = "Slurm knows it; nothing here depends on it"
    UNKNOWN = "Slurm has no such key"


_NEEDS_SCRIPTS: Final = frozenset({"jobsubmitplugins"})
"""Keys, folded, that act with a file of the site's beside slurm.conf, which is not at hand."""


def key_kind(key: str, value: str) -> KeyKind:
    """Tell what becomes of a key with a value in a site's own file."""
    folded = key.casefold()
    name = KNOWN_BY_KEY.get(folded, "")
    if folded in _NEEDS_SCRIPTS:
        return KeyKind.NO_EFFECT
    if folded in BUILT_BY_KEY:
        return KeyKind.ACTS
    if folded_value(value) in HONOURED.get(name, ()):
        return KeyKind.DEFAULT
    return KeyKind.NO_EFFECT if name else KeyKind.UNKNOWN


def slurm_name(key: str) -> str:
    """Return a key as Slurm writes it."""
    built = BUILT_BY_KEY.get(key.casefold())
    return built.name if built is not None else KNOWN_BY_KEY.get(key.casefold(), key)


def holds_instead(key: str) -> str:
    """Return the default that holds of a key that is not acted on, or nothing."""
    return HONOURED.get(slurm_name(key), ("",))[0]


_OPTIONAL_WORDS: Final[dict[str, frozenset[str]]] = {
    "schedulerparameters": SCHEDULER_NAMES.difference(BUILT_WORDS, WITHOUT_EFFECT),
    "prologflags": frozenset(map(str.casefold, PROLOG_FLAGS)),
    "debugflags": frozenset(map(str.casefold, DEBUG_FLAGS)),
    "selecttypeparameters": frozenset(
        "cr_one_task_per_core cr_core_default_dist_block cr_lln cr_pack_nodes".split()
    ),
}
"""Words of keys that act which may stand in a site's own file, and are not acted on."""


def acting_words(key: str, value: str) -> tuple[str, tuple[str, ...]]:
    """Split what is built of a value that is a list of words from what Slurm alone acts on."""
    optional = _OPTIONAL_WORDS.get(key.casefold())
    if key.casefold() == "accountingstoragetres":
        optional = frozenset(_uncounted(value))
    if optional is None:
        return value, ()
    words = [word.strip() for word in value.split(",")]
    without = [word for word in words if _leads_to_nothing(key, word, optional)]
    acting = [word for word in words if word not in without]
    if _IMPLY_ALLOC.intersection(word.casefold() for word in without):
        acting = list(dict.fromkeys([*acting, "Alloc"]))
    return ",".join(acting), tuple(without)


def _uncounted(value: str) -> Iterator[str]:
    """Go through the words of AccountingStorageTRES of kinds that are not counted."""
    for word in map(str.strip, value.casefold().split(",")):
        if word not in ALWAYS_TRACKED and word.partition("/")[0] in TRACKED_KINDS:
            yield word


def _leads_to_nothing(key: str, word: str, optional: frozenset[str]) -> bool:
    name = word.partition("=")[0].strip().casefold()
    return name in optional or bool(name and unknown_word(key, word))


def unknown_word(key: str, word: str) -> str:
    """Say that Slurm has no such word of SchedulerParameters: it passes over those in silence."""
    name = word.partition("=")[0].strip().casefold()
    known = {*BUILT_WORDS, *SCHEDULER_NAMES, *WITHOUT_EFFECT}
    if key.casefold() != "schedulerparameters" or name in known:
        return ""
    return f"no word of Slurm's{did_you_mean(name, known)}"


_IMPLY_ALLOC: Final = frozenset({"contain", "deferbatch", "forcerequeueonfail", "nohold", "x11"})
"""Words of PrologFlags, folded, that have prologs run when the nodes are allocated as well."""


def stands_in(key: str, value: str) -> str:
    """Return what is simulated in place of a plugin that does much the same, or the value."""
    if key.casefold() == "burstbuffertype":
        words = map(str.strip, value.split(","))
        return ",".join(_BURST_BUFFERS.get(word.casefold(), word) for word in words)
    return _STANDS_IN.get((key.casefold(), value.casefold()), value)


_STANDS_IN: Final = {
    ("selecttype", "select/cons_res"): "select/cons_tres",
    ("selecttype", "cons_res"): "select/cons_tres",
    ("selecttype", "cons_tres"): "select/cons_tres",
    ("selecttype", "linear"): "select/linear",
    ("schedulertype", "backfill"): "sched/backfill",
    ("schedulertype", "builtin"): "sched/builtin",
    ("switchtype", "none"): "switch/none",
    ("preempttype", "none"): "preempt/none",
    ("preempttype", "partition_prio"): "preempt/partition_prio",
    ("checkpointtype", "none"): "checkpoint/none",
}
"""The prefix of a plugin's type may be left out; and what cons_res shares out, cons_tres does."""

_BURST_BUFFERS: Final = {
    **{name: f"burst_buffer/{name}" for name in ("generic", "datawarp")},
    **dict.fromkeys(("cray", "burst_buffer/cray"), "burst_buffer/datawarp"),
}
"""What was called cray until 18.08 is datawarp since."""
