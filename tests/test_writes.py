"""Records of slurmctld are written by their own methods alone, each of which names what happens."""

import ast
from collections.abc import Iterator
from pathlib import Path

import attrs

from simctl.ctld.state.records import (
    JobArray,
    JobRecord,
    NodeRecord,
    PartRecord,
    ReservationRecord,
    StepRecord,
)

ROOT = Path(__file__).parent.parent / "simctl" / "ctld"
FIELDS = {
    field.name
    for kind in (JobArray, JobRecord, NodeRecord, PartRecord, ReservationRecord, StepRecord)
    for field in attrs.fields(kind)
}
_TABLES = frozenset({"self", "_ctld", "ctld", "bb", "call", "trace", "kernel", "state"})
"""Names that stand for no record."""

_MUTATING = frozenset(
    "add append clear difference_update discard extend insert pop popitem remove setdefault update"
    " take".split()
)
"""Methods that change the set, list, dict or room that a field holds."""


def writes(source: str) -> list[int]:
    """Return the lines of a text in which a field of a record is assigned, deleted or changed."""
    return [
        place.lineno
        for node in ast.walk(ast.parse(source))
        for place in _places(node)
        if isinstance(place, ast.Attribute)
        and place.attr in FIELDS
        and _owner(place.value) not in _TABLES
    ]


def _places(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a statement or call writes to."""
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For):
        targets = [node.target]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        targets = [node.func.value] if node.func.attr in _MUTATING else []
        if node.func.attr == "__setattr__":
            targets = [ast.Attribute(node.args[0], "state", lineno=node.lineno)]
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("setattr", "delattr"):
        # A class may be filled so; of anything else it would be a write that is not seen.
        whole = node.args[0]
        is_class = isinstance(whole, ast.Name) and whole.id[:1].isupper()
        targets = [] if is_class else [ast.Attribute(whole, "state", lineno=node.lineno)]
    else:
        return
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Tuple | ast.List):
            targets += target.elts
        elif isinstance(target, ast.Subscript | ast.Starred):
            targets.append(target.value)
        else:
            yield target


def _owner(value: ast.expr) -> str:
    """Return the last name of what a field is taken from: ``job`` of ``step.job.nodes``."""
    return value.id if isinstance(value, ast.Name) else getattr(value, "attr", "")


def test_no_write_to_a_record_comes_from_outside_its_room() -> None:
    """What belongs together is written together, by a method in `state/`."""
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in sorted(ROOT.rglob("*.py"))
        if file.parent.name != "state"
        for line in writes(file.read_text())
    ]
    assert not found


def test_a_write_is_found_in_each_of_its_forms() -> None:
    """An assignment, one of several, one that adds, an item, a deletion; no table's own field."""
    text = "job.reason = 1\njob.nodes, x = (), 2\njob.end_us += 1\nstep.job.shares[0] = 3\n"
    text += "del step.reported\njob.left.append(1)\nsetattr(part, name, 1)\n"
    assert writes(text + "object.__setattr__(job, name, 1)\n") == [1, 2, 3, 4, 5, 6, 7, 8]
    assert writes("ctld.running = {}\nself.steps = {}\nself._ctld.jobs[1] = 2\n") == []
