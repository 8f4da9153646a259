"""slurmstepd: one step on one node, read top to bottom beside the life of a step.

Model guide runs the switch guide's three processes: the job manager (P1, root throughout), the
session manager (P2, root and then the user) and the tasks (P3). Model modern has one root process
and its tasks. What the processes of one daemon do in a row is one turn of one thread, which acts
now as one of them and now as another; under a schedule that separates processes each task gets a
thread of its own, so that the tasks may be reordered.
"""

from collections.abc import Callable
from typing import Final

import attrs

from simctl.api.stepd import Executed
from simctl.kernel.fabric import Envelope, Mailbox, Unanswered
from simctl.kernel.procs import (
    OUT_OF_MEMORY_STATUS,
    SIGCONT,
    SIGKILL,
    SIGTERM,
    Process,
    wait_status,
)
from simctl.plugins.hooks import (
    CREDENTIAL,
    NOTHING,
    About,
    NonsenseError,
    check_environment,
    failed,
)
from simctl.plugins.points.checkpoint import (
    slurm_ckpt_restart_task,
    slurm_ckpt_stepd_prefork,
)
from simctl.plugins.points.switch import (
    switch_p_alloc_jobinfo,
    switch_p_job_attach,
    switch_p_job_fini,
    switch_p_job_init,
    switch_p_job_postfini,
    switch_p_job_preinit,
    switch_p_unpack_jobinfo,
)
from simctl.plugins.points.switch_besides import switch_p_slurmd_step_init
from simctl.site import Site
from simctl.stepd.batch_files import BatchFiles
from simctl.stepd.checkpoint_requests import CheckpointRequests
from simctl.stepd.ending import ENDINGS, cancelled_line, grace_s, out_of_memory_line
from simctl.stepd.environment import task_environment
from simctl.stepd.hosts.script_host import ScriptHost
from simctl.stepd.image_file import Image, ImageError, ProgramState, ScriptState
from simctl.stepd.outcome import NEVER_US, SESSION_EXIT_RC, ProgramRun
from simctl.stepd.programs import (
    RESTART_HELPER,
    Input,
    OutsideRun,
    OutsideTask,
    ScriptRun,
    not_executed,
)
from simctl.stepd.services import StepServices
from simctl.stepd.srun_link import SrunLink
from simctl.stepd.step_reports import StepReports
from simctl.stepd.suspend import Suspender, TasksSignalled
from simctl.stepd.task_scripts import TaskScripts
from simctl.stepd.tasks import Task, TaskSet
from simctl.stepd.work import StepWork
from simctl.wire.errno import (
    ESLURM_INTERCONNECT_FAILURE,
    ESLURMD_EXECVE_FAILED,
    ESLURMD_FORK_FAILED,
    ESLURMD_INVALID_JOB_CREDENTIAL,
    ESLURMD_SETUP_ENVIRONMENT_ERROR,
    SLURM_ERROR,
    SLURM_PLUGIN_NAME_INVALID,
    SLURM_SUCCESS,
    slurm_strerror,
)
from simctl.wire.ids import SECOND, step_name
from simctl.wire.messages import (
    RequestCheckpointTasks,
    RequestJobNotify,
    RequestSignalTasks,
    RequestStepComplete,
    RequestStepSuspend,
    ResponseSlurmRc,
)

SESSION_INIT_FAILED: Final = 1
SESSION_SET_IDS_FAILED: Final = 2
SESSION_SETSID_FAILED: Final = 3
SESSION_CHDIR_FAILED: Final = 4
SESSION_PREPARE_FAILED: Final = 5
SESSION_FORK_FAILED: Final = 6

_STDERR: Final = 2


@attrs.frozen(kw_only=True)
class TaskEnded:
    """Tell the step daemon that a task with a thread of its own has ended."""


