"""What a mutation does to a site: each operator changes a tree, or says that it cannot.

`dropped`, `doubled` and `unguarded` change how often a call is made; `earlier`, `later`, `first`,
`last` and `released` when; `process` and `role` where; `root` and `user` as whom; `ignored` takes a
failure for success.
"""

import ast
from collections.abc import Callable
from typing import Any, Final

from tests.mutants.sites import Function, Site

_PURE: Final = frozenset(
    {"Buf", "About", "Saved", "Packed", "step_name", "tuple", "list", "dict", "len", "range", "int"}
)
"""Functions that neither see nor change anything but what they are given."""

_LEAVES: Final = (ast.Return, ast.Raise, ast.Break, ast.Continue)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else super().visit(node)


def expression(text: str, **parts: ast.expr) -> ast.expr:
    """Read an expression, with nodes in the places of the names."""

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return parts.get(node.id, node)

    return Fill().visit(ast.parse(text, mode="eval").body)  # type: ignore[no-any-return]


def _put(site: Site, new: ast.expr) -> bool:
    assert site.awaited is not None
    site.block[site.place] = _Replace(site.awaited, new).visit(site.statement)
    return True


def dropped(site: Site) -> bool:
    """Do not call, and take it for a success."""
    if site.plain or site.awaited is None:
        site.block[site.place] = ast.Pass()
        return True
    return _put(site, expression(site.good))


def doubled(site: Site) -> bool:
    """Call twice in a row, and take the second result."""
    if site.awaited is None:
        return False
    return _put(site, expression("(first, second)[1]", first=site.awaited, second=site.awaited))


def ignored(site: Site) -> bool:
    """Go on after a failure as if all was well."""
    arguments = judged_by(site)
    if not arguments or site.awaited is None:
        return False
    return _put(site, expression(f"_acting.ignored(was, {arguments})", was=site.awaited))


def judged_by(site: Site) -> str:
    """Return what is to be known to see a failure in a result, or nothing if nobody looks for one.

    These are arguments of `acting.ignored`.
    """
    good = site.good
    if site.plain or good.strip("[]") in {"None", "''", "{}", ""} or good.startswith("("):
        return ""
    return f"{good}, counts=True" if "+0" in good else good


def unguarded(site: Site) -> bool:
    """Call even where a condition before it says no."""
    if site.awaited is None:
        return False
    for node in ast.walk(site.statement):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for operand in node.values[1:]:
                if any(each is site.awaited for each in ast.walk(operand)):
                    site.block[site.place] = _Replace(node, operand).visit(site.statement)
                    return True
    return False


def _dressed(name: str) -> Callable[[Site], bool]:
    def operator(site: Site) -> bool:
        if site.who is None or site.awaited is None:
            return False
        call = site.awaited.value
        assert isinstance(call, ast.Call)
        if any(isinstance(node, ast.Await) for node in ast.walk(call)):
            return False
        who = call.args[site.who]
        return _put(
            site, ast.Await(expression(f"_acting.{name}(who, lambda: call)", who=who, call=call))
        )

    return operator


# Moves.


def _stored(node: ast.AST) -> set[str]:
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    } | {each.name for each in ast.walk(node) if isinstance(each, Function)}


def _loaded(node: ast.AST) -> set[str]:
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }


def _apart(one: ast.stmt, other: ast.stmt) -> bool:
    """Return whether either makes a name that the other needs: then they cannot change places."""
    return bool(_stored(one) & (_loaded(other) | _stored(other)) or _stored(other) & _loaded(one))


def _is_quiet(statement: ast.stmt) -> bool:
    """Return whether a statement only names things, so that nobody sees when it is run."""
    if isinstance(statement, ast.Pass | Function | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return True
    if not isinstance(statement, ast.Assign):
        return False
    names = all(isinstance(each, ast.Name | ast.Tuple) for each in statement.targets)
    stores = [
        each
        for each in ast.walk(statement)
        if isinstance(each, ast.Attribute | ast.Subscript) and isinstance(each.ctx, ast.Store)
    ]
    calls = [each for each in ast.walk(statement.value) if isinstance(each, ast.Await | ast.Call)]
    reads = [each for each in ast.walk(statement.value) if isinstance(each, ast.Attribute)]
    plain = all(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in _PURE
        for each in calls
    )
    return names and not stores and plain and not (reads and calls and not plain)


def _move(site: Site, step: int, *, most: int) -> bool:
    """Move a statement past its neighbours, *most* of those that do something."""
    block, place = site.block, site.place
    if isinstance(site.statement, _LEAVES):
        # What it passes would never be done.
        return False
    passed = 0
    target = place
    other = place + step
    while 0 <= other < len(block) and passed < most:
        neighbour = block[other]
        if isinstance(neighbour, _LEAVES) or _apart(site.statement, neighbour):
            break
        if not _is_quiet(neighbour):
            passed += 1
            target = other
        other += step
    if target == place:
        return False
    block.insert(target, block.pop(place))
    return True


def earlier(site: Site) -> bool:
    """Make the call before what comes just before it."""
    return _move(site, -1, most=1)


def later(site: Site) -> bool:
    """Make the call after what comes just after it."""
    return _move(site, 1, most=1)


def first(site: Site) -> bool:
    """Make the call as early in its block as can be."""
    return _move(site, -1, most=len(site.block))


def last(site: Site) -> bool:
    """Make the call as late in its block as can be."""
    return _move(site, 1, most=len(site.block))


def released(site: Site) -> bool:
    """Make the call after the block it stands in, if that is a loop or a branch."""
    outer = site.outer
    if outer is None or site.place != len(site.block) - 1 or not site.plain:
        return False
    block, around = outer
    if len(site.block) == 1:
        site.block[:] = [ast.Pass()]
    else:
        site.block.pop()
    place = next(i for i, each in enumerate(block) if each is around)
    block.insert(place + 1, site.statement)
    return True


OPERATORS: Final[dict[str, Callable[[Site], bool]]] = {
    "dropped": dropped,
    "doubled": doubled,
    "ignored": ignored,
    "unguarded": unguarded,
    "earlier": earlier,
    "later": later,
    "first": first,
    "last": last,
    "released": released,
    "process": _dressed("elsewhere"),
    "role": _dressed("misplaced"),
    "root": _dressed("as_root_or_user"),
    "user": _dressed("as_another"),
}
"""By the name that a mutant bears, in the order in which a site's mutants are listed."""
