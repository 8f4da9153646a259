"""How often, and one after which, plugin functions are called in the plainest of runs.

The built-in orderings say what may never be; this says what is: a call that is made twice, or no
more, or a line later, shows here whatever golden traces hold.
"""

from collections import Counter
from typing import Any

import pytest
from msgspec import UNSET

from simctl.plugin import SlurmError
from tests.cluster import BATCH, STEP, Ran, fault, run, with_plugin
from tests.staged import staged

MODELS = ("guide", "modern")

DAEMONS = {
    "slurmctld": "init init libstate_restore libstate_save fini fini",
    "slurmd": "init node_init alloc_node_info build_node_info pack_node_info free_node_info "
    "node_fini fini",
}
"""What every run calls in model guide: slurmctld once, slurmd once a node."""

OF_REGISTRATIONS = "alloc_node_info unpack_node_info free_node_info"
"""What slurmctld calls for each node that registers."""

OF_STEP = {
    "slurmctld": "alloc_jobinfo build_jobinfo copy_jobinfo pack_jobinfo free_jobinfo "
    "job_step_complete free_jobinfo alloc_job free_job",
    "srun": "init alloc_jobinfo unpack_jobinfo pack_jobinfo pack_jobinfo free_jobinfo fini",
    "slurmd": "alloc_jobinfo unpack_jobinfo pack_jobinfo free_jobinfo",
    "manager": "init init alloc_jobinfo unpack_jobinfo job_preinit job_postfini fini fini",
    "session": "job_init stepd_prefork job_fini",
    "task": "job_attach job_attach",
}
"""What a step of two nodes calls beside: slurmctld and srun once, the others once a node."""

OF_JOB = "no_frag alloc_job free_job"
OF_SCRIPT = {"manager": "init init fini fini", "session": "stepd_prefork"}

GUIDE_ALONE = {
    "slurmctld": "fini fini alloc_node_info alloc_node_info no_frag copy_jobinfo free_jobinfo",
    "srun": "fini alloc_jobinfo",
    "slurmd": "alloc_jobinfo alloc_jobinfo",
    "manager": "alloc_jobinfo alloc_jobinfo fini fini fini fini",
}
"""What model modern does without, on both nodes together."""

_PREFIXES = ("switch_p_", "slurm_ckpt_", "bb_p_")


def short(name: str) -> str:
    """Return a function's name without its interface's."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def calls(ran: Ran) -> Counter[tuple[Any, str]]:
    """Count the calls of a run by role and function."""
    return Counter((event.role, short(event.name)) for event in ran.all(kind="plugin"))


def wanted(*parts: tuple[str, str, int]) -> Counter[tuple[Any, str]]:
    """Count what is written: of each part its role, its functions, and how many times all that."""
    count: Counter[tuple[Any, str]] = Counter()
    for role, names, times in parts:
        for name in names.split():
            count[role, name] += times
    return count


def of_daemons() -> list[tuple[str, str, int]]:
    """Return what daemons call on two nodes."""
    return [
        ("slurmctld", DAEMONS["slurmctld"], 1),
        ("slurmctld", OF_REGISTRATIONS, 2),
        ("slurmctld", OF_JOB, 1),
        ("slurmd", DAEMONS["slurmd"], 2),
    ]


def test_a_step_calls_each_function_as_often_as_there_are_processes_for_it() -> None:
    """Model guide, two nodes with two tasks each: whatever is doubled or left out is counted."""
    parts = [
        (role, names, 1 if role in ("slurmctld", "srun") else 2) for role, names in OF_STEP.items()
    ]
    assert calls(run(STEP)) == wanted(*of_daemons(), *parts)


def test_a_script_calls_nothing_of_the_switch() -> None:
    """One step daemon loads its plugins, asks the checkpoint plugin, and lets them go."""
    parts = [(role, names, 1) for role, names in OF_SCRIPT.items()]
    assert calls(run(BATCH)) == wanted(*of_daemons(), *parts)


def test_modern_makes_the_same_calls_but_those_that_slurm_has_lost() -> None:
    """Of Slurm's own; what srun loads of other switch plugins is another matter."""
    guide, modern = calls(run(STEP)), calls(run(STEP, model="modern"))
    del modern["srun", "init"], guide["srun", "init"]
    fewer = wanted(*((role, names, 1) for role, names in GUIDE_ALONE.items()))
    for name in ("job_init", "stepd_prefork", "job_fini"):
        guide["manager", name] = guide.pop(("session", name))
    assert guide - fewer == modern


def asked(ran: Ran, *, since_s: float = 1, until_s: float = 1000) -> list[str]:
    """Return what slurmctld asks burst buffer plugins and the switch of jobs, one by one."""
    found = []
    for event in ran.all(kind="plugin", role="slurmctld"):
        name = short(event.name)
        if (
            event.name.startswith("bb_p_") or name == "no_frag"
        ) and since_s <= event.time_us / 1e6 < until_s:
            job = "" if event.job is UNSET else f" {event.job}"
            only = event.args is not UNSET and event.args.get("test_only")
            answer = f" = {event.rc}" if name.startswith("job_test") else ""
            found.append(f"{event.time_us / 1e6:.0f}s {name}{job}{' only' if only else ''}{answer}")
    return found


