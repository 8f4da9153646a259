"""A site's own slurm.conf: read beside a scenario, and imported as one."""

import random
import re
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simctl.cli import main
from simctl.scenario.imported import ImportedCluster, read_imported
from simctl.scenario.load import load_scenario, read_scenario
from simctl.scenario.model import Scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.scenario.written import scenario_text
from simctl.status import NOT_HELD, OK, WRONG_INPUT
from simctl.wire.burst_buffer_conf import size
from simctl.world import World

SITES = Path(__file__).parent / "site"
STYLES = ("teaching", "centre", "terse")
LINE = "slurm_conf_file: {}\nusers: {{slurmadm: 1500}}\n"
QUICK = settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)


def beside(folder: Path, conf: str, scenario: str = "", **files: str) -> Scenario:
    """Return the scenario that has a slurm.conf, and says no more than it is given."""
    (folder / "slurm.conf").write_text(conf)
    for name, text in files.items():
        stem = name.removesuffix("_conf")
        (folder / f"{stem}.conf").write_text(text)
    text = f"slurm_conf_file: slurm.conf\n{scenario}"
    return read_scenario(text, file=str(folder / "site.yaml"))


def mistakes(folder: Path, conf: str, scenario: str = "", **files: str) -> list[str]:
    """Return what is wrong, without the folder."""
    with pytest.raises(ScenarioErrors) as caught:
        beside(folder, conf, scenario, **files)
    return [str(each).removeprefix(f"{folder}/") for each in caught.value.mistakes]


def cluster_of(scenario: Scenario) -> tuple[object, ...]:
    """Return what a slurm.conf says of a cluster."""
    nodes = [(node, tuple(node.gres.items())) for node in scenario.nodes]
    return scenario.slurm_conf, nodes, scenario.partitions


ONE = "NodeName=n1\nPartitionName=p Nodes=n1\n"


@pytest.mark.parametrize("style", STYLES)
def test_an_import_is_the_cluster_that_the_file_beside_a_scenario_is(style: str) -> None:
    """Both read one file; what is imported loads without a warning."""
    file = SITES / f"{style}.conf"
    direct = read_scenario(LINE.format(file.name), file=str(SITES / "site.yaml"))
    imported = read_scenario(scenario_text(read_imported(str(file))), file="imported.yaml")
    assert cluster_of(imported) == cluster_of(direct)
    assert imported.warnings == ()


@pytest.mark.parametrize("style", STYLES)
def test_an_import_runs_and_its_job_completes(style: str) -> None:
    """The small timeline that is written submits a job that can start."""
    imported = read_scenario(
        scenario_text(read_imported(str(SITES / f"{style}.conf"))), file="imported.yaml"
    )
    result = World(imported).run()
    assert [row.state for row in result.rows] == ["COMPLETED"]
    assert result.stalled == ()


def test_the_centre_is_read_whole() -> None:
    """Includes, defaults, node sets, nodes that are down, and partitions of them."""
    site = read_scenario(LINE.format("centre.conf"), file=str(SITES / "site.yaml"))
    nodes = {node.name: node for node in site.nodes}
    assert len(nodes) == 24 + 6 + 2
    assert (nodes["r2c3n04"].cpus, nodes["r2c3n04"].state) == (48, "DOWN")
    assert nodes["r2c3n04"].reason == "fan broken, ticket #17"
    assert (nodes["gpu1"].cpus, dict(nodes["gpu1"].gres)) == (64, {"gpu:a100": 4, "nvme": 1})
    assert (nodes["gpu6"].state, nodes["login1"].cpus) == ("DRAIN", 8)
    parts = {part.name: part for part in site.partitions}
    assert parts["gpu"].nodes == (*(f"gpu{n}" for n in range(1, 7)), "login2")
    assert (parts["gpu"].max_time_min, parts["gpu"].default_time_min) == (2880, 60)
    assert (parts["short"].max_time_min, parts["short"].default) == (30, True)
    assert parts["scavenge"].nodes == tuple(nodes)
    assert (parts["scavenge"].exclusive, parts["scavenge"].preempt_mode) == (True, "REQUEUE")
    assert site.slurm_conf.scheduler_parameters.bf_max_job_test == 500
    assert (site.slurm_conf.slurm_user, site.slurm_conf.prolog_flags) == ("slurmadm", "Alloc")


