"""What of a run no event tells, kept for its expectations: see `scenario.holding.evidence`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
from msgspec import UNSET

from simctl.api.kept import METHOD, state_of, tells
from simctl.api.surroundings import told_failure
from simctl.ctld.daemon import Slurmctld
from simctl.ctld.reporting.info import output_files
from simctl.kernel.events import Event
from simctl.kernel.procs import Host, Process
from simctl.plugins.importing import find_function
from simctl.scenario.durations import format_moment
from simctl.scenario.kept_rules import (
    Check,
    Judge,
    Unique,
    found,
    judged,
    not_equal,
    not_unique,
    shown,
)
from simctl.scenario.model import (
    AlwaysExpect,
    EnvironmentExpect,
    FileExpect,
    OutputExpect,
    Scenario,
)
from simctl.site import Site


@attrs.define
class _Kept:
    """What came of one `always` so far."""

    judge: Judge | None = None
    calls: int = 0
    states: int = 0
    selected: bool = False
    last: Any = None
    trouble: str = ""


class WorldEvidence:
    """Looks at plugins and tasks of one run while it goes on, and at its files when it is over."""

    def __init__(
        self,
        scenario: Scenario,
        site: Site,
        hosts: Mapping[str, Host],
        controller: Callable[[], Slurmctld],
    ) -> None:
        """Look at whatever the expectations of the scenario ask for.

        Raises:
            PluginError: The function of a `check` cannot be loaded.
        """
        self._site = site
        self._hosts = hosts
        self._controller = controller
        self._environments: dict[str, dict[int, dict[str, str]]] = {}
        self._outputs: dict[str, tuple[str, str]] = {}
        self._kept: list[tuple[AlwaysExpect, _Kept]] = []
        for each in scenario.expect:
            if isinstance(each, AlwaysExpect):
                rule = each.rule
                folder = Path(scenario.folder)
                judge = find_function(rule.reference, folder) if isinstance(rule, Check) else None
                self._kept.append((each, _Kept(judge)))
        if self._kept:
            site.hooks.watch = self._look
        site.trace.add_sink(self._note)

    # While the run goes on.

    def _note(self, event: Event) -> None:
        """Keep the environment of a task that executes a program, and where a job's output goes."""
        if event.name == "exec" and event.role == "task" and event.step is not UNSET:
            process = self._hosts[str(event.node)].processes[int(event.pid or 0)]
            tasks = self._environments.setdefault(event.step, {})
            tasks[int(event.task or 0)] = dict(process.env)
        elif event.name == "job_state" and event.args is not UNSET:
            self._note_output(int(event.job or 0))

    def _note_output(self, job_id: int) -> None:
        job = self._controller().tables.jobs.get(job_id)
        if job is not None and job.batch:
            files = output_files(job)
            self._outputs[str(job_id)] = files
            if job.array is not None:
                self._outputs[f"{job.array.job_id}_{job.array_task}"] = files

    def _look(self, who: Process, plugin_type: str, name: str, instance: Any) -> None:
        """Hold what a plugin keeps, after a call, against the rules about it."""
        wanted = [
            (each, kept)
            for each, kept in self._kept
            if each.plugin == plugin_type and each.role in ("", who.role) and not kept.trouble
        ]
        if not wanted:
            return
        for _, kept in wanted:
            kept.calls += 1
        if not tells(instance):
            return
        where = f"after {name} in {who.role} (pid {who.pid})"
        where += f" on {who.host.name}" if who.host.node else ""
        where += f", at {format_moment(self._site.kernel.now_us)} (event {who.cause})"
        for each, kept in wanted:
            try:
                state = state_of(instance)
            except Exception as error:  # noqa: BLE001 - it is the plugin's code
                kept.trouble = f"{where}: {METHOD}: {told_failure(error)}"
                continue
            kept.states += 1
            kept.last = state
            trouble = self._judge(each, kept, state)
            if trouble:
                kept.trouble = f"{where}: {trouble}\n{shown(state)}"

    @staticmethod
    def _judge(wanted: AlwaysExpect, kept: _Kept, state: Any) -> str:
        rule = wanted.rule
        if isinstance(rule, Check):
            assert kept.judge is not None
            try:
                return judged(kept.judge(state))
            except AssertionError as error:
                return str(error) or "an assertion does not hold"
            except Exception as error:  # noqa: BLE001 - it is a user's own code
                return f"the check failed: {told_failure(error)}"
        kept.selected = kept.selected or bool(found(state, rule.path))
        return not_unique(state, rule) if isinstance(rule, Unique) else not_equal(state, rule)

    # When it is over.

    def kept(self, wanted: AlwaysExpect) -> str:
        """Return where what a plugin keeps broke a rule, or why nothing was looked at."""
        kept = next(kept for each, kept in self._kept if each is wanted)
        role = f" in role {wanted.role}" if wanted.role else ""
        if kept.trouble:
            return kept.trouble
        if not kept.calls:
            return f"no function of {wanted.plugin} was called{role}"
        if not kept.states:
            return f"{wanted.plugin} has no {METHOD}(): add it, and return what it keeps"
        if not isinstance(wanted.rule, Check) and not kept.selected:
            return (
                f"{wanted.rule.path} led nowhere in {kept.states} states{role}; the last: "
                f"{shown(kept.last)}"
            )
        return ""

    def file(self, host: str, path: str) -> tuple[bytes, str] | None:
        """Return what a file holds and who owns it; None if there is no file."""
        data = self._site.disk.data(host, path)
        if data is None:
            return None
        uid = self._site.disk.owner(host, path)
        names = [name for name, user in self._site.users.items() if user.uid == uid]
        return data, names[0] if names else str(uid)

    def output(self, job: str, stream: str) -> str:
        """Return the path of a batch job's output; nothing if there is no such job."""
        files = self._outputs.get(job)
        return files[stream == "stderr"] if files else ""

    def environments(self, step: str) -> Mapping[int, Mapping[str, str]]:
        """Return the environment that each task of a step had as its program began."""
        return self._environments.get(step, {})


def gather(
    scenario: Scenario, site: Site, hosts: Mapping[str, Host], controller: Callable[[], Slurmctld]
) -> WorldEvidence | None:
    """Return who looks, if the scenario expects anything of what no event tells."""
    looking = (AlwaysExpect, FileExpect, OutputExpect, EnvironmentExpect)
    if not any(isinstance(each, looking) for each in scenario.expect):
        return None
    return WorldEvidence(scenario, site, hosts, controller)
