"""`simctl new plugin NAME --type TYPE`: a plugin that works, its scenario, its tests."""

import argparse
import keyword
import re
import shutil
import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

from simctl.status import OK, InputError

TYPES: Final = ("switch", "checkpoint", "burst_buffer", "job_submit", "cli_filter")
_WRITTEN_IN: Final = {
    "python": ("switch", "checkpoint", "burst_buffer"),
    "c": ("switch", "checkpoint"),
    "lua": ("burst_buffer", "job_submit", "cli_filter"),
}
"""The types of plugins that there are templates of, by language."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TAKEN: Final = {"attrs", "conftest", "msgspec", "pytest", "simctl", "slurm_simctl", "trio", "yaml"}
"""Modules that one of the plugin's name would hide, besides those of Python itself."""

_COMMON: Final = {
    "{type}.yaml": "{name}.scenario.yaml",
    "{type}_test.py": "test_{name}.py",
    "gitignore": ".gitignore",
}
_FILES: Final = {
    "python": {
        "{type}.py": "{name}.py",
        **_COMMON,
        "README.md": "README.md",
        "pyproject.toml": "pyproject.toml",
        "ci.yml": ".github/workflows/ci.yml",
    },
    "c": {
        "{type}.c": "{name}.c",
        **_COMMON,
        "README_c.md": "README.md",
        "Makefile": "Makefile",
        "ci_c.yml": ".github/workflows/ci.yml",
    },
    "lua": {
        "{type}.lua": "{type}.lua",
        "{type}_lua.yaml": "{name}.scenario.yaml",
        "gitignore": ".gitignore",
        "README_lua.md": "README.md",
        "ci_lua.yml": ".github/workflows/ci.yml",
    },
}
"""What each template becomes, by the plugin's language."""

_OWN: Final = {"python": "{name}.py", "c": "{name}.c", "lua": "{type}.lua"}
"""The plugin itself, by language."""

_REFERENCES: Final = {"python": "@NAME@:@CLASS@", "c": "./@NAME@.c", "lua": ""}
"""How a scenario names the plugin."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `new plugin` takes."""
    parser.add_argument("name", metavar="NAME", help="of the plugin, its module and its folder")
    parser.add_argument("--type", required=True, metavar="|".join(TYPES), help="of the plugin")
    parser.add_argument(
        "--lang", default="python", metavar="python|lua|c", help="what it is written in"
    )


def new_plugin(name: str, plugin_class: str, language: str) -> int:
    """Make the folder *name* here, and say what to do in it.

    Raises:
        InputError: The name will not do, the type or language is not built, or the folder is there.
    """
    _check_kind(plugin_class, language)
    _check_name(name, plugin_class)
    folder = Path(name)
    try:
        folder.mkdir()
    except FileExistsError:
        raise InputError(
            f"new plugin: {name} is there already, and is left alone; choose another name, or "
            "another folder to work in"
        ) from None
    except OSError as error:
        raise InputError(f"new plugin: {name}: it cannot be made: {error.strerror}") from error
    try:
        written = _fill(folder, name, plugin_class, language)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)  # it is ours, and not whole
        raise InputError(f"new plugin: {name}: it cannot be written: {error.strerror}") from error
    if language == "lua":
        _check_lua()
    what = f"{plugin_class}.lua" if language == "lua" else f"{plugin_class}/{name}"
    print(f"{what} is in {name}/:")
    for each in written:
        print(f"  {each}")
    own = _OWN[language].format(name=name, type=plugin_class)
    print(
        f"\n  cd {name}\n  simctl run {name}.scenario.yaml --explain\n"
        f"  simctl plugins check {own}\n  simctl test .\n  pytest"
    )
    return OK


def _check_lua() -> None:
    """Say, where Lua is not installed, what would do; what was made stays."""
    from simctl.plugins.lua.state import LuaMissingError, require_lua

    try:
        require_lua()
    except LuaMissingError as error:
        print(f"simctl: {error}", file=sys.stderr)


def _check_kind(plugin_class: str, language: str) -> None:
    if plugin_class not in TYPES:
        what = f"--type {plugin_class} is no type of plugin"
        raise InputError(f"new plugin: {what}; there are {', '.join(TYPES)}")
    if language not in _FILES:
        what = f"--lang {language} is not known"
        raise InputError(f"new plugin: {what}; there are {', '.join(_FILES)}")
    if plugin_class not in _WRITTEN_IN[language]:
        others = [each for each, types in _WRITTEN_IN.items() if plugin_class in types]
        raise InputError(
            f"new plugin: --lang {language} has no {plugin_class} plugins; there are "
            f"{', '.join(_WRITTEN_IN[language])}, and {plugin_class} in {', '.join(others)}"
        )


def _check_name(name: str, plugin_class: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"new plugin: {name!r} will not do as a name: it is one of a Python module, so up to "
            "40 small letters, digits and underscores, a letter first, such as my_fabric"
        )
    if keyword.iskeyword(name) or name in sys.stdlib_module_names or name in _TAKEN:
        raise InputError(
            f"new plugin: a module {name} would hide another of this name; try my_{name}"
        )
    from simctl.plugins.registry import Registry

    known = [each.plugin_type for each in Registry(installed=False).listing()]
    if f"{plugin_class}/{name}" in known and name != "lua":
        raise InputError(f"new plugin: there is a {plugin_class}/{name} already; try my_{name}")


def _fill(folder: Path, name: str, plugin_class: str, language: str) -> list[str]:
    """Write each file; return their names."""
    templates = files("simctl.starter") / "templates"
    words = {
        "@PLUGIN@": _REFERENCES[language],
        "@NAME@": name,
        "@TYPE@": plugin_class,
        "@CLASS@": "".join(part.capitalize() for part in name.split("_")) + "Plugin",
        "@DIST@": re.sub("_+", "-", name.rstrip("_")),
        "@KEY@": {"switch": "SwitchType", "checkpoint": "CheckpointType"}.get(
            plugin_class, "BurstBufferType"
        ),
    }
    written = []
    for source, target in _FILES[language].items():
        text = (templates / f"{source.format(type=plugin_class)}.tmpl").read_text("utf-8")
        for word, value in words.items():
            text = text.replace(word, value)
        path = folder / target.format(name=name, type=plugin_class)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(target.format(name=name, type=plugin_class))
    if language == "c":
        from simctl.plugins.compiled.build import HEADER

        (folder / HEADER.name).write_text(HEADER.read_text("utf-8"), encoding="utf-8")
        written.append(HEADER.name)
    return written