def test_what_is_ignored_is_told_once() -> None:
    """In one line, each key once, with what holds instead or what the key is called now."""
    site = read_scenario(LINE.format("centre.conf"), file=str(SITES / "site.yaml"))
    told = [each.message for each in site.warnings if "ignored here" in each.message]
    assert len(told) == 1
    words = re.sub(r" \([^)]*\)", "", told[0].partition(": ")[2]).split(", ")
    assert len(words) == len(set(words))
    assert {"NodeName.Weight", "PartitionName.QOS", "PrologFlags=X11", "JobSubmitPlugins"} <= {
        *words
    }
    assert "ControlMachine (now SlurmctldHost)" in told[0]
    assert "NodeName (next[001-100] is FUTURE and left out)" in told[0]


@pytest.mark.parametrize(
    ("conf", "mistake"),
    [
        (
            "SlurmdTimout=5",
            '3:1: "SlurmdTimout" is not a slurm.conf key; did you mean SlurmdTimeout?',
        ),
        ("KillWait=soon", "3:10: KillWait: expected a whole number from 0 to 65533, got"),
        ("NodeName=n2 CPU=4", '3:13: "CPU" is no key of NodeName lines; did you mean CPUs?'),
        ("NodeName=n2 CPUs=0", "3:18: CPUs: expected a whole number from 1 to"),
        ("NodeName=n[2-", "3:10: NodeName: host list"),
        ("NodeName=n1", "3:10: NodeName: node n1 is there already"),
        ("NodeName=login", "3:10: NodeName: no node can be called 'login'"),
        ("NodeName=n2 State=FAIL", "3:19: State: FAIL is known to Slurm but not simulated yet"),
        ("NodeName=n2 Gres=gpu:no_consume:2", "3:18: Gres: no_consume is known to Slurm but not"),
        ("NodeName=n2 Gres=gpu:2:a", '3:18: Gres: "gpu:2:a" is no generic resource'),
        ("PartitionName=q Nodes=n7", "3:23: Nodes: no node 'n7'"),
        ("PartitionName=q", "3:15: PartitionName: q has no Nodes"),
        ("PartitionName=p Nodes=n1", "3:15: PartitionName: partition p is there already"),
        ("PartitionName=q Nodes=n1 MaxTime=0", "3:34: MaxTime: expected a time limit above 0"),
        ("PartitionName=q Nodes=n1 Shared=FORCE:4", "3:33: Shared: FORCE:4 is known to Slurm"),
        ("DownNodes=n9", "3:11: DownNodes: no NodeName line names n9"),
        ("NodeSet=s", "3:9: NodeSet: a NodeSet has Nodes or Feature"),
        ("KillWait", '3:1: expected Key=Value, got "KillWait"'),
        ("KillWait=", '3:1: KillWait: nothing stands behind "="'),
        ('Prolog="/a b', "3:1: the quote that is opened here is not closed on the line"),
        ("KillWait=5 \\\n  Epilog=/e MinJobAg=3", '4:13: "MinJobAg" is not a slurm.conf key'),
        ("Include absent.conf", "3:9: Include: cannot read"),
        ("Include slurm.conf", "3:9: Include: slurm.conf includes itself"),
        ("Include=more.conf", '3:1: write Include FILE, without "="'),
        ("BurstBufferType=x/y", "3:17: BurstBufferType: expected burst_buffer/NAME"),
        ("SlurmUser=nobody1", "3:11: SlurmUser: SlurmUser 'nobody1' is no user of this cluster"),
    ],
)
def test_a_mistake_names_its_place_and_what_would_do(
    conf: str, mistake: str, tmp_path: Path
) -> None:
    """File, line and column are those of the site's file."""
    found = mistakes(tmp_path, f"{ONE}{conf}\n")
    assert [each for each in found if each.startswith(f"slurm.conf:{mistake}")], found


