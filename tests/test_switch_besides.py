"""What real Slurm 18.08 calls of switch plugins beside the guide: model modern, if they have it."""

from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.plugins.points import OPTIONAL
from simctl.plugins.points.declare import Point
from tests.cluster import STEP, Ran, fault, run
from tests.damaged import Damage, changed, copied, doubled, dropped, moved, together, told, without

FUNCTIONS: Final = {
    name: point for name, point in OPTIONAL.items() if point.plugin_class == "switch"
}

ROLES: Final = {
    "slurmctld": ("slurmctld", 64030),
    "slurmd": ("slurmd", 0),
    "manager": ("slurmstepd", 0),
}


def _plugin(**bodies: str) -> str:
    """Return a switch plugin with every function; *bodies* are what some of them do."""
    lines = [
        "from simctl.plugin import *",
        "class Besides(SwitchPlugin):",
        "    plugin_type = 'switch/besides'",
        "    plugin_name = 'has what the guide has not'",
        "    def init(self): self.seen = []",
    ]
    for name, point in FUNCTIONS.items():
        body = bodies.get(name.removeprefix("switch_p_"), "pass")
        lines.append(f"    def {name}({', '.join(('self', *point.parameters))}): {body}")
    return "\n".join(lines) + "\n"


def _ran(
    folder: Path, timeline: str = STEP, *, model: str = "modern", more: str = "", **bodies: str
) -> Ran:
    (folder / "besides.py").write_text(_plugin(**bodies))
    keys = 'plugins: ["./besides.py:Besides"]\nslurm_conf: {SwitchType: switch/besides}\n'
    return run(keys + more + timeline, model=model, folder=folder)


def _calls(ran: Ran, **fields: Any) -> list[str]:
    """Return the calls of the functions that no guide has, without their prefix, in order."""
    return [
        event.name.removeprefix("switch_p_")
        for event in ran.all(kind="plugin", **fields)
        if event.name in FUNCTIONS
    ]


def _args(event: Event) -> dict[str, Any]:
    assert isinstance(event.args, dict)
    return event.args


SUSPENDED: Final = """\
timeline:
  - {at: 0s, as: alice, run: "sbatch -N2 two.sh"}
  - {at: 10s, run: scontrol suspend 1}
  - {at: 15s, run: scontrol suspend 1}
  - {at: 20s, run: scontrol resume 1}
files:
  two.sh: |
    #!/bin/sh
    srun -N2 -n2 sleep 30 &
    srun -N1 -n1 sleep 30
    wait
"""
RESTARTED: Final = STEP.replace("]\n", ", {at: 2s, fault: {restart: slurmctld, for: 1s}}]\n")
RECONFIGURED: Final = STEP.replace("]\n", ", {at: 2s, run: scontrol reconfigure}]\n")


def test_a_run_calls_them_in_the_declared_process_as_the_declared_user(tmp_path: Path) -> None:
    """Each but job_step_part_comp, whose plugin has to want it, is called; none elsewhere."""
    events: list[Event] = []
    for timeline in (SUSPENDED, RESTARTED, RECONFIGURED):
        events += _ran(tmp_path, timeline).all(kind="plugin")
    called = {event.name for event in events} & set(FUNCTIONS)
    assert called == set(FUNCTIONS) - {"switch_p_job_step_part_comp"}
    for event in events:
        if event.name in FUNCTIONS:
            daemon, uid = ROLES[str(event.role)]
            assert str(event.role) in FUNCTIONS[event.name].modern
            assert (event.daemon, event.uid, event.euid) == (daemon, uid, uid)


@pytest.mark.parametrize("timeline", [SUSPENDED, RESTARTED, RECONFIGURED])
def test_model_guide_knows_none_of_them(tmp_path: Path, timeline: str) -> None:
    """The guide does not have them."""
    assert not _calls(_ran(tmp_path, timeline, model="guide"))


def test_a_plugin_without_them_sees_no_difference() -> None:
    """Nothing is called, and no line of the trace tells of it."""
    assert not _calls(run(SUSPENDED, model="modern"))


