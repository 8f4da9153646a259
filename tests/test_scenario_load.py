"""Scenario files: what is read from them, and every mistake in them, each with its line."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.scenario.faults import Crash, FailFault, NodeTarget, RaiseFault, Start
from simctl.scenario.load import FIELDS, load_scenario, read_scenario
from simctl.scenario.model import (
    At,
    ConfEntry,
    FaultEntry,
    JobExpect,
    OrderExpect,
    RunEntry,
    Scenario,
    When,
    behaviour,
)
from simctl.scenario.positions import Mistake, ScenarioErrors
from simctl.scenario.schema import schema
from simctl.wire.command_lines import operand
from simctl.wire.ids import INFINITE
from simctl.wire.site_files import read_site_file
from simctl.world import World

ROOT = Path(__file__).parents[1]
CLUSTER = """\
nodes: [{name: "n[1-2]", cpus: 4, memory_mb: 16000}]
partitions: [{name: debug, nodes: "n[1-2]"}]
users: {alice: 1001, bob: {uid: 1002, gid: 100, account: physics, admin: operator}}
"""
LONG = f"""\
# What this is about,
# in two lines.

# Not part of it.
seed: 3
model: modern
start_time: 2026-03-01T01:00:00+01:00
latency: 2ms
slurm_conf: {{FirstJobId: 100, SlurmUser: slurm}}
{CLUSTER}
files:
  hello.sh: |
    #!/bin/bash
    #SBATCH -N2
    srun ./app && srun -n1 ./report
programs:
  ./app: {{runs: 30s, output: "done\\n"}}
  ./report: {{runs: [1s, 3s], exit: 2}}
  ./dies: {{runs: 5s, signal: KILL, tasks: [2], on_signal: {{TERM: ignore, USR1: 4}}}}
timeline:
  - {{at: 0s, as: alice, run: sbatch hello.sh}}
  - {{at: 1:00:00, run: "scancel 'a b'", exit: 1, expect: 2017, stdout: x, stderr: [y, z]}}
  - {{when: "switch_p_job_attach user=alice", each: true, fault: {{crash: n2}}}}
  - {{at: 20m, fault: {{start: n2}}}}
  - {{at: 1, fault: {{fail: "switch_p_job_*", errno: EINVAL, rc: -2, times: 3, skip: 1}}}}
  - {{at: 1, fault: {{raise: init}}}}
expect:
  - {{job: 100, state: COMPLETED, exit_code: 0:0}}
  - order: [init, {{match: fini, optional: true}}]
    within: step=1.0
    each: node
  - {{never: "switch_p_job_fini role=manager"}}
  - {{count: "switch_p_job_attach job=1", min: 4}}
