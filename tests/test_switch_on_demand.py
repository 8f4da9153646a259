"""The switch functions that nobody calls unless asked: who is asked, and what comes of it."""

from pathlib import Path

import pytest

from simctl.testing import run_scenario
from tests.cluster import Ran, run

FED = "slurm_conf: {SwitchType: switch/federation, SwitchParameters: windows=4}\n"


def asked(*commands: str, model: str = "guide", more: str = "") -> Ran:
    """Run a step of four tasks on two nodes, and type commands while it runs."""
    lines = [f"  - {{at: 1s, as: bob, run: '{command}'}}\n" for command in commands]
    step = '  - {at: 0s, as: alice, run: "srun -N2 -n4 sleep 60"}\n'
    return run(FED + "timeline:\n" + more + step + "".join(lines), model=model)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize(
    ("question", "function", "printed"),
    [
        ("", "switch_p_print_jobinfo", "Job key: 1 (slurm federation driver key=1)\n"),
        (" size=11", "switch_p_sprint_jobinfo", "Job key: 1\n"),
        (" type=2", "switch_p_get_jobinfo", "1\n"),
        (" TYPE=1", "switch_p_get_jobinfo", "2\n"),
    ],
)
def test_slurmctld_asks_its_plugin_about_a_step(
    model: str, question: str, function: str, printed: str
) -> None:
    """As SlurmUser, with the step's own credential, for whoever wants to know."""
    ran = asked(f"scontrol show switch 1.0{question}", model=model)
    command = ran.result.commands[1]
    assert (command.exit, command.stdout[: len(printed)]) == (0, printed)
    call = ran.one(function)
    assert (call.daemon, call.uid, call.job, call.step) == ("slurmctld", 64030, 1, "1.0")
    built = ran.one("switch_p_build_jobinfo").args["switch_job"]  # type: ignore[index]
    assert call.args["switch_job"] == built  # type: ignore[index]


def test_a_text_ends_with_the_buffer_that_it_is_for(tmp_path: Path) -> None:
    """What is longer is cut off, between characters, and the plugin is named."""
    (tmp_path / "long.py").write_text(
        "from simctl.plugin import SwitchPlugin\n\n\n"
        "class Long(SwitchPlugin):\n"
        "    plugin_type, plugin_name = 'switch/long', 'tells too much'\n\n"
        "    def switch_p_sprint_jobinfo(self, switch_job, size):\n"
        "        return 'aé' * size\n"
    )
    (tmp_path / "long.yaml").write_text(
        "slurm_conf: {SwitchType: switch/long}\nplugins: ['./long.py:Long']\n"
        "nodes: [{name: n1}]\npartitions: [{name: p, nodes: n1}]\n"
        "timeline:\n  - {at: 0s, run: srun sleep 9}\n"
        "  - {at: 1s, run: scontrol show switch 1.0 size=5, stdout: 'aéa'}\n"
    )
    ran = run_scenario(tmp_path / "long.yaml")
    assert ran.result.commands[1].stdout == "aéa\n"
    assert ran.plugin_errors == ["switch_p_sprint_jobinfo: returned 15 bytes; *size* was 5"]


def test_get_data_jobinfo_is_the_guides_alone() -> None:
    """In the guide it is asked; no Slurm knows the symbol, and model modern says so."""
    ran = asked("scontrol show switch 1.0 key=1")
    assert ran.result.commands[1].stdout == "2\n"
    assert ran.one("switch_p_get_data_jobinfo").args["key"] == 1  # type: ignore[index]
    ran = asked("scontrol show switch 1.0 key=1", model="modern")
    assert ran.all("switch_p_get_data_jobinfo") == []
    assert "Requested operation not supported" in ran.stderr(1)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_slurmd_asks_its_plugin_about_its_node(model: str) -> None:
    """As root: a record is made, filled in, printed and released."""
    ran = asked("scontrol show switch n2 size=9", model=model)
    assert ran.result.commands[1].stdout == "Node: n2\n"
    printed = ran.one("switch_p_sprintf_node_info")
    assert (printed.daemon, printed.node, printed.uid) == ("slurmd", "n2", 0)
    record = printed.args["switch_node"]  # type: ignore[index]
    assert ran.names(node="n2", args_switch_node=record)[-3:] == [
        "switch_p_build_node_info",
        "switch_p_sprintf_node_info",
        "switch_p_free_node_info",
    ]


