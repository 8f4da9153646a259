"""What no event tells: values in traces, what plugins keep, files, outputs, environments.

Each look finds a planted damage, and is silent where all is well.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from simctl import cli
from simctl.api.kept import NotPlainError, plain
from simctl.scenario.kept_rules import Equal, Unique, judged, not_equal, not_unique
from simctl.status import InputError
from simctl.testing import run_scenario

PLUGIN = """
from simctl.plugin import SwitchPlugin, disk


class Credential:
    def __init__(self, ports=()):
        self.ports = list(ports)

    def simctl_state(self):
        return {"ports": self.ports}


class Ports(SwitchPlugin):
    plugin_type = "switch/ports"
    plugin_name = "ports"

    def __init__(self):
        self.steps = {}

    def simctl_state(self):
        return {"steps": self.steps, "free": 64 - 2 * len(self.steps)}

    def switch_p_alloc_jobinfo(self):
        return Credential()

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        first = 7000 + STRIDE * len(self.steps)
        switch_job.ports = [first, first + 1]
        self.steps[nodelist] = {"ports": switch_job.ports}

    def switch_p_copy_jobinfo(self, switch_job):
        return Credential(switch_job.ports)

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        buffer.pack16(switch_job.ports[0])
        return 2

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        first = buffer.unpack16()
        switch_job.ports = [first, first + 1]

    def switch_p_job_init(self, switch_job, uid):
        disk().write("/tmp/ports", f"{switch_job.ports}\\n")

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["PORT"] = str(switch_job.ports[0])
"""
SCENARIO = """
slurm_conf: {SwitchType: switch/ports}
plugins: ["./ports.py:Ports"]
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001}
files:
  app.sh: |
    #!/bin/sh
    echo "port $PORT"
    echo oops >&2
    sleep 9
timeline:
  - {at: 0s, as: alice, run: "sbatch -w n1 -e err --wrap 'srun ./app.sh'"}
  - {at: 1s, as: alice, run: "sbatch -w n2 --wrap 'srun ./app.sh'"}
"""
RULES = """
def fine(state):
    assert set(state) == {"steps", "free"}


def few(state):
    return "" if state["free"] > 60 else f"{state['free']} are free"


def odd(state):
    return 7


def wrong(state):
    return state["no"]