def test_mistakes_come_all_at_once_each_in_its_own_file(tmp_path: Path) -> None:
    """That of an included file stands in that file."""
    found = mistakes(
        tmp_path, f"Foo=1\nInclude more.conf\n{ONE}Bar=2\n", "latency: much\n", more_conf="\nBaz=3"
    )
    assert [each.split(" ")[0] for each in found] == [
        "more.conf:2:1:", "site.yaml:2:10:", "slurm.conf:1:1:", "slurm.conf:5:1:",
    ]  # fmt: skip


def test_words_that_are_no_pairs_are_told_once_and_the_rest_of_the_line_is_read(
    tmp_path: Path,
) -> None:
    """Up to the next pair."""
    assert mistakes(tmp_path, f"{ONE}KillWait=5 a b c KillWat=3 =7 d\n") == [
        'slurm.conf:3:12: expected Key=Value, got "a"',
        'slurm.conf:3:18: "KillWat" is not a slurm.conf key; did you mean KillWait?',
        'slurm.conf:3:28: expected Key=Value, got "=7"',
    ]


def test_an_old_file_may_be_latin_1_and_a_binary_is_no_text(tmp_path: Path) -> None:
    """Comments of some decades ago are."""
    path = tmp_path / "slurm.conf"
    path.write_bytes(f"# gr\xf6\xdfer\n{ONE}DownNodes=n1 Reason=L\xfcfter\n".encode("latin-1"))
    assert read_imported(str(path)).nodes[0].reason == "L\xfcfter"
    path.write_bytes(b"\x7fELF\xff\x00")
    with pytest.raises(ScenarioErrors, match="cannot read the file: it is no text"):
        read_imported(str(path))


def test_circles_of_includes_are_refused(tmp_path: Path) -> None:
    """Whatever way round they go."""
    found = mistakes(
        tmp_path, f"{ONE}Include a.conf\n", a_conf="Include b.conf\n", b_conf="Include ./a.conf\n"
    )
    assert [each for each in found if each.startswith("b.conf:1:9: Include: ./a.conf includes")]


def test_the_scenario_goes_before_the_file(tmp_path: Path) -> None:
    """Its keys count, and what it does not say shows through."""
    site = beside(
        tmp_path,
        "KillWait=60 MinJobAge=5\nPreemptType=preempt/qos\nNodeName=n[1-3] CPUs=4 RealMemory=900\n"
        "PartitionName=p Nodes=n[1-2] Default=YES OverSubscribe=FORCE:4 MaxTime=10\n",
        "slurm_conf: {KillWait: 5, PreemptType: preempt/none}\n"
        "nodes: [{name: n2, cpus: 2}, {name: x1}]\n"
        "partitions: [{name: p, over_subscribe: 'NO'}, {name: q, nodes: ALL, default: true}]\n",
    )
    assert (site.slurm_conf.kill_wait_s, site.slurm_conf.min_job_age_s) == (5, 5)
    assert [(each.name, each.cpus, each.memory_mb) for each in site.nodes] == [
        ("n1", 4, 900), ("n2", 2, 900), ("n3", 4, 900), ("x1", 1, 1),
    ]  # fmt: skip
    assert [(each.name, each.default, each.max_time_min) for each in site.partitions[:1]] == [
        ("p", False, 10)
    ]
    assert site.partitions[1].nodes == ("n1", "n2", "n3", "x1")


