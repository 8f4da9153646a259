"""What the switch is told, and when, of a job that is suspended."""

from pathlib import Path

from msgspec import UNSET

from tests.cluster import Ran, run
from tests.moments import BOTH, ran_with, said, timeline, to_state

# Suspended steps.

TELLS_STEPS = """
async def _told(self, what):
    log.info(what)
    await sleep(5)
async def switch_p_job_step_pre_suspend(self, slurmd_job):
    await self._told("pre suspend")
async def switch_p_job_step_post_suspend(self, slurmd_job):
    await self._told("post suspend")
async def switch_p_job_step_pre_resume(self, slurmd_job):
    await self._told("pre resume")
async def switch_p_job_step_post_resume(self, slurmd_job):
    await self._told("post resume")
"""


def suspended(folder: Path, methods: str, *more: str, pauses: str = "10 40") -> Ran:
    """Run a step of a job that is suspended at one moment and resumed at the other."""
    begin, end = pauses.split()
    return ran_with(
        folder,
        methods,
        "programs:\n  ./app: {runs: 100s, on_signal: {USR1: ignore}}\n"
        + timeline(
            'at: 0s, as: alice, run: "srun -N1 ./app"',
            f"at: {begin}s, run: scontrol suspend 1",
            f"at: {end}s, run: scontrol resume 1",
            *more,
        ),
        model="modern",
    )


def test_tasks_are_signalled_between_what_the_switch_is_told_before_and_after(
    tmp_path: Path,
) -> None:
    """SIGTSTP, two seconds, SIGSTOP; and SIGCONT."""
    ran = suspended(tmp_path, TELLS_STEPS)
    found = [
        f"{event.time_us // 1_000_000} "
        + str(event.args["text"] if event.kind == "log" else event.args["signal"])
        for event in ran.events
        if event.args is not UNSET and event.name in ("plugin_log", "signal")
    ]
    assert found == [
        *("10 pre suspend", "15 20", "17 19", "17 post suspend"),
        *("40 pre resume", "45 18", "45 post resume"),
    ]


def test_signals_are_refused_from_the_stop_until_the_tasks_go_on(tmp_path: Path) -> None:
    """Told that a step is stopped, the switch may rely on it; told that it goes on, as well."""
    for pauses, moments, delivered in (("10 40", (42, 46), [46]), ("10 11", (14, 19, 24), [14])):
        ran = suspended(
            tmp_path,
            TELLS_STEPS,
            *(f'at: {each}s, as: alice, run: "scancel -s USR1 1.0"' for each in moments),
            pauses=pauses,
        )
        found = ran.all("signal", args_signal=10)
        assert [event.time_us // 1_000_000 for event in found] == delivered


INFO_GET = """
async def switch_p_job_suspend_info_get(self, switch_job, suspend_info):
    await sleep(10)
    return 1
"""


def test_a_job_is_suspended_from_when_the_switch_has_told_what_its_nodes_are_told(
    tmp_path: Path,
) -> None:
    """Its nodes are given back before; its clock stands still from the end of the call on."""
    ran = suspended(
        tmp_path,
        INFO_GET,
        "at: 30s, run: scontrol show job 1",
        "at: 60s, run: scontrol show job 1",
    )
    stopped, resumed = (each.stdout for each in ran.result.commands[3:])
    assert "RunTime=00:00:20 " in stopped
    assert "SuspendTime=2026-01-01T00:00:20 SecsPreSuspend=20" in stopped
    assert "RunTime=00:00:30 " in resumed
    told = ran.all("switch_p_job_suspend_info_get")
    states = [
        (to_state(each), told[place].enter < each.seq, told[place].seq < each.seq)  # type: ignore[operator]
        for place, at in enumerate((10, 40))
        for each in ran.events
        if each.name in ("node_state", "job_state") and at <= each.time_us / 1e6 <= at + 11
    ]
    assert states == [
        *(("IDLE", False, False), ("SUSPENDED", True, True)),
        *(("ALLOCATED", False, False), ("RUNNING", True, True)),
    ]


def test_a_job_is_suspended_only_if_each_of_its_steps_may_be(tmp_path: Path) -> None:
    """Not if the second may not: nothing is told, and whoever asked is."""
    methods = """
    def switch_p_alloc_jobinfo(self):
        return [now()]
    def switch_p_job_suspend_test(self, switch_job):
        if switch_job[0] > 1:
            raise SlurmError(22)
    """
    ran = ran_with(
        tmp_path,
        methods,
        "files:\n  two.sh: |\n    #!/bin/sh\n"
        "    srun -n1 sleep 60 &\n    sleep 3\n    srun -n1 sleep 60\n"
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N1 -n2 two.sh"',
            "at: 2s, run: scontrol suspend 1",
            "at: 2.5s, run: scontrol resume 1",
            "at: 10s, run: scontrol suspend 1",
        ),
        model="modern",
    )
    assert [each.exit for each in ran.result.commands] == [0, 0, 0, 1]
    assert len([each for each in ran.all("job_state") if to_state(each) == "SUSPENDED"]) == 1