"""


def play(tmp_path: Path, expect: str, stride: int = 10) -> tuple[bool, str]:
    """Run two steps at one time whose ports are so far apart; return whether all held, and why."""
    (tmp_path / "ports.py").write_text(PLUGIN.replace("STRIDE", str(stride)))
    (tmp_path / "rules.py").write_text(RULES)
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO + f"expect:\n  - {expect}\n")
    run = run_scenario(path)
    (result,) = run.result.expectations
    return result.held, result.detail


UNIQUE = "{always: switch/ports, role: slurmctld, unique: steps.*.ports}"


@pytest.mark.parametrize(("stride", "held"), [(10, True), (2, True), (1, False), (0, False)])
def test_no_port_is_given_twice(tmp_path: Path, stride: int, held: bool) -> None:
    """The damage is found after the call that made it, with its process and what is kept."""
    found, detail = play(tmp_path, UNIQUE, stride)
    assert found == held
    if not held:
        first, state = detail.splitlines()
        assert first.startswith(
            "after switch_p_build_jobinfo in slurmctld (pid 1), at 0:00:03.0003"
        )
        assert "stands at steps.n1.ports." in first
        assert first.endswith("and at steps.n2.ports.0")
        assert json.loads(state)["free"] == 60


@pytest.mark.parametrize(
    ("expect", "detail"),
    [
        ("{always: switch/ports, role: slurmd, equal: [free, 64]}", ""),
        ("{always: switch/ports, role: slurmctld, equal: [free, 64]}", "free is 62, not 64"),
        ("{always: switch/ports, role: slurmd, equal: [steps, {}]}", ""),
        ('{always: switch/ports, role: slurmd, equal: [free, "64"]}', 'free is 64, not "64"'),
        ("{always: switch/ports, role: slurmctld, unique: steps.*.prts}", "led nowhere"),
        ("{always: switch/ports, role: slurmctld, equal: [fre, 1]}", "fre led nowhere"),
        ('{always: switch/ports, check: "./rules.py:fine"}', ""),
        ('{always: switch/ports, check: "./rules.py:few"}', "60 are free"),
        ('{always: switch/ports, check: "./rules.py:odd"}', "expected None or True"),
        ('{always: switch/ports, check: "./rules.py:wrong"}', "KeyError: 'no' (rules.py, line 15"),
        ("{always: checkpoint/none, check: './rules.py:fine'}", "has no simctl_state()"),
        ('{environment: "1.0", has: {PORT: 7000, HOME: null}, lacks: DEBUG}', ""),
        ('{environment: "2.0", task: 0, has: {PORT: 7010}}', ""),
        ('{environment: "2.0", task: 0, has: {PORT: 7000}}', "task 0 has PORT='7010', not '7000'"),
        ('{environment: "1.0", has: {PROT: null}}', "task 0 has no PROT"),
        ('{environment: "1.0", lacks: PORT}', "task 0 has PORT='7000'"),
        ('{environment: "1.0", task: 1, lacks: X}', "no task 1 of step 1.0"),
        ('{environment: "9.0", lacks: X}', "no task of step 9.0"),
        ("{environment: 1.batch, has: {SLURM_JOB_ID: 1}}", ""),
        ("{output: 2, contains: [port 7010, oops]}", ""),
        ('{output: 1, lacks: oops, equals: "port 7000\\n"}', ""),
        ('{output: 1, stream: stderr, equals: "oops\\n"}', ""),
        ("{output: 1, contains: port 7001}", "'port 7001' is not in it\n| port 7000"),
        ("{output: 1, lacks: port}", "'port' is in it"),
        ("{output: 3, lacks: port}", "there is no batch job 3"),
        ("{file: /tmp/ports, on: n1, owner: root, contains: '7000'}", ""),
        ("{file: /tmp/ports, on: n2, contains: '7000'}", "'7000' is not in it\n| [7010, 7011]"),
        ("{file: /tmp/ports, on: n2, owner: alice}", "its owner is root, not alice"),
        ("{file: /tmp/ports, on: n2, exists: false}", "it is there, 13 bytes, of root"),
        ("{file: /tmp/prots, on: n2, exists: false}", ""),
        ("{file: /tmp/ports}", "there is no file /tmp/ports on login"),
        ('{file: /home/alice/err, owner: alice, equals: "oops\\n"}', ""),
    ],
)
def test_each_look_finds_what_is_wrong_and_nothing_else(
    tmp_path: Path, expect: str, detail: str
) -> None:
    """An empty detail stands for what holds."""
    held, found = play(tmp_path, expect)
    assert held == (detail == "")
    assert detail in found


@pytest.mark.parametrize(
    ("expect", "mistake"),
    [
        ("{always: switch/prts, unique: x}", "does not use switch/prts; it uses switch/ports"),
        ("{always: ports, unique: x}", "the type of a plugin such as switch/mine"),
        ("{always: switch/ports}", "has one rule: `unique`, `equal` or `check`"),
        ("{always: switch/ports, unique: x, equal: [x, 1]}", "has one rule"),
        ("{always: switch/ports, unique: a..b}", "a path into the plugin's state"),
        ("{always: switch/ports, equal: [x]}", "expected [PATH, VALUE]"),
        ("{always: switch/ports, role: manger, unique: x}", "did you mean manager?"),
        ('{always: switch/ports, check: "./rule.py:fine"}', "did you mean rules.py?"),
        ('{always: switch/ports, check: "./rules.py:fin"}', "no function fin in it; did you mean"),
        ("{file: ports}", "an absolute path"),
        ("{file: /tmp/ports, on: n9}", "no host 'n9'"),
        ("{file: /tmp/ports, owner: alcie}", "no user 'alcie'; did you mean alice?"),
        ("{file: /tmp/ports, exists: false, contains: x}", "`exists: false` and `contains`"),
        ("{output: 1}", "says nothing about the output"),
        ("{output: x, contains: y}", "a job id such as 1"),
        ('{environment: "1.0"}', "says nothing of the environment"),
        ("{environment: one, lacks: X}", "a step such as"),
    ],
)
def test_slips_of_the_pen_are_mistakes(tmp_path: Path, expect: str, mistake: str) -> None:
    """No look holds because nothing was looked at."""
    with pytest.raises(InputError) as caught:
        play(tmp_path, expect)
    assert mistake in str(caught.value)


def test_a_role_that_never_calls_is_no_proof(tmp_path: Path) -> None:
    """The look says that nothing was looked at."""
    (tmp_path / "ports.py").write_text(PLUGIN.replace("STRIDE", "10"))
    path = tmp_path / "s.yaml"
    lines = SCENARIO.partition("timeline:")[0] + "expect:\n  - "
    path.write_text(lines + UNIQUE.replace("slurmctld", "manager") + "\n")
    (result,) = run_scenario(path).result.expectations
    assert result.detail == "no function of switch/ports was called in role manager"


def test_a_run_and_a_trace_have_no_such_evidence(tmp_path: Path) -> None:
    """They refuse or leave out what they cannot know."""
    (tmp_path / "ports.py").write_text(PLUGIN.replace("STRIDE", "10"))
    path, trace = tmp_path / "s.yaml", tmp_path / "t.jsonl"
    path.write_text(SCENARIO)
    with pytest.raises(InputError, match="a trace alone does not tell"):
        run_scenario(path).assert_that("{output: 1, contains: port}")
    assert cli.main(["run", str(path), "--quiet", "--trace", str(trace)]) == cli.OK
    words = ["trace", "assert", str(trace), "{never: job_state state=FAILED}", "{file: /x}"]
    assert cli.main(words) == cli.OK


def values(tmp_path: Path, *words: str) -> list[dict[str, Any]]:
    """Return the arguments of all calls of job_attach and of build_jobinfo."""
    (tmp_path / "ports.py").write_text(PLUGIN.replace("STRIDE", "10"))
    path, trace = tmp_path / "s.yaml", tmp_path / "t.jsonl"
    path.write_text(SCENARIO)
    assert cli.main(["run", str(path), "--quiet", "--trace", str(trace), *words]) == cli.OK
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    names = ("switch_p_build_jobinfo", "switch_p_job_attach", "switch_p_job_init")
    return [event["args"] for event in events if event.get("name") in names]


def test_traces_tell_values_where_they_are_asked(tmp_path: Path) -> None:
    """What was put into the environment, credentials' fields, what is kept, files; else nothing."""
    assert all("values" not in args for args in values(tmp_path))
    build, init, attach, *_ = values(tmp_path, "--values")
    assert build["values"] == {
        "state": {"steps": {"n1": {"ports": [7000, 7001]}}, "free": 62},
        "switch_job": {"ports": [7000, 7001]},
    }
    assert init["values"]["files"] == {"/tmp/ports": "[7000, 7001]\n"}
    assert attach["env"] == ["PORT"]
    assert attach["values"]["env"] == {"PORT": "7000"}