def test_plugins_may_lack_their_prefix_and_flags_imply_others(tmp_path: Path) -> None:
    """As in Slurm; cons_tres stands in for cons_res, and that is told."""
    site = beside(
        tmp_path,
        "SchedulerType=builtin SelectType=cons_res SelectTypeParameters=CR_CPU\n"
        "PrologFlags=contain,x11\nNodeName=n1\n"
        "PartitionName=p Nodes=n1 DefMemPerNode=UNLIMITED\n",
    )
    conf = site.slurm_conf
    assert (conf.scheduler_type, conf.select_type) == ("sched/builtin", "select/cons_tres")
    assert (conf.prolog_flags, site.partitions[0].def_mem_per_node_mb) == ("Alloc", 0)
    assert "SelectType=cons_res (select/cons_tres stands in for it)" in site.ignored


@pytest.mark.parametrize(
    ("gres", "expected"),
    [
        ("gpu", {"gpu": 1}),
        ("gpu:2080ti:4,mps:400", {"gpu:2080ti": 4, "mps": 400}),
        ("gpu:a100:2(S:0-1),fast:1K", {"gpu:a100": 2, "fast": 1024}),
        ("(null)", {}),
    ],
)
def test_resources_are_written_in_many_ways(
    gres: str, expected: dict[str, int], tmp_path: Path
) -> None:
    """With types that begin with a digit, units, and what scontrol prints behind them."""
    conf = f"NodeName=n1 Gres={gres}\nPartitionName=p Nodes=n1\n"
    assert beside(tmp_path, conf).nodes[0].gres == expected


def test_nodes_that_begin_down_or_drained_take_no_job(tmp_path: Path) -> None:
    """Until somebody resumes them; the others do."""
    site = beside(
        tmp_path,
        "NodeName=n[1-3]\nDownNodes=n1 Reason=fan\nDownNodes=n2 State=DRAIN\n"
        "PartitionName=p Nodes=ALL Default=YES\n",
        "timeline: [{at: 1s, run: sbatch --wrap 'sleep 5'}, {at: 1s, run: sbatch -N2 --wrap true},"
        " {at: 20s, run: scontrol update nodename=n1 state=resume}]",
    )
    rows = World(site).run().rows
    assert [(row.state, row.nodes) for row in rows] == [
        ("COMPLETED", "n3"),
        ("COMPLETED", "n[1,3]"),
    ]


FEATURED = (
    "NodeName=n1 Feature=skylake,CPU_GEN:SKX\n"
    'NodeName=n2 Features="icelake, 10GbE+"\n'
    "PartitionName=p Nodes=ALL Default=YES\n"
)
ASKS = (
    "users: {alice: 1001}\n"
    "timeline:\n"
    "- {at: 0s, as: alice, run: 'sbatch -C \"icelake&10GbE+\" --wrap true'}\n"
    "- {at: 0s, as: alice, run: sbatch -C CPU_GEN:SKX --wrap true}\n"
    "- {at: 0s, as: alice, run: sbatch -C haswell --wrap true, exit: 1}\n"
    "- {at: 0s, as: alice, run: 'sinfo -h -N -o \"%N %f\"', stdout: 'n2 icelake,10GbE+'}\n"
)


def test_features_of_nodes_may_be_asked_for(tmp_path: Path) -> None:
    """Beside a scenario, and in an import, which a scenario may override."""
    result = World(beside(tmp_path, FEATURED, ASKS)).run()
    assert [row.nodes for row in result.rows] == ["n2", "n1"]
    assert result.held
    imported = scenario_text(read_imported(str(tmp_path / "slurm.conf")))
    again = World(read_scenario(imported.partition("users:")[0] + ASKS, file="mine.yaml")).run()
    assert [row.nodes for row in again.rows] == ["n2", "n1"]
    own = beside(tmp_path, FEATURED, "nodes: [{name: n1, features: haswell}]\n")
    assert [node.features for node in own.nodes] == [("haswell",), ("icelake", "10GbE+")]


def test_a_feature_that_nobody_could_ask_for_is_a_mistake(tmp_path: Path) -> None:
    """It holds what an expression is made of."""
    found = mistakes(tmp_path, "NodeName=n1 Feature=fast*2\nPartitionName=p Nodes=n1\n")
    assert found == [
        "slurm.conf:1:21: Feature: 'fast*2' cannot be a feature: & | * ( ) [ ] mean something "
        "to --constraint"
    ]


