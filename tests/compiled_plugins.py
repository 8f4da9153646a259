"""Compiled plugins for tests: built from tests/compiled, skipped and told without a compiler."""

import shlex
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Final

import pytest

from simctl.plugins.compiled import build
from simctl.plugins.compiled.bindings import plan
from simctl.plugins.guard import PluginError

SOURCES: Final = Path(__file__).parent / "compiled"
KEYS: Final = SOURCES / "switch_keys.c"
KEYS_18: Final = SOURCES / "switch_keys_18.c"
TWIN: Final = f"{SOURCES / 'keys_twin.py'}:Keys"


def _why_not() -> str:
    try:
        build.compiler()
    except PluginError as error:
        return str(error)
    return ""


needs_compiler = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "there is one")


@lru_cache
def sanitizers() -> bool:
    """Tell whether the compiler has AddressSanitizer."""
    command = [*shlex.split(build.compiler()), "-fsanitize=address,undefined", "-shared"]
    command += ["-o", "/dev/null", "-x", "c", "/dev/null"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def changed(folder: Path, name: str, body: str, *, top: str = "") -> Path:
    """Write a plugin as switch_keys.c, but that one function does something else first.

    Args:
        folder: Where the file goes.
        name: The function.
        body: Statements of C before those that it has.
        top: What stands before all functions.
    """
    point = plan(name).point
    assert point is not None
    parameters = point.c.partition("(")[2].removesuffix(")")
    given = (
        ""
        if parameters == "void"
        else ", ".join(each.split()[-1].lstrip("*") for each in parameters.split(","))
    )
    result = "" if point.c.startswith("void ") else "return "
    path = folder / "changed.c"
    path.write_text(
        f"#include <fcntl.h>\n#include <signal.h>\n#include <pthread.h>\n"
        f'#define {name} before_{name}\n#include "{KEYS}"\n#undef {name}\n{top}\n'
        f"{point.c} {{\n{body}\n{result}before_{name}({given});\n}}\n",
        encoding="utf-8",
    )
    return path
