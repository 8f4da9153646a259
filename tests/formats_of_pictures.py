"""What formats of others ask of a file: Chrome's trace events, and Mermaid's sequence diagrams.

Written after the formats' own descriptions: what is wrong is told, so that damages can be tried.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

_COMMON: Final = {"ph": str, "name": str, "pid": int, "tid": int}
_KEYS: Final[dict[str, dict[str, type]]] = {
    "X": {**_COMMON, "cat": str, "ts": int, "dur": int, "args": dict},
    "M": {**_COMMON, "args": dict},
    "s": {**_COMMON, "cat": str, "ts": int, "id": int},
    "f": {**_COMMON, "cat": str, "ts": int, "id": int, "bp": str},
}
_METADATA: Final[dict[str, tuple[str, type]]] = {
    "process_name": ("name", str),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def wrong_in_perfetto(told: Any) -> Iterator[str]:
    """Yield what a viewer of Chrome's trace events would not take, or would show wrong."""
    if not isinstance(told, dict) or not isinstance(told.get("traceEvents"), list):
        yield "no object with traceEvents"
        return
    slices: dict[tuple[int, int], list[tuple[int, int]]] = {}
    begun: dict[int, dict[str, Any]] = {}
    for number, each in enumerate(told["traceEvents"]):
        keys = _KEYS.get(each.get("ph"), {})
        if set(each) != set(keys) or any(type(each[key]) is not kind for key, kind in keys.items()):
            yield f"{number}: keys of {each.get('ph')}: {each}"
            continue
        if each["ph"] == "M":
            told_of = [(key, type(value)) for key, value in each["args"].items()]
            if told_of != [_METADATA.get(each["name"])]:
                yield f"{number}: metadata {each}"
        elif each["ts"] < 0 or each.get("dur", 1) <= 0 or min(each["pid"], each["tid"]) < 1:
            yield f"{number}: numbers of {each}"
        elif each["ph"] == "X":
            place = slices.setdefault((each["pid"], each["tid"]), [])
            place.append((each["ts"], each["ts"] + each["dur"]))
        elif each["ph"] == "s":
            begun[each["id"]] = each
    yield from _wrong_arrows(told["traceEvents"], slices, begun)


def _wrong_arrows(
    events: list[dict[str, Any]],
    slices: dict[tuple[int, int], list[tuple[int, int]]],
    begun: dict[int, dict[str, Any]],
) -> Iterator[str]:
    for number, each in enumerate(events):
        if each.get("ph") not in ("s", "f"):
            continue
        there = slices.get((each["pid"], each["tid"]), [])
        if not any(start <= each["ts"] < end for start, end in there):
            yield f"{number}: the arrow touches no slice: {each}"
        first = begun.get(each["id"], {})
        same = all(first.get(key) == each[key] for key in ("name", "cat", "id"))
        if each["ph"] == "f" and not (same and first["ts"] <= each["ts"] and each["bp"] == "e"):
            yield f"{number}: the arrow has no beginning: {each}"


_TEXT: Final = r"(?:#\d+;|[^#;\n])+"
_MERMAID: Final = {
    "participant": rf"participant (p\d+) as {_TEXT}",
    "note": rf"Note over (p\d+)(?:,(p\d+))?: {_TEXT}",
    "message": rf"(p\d+)(?:->>|--\))(p\d+): {_TEXT}",
}


def wrong_in_mermaid(text: str) -> Iterator[str]:
    """Yield the lines that are none of a sequence diagram's, or name who is not declared."""
    first, *lines = text.removesuffix("\n").split("\n")
    if first != "sequenceDiagram":
        yield first
    declared: set[str] = set()
    for line in lines:
        kinds = {kind: re.fullmatch(rf"    {form}", line) for kind, form in _MERMAID.items()}
        kind, found = next(((kind, found) for kind, found in kinds.items() if found), ("", None))
        if found is None or "%%" in line:
            yield line
            continue
        named = {each for each in found.groups() if each}
        if kind == "participant":
            if named & declared:
                yield f"declared twice: {line}"
            declared |= named
        elif named - declared:
            yield f"not declared: {line}"