def test_names_of_newer_releases_are_ignored(tmp_path: Path) -> None:
    """A site may be ahead of the release that is simulated."""
    conf = "hashplugin=hash/k12\nSchedulerParameters=enable_job_state_cache\n" + ONE
    warned = str(beside(tmp_path, conf).warnings[-1])
    assert "HashPlugin (of newer releases)" in warned
    assert "SchedulerParameters=enable_job_state_cache" in warned


def test_words_that_slurm_passes_over_are_told_and_stop_nobody(tmp_path: Path) -> None:
    """Slurm takes any word among SchedulerParameters; a scenario's own must be known."""
    conf = "SchedulerParameters=bf_windwo=60,bf_interval=20,frobnicate\n" + ONE
    site = beside(tmp_path, conf)
    assert site.slurm_conf.scheduler_parameters.bf_interval_us == 20_000_000
    warned = str(site.warnings[-1])
    assert "bf_windwo=60 (no word of Slurm's; did you mean bf_window?)" in warned
    assert "SchedulerParameters=frobnicate (no word of Slurm's)" in warned
    own = "slurm_conf: {SchedulerParameters: frobnicate}\n"
    assert "not a SchedulerParameters option" in mistakes(tmp_path, ONE, own)[0]


def test_a_slurm_user_that_is_no_name_is_told_in_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mistake is one of the file's, not of the scenario that import makes of it."""
    file = tmp_path / "slurm.conf"
    file.write_text("# ours\n SlurmUser=slurm@site\n" + ONE)
    assert main(["import", str(file)]) == WRONG_INPUT
    told = capsys.readouterr().err
    assert told.startswith(f"{file}:2:12: SlurmUser: 'slurm@site' cannot be the name of a user")


def test_ten_thousand_nodes_are_quick(tmp_path: Path) -> None:
    """Also where each node has a line of its own."""
    lines = [f"NodeName=n{n:05} CPUs={64 + n % 2} Gres=gpu:{n % 4 + 1}" for n in range(5000)]
    conf = "\n".join([*lines, "NodeName=r[1-50]c[001-100] CPUs=8", "PartitionName=p Nodes=ALL"])
    path = tmp_path / "slurm.conf"
    path.write_text(conf)
    began = time.process_time()
    text = scenario_text(read_imported(str(path)))
    scenario = read_scenario(text, file="imported.yaml")
    assert len(scenario.nodes) == 10_000
    assert time.process_time() - began < 10


def test_of_what_contradicts_itself_that_counts_which_does_in_slurm(tmp_path: Path) -> None:
    """With a warning: the last of two values, the last default, no DefaultTime above MaxTime."""
    site = beside(
        tmp_path,
        "SlurmctldHost=a\nSlurmctldHost=b\nKillWait=5\nkillwait=7\n"
        "NodeName=n1 CPUs=5 CoresPerSocket=2\n"
        "PartitionName=DEFAULT DefaultTime=60 Nodes=n1\nPartitionName=p Default=YES MaxTime=30\n"
        "PartitionName=q Default=YES\n",
    )
    assert site.slurm_conf.kill_wait_s == 7
    assert site.nodes[0].cpus == 4
    assert [(each.default, each.default_time_min) for each in site.partitions] == [
        (False, 30),
        (True, 60),
    ]
    places = [(each.line, each.path) for each in site.warnings if each.line]
    assert places == [(4, "killwait"), (5, "CPUs"), (6, "DefaultTime"), (8, "Default")]


# The files beside it.