def test_a_record_that_cannot_be_made_is_no_part_of_the_next_registration() -> None:
    """The node says so; the orderings hold where it registers later."""
    ran = asked(
        "scontrol show switch n2",
        more="  - {at: 500ms, fault: {raise: switch_p_alloc_node_info}}\n"
        "  - {at: 2100s, stay: true}\n",
    )
    assert ran.all("MESSAGE_NODE_REGISTRATION_STATUS", phase="send", node="n2")[1:]
    assert [call.rc for call in ran.all("switch_p_alloc_node_info", node="n2")][1] == -1


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("scontrol show switch 1.0 type=9", "slurm_load_switch error: Invalid argument"),
        ("scontrol show switch 1.5", "slurm_load_switch error: Invalid job id specified"),
        ("scontrol show switch n9", "'n9' is no step such as 7.0, and no node"),
        ("scontrol show switch n1 type=1", "type= is for steps; of a node size=N"),
        ("scontrol show switch 1.0 x=1", "'x=1'; expected size=N, type=N or key=N"),
        ("scontrol show switch", "show switch needs a step such as 7.0, or a node"),
    ],
)
def test_what_cannot_be_told_is_an_error(command: str, told: str) -> None:
    """On standard error, with exit status 1."""
    ran = asked(command)
    assert told in ran.stderr(1)
    assert ran.result.commands[1].exit == 1


@pytest.mark.parametrize("name", ["get_jobinfo", "build_node_info", "alloc_node_info"])
def test_a_failure_is_told_in_words(name: str) -> None:
    """By the daemon that was asked; a record that was made is released."""
    fault = f'  - {{at: 1s, fault: {{fail: "switch_p_{name}", errno: EIO}}}}\n'
    what = "1.0 type=1" if name == "get_jobinfo" else "n2"
    ran = asked(f"scontrol show switch {what}", more=fault)
    assert ran.result.commands[-1].exit == 1
    assert ran.result.commands[-1].stderr == "slurm_load_switch error: Input/output error\n"
    released = [
        each for each in ran.all("switch_p_free_node_info", node="n2") if each.time_us > 10**6
    ]
    assert len(released) == (name == "build_node_info")


def test_a_node_that_is_down_does_not_answer() -> None:
    """Scontrol says so instead of waiting for ever."""
    ran = asked("scontrol show switch n2", more="  - {at: 500ms, fault: {crash: n2}}\n")
    assert ran.result.commands[-1].exit == 1
    assert "slurm_load_switch error: " in ran.stderr(1)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_slurmctld_prints_each_nodes_record_if_it_is_to_tell_of_the_switch(model: str) -> None:
    """DebugFlags=Switch: as SlurmUser, after unpack and before free, into the log."""
    text = FED.replace("{", "{DebugFlags: switch, ", 1)
    ran = run(text + "timeline: []\n", model=model)
    for node, printed in zip(("n1", "n2"), ran.all("switch_p_sprintf_node_info"), strict=True):
        assert (printed.daemon, printed.uid) == ("slurmctld", 64030)
        assert printed.args["size"] == 4096  # type: ignore[index]
        record = printed.args["switch_node"]  # type: ignore[index]
        assert ran.names(daemon="slurmctld", args_switch_node=record)[-3:] == [
            "switch_p_unpack_node_info",
            "switch_p_sprintf_node_info",
            "switch_p_free_node_info",
        ]
        told = ran.one("switch_node_info", args_node=node)
        assert told.args["text"].startswith(f"Node: {node}\n  Adapter: sni0 ")  # type: ignore[index]
    assert run(FED + "timeline: []\n", model=model).all("switch_p_sprintf_node_info") == []