def test_one_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Its parameters are held to the declaration, as those of the guide's functions are."""
    from simctl.plugins.registry import PluginError  # noqa: PLC0415

    text = _plugin().replace("def switch_p_part_comp(self)", "def switch_p_part_comp(self, which)")
    (tmp_path / "besides.py").write_text(text)
    keys = 'plugins: ["./besides.py:Besides"]\nslurm_conf: {SwitchType: switch/besides}\n'
    with pytest.raises(PluginError, match="switch_p_part_comp does not fit"):
        run(keys + STEP, model="modern", folder=tmp_path)


# At the start of daemons.


def test_daemons_start_in_the_order_that_was_recorded(tmp_path: Path) -> None:
    """slurmctld: init, slurmctld_init, restore, reconfig; slurmd: init, node_init, slurmd_init."""
    ran = _ran(tmp_path)
    assert ran.names(daemon="slurmctld", plugin="switch/besides")[:4] == [
        "init",
        "switch_p_slurmctld_init",
        "switch_p_libstate_restore",
        "switch_p_reconfig",
    ]
    names = ran.names(daemon="slurmd", node="n1", plugin="switch/besides")
    assert names[:4] == [
        "init",
        "switch_p_node_init",
        "switch_p_slurmd_init",
        "switch_p_alloc_node_info",
    ]
    assert names[-2:] == ["switch_p_node_fini", "fini"]


@pytest.mark.parametrize("script", [False, True])
def test_a_step_daemon_calls_slurmd_step_init_first(tmp_path: Path, *, script: bool) -> None:
    """After init, before it unpacks anything; for a batch script as well."""
    batch = 'timeline: [{at: 0s, as: alice, run: sbatch --wrap "sleep 10"}]\n'
    ran = _ran(tmp_path, batch if script else STEP)
    names = ran.names(daemon="slurmstepd", node="n1", plugin="switch/besides")
    assert names[:2] == ["init", "switch_p_slurmd_step_init"]
    assert names[2:3] == ([] if script else ["switch_p_unpack_jobinfo"])


def test_slurmctld_stops_where_slurmctld_init_fails(tmp_path: Path) -> None:
    """It says why, and nothing is restored."""
    ran = _ran(tmp_path, slurmctld_init="raise SlurmError(22)")
    assert "failed to initialize switch plugin" in _args(ran.one("fatal"))["text"]
    assert not ran.all("switch_p_libstate_restore")
    assert ran.result.stalled or not ran.result.rows


@pytest.mark.parametrize(
    "name",
    [
        "slurmd_init",
        "slurmd_step_init",
        "reconfig",
        "job_step_allocated",
        "job_suspend",
        "job_resume",
        "job_step_pre_suspend",
        "job_step_post_suspend",
        "job_step_pre_resume",
        "job_step_post_resume",
    ],
)
def test_other_failures_stop_nothing(tmp_path: Path, name: str) -> None:
    """The job runs through all the same, with the same calls."""
    for timeline in (SUSPENDED, RESTARTED, RECONFIGURED):
        failing = _ran(tmp_path, timeline, **{name: "raise SlurmError(22)"})
        assert failing.job() == ("COMPLETED", "0:0", "None")
        assert _calls(failing) == _calls(_ran(tmp_path, timeline))


def test_reconfigure_asks_slurmctld_before_the_answer_and_each_slurmd_after_it(
    tmp_path: Path,
) -> None:
    """Once each; and once more in slurmctld, when it started."""
    ran = _ran(tmp_path, RECONFIGURED)
    ctld = ran.all("switch_p_reconfig", daemon="slurmctld")
    slurmd = ran.all("switch_p_reconfig", daemon="slurmd")
    assert (len(ctld), sorted(str(event.node) for event in slurmd)) == (2, ["n1", "n2"])
    asked = ran.first("REQUEST_RECONFIGURE", phase="receive", daemon="slurmctld")
    told = ran.first("REQUEST_RECONFIGURE", phase="send", daemon="slurmctld")
    assert asked < ctld[1].seq < told < slurmd[0].seq