def test_a_pass_follows_the_suspension_and_not_the_request(tmp_path: Path) -> None:
    """Who came while the switch told what nodes are told is looked at in that pass."""
    step = "sbatch -N1 -w n{} --wrap 'srun sleep 100'"
    ran = ran_with(
        tmp_path,
        INFO_GET,
        timeline(
            f'at: 0s, as: alice, run: "{step.format(1)}"',
            f'at: 0s, as: alice, run: "{step.format(2)}"',
            "at: 5s, as: alice, run: \"sbatch -N2 --wrap 'sleep 100'\"",
            "at: 9s, run: scontrol suspend 1",
            "at: 12s, run: \"sbatch -N1 --priority=4294967290 --wrap 'sleep 20'\"",
            "at: 90s, run: scontrol resume 1",
        ),
        model="modern",
    )
    started = ran.one("job_state", job=4, args_to="RUNNING")
    assert started.time_us // 1_000_000 == 19


def test_the_switch_is_not_asked_about_a_job_that_cannot_go_on(tmp_path: Path) -> None:
    """Others have its nodes: whoever wants it resumed is told, and nothing else happens."""
    methods = INFO_GET.replace("await sleep(10)", "pass")
    ran = suspended(tmp_path, methods, "at: 12s, as: bob, run: 'srun -N2 sleep 60'")
    assert "nodes are busy" in ran.stderr(2)
    assert len(ran.all("switch_p_job_suspend_info_get")) == 1


TAKES_TWO = """
def switch_p_job_suspend_info_unpack(self, buffer):
    self.times = getattr(self, "times", 0) + 1
    if self.times in {}:
        raise SlurmError(22)
    return 7
"""


def answers(ran: Ran, rpc: str) -> list[int]:
    """Return the codes with which step daemons answer a request."""
    found = ran.all("RESPONSE_SLURM_RC", phase="send", role="manager", args_answers=rpc)
    return [each.args["return_code"] for each in found if each.args is not UNSET]


def test_a_step_that_is_not_suspended_says_so_when_it_is_to_go_on(tmp_path: Path) -> None:
    """The switch could not read that it was to be suspended; it can read that it is resumed."""
    text = timeline(
        'at: 0s, as: alice, run: "srun -N1 sleep 60"',
        "at: 10s, run: scontrol suspend 1",
        "at: 20s, run: scontrol resume 1",
    )
    ran = ran_with(tmp_path, TAKES_TWO.format("(1,)") + TELLS_STEPS, text, model="modern")
    assert answers(ran, "REQUEST_STEP_RESUME") == [4029]
    assert said(ran) == []


def test_a_step_that_is_suspended_says_so_when_it_is_to_be_again(tmp_path: Path) -> None:
    """The switch could not read that it was resumed in between."""
    text = timeline(
        'at: 0s, as: alice, run: "srun -N1 sleep 60"',
        "at: 10s, run: scontrol suspend 1",
        "at: 20s, run: scontrol resume 1",
        "at: 30s, run: scontrol suspend 1",
        "at: 40s, run: scontrol resume 1",
    )
    ran = ran_with(tmp_path, TAKES_TWO.format("(2,)") + TELLS_STEPS, text, model="modern")
    assert answers(ran, "REQUEST_STEP_SUSPEND") == [0, 4028]
    assert said(ran) == ["pre suspend", "post suspend", "pre resume", "post resume"]
    assert ran.job()[0] == "COMPLETED"