def test_the_files_beside_are_checked_and_told_as_ignored(tmp_path: Path) -> None:
    """Once each, with the reason; the keys of burst_buffer.conf by their values too."""
    site = beside(
        tmp_path,
        ONE,
        burst_buffer_conf="DefaultPool=wlm_pool\nFlags=EnablePersistent,privatedata\n"
        "Granularity=200GiB StageInTimeout=600\nAllowUsers=alice,bob\n",
        cgroup_conf="###\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\n",
        topology_conf="SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Switches=s1 LinkSpeed=2\n",
    )
    assert "\n".join(site.ignored) == (
        "burst_buffer.conf (BurstBufferType names no plugin)\n"
        "cgroup.conf (nothing is confined)\ntopology.conf (all nodes are near)"
    )


@pytest.mark.parametrize(
    ("name", "text", "mistake"),
    [
        ("burst_buffer.conf", "\nPols=a", '2:1: "Pols" is not a burst_buffer.conf key; did you'),
        ("burst_buffer.conf", "Granularity=12Q", "1:13: Granularity: expected a size such as"),
        ("burst_buffer.conf", "Flags=Private", '1:7: Flags: "Private" is none of Flags; did you'),
        ("burst_buffer.conf", "StageInTimeout=1h", "1:16: StageInTimeout: expected a whole number"),
        ("burst_buffer.conf", "AllowUsers=a DenyUsers=b", "1:14: DenyUsers: AllowUsers stands"),
        ("cgroup.conf", "ConstrainRam=yes", '1:1: "ConstrainRam" is not a cgroup.conf key; did'),
        ("gres.conf", "Name=gpu Fil=/dev/x", '1:10: "Fil" is not a gres.conf key; did you mean'),
        ("topology.conf", "Switchname=s Node=n1", '1:14: "Node" is not a topology.conf key; did'),
        ("gres.conf", "Include absent", "1:9: Include: cannot read"),
    ],
)
def test_a_mistake_beside_names_its_place(
    name: str, text: str, mistake: str, tmp_path: Path
) -> None:
    """As in slurm.conf itself."""
    (tmp_path / name).write_text(text)
    assert [each for each in mistakes(tmp_path, ONE) if each.startswith(f"{name}:{mistake}")]


def test_the_burst_buffer_conf_may_be_named_or_be_called_after_its_plugin(tmp_path: Path) -> None:
    """One that is named is read in place of the one that lies there; the scenario goes first."""
    (tmp_path / "burst_buffer_generic.conf").write_text("Bad=1")
    conf = f"BurstBufferType=burst_buffer/generic\n{ONE}"
    over = "burst_buffer_conf: {Granularity: 2}\n"
    assert mistakes(tmp_path, conf) == [
        'burst_buffer_generic.conf:1:1: "Bad" is not a burst_buffer.conf key'
    ]
    (tmp_path / "burst_buffer_generic.conf").write_text("AltPool=a GetSysState=/bin/a\\#b\n")
    site = beside(tmp_path, conf, over)
    both = {"AltPool": "a", "GetSysState": "/bin/a#b", "Granularity": "2"}
    assert site.burst_buffer_conf == {"generic": both}
    (tmp_path / "other.conf").write_text("granularity=1\n")
    site = beside(tmp_path, conf, "burst_buffer_conf_file: other.conf\n")
    assert site.burst_buffer_conf == {"": {"Granularity": "1"}}
    own = "burst_buffer_conf: {generic: {Granularity: 2}}\nburst_buffer_conf_file: other.conf\n"
    assert "is for all plugins: write the keys without" in mistakes(tmp_path, conf, own)[0]
    over += "slurm_conf: {BurstBufferType: none}\n"
    site = beside(tmp_path, conf, f"{over}burst_buffer_conf_file: other.conf\n")
    assert [each.path for each in site.warnings if "nobody reads it" in each.message] == [
        "burst_buffer_conf",
        "burst_buffer_conf_file",
    ]
    assert (
        "burst_buffer_conf_file: cannot read"
        in mistakes(tmp_path, conf, f"{over}burst_buffer_conf_file: absent.conf\n")[0]
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("512", (512, "bytes")),
        ("2b", (2, "bytes")),
        ("2k", (2048, "bytes")),
        ("3KB", (3000, "bytes")),
        ("1GiB", (1 << 30, "bytes")),
        ("1p", (1 << 50, "bytes")),
        ("4N", (4, "nodes")),
        ("4nodes", (4, "nodes")),
    ],
)
def test_sizes_have_the_units_of_slurm(text: str, expected: tuple[int, str]) -> None:
    """By 1024, by 1000 with a B alone behind the letter, or in nodes."""
    assert size(text) == expected