"""


def read(text: str) -> Scenario:
    """Read a scenario that is sound."""
    return read_scenario(text, file="folder/x.yaml")


def mistakes(text: str, **names: Any) -> list[str]:
    """Return what is wrong with a scenario, as it is printed."""
    with pytest.raises(ScenarioErrors) as caught:
        read_scenario(text, file="x.yaml", **names)
    printed = [str(mistake) for mistake in caught.value.mistakes]
    assert str(caught.value) == "\n".join(printed)
    return printed


def only_mistake(text: str, **names: Any) -> str:
    """Return the one thing that is wrong with a scenario."""
    (mistake,) = mistakes(text, **names)
    return mistake


def test_a_long_scenario_reads_as_it_is_meant() -> None:
    """Every key, with forms that a YAML reader of its own mind would turn into other things."""
    scenario = read(LONG)
    assert scenario.path_name == "x.yaml"
    assert scenario.description == "What this is about,\nin two lines."
    assert (scenario.seed, scenario.model, scenario.latency_us) == (3, "modern", 2000)
    assert scenario.start_time == "2026-03-01T00:00:00Z"
    assert scenario.start_epoch_s == 1772323200
    assert scenario.slurm_conf.first_job_id == 100
    assert [(node.name, node.cpus, node.memory_mb) for node in scenario.nodes] == [
        ("n1", 4, 16000),
        ("n2", 4, 16000),
    ]
    assert scenario.partitions[0].nodes == ("n1", "n2")
    assert scenario.partitions[0].default
    assert scenario.uids() == {"root": 0, "slurm": 64030, "alice": 1001, "bob": 1002}
    bob = scenario.users[3]
    assert (bob.gid, bob.account, bob.admin) == (100, "physics", "operator")
    assert scenario.files["hello.sh"].startswith("#!/bin/bash\n#SBATCH")
    assert scenario.warnings == ()


def test_the_timeline_reads_as_it_is_meant() -> None:
    """Moments, command lines with what is asked of them, and faults."""
    first, second, third, *faults = read(LONG).timeline
    assert isinstance(first, RunEntry)
    assert (first.label, first.user, first.argv) == ("timeline[0]", "alice", ("sbatch", "hello.sh"))
    assert (first.checks.exit, first.checks.errno) == ((), "")
    assert isinstance(second, RunEntry)
    assert second.moment == At(time_us=3_600_000_000)
    assert (second.user, second.argv) == ("root", ("scancel", "a b"))
    checks = second.checks
    assert checks.exit == (1,)
    assert checks.errno == "ESLURM_INVALID_JOB_ID"
    assert (checks.stdout, checks.stderr) == (("x",), ("y", "z"))
    assert isinstance(third.moment, When)
    assert third.moment.each
    assert isinstance(third, FaultEntry)
    assert third.fault == Crash(target=NodeTarget("n2"))
    assert [type(entry.fault) for entry in faults if isinstance(entry, FaultEntry)] == [
        Start,
        FailFault,
        RaiseFault,
    ]
    fail = faults[1]
    assert isinstance(fail, FaultEntry)
    assert isinstance(fail.fault, FailFault)
    wanted = ("EINVAL", -2, 3, 1)
    assert (fail.fault.errno, fail.fault.rc, fail.fault.times, fail.fault.skip) == wanted


def test_expectations_read_as_they_are_meant() -> None:
    """Each has a line of text and its line in the file."""
    job, order, never, count = read(LONG).expect
    assert isinstance(job, JobExpect)
    assert job.fields == (("state", "COMPLETED"), ("exit_code", "0:0"))
    assert job.text == "job 100 state=COMPLETED exit_code=0:0"
    assert isinstance(order, OrderExpect)
    assert [entry.optional for entry in order.entries] == [False, True]
    assert order.text == "order init < [fini] within step=1.0 each node"
    assert never.text == "never switch_p_job_fini role=manager"
    assert count.text == "count switch_p_job_attach job=1 min 4"
    lines = LONG.splitlines()
    assert [lines[one.line - 1].lstrip(" -{")[:5] for one in (job, order)] == ["job: ", "order"]


def test_optional_on_an_order_makes_every_entry_optional() -> None:
    """The key stands on the expectation or on an entry."""
    scenario = read(f"{CLUSTER}expect: [{{order: [init, fini], optional: true}}]")
    (order,) = scenario.expect
    assert isinstance(order, OrderExpect)
    assert all(entry.optional for entry in order.entries)


def test_the_smallest_scenario_has_defaults() -> None:
    """Nodes and partitions are all there has to be."""
    scenario = read("nodes: [{name: n1}]\npartitions: [{name: p, nodes: ALL}]\nexpect:\n")
    assert (scenario.seed, scenario.model, scenario.latency_us) == (0, "guide", 100)
    assert scenario.start_time == "2026-01-01T00:00:00Z"
    assert scenario.description == ""
    partition = scenario.partitions[0]
    assert partition.nodes == ("n1",)
    assert partition.max_time_min == partition.default_time_min == INFINITE
    assert [user.name for user in scenario.users] == ["root", "slurm"]
    assert (scenario.timeline, scenario.expect) == ((), ())


def test_a_program_ends_differently_in_the_tasks_it_names() -> None:
    """The others run as long and exit well; in a list the first item for a task counts."""
    programs = read(LONG).programs
    dies = programs["./dies"]
    assert [behaviour(dies, rank).signal for rank in (1, 2)] == [0, 9]
    assert behaviour(dies, 1).runs_max_us == 5_000_000
    assert behaviour(dies, 1).ignores == (15,)
    assert behaviour(dies, 2).exits_on == {10: 4}
    report = behaviour(programs["./report"], 0)
    assert (report.runs_min_us, report.runs_max_us, report.exit) == (1_000_000, 3_000_000, 2)
    text = "programs: {./x: [{tasks: 1, exit: 3}, {runs: forever}], ./y: , ./z: [{tasks: [0]}]}"
    more = read(CLUSTER + text).programs
    assert behaviour(more["./x"], 1).exit == 3
    assert behaviour(more["./x"], 0).forever
    assert behaviour(more["./y"], 0) == behaviour(more["./z"], 5)


def test_one_partition_is_the_default_unless_it_says_no() -> None:
    """With several, none is unless it is said: then a job has to name one."""
    nodes = "nodes: [{name: n1}]\n"
    one = read(f"{nodes}partitions: [{{name: a, nodes: n1, default: false}}]").partitions
    two = read(f"{nodes}partitions: [{{name: a, nodes: n1}}, {{name: b, nodes: n1}}]").partitions
    assert [partition.default for partition in (*one, *two)] == [False, False, False]


def test_limits_are_minutes_rounded_up() -> None:
    """A partition without a default_time gives jobs its max_time; a bare number is seconds."""
    limits = "max_time: 90s, default_time: 60, max_nodes: 2, min_nodes: 0"
    scenario = read(f"nodes: [{{name: n1}}]\npartitions: [{{name: a, nodes: n1, {limits}}}]")
    partition = scenario.partitions[0]
    assert (partition.max_time_min, partition.default_time_min) == (2, 1)
    assert "60s or 60m" in str(scenario.warnings[0])


def test_aliases_and_merged_mappings_are_read() -> None:
    """What is written once may be used again."""
    text = f"""{CLUSTER}
programs:
  ./a: &a {{runs: 5s, exit: 3}}
  ./b: *a
  ./c: {{<<: *a, exit: 4}}
