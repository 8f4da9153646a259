"""Each switch call of a step fails, raises or hangs, on one node or all: what follows, row by row.

The rows are those of the guide and of what real Slurm was seen to do; a step of two tasks on each
of two nodes, in a job of its own.
"""

import itertools

import attrs
import pytest

from tests.cluster import STEP, Ran, fault, run
from tests.test_step_failures import job_functions, launch_rc

CONFIGURING = "srun: error: task {} launch failed: Error configuring interconnect"
CREDENTIAL = "srun: error: task {} launch failed: Invalid job credential"
ATTACH = "slurmstepd-{}: error: Unable to attach to interconnect: Unspecified error"
NO_STEP = "srun: error: Unable to create step for job 1: "
WHOLE = "preinit init stepd_prefork attach attach fini postfini"
TASKS = {"n1": (0, 1), "n2": (2, 3)}


@attrs.frozen
class Row:
    """A call that fails on a node, and what follows there; on the others the step runs whole.

    `called` are the step daemon's calls, `launch` the codes of its launch responses, `says` what
    srun prints for each task, `exit` srun's status, which the job has as well.
    """

    call: str
    called: str
    launch: tuple[int, ...]
    says: str = ""
    exit: int = 0
    models: tuple[str, ...] = ("guide", "modern")


ON_NODES = (
    Row("switch_p_unpack_jobinfo role=manager", "", (4004,), CREDENTIAL),
    Row("switch_p_job_preinit", "preinit", (2022,), CONFIGURING),
    Row("switch_p_job_init", "preinit init postfini", (2022,), CONFIGURING),
    Row("switch_p_job_attach", WHOLE, (0,), ATTACH, exit=1),
    Row("switch_p_job_fini", WHOLE, (0, 2022), CONFIGURING, models=("guide",)),
    Row("switch_p_job_fini", WHOLE, (0,), models=("modern",)),
    Row("switch_p_job_postfini", WHOLE, (0,)),
    Row("switch_p_pack_jobinfo role=slurmd", WHOLE, (0,)),
    Row("switch_p_free_jobinfo role=slurmd", WHOLE, (0,)),
)
CASES = [
    (row, model, kind, nodes)
    for row in ON_NODES
    for model in row.models
    for kind, nodes in itertools.product(("fail", "raise"), (("n2",), ("n1", "n2")))
]


def struck(call: str, kind: str, nodes: tuple[str, ...], model: str, **more: str) -> Ran:
    """Run the step with every such call on the nodes struck."""
    pattern = f"{call} node=n2" if nodes == ("n2",) else call
    return run(fault(pattern, STEP, kind, times=4, **more), model=model)


@pytest.mark.parametrize(
    ("row", "model", "kind", "nodes"),
    CASES,
    ids=lambda value: getattr(value, "call", None) or str(value).replace("'", ""),
)
def test_a_call_on_a_node_fails(row: Row, model: str, kind: str, nodes: tuple[str, ...]) -> None:
    """The launch code, the calls that still come, srun, the job, and the nodes."""
    ran = struck(row.call, kind, nodes, model)
    for node in ("n1", "n2"):
        calls = " ".join(each.removeprefix("job_") for each in job_functions(ran, node))
        assert calls == (row.called if node in nodes else WHOLE)
        assert launch_rc(ran, node) == (list(row.launch) if node in nodes else [0])
    said = [row.says.format(node if row.says == ATTACH else task)
            for node in nodes for task in TASKS[node]] if row.says else []  # fmt: skip
    told = [
        line for line in ran.stderr().splitlines() if "launch failed" in line or "attach" in line
    ]
    assert told == said
    assert ran.result.commands[0].exit == row.exit
    assert ran.job()[:2] == (("FAILED", "1:0") if row.exit else ("COMPLETED", "0:0"))
    assert ran.drained() == []
    assert_released(ran)


def assert_released(ran: Ran) -> None:
    """Each credential that slurmctld built is told as over once, with all its nodes, then freed."""
    built = [each.args["switch_job"] for each in ran.all("switch_p_build_jobinfo")]  # type: ignore[index]
    over = ran.all("switch_p_job_step_complete")
    assert [each.args["switch_job"] for each in over] == built  # type: ignore[index]
    assert {each.args["nodelist"] for each in over} <= {"n[1-2]"}  # type: ignore[index]


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("nodes", [("n2",), ("n1", "n2")], ids=str)
@pytest.mark.parametrize("call", dict.fromkeys(row.call for row in ON_NODES))
def test_a_call_on_a_node_hangs_for_a_while(call: str, nodes: tuple[str, ...], model: str) -> None:
    """Everything comes in the end, later; nothing failed."""
    ran = struck(call, "hang", nodes, model, **{"for": "30s"})
    for node in ("n1", "n2"):
        calls = " ".join(each.removeprefix("job_") for each in job_functions(ran, node))
        assert calls == WHOLE
        assert launch_rc(ran, node) == [0]
    name = call.split(maxsplit=1)[0]
    long = [
        each for each in ran.all(name, kind="plugin") if each.t0_us == each.time_us - 30_000_000
    ]
    assert {each.node for each in long} == set(nodes)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.stalled == ()
    assert_released(ran)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("call", ["preinit", "init", "attach", "fini", "postfini"])