@pytest.mark.parametrize(
    ("gres", "told"),
    [
        ("Name=gpu File=/dev/nvidia[0-3]", []),
        ("Name=gpu Count=2", ["n[1-2] has 2 gpu here, and 4 by slurm.conf"]),
        ("NodeName=n1 Name=gpu Type=a File=/dev/x0\nName=gpu Count=3", ["n2 has 3 gpu here"]),
        ("AutoDetect=nvml\nName=gpu Count=1", []),
        ("AutoDetect=off\nName=gpu", ["n[1-2] has 1 gpu here"]),
    ],
)
def test_nodes_with_fewer_resources_than_they_should_have_are_warned_of(
    gres: str, told: list[str], tmp_path: Path
) -> None:
    """Slurm would drain them."""
    conf = "NodeName=n[1-2] Gres=gpu:a:4\nPartitionName=p Nodes=ALL\n"
    warnings = beside(tmp_path, conf, gres_conf=gres).warnings
    found = [each.message for each in warnings if "Slurm drains" in each.message]
    assert [each.partition(" and ")[0].rstrip(",") for each in found] == [
        each.partition(" and ")[0].rstrip(",") for each in told
    ]


# simctl import


def test_import_writes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """And with a name before the file that says what it is, the same."""
    assert main(["import", str(SITES / "terse.conf")]) == OK
    text = capsys.readouterr().out
    assert main(["import", "slurm.conf", str(SITES / "terse.conf"), "-o", "-"]) == OK
    assert capsys.readouterr().out == text
    assert text.startswith("# The cluster of ")


def test_import_overwrites_nothing_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is there stays as it is."""
    target = tmp_path / "site.yaml"
    words = ["import", str(SITES / "terse.conf"), "-o", str(target)]
    assert main(words) == OK
    assert "13 nodes, 2 partitions" in capsys.readouterr().err
    target.write_text("mine")
    assert main(words) == WRONG_INPUT
    assert target.read_text() == "mine"
    assert "--force overwrites it" in capsys.readouterr().err
    assert main([*words, "--force"]) == OK
    assert load_scenario(target).nodes


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["absent.conf"], "absent.conf: cannot read the file: No such file or directory"),
        (["slurm.conf", "a", "b"], "one file at a time"),
        (["slurm.cnf", "a"], "nothing is known of 'slurm.cnf'"),
        (["."], "cannot read the file: Is a directory"),
    ],
)
def test_import_says_what_is_wrong(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error, and writes nothing."""
    assert main(["import", *words]) == WRONG_INPUT
    out, err = capsys.readouterr()
    assert (out, told in err) == ("", True)


def test_import_comments_on_what_it_left_out(tmp_path: Path) -> None:
    """With the reason; the default holds, and the scenario loads."""
    path = tmp_path / "slurm.conf"
    path.write_text(
        "PreemptType=preempt/qos\nPreemptMode=REQUEUE\nSelectType=select/serial\n"
        "SwitchType=switch/hpe_slingshot\nLicenses=matlab:5\n"
        "NodeName=c[1-9] State=CLOUD\nPartitionName=p Nodes=ALL Shared=YES\n"
    )
    text = scenario_text(read_imported(str(path)))
    comments = " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
    for told in (
        "preempt/qos is known",
        "PreemptMode: needs PreemptType",
        "select/serial is",
        "what jobs get, and what runs beside them, will differ: State=CLOUD of c[1-9] (up from",
        "who starts when, and where, will differ: Licenses",
        "there is no plugin switch/hpe_slingshot here; known: switch/elan, switch/federation, ",
    ):
        assert told in comments
    assert "Licenses" in comments
    scenario = read_scenario(text, file="imported.yaml")
    assert scenario.slurm_conf.preempt_type == "preempt/none"
    assert [node.state for node in scenario.nodes] == ["UNKNOWN"] * 9