def test_the_switch_is_reconfigured_before_burst_buffers_are(tmp_path: Path) -> None:
    """When slurmctld starts, and when it is told to: then after the nodes are as they were."""
    (tmp_path / "besides.py").write_text(_plugin())
    keys = (
        f'plugins: ["./besides.py:Besides", "{Path(__file__).parent}/staging_plugin.py:Staging"]\n'
        "slurm_conf: {SwitchType: switch/besides, BurstBufferType: burst_buffer/staging}\n"
    )
    ran = run(keys + RECONFIGURED, model="modern", folder=tmp_path)
    first, second = ran.all("switch_p_reconfig", daemon="slurmctld")
    assert ran.first("switch_p_libstate_restore") < first.seq < ran.first("bb_p_load_state")
    asked = ran.first("REQUEST_RECONFIGURE", phase="receive", daemon="slurmctld")
    nodes = ran.all("node_state", time_us=second.time_us)
    back = [event.seq for event in nodes if asked < event.seq]
    assert len(back) == 4
    assert back[-1] < second.seq < ran.one("bb_p_reconfig").seq
    answer = next(e for e in ran.all("RESPONSE_SLURM_RC", phase="send") if e.seq > asked)
    assert ran.one("bb_p_reconfig").seq < answer.seq


def test_a_restarted_slurmctld_tells_of_each_step_it_found(tmp_path: Path) -> None:
    """After the step's two records are unpacked, with all its nodes; no alloc_jobinfo."""
    ran = _ran(tmp_path, RESTARTED)
    told = ran.one("switch_p_job_step_allocated")
    assert (_args(told)["nodelist"], told.job, told.step) == ("n[1-2]", 1, "1.0")
    assert ran.last("slurm_ckpt_unpack_job") < told.seq < ran.last("switch_p_reconfig")
    assert len(ran.all("switch_p_alloc_jobinfo")) == 1


# Nodes that are done before the others.


def test_part_comp_is_asked_once_a_partial_report_and_once_an_epilog(tmp_path: Path) -> None:
    """Of a step whose nodes report together only the two epilogs are left to ask about."""
    ran = _ran(tmp_path)
    asked = ran.all("switch_p_part_comp")
    assert [event.rc for event in asked] == [False, False]
    gone = ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive", daemon="slurmctld")
    assert [event.seq for event in gone] < [event.seq for event in asked]
    over = [event for event in ran.all("job_state") if _args(event)["to"] == "COMPLETED"]
    assert over[0].seq < asked[-1].seq


REFUSED: Final = fault("switch_p_unpack_jobinfo role=slurmd node=n2")
LOST: Final = """\
timeline:
  - {at: 0s, as: alice, run: "srun -N2 -n2 sleep 1000"}
  - {at: 5s, fault: {crash: n2}}
"""


@pytest.mark.parametrize(
    ("timeline", "parts"),
    [(REFUSED, ["n2"]), (LOST, ["n1"]), (STEP, ["n2"])],
    ids=["refused on one", "one is lost", "the epilog of one is faster"],
)
def test_job_step_part_comp_tells_of_the_nodes_that_are_done(
    tmp_path: Path, timeline: str, parts: list[str]
) -> None:
    """Those that are reported over while others are not; then the step is complete, as a whole."""
    ran = _ran(tmp_path, timeline, part_comp="return True")
    told = ran.all("switch_p_job_step_part_comp")
    (complete,) = ran.all("switch_p_job_step_complete")
    assert [_args(event)["nodelist"] for event in told] == parts
    assert _args(complete)["nodelist"] == "n[1-2]"
    assert all(event.seq < complete.seq for event in told)
    quiet = _ran(tmp_path, timeline, part_comp="raise SlurmError(22)")
    assert not quiet.all("switch_p_job_step_part_comp")
    assert len(quiet.all("switch_p_job_step_complete")) == 1


UNEVEN: Final = """\
programs:
  ./stubborn: {runs: 200s, on_signal: {TERM: ignore}}
files:
  two.conf: |
    0 ./stubborn
    1 sleep 200
timeline:
  - {at: 0s, as: alice, run: "srun -N2 -n2 --multi-prog two.conf"}
  - {at: 5s, as: alice, run: scancel 1}
"""