COMES_IN = ["1s job_validate", "1s job_validate2 1", "1s job_set_tres_cnt 1"]
WAITS = [
    *COMES_IN,
    "1s job_test_stage_in 1 only = -1",
    "1s load_state",
    "1s no_frag",
    "1s job_test_stage_in 1 = 0",
    "1s job_try_stage_in",
]
SECOND = ["2s job_validate", "2s job_validate2 2", "2s job_set_tres_cnt 2"]


def test_a_job_alone_is_asked_about_once_at_each_turn_of_its_life() -> None:
    """From its submission to its end, in model guide."""
    assert asked(staged("1: sbatch job.sh")) == [
        *WAITS,
        *("6s load_state", "6s no_frag", "6s job_test_stage_in 1 = 1"),
        *("6s job_begin 1", "6s job_set_tres_cnt 1"),
        "18s job_start_stage_out 1",
        *("18s job_test_post_run 1 = 0", "22s job_test_post_run 1 = 1"),
        "40s job_test_stage_out 1 = 1",
    ]


def test_before_a_new_job_those_ahead_of_it_are_asked_about() -> None:
    """Of a batch job, and of a srun, which is then asked about twice: may it, and does it."""
    batch = staged("1: sbatch job.sh", "2: sbatch job.sh")
    assert asked(batch, until_s=3) == [
        *(*WAITS, *SECOND),
        *("2s job_test_stage_in 1 only = 0", "2s job_test_stage_in 2 only = -1"),
    ]
    interactive = staged("1: sbatch job.sh", "2: srun --bb='in=1' true")
    assert asked(interactive, until_s=3) == [
        *(*WAITS, *SECOND, "2s no_frag", "2s job_test_stage_in 1 only = 0"),
        *("2s job_test_stage_in 2 = 0", "2s job_test_stage_in 2 only = 0"),
    ]


def test_a_job_after_a_burst_buffer_has_its_stage_out_asked_about_once() -> None:
    """When it has left its nodes, in the same pass as the job that waits for it."""
    ran = staged("1: sbatch job.sh", "2: sbatch -d afterburstbuffer:1 plain.sh")
    assert asked(ran, since_s=18, until_s=30) == [
        "18s job_start_stage_out 1",
        *("18s job_test_post_run 1 = 0", "22s job_test_post_run 1 = 1"),
        *("22s job_test_stage_out 1 = 1", "22s no_frag"),
        *("22s job_test_stage_in 2 = 1", "22s job_begin 2", "22s job_set_tres_cnt 2"),
    ]


def test_a_pass_loads_the_state_and_asks_for_fragments_once() -> None:
    """Whoever waits is then asked about, and stage-in ends it: the main loop's and backfill's."""
    ran = staged("1: sbatch -N2 plain.sh", "2: sbatch job.sh", conf="SchedulerType: sched/backfill")
    assert asked(ran, since_s=2, until_s=11) == [
        *SECOND,
        "2s job_test_stage_in 2 only = -1",
        *("4s load_state", "4s no_frag", "4s job_test_stage_in 2 = 0", "4s job_try_stage_in"),
        *("9s load_state", "9s no_frag", "9s job_test_stage_in 2 = 1"),
    ]


@pytest.mark.parametrize(
    ("model", "wanted_calls"),
    [
        ("guide", ["load_state", "job_set_tres_cnt 1", *["get_system_size"] * 2]),
        ("modern", ["job_set_tres_cnt 1", "load_state"]),
    ],
)
def test_a_restart_asks_about_a_running_job_once(model: str, wanted_calls: list[str]) -> None:
    """Its counts; the state is loaded first in model guide, last in modern."""
    ran = staged("1: sbatch job.sh", "9 {fault: {restart: slurmctld, for: 2s}}", model=model)
    assert asked(ran, since_s=8, until_s=13) == [f"11s {each}" for each in wanted_calls]


FED = "slurm_conf: {SwitchType: switch/federation}\n"


@pytest.mark.parametrize(
    ("function", "question", "role"),
    [
        ("get_jobinfo", "1.0 type=1", "slurmctld"),
        ("alloc_node_info", "n2", "slurmd"),
        ("build_node_info", "n2", "slurmd"),
    ],
)
def test_an_error_of_the_switchs_own_is_put_into_words_once_where_it_came_up(
    function: str, question: str, role: str
) -> None:
    """By the process that was asked, right before it answers."""
    lines = (
        '  - {at: 0s, as: alice, run: "srun -N2 sleep 60"}\n'
        f'  - {{at: 1s, fault: {{fail: "switch_p_{function}", errno: 3001}}}}\n'
        f"  - {{at: 1s, as: bob, run: 'scontrol show switch {question}'}}\n"
    )
    ran = run(FED + "timeline:\n" + lines)
    failed = ran.all(f"switch_p_{function}", rc=-1)[0]
    told = ran.one("switch_p_strerror")
    assert (told.role, told.pid, told.uid) == (role, failed.pid, failed.uid)
    assert told.args == {"errnum": 3001}
    answer = ran.one("RESPONSE_SWITCH_INFO", phase="send")
    assert failed.seq < told.seq < answer.seq
    assert ran.result.commands[-1].stderr == f"slurm_load_switch error: {told.rc}\n"


