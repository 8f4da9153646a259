"""Find plugin classes: in files, in modules, and among what is installed."""

import difflib
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

import attrs

from simctl.api.surroundings import told
from simctl.files import size
from simctl.limits import TEXT_BYTES
from simctl.plugins import compiled
from simctl.plugins.guard import PluginError, loading

_FILE_MODULE: Final = "_simctl_plugin_"
"""Beginning of the names of modules that are plugins' files."""

GROUP: Final = "simctl.plugins"
"""The entry-point group by which an installed package offers plugins."""


@attrs.frozen(kw_only=True)
class Found:
    """A plugin class, not checked yet, and where it comes from."""

    kind: type[Any]
    origin: str


def find(reference: str, folder: Path, against: compiled.Against = compiled.ALONE) -> list[Found]:
    """Return the class that a reference names, or all the plugin classes of a file or module.

    Args:
        reference: ``file.py``, ``package.module``, either with ``:Class``, or ``package.Class``;
            a module may stand behind the path of its folder, ``../there/package:Class``.
        folder: What a path starts from.
        against: What a compiled plugin finds beside itself.

    Raises:
        PluginError: There is no such file, module or class, or it cannot be imported.
    """
    if reference.endswith(compiled.SUFFIXES):
        kind = _find_compiled(reference, folder, against)
        return [Found(kind=kind, origin=f"from {reference}")]
    where, colon, name = reference.rpartition(":")
    if not colon:
        where, name = reference, ""
    if not where or (colon and not name):
        raise PluginError(
            f"plugin {reference!r}: expected a file and a class, './my_switch.py:MySwitch', "
            "or a module and a class, 'package.module:MySwitch'"
        )
    with loading(f"plugin {reference!r}"):
        if where.endswith(".py"):
            module = _import_file(reference, folder, where)
        else:
            parent, slash, dotted = where.rstrip("/").rpartition("/")
            module, last = _import_module(reference, dotted, folder / parent if slash else folder)
            if slash:
                _check_place(reference, module, folder / parent)
            name = name or last
        kinds = [_class_of(module, name, reference)] if name else _all_of(module, reference)
        return [Found(kind=kind, origin=_origin(reference, where, kind)) for kind in kinds]


