"""Buffers that outlive jobs: made and destroyed by a job's stage-in, each once."""

from collections.abc import Callable

from simctl.plugin import slurmctld
from simctl.plugins.burst_buffer.datawarp import answers as dw_json
from simctl.plugins.burst_buffer.datawarp.cli import DwCli
from simctl.plugins.burst_buffer.datawarp.tell import Failure
from simctl.plugins.burst_buffer.directives import Destroyed, Persistent
from simctl.plugins.burst_buffer.records import Alloc, BbJob, BbState, Books


class Named:
    """The persistent buffers, as jobs ask for them."""

    def __init__(self, books: Books, cli: DwCli, save: Callable[[], None]) -> None:
        self._books = books
        self._cli = cli
        self._save = save

    async def work(self, bb: BbJob) -> Failure | None:
        """Make and destroy the persistent buffers that a job asks for, each once."""
        for made in bb.request.creates:
            if made.name not in bb.made and made.name not in self._books.allocs:
                wrong = await self._create(bb, made)
                if wrong is not None:
                    return wrong
            bb.made.add(made.name)
        for gone in bb.request.destroys:
            if f"-{gone.name}" not in bb.made:
                wrong = await self._destroy(bb, gone)
                if wrong is not None:
                    return wrong
            bb.made.add(f"-{gone.name}")
        return None

    async def _create(self, bb: BbJob, made: Persistent) -> Failure | None:
        pool = self._books.pool_of(made.pool)
        size = self._books.rounded(pool, made.size)
        slurmctld.note_buffer(made.name, None, "ALLOCATING")
        answer = await self._cli.create_persistent(bb.job_id, bb.user_id, made, pool, size)
        there = answer.ok or await self._is_there(made.name, bb)
        if there:
            self._enter(bb, made.name, pool, size)
        slurmctld.note_buffer(made.name, "ALLOCATING", "ALLOCATED" if there else "DELETED")
        if not answer.ok:
            return Failure(function="create_persistent", message=answer.message)
        slurmctld.schedule()
        return None

    async def _is_there(self, name: str, bb: BbJob) -> bool:
        """Ask the appliance whether it has made a buffer though it did not say so in time."""
        if name in self._books.allocs or self._books.being_made(name, bb):
            return False
        sessions = dw_json.read_sessions(await self._cli.ask("show_sessions"), None)
        return any(session.token == name for session in sessions)

    def _enter(self, bb: BbJob, name: str, pool: str, size: int) -> None:
        job = slurmctld.find_job(bb.job_id)
        self._books.allocs[name] = Alloc(
            name=name,
            user_id=bb.user_id,
            size=size,
            pool=pool,
            create_time=slurmctld.time(),
            account=job.account if job is not None else "",
            partition=job.partition if job is not None else "",
        )
        self._save()

    async def _destroy(self, bb: BbJob, gone: Destroyed) -> Failure | None:
        alloc = self._books.allocs.get(gone.name)
        if alloc is not None and not _may_destroy(bb.user_id, alloc):
            owner = slurmctld.user_name(alloc.user_id)
            return Failure(function="destroy_persistent", message=f"it belongs to {owner}")
        if alloc is not None:
            alloc.state = BbState.DELETING
            slurmctld.note_buffer(gone.name, "ALLOCATED", "DELETING")
        answer = await self._cli.teardown(gone.name, bb.job_id, hurry=gone.hurry)
        if not answer.ok and not answer.gone:
            if alloc is not None:
                alloc.state = BbState.ALLOCATED
                slurmctld.note_buffer(gone.name, "DELETING", "ALLOCATED")
            return Failure(function="destroy_persistent", message=answer.message)
        if alloc is not None:
            self._books.allocs.pop(gone.name, None)
            slurmctld.note_buffer(gone.name, "DELETING", "DELETED")
        self._save()
        slurmctld.schedule()
        return None


def _may_destroy(user_id: int, alloc: Alloc) -> bool:
    return alloc.user_id == user_id or slurmctld.is_operator(user_id)