"""
    programs = read(text).programs
    assert programs["./b"] == programs["./a"]
    assert [behaviour(programs[name], 0).exit for name in ("./a", "./c")] == [3, 4]
    assert behaviour(programs["./c"], 0).runs_max_us == 5_000_000


MISTAKES = [
    ("sed: 1", "1:1: sed: a scenario has no key `sed`; did you mean seed?"),
    ("seed: four", '1:7: seed: expected a whole number of 0 or more, got "four"'),
    ('seed: "4"', 'got the text "4"; leave out the quotes'),
    ("seed: [4]", "1:7: seed: expected a whole number of 0 or more, got a list"),
    ("seed:", "got nothing"),
    ("seed: -1", "expected a whole number of 0 or more"),
    ("seed: 1\nseed: 2", "2:1: seed: key given twice, first on line 1"),
    ("? [a]\n: 1", "expected a word as key, got a list"),
    ("seed: !!int 4", "the tag tag:yaml.org,2002:int"),
    ("seed: !x 4", "the tag !x means nothing here"),
    ("model: guid", "did you mean guide?"),
    ("start_time: soon", "expected a moment such as 2026-01-01T00:00:00Z"),
    ("start_time: 1969-01-01", "1970 or later"),
    ("start_time: 0001-01-01T00:00:00+12:00", "expected a moment"),
    ("latency: 5 parsecs", "1:10: latency: unknown unit 'parsecs'"),
    ("latency: -1s", "zero or more"),
    ("slurm_conf: {SwitchTyp: switch/none}", "1:25: slurm_conf.SwitchTyp: "),
    ("slurm_conf: {KillWait: soon}", "1:24: slurm_conf.KillWait: "),
    ("slurm_conf: {KillWait: [1]}", "expected one word, number or text, got a list"),
    ("slurm_conf: {slurmuser: slum}", "did you mean slurm?"),
    ("slurm_conf: 5", "expected slurm.conf keys as a mapping"),
    ("burst_buffer_conf: 5", "expected burst_buffer.conf keys as a mapping"),
    ("burst_buffer_conf: {Granularity: 1Q}", "burst_buffer_conf.Granularity: expected a size"),
    ("burst_buffer_conf: {Granularity: [1]}", "expected one word, number or text, got a list"),
    ("burst_buffer_conf: {GetSysState: 'a\"b'}", "a text on one line, without double quotes"),
    ("burst_buffer_conf: {AltPool: x, altpool: y}", "given twice: AltPool is the same key"),
    ("burst_buffer_conf: {generic: {Granulary: 1}}", "did you mean Granularity?"),
    ("burst_buffer_conf: {generic: {AltPool: x}, AltPool: a}", "write either form alone"),
    ("burst_buffer_conf: {AllowUsers: bob, DenyUsers: alice}", "AllowUsers and DenyUsers are both"),
    ("burst_buffer_conf: {Pools: {Flags: x}}", "expected the name of a plugin, such as `generic`"),
    ("burst_buffer_conf: {Granulary: 1}", "did you mean Granularity?"),
    ("options: {bb_load_first: maybe}", "expected true or false, got"),
    ("options: {bb_load_frist: true}", "did you mean bb_load_first?"),
    ("options: {strict_source: true}", "`strict_source` is not simulated yet; leave it out"),
    ("plugins: [x]", "expected a file or module and the class in it"),
    ("plugins: [x.py]", "no file 'x.py' beside the scenario"),
    ('plugins: ["./none.py:X"]', "no file './none.py' beside the scenario"),
    ('plugins: ["./none.py:1X"]', "expected a file or module and the class in it"),
    ("files: {../x: y}", "cannot be a file"),
    ("files: {x: y, ./x: z}", "the same file"),
    ("files: {x: [y]}", "expected the text of a file"),
    ("programs: {./x: {run: 3s}}", 'programs["./x"].run: a program has no key `run`'),
    ("programs: {./x: {runs: soon}}", "expected a length of time"),
    ("programs: {./x: {runs: [1s]}}", "expected two bounds"),
    ("programs: {./x: {runs: [2s, 1s]}}", "the first bound is the shorter one: [1s, 2s]"),
    ("programs: {./x: {exit: 256}}", "expected an exit status from 0 to 255"),
    ("programs: {./x: {exit: 1, signal: 9}}", "a program ends in one way"),
    ("programs: {./x: {runs: forever, exit: 1}}", "runs forever has no `exit`"),
    ("programs: {./x: {runs: forever, oom: true}}", "runs forever has no `oom`"),
    ("programs: {./x: {signal: 9, oom: true}}", "a program ends in one way"),
    ("programs: {./x: {signal: KIL}}", "did you mean KILL"),
    ("programs: {./x: {signal: 0}}", "signal"),
    ("programs: {./x: {on_signal: {KILL: ignore}}}", "no program can catch or ignore KILL"),
    ("programs: {./x: {on_signal: {TREM: ignore}}}", "did you mean TERM"),
    ("programs: {./x: {on_signal: {TERM: die}}}", "expected `ignore`, or the exit status"),
    ("programs: {./x: {tasks: []}}", "at least 1"),
    ("programs: {./x: [{}, {tasks: 1}]}", "never used"),
    ("programs: {./x: []}", "an empty list"),
    ("programs: {a b: {}}", "a script calls it by one word"),
    ("timeline: {at: 1}", "expected a list of entries, got a mapping"),
    ("timeline: [{at: 0}]", "missing key: `run` or `fault` or `burst_buffer_conf`"),
    ("timeline: [{run: scancel}]", "missing key: `at` or `when`"),
    ("timeline: [{at: 0, when: init, run: scancel}]", "`at` and `when` together"),
    ("timeline: [{at: 0, each: true, run: scancel}]", "`each` goes with `when`"),
    (
        "timeline: [{at: 0, run: scancel, as: alic}]",
        "no user 'alic' in `users:`; did you mean alice",
    ),
    ("timeline: [{at: 0, run: sbtach}]", "no command 'sbtach'; did you mean sbatch?"),
    ("timeline: [{at: 0, run: sstat}]", "sstat is known to Slurm but not simulated yet"),
    ("timeline: [{at: 0, run: ' '}]", "expected a command line"),
    ('timeline: [{at: 0, run: "squeue \'x"}]', "no closing quotation"),
    ("timeline: [{at: 0, run: scancel | wc}]", "no shell reads this line: '|'"),
    ("timeline: [{at: 0, run: sbatch a.sh;}]", "no shell reads this line: 'a.sh;'"),
    ("timeline: [{at: 0, run: scancel, expect: ESLURM_DISABLE}]", "did you mean ESLURM_DISABLED?"),
    ("timeline: [{at: 0, run: scancel, exit: 256}]", "expected an exit status from 0 to 255"),
    ('timeline: [{at: 0, run: scancel, stdout: ""}]', "expected a text it contains"),
    ("timeline: [{at: 0, fault: {crash: n1}, exit: 1}]", "`exit` goes with `run`"),
    ("timeline: [{at: 0, burst_buffer_conf: {Flags: x}}]", '"x" is none of Flags'),
    ("timeline: [{at: 0, burst_buffer_conf: {}, as: bob}]", "`as` goes with `run`, not with `bur"),
    ("timeline: [{at: 0, run: scancel, burst_buffer_conf: {}}]", "`burst_buffer_conf` together"),
    ("timeline: [{at: 0, fault: crash n1}]", "expected a fault"),
    ("timeline: [{at: 0, fault: {crash: n9}}]", "no node 'n9'"),
    ("timeline: [{at: 0, fault: {crash: 'n[1-2]'}}]", "write a fault for each"),
    ("timeline: [{at: 0, fault: {crash: n1, saved: true}}]", "only slurmctld saves its state"),
    ("timeline: [{at: 0, fault: {crash: slurmd@n9}}]", "no node 'n9'"),
    ("timeline: [{at: 0, fault: {crash: stepd 1@n1}}]", "expected a node such as n1, slurmctld"),
    ("timeline: [{at: 0, fault: {crash: stepd 1.0@n9}}]", "no node 'n9'"),
    ("timeline: [{at: 0, fault: {crash: task 1.0}}]", "stepd 1.0@n1 or task 1.0.3, got 'task 1.0'"),
    (
        "timeline: [{at: 0, fault: {start: stepd 1.0@n1}}]",
        "expected a node such as n1, slurmctld or slurmd@n1",
    ),
    ("timeline: [{at: 0, fault: {stop: n1}}]", "expected slurmctld or slurmd@n1, got n1"),
    ("timeline: [{at: 0, fault: {restart: n1}}]", "expected slurmctld or slurmd@n1, got n1"),
    ("timeline: [{at: 0, fault: {cut: [slurmctld, n9]}}]", "no node 'n9', nor is it slurmctld"),
    ("timeline: [{at: 0, fault: {cut: [slurmctld]}}]", "a link has two ends"),
    ("timeline: [{at: 0, fault: {cut: [n1, n1]}}]", "not n1 with itself"),
    ("timeline: [{at: 0, fault: {cut: [slurmctld, 'n[1-2]']}}]", "write a fault for each"),
    ("timeline: [{at: 0, fault: {drop: X}}]", "no message 'X'"),
    ("timeline: [{at: 0, fault: {drop: REQUEST_PIN}}]", "did you mean REQUEST_PING?"),
    ("timeline: [{at: 0, fault: {drop: 'REQUEST_X*'}}]", "no message's name is like 'REQUEST_X*'"),
    ("timeline: [{at: 0, fault: {drop: REQUEST_PING, from: n9}}]", "no host 'n9'"),
    ("timeline: [{at: 0, fault: {drop: '*', to: slurd@n1}}]", "did you mean slurmd?"),
    ("timeline: [{at: 0, fault: {drop: '*', to: 'n[1-2]'}}]", "write a fault for each"),
    ("timeline: [{at: 0, fault: {drop: '*', chance: 2}}]", "a number above 0, up to 1"),
    ("timeline: [{at: 0, fault: {drop: '*', chance: 0}}]", "a number above 0, up to 1"),
    ("timeline: [{at: 0, fault: {delay: REQUEST_PING}}]", "missing key `by`"),
    ("timeline: [{at: 0, fault: {duplicate: TASK_OUTPUT}}]", "TASK_OUTPUT is a stream"),
    ("timeline: [{at: 0, fault: {crsh: n1}}]", "did you mean crash?"),
    ("timeline: [{at: 0, fault: {crash: n1, start: n1}}]", "`crash` and `start` together"),
    ("timeline: [{at: 0, fault: {crash: n1, for: 3s}}]", "a `crash` fault has no key `for`"),
    ("timeline: [{at: 0, fault: {fail: switch_p_job_ini}}]", "did you mean switch_p_job_init?"),
    ("timeline: [{at: 0, fault: {fail: job_state}}]", "no plugin function is called 'job_state'"),
    ("timeline: [{at: 0, fault: {fail: init rc=-1}}]", "rc= is not known before a call is made"),
    ("timeline: [{at: 0, fault: {fail: init kind=state}}]", "only plugin calls"),
    ("timeline: [{at: 0, fault: {raise: init, times: 0}}]", "expected a whole number above 0"),
    ("timeline: [{when: switch_p_job_atach, run: scancel}]", "did you mean switch_p_job_attach?"),
    ("timeline: [{when: bb_p_*_x, run: scancel}]", "no plugin function is called"),
    ("timeline: [{when: init node=n3, run: scancel}]", "no node 'n3'"),
    ("expect: [{job: 1}]", "says nothing about job 1"),
    ("expect: [{job: one, state: FAILED}]", "expected a job id"),
    ("expect: [{job: 1, state: COMPLETD}]", "did you mean COMPLETED?"),
    ("expect: [{job: 1, state: completed}]", "did you mean COMPLETED?"),
    ("expect: [{job: 1, exit_code: 0}]", "expected an exit code"),
    ("expect: [{job: 1, stat: FAILED}]", "did you mean state?"),
    ("expect: [{order: [init]}]", "at least 2"),
    ("expect: [{order: init}]", "expected a list of patterns"),
    ("expect: [{order: [init, {optional: true}]}]", "missing key `match`"),
    ("expect: [{order: [init, fini], within: 'x step=1'}]", "expected key=value, got 'x'"),
    ("expect: [{order: [init, fini], each: nodes}]", "did you mean node?"),
    ("expect: [{never: init jb=1}]", "1:23: expect[0].never: no field 'jb'; did you mean job?"),
    ("expect: [{never: 'init user=alic'}]", "no user 'alic'; did you mean alice?"),
    ("expect: [{never: job_stat}]", "did you mean job_state?"),
    ("expect: [{count: init}]", "missing key: `is`"),
    ("expect: [{count: init, is: 1, min: 2}]", "`is` and `min` together"),
    ("expect: [{count: init, min: 3, max: 2}]", "`min` is above `max`"),
    ("expect: [{nevr: init}]", "did you mean never?"),
    ("expect: [{}]", "an expectation has one of the keys"),
    ("expect: [x]", "expected an expectation"),
]


@pytest.mark.parametrize(("text", "says"), MISTAKES)
def test_a_mistake_is_told_with_its_place(text: str, says: str) -> None:
    """File, line, column, path, and what was expected or would do; nothing else is wrong."""
    mistake = only_mistake(f"{text}\n{CLUSTER}")
    assert re.match(r"x\.yaml:[12]:[0-9]+: .+?: ", mistake) or "expected a word" in mistake
    assert says in mistake


CLUSTER_MISTAKES = [
    ("", "missing key `nodes`"),
    ("nodes: []", "at least 1"),
    ("nodes: n1", "expected a list of nodes"),
    ("nodes: [n1]", "expected a node as a mapping"),
    ("nodes: [{cpus: 1}]", "nodes[0]: missing key `name`"),
    ("nodes: [{name: 'n[1-'}]", "1:16: nodes[0].name: "),
    ("nodes: [{name: 'n[2-1]'}]", "nodes[0].name: "),
    ("nodes: [{name: n1}, {name: 'n[1-2]'}]", "node 'n1' is there already"),
    ("nodes: [{name: 'n[1,1]'}]", "node 'n1' is there already"),
    ("nodes: [{name: n/1}]", "cannot be a host"),
    ("nodes: [{name: login}]", "the name stands for something else"),
    ("nodes: [{name: slurmctld}]", "the name stands for something else"),
    ("nodes: [{name: n1, cpus: 0}]", "expected a whole number above 0"),
    ("nodes: [{name: n1, cpu: 2}]", "did you mean cpus?"),
    ("nodes: [{name: n1, weight: 3}]", "known to Slurm but not simulated yet"),
    ("nodes: [{name: n1, gres: 'gpu:x:y:z'}]", "is no generic resource"),
    (
        "slurm_conf: {GresTypes: gpu}\nnodes: [{name: n1, gres: 'gpus:1'}]",
        "nodes have 'gpus', which GresTypes lacks; did you mean",
    ),
]


@pytest.mark.parametrize(("text", "says"), CLUSTER_MISTAKES)
def test_a_mistake_in_the_nodes_is_told(text: str, says: str) -> None:
    """Partitions that refer to them are not blamed as well."""
    mistake = only_mistake(f"{text}\npartitions: [{{name: p, nodes: ALL}}]")
    assert says in mistake


PARTITION_MISTAKES = [
    ("[]", "at least 1"),
    ("[{nodes: n1}]", "missing key `name`"),
    ("[{name: p}]", "missing key `nodes`"),
    ("[{name: a b, nodes: n1}]", "cannot be the name of a partition"),
    ("[{name: p, nodes: n3}]", "partitions[0].nodes: no node 'n3' in `nodes:`"),
    ("[{name: p, nodes: 'n[1-9]'}]", "no node 'n3' (and 6 more)"),
    ("[{name: p, nodes: n1}, {name: p, nodes: n2}]", "partition 'p' is there already"),
    ("[{name: p, nodes: n1, default: 1}]", "expected true or false"),
    (
        "[{name: p, nodes: n1, default: yes}, {name: q, nodes: n2, default: yes}]",
        "'p' is the default already",
    ),
    ("[{name: p, nodes: n1, max_time: 0}]", "expected a time limit above 0"),
    ("[{name: p, nodes: n1, max_time: 1h, default_time: 2h}]", "default_time is above max_time"),
    ("[{name: p, nodes: n1, min_nodes: 2, max_nodes: 1}]", "min_nodes is above max_nodes"),
    ("[{name: p, nodes: n1, qos: x}]", "known to Slurm but not simulated yet"),
]


@pytest.mark.parametrize(("text", "says"), PARTITION_MISTAKES)
def test_a_mistake_in_the_partitions_is_told(text: str, says: str) -> None:
    """Names, nodes, limits and defaults are checked one against the other."""
    assert says in only_mistake(f"nodes: [{{name: 'n[1-2]'}}]\npartitions: {text}")


USER_MISTAKES = [
    ("[alice]", "expected names of users"),
    ("{alice: x}", "expected a whole number"),
    ("{alice: -1}", "expected a whole number"),
    ("{alice: }", "got nothing"),
    ("{alice: 1, bob: 1}", "users.bob: uid 1 belongs to 'alice' already"),
    ("{alice: 0}", "uid 0 belongs to 'root' already"),
    ("{bob: {uid: 64030}}", "uid 64030 belongs to 'slurm' already"),
    ("{root: 5}", "root has the uid 0, not 5"),
    ("{alice: {gid: 5}}", "missing key `uid`"),
    ("{alice: {uid: 5, admin: admin}}", "expected none or operator or administrator"),
    ("{7up: 5}", "cannot be the name of a user"),
]


@pytest.mark.parametrize(("text", "says"), USER_MISTAKES)
def test_a_mistake_in_the_users_is_told(text: str, says: str) -> None:
    """Names and numbers are each given once, root and slurm included."""
    nodes = "nodes: [{name: n1}]\npartitions: [{name: p, nodes: n1}]\n"
    assert says in only_mistake(f"{nodes}users: {text}")


def test_slurm_may_have_another_uid() -> None:
    """Only its name is taken; who uses it keeps that user."""
    nodes = "nodes: [{name: n1}]\npartitions: [{name: p, nodes: n1}]\n"
    assert read(f"{nodes}users: {{slurm: 500, alice: 64030}}").uids()["slurm"] == 500


def test_all_mistakes_come_at_once_in_the_order_of_the_file() -> None:
    """Those that refer to something that has a mistake of its own included."""
    text = """\