def test_a_node_that_a_job_has_left_is_done_though_its_step_is_not_reported(
    tmp_path: Path,
) -> None:
    """The report goes by the first node, which is at work; the epilog is there before it."""
    ran = _ran(tmp_path, UNEVEN, part_comp="return True")
    told = ran.one("switch_p_job_step_part_comp")
    complete = ran.one("switch_p_job_step_complete")
    assert (_args(told)["nodelist"], str(told.step)) == ("n2", "1.0")
    gone = ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive", daemon="slurmctld")
    asked = ran.all("switch_p_part_comp")
    assert [_args(event)["node_name"] for event in gone] == ["n2", "n1"]
    assert gone[0].seq < asked[0].seq < told.seq < complete.seq < gone[1].seq < asked[1].seq
    assert complete.time_us > told.time_us, "the other node is at work still"
    assert (len(asked), _args(complete)["nodelist"]) == (2, "n[1-2]")
    quiet = _ran(tmp_path, UNEVEN)
    assert not quiet.all("switch_p_job_step_part_comp")
    assert _args(quiet.one("switch_p_job_step_complete"))["nodelist"] == "n[1-2]"


SET_DOWN: Final = """\
timeline:
  - {at: 0s, as: alice, run: "srun -N2 -n2 sleep 100"}
  - {at: 5s, as: root, run: scontrol update nodename=n2 state=down reason=x}
"""


def test_part_comp_is_asked_of_a_node_that_nobody_waits_for_any_more(tmp_path: Path) -> None:
    """It was set down, and says all the same that the job has left it: once an epilog."""
    ran = _ran(tmp_path, SET_DOWN)
    seen = [
        event.name
        for event in ran.all(daemon="slurmctld")
        if event.name == "switch_p_part_comp"
        or (event.name == "MESSAGE_EPILOG_COMPLETE" and event.phase == "receive")
    ]
    assert seen == ["MESSAGE_EPILOG_COMPLETE", "switch_p_part_comp"] * 2


def test_a_clean_start_clears_the_switch_before_slurmd_init(tmp_path: Path) -> None:
    """node_init, clear_node_state, slurmd_init: what is left of before is gone by then."""
    timeline = """\
timeline:
  - {at: 0s, fault: {crash: n2}}
  - {at: 10s, fault: {start: n2, clean: true}}
"""
    ran = _ran(tmp_path, timeline)
    names = [event.name for event in ran.all(kind="plugin", node="n2", daemon="slurmd")]
    at = names.index("switch_p_clear_node_state")
    assert names[at - 1 : at + 2] == [
        *("switch_p_node_init", "switch_p_clear_node_state", "switch_p_slurmd_init")
    ]


# Suspending.


def test_a_job_is_suspended_and_resumed_in_the_order_that_was_recorded(tmp_path: Path) -> None:
    """slurmctld: test and info_get per step, then the state, a pack a node, free.

    On each node the switch is suspended before the steps, and resumed after them.
    """
    ran = _ran(tmp_path, SUSPENDED)
    test, get = ["job_suspend_test"] * 2, ["job_suspend_info_get"] * 2
    packs = [*["job_suspend_info_pack"] * 2, "job_suspend_info_free"]
    ctld = [name for name in _calls(ran, daemon="slurmctld") if "suspend" in name]
    assert ctld == [*test, *get, *packs, *test, *get, *packs]
    state = next(each for each in ran.all("job_state") if _args(each)["to"] == "SUSPENDED")
    assert ran.all("switch_p_job_suspend_info_get")[1].seq < state.seq
    assert state.seq < ran.first("switch_p_job_suspend_info_pack")
    for node, steps in (("n1", 2), ("n2", 1)):
        names = [
            name
            for name in _calls(ran, node=node)
            if name not in ("slurmd_init", "slurmd_step_init")
        ]
        assert names == [
            *("job_suspend_info_unpack", "job_suspend"),
            *["job_step_pre_suspend"] * steps,
            *["job_step_post_suspend"] * steps,
            *("job_suspend_info_free", "job_suspend_info_unpack"),
            *["job_step_pre_resume", "job_step_post_resume"] * steps,
            *("job_resume", "job_suspend_info_free"),
        ]
    assert {event.step for event in ran.all("switch_p_job_step_pre_suspend")} == {"1.0", "1.1"}
    waits = {_args(event)["max_wait"] for event in ran.all("switch_p_job_suspend")}
    assert waits == {5}
    pre = ran.all("switch_p_job_step_pre_suspend", node="n1", step="1.0")[0]
    post = ran.all("switch_p_job_step_post_suspend", node="n1", step="1.0")[0]
    assert post.time_us - pre.time_us == 2_000_000


