"""`simctl plugins check FILE.lua`: find out what kind of script it is, drive and judge it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from simctl.files import read_script
from simctl.plugins.lua.state import LuaMissingError, require_lua
from simctl.scenario.lua import modules_beside
from simctl.scenario.model import Scenario
from simctl.status import InputError
from simctl.testing.plugin_check.lua import named
from simctl.testing.plugin_check.lua.buffers import BufferCheck
from simctl.testing.plugin_check.lua.found import Found
from simctl.testing.plugin_check.lua.given import run_given
from simctl.testing.plugin_check.lua.marks import reached
from simctl.testing.plugin_check.lua.report import ScriptReport, Unreached
from simctl.testing.plugin_check.lua.source import Source
from simctl.testing.plugin_check.lua.static import findings
from simctl.testing.plugin_check.lua.submissions import CLI_FILTER, JOB_SUBMIT
from simctl.testing.plugin_check.lua.submit_check import SubmitCheck

LUAS: Final = ("5.1", "5.4")
"""The Lua that a script is tried under."""

_PREFIXES: Final = {
    "slurm_job_": "job_submit",
    "slurm_bb_": "burst_buffer",
    "slurm_cli_": "cli_filter",
}


def check_script(
    path: str,
    *,
    luas: Sequence[str] = (),
    slurms: Sequence[str] = (),
    given: Sequence[Scenario] = (),
) -> ScriptReport:
    """Check a script of a site, in scenarios that are *given* as well.

    Raises:
        InputError: It cannot be read, is none of the three kinds, or loads under no Lua; or a
            scenario does not use it.
    """
    try:
        require_lua()
    except LuaMissingError as error:
        raise InputError(f"{path}: {error}") from error
    text = _text(path)
    source = Source(Path(path).name, text, modules_beside(Path(path), text))
    kind = _kind_of(source, path)
    found = Found(source.name)
    versions, notes = versions_of(source, kind, slurms)
    for finding in findings(source, kind, versions):
        found.blame(finding.rule, finding.function, finding.what, line=finding.line)
    under_luas = tuple(luas) or LUAS
    runs = run_given(given, kind, source.marked(named.required(kind, max(versions))))
    if kind == "burst_buffer":
        buffers = BufferCheck(source, found, under_luas, versions)
        life, under = buffers.run()
        seen, driven, treated = reached(life.events), buffers.driven(life), buffers.treated(life)
        trials, notes = buffers.trials, [*notes, *buffers.notes]
        looked = [buffers.look_at(run) for run in runs]
    else:
        shown_to = JOB_SUBMIT if kind == "job_submit" else CLI_FILTER
        files = {place: text for each in given for place, text in each.files.items()}
        check = SubmitCheck(source, found, under_luas, versions, kind=shown_to, files=files)
        main, under = check.run()
        seen, driven, treated = check.reached, check.driven(main), check.treated(main)
        trials, looked = check.trials, [check.look_at(run) for run in runs]
        notes = [*notes, *check.notes]
    seen = seen.union(*looked)
    return ScriptReport(
        plugin_type=f"{kind}/lua",
        origin=path,
        mistakes=found.mistakes(),
        treated=treated,
        driven=driven,
        unreached=tuple(
            Unreached(line=block.line, kind=_kind(block.kind), function=block.function)
            for block in source.blocks
            if block.number not in seen
        ),
        notes=tuple(notes),
        under=under,
        trials=trials + len(runs),
        own_broken=tuple(each for run in runs for each in run.broken),
        not_driven="" if driven else "no job came as far as the script",
    )


def _kind_of(source: Source, path: str) -> str:
    kind = kind_of(source, Path(path).stem)
    if not kind:
        raise InputError(
            f"{path}: it defines none of the functions of job_submit.lua (slurm_job_submit), "
            "burst_buffer.lua (slurm_bb_...) and cli_filter.lua (slurm_cli_...)"
        )
    return kind


def _text(path: str) -> str:
    try:
        return read_script(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def kind_of(source: Source, called: str) -> str:
    """Return ``job_submit``, ``burst_buffer`` or ``cli_filter``, or nothing.

    Of a script with functions of several kinds the name of its file decides, then the first one.
    """
    names = [word.text for word in source.tokens if word.kind == "name"]
    kinds = [
        kind for name in names for prefix, kind in _PREFIXES.items() if name.startswith(prefix)
    ]
    return called if called in kinds else next(iter(kinds), "")


def versions_of(
    source: Source, kind: str, asked: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the versions of Slurm that a script is for, and what to say of them."""
    if asked:
        return tuple(asked), []
    versions = list(named.VERSIONS)
    notes = []
    if kind == "burst_buffer":
        versions = list(_of_buffers(source))
    set_here = {use.field for use in source.uses if use.owner == "slurm" and use.set}
    for use in source.uses:
        if use.owner != "slurm" or use.guarded or use.field in set_here:
            continue
        having = [each for each in versions if use.field in named.offered(kind, each)]
        if having and len(having) < len(versions):
            left = [each for each in versions if each in having]
            if left and left != versions:
                versions = left
                notes.append(
                    f"slurm.{use.field} (line {use.line}) is there in Slurm {', '.join(having)} "
                    "alone: it is tried under these"
                )
    return tuple(versions), notes


def _of_buffers(source: Source) -> tuple[str, ...]:
    """Return the versions whose functions a burst_buffer.lua has, with as many arguments."""
    polls = {"slurm_bb_test_data_in", "slurm_bb_test_data_out"}
    if any(each.name in polls for each in source.functions):
        return tuple(each for each in named.VERSIONS if each >= "24.05")
    informed = any(
        "info" in parameter.lower()
        for each in source.functions
        if each.name.startswith("slurm_bb_")
        for parameter in each.parameters
    )
    return ("23.02",) if informed else ("22.05", "23.02")


def _kind(kind: str) -> str:
    return {"function": "function", "do": "loop", "repeat": "loop"}.get(kind, f"{kind} branch")
