"""The job_submit plugins of slurmctld: each sees a submission as the one before it has left it."""

from collections.abc import Callable
from typing import Final

import attrs

from simctl.ctld.port.port import Port
from simctl.ctld.state.records import JobRecord
from simctl.plugin import JobRecord as JobPtr
from simctl.plugins.hooks import About
from simctl.plugins.points.job_submit import job_modify, job_submit
from simctl.wire.errno import SLURM_SUCCESS
from simctl.wire.records import DraftJob, JobDesc

_CLASS: Final = "job_submit"


@attrs.frozen(kw_only=True)
class Ruling:
    """What plugins say of a submission: an error number or 0, lines for the user, what is left."""

    desc: JobDesc
    error_code: int = SLURM_SUCCESS
    lines: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Fields that were set."""

    @property
    def text(self) -> str:
        """Return the lines as a message carries them."""
        return "\n".join(self.lines)


class JobSubmit:
    """What slurmctld calls: one function for each of the plugins' two."""

    def __init__(
        self, port: Port, types: tuple[str, ...], *, views: Callable[[JobRecord], JobPtr]
    ) -> None:
        self._port = port
        self._types = types
        self._views = views

    async def load(self) -> str:
        """Load every plugin; return what is fatal, or nothing."""
        for plugin_type in self._types:
            loaded = await self._port.site.hooks.load(
                self._port.process, _CLASS, plugin_type=plugin_type
            )
            if not loaded:
                return f"failed to initialize job_submit plugin {plugin_type}"
        return ""

    async def unload(self) -> None:
        """Have every plugin run its fini."""
        for plugin_type in self._types:
            await self._port.site.hooks.unload(self._port.process, _CLASS, plugin_type=plugin_type)

    async def submit(self, desc: JobDesc, uid: int) -> Ruling:
        """Show a submission to the plugins; the first that refuses it is the last that sees it."""
        draft = DraftJob.of(desc)
        hooks, who = self._port.site.hooks, self._port.process
        for plugin_type in self._types:
            who.why = ""
            rc = await hooks.call(job_submit, who, draft, uid, plugin_type=plugin_type)
            if rc:
                return self._ruling(draft, rc)
        return self._ruling(draft, SLURM_SUCCESS)

    async def modify(self, desc: JobDesc, job: JobRecord, uid: int) -> Ruling:
        """Show a change of a job to the plugins."""
        draft = DraftJob.of(desc)
        hooks, who = self._port.site.hooks, self._port.process
        for plugin_type in self._types:
            who.why = ""
            about = About(job=job.job_id)
            rc = await hooks.call(
                job_modify, who, draft, self._views(job), uid, about=about, plugin_type=plugin_type
            )
            if rc:
                return self._ruling(draft, rc)
        return self._ruling(draft, SLURM_SUCCESS)

    def _ruling(self, draft: DraftJob, rc: int) -> Ruling:
        lines = [*draft.told]
        if rc:
            lines += self._port.process.why.splitlines()
        return Ruling(
            desc=draft.settled(),
            error_code=rc,
            lines=tuple(lines),
            changed=tuple(draft.changed()),
        )