def test_a_call_that_never_returns_stalls_the_run_and_is_named(call: str, model: str) -> None:
    """Nobody ends it: the run says which process waits for which function of its plugin."""
    ran = struck(f"switch_p_job_{call}", "hang", ("n2",), model)
    waits = f"on n2 waits for switch_p_job_{call} of its plugin to return"
    assert any(waits in line for line in ran.result.stalled)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("kind", ["fail", "raise"])
@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("switch_p_build_jobinfo", "Error configuring interconnect"),
        ("switch_p_unpack_jobinfo role=srun", "invalid reply"),
    ],
)
def test_the_step_is_not_made(call: str, says: str, kind: str, model: str) -> None:
    """Srun exits with 1, no node hears of the step, and its credential is released."""
    ran = struck(call, kind, (), model)
    # Refused by slurmctld, srun of 18.08 reports a bare 1 as the status, which reads as a signal.
    bare = model == "modern" and call == "switch_p_build_jobinfo"
    told = "srun: Force Terminated job 1\n" if bare else ""
    assert ran.stderr() == f"{NO_STEP}{says}\n{told}"
    assert ran.result.commands[0].exit == 1
    assert ran.job()[:2] == ("FAILED", "0:1" if bare else "1:0")
    assert ran.all("REQUEST_LAUNCH_TASKS") == []
    assert_released(ran)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("call", ["switch_p_build_jobinfo", "switch_p_pack_jobinfo role=slurmctld"])
def test_slurmctld_hangs_longer_than_srun_waits(call: str, model: str) -> None:
    """Srun asks again; the steps that were made for nobody end with the job, and are released."""
    ran = struck(call, "hang", (), model, **{"for": "30s"})
    assert ran.stderr().splitlines() == [
        "srun: Job 1 step creation temporarily disabled, retrying "
        "(Socket timed out on send/recv operation)",
        f"srun: Step created for StepId={ran.all('REQUEST_LAUNCH_TASKS')[0].step}",
    ]
    assert ran.job()[:2] == ("COMPLETED", "0:0")
    assert len(ran.all("switch_p_build_jobinfo")) > 1
    assert len({event.step for event in ran.all("REQUEST_LAUNCH_TASKS")}) == 1
    assert_released(ran)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("kind", ["fail", "raise"])
@pytest.mark.parametrize(
    "call",
    [
        "switch_p_copy_jobinfo",
        "switch_p_pack_jobinfo role=slurmctld",
        "switch_p_pack_jobinfo role=srun",
        "switch_p_free_jobinfo role=srun",
        "switch_p_job_step_complete",
        "switch_p_free_jobinfo role=slurmctld",
    ],
)
def test_failures_that_nobody_hears_of(call: str, kind: str, model: str) -> None:
    """The step runs whole; with an empty credential, switch/none minds nothing."""
    ran = struck(call, kind, (), model)
    for node in ("n1", "n2"):
        calls = " ".join(each.removeprefix("job_") for each in job_functions(ran, node))
        assert calls == WHOLE
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert_released(ran)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("kind", ["fail", "raise"])
@pytest.mark.parametrize("nodes", [("n2",), ("n1", "n2")], ids=str)
def test_slurmd_cannot_read_the_credential(nodes: tuple[str, ...], kind: str, model: str) -> None:
    """It refuses the launch with 4004 and forks nothing; srun aborts the step."""
    ran = struck("switch_p_unpack_jobinfo role=slurmd", kind, nodes, model)
    for node in nodes:
        refused = ran.one("RESPONSE_SLURM_RC", phase="send", node=node, args_return_code=4004)
        assert refused.daemon == "slurmd"
        assert job_functions(ran, node) == []
        assert len(ran.all("switch_p_free_jobinfo", node=node)) == 1
    assert "Application launch failed: Invalid job credential" in ran.stderr()
    assert ran.result.commands[0].exit != 0
    assert ran.job()[0] == "FAILED"
    assert_released(ran)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("side", ["slurmctld", "slurmd"])
def test_a_registration_that_cannot_be_read_is_asked_for_again(side: str, model: str) -> None:
    """At the next ping; and that slurmd had started, so that the job is gone, is not forgotten."""
    call = "switch_p_unpack_node_info" if side == "slurmctld" else "switch_p_alloc_node_info"
    text = (
        "slurm_conf: {SwitchType: switch/federation}\ntimeline:\n"
        '  - {at: 5s, as: alice, run: "srun -N2 sleep 600"}\n'
        f'  - {{at: 18s, fault: {{fail: "{call} role={side}"}}}}\n'
        "  - {at: 20s, fault: {crash: n2}}\n"
        "  - {at: 25s, fault: {start: n2}}\n"
    )
    ran = run(text, model=model)
    dropped = ran.one("invalid_message")
    assert dropped.args["node"] == "n2"  # type: ignore[index]
    asked = ran.one("REQUEST_NODE_REGISTRATION_STATUS", phase="send")
    assert (asked.peer, asked.time_us) == ("slurmd@n2", 100_000_000)
    assert ran.job()[0] == "NODE_FAIL"
    assert ran.result.stalled == ()


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_node_whose_registrations_are_never_read_is_given_up(model: str) -> None:
    """It is asked three times more, and stays UNKNOWN; the run says who waits for it."""
    fails = fault("switch_p_unpack_node_info", kind="fail", times=100)
    ran = run(fails, model=model)
    assert len(ran.all("invalid_message")) == 8
    assert any("n1 is UNKNOWN" in line for line in ran.result.stalled)