seed: x
nodes:
  - {name: n1, cpus: none}
partitions:
  - {name: p, nodes: n2, default: maybe}
users: {alice: {uid: 1, admin: boss}}
timeline:
  - {at: soon, as: alic, run: sbatsh}
  - {at: 0, as: alice, run: sbatch x.sh, fault: {crash: n3}}
files:
  x.sh: |
    #!/bin/sh
    ls | fg
expect:
  - {never: init user=alise}
"""
    lines = [int(mistake.split(":")[1]) for mistake in mistakes(text)]
    assert lines == sorted(lines)
    assert lines == [1, 3, 5, 5, 6, 8, 8, 8, 9, 9, 13, 15]


def test_a_script_outside_the_subset_is_told_at_its_line() -> None:
    """The line of the file, not of the script; other files are nobody's scripts."""
    text = f"""{CLUSTER}
files:
  a.sh: |
    #!/bin/sh

    fg %1
  b.sh: "#!/bin/sh\\nfg %1"
  c.sh: |
    #!/bin/sh
    sbatch ./a.sh
  unused.sh: |
    fg %1
timeline:
  - {{at: 0, run: "sbatch -N 2 --time 10 c.sh x"}}
  - {{at: 0, run: sbatch b.sh}}
  - {{at: 0, run: "sbatch --wrap='f() {{ fg; }}'"}}
"""
    first, second, third = mistakes(text)
    assert first.startswith('x.yaml:9:5: files["a.sh"]: ')
    assert second.startswith('x.yaml:10:9: files["b.sh"]: line 2 of the text: ')
    assert third.startswith("x.yaml:19:18: timeline[2].run: line 1 of the text: ")


