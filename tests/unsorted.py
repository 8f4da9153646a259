"""Finds where code goes through a set in the order of its hashes, which differ between runs.

What is a set is told by what is written: displays, calls, annotations of names, of attributes of
any class and of what functions return. A loop over one counts, and whatever makes something ordered
of one; what only asks, counts or sorts does not.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

_MAKERS = frozenset({"set", "frozenset"})
_OF_A_SET = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
_ORDER_FREE = frozenset(
    {"sorted", "set", "frozenset", "any", "all", "sum", "len", "min", "max", "Counter"}
)
"""What may be given a set, or a generator over one: its order does not come through."""

_ORDERED = frozenset(
    {"list", "tuple", "iter", "enumerate", "deque", "next", "zip", "map", "filter"}
)
_METHODS = frozenset({"join", "fromkeys", "extend"})
_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


@attrs.frozen(order=True)
class Found:
    """A place where the order of a set comes through: the function, and what is gone through."""

    file: str
    function: str
    text: str
    line: int = attrs.field(eq=False)


@attrs.frozen
class Known:
    """The attributes and the functions that are sets by their annotations, in all of the code."""

    attributes: frozenset[str]
    functions: frozenset[str]


def known(trees: Iterable[ast.Module]) -> Known:
    """Read the annotations of all classes and functions; a name that is also no set is left out."""
    attributes: dict[str, set[bool]] = {}
    functions: dict[str, set[bool]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = attributes if _is_property(node) else functions
                names.setdefault(node.name, set()).add(_says_set(node.returns))
            elif isinstance(node, ast.ClassDef):
                for each in node.body:
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                        attributes.setdefault(each.target.id, set()).add(_says_set(each.annotation))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
                attributes.setdefault(node.target.attr, set()).add(_says_set(node.annotation))
    return Known(_sure(attributes), _sure(functions))


def _sure(names: dict[str, set[bool]]) -> frozenset[str]:
    return frozenset(name for name, kinds in names.items() if kinds == {True})


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(each) for each in node.decorator_list)


def _says_set(annotation: ast.expr | None) -> bool:
    text = "" if annotation is None else ast.unparse(annotation).strip("'\"")
    head = text.removeprefix("ClassVar[").removeprefix("Final[").partition("[")[0]
    return head in ("set", "frozenset", "Set", "AbstractSet", "MutableSet")


class _Reader(ast.NodeVisitor):
    """Goes through one module, and knows which names of the function it is in are sets."""

    def __init__(self, file: str, everywhere: Known) -> None:
        self.found: list[Found] = []
        self._file = file
        self._known = everywhere
        self._scopes: list[dict[str, bool]] = [{}]
        self._names = ["<module>"]
        self._free: set[ast.AST] = set()

    def _is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name():
                return next(
                    (each[node.id] for each in reversed(self._scopes) if node.id in each), False
                )
            case ast.Attribute():
                return node.attr in self._known.attributes
            case ast.Call(func=ast.Name(id=name)):
                return name in _MAKERS or name in self._known.functions
            case ast.Call(func=ast.Attribute(attr=name, value=value)):
                of_one = name in _OF_A_SET and self._is_set(value)
                return of_one or name in self._known.functions
            case ast.BinOp(op=operator):
                # Of mappings' keys as well: what is made of them is a set.
                keys = any(_is_keys(each) for each in (node.left, node.right))
                either = keys or self._is_set(node.left) or self._is_set(node.right)
                return isinstance(operator, _OPERATORS) and either
            case ast.IfExp():
                return self._is_set(node.body) or self._is_set(node.orelse)
            case ast.BoolOp():
                return any(map(self._is_set, node.values))
            case ast.NamedExpr():
                return self._is_set(node.value)
            case _:
                return False

    def _tell(self, node: ast.expr) -> None:
        if self._is_set(node):
            text = ast.unparse(node)
            self.found.append(Found(self._file, ".".join(self._names), text, node.lineno))

    # Where names get what they are.

    def _scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._scopes.append({})
        self._names.append(node.name)
        arguments = node.args
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self._scopes[-1][each.arg] = _says_set(each.annotation)
        self.generic_visit(node)
        self._names.pop()
        self._scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._scope(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._scope(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._scopes[-1][target.id] = self._is_set(node.value)
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for one, value in zip(target.elts, node.value.elts, strict=False):
                    if isinstance(one, ast.Name):
                        self._scopes[-1][one.id] = self._is_set(value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            bare = ast.unparse(node.annotation) in ("Final", "ClassVar")
            made = bare and node.value is not None and self._is_set(node.value)
            self._scopes[-1][node.target.id] = made or _says_set(node.annotation)

    # Where the order of a set comes through.

    def visit_For(self, node: ast.For) -> None:
        self._tell(node.iter)
        self.generic_visit(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self._tell(node.iter)
        self.generic_visit(node)

    def _made_of(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp) -> None:
        if node not in self._free:
            for each in node.generators:
                self._tell(each.iter)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._made_of(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._made_of(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._made_of(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for each in node.comparators:
            self._pass_on(each)
        self.generic_visit(node)

    def _pass_on(self, node: ast.expr) -> None:
        """Let sets be unpacked where the order of the whole does not come through."""
        self._free.add(node)
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                for each in parts:
                    self._pass_on(each)
            case ast.Starred(value=value):
                self._pass_on(value)
            case ast.GeneratorExp(generators=generators) | ast.ListComp(generators=generators):
                for one in generators:
                    self._pass_on(one.iter)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        for each in node.generators:
            self._pass_on(each.iter)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        if node not in self._free:
            self._tell(node.value)
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        self._pass_on(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _ORDER_FREE:
            for each in node.args:
                self._pass_on(each)
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in _METHODS:
                name = "list"
            elif node.func.attr == "pop" and not node.args:
                self._tell(node.func.value)
            elif node.func.attr in ("update", "union", "difference_update", "intersection"):
                for each in node.args:
                    self._pass_on(each)
        if name in _ORDERED and node not in self._free:
            for each in node.args:
                self._tell(each)
        self.generic_visit(node)


def _is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Attribute) and node.func.attr == "keys"
    )


def unsorted(sources: dict[str, str]) -> Iterator[Found]:
    """Yield where the order of a set comes through in modules, which are given by their names."""
    trees = {name: ast.parse(text, name) for name, text in sources.items()}
    everywhere = known(trees.values())
    for name, tree in sorted(trees.items()):
        reader = _Reader(name, everywhere)
        reader.visit(tree)
        yield from reader.found


def product(root: Path) -> dict[str, str]:
    """Return the modules of the product by their paths."""
    paths = [
        path
        for room in ("simctl", "nodes", "stepd", "plugins")
        for path in (root / room).rglob("*.py")
    ]
    return {str(path.relative_to(root)): path.read_text() for path in sorted(paths)}
