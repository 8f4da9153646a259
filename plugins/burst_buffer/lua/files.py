"""The files of a job in StateSaveLocation, and the state file of burst_buffer/lua."""

import json
from typing import Any, Final

from simctl.plugin import JobRecord, conf, disk, log, lua_settings
from simctl.plugins.burst_buffer.lua.books import BbJob, Books
from simctl.plugins.burst_buffer.records import BbState

_STATE: Final = "burst_buffer_lua_state"
_VERSION: Final = 1


def path_of(job_id: int, name: str) -> str:
    """Return where a file of a job is: ``script``, or ``path`` for what `paths` writes."""
    return f"{conf['StateSaveLocation']}/hash.{job_id % 10}/job.{job_id}/{name}"


def write(job_id: int, name: str, text: str) -> str:
    """Write a file of a job, and return its path.

    Raises:
        OSError: The disk does not take it.
    """
    path, files = path_of(job_id, name), disk()
    missing, where = [], path.rpartition("/")[0]
    while where not in ("", "/") and not files.exists(where):
        missing.append(where)
        where = where.rpartition("/")[0]
    for each in reversed(missing):
        files.mkdir(each, mode=0o700)
    files.write(path, text, mode=0o700)
    return path


def script_of(job: JobRecord) -> str:
    """Return the text of a job's script; salloc and srun have one of what was asked for."""
    return job.script or f"#!/bin/sh\n{job.burst_buffer}\n"


def remove(job_id: int) -> None:
    """Remove the files of a job; with a defect of Slurm's what `paths` wrote stays."""
    files, where = disk(), path_of(job_id, "")[:-1]
    try:
        for name in files.listdir(where):
            if name != "path" or "path_file" not in lua_settings().defects:
                files.remove(f"{where}/{name}")
        if not files.listdir(where):
            files.remove(where)
    except OSError:
        return


def variables(job_id: int) -> dict[str, str]:
    """Return the variables that `paths` has written down.

    As Slurm does it, as many lines are read as there are signs ``=`` in the file, and none behind
    an empty one.
    """
    text = disk().read(path_of(job_id, "path")).decode(errors="replace")
    lines = text.split("\n")
    if "paths_lines" in lua_settings().defects:
        lines = lines[: text.count("=")]
        lines = lines[: lines.index("") if "" in lines else len(lines)]
    else:
        lines = [line for line in lines if "=" in line]
    found: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition("=")
        if key and "\0" not in line:
            found[key] = value
    return found


def save(books: Books) -> None:
    """Write the state file, whole or not at all."""
    where = f"{conf['StateSaveLocation']}/{_STATE}"
    jobs = [
        {"job_id": each.job_id, "state": each.state.name, "retry_cnt": each.retry_cnt}
        for each in books.jobs.values()
        if each.charged or each.retry_cnt
    ]
    text = json.dumps({"version": _VERSION, "jobs": jobs})
    try:
        disk().write(f"{where}.new", text, mode=0o600)
        disk().rename(f"{where}.new", where)
    except OSError as error:
        log.error("the state of burst buffers cannot be saved", error=str(error))


def load() -> dict[int, tuple[BbState, int]]:
    """Return state and count of retries of each job that the state file tells of."""
    where = f"{conf['StateSaveLocation']}/{_STATE}"
    try:
        found: Any = json.loads(disk().read_text(where))
        return {
            int(each["job_id"]): (BbState[each["state"]], int(each["retry_cnt"]))
            for each in found["jobs"]
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.error("the saved state of burst buffers is of no use", file=where, error=str(error))
        return {}


def restore(bb: BbJob, state: BbState, retry_cnt: int) -> None:
    """Enter what was saved of a job."""
    bb.state, bb.retry_cnt, bb.charged = state, retry_cnt, True