# Whatever stands in the file.


def outcome(path: Path) -> Scenario | None:
    """Import a file; return the scenario, which is that of the file itself, or None."""
    try:
        cluster = read_imported(str(path))
    except ScenarioErrors as error:
        told = error.mistakes
    else:
        return written(cluster, path)
    assert told
    assert all(each.file and each.message and "\n" not in str(each) for each in told)
    return None


def written(cluster: ImportedCluster, path: Path) -> Scenario:
    """Return the scenario of a cluster that was imported, which the file itself gives too."""
    text = scenario_text(cluster)
    try:
        scenario = read_scenario(text, file="imported.yaml")
    except ScenarioErrors as error:
        raise AssertionError(f"{error}\n{text}") from error
    World(scenario)
    if not cluster.left_out:
        users = "".join(f"{name}: {uid}, " for name, uid in cluster.users.items())
        beside = f"slurm_conf_file: {path.name}\nusers: {{{users}}}\n"
        direct = read_scenario(beside, file=str(path.parent / "beside.yaml"))
        assert cluster_of(direct) == cluster_of(scenario)
    return scenario


def mutated(text: str, chance: random.Random) -> str:
    """Return a text with a few things changed that people and editors change."""
    for _ in range(chance.randint(1, 4)):
        words = re.findall(r"\s+|[^\s=]+|=", text)
        at = chance.randrange(len(words))
        other = words[chance.randrange(len(words))]
        change = chance.randrange(8)
        if change == 0:
            words[at] = ""
        elif change == 1:
            words[at] = other
        elif change == 2:
            words.insert(
                at, chance.choice(["\\", '"', "#", "=", ",", "[", "]", "\x85", "\x00", "ü"])
            )
        elif change == 3:
            words[at] = words[at][: chance.randrange(len(words[at]) + 1)]
        elif change == 4:
            words[at] = chance.choice(["0", "-1", "UNLIMITED", "99999999999999999999", "n[1-9999]"])
        elif change == 5:
            words[at] = words[at].swapcase()
        elif change == 6:
            words.insert(at, chance.choice(["\n", "\r", "\n\n", " ", "\t", "\u2028", "\x1b"]))
        else:
            words[at] += other
        text = "".join(words) or "x"
    return text


def flat(style: str) -> str:
    """Return the text of a slurm.conf with what it includes, so that all of it may change."""
    text = (SITES / f"{style}.conf").read_text()
    for part in sorted((SITES / "parts").iterdir()) if "parts/" in text else ():
        text = f"{part.read_text()}\n{text}"
    return re.sub("(?im)^include.*$", "", text)


@pytest.fixture(scope="module")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sites, to write in."""
    folder = tmp_path_factory.mktemp("sites")
    shutil.copytree(SITES, folder, dirs_exist_ok=True)
    return folder


@QUICK
@given(style=st.sampled_from(STYLES), seed=st.integers(0, 2**32))
def test_any_change_gives_a_scenario_or_mistakes(style: str, seed: int, site_folder: Path) -> None:
    """And what is a scenario is the same one both ways."""
    text = flat(style)
    path = site_folder / "changed.conf"
    path.write_text(mutated(text, random.Random(seed)), encoding="utf-8", newline="")
    outcome(path)


@QUICK
@given(
    data=st.one_of(
        st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace"))
    )
)
def test_any_bytes_give_mistakes_and_never_a_traceback(data: bytes, site_folder: Path) -> None:
    """Through the command line, as a user meets it."""
    path = site_folder / "bytes.conf"
    path.write_bytes(data)
    assert main(["import", str(path), "-o", str(site_folder / "out.yaml"), "--force"]) in (
        OK, WRONG_INPUT, NOT_HELD,
    )  # fmt: skip