def find_function(reference: str, folder: Path) -> Callable[..., object]:
    """Return the function that ``file.py:function`` names, from *folder* on.

    Raises:
        PluginError: There is no such file or function, or it cannot be imported.
    """
    where, _, name = reference.rpartition(":")
    with loading(f"plugin {reference!r}"):
        module = _import_file(reference, folder, where)
        function = vars(module).get(name)
        if callable(function):
            return cast("Callable[..., object]", function)
        there = [key for key, each in vars(module).items() if callable(each) and key[0] != "_"]
        near = difflib.get_close_matches(name, there, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise PluginError(f"{reference!r}: there is no function {name} in it{hint}")


def _find_compiled(reference: str, folder: Path, against: compiled.Against) -> type[Any]:
    """Return the class that stands for a plugin in a `.so` or a `.c`."""
    from simctl.plugins.compiled import classes  # noqa: PLC0415 - no other needs to read ELF

    path = (folder / reference).absolute()
    _check_there(reference, path)
    try:
        return classes.find(path, against)
    except PluginError as error:
        told = (f"plugin {reference!r}: {mistake}" for mistake in error.mistakes)
        raise PluginError(*told) from error


def _origin(reference: str, where: str, kind: type[Any]) -> str:
    return f"from {where}:{kind.__name__}" if where != kind.__name__ else f"from {reference}"


def _class_of(module: ModuleType, name: str, reference: str) -> type[Any]:
    found = vars(module).get(name)
    if isinstance(found, type):
        return found
    classes = [key for key, value in vars(module).items() if _is_plugin(value, module)]
    near = difflib.get_close_matches(name, classes, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    what = "is no class" if found is not None else "is not there"
    raise PluginError(
        f"plugin {reference!r}: {name} {what}; plugin classes there: "
        f"{', '.join(classes) or 'none'}{hint}"
    )


def _all_of(module: ModuleType, reference: str) -> list[type[Any]]:
    kinds = [value for value in vars(module).values() if _is_plugin(value, module)]
    if not kinds:
        raise PluginError(
            f"plugin {reference!r}: there is no plugin class in it; one has a plugin_type such as "
            "'switch/mine'"
        )
    return kinds


def _is_plugin(value: Any, module: ModuleType) -> bool:
    return (
        isinstance(value, type)
        and value.__module__ == module.__name__
        and isinstance(getattr(value, "plugin_type", None), str)
    )


# Modules.


def _import_module(reference: str, where: str, folder: Path) -> tuple[ModuleType, str]:
    """Import a dotted name; its last part may be a class, and is then given back."""
    with _beside(folder):
        if _exists(where):
            return _imported(reference, where), ""
        parent, dot, last = where.rpartition(".")
        if dot and _exists(parent):
            return _imported(reference, parent), last
    raise PluginError(
        f"plugin {reference!r}: there is no module {where!r}, neither installed nor in {folder}; "
        "install it, or name a file: './my_switch.py:MySwitch'"
    )


def _check_place(reference: str, module: ModuleType, folder: Path) -> None:
    """Check that a module that was named by its place is that of this place."""
    file = Path(module.__file__ or "").resolve()
    if not file.is_relative_to(folder.resolve()):
        raise PluginError(
            f"plugin {reference!r}: there is another module {module.__name__} already, {file}; "
            "give one of them another name"
        )


def _exists(name: str) -> bool:
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _imported(reference: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _cannot_import(reference, name, error) from error


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Let modules in *folder* be found, after the installed ones."""
    entry = str(folder.absolute())
    sys.path.append(entry)
    try:
        yield
    finally:
        # Another plugin's import may have moved the list about.
        if entry in sys.path:
            sys.path.reverse()
            sys.path.remove(entry)
            sys.path.reverse()


# Files.


def _import_file(reference: str, folder: Path, where: str) -> ModuleType:
    path = (folder / where).absolute()
    _check_there(reference, path)
    if path.stat().st_size > TEXT_BYTES:
        most = size(TEXT_BYTES)
        raise PluginError(f"plugin {reference!r}: {where} is larger than {most}, the most")
    # Two folders may hold files of one name: each is a module of its own.
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
    name = f"{_FILE_MODULE}{path.stem}_{digest}"
    known = sys.modules.get(name)
    if known is not None and getattr(known, "_simctl_stamp", None) == _stamp(path):
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Registered, so that dataclasses and pickling inside the plugin find their module.
    sys.modules[name] = module
    try:
        with _beside(path.parent):
            spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _cannot_import(reference, where, error) from error
    vars(module)["_simctl_stamp"] = _stamp(path)
    return module


def _check_there(reference: str, path: Path) -> None:
    """Check that there is a file; the error names those beside it.

    Raises:
        PluginError: There is none.
    """
    if path.is_file():
        return
    beside = sorted(each.name for each in path.parent.glob(f"*{path.suffix}"))
    near = difflib.get_close_matches(path.name, beside, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    if not near and beside:
        hint = f"; beside it there would be {', '.join(beside[:9])}"
    where = reference.rpartition(":")[0] if ":" in reference else reference
    raise PluginError(f"plugin {reference!r}: there is no file {where!r}{hint}")


def forget_files() -> None:
    """Have files imported anew, so that nothing a run left in a plugin's module meets the next."""
    for name in [name for name in sys.modules if name.startswith(_FILE_MODULE)]:
        del sys.modules[name]


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _cannot_import(reference: str, where: str, error: BaseException) -> PluginError:
    if isinstance(error, SyntaxError):
        text = (error.text or "").strip()
        place = f"{Path(error.filename or where).name}:{error.lineno}"
        return PluginError(f"plugin {reference!r}: {place}: {error.msg}: {text}")
    return PluginError(
        f"plugin {reference!r}: importing {where} failed: "
        f"{type(error).__name__}: {told(str, error)}"
    )
