"""Whether a class fits its guide: everything that does not, at once."""

import difflib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from simctl.plugins.guard import PluginError, loading
from simctl.plugins.points import BY_CLASS, OPTIONAL
from simctl.plugins.points.declare import Point

SLURM_VERSIONS: Final = {"guide": (19, 5, 8), "modern": (18, 8, 9)}
"""The Slurm that each model follows, by which a plugin's version is judged."""

_INTERFACE_VERSION_MAX: Final = 0xFFFF


def slurm_version_number(major: int, minor: int, micro: int) -> int:
    """Return a version of Slurm as its plugins bear it."""
    return major << 16 | minor << 8 | micro


PREFIXES: Final = {"switch": "switch_p_", "checkpoint": "slurm_ckpt_", "burst_buffer": "bb_p_"}

_LATER: Final = {
    "switch": """
        libstate_clear save restore build_stepinfo duplicate_stepinfo free_stepinfo pack_stepinfo
        unpack_stepinfo job_start job_complete fs_init extern_stepinfo extern_step_fini
    """,
    "checkpoint": "",
    "job_submit": "",
    "cli_filter": "",
    "burst_buffer": "build_het_job_script run_script",
}
"""Functions that other versions of Slurm have: a plugin may bring them, uncalled."""


_KNOWN: Final[WeakKeyDictionary[type[Any], tuple[str, ...]]] = WeakKeyDictionary()
"""What is wrong with the classes that were looked at: a search asks for each run."""


def check_class(kind: type[Any], reference: str, model: str = "") -> str:
    """Check a plugin class against its guide and return its type.

    With a *model* its version is held against the Slurm that the model follows.

    Raises:
        PluginError: Everything that is missing or does not fit, at once.
    """
    with loading(f"plugin {reference!r}"):
        known = _KNOWN.get(kind)
        if known is None:
            known = _KNOWN[kind] = tuple(_mistakes(kind))
        mistakes = list(known)
        if model:
            mistakes += _version_mistakes(kind, model)
        if mistakes:
            raise PluginError(*(f"plugin {reference!r}: {mistake}" for mistake in mistakes))
        plugin_type: str = kind.plugin_type
        return plugin_type


def _mistakes(kind: type[Any]) -> Iterator[str]:
    yield from _identity_mistakes(kind)
    yield from _construction_mistakes(kind)
    plugin_type = getattr(kind, "plugin_type", None)
    plugin_class = plugin_type.partition("/")[0] if isinstance(plugin_type, str) else ""
    for name in ("init", "fini"):
        if hasattr(kind, name):
            yield from _misfits(kind, name, ())
    if plugin_class not in BY_CLASS:
        return
    for point in BY_CLASS[plugin_class]:
        yield from _misfits(kind, point.name, point.parameters)
    for point in OPTIONAL.values():
        if point.plugin_class == plugin_class and hasattr(kind, point.name):
            yield from _misfits(kind, point.name, point.parameters)
    yield from _strangers(kind, plugin_class)


def _identity_mistakes(kind: type[Any]) -> Iterator[str]:
    plugin_type = getattr(kind, "plugin_type", None)
    if not isinstance(plugin_type, str) or not _TYPE.fullmatch(plugin_type):
        yield f"plugin_type is {_or_missing(plugin_type)}; {_wanted_type(plugin_type)}"
    name = getattr(kind, "plugin_name", None)
    if not isinstance(name, str) or not name:
        yield f"plugin_name is {_or_missing(name)}; any text that describes the plugin will do"
    version = getattr(kind, "plugin_version", 0)
    if type(version) is not int or version < 0:
        yield (
            f"plugin_version is {version!r}; leave it out, or give the number of the plugin "
            "interface, from 0 on"
        )


def _or_missing(value: Any) -> str:
    return "missing" if value is None or value == "" else repr(value)


def _wanted_type(found: Any) -> str:
    wanted = "expected " + ", ".join(f"'{name}/...'" for name in BY_CLASS)
    if not isinstance(found, str) or "/" not in found:
        return wanted
    near = difflib.get_close_matches(found.partition("/")[0], BY_CLASS, n=1)
    return f"{wanted}; did you mean '{near[0]}/{found.partition('/')[2]}'?" if near else wanted


