"""`simctl plugins check FILE.lua`: find out what kind of script it is, drive and judge it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from simctl.files import read_text
from simctl.plugins.lua.state import LuaMissingError, require_lua
from simctl.status import InputError
from simctl.testing.plugin_check.lua import named, rules
from simctl.testing.plugin_check.lua.found import Found
from simctl.testing.plugin_check.lua.report import ScriptReport, Unreached
from simctl.testing.plugin_check.lua.source import Source
from simctl.testing.plugin_check.lua.static import findings
from simctl.testing.plugin_check.lua.submissions import all_reached
from simctl.testing.plugin_check.lua.submit_check import SubmitCheck

LUAS: Final = ("5.1", "5.4")
"""The Lua that a script is tried under."""

_PREFIXES: Final = {
    "slurm_job_": "job_submit",
    "slurm_bb_": "burst_buffer",
    "slurm_cli_": "cli_filter",
}


def check_script(
    path: str, *, luas: Sequence[str] = (), slurms: Sequence[str] = ()
) -> ScriptReport:
    """Check a script of a site.

    Raises:
        InputError: It cannot be read, is none of the three kinds, or loads under no Lua.
    """
    try:
        require_lua()
    except LuaMissingError as error:
        raise InputError(f"{path}: {error}") from error
    source = Source(Path(path).name, _text(path))
    kind = kind_of(source)
    if not kind:
        raise InputError(
            f"{path}: it defines none of the functions of job_submit.lua (slurm_job_submit), "
            "burst_buffer.lua (slurm_bb_...) and cli_filter.lua (slurm_cli_...)"
        )
    found = Found(source.name)
    versions, notes = versions_of(source, kind, slurms)
    for finding in findings(source, kind, versions):
        found.blame(finding.rule, finding.function, finding.what, line=finding.line)
    check = SubmitCheck(source, found, tuple(luas) or LUAS, versions)
    main, under = check.run()
    reached = all_reached(main)
    driven = check.driven(main)
    return ScriptReport(
        plugin_type=f"{kind}/lua",
        origin=path,
        mistakes=found.mistakes(),
        treated=check.treated(main),
        driven=driven,
        unreached=tuple(
            Unreached(line=block.line, kind=_kind(block.kind), function=block.function)
            for block in source.blocks
            if block.number not in reached
        ),
        notes=tuple(notes),
        under=under,
        trials=check.trials,
        not_driven="" if driven else "no job came as far as the script",
    )


def _text(path: str) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise InputError(f"{path}: {why}") from error


def kind_of(source: Source) -> str:
    """Return ``job_submit``, ``burst_buffer`` or ``cli_filter``, or nothing."""
    for word in source.tokens:
        for prefix, kind in _PREFIXES.items():
            if word.kind == "name" and word.text.startswith(prefix):
                return kind
    return ""


def versions_of(
    source: Source, kind: str, asked: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the versions of Slurm that a script is for, and what to say of them."""
    if asked:
        return tuple(asked), []
    versions = list(named.VERSIONS)
    notes = []
    for use in source.uses:
        if use.owner != "slurm" or use.guarded:
            continue
        having = [each for each in named.VERSIONS if use.field in named.offered(kind, each)]
        if having and len(having) < len(named.VERSIONS):
            left = [each for each in versions if each in having]
            if left and left != versions:
                versions = left
                notes.append(
                    f"slurm.{use.field} (line {use.line}) is there in Slurm {', '.join(having)} "
                    "alone: it is tried under these"
                )
    return tuple(versions), notes


def _kind(kind: str) -> str:
    return {"function": "function", "do": "loop", "repeat": "loop"}.get(kind, f"{kind} branch")


__all__ = ["check_script", "rules"]
