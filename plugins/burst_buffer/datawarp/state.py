"""burst_buffer/datawarp's state file: persistent buffers, and how far each job is with its own."""

import json
from typing import Any, Final

import attrs

from simctl.plugin import conf, disk, log
from simctl.plugins.burst_buffer.records import Alloc, BbJob, BbState, Books

_FILE: Final = "burst_buffer_cray_state"
_VERSION: Final = 1


@attrs.frozen(kw_only=True)
class SavedJob:
    """What was known of a job's buffer when slurmctld last saved."""

    state: BbState = BbState.PENDING
    retry_cnt: int = 0
    failed: bool = False
    hurry: bool = False
    size: int = 0
    pool: str = ""
    create_time: int = 0
    made: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Saved:
    """What the state file holds."""

    named: dict[str, Alloc] = attrs.field(factory=dict)
    jobs: dict[int, SavedJob] = attrs.field(factory=dict)


def save(books: Books) -> None:
    """Write the state file whole or not at all; a disk that does not take it is logged."""
    where = f"{conf['StateSaveLocation']}/{_FILE}"
    text = json.dumps(
        {
            "version": _VERSION,
            "persistent": [_alloc(each) for each in books.allocs.values() if not each.job_id],
            "jobs": [_job(books, each) for each in books.active.values()],
        }
    )
    files = disk()
    try:
        files.write(f"{where}.new", text, mode=0o600)
        files.rename(f"{where}.new", where)
    except OSError as error:
        log.error("the state of burst buffers cannot be saved", error=str(error))


def _alloc(alloc: Alloc) -> dict[str, Any]:
    return {
        "name": alloc.name,
        "user_id": alloc.user_id,
        "size": alloc.size,
        "pool": alloc.pool,
        "create_time": alloc.create_time,
        "account": alloc.account,
        "partition": alloc.partition,
    }


def _job(books: Books, bb: BbJob) -> dict[str, Any]:
    alloc = books.allocs.get(bb.token)
    return {
        "job_id": bb.job_id,
        "state": bb.state.name,
        "retry_cnt": bb.retry_cnt,
        "failed": bb.failed,
        "hurry": bb.hurry,
        "size": bb.size,
        "pool": bb.pool,
        "create_time": alloc.create_time if alloc is not None else 0,
        "made": sorted(bb.made),
    }


def load() -> Saved:
    """Return what the state file holds: nothing if there is none, or none that can be read."""
    where = f"{conf['StateSaveLocation']}/{_FILE}"
    try:
        return _read(json.loads(disk().read_text(where)))
    except FileNotFoundError:
        return Saved()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.error(
            "the saved state of burst buffers is of no use; what the appliance has is taken over",
            file=where,
            error=f"{type(error).__name__}: {error}",
        )
        return Saved()


def _read(found: Any) -> Saved:
    if found["version"] != _VERSION:
        raise ValueError(f"version {found['version']}, this plugin reads {_VERSION}")
    named = [Alloc(**each) for each in found["persistent"]]
    jobs = {int(each["job_id"]): _saved_job(each) for each in found["jobs"]}
    return Saved(named={alloc.name: alloc for alloc in named}, jobs=jobs)


def _saved_job(entry: dict[str, Any]) -> SavedJob:
    return SavedJob(
        state=BbState[entry["state"]],
        retry_cnt=int(entry["retry_cnt"]),
        failed=bool(entry["failed"]),
        hurry=bool(entry["hurry"]),
        size=int(entry["size"]),
        pool=str(entry["pool"]),
        create_time=int(entry["create_time"]),
        made=tuple(map(str, entry["made"])),
    )