def test_slurmd_waits_ten_seconds_for_a_step_daemon_that_is_to_suspend_its_step(
    tmp_path: Path,
) -> None:
    """Then it goes on without it."""
    hang = "  - {at: 0s, fault: {hang: switch_p_job_step_pre_suspend node=n2, for: 60s}}\n"
    ran = _ran(tmp_path, SUSPENDED.replace("timeline:\n", f"timeline:\n{hang}"))
    asked = ran.all("REQUEST_STEP_SUSPEND", phase="send", node="n2")[0]
    done = ran.all("switch_p_job_suspend_info_free", node="n2")[0]
    assert done.time_us - asked.time_us == 10_000_000


def test_what_info_get_gives_reaches_the_nodes(tmp_path: Path) -> None:
    """Each step adds to it; slurmd unpacks it and hands it to job_suspend."""
    ran = _ran(
        tmp_path,
        SUSPENDED,
        job_suspend_info_get="return [*(suspend_info or []), 7]",
        job_suspend_info_pack="buffer.pack32(sum(suspend_info))",
        job_suspend_info_unpack="return {'sum': buffer.unpack32()}",
        job_suspend="log.info(f'to suspend {suspend_info}')",
    )
    assert ran.job() == ("COMPLETED", "0:0", "None")
    found = " ".join(str(event.args) for event in ran.all(kind="log"))
    assert found.count("to suspend {'sum': 14}") == 2


def test_a_job_that_may_not_be_suspended_runs_on(tmp_path: Path) -> None:
    """The error is whoever asked gets; nothing is given back, and no node is told."""
    ran = _ran(tmp_path, SUSPENDED, job_suspend_test="raise SlurmError(22)")
    assert "suspended" not in str(ran.job())
    assert not [event for event in ran.all("job_state") if _args(event)["to"] == "SUSPENDED"]
    assert not ran.all("REQUEST_SUSPEND_INT")
    assert ran.result.commands[1].exit == 1


def test_a_message_that_cannot_be_unpacked_suspends_nothing_on_that_node(tmp_path: Path) -> None:
    """It is no message: no step stops, and nobody answers."""
    ran = _ran(tmp_path, SUSPENDED, job_suspend_info_unpack="raise SlurmError(22)")
    assert not ran.all("switch_p_job_suspend")
    assert not ran.all("switch_p_job_step_pre_suspend")


# srun.


def test_srun_runs_init_of_every_switch_plugin_there_is(tmp_path: Path) -> None:
    """Each once and before its first message; no fini in model modern, and one in guide."""
    ran = _ran(tmp_path)
    inits = ran.all("init", daemon="srun")
    assert {event.plugin for event in inits} >= {"switch/besides", "switch/none", "switch/elan"}
    assert len({event.plugin for event in inits}) == len(inits)
    assert inits[-1].seq < ran.first("REQUEST_RESOURCE_ALLOCATION", phase="send")
    assert not ran.all("fini", daemon="srun")
    guide = _ran(tmp_path, model="guide")
    assert [event.plugin for event in guide.all("init", daemon="srun")] == ["switch/besides"]
    assert len(guide.all("fini", daemon="srun")) == 1


def _fits(point: Point) -> bool:
    return bool(point.modern) and not point.guide


def test_each_is_declared_optional_and_of_model_modern_alone() -> None:
    """So the check of plugins, the trace and the pages of the docs know them."""
    assert all(_fits(point) and point.optional for point in FUNCTIONS.values())


# The built-in orderings know them.


PART, RECONFIG, SUSPEND, RESUME, FREE, UNPACK = (
    f"switch_p_{name}"
    for name in (
        *("part_comp", "reconfig", "job_suspend", "job_resume"),
        *("job_suspend_info_free", "job_suspend_info_unpack"),
    )
)
NODE: Final = "node=n1 role=slurmd"
EPILOG: Final = "MESSAGE_EPILOG_COMPLETE phase=receive"
RULES: Final = ("part-comp", "reconfig", "suspend-hooks")
NOBODY: Final = {"reconfig": f"{RECONFIG} ran, and nobody had asked for it"}


