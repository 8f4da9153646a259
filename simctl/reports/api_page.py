"""docs/api.md, the reference of `simctl.plugin`, written from its docstrings: `make docs`."""

import ast
import enum
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any, Final

from simctl import plugin
from simctl.plugins.points import ALL, OPTIONAL

_HEAD = """\
# Reference: simctl.plugin

All that a plugin imports, from the docstrings of `simctl.plugin`. [plugins.md](plugins.md) shows
it at work, and [lifecycle.md](lifecycle.md) has every function of the three guides. Written by
`make docs`.
"""
_GROUPS: Final = {
    "Plugins": ("SwitchPlugin", "CheckpointPlugin", "BurstBufferPlugin"),
    "Around a call": (
        *("process", "PluginProcess", "now", "sleep", "start", "PluginThread", "every"),
        *("Recurring", "Event", "disk", "DiskView", "Stat", "conf", "log", "hostlist"),
        *("rpc", "slurmctld", "stepd", "StepdTask"),
    ),
    "Failing": ("SlurmError", "SLURM_SUCCESS", "SLURM_ERROR", "errno", "OutsideCallError"),
    "Packing": ("Buf",),
    "Records and what is given back": (
        *("JobRecord", "StepRecord", "JobDesc", "StepdJob", "CheckOp", "CheckpointStatus"),
        *("BurstBufferInfo", "BurstBufferPool", "BurstBufferAlloc", "BurstBufferUse"),
        *("JobInfo", "NodeInfo", "NO_VAL", "INFINITE", "SLURM_BATCH_SCRIPT"),
    ),
}


def page() -> str:
    """Return the page."""
    told = [name for names in _GROUPS.values() for name in names if hasattr(plugin, name)]
    groups = {**_GROUPS, "More": tuple(name for name in plugin.__all__ if name not in told)}
    lines = [_HEAD]
    for title, names in groups.items():
        there = [name for name in names if hasattr(plugin, name)]
        if there:
            lines.append(f"## {title}\n")
        for name in there:
            lines += [f"### {name}\n", *_entry(name, getattr(plugin, name))]
    return "\n".join(lines).rstrip() + "\n"


def _entry(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, int | str) and not isinstance(value, enum.Enum):
        yield f"`{name} = {value!r}`\n"
    elif isinstance(value, ModuleType):
        yield _prose(value.__doc__ or "")
    elif inspect.isclass(value):
        yield from _class(value)
    elif inspect.isroutine(value):
        yield f"```python\n{_signature(name, value)}\n```\n"
        yield _prose(inspect.getdoc(value) or "")
    elif type(value).__module__.startswith("simctl."):
        yield from _class(type(value), instance=True)
    else:
        yield f"{_constant_doc(name)}\n"


def _class(kind: type[Any], *, instance: bool = False) -> Iterator[str]:
    yield _prose(inspect.getdoc(kind) or "")
    if issubclass(kind, enum.Enum):
        yield ", ".join(f"`{each.name}`" for each in kind) + "\n"
        return
    yield from _fields(kind)
    methods = [
        (name, each)
        for name, each in inspect.getmembers_static(kind)
        if not name.startswith("_") and _is_ours(each)
    ]
    if not instance and "__init__" in vars(kind) and not hasattr(kind, "__attrs_attrs__"):
        init = inspect.signature(vars(kind)["__init__"])
        yield f"```python\n{kind.__name__}{_text(init)}\n```\n"
    guided = [name for name, _ in methods if name in ALL or name in OPTIONAL]
    if guided:
        yield f"Functions of the guide, all with a stub ({len(guided)}):\n"
        order = [name for name in (*ALL, *OPTIONAL) if name in guided]
        yield "| function | |\n|---|---|"
        for name in order:
            doc = (ALL | OPTIONAL)[name].doc.splitlines()[0]
            yield f"| `{_signature(name, getattr(kind, name))}` | {doc} |"
        yield ""
    rest = [(name, each) for name, each in methods if name not in guided]
    if rest:
        yield "| member | |\n|---|---|"
    for name, each in rest:
        function = each.fget if isinstance(each, property) else getattr(each, "__func__", each)
        doc = inspect.getdoc(function) or ""
        head = name if isinstance(each, property) else _signature(name, function)
        yield f"| `{head}` | {_cell(doc)} |"
    if rest:
        yield ""


def _is_ours(member: Any) -> bool:
    if isinstance(member, property):
        return bool(member.fget and member.fget.__doc__)
    function = getattr(member, "__func__", member)
    return inspect.isfunction(function) and bool(function.__doc__)


def _fields(kind: type[Any]) -> Iterator[str]:
    """Yield a table of annotated fields that have a docstring or are attrs' own."""
    found: dict[str, tuple[str, str]] = {}
    for each in reversed(kind.__mro__[:-1]):
        if each.__module__.startswith("simctl."):
            found |= _documented(each)
    if found:
        yield "| field | | |\n|---|---|---|"
        for name, (shape, doc) in found.items():
            yield f"| `{name}` | `{shape}` | {_cell(doc)} |".replace("``", "")
        yield ""


def _documented(kind: type[Any]) -> dict[str, tuple[str, str]]:
    """Return the fields of a class with their types, and what stands below them."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, tuple[str, str]] = {}
    last = ""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.target.id
            shape = ast.unparse(node.annotation)
            default = f" = {ast.unparse(node.value)}" if node.value is not None else ""
            if not last.startswith("_"):
                found[last] = (re.sub(r"\battrs\.field\(.*", "...", f"{shape}{default}"), "")
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and last in found
            and isinstance(node.value.value, str)
        ):
            found[last] = (found[last][0], node.value.value)
        else:
            last = ""
    return found


def _constant_doc(name: str) -> str:
    """Return the text that stands below a name in the source of the module."""
    body = ast.parse(inspect.getsource(plugin)).body
    for before, node in pairwise(body):
        if not (isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Expr)):
            continue
        targets = before.targets if isinstance(before, ast.Assign) else [before.target]
        named = [each.id for each in targets if isinstance(each, ast.Name)]
        if name in named and isinstance(node.value, ast.Constant):
            return str(node.value.value)
    return ""


def _signature(name: str, function: Any) -> str:
    return f"{'async ' * inspect.iscoroutinefunction(function)}{name}" + _text(
        inspect.signature(function)
    )


def _text(signature: inspect.Signature) -> str:
    """Return parameters with their defaults; types are told by the docstrings."""
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for name, each in signature.parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(parameters))


def _prose(doc: str) -> str:
    """Return a docstring as Markdown: names in double backquotes, sections as lists."""
    text = doc.replace("``", "`")
    parts = re.split(r"(?m)^(Args|Returns|Raises|Attributes|Yields):\n", text)
    lines = [parts[0].strip()]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        items = re.split(r"(?m)^ {4}(?=\S)", body)[1:]
        lines.append(f"\n{title}:\n")
        lines += [f"- {_named(' '.join(item.split()))}" for item in items]
    return "\n".join(lines) + "\n"


def _named(item: str) -> str:
    name, colon, rest = item.partition(": ")
    return f"`{name}`: {rest}" if colon and re.fullmatch(r"[\w, *]+", name) else item


def _cell(doc: str) -> str:
    """Return a docstring for a cell of a table."""
    return " ".join(_prose(doc).split()).replace("|", "\\|") if doc else ""


if __name__ == "__main__":
    sys.stdout.write(page())
