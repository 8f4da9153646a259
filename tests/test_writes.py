"""Records of slurmctld are written by fewer and fewer rooms: the number may only fall."""

import ast
from pathlib import Path

import attrs

from simctl.ctld.state.records import JobArray, JobRecord, NodeRecord, PartRecord, StepRecord

ROOT = Path(__file__).parent.parent / "simctl" / "ctld"
FIELDS = {
    field.name
    for kind in (JobArray, JobRecord, NodeRecord, PartRecord, StepRecord)
    for field in attrs.fields(kind)
}
MOST = 0
"""Writes from outside `state/`; whoever moves some into a record's method lowers this."""

_TABLES = frozenset({"self", "ctld", "bb", "call", "trace", "kernel", "state"})
"""Names that stand for no record."""


def writes(source: str) -> int:
    """Return how often fields of records are assigned in a text."""
    count = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        for target in targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                place = each.value if isinstance(each, ast.Subscript) else each
                count += (
                    isinstance(place, ast.Attribute)
                    and place.attr in FIELDS
                    and isinstance(place.value, ast.Name)
                    and place.value.id not in _TABLES
                )
    return count


def test_no_more_writes_to_records_come_from_outside_their_room() -> None:
    """What belongs together is reset together where it is one method of the record."""
    found = sum(
        writes(file.read_text()) for file in ROOT.rglob("*.py") if file.parent.name != "state"
    )
    assert found <= MOST


def test_a_write_is_counted_in_each_of_its_forms() -> None:
    """An assignment, one of several, one that adds, an item, a deletion; no table's own field."""
    text = "job.reason = 1\njob.nodes, x = (), 2\njob.end_us += 1\njob.shares[0] = 3\n"
    assert writes(text + "del step.reported\n") == 5
    assert writes("ctld.running = {}\nself.steps = {}\n") == 0