def _version_mistakes(kind: type[Any], model: str) -> Iterator[str]:
    """Hold a version against the simulated Slurm.

    A small number is a version of the plugin interface, as in the time of the switch guide, and any
    is accepted; a large one names the Slurm that the plugin was built for.
    """
    own = getattr(kind, "simctl_misfit", None)
    if own is not None:
        # One in C, which says itself what it was built for.
        yield from own(model)
        return
    version = getattr(kind, "plugin_version", 0)
    if type(version) is not int or version <= _INTERFACE_VERSION_MAX:
        return
    wanted = slurm_version_number(*SLURM_VERSIONS[model])
    if version != wanted:
        yield (
            f"plugin_version {version} is that of Slurm {_spelled(version)}, and model {model} "
            f"loads plugins of {_spelled(wanted)} ({wanted}); leave plugin_version out, or give a "
            "number of the plugin interface, up to 65535"
        )


def _spelled(version: int) -> str:
    return f"{version >> 16}.{version >> 8 & 0xFF:02d}.{version & 0xFF}"


def _construction_mistakes(kind: type[Any]) -> Iterator[str]:
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        yield f"it is abstract: {', '.join(missing)}"
        return
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return
    needed = [each.name for each in parameters if _is_needed(each)]
    if needed:
        yield f"__init__ needs {', '.join(needed)}; a plugin is made without arguments"


def _is_needed(parameter: inspect.Parameter) -> bool:
    various = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return parameter.default is inspect.Parameter.empty and parameter.kind not in various


def _strangers(kind: type[Any], plugin_class: str) -> Iterator[str]:
    """Tell of functions that look like a guide's and are not this guide's."""
    optional = [each for each in OPTIONAL.values() if each.plugin_class == plugin_class]
    known = {point.name: point for point in (*BY_CLASS[plugin_class], *optional)}
    prefix = PREFIXES.get(plugin_class)
    if prefix is None:
        yield from _misspelt(kind, known)
        return
    later = {prefix + name for name in _LATER[plugin_class].split()}
    for name in dir(kind):
        if name in known or name in later or not name.startswith(tuple(PREFIXES.values())):
            continue
        if not name.startswith(prefix):
            yield f"{name} is no function of a {plugin_class} plugin; nobody would call it"
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if near:
            yield f"the guide has no {name}; did you mean `{_written(known[near[0]])}`?"


def _misspelt(kind: type[Any], known: Mapping[str, Point]) -> Iterator[str]:
    """Tell of functions whose names are nearly those of a class that has no prefix for them."""
    for name, value in vars(kind).items():
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if near and name not in known and callable(value):
            yield f"there is no {name}; did you mean `{_written(known[near[0]])}`?"


def _written(point: Point) -> str:
    return f"def {point.name}({', '.join(('self', *point.parameters))})"


_TYPE: Final = re.compile(rf"({'|'.join(BY_CLASS)})/[^\s/]+")
_BY_PLACE: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def _as_written(parameters: Iterable[inspect.Parameter]) -> str:
    """Return parameters as they are written, without types."""
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return str(inspect.Signature(bare))


def _misfits(kind: type[Any], name: str, parameters: tuple[str, ...]) -> Iterator[str]:
    method = inspect.getattr_static(kind, name, None)
    wanted = f"def {name}({', '.join(('self', *parameters))})"
    if method is None:
        yield f"{name} is missing; the guide wants `{wanted}`"
        return
    if isinstance(method, staticmethod | classmethod):
        yield f"{name} is a {type(method).__name__}; the guide wants `{wanted}`, a plain method"
        return
    if not callable(method):
        yield f"{name} is a {type(method).__name__}; the guide wants `{wanted}`"
        return
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        yield f"{name} is a generator; write a `def` or `async def` without `yield`"
        return
    try:
        have = tuple(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):
        yield f"{name} does not tell its parameters; the guide wants `{wanted}`"
        return
    # Daemons pass the arguments by place.
    positional = all(parameter.kind in _BY_PLACE for parameter in have)
    if not positional or tuple(parameter.name for parameter in have)[1:] != parameters:
        got = f"def {name}{_as_written(have)}"
        yield f"{name} does not fit: it is `{got}`, the guide wants `{wanted}`"