class StepDaemon:
    """One slurmstepd, from its first plugin to its last message."""

    def __init__(
        self,
        site: Site,
        process: Process,
        work: StepWork,
        *,
        mailbox: Mailbox,
        srun: Mailbox | None,
        there: Callable[[int], None] | None = None,
    ) -> None:
        self.site = site
        self.work = work
        self.process = process
        self.mailbox = mailbox
        self.tasks = TaskSet()
        self._hooks = site.hooks
        self._batch = work.job.batch
        self._name = process.host.name
        self._session = process
        self._kill_us = NEVER_US
        self._scripts = TaskScripts(site, work)
        self._cleaning = 0
        """Ended tasks whose epilogs have yet to end."""

        self._cleaned: list[tuple[Task, int]] = []
        """Those of them that are done with, and what their end is the cause of."""

        self._cleaned_causes: list[int] = []
        """What the ends of epilogs are the causes of, of all that have ended."""

        self._suspender: Suspender | None = None
        self._told_to_end = False
        self._told_user = False
        """The user of a batch script knows that it is ended."""

        self._there = there
        """Told once: the daemon has set itself up, or has died. Then there is no slurmd to tell."""

        process.stepd = StepServices(site, work, self.tasks, self._name)
        self._files = BatchFiles(site, process, work)
        self._srun = SrunLink(site, process, mailbox, srun, work)
        self._reports = StepReports(site, process, mailbox, work, self.tasks, serve=self._serve)

    async def run(self) -> None:
        """Run the step as the model says; then report its end."""
        if self.site.model == "guide":
            rc = await self._run_guide()
        else:
            rc = await self._run_modern()
        self._say_there()
        if self._batch:
            self._files.remove_script()
            await self._reports.complete_batch(rc, has_output=self._files.opened)
        else:
            if rc:
                self._srun.launched(rc, ())
            try:
                await self._hear_srun_out()
                await self._reports.complete_step()
                await self._let_srun_hear()
            finally:
                # Should the node crash no daemon may tell srun: for slurmctld the step is over.
                self._srun.hang_up()
        if self.site.model == "guide":
            for plugin_class in ("checkpoint", "switch"):
                await self._hooks.unload(self.process, plugin_class)
        if self._suspender is not None:
            self._suspender.give_up()
        self._reports.close()
        self.mailbox.close()
        self.process.exit(0)

    def _say_there(self, rc: int = SLURM_SUCCESS) -> None:
        """Tell slurmd, which waits for it, that the step daemon is there, or will never be."""
        there, self._there = self._there, None
        if there is not None:
            there(rc)

    def has(self, process: Process) -> bool:
        """Return whether a process is this daemon, its session or one of its tasks."""
        own = (self.process, self._session)
        return process in own or any(task.process is process for task in self.tasks.tasks)

    def die(self) -> TaskSet:
        """End at once, as by SIGKILL; return the tasks, which go on if they run a program.

        Those that do not yet wait for a word from their parent, and end.
        """
        self.mailbox.close(breaks=True)
        self._say_there(ESLURMD_FORK_FAILED)
        for envelope in self._suspender.waiting if self._suspender is not None else ():
            self.mailbox.break_off(envelope)
        procs = self.site.procs
        for process in dict.fromkeys((self._session, self.process)):
            procs.kill(process)
        for task in self.tasks.tasks:
            if not task.ended and task.program is None and task.host is None:
                for thread in task.process.threads:
                    self.site.kernel.kill(thread)
                task.leave(wait_status(1))
        self.tasks.reap()
        return self.tasks

    # Model guide: job manager, session manager, tasks.

    async def _run_guide(self) -> int:
        """Return 0, or the error that the job manager reports."""
        manager = self.process
        for plugin_class in ("switch", "checkpoint"):
            if not await self._hooks.load(manager, plugin_class):
                return SLURM_PLUGIN_NAME_INVALID
        if not self._batch:
            if not await self._receive_credential(alloc=True):
                return ESLURMD_INVALID_JOB_CREDENTIAL
            if await self._hooks.call(switch_p_job_preinit, manager, CREDENTIAL) < 0:
                return ESLURM_INTERCONNECT_FAILURE
        session = self._session = manager.fork(role="session")
        exit_code = await self._start_session(session)
        if not exit_code:
            manager.cause = session.cause
            self._srun.launched(0, tuple(task.rank for task in self.tasks.tasks))
            exit_code = await self._see_session_out(session)
        session.exit(wait_status(exit_code))
        manager.cause = session.cause
        self._kill_container()
        self._srun.tell_exits()
        if not self._batch:
            job = self.work.job
            await self._hooks.call(
                switch_p_job_postfini, manager, CREDENTIAL, session.pid, job.job_id, job.step_id
            )
        return SESSION_EXIT_RC[exit_code]

    async def _start_session(self, session: Process) -> int:
        """Set the session up and fork its tasks; return 0 or its exit code."""
        job = self.work.job
        if (
            not self._batch
            and await self._hooks.call(switch_p_job_init, session, CREDENTIAL, job.uid) < 0
        ):
            return SESSION_INIT_FAILED
        if not await self._prefork(session):
            return SESSION_PREPARE_FAILED
        if self._hooks.strikes(session, "become_user"):
            return SESSION_SET_IDS_FAILED
        session.become_user(job.uid)
        for act, exit_code in (
            ("setsid", SESSION_SETSID_FAILED),
            ("chdir", SESSION_CHDIR_FAILED),
            ("setrlimit", SESSION_PREPARE_FAILED),
        ):
            if self._hooks.strikes(session, act):
                return exit_code
        if not self._open_files():
            return 0
        for procid, rank in enumerate(self.work.tids):
            if self._hooks.strikes(session, "fork"):
                self.tasks.signal(SIGKILL)
                self.tasks.end_due(self.site.kernel.now_us)
                self._reap(session)
                return SESSION_FORK_FAILED
            await self._start_task(self._fork_task(session, procid, rank))
        return 0

    async def _see_session_out(self, session: Process) -> int:
        """Wait for all tasks, then finish the session as the user; return its exit code."""
        await self._wait_for_tasks(session, self.process)
        if not self._batch and await self._hooks.call(switch_p_job_fini, session, CREDENTIAL) < 0:
            return SESSION_INIT_FAILED
        return 0

    # Model modern: one root process and its tasks.

    async def _run_modern(self) -> int:
        """Return 0, or the error that the launch response carries."""
        stepd = self.process
        if not await self._hooks.load(stepd, "switch"):
            return SLURM_PLUGIN_NAME_INVALID
        await self._hooks.call_besides(switch_p_slurmd_step_init, stepd)
        if not self._batch and not await self._receive_credential(alloc=False):
            return ESLURMD_INVALID_JOB_CREDENTIAL
        self._say_there()
        if not await self._hooks.load(stepd, "checkpoint"):
            return SLURM_PLUGIN_NAME_INVALID
        if not self._batch and failed(
            await self._hooks.call(switch_p_job_preinit, stepd, CREDENTIAL)
        ):
            return ESLURM_INTERCONNECT_FAILURE
        if self._hooks.strikes(stepd, "create_container"):
            return ESLURMD_SETUP_ENVIRONMENT_ERROR
        rc = await self._run_container(stepd)
        self._kill_container()
        if not self._batch:
            job = self.work.job
            # The tasks' process group is recorded besides; the plugin's is the daemon's own.
            about = self._record_of_tasks()
            await self._hooks.call(
                switch_p_job_postfini,
                stepd,
                CREDENTIAL,
                stepd.pid,
                job.job_id,
                job.step_id,
                about=about,
            )
        self._srun.tell_exits()
        return rc

    async def _run_container(self, stepd: Process) -> int:
        """Run everything between the container's creation and its end."""
        job = self.work.job
        if not self._batch and failed(
            await self._hooks.call(
                switch_p_job_init, stepd, CREDENTIAL, job.uid, about=self._record(pgid=0)
            )
        ):
            return ESLURM_INTERCONNECT_FAILURE
        rc = await self._fork_all_tasks(stepd)
        if not rc:
            self._srun.launched(0, tuple(task.rank for task in self.tasks.tasks))
            await self._hear_srun_out()
            await self._wait_for_tasks(stepd, stepd)
        if not self._batch and failed(await self._hooks.call(switch_p_job_fini, stepd, CREDENTIAL)):
            self._tell_fini_failed(stepd)
        return rc

    def _tell_fini_failed(self, stepd: Process) -> None:
        """Tell the user that the switch could not be let go of."""
        if self.tasks.tasks:
            why = slurm_strerror(stepd.errno) if stepd.errno else "Unspecified error"
            line = f"slurmstepd-{self._name}: error: switch_g_job_fini: {why}\n"
            self._write(self.tasks.tasks[0], _STDERR, line)

    async def _fork_all_tasks(self, stepd: Process) -> int:
        """Fork every task, then release them; return 0 or why nothing runs."""
        if not await self._prefork(stepd):
            return SLURM_ERROR
        # Forking is done with the user's effective id, so that files open as the user's.
        stepd.euid = self.work.job.uid
        if not self._open_files():
            stepd.euid = stepd.uid
            return 0
        forked: list[Task] = []
        for procid, rank in enumerate(self.work.tids):
            if self._hooks.strikes(stepd, "fork") or self._hooks.strikes(stepd, "become_user"):
                break
            forked.append(self._fork_task(stepd, procid, rank))
        stepd.euid = stepd.uid
        if len(forked) < len(self.work.tids):
            for task in forked:
                task.leave(SIGKILL)
            self._reap(stepd)
            return ESLURMD_EXECVE_FAILED
        for task in forked:
            if not task.ended:
                task.process.euid = task.process.uid
                task.process.become_user(self.work.job.uid)
        for task in forked:
            await self._start_task(task)
        return 0

    def _kill_container(self) -> None:
        """Kill what is left in the container: tasks, and whatever scripts have started."""
        self.tasks.kill_all()
        self.tasks.end_due(self.site.kernel.now_us)

    def _record(self, **more: int) -> About:
        """Return what real Slurm gives its plugins with the step's record, for the trace."""
        if not self.site.trace.recording or self.site.model == "guide":
            return NOTHING
        job = self.work.job
        return About(
            besides={
                "nodeid": job.nodeid,
                "ntasks": job.ntasks,
                "node_tasks": job.node_tasks,
                **more,
                "jmgr_pid": self.process.pid,
            }
        )

    def _record_of_tasks(self) -> About:
        """Return what the step's record says once there may be tasks."""
        tasks = self.tasks.tasks
        return self._record(uid=self.work.job.uid, pgid=tasks[0].process.pid if tasks else 0)

    # What both models share.

    async def _receive_credential(self, *, alloc: bool) -> bool:
        """Unpack the credential that slurmd handed over; false if that failed."""
        process = self.process
        if alloc:
            credential = await self._hooks.call(switch_p_alloc_jobinfo, process)
            if failed(credential):
                return False
        else:
            credential = await self._hooks.blank(process, switch_p_alloc_jobinfo)
        process.touch().store(credential)
        packed = self.work.switch_job.opened()
        if await self._hooks.call(switch_p_unpack_jobinfo, process, credential, packed) < 0:
            return False
        process.memory.store(credential)
        return True

    async def _prefork(self, who: Process) -> bool:
        """Let the checkpoint plugin prepare, which may change the tasks' environment."""
        job = self.work.job
        about = self._record(batch=int(job.batch))
        if await self._hooks.call(slurm_ckpt_stepd_prefork, who, job, about=about) < 0:
            return False
        try:
            if self.site.images.enabled:
                check_environment(self.work.env)
        except NonsenseError as error:
            self.site.trace.complain(who, slurm_ckpt_stepd_prefork.name, str(error))
            return False
        return True

    def _open_files(self) -> bool:
        """Open the output of a batch script and go to its directory; false if that cannot be.

        Tasks of srun go to their directory; what they write is srun's to open.
        """
        if self._batch:
            return self._files.open()
        problem = self._files.enter()
        if problem:
            self._srun.output(self.work.tids[0], "stderr", problem)
        return True

    def _fork_task(self, parent: Process, procid: int, rank: int) -> Task:
        process = parent.fork(daemon="task", role="task", task=rank)
        task = Task(rank=rank, procid=procid, process=process)
        self.tasks.add(task)
        return task

    async def _start_task(self, task: Task) -> None:
        """Let a forked task become its program: in this turn, or in a thread of its own.

        An attach that takes time blocks its own task, and neither the parent nor its siblings.
        """
        if task.ended:
            return
        takes_time = (
            self._scripts.prologs
            or self.work.restart_dir
            or (not self._batch and self._hooks.takes_time(switch_p_job_attach))
        )
        if not takes_time and not self.site.kernel.schedule.separates_processes:
            await self._become_program(task)
            return

        async def body() -> None:
            await self._become_program(task)
            if task.ended:
                self.mailbox.post(TaskEnded())
            elif task.due_us < NEVER_US:
                # The parent may be waiting without knowing when this task will end.
                self.mailbox.post(TaskEnded())

        task.process.start(body, f"task {task.rank}")

    async def _become_program(self, task: Task) -> None:
        """Attach the task to the interconnect as the user, and execute its program."""
        process = task.process
        work = self.work
        env = dict(work.env)
        if not self._batch:
            attached = await self._hooks.call(
                switch_p_job_attach,
                process,
                CREDENTIAL,
                env,
                work.job.nodeid,
                task.procid,
                work.nnodes,
                work.job.ntasks,
                task.rank,
            )
            if task.ended:
                # It was killed as it attached.
                return
            if failed(attached):
                self._write(task, 2, await self._attach_problem(process))
                task.leave(wait_status(1))
                return
        if self._scripts.prologs and not await self._run_prologs(task, env):
            return
        if work.restart_dir:
            await self._restart(task, env)
            return
        argv = work.programs[task.procid] if work.programs else work.argv
        task.stdin = Input(_input_of(work.inputs, task.procid) or self._files.input)
        run = self.site.programs.of_task(
            argv,
            task.rank,
            self._files.of_user,
            task.stdin,
            searches=self._batch or work.searches,
        )
        if isinstance(run, ProgramRun) and run.exec_errno and not self._batch:
            run = not_executed(run, argv[0], self._name)
        self._execute(task, argv, run, env)

    def _execute(
        self,
        task: Task,
        argv: tuple[str, ...],
        run: ProgramRun | ScriptRun | OutsideRun,
        env: dict[str, str],
    ) -> None:
        """Have a task become a program, which starts now."""
        process = task.process
        process.env = env
        process.exec(argv[0])
        if task.ended:
            return
        task.argv = argv
        self._begin(task)
        if isinstance(run, ScriptRun):
            self._start_script(task, run, env)
            return
        if isinstance(run, OutsideRun):
            self._start_outside(task, run, env)
            return
        if run.error:
            self._write(task, 2, run.error)
        task.run(run, self.site.kernel.now_us)

    def _begin(self, task: Task) -> None:
        """Let a task be saved from now on, if there are checkpoints."""
        if self.site.images.enabled:
            task.changed = lambda: self.mailbox.post(TasksSignalled())
            self.site.images.watch(task)

    # Restarting.

    async def _restart(self, task: Task, env: dict[str, str]) -> None:
        """Have the checkpoint plugin restart a task; one that it comes back to ends."""
        process = task.process
        work = self.work
        try:
            await self._hooks.call(
                slurm_ckpt_restart_task,
                process,
                work.job,
                work.restart_dir,
                task.rank,
                about=self._record(batch=int(work.job.batch)),
            )
        except Executed as executed:
            await self._become(task, executed, env)
            return
        text = await self._hooks.strerror(process, process.errno or SLURM_ERROR)
        self._write(task, 2, f"slurmstepd-{self._name}: error: Restart task failed: {text}\n")
        task.leave(wait_status(process.errno or 1))

    async def _become(self, task: Task, executed: Executed, env: dict[str, str]) -> None:
        """Have a task become what its checkpoint plugin executes."""
        argv = executed.argv
        env = env if executed.env is None else executed.env
        programs, files = self.site.programs, self._files.of_user
        if programs.helper(argv[0], files) != RESTART_HELPER:
            run = programs.find(argv, task.rank, files)
            self._execute(task, argv, run, env)
            return
        task.process.exec(argv[0])
        path = self.site.disk.resolve("".join(argv[1:2]), self._files.work_dir)
        try:
            image = await self.site.images.load(task.process, path)
            self._go_on(task, image, path, env)
        except ImageError as error:
            self._write(task, 2, f"{error}\n")
            task.leave(wait_status(1))

    def _go_on(self, task: Task, image: Image, path: str, env: dict[str, str]) -> None:
        """Have a task go on from an image."""
        state = image.state
        process = task.process
        if isinstance(state, ScriptState):
            process.env = dict(state.env)
            task.stdin = Input(state.stdin)
            host = self._script_host(task)
            process.exec(image.program)
            host.restore(state, path)
            task.host = host
        elif isinstance(state, ProgramState):
            process.env = env
            process.exec(image.program)
            task.resume(state, self.site.kernel.now_us)
        else:
            raise ImageError(f"{RESTART_HELPER}: {path}: a command by itself cannot be restarted")
        self._begin(task)

    async def _run_prologs(self, task: Task, env: dict[str, str]) -> bool:
        """Run the task's prologs, which may change *env*; one that fails ends it: then false."""
        failure = await self._scripts.run_prologs(
            task, self._task_env(task, env), env, lambda text: self._write(task, 1, text)
        )
        if failure is None:
            return True
        if not task.ended:
            self._write(task, 2, f"slurmstepd-{self._name}: error: {failure.text}\n")
            task.leave(failure.status)
        return False

    def _task_env(self, task: Task, env: dict[str, str]) -> dict[str, str]:
        """Return *env* with what tells a task who it is."""
        pid = task.process.pid
        return {**env, **task_environment(task.rank, task.procid, pid, self.work.job.nodeid)}

    async def _attach_problem(self, process: Process) -> str:
        text = await self._hooks.strerror(process, process.errno or SLURM_ERROR)
        return f"slurmstepd-{self._name}: error: Unable to attach to interconnect: {text}\n"

    def _start_script(self, task: Task, run: ScriptRun, env: dict[str, str]) -> None:
        full = task.process.env = self._task_env(task, env)
        host = task.host = self._script_host(task)
        host.start_script(run, full)

    def _start_outside(self, task: Task, run: OutsideRun, env: dict[str, str]) -> None:
        files = self._files
        full = task.process.env = self._task_env(task, env)
        task.host = run.start(
            OutsideTask(
                process=task.process,
                argv=task.argv,
                env=full,
                user=self.work.user,
                work_dir=files.work_dir,
                batch=self._batch,
                stdin=task.stdin.take(),
                readers=1 if len(self.work.inputs) > 1 else self.work.job.ntasks,
                write=lambda stream, text: self._write(task, stream, text),
                ended=lambda status: self._program_ended(task, status),
                std_out=files.path(1),
                std_err=files.path(_STDERR),
            )
        )

    def _program_ended(self, task: Task, status: int) -> None:
        """Note how the program of a task has ended, which tells that by itself."""
        if self._batch and status == OUT_OF_MEMORY_STATUS:
            self._write(task, 2, out_of_memory_line(task.process.step, self._name))
        task.leave(status)
        self.mailbox.post(TaskEnded())

    def _script_host(self, task: Task) -> ScriptHost:
        """Return what the script of a task runs in."""
        return ScriptHost(
            self.site,
            task.process,
            user=self.work.user,
            work_dir=self._files.work_dir,
            output=lambda stream, text: self._write(task, stream, text),
            ended=lambda status: self._program_ended(task, status),
            stdin=task.stdin,
        )

    def _write(self, task: Task, stream: int, text: str) -> None:
        """Carry what a task wrote to the files of a batch job, or to srun."""
        if self._batch:
            self._files.write(stream, text)
            return
        if self.process.exited:
            # It was killed: what the task writes comes to a closed pipe.
            return
        self._srun.output(task.rank, "stderr" if stream == _STDERR else "stdout", text)

    # Waiting.

    async def _wait_for_tasks(self, parent: Process, reporter: Process) -> None:
        """Wait until every task has ended, serving requests; *parent* reaps, *reporter* tells."""
        tasks = self.tasks
        kernel = self.site.kernel
        while True:
            if self._kill_us <= kernel.now_us:
                self._kill_us = NEVER_US
                tasks.signal(SIGKILL)
            for task in tasks.end_due(kernel.now_us):
                assert task.program is not None
                self._write(task, 1, task.program.output)
            self._reap(parent, epilogs=bool(self._scripts.epilogs))
            if reporter is not parent:
                reporter.cause = parent.cause
            self._srun.tell_early(more_to_come=bool(tasks.alive or self._cleaning))
            if not tasks.alive and not self._cleaning:
                if self.site.trace.recording:
                    ends = (task.process.cause for task in tasks.tasks)
                    self.site.trace.choose(parent, *ends, *self._cleaned_causes)
                reporter.cause = parent.cause
                return
            due_us = min(tasks.next_due_us(), self._kill_us, self._srun.due_us)
            if due_us < NEVER_US:
                envelope = await self.mailbox.receive_until(due_us)
            else:
                envelope = await self.mailbox.receive()
            if envelope is not None:
                self._serve(envelope)
            else:
                self._srun.flush()

    def _reap(self, parent: Process, *, epilogs: bool = False) -> None:
        """Note which tasks have ended; those that have *epilogs* count once these are over."""
        reaped = self.tasks.reap()
        for task in reaped:
            self.site.images.forget(task)
            parent.cause = task.process.cause
            if not epilogs:
                self._srun.ended(task.rank, task.status, parent.cause)
        if not epilogs:
            return
        if reaped:
            self._cleaning += len(reaped)
            parent.start(lambda: self._run_epilogs(parent, reaped), "task epilogs")
        cleaned, self._cleaned = self._cleaned, []
        for task, cause in cleaned:
            parent.cause = cause
            self._cleaned_causes.append(cause)
            self._cleaning -= 1
            self._srun.ended(task.rank, task.status, parent.cause)

    async def _run_epilogs(self, parent: Process, ended: list[Task]) -> None:
        """Run the epilogs of tasks that have ended, one task after the other."""
        for task in ended:
            env = self._task_env(task, task.process.env or self.work.env)
            await self._scripts.run_epilogs(parent, task, env)
            self._cleaned.append((task, parent.cause))
        self.mailbox.post(TaskEnded())

    def _serve(self, envelope: Envelope) -> None:
        """Serve a request that reaches the step daemon while its tasks run."""
        message = envelope.message
        if isinstance(message, ResponseSlurmRc | Unanswered):
            self._srun.answered(message)
        elif isinstance(message, RequestSignalTasks):
            self._told_to_end = self._told_to_end or message.container
            self._signal(message)
        elif isinstance(message, RequestStepComplete):
            self._reports.fold(message)
        elif isinstance(message, RequestJobNotify):
            if self.tasks.alive:
                line = f"slurmstepd-{self._name}: error: {message.text}\n"
                self._write(self.tasks.tasks[0], 2, line)
        elif isinstance(message, RequestStepSuspend | RequestCheckpointTasks):
            if self._suspender is None:
                checkpoints = CheckpointRequests(
                    self._hooks,
                    self.process,
                    self.work,
                    lambda: bool(self.tasks.alive),
                    self._record(batch=int(self._batch)),
                )
                self._suspender = Suspender(
                    self.site,
                    self.process,
                    self.tasks,
                    self.mailbox,
                    checkpoints,
                    self.work.job,
                    self._record_of_tasks(),
                )
            self._suspender.ask(envelope)

    def _signal(self, message: RequestSignalTasks) -> None:
        """Signal the tasks; those of a suspended step take SIGKILL alone."""
        suspended = self._suspender is not None and self._suspender.suspended
        if not self._told_user and message.signal in (SIGTERM, SIGKILL):
            self._told_user = True
            self._tell_end(message.reason)
        if message.signal in ENDINGS:
            self._begin_end(message.signal)
        elif message.signal == SIGKILL or not suspended:
            self.tasks.signal(message.signal, children=message.container or not self._batch)

    def _begin_end(self, number: int) -> None:
        """End the tasks for a reason: the user is told, SIGTERM comes first, SIGKILL later."""
        ending = ENDINGS[number]
        site = self.site
        now_us = site.kernel.now_us
        self._told_user = True
        self._tell_end(ending.reason)
        if ending.at_once:
            self.tasks.signal(SIGKILL)
            return
        self.tasks.signal(SIGCONT)
        self.tasks.signal(SIGTERM)
        self._kill_us = min(self._kill_us, now_us + grace_s(site.conf.kill_wait_s) * SECOND)

    def _tell_end(self, reason: str) -> None:
        """Tell the user that the tasks are ended, and why."""
        job = self.work.job
        site = self.site
        if job.nodeid == 0 and self.tasks.alive:
            line = cancelled_line(
                step=step_name(job.job_id, job.step_id),
                node=self._name,
                epoch_s=site.start_time_s + site.kernel.now_us // SECOND,
                reason=reason,
            )
            self._write(self.tasks.tasks[0], 2, line)

    async def _hear_srun_out(self) -> None:
        """Wait until srun has answered what it was told, or for a while for one that is dead."""
        own = self.process.cause
        answers = []
        while self._srun.waits_until_us > self.site.kernel.now_us:
            envelope = await self.mailbox.receive_until(self._srun.waits_until_us)
            if envelope is not None:
                self._serve(envelope)
                if isinstance(envelope.message, ResponseSlurmRc):
                    answers.append(self.process.cause)
        self.process.cause = own
        self.site.trace.join(self.process, *answers)

    async def _let_srun_hear(self) -> None:
        """Stay until srun has been told all it waits for, unless the job is over."""
        while self._srun.held_back_until_us < NEVER_US and not self._told_to_end:
            envelope = await self.mailbox.receive_until(self._srun.held_back_until_us)
            if envelope is None:
                self._srun.flush()
            else:
                self._serve(envelope)


def _input_of(inputs: tuple[str, ...], local_id: int) -> str:
    """Return the standard input of a task: what all have, its own, or nothing."""
    return inputs[local_id if len(inputs) > 1 else 0] if inputs else ""
