"""`simctl plugins list` and `show`: which points and plugins there are."""

import inspect
import textwrap
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from simctl.orderings.page import is_general, listed, rules_about
from simctl.plugins.points import ALL, BY_CLASS, OPTIONAL, OWN
from simctl.plugins.points.page import describe, overview
from simctl.plugins.registry import Known, PluginError, Registry, find_plugins
from simctl.status import OK, WRONG_INPUT, InputError


def list_plugins() -> int:
    """Print the three classes and every plugin there is; 2 if one of them cannot be used."""
    print("Classes of plugins, and how many functions their guides have:")
    for plugin_class, points in BY_CLASS.items():
        later = sum(bool(point.later) for point in points)
        told = f"; {len(points) - later} are called by runs" if later else ""
        print(f"  {plugin_class:<13} {len(points)} functions{told}")
    print("\nPlugins:")
    listed = Registry().listing()
    for known in listed:
        print(f"  {known.plugin_type:<20} {known.name or known.origin}")
        if known.name:
            print(f"  {'':<20} {known.origin}")
        for line in known.problem.splitlines():
            print(f"  {'':<20} cannot be used: {line}")
    print(
        "\n`simctl plugins show switch` lists a class, `show switch/none` a plugin,\n"
        "`show switch_p_job_attach` a function; `simctl plugins check FILE` tries a\n"
        "plugin of yours."
    )
    return WRONG_INPUT if any(known.problem for known in listed) else OK


def show(name: str) -> int:
    """Print a class, a plugin or a function.

    Raises:
        InputError: There is nothing of this name.
    """
    if name in BY_CLASS:
        lines = [*overview(name), "", *_orderings_of_class(name)]
        if name in ALL:
            # A class and one of its functions of the same name.
            lines += ["", *describe(ALL[name]), *_orderings_about(name)]
    elif name in ALL or name in OPTIONAL:
        lines = [*describe((ALL | OPTIONAL)[name]), *_orderings_about(name)]
    elif name in ("init", "fini"):
        lines = _joined([describe(OWN[plugin_class, name]) for plugin_class in BY_CLASS])
        lines += _orderings_about(name)
    else:
        lines = _shown_plugin(name)
    print("\n".join(lines))
    return OK


def _orderings_about(name: str) -> list[str]:
    rules = rules_about(name)
    return ["", "Built-in orderings about it (docs/orderings.md):", *listed(rules)] if rules else []


def _orderings_of_class(plugin_class: str) -> list[str]:
    """Return a line for each function of a class that has orderings of its own: their names."""
    lines = ["Built-in orderings (docs/orderings.md; `show FUNCTION` says what they say):"]
    for point in BY_CLASS[plugin_class]:
        found = [rule for rule in rules_about(point.name) if not is_general(rule)]
        if found:
            text = ", ".join(f"{rule.label} {rule.name}" for rule in found)
            lines += textwrap.wrap(
                f"{point.name}: {text}", 79, initial_indent="  ", subsequent_indent="      "
            )
    return lines


def _joined(parts: list[list[str]]) -> list[str]:
    return [line for number, part in enumerate(parts) for line in ([""] if number else []) + part]


def _shown_plugin(name: str) -> list[str]:
    known = [each for each in Registry().listing() if each.plugin_type == name]
    if known:
        return _joined([_plugin_lines(each) for each in known])
    if not (name.endswith(".py") or ":" in name):
        names = (*BY_CLASS, *ALL, *OPTIONAL, *(each.plugin_type for each in Registry().listing()))
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(
            f"plugins show: there is no class, plugin or function {name!r}{hint}. "
            "A plugin of your own is named by its file: ./my_switch.py"
        )
    try:
        found = find_plugins(name, Path.cwd())
    except PluginError as error:
        raise InputError(str(error)) from error
    registry = Registry()
    return _joined([_plugin_lines(registry.look_at(each.kind, each.origin)) for each in found])


def _plugin_lines(known: Known) -> list[str]:
    lines = [
        f"{known.plugin_type}: {known.name or 'no name'}",
        f"  {known.origin}",
    ]
    if known.version not in ("", "0"):
        lines.append(f"  version {known.version}")
    lines += [f"  cannot be used: {line}" for line in known.problem.splitlines()]
    plugin_class = known.plugin_type.partition("/")[0]
    if known.kind is None or plugin_class not in BY_CLASS:
        return lines
    document = inspect.getdoc(known.kind)
    if document:
        lines.append("")
        for line in document.splitlines():
            lines += textwrap.wrap(line, 79, initial_indent="  ", subsequent_indent="  ") or [""]
    points = (*BY_CLASS[plugin_class], *OPTIONAL.values())
    own = [point.name for point in points if _is_own(known.kind, point.name)]
    own = [name for name in ("init", "fini") if _is_own(known.kind, name)] + own
    lines += ["", f"  Its own functions ({len(own)}; the others are stubs):"]
    lines += [f"    {name}" for name in own] or ["    none"]
    return lines


def _is_own(kind: type[Any], name: str) -> bool:
    """Return whether a plugin defines a function itself, rather than its base class."""
    for base in kind.__mro__:
        if name in vars(base):
            return base.__module__ != "simctl.plugin"
    return False


def print_header() -> int:
    """Print the header for plugins in C; return the exit status."""
    from simctl.plugins.compiled.build import HEADER

    print(HEADER.read_text("utf-8"), end="")
    return OK
