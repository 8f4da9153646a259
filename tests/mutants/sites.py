"""Where the lifecycle code calls plugins: found in its syntax, so that no list of places grows old.

A site is an awaited call. At depth 1 it is a call of a plugin function, by way of `Hooks` or of a
wrapper that is handed the point. At depth 2 it is a call of a function that holds a site of depth
1, and so on: to move one moves all that it does. Beside these stand the acts that decide as whom
a process calls.
"""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from simctl.plugins.points import ALL, OPTIONAL
from simctl.plugins.points.declare import Returns

LIFECYCLE: Final = (
    "simctl/ctld",
    "simctl/commands",
    "simctl/api",
    "nodes",
    "stepd",
    "plugins/hooks.py",
)
"""The files and folders whose plugin calls are mutated."""

DEEPEST: Final = 3

POINT: Final = re.compile(r"(switch_p|slurm_ckpt|bb_p)_\w+")
_LOOKS: Final = frozenset({"permit", "has", "takes_time"})
"""Methods that are given a point and call nothing."""

_HOOKS: Final = frozenset({"hooks", "_hooks"})
_OWNERS: Final = {"bb": "BurstBuffers", "_link": "ControllerLink"}
"""Classes of attributes whose methods bear names that other classes have as well."""

_ACTS: Final = frozenset({"become_user"})
_IDS: Final = frozenset({"euid", "uid"})
_PROCESSES: Final = frozenset({"who", "process", "_process", "manager", "session", "stepd"})
"""What the process that makes a call is known by, as the argument after the point."""

_GOOD: Final = {
    Returns.COUNT: "+0",
    Returns.NUMBER: "+0",
    Returns.TIME: "+0",
    Returns.SIZE_MB: "+0",
    Returns.OBJECT: "_acting.NULL",
    Returns.THREE: "1",
    Returns.BOOL: "True",
    Returns.TEXT: "''",
    Returns.VOID: "None",
    Returns.DATA: "None",
}
"""What a call that went well may have returned, where that is not 0 alone; +0 is any count."""

_GOOD_OF_TYPE: Final = {
    "int": "0",
    "bool": "True",
    "str": "''",
    "Handle": "_acting.NULL",
    "None": "None",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen(kw_only=True)
class Place:
    """A function at the top of a module or of a class, and the file that holds it."""

    path: str
    module: str
    name: str
    node: Function
    kind: str
    """The class it is a method of, if any."""

    names: Mapping[str, tuple[str, str]]
    """What names of the module come from elsewhere: the module, and the name there."""


@attrs.frozen(kw_only=True, eq=False)
class Site:
    """A call in a function, in the tree that it was found in."""

    label: str
    """Names it within its file: function, point, and which one of several."""

    depth: int
    """0 for an act that changes as whom a process acts."""

    awaited: ast.Await | None
    block: list[ast.stmt]
    statement: ast.stmt
    outer: tuple[list[ast.stmt], ast.stmt] | None
    """The block that holds the statement whose block this is."""

    who: int | None
    """Which argument is the process that calls."""

    good: str
    """What it may return when all is well, in Python."""

    plain: bool
    """Nobody looks at what it returns."""

    @property
    def place(self) -> int:
        """Return where in its block the statement stands."""
        return next(i for i, each in enumerate(self.block) if each is self.statement)


def files(root: Path, names: Iterable[str] = LIFECYCLE) -> list[str]:
    """Return the paths of the lifecycle code, relative to *root*."""
    found: list[Path] = []
    for name in names:
        path = root / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [path.relative_to(root).as_posix() for path in found]


def module_of(path: str) -> str:
    """Return the name a file is imported by."""
    name = path.removesuffix(".py").replace("/", ".")
    return name if name.startswith("simctl.") else f"simctl.{name}"


def places(root: Path, path: str) -> list[Place]:
    """Return every function of a file that is not inside another."""
    tree = ast.parse((root / path).read_text())
    module = module_of(path)
    names = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("simctl")
        for alias in node.names
    }
    found = []
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        kind = node.name if isinstance(node, ast.ClassDef) else ""
        found += [
            Place(
                path=path,
                module=module,
                name=f"{kind}.{each.name}" if kind else each.name,
                node=each,
                kind=kind,
                names=names,
            )
            for each in inner
            if isinstance(each, Function)
        ]
    return found


