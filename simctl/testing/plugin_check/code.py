"""A plugin's own code: the modules it is made of, and whether it uses this or that."""

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_SETS: Final = frozenset({"set", "frozenset"})


def modules_of(kind: type[Any]) -> Iterator[ModuleType]:
    """Return the modules of a class, and those beside them that they import from."""
    waiting = [base.__module__ for base in kind.__mro__]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        module = sys.modules.get(name)
        if module is None or name in seen or not _is_the_plugins(module, kind):
            continue
        seen.add(name)
        yield module
        for value in vars(module).values():
            origin = value.__name__ if isinstance(value, ModuleType) else None
            waiting.append(str(origin or getattr(value, "__module__", "")))


def _is_the_plugins(module: ModuleType, kind: type[Any]) -> bool:
    own = getattr(sys.modules.get(kind.__module__), "__file__", None)
    file = getattr(module, "__file__", None)
    if own is None or file is None:
        return False
    return module.__name__ == kind.__module__ or (
        Path(file).parent == Path(own).parent and not module.__name__.startswith("simctl.plugin.")
    )


def source_of(module: ModuleType) -> str:
    """Return the text of a module, nothing where there is none."""
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return ""


def files_of(kind: type[Any]) -> frozenset[str]:
    """Return the files of a class's code."""
    return frozenset(str(module.__file__) for module in modules_of(kind))


def starts_threads(kind: type[Any]) -> bool:
    """Return whether the code of a plugin calls something named `start`."""
    return any(isinstance(node, ast.Call) and _name(node.func) == "start" for node in _nodes(kind))


def uses_sets(kind: type[Any]) -> bool:
    """Return whether the code of a plugin makes sets, whose order is another in each process."""
    return any(
        isinstance(node, ast.Set | ast.SetComp)
        or (isinstance(node, ast.Call) and _name(node.func) in _SETS)
        or (isinstance(node, ast.BinOp) and _name(getattr(node.left, "func", None)) == "keys")
        for node in _nodes(kind)
    )


def _nodes(kind: type[Any]) -> Iterator[ast.AST]:
    for module in modules_of(kind):
        try:
            yield from ast.walk(ast.parse(source_of(module)))
        except (SyntaxError, ValueError, RecursionError):
            continue


def _name(node: Any) -> str:
    """Return the last name of what is called: `start` of both `start()` and `plugin.start()`."""
    return str(getattr(node, "id", getattr(node, "attr", "")))


__all__ = ["files_of", "modules_of", "source_of", "starts_threads", "uses_sets"]
