"""``--bb`` and ``--bbf``: what a job asks of burst buffers, from sbatch, salloc and srun.

A text of ``--bb`` that is lines of directives, and the file of ``--bbf``, become lines of a batch
script, below its first; salloc and srun, which have no script, send them as they are.
"""

from collections.abc import Mapping
from typing import Any

from simctl.commands.arguments.options import UsageError
from simctl.site import CommandCall


def text_of(call: CommandCall, options: Mapping[str, Any]) -> str:
    """Return what salloc and srun send: the text of ``--bb``, or the file of ``--bbf``.

    Raises:
        UsageError: Both are given, or there is no such file.
    """
    _refuse_both(call, options)
    return _file(call, options["bbf"]) if "bbf" in options else options.get("bb", "")


def of_batch(options: Mapping[str, Any]) -> str:
    """Return what sbatch sends beside the script; directives go into the script instead."""
    wish: str = options.get("bb", "")
    return "" if wish.startswith("#") else wish


def lines_of_batch(call: CommandCall, options: Mapping[str, Any]) -> str:
    """Return the lines that go into the script of a batch job.

    Raises:
        UsageError: Both options are given, or there is no such file.
    """
    _refuse_both(call, options)
    if "bbf" in options:
        return _file(call, options["bbf"])
    wish: str = options.get("bb", "")
    return wish if wish.startswith("#") else ""


def inserted(script: str, lines: str) -> str:
    """Return a script with lines below its first; before it, where that is no comment. Pure."""
    if not lines:
        return script
    added = lines if lines.endswith("\n") else f"{lines}\n"
    if not script.startswith("#"):
        return added + script
    first, _, rest = script.partition("\n")
    return f"{first}\n{added}{rest}"


def _refuse_both(call: CommandCall, options: Mapping[str, Any]) -> None:
    if "bb" in options and "bbf" in options:
        told = "Cannot specify both --burst-buffer and --bbf"
        raise UsageError(1, f"{call.argv[0]}: error: {told}")


def _file(call: CommandCall, path: str) -> str:
    found = call.files.find_text(path)
    if found is None:
        raise UsageError(1, f"{call.argv[0]}: error: Invalid --bbf specification")
    return found