def test_a_script_that_is_no_file_is_a_warning() -> None:
    """Of the scenario, or of the timeline before or after; sbatch will not find it."""
    text = CLUSTER + (
        "files: {hello.sh: '#!/bin/sh'}\n"
        "timeline:\n"
        "  - {at: 0s, run: sbatch -N1 hell.sh}\n"
        "  - {at: 0s, run: sbatch ./hello.sh 1 2}\n"
        "  - {at: 0s, run: sbatch /root/later.sh}\n"
        "  - {at: 0s, files: {./later.sh: '#!/bin/sh'}}\n"
        "  - {at: 0s, run: sbatch --wrap true}\n"
    )
    assert [each.message for each in read(text).warnings] == [
        "there is no file 'hell.sh' in `files:`; did you mean hello.sh?"
    ]


def test_a_program_nobody_described_is_a_warning() -> None:
    """It ends with 127, which may be what is meant; so the scenario is sound."""
    text = f"""{CLUSTER}
files:
  a.sh: |
    #!/bin/sh
    srun -n 2 ./ap --time 3
    sleep 1 && ./other
    srun ./app
    echo done
programs: {{./app: {{runs: 1s}}}}
timeline:
  - {{at: 0, run: sbatch a.sh}}
  - {{at: 0, run: srun -N1 lscpu}}
  - {{at: 0, run: srun -N1 sdiag}}
"""
    first, second, third, fourth = (str(warning) for warning in read(text).warnings)
    assert first.startswith("folder/x.yaml:8:5: files[\"a.sh\"]: nobody described './ap'")
    assert "did you mean ./app?" in first
    assert "ends with 127" in second
    assert ":9:" in second
    assert "'lscpu'" in third
    assert "sdiag is known to Slurm but not simulated yet: it ends with 2" in fourth


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("sbatch a.sh b", "a.sh"),
        ("sbatch -N2 -n 4 --time=10 --mem 5 --hold a.sh", "a.sh"),
        ("sbatch -W a.sh", "a.sh"),
        ("sbatch --wait a.sh", "a.sh"),
        ("srun -W 3 ./app", "./app"),
        ("srun -l -- ./app", "./app"),
        ("srun --exclusive ./app -x y", "./app"),
        ("srun", ""),
        ("srun -n", ""),
        ("srun --", ""),
    ],
)
def test_the_operand_is_the_first_word_that_belongs_to_no_option(line: str, word: str) -> None:
    """Options with and without values are told apart."""
    assert operand(line.split()) == word


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "the file is empty"),
        (b"# only a comment\n", "the file is empty"),
        (b"nodes: [1, 2\nx: 1\n", "2:2: not YAML: "),
        (b"nodes:\n\t- x\n", "2:1: not YAML: a tab"),
        (b"a: 1\n---\nb: 2\n", "a file holds one scenario"),
        (b"a: *x\n", "not YAML: found undefined alias"),
        (b"a: \x00\n", "1:4: not YAML: "),
        (b"a: 1\nb: \xff\n", "2:4: byte 0xff is not UTF-8"),
        (b"- a\n", "expected a scenario as a mapping, got a list"),
        (b"five\n", 'expected a scenario as a mapping, got "five"'),
        (b"[" * 5000, "nested too deeply"),
        (b"nodes: &a [*a]\npartitions: &b {<<: *b}\n", "an alias stands inside of what"),
    ],
)
def test_a_file_that_is_no_scenario_is_told(tmp_path: Path, data: bytes, says: str) -> None:
    """With the line where there is one, and never a traceback."""
    path = tmp_path / "x.yaml"
    path.write_bytes(data)
    with pytest.raises(ScenarioErrors) as caught:
        load_scenario(path)
    assert str(caught.value).startswith(str(path))
    assert says in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A missing file and a folder say so."""
    with pytest.raises(ScenarioErrors, match="cannot read the scenario: No such file"):
        load_scenario(tmp_path / "none.yaml")
    with pytest.raises(ScenarioErrors, match="cannot read the scenario: Is a directory"):
        load_scenario(tmp_path)


def test_line_endings_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    """Files come from all kinds of editors."""
    path = tmp_path / "x.yaml"
    text = LONG.replace("\n", "\r\n").encode()
    path.write_bytes(b"\xef\xbb\xbf" + text)
    assert load_scenario(path) == read(LONG)


def test_plugins_are_found_beside_the_scenario(tmp_path: Path) -> None:
    """Paths are taken from its folder; a name that is nearly there is suggested."""
    (tmp_path / "mine.py").write_text("class Mine: ...\n")
    path = tmp_path / "x.yaml"
    path.write_text(f'{CLUSTER}plugins: ["./mine.py:Mine"]\n')
    (plugin,) = load_scenario(path).plugins
    assert plugin.reference == "./mine.py:Mine"
    assert (plugin.line, plugin.column) == (4, 11)
    path.write_text(f'{CLUSTER}plugins: ["./mien.py:Mine"]\n')
    with pytest.raises(ScenarioErrors, match=r"did you mean mine\.py"):
        load_scenario(path)


def test_names_that_others_know_are_taken_from_them() -> None:
    """Which functions, commands and RPCs there are is for the caller to say."""
    text = f"{CLUSTER}timeline: [{{when: REQUEST_PNIG, run: sview}}]"
    names: dict[str, Any] = {"event_names": ["REQUEST_PING"], "commands": ["sview"]}
    assert "did you mean REQUEST_PING?" in only_mistake(text, **names)
    text = f"{CLUSTER}timeline: [{{at: 0, fault: {{fail: switch_p_mine}}}}]"
    assert "no plugin function" in only_mistake(text)
    read_scenario(text, file="x.yaml", functions=["switch_p_mine"])


def _keys(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node.get("properties", {})
    if isinstance(node, dict | list):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _keys(child)


def test_the_schema_has_the_keys_of_the_reader() -> None:
    """Both come from one table; the outermost keys are its fields."""
    top = schema()
    assert list(top["properties"]) == [field.name for field in FIELDS]
    assert top["anyOf"] == [
        {"required": ["nodes", "partitions"]},
        {"required": ["slurm_conf_file"]},
    ]
    assert top["additionalProperties"] is False
    assert {"crash", "within", "exit_code", "on_signal", "admin", "memory_mb"} <= set(_keys(top))


def test_burst_buffer_conf_is_written_where_slurmctld_reads_it() -> None:
    """One file for all plugins, which an entry of the timeline writes anew; or one for each."""
    head = f"{CLUSTER}slurm_conf: {{BurstBufferType: burst_buffer/generic}}\n"
    scenario = read(
        f"{head}burst_buffer_conf: {{getsysstate: '/bin/a#b \\', Granularity: 1GiB, AltPool: }}\n"
        "timeline: [{at: 1m, burst_buffer_conf: {DenyUsers: bob, Granularity: }}]\n"
    )
    assert scenario.burst_buffer_conf == {"": {"GetSysState": "/bin/a#b \\", "Granularity": "1GiB"}}
    entry = scenario.timeline[0]
    assert isinstance(entry, ConfEntry)
    assert entry.text == "burst_buffer.conf: DenyUsers=bob, without Granularity"
    world = World(scenario)
    path = "/etc/slurm/burst_buffer.conf"
    assert _values(world.disk.read(path, host="slurmctld")) == {
        "GetSysState": "/bin/a#b \\",
        "Granularity": (1 << 30, "bytes"),
    }
    world.timeline.happen(entry)
    assert _values(world.disk.read(path, host="slurmctld")) == {
        "GetSysState": "/bin/a#b \\",
        "DenyUsers": ("bob",),
    }
    scenario = read(f"{head}burst_buffer_conf: {{generic: {{AltPool: a}}, other: {{}}}}\n")
    assert [each.message for each in scenario.warnings] == [
        "nobody reads other: BurstBufferType is burst_buffer/generic"
    ]
    world = World(scenario)
    path = "/etc/slurm/burst_buffer_generic.conf"
    assert _values(world.disk.read(path, host="slurmctld")) == {"AltPool": "a"}


def test_users_of_burst_buffer_conf_who_do_not_exist_are_warned_of() -> None:
    """Slurm passes over them in its log; a number is anybody's."""
    head = f"{CLUSTER}slurm_conf: {{BurstBufferType: burst_buffer/generic}}\n"
    found = read(f"{head}burst_buffer_conf: {{AllowUsers: 'alice,bobb,1234'}}\n").warnings
    assert [each.message for each in found] == [
        "AllowUsers names 'bobb', who is no user here; did you mean bob?"
    ]