class Finder:
    """Finds the sites of functions, once it has seen all of them."""

    def __init__(self, every: list[Place]) -> None:
        self.places = every
        self._methods: dict[str, list[Place]] = {}
        for place in every:
            if place.kind:
                self._methods.setdefault(place.name.split(".")[1], []).append(place)
        self._known = {(place.module, place.name): place for place in every}
        self._carriers: dict[tuple[str, str], tuple[int, str]] = {}
        """Of each function that holds sites, how deep a call of it is, and its good result."""

        for depth in range(2, DEEPEST + 1):
            found = [place for place in every if self._calls_plugins(place)]
            for place in found:
                known = depth, _good_of(place.node)
                self._carriers.setdefault((place.module, place.name), known)

    def _calls_plugins(self, place: Place) -> bool:
        return any(site.depth for site in self.sites(place, place.node))

    def sites(self, place: Place, node: Function) -> list[Site]:
        """Return the sites in *node*, which is the function of a place or a copy of it."""
        counts: dict[str, itertools.count[int]] = {}
        found = []
        for block, statement, inside, outer in _statements(node.body):
            for heading in _headings(statement):
                for awaited in ast.walk(heading):
                    named = self._named(place, awaited)
                    if named is None:
                        continue
                    name, depth, who, good = named
                    number = next(counts.setdefault(name, itertools.count(1)))
                    suffix = f"#{number}" if number > 1 else ""
                    found.append(
                        Site(
                            label=f"{place.name}{inside}:{name}{suffix}",
                            depth=depth,
                            awaited=awaited if isinstance(awaited, ast.Await) else None,
                            block=block,
                            statement=statement,
                            outer=outer,
                            who=who,
                            good=good,
                            plain=isinstance(statement, ast.Expr) and statement.value is awaited,
                        )
                    )
        return found

    def _named(self, place: Place, node: ast.AST) -> tuple[str, int, int | None, str] | None:
        """Say of a site what it calls, how deep, which argument calls, and what may come back."""
        act = _act(node)
        if act:
            return act, 0, None, "None"
        if not (isinstance(node, ast.Await) and isinstance(node.value, ast.Call)):
            return None
        call = node.value
        return _direct(call) or self._indirect(place, call)

    def _indirect(self, place: Place, call: ast.Call) -> tuple[str, int, int | None, str] | None:
        target = self._target(place, call.func)
        if target is None:
            return None
        known = self._carriers.get((target.module, target.name))
        return None if known is None else (f"{target.node.name}()", known[0], None, known[1])

    def _target(self, place: Place, func: ast.expr) -> Place | None:
        """Return the function of ours that an expression names, if that is clear."""
        if isinstance(func, ast.Name):
            module, name = place.names.get(func.id, (place.module, func.id))
            return self._known.get((module, name))
        if not isinstance(func, ast.Attribute):
            return None
        owner = func.value
        if isinstance(owner, ast.Name) and owner.id == "self" and place.kind:
            return self._known.get((place.module, f"{place.kind}.{func.attr}"))
        if isinstance(owner, ast.Name) and owner.id in place.names:
            package, name = place.names[owner.id]
            found = self._known.get((f"{package}.{name}", func.attr))
            if found is not None:
                return found
        methods = self._methods.get(func.attr, [])
        kind = _OWNERS.get(_last_name(owner))
        if kind is not None:
            return next((each for each in methods if each.kind == kind), None)
        return methods[0] if len(methods) == 1 else None


def _direct(call: ast.Call) -> tuple[str, int, int | None, str] | None:
    name = _last_name(call.func)
    if name in _LOOKS:
        return None
    if name == "blank":
        # It shows in no trace who makes a blank one, and it never tells of a failure.
        return "blank", 1, None, "(_acting.NULL)"
    for place, argument in enumerate(call.args):
        if isinstance(argument, ast.Name) and POINT.fullmatch(argument.id):
            point = (ALL | OPTIONAL)[argument.id]
            good = _GOOD.get(point.returns, "0")
            who = _caller_at(call, place + 1)
            return argument.id, 1, who, f"[{good}]" if "_ask" in name else good
    if not (isinstance(call.func, ast.Attribute) and _last_name(call.func.value) in _HOOKS):
        return None
    if name in {"load", "load_others", "unload"}:
        which = call.args[1].value if isinstance(call.args[1], ast.Constant) else "each"
        own = {"load": "init", "load_others": "init of others", "unload": "fini"}[name]
        return f"{own}.{which!s}", 1, 0, "True" if name == "load" else "None"
    if name == "strerror":
        return "strerror", 1, 0, "''"
    if name in {"call", "call_besides"}:
        return "any", 1, _caller_at(call, 1), "0"
    return None


def _caller_at(call: ast.Call, place: int) -> int | None:
    known = len(call.args) > place and _last_name(call.args[place]) in _PROCESSES
    return place if known else None


def _act(node: ast.AST) -> str:
    """Name what changes as whom a process acts."""
    if isinstance(node, ast.Call) and _last_name(node.func) in _ACTS:
        return _last_name(node.func)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in _IDS:
        return f"set_{node.attr}"
    return ""


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _good_of(node: Function) -> str:
    """Return what a function of ours may return when all is well."""
    asks = any(isinstance(each, ast.Name) and each.id == "_least" for each in ast.walk(node))
    return "1" if asks else _value_of(node.returns)


def _value_of(annotation: ast.expr | None) -> str:
    if annotation is None:
        return "None"
    text = ast.unparse(annotation).strip("'\"")
    if text in _GOOD_OF_TYPE:
        return _GOOD_OF_TYPE[text]
    if isinstance(annotation, ast.Subscript) and text.startswith("tuple[") and "..." not in text:
        elements = annotation.slice
        parts = elements.elts if isinstance(elements, ast.Tuple) else [elements]
        return f"({', '.join(map(_value_of, parts))},)"
    return {"dict": "{}", "list": "[]"}.get(text.partition("[")[0], "None")


def _headings(statement: ast.stmt) -> Iterator[ast.AST]:
    """Return the parts of a statement that are in no block of its own."""
    for name, value in ast.iter_fields(statement):
        if name in {"body", "orelse", "finalbody", "handlers", "cases", "decorator_list"}:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield each


Outer = tuple[list[ast.stmt], ast.stmt] | None


def _statements(
    block: list[ast.stmt], inside: str = "", outer: Outer = None
) -> Iterator[tuple[list[ast.stmt], ast.stmt, str, Outer]]:
    """Return every statement, with its block, the inner functions and the statement around it."""
    for statement in block:
        if isinstance(statement, ast.ClassDef):
            continue
        if isinstance(statement, Function):
            yield from _statements(statement.body, f"{inside}.{statement.name}")
            continue
        yield block, statement, inside, outer
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []), inside, (block, statement))
        for each in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _statements(each.body, inside, (block, statement))


def read(root: Path, names: Iterable[str] = LIFECYCLE) -> Finder:
    """Read the lifecycle code."""
    return Finder([place for path in files(root, names) for place in places(root, path)])
