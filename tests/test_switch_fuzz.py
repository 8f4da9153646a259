"""Random runs under interconnects that keep books: restarts and slow calls on top of all the rest.

To crashes, cuts, failures and commands come restarts of slurmctld, at any time, at the moments that
matter and inside one another, and plugin calls that take their time. In the end every context,
window and program is back.
"""

import random

import pytest

from simctl.plugin import Buf
from simctl.plugins.switch import fed_records, federation, records
from tests.cluster import Ran, run
from tests.invariants import check
from tests.test_cut_invariants import check_runs
from tests.test_fault_invariants import (
    ENDS,
    MOMENTS,
    check_nothing_is_left,
    check_tasks,
    scenario,
)

CALLS = [
    *("job_preinit", "job_init", "job_attach", "job_fini", "job_postfini", "build_jobinfo"),
    *("alloc_jobinfo", "copy_jobinfo", "pack_jobinfo", "unpack_jobinfo", "free_jobinfo"),
    *("job_step_complete", "libstate_save", "libstate_restore", "no_frag", "node_init"),
    *("alloc_node_info", "build_node_info", "pack_node_info", "unpack_node_info"),
]
MORE_MOMENTS = [
    *MOMENTS,
    *("switch_p_libstate_save", "switch_p_libstate_restore", "switch_p_build_jobinfo"),
    *("switch_p_job_step_complete", "switch_p_unpack_jobinfo role=slurmctld", "fault"),
    *("REQUEST_STEP_COMPLETE phase=receive", "RESPONSE_RESOURCE_ALLOCATION phase=receive"),
    *("REQUEST_COMPLETE_BATCH_SCRIPT phase=send", "step_state state=COMPLETED"),
    *("MESSAGE_NODE_REGISTRATION_STATUS phase=receive", "REQUEST_SUBMIT_BATCH_JOB phase=receive"),
]
BOOKS = {"elan": "contexts", "federation": "windows"}


def with_restarts(seed: int, switch: str) -> str:
    """Return a random scenario with an interconnect, restarts and calls that hang for a while."""
    chance = random.Random(f"restarts:{seed}")
    few = f", SwitchParameters: {BOOKS[switch]}={chance.choice([2, 4, 8, 100])}"
    text = scenario(seed).replace(
        "slurm_conf: {", f"slurm_conf: {{SwitchType: switch/{switch}{few}, "
    )
    lines = []
    for _ in range(chance.randint(1, 4)):
        away = chance.choice(["0s", "100us", "1s", "20s", "200s"])
        moment = f"at: {chance.randint(0, 200)}s"
        if chance.random() < 0.6:
            moment = f'when: "{chance.choice(MORE_MOMENTS)}"'
        lines.append(f"  - {{{moment}, fault: {{restart: slurmctld, for: {away}}}}}\n")
    for _ in range(chance.randint(0, 3)):
        length, times = chance.choice(["1s", "8s", "120s"]), chance.randint(1, 4)
        hang = f'hang: "switch_p_{chance.choice(CALLS)}", for: {length}, times: {times}'
        lines.append(f"  - {{at: {chance.randint(0, 100)}s, fault: {{{hang}}}}}\n")
    return text.replace("timeline:\n", "timeline:\n" + "".join(lines), 1)


def check_books(ran: Ran, switch: str) -> None:
    """Check that slurmctld has everything back, and that the nodes' cards are empty."""
    if any(
        ran.all(name, rc=-1) for name in ("switch_p_job_step_complete", "switch_p_job_postfini")
    ):
        return  # who was told to keep something has kept it
    path = f"{ran.world.scenario.slurm_conf.state_save_location}/"
    state = ran.world.disk.view("slurmctld", 0)
    if switch == "elan":
        buffer = Buf(state.read(f"{path}qsw_state"))
        assert [buffer.unpack32() for _ in range(4)][3] == 0
    else:
        plugin = federation.SwitchFederation()
        _, nodes = records.unpack(
            fed_records.LIBSTATE,
            plugin.plugin_version,
            Buf(state.read(f"{path}fed_state")),
            fed_records.read_state,
        )
        assert [key for node in nodes for key in federation._keys_on(node)] == []
    for host in ran.world.hosts:
        view = ran.world.disk.view(host, 0)
        if view.is_dir("/run/qsnet/prg"):
            assert view.listdir("/run/qsnet/prg") == []


def check_exclusive(ran: Ran) -> None:
    """Check that no card refused what slurmctld's books had free: EFAULT_PRGADDCAP, ESTATUS."""
    if any("crash" in str(each.args) or "cut" in str(each.args) for each in ran.all("fault")):
        return  # a node that nobody reached may have kept what the books had back
    refused = {each.errno for each in ran.all("switch_p_job_init")}
    assert not refused & {"3000", "3002", "3009"}


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("switch", ["elan", "federation"])
@pytest.mark.parametrize("block", range(2))
def test_whatever_strikes_every_context_and_window_comes_back(
    block: int, switch: str, model: str
) -> None:
    """Every job and command ends, time goes on, no plugin raises, nothing is lost or left."""
    for seed in range(block * 10, block * 10 + 10):
        schedule = "random" if seed % 2 else "fifo"
        text = with_restarts(seed, switch)
        ran = run(text, cluster="", model=model, schedule=schedule, seed=seed)
        assert (ran.result.stalled, ran.result.complaints) == ((), ()), f"seed {seed}"
        times = [event.time_us for event in ran.events]
        assert times == sorted(times)
        check(ran)
        check_runs(ran)
        assert all(row.state in ENDS for row in ran.result.rows), f"seed {seed}"
        assert all(each.exit >= 0 for each in ran.result.commands), f"seed {seed}"
        check_nothing_is_left(ran)
        check_tasks(ran)
        check_books(ran, switch)
        check_exclusive(ran)