def test_values_that_differ_are_not_deterministic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A port from the process's hash seed leaves no other mark in a trace; golden traces go on."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO)
    plugin = PLUGIN.replace("STRIDE", "10")
    (tmp_path / "ports.py").write_text(plugin)
    assert cli.main(["test", str(path), "--check-determinism"]) == cli.OK
    plugin = plugin.replace('env["PORT"] = str(', 'env["PORT"] = str(hash("x") + ')
    (tmp_path / "ports.py").write_text(plugin)
    capsys.readouterr()
    assert cli.main(["test", str(path), "--check-determinism"]) == cli.NOT_HELD
    assert "NOT DETERMINISTIC" in capsys.readouterr().out


def test_patterns_lead_into_arguments(tmp_path: Path) -> None:
    """As deep as the values are; a way that is not there matches nothing."""
    where = "options: {trace_values: true}\n" + SCENARIO
    (tmp_path / "ports.py").write_text(PLUGIN.replace("STRIDE", "10"))
    path = tmp_path / "s.yaml"
    path.write_text(where)
    run = run_scenario(path)
    assert len(run.matching("switch_p_job_attach args.values.env.PORT=7000")) == 1
    assert len(run.matching("switch_p_build_jobinfo args.values.switch_job.ports.1=7011")) == 1
    assert run.matching("switch_p_job_attach args.values.env.PROT=*") == []


# Pure.


def test_plain_data_is_bounded_and_in_order() -> None:
    """Sets are sorted, keys become texts; what is no plain data is named with its place."""
    assert plain({1: {3, 1, 2}, "a": (True, None, 1.5)}) == {"1": [1, 2, 3], "a": [True, None, 1.5]}
    assert len(plain(list(range(9_999)))) == 9_999
    for bad, where in (
        ({"a": [object()]}, "a.0 is of type object"),
        ({(1, 2): 3}, "a key of type tuple"),
        (b"x", "it is of type bytes"),
        (list(range(10_000)), "more than 10000 values"),
    ):
        with pytest.raises(NotPlainError, match=where):
            plain(bad)
    deep: list[Any] = []
    for _ in range(30):
        deep = [deep]
    with pytest.raises(NotPlainError, match="deep"):
        plain(deep)


@pytest.mark.parametrize(
    ("state", "path", "trouble"),
    [
        ({"a": [1, 2, 3]}, "a", ""),
        ({"a": [1, 2, 1]}, "a", "1 stands at a.0 and at a.2"),
        ({"a": [1, "1"]}, "a", ""),
        ({"a": {"x": 1, "y": 1}}, "a.*", "1 stands at a.x and at a.y"),
        ({"a": [{"p": [1]}, {"p": [1]}]}, "a.*.p", "1 stands at a.0.p.0 and at a.1.p.0"),
        ({"a": [{"x": 1}, {"x": 1}]}, "a", '{"x": 1} stands at a.0 and at a.1'),
        ({}, "a", ""),
    ],
)
def test_unique(state: Any, path: str, trouble: str) -> None:
    """Lists count by their items; a number is no text."""
    assert not_unique(state, Unique(path)) == trouble


def test_equal_and_judged() -> None:
    """Each value a path leads to; a judge answers nothing, yes, no, or with a text."""
    assert not_equal({"a": [1, 1]}, Equal("a.*", 1)) == ""
    assert not_equal({"a": [1, 2]}, Equal("a.*", 1)) == "a.1 is 2, not 1"
    assert [judged(each) for each in (None, True, "", False, "bad")] == [
        *("", "", "", "it returned False", "bad"),
    ]
    with pytest.raises(TypeError):
        judged(0)