def test_an_errno_that_cannot_be_asked_for_is_none(tmp_path: Path) -> None:
    """get_errno fails as well: what it fails with is not what the call failed with."""
    methods = """
    def switch_p_job_suspend_test(self, switch_job):
        raise SlurmError(22)
    def switch_p_get_errno(self):
        raise SlurmError(2)
    """
    text = timeline(
        'at: 0s, as: alice, run: "srun -N1 sleep 60"', "at: 10s, run: scontrol suspend 1"
    )
    ran = ran_with(tmp_path, methods, text, model="modern")
    answer = ran.one("RESPONSE_SLURM_RC", phase="send", args_answers="REQUEST_SUSPEND")
    assert answer.args is not UNSET
    assert answer.args["return_code"] == -1


@BOTH
def test_a_step_whose_tasks_die_while_it_is_suspended_is_over_before_it_goes_on(
    model: str,
) -> None:
    """Its switch hears of it though its job stands still, and its srun with it."""
    ran = run(
        timeline(
            "at: 0s, as: alice, run: \"sbatch -N2 --wrap 'srun -N2 sleep 100; sleep 100'\"",
            "at: 10s, run: scontrol suspend 1",
            "at: 20s, fault: {crash: task 1.0.0}",
            "at: 20s, fault: {crash: task 1.0.1}",
            "at: 40s, run: scontrol resume 1",
        ),
        model=model,
    )
    assert ran.one("switch_p_job_step_complete").time_us // 1_000_000 == (
        20 if model == "guide" else 30
    )
    assert ran.job()[0] == "COMPLETED"


def test_the_switch_hears_of_each_suspension_of_a_job(tmp_path: Path) -> None:
    """What it is told is released each time."""
    methods = """
    def switch_p_job_suspend_info_get(self, switch_job, suspend_info):
        return 1
    def switch_p_job_suspend_info_unpack(self, buffer):
        return 1
    def switch_p_job_suspend(self, suspend_info, max_wait):
        pass
    def switch_p_job_resume(self, suspend_info, max_wait):
        pass
    def switch_p_job_suspend_info_free(self, suspend_info):
        pass
    """
    ran = suspended(
        tmp_path, methods, "at: 50s, run: scontrol suspend 1", "at: 70s, run: scontrol resume 1"
    )
    called = [
        f"{each.time_us // 1_000_000} {each.name[13:]}"
        for each in ran.all(kind="plugin", role="slurmd")
        if each.name in ("switch_p_job_suspend", "switch_p_job_resume")
    ]
    assert called == ["10 suspend", "40 resume", "50 suspend", "70 resume"]
    assert len(ran.all("switch_p_job_suspend_info_free", role="slurmd")) == 4


def test_a_step_that_adds_nothing_takes_nothing_away_from_what_the_nodes_are_told(
    tmp_path: Path,
) -> None:
    """The second gives none; what the first gave is packed for each node."""
    methods = """
    def switch_p_job_suspend_info_get(self, switch_job, suspend_info):
        return "told" if suspend_info is None else None
    def switch_p_job_suspend_info_pack(self, suspend_info, buffer):
        log.info(f"{suspend_info}")
    """
    ran = ran_with(
        tmp_path,
        methods,
        "files:\n  two.sh: |\n    #!/bin/sh\n    srun sleep 30 &\n    srun sleep 30\n"
        + timeline(
            'at: 0s, as: alice, run: "sbatch -N2 -n2 two.sh"',
            "at: 5s, run: scontrol suspend 1",
            "at: 9s, run: scontrol resume 1",
        ),
        model="modern",
    )
    assert len(ran.all("switch_p_job_suspend_info_get")) == 4
    assert said(ran) == ["told"] * 4