def test_a_task_asks_once_what_an_error_of_the_switchs_own_means(tmp_path: Any) -> None:
    """As the user whose task it is; and it is that task that ends."""

    def switch_p_job_attach(  # type: ignore[no-untyped-def]
        self, switch_job, env, nodeid, procid, nnodes, nprocs, rank
    ) -> None:
        raise SlurmError(3007)

    keys = with_plugin(tmp_path, switch_p_job_attach)
    ran = run(keys + STEP.replace("-n4 --ntasks-per-node=2", "-n2"), folder=tmp_path)
    for failed in ran.all("switch_p_job_attach"):
        told = ran.one("switch_p_strerror", pid=failed.pid)
        assert (told.role, told.uid, told.euid) == ("task", 1001, 1001)


def test_the_errno_is_asked_for_after_switch_functions_alone_and_once() -> None:
    """Not after get_errno itself, which fails here as well."""
    ran = run(fault("switch_p_get_errno", fault("switch_p_job_init node=n2")))
    asked_for = ran.one("switch_p_get_errno")
    assert asked_for.seq == ran.one("switch_p_job_init", node="n2").seq + 1


def test_a_node_without_a_record_of_its_switch_registers_all_the_same() -> None:
    """Nothing is filled, packed or released, and the registration bears nothing of the switch."""
    ran = run(fault("switch_p_alloc_node_info node=n2"))
    names = [
        event.name.removeprefix("switch_p_")
        for event in ran.all(kind="plugin", daemon="slurmd", node="n2")
        if "node" in event.name or "errno" in event.name
    ]
    assert names[:3] == ["node_init", "alloc_node_info", "get_errno"]
    assert not {"build_node_info", "pack_node_info", "free_node_info"} & set(names)
    assert ran.all("MESSAGE_NODE_REGISTRATION_STATUS", phase="send", node="n2")
    assert ran.job()[0] == "COMPLETED"


def test_a_step_whose_output_cannot_be_opened_is_reported_and_then_let_go() -> None:
    """Nothing was launched: srun reports it over for the nodes, and releases its credential."""
    ran = run(STEP.replace("sleep 10", "-o /nope/x sleep 10"))
    released = ran.one("switch_p_free_jobinfo", role="srun")
    assert ran.one("REQUEST_STEP_COMPLETE", phase="send").seq < released.seq
    assert released.uid == 1001
    assert ran.all("switch_p_pack_jobinfo", role="srun") == []


def test_a_backfill_loads_the_state_and_asks_for_fragments_once() -> None:
    """Then it asks about whoever waits, and when he could start; space is given at its end."""
    ran = staged(
        "1: sbatch -N2 plain.sh",
        "2: sbatch -N2 plain.sh",
        "3: sbatch job.sh",
        does="sleep 100",
        conf="SchedulerType: sched/backfill",
    )
    assert asked(ran, since_s=31, until_s=61) == [
        *("60s load_state", "60s no_frag", "60s job_test_stage_in 2 only = 1"),
        *("60s job_test_stage_in 3 only = -1", "60s job_get_est_start 3"),
        "60s job_try_stage_in",
    ]


def test_a_step_that_lost_its_last_node_is_over() -> None:
    """Of a job that is not to be killed: its switch hears of it once, and its records go."""
    lines = (
        "slurm_conf: {SlurmdTimeout: 30}\n"
        "timeline:\n"
        '  - {at: 0s, as: alice, run: "salloc --no-kill -N2 srun --no-kill -N2 -n2 '
        "sh -c 'sleep $((SLURM_PROCID * 900 + 2))'\"}\n"
        "  - {at: 5s, fault: {crash: n2}}\n"
    )
    ran = run(lines)
    over = ran.one("switch_p_job_step_complete")
    assert over.time_us > ran.one("node_removed").time_us - 1
    assert len(ran.all("switch_p_free_jobinfo", role="slurmctld")) == 2
    assert len(ran.all("slurm_ckpt_free_job", step="1.0")) == 1


def test_each_process_unloads_its_plugins_in_the_reverse_order_of_their_loading() -> None:
    """Model guide; slurmctld and the step daemons have two."""
    ran = run(STEP)
    for pid in {event.pid: None for event in ran.all("init")}:
        loaded = [event.plugin for event in ran.all("init", pid=pid)]
        unloaded = [event.plugin for event in ran.all("fini", pid=pid)]
        assert unloaded == loaded[::-1], pid
