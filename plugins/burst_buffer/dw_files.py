"""A job's files in StateSaveLocation, which burst_buffer/datawarp shows to the appliance."""

from collections.abc import Iterable

from simctl.plugin import JobRecord, conf, disk


def files_of(job_id: int) -> str:
    """Return the directory in StateSaveLocation that holds a job's files."""
    return f"{conf['StateSaveLocation']}/hash.{job_id % 10}/job.{job_id}"


def write_file(job_id: int, name: str, lines: Iterable[str]) -> str:
    """Write lines into a file of a job's; return its path."""
    where = f"{files_of(job_id)}/{name}"
    _make_directories(files_of(job_id))
    disk().write(where, "".join(f"{line}\n" for line in lines), mode=0o600)
    return where


def write_script(job: JobRecord) -> None:
    """Write what the appliance is told is the job's script; its directives, if it has none."""
    text = job.script or f"#!/bin/sh\n{job.burst_buffer}\n"
    write_file(job.job_id, "script", text.removesuffix("\n").split("\n"))


def remove_files(job_id: int) -> None:
    """Remove what was written of a job; what is not there is none's loss."""
    files, where = disk(), files_of(job_id)
    try:
        for name in files.listdir(where):
            files.remove(f"{where}/{name}")
        files.remove(where)
    except OSError:
        return


def read_paths(job_id: int) -> dict[str, str]:
    """Return the variables that `paths` has written down."""
    lines = disk().read_text(files_of(job_id) + "/path").splitlines()
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value for key, equals, value in pairs if equals and key.strip()}


def _make_directories(path: str) -> None:
    files = disk()
    missing = []
    while path not in ("", "/") and not files.exists(path):
        missing.append(path)
        path = path.rpartition("/")[0]
    for each in reversed(missing):
        files.mkdir(each)
