"""The list of mutants: every operator on every site that it can be applied to, always in one order.

A mutant's id is ``file:function:point:operator``. It stays the same as long as the function makes
the call; the second call of one point in a function is ``point#2``.
"""

import ast
import difflib
import pickle
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs

from tests.mutants.operators import OPERATORS, expression, judged_by
from tests.mutants.sites import LIFECYCLE, Finder, Place, Site, read

MOVES: Final = frozenset({"earlier", "later", "first", "last", "released", "unguarded"})
"""Operators after which the call may be made in runs that did not make it before."""


@attrs.frozen(kw_only=True)
class Mutant:
    """One mutation: where it is, and what becomes of the function."""

    id: str
    path: str
    module: str
    function: str
    """The function at the top of the module or of a class that is changed."""

    line: int
    depth: int
    """How many calls away from the plugin it is; see `sites`."""

    block: str
    """The probe at the start of the block that the call stands in."""

    site: str
    """The probe at the call; of one whose failure is ignored, at its failure."""

    moves: bool
    text: str
    """The function as it is to be, without comments."""

    original: str

    def diff(self) -> str:
        """Show what is changed."""
        before, after = self.original.splitlines(), self.text.splitlines()
        lines = difflib.unified_diff(before, after, self.path, self.id, lineterm="", n=2)
        return "\n".join(lines)


def mutants(root: Path, names: Iterable[str] = LIFECYCLE) -> list[Mutant]:
    """List every mutant of the lifecycle code of a tree."""
    finder = read(root, names)
    return [mutant for place in finder.places for mutant in _of_place(finder, place)]


def _of_place(finder: Finder, place: Place) -> list[Mutant]:
    found: list[Mutant] = []
    known: set[str] = set()
    sites = finder.sites(place, place.node)
    if not sites:
        return []
    original = ast.unparse(place.node)
    # To pickle a tree and read it back is many times as fast as to copy it.
    pickled = pickle.dumps(place.node)
    changed = pickle.loads(pickled)
    for number, site in enumerate(sites):
        for name, operator in OPERATORS.items():
            if not operator(finder.sites(place, changed)[number]):
                continue
            text = ast.unparse(ast.fix_missing_locations(changed))
            changed = pickle.loads(pickled)
            if text in known or text == original:
                continue
            known.add(text)
            found.append(
                Mutant(
                    id=f"{place.path}:{site.label}:{name}",
                    path=place.path,
                    module=place.module,
                    function=place.name,
                    line=site.statement.lineno,
                    depth=site.depth,
                    block=probe_of_block(place, sites, site),
                    site=f"{place.path}:{site.label}{':failed' if name == 'ignored' else ''}",
                    moves=name in MOVES,
                    text=text,
                    original=original,
                )
            )
    return found


def probe_of_block(place: Place, sites: list[Site], site: Site) -> str:
    """Name the probe at the start of a site's block."""
    blocks: list[list[ast.stmt]] = []
    for each in sites:
        block = each.outer[0] if each.outer is not None else each.block
        if not any(block is known for known in blocks):
            blocks.append(block)
    block = site.outer[0] if site.outer is not None else site.block
    number = next(i for i, each in enumerate(blocks) if each is block)
    return f"{place.path}:{place.name}:block {number}"


def probed(finder: Finder, place: Place) -> str:
    """Return a function's text with probes at its blocks and calls, or nothing if it has none."""
    changed = pickle.loads(pickle.dumps(place.node))
    sites = finder.sites(place, changed)
    if not sites:
        return ""
    blocks = {
        probe_of_block(place, sites, site): site.outer[0] if site.outer else site.block
        for site in sites
    }
    at = {id(site.awaited): (f"{place.path}:{site.label}", judged_by(site)) for site in sites}
    _Probing(at).visit(changed)
    for probe, block in blocks.items():
        block.insert(0, ast.parse(f"_acting.hit({probe!r})").body[0])
    for site in sites:
        if site.awaited is None:
            probe = f"{place.path}:{site.label}"
            site.block.insert(0, ast.parse(f"_acting.hit({probe!r})").body[0])
    return ast.unparse(ast.fix_missing_locations(changed))


class _Probing(ast.NodeTransformer):
    def __init__(self, at: dict[int, tuple[str, str]]) -> None:
        self._at = at

    def visit_Await(self, node: ast.Await) -> ast.AST:
        known = self._at.get(id(node))
        self.generic_visit(node)
        if known is None:
            return node
        probe, arguments = known
        call = f"_acting.failed({probe!r}, call, {arguments})" if arguments else "call"
        return expression(f"(_acting.hit({probe!r}), {call})[1]", call=node)


def replaced(source: str, changes: dict[str, str]) -> str:
    """Return a module's source with other texts for some functions, named as `Place` names them."""
    lines = source.splitlines()
    spans: list[tuple[int, int, str]] = []
    tree = ast.parse(source)
    for node in tree.body:
        kind = node.name if isinstance(node, ast.ClassDef) else ""
        for each in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{kind}.{each.name}" if kind else each.name
                if name in changes:
                    first = min([each.lineno, *(d.lineno for d in each.decorator_list)])
                    text = textwrap.indent(changes[name], " " * each.col_offset)
                    spans.append((first - 1, each.end_lineno or first, text))
    for start, end, text in sorted(spans, reverse=True):
        lines[start:end] = text.splitlines()
    future = next(
        (node for node in tree.body if not isinstance(node, ast.Expr)), tree.body[0]
    ).lineno
    # Decorators and comments may stand before the first statement; imports come first in our files.
    lines.insert(future - 1, "from simctl import _acting")
    return "\n".join(lines) + "\n"