def _early(call: str, before: str) -> dict[str, str]:
    return {"suspend-hooks": f"{call} came before {before}"}


DAMAGES: Final[dict[str, tuple[str, Damage, dict[str, str]]]] = {
    "a question twice": (SUSPENDED, doubled(PART), {"part-comp": f"{PART} was asked twice"}),
    "a question twice as a job is resized": (
        SUSPENDED,
        together(
            doubled(PART),
            copied(PART, name="job_state", args_from="RUNNING", args_to="RUNNING|RESIZING"),
        ),
        {},
    ),
    "a question twice as the state of a job changes": (
        SUSPENDED,
        together(
            doubled(PART), copied(PART, name="job_state", args_from="RUNNING", args_to="FAILED")
        ),
        {"part-comp": f"{PART} was asked twice"},
    ),
    "a question upon another message": (
        SUSPENDED,
        changed(EPILOG, name="REQUEST_PING"),
        {"part-comp": f"{PART} was asked upon it"},
    ),
    "a question upon a report of a step": (
        SUSPENDED,
        changed(EPILOG, name="REQUEST_STEP_COMPLETE"),
        {},
    ),
    "a question upon nothing": (SUSPENDED, changed(PART, cause=UNSET), {}),
    "a reconfig twice": (SUSPENDED, doubled(RECONFIG), NOBODY),
    "a reconfig of slurmd for nothing": (SUSPENDED, changed(RECONFIG, daemon="slurmd"), NOBODY),
    "a reconfig upon another request": (
        RECONFIGURED,
        changed("REQUEST_RECONFIGURE phase=receive", name="REQUEST_PING"),
        NOBODY,
    ),
    "a reconfig twice upon a request": (
        RECONFIGURED,
        doubled(RECONFIG, 1),
        {"reconfig": f"{RECONFIG} ran twice upon one request"},
    ),
    "a reconfig before the state is there": (
        SUSPENDED,
        moved(RECONFIG, before="switch_p_libstate_restore"),
        {"reconfig": f"{RECONFIG} ran before switch_p_libstate_restore"},
    ),
    "a reconfig without its state": (
        RESTARTED,
        dropped("switch_p_libstate_restore", 1),
        {"reconfig": f"{RECONFIG} ran before switch_p_libstate_restore"},
    ),
    **{
        f"a post_{what} before its pre": (
            SUSPENDED,
            moved(
                f"switch_p_job_step_post_{what} node=n1",
                before=f"switch_p_job_step_pre_{what} node=n1",
            ),
            _early(f"switch_p_job_step_post_{what}", f"switch_p_job_step_pre_{what}"),
        )
        for what in ("suspend", "resume")
    },
    **{
        f"{call} before what it needs is unpacked": (
            SUSPENDED,
            moved(f"{call} {NODE}", before=f"{UNPACK} {NODE}", to=nth),
            _early(call, UNPACK),
        )
        for nth, call in enumerate((SUSPEND, RESUME))
    },
    "nothing unpacked": (SUSPENDED, dropped(f"{UNPACK} {NODE}", 1), _early(RESUME, UNPACK)),
    "a plugin that unpacks nothing": (SUSPENDED, without(UNPACK), {}),
    **{
        f"what {call} needs is released before": (
            SUSPENDED,
            moved(f"{FREE} {NODE}", nth=nth, before=f"{call} {NODE}"),
            _early(FREE, f"{SUSPEND} or {RESUME}"),
        )
        for nth, call in enumerate((SUSPEND, RESUME))
    },
}


@pytest.mark.parametrize("timeline", [SUSPENDED, RESTARTED, RECONFIGURED])
def test_runs_keep_the_rules_about_them(tmp_path: Path, timeline: str) -> None:
    """Those that were checked against recordings."""
    assert told(_ran(tmp_path, timeline)) == {}


@pytest.mark.parametrize("name", DAMAGES)
def test_the_rules_find_a_call_too_many_or_too_early(tmp_path: Path, name: str) -> None:
    """And nothing where it is excused."""
    timeline, damage, wanted = DAMAGES[name]
    found = told(_ran(tmp_path, timeline), damage)
    assert {rule: what for rule, what in found.items() if rule in RULES} == wanted