def _values(text: str | None) -> dict[str, Any]:
    assert text is not None
    found = read_site_file("burst_buffer.conf", text, "x", str)
    assert found.mistakes == []
    return found.values


def test_options_are_left_to_the_model_or_given() -> None:
    """None where the model decides."""
    options = read(CLUSTER).options
    assert (options.bb_load_first, options.real_scripts) == (None, False)
    assert read(f"{CLUSTER}options: {{bb_load_first: no}}\n").options.bb_load_first is False


def test_every_key_is_in_the_docs() -> None:
    """The page of scenarios names each key that the schema has."""
    page = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    missing = [key for key in dict.fromkeys(_keys(schema())) if f"`{key}`" not in page]
    assert missing == []


def test_the_example_of_the_docs_is_sound() -> None:
    """What the page shows can be run."""
    page = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    whole = [text for text in examples if "nodes:" in text]
    assert whole
    for text in whole:
        assert read(text).warnings == ()


@pytest.mark.parametrize(
    "path", sorted((ROOT / "scenarios").glob("*.yaml")), ids=lambda path: path.name
)
def test_the_shipped_scenarios_are_sound(path: Path) -> None:
    """Each has a comment that says what it shows."""
    assert load_scenario(path).description


def _found(text: str) -> tuple[Mistake, ...]:
    """Return what is wrong with a scenario, or nothing if it is sound."""
    try:
        read(text)
    except ScenarioErrors as error:
        return error.mistakes
    return ()


