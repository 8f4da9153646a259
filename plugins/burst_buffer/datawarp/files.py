"""A job's files in StateSaveLocation, which burst_buffer/datawarp shows to the appliance."""

from collections.abc import Iterable
from typing import Final

from simctl.plugin import JobRecord, conf, disk, hostlist

HOSTS: Final = "client_nids"
EXEC_HOST: Final = "exec_host"
PATH: Final = "path"


def files_of(job_id: int) -> str:
    """Return the directory in StateSaveLocation that holds a job's files."""
    return f"{conf['StateSaveLocation']}/hash.{job_id % 10}/job.{job_id}"


def _write(job_id: int, name: str, lines: Iterable[str]) -> None:
    _make_directories(files_of(job_id))
    text = "".join(f"{line}\n" for line in lines)
    disk().write(f"{files_of(job_id)}/{name}", text, mode=0o600)


def write_script(job: JobRecord) -> None:
    """Write what the appliance is told is the job's script; its directives, if it has none."""
    text = job.script or f"#!/bin/sh\n{job.burst_buffer}\n"
    _write(job.job_id, "script", text.removesuffix("\n").split("\n"))


def write_hosts(job: JobRecord) -> None:
    """Write down on which nodes a job is to run, and where `paths` is to write."""
    nodes = hostlist(job.nodes)
    _write(job.job_id, HOSTS, nodes)
    _write(job.job_id, EXEC_HOST, nodes[:1])
    _write(job.job_id, PATH, ())


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
    lines = disk().read_text(f"{files_of(job_id)}/{PATH}").splitlines()
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