PIECES = st.sampled_from([*"{}[]:,-#&*!|>'\"%@`\\\t\x00\u20ac \n", "at", "1", "null", "<<", "~"])


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.integers(min_value=0, max_value=len(LONG)), PIECES, st.integers(0, 12))
def test_a_damaged_scenario_is_read_or_told_to_be_wrong(at: int, piece: str, cut: int) -> None:
    """Whatever is put in and taken out, no other error comes out, and each has a place."""
    text = LONG[:at] + piece + LONG[at + cut :]
    for mistake in _found(text):
        assert mistake.message


@pytest.mark.parametrize("conf", ["", "slurm_conf: {BurstBufferType: burst_buffer/generic}"])
@pytest.mark.parametrize("key", [field.name for field in FIELDS])
def test_a_key_without_a_value_is_left_out_or_told_to_be_wrong(key: str, conf: str) -> None:
    """As `slurm_conf:` with its keys commented out."""
    lines = [line for line in (*CLUSTER.splitlines(), conf) if not line.startswith(f"{key}:")]
    for empty in ("", "null", "~", "[]", "{}", "''"):
        _found("\n".join([*lines, f"{key}: {empty}"]))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.sampled_from([field.name for field in FIELDS]), st.data())
def test_any_value_under_any_key_is_read_or_told_to_be_wrong(key: str, data: st.DataObject) -> None:
    """Scalars, lists and mappings where others are expected are mistakes like any others."""
    leaf = st.sampled_from(["5", "x", '"q"', "null", "1:00", "-1", "true", "n1", "init", "''"])
    word = st.sampled_from(["name", "nodes", "at", "run", "fault", "job", "order", "uid", "crash"])
    value = st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
            st.lists(st.tuples(word, inner), max_size=3).map(
                lambda items: "{" + ", ".join(f"{k}: {v}" for k, v in items) + "}"
            ),
        ),
        max_leaves=6,
    )
    lines = [line for line in CLUSTER.splitlines() if not line.startswith(f"{key}:")]
    found = _found("\n".join([*lines, f"{key}: {data.draw(value)}"]))
    assert [mistake.line for mistake in found] == sorted(mistake.line for mistake in found)
