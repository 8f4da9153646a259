"""sinfo, held against recordings of Slurm's: tables, formats, filters, order, errors."""

from functools import reduce
from operator import or_
from typing import Any, cast

import pytest

from simctl.commands.sinfo.rows import NodeRow
from simctl.wire.info import NodeInfo
from simctl.wire.states import NodeBase, NodeFlag
from tests.cluster import run
from tests.printed import CLUSTER, assert_as_printed, blurred, read
from tests.queue_of_recordings import typed

MIX = ("E", "N_l", "O", "R", "R_l", "default", "l", "o_C", "s", "t_alloc", "t_drain")
IDLE = (
    *("O_bad", "O_long", "R", "Rl", "badopt", "d", "default", "e", "h", "l", "n_n1"),
    *("n_nope", "noheader_states", "o_9", "o_all", "o_bad", "o_common", "o_cpus", "p_nope"),
    *("p_short", "r", "s", "sumN", "summarize_F", "t_bad", "t_idle", "toil"),
)
BLUR = {
    # Not simulated: features, the load of a node, its free memory.
    r" *(?:fast,ib|fast|\(null\)) *": " ? ",
    r"(?:\b\d{5}|\b\d\.\d\d|\bN/A) *": "LOAD ",
}
ONE_HOST = {**BLUR, r"\b(?:vm|n[1-4]|127\.0\.0\.1)\b": "HOST"}
"""Where hosts are shown: all nodes of the recordings were on one."""


@pytest.mark.parametrize("name", MIX)
def test_shows_nodes_at_work_as_slurm_does(name: str) -> None:
    """Some of the cpus are taken, and a node is drained."""
    assert_as_printed(f"sinfo_mix/{name}", typed("sinfo_mix", *MIX)[name], BLUR)


@pytest.mark.parametrize("name", IDLE)
def test_shows_idle_nodes_as_slurm_does(name: str) -> None:
    """All formats, groupings and errors, on a cluster that has nothing to do."""
    blur = ONE_HOST if name in ("O_long", "o_all", "o_cpus") else BLUR
    assert_as_printed(f"sinfo_idle/{name}", typed("sinfo_idle", *IDLE)[name], blur)


@pytest.mark.parametrize("name", ["N", "N_l"])
def test_a_node_has_a_line_for_each_of_its_partitions(name: str) -> None:
    """The order of the partitions is chance in Slurm, which asks about all of them at once."""
    recorded = read(f"sinfo_idle/{name}").stdout
    printed = typed("sinfo_idle", "N", "N_l")[name].stdout
    assert sorted(blurred(printed, BLUR).splitlines()) == sorted(
        blurred(recorded, BLUR).splitlines()
    )


TROUBLE = """\
timeline:
  - {at: 1s, as: alice, run: "sbatch -N1 --exclusive -w n1 --wrap 'sleep 60'"}
  - {at: 1s, as: alice, run: "sbatch -w n2 --wrap 'sleep 600'"}
  - {at: 2s, as: root, run: "scontrol update nodename=n2 state=drain reason='a long, long reason'"}
  - {at: 2s, fault: {crash: n4}}
"""


def printed(*commands: tuple[str, str], before: str = TROUBLE, cluster: str = CLUSTER) -> list[str]:
    """Return what commands print, which are typed each at a moment of its own."""
    entries = "".join(f'  - {{at: {at}, as: alice, run: "{line}"}}\n' for at, line in commands)
    results = run(before + entries, cluster=cluster, model="modern").result.commands
    return [each.stdout for each in results[-len(commands) :]]


def test_states_of_nodes() -> None:
    """In short and in full; a node that does not answer has a star."""
    early, late, over = printed(
        ("3s", "sinfo -h -N -p debug -o '%N %t %T %C %A'"),
        ("100s", "sinfo -h -N -p debug -o '%N %t %T %C %F'"),
        ("700s", "sinfo -h -N -p debug -O nodelist:,statelong:.9,statecomplete:.22"),
    )
    assert early.splitlines() == [
        "n1 alloc allocated 4/0/0/4 1/0",
        "n2 drng draining 1/0/3/4 0/0",
        "n3 idle idle 0/4/0/4 0/1",
        "n4 idle idle 0/4/0/4 0/1",
    ]
    assert late.splitlines() == [
        "n1 idle idle 0/4/0/4 0/1/0/1",
        "n2 drng draining 1/0/3/4 0/0/1/1",
        "n3 idle idle 0/4/0/4 0/1/0/1",
        "n4 down* down* 0/0/4/4 0/0/1/1",
    ]
    assert over.splitlines() == [
        "n1     idle                  idle",
        "n2  drained            idle+drain",
        "n3     idle                  idle",
        "n4    down*   down+not_responding",
    ]


def test_a_drained_node_is_draining_until_its_epilogs_are_over() -> None:
    """It has no cpus at work by then; and a default time that is the limit is none."""
    before = """\
files: {/etc/epilog: "#!/bin/sh\\nsleep 30\\n"}
slurm_conf: {Epilog: /etc/epilog}
timeline:
  - {at: 1s, as: alice, run: "sbatch -w n1 --exclusive --wrap 'sleep 10'"}
  - {at: 15s, as: root, run: "scontrol update nodename=n1 state=drain reason=epilog"}
"""
    cluster = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions:
  - {name: debug, nodes: ALL, default: true, max_time: "1:00:00", default_time: "10:00"}
  - {name: full, nodes: ALL, max_time: "1:00:00", default_time: "1:00:00"}
users: {alice: 2001}
"""
    during, after, times = printed(
        ("20s", "sinfo -h -N -n n1 -p debug -o %t"),
        ("60s", "sinfo -h -N -n n1 -p debug -o %t"),
        ("70s", "sinfo -h -s -o '%R %l %L'"),
        before=before,
        cluster=cluster,
    )
    assert (during, after) == ("drng\n", "drain\n")
    assert sorted(times.splitlines()) == ["debug 1:00:00 10:00", "full 1:00:00 n/a"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("-p debug", ["down* n4", "drng n2", "idle n[1,3]"]),
        ("-d -p debug,short", ["down* n4", "n/a "]),
        ("-r -p debug", ["drng n2", "idle n[1,3]"]),
        ("-t drng,no_respond -p long,debug", ["down* n4", "drng n2", "down* n4"]),
        ("-t drained -p debug", ["n/a "]),
        ("-t DRAIN -p debug", ["drng n2"]),
        ("-t mix&drain,i -p debug", ["drng n2", "idle n[1,3]"]),
        ("-n n2,n3 -p debug -S t", ["idle n3", "drng n2"]),
        ("--node=n9 -p debug", ["n/a "]),
    ],
)
def test_chooses_nodes(options: str, wanted: list[str]) -> None:
    """A partition without any has a line of its own."""
    found = printed(("100s", f"sinfo -h -o '%t %N%P' {options}"))[0].splitlines()
    for part in ("debug*", "short", "long"):
        found = [line.removesuffix(part) for line in found]
    assert found == wanted


def test_reasons_join_over_partitions() -> None:
    """Why a node takes no job, who said so, and when."""
    assert blurred(printed(("100s", "sinfo -R"))[0], {}).splitlines() == [
        "REASON               USER      TIMESTAMP           NODELIST",
        "Not responding       slurm     TIME n4",
        "a long, long reason  root      TIME n2",
    ]


def test_sizes_have_a_plus_where_they_differ() -> None:
    """Unless --exact tells them apart; the star of the default partition always has room."""
    cluster = """\
nodes:
  - {name: "a[1-2]", cpus: 4, memory_mb: 1000}
  - {name: b1, cpus: 8, memory_mb: 3000}
partitions: [{name: everything, nodes: "a[1-2],b1", default: true}]
users: {alice: 1001}
"""
    together, apart, narrow = printed(
        ("1s", "sinfo -h -o '%c %m %z %D %N'"),
        ("1s", "sinfo -h -e -o '%c %m %D %N'"),
        ("1s", "sinfo -h -o '%5P %.5R'"),
        before="timeline:\n",
        cluster=cluster,
    )
    assert together == "4+ 1000+ 1:4+:1 3 a[1-2],b1\n"
    assert apart == "4 1000 2 a[1-2]\n8 3000 1 b1\n"
    assert narrow == "ever* every\n"


def test_reservations() -> None:
    """As -T shows them, and as states of their nodes."""
    before = """\
timeline:
  - at: 1s
    as: root
    run: "scontrol create reservation reservationname=r1 starttime=now+60 duration=10 users=bob \
nodes=n3"
"""
    none, one, active, state = printed(
        ("0s", "sinfo -T"),
        ("52s", "sinfo -T"),
        ("70s", "sinfo -h -T"),
        ("71s", "sinfo -h -t resv -p long -o '%t %T %N'"),
        before=before,
    )
    assert none == "No reservations in the system\n"
    recorded = read("scontrol_update/res_sinfo").stdout
    assert blurred(one, {}) == blurred(recorded, {})
    assert active.split()[1] == "ACTIVE"
    assert state == "resv reserved n3\n"


def test_variables_stand_in_for_options() -> None:
    """And options count for more."""
    script = (
        "SINFO_FORMAT='%N %t' sinfo -p long; SINFO_FORMAT=%D sinfo -h -o %N; "
        "SINFO_PARTITION=short SINFO_SORT=N sinfo -h -o %P; SINFO_FORMAT=%N sinfo -h -O nodes:2"
    )
    cluster = CLUSTER + f'files: {{j.sh: "#!/bin/sh\\n{script}\\n"}}\n'
    text = 'timeline: [{at: 1s, as: alice, run: "sbatch -n4 -w n1 -o out j.sh"}]\n'
    ran = run(text, cluster=cluster, model="modern")
    found = ran.world.site.disk.read("out", "/home/alice", host="n1")
    assert found == "NODELIST STATE\nn[3-4] idle\nn[1-4]\nshort\n4 \n"


def test_says_which_slurm_it_is() -> None:
    """As squeue does."""
    commands = (("1s", "sinfo -V"), ("1s", "squeue --version"))
    assert printed(*commands, before="timeline:\n") == ["slurm-wlm 22.05.8\n"] * 2


def test_what_is_not_built_is_refused_by_name() -> None:
    """With a clear error."""
    text = 'timeline: [{at: 1s, as: alice, run: "sinfo -p debug --yaml"}]\n'
    result = run(text, cluster=CLUSTER, model="modern").result.commands[0]
    assert (result.exit, result.stdout) == (1, "")
    assert result.stderr == (
        "sinfo: error: --yaml is an option of Slurm's that simctl does not simulate yet\n"
    )


def test_words_that_are_no_options_are_not_looked_at() -> None:
    """As in Slurm, before and behind options."""
    plain, more = printed(("3s", "sinfo -h -o %P -p debug"), ("3s", "sinfo x -h -o %P -p debug y"))
    assert plain == more != ""


@pytest.mark.parametrize(
    ("nodes", "counts", "cpus"),
    [
        ([], (0, 0, 0, 0), (0, 0, 0, 0)),
        (["IDLE 0"], (0, 1, 0, 1), (0, 8, 0, 8)),
        (["ALLOCATED 8", "ALLOCATED 3"], (2, 0, 0, 2), (11, 5, 0, 16)),
        (["IDLE COMPLETING 0"], (1, 0, 0, 1), (0, 8, 0, 8)),
        (["IDLE DRAIN 0"], (0, 0, 1, 1), (0, 0, 8, 8)),
        (["ALLOCATED DRAIN 3"], (0, 0, 1, 1), (3, 0, 5, 8)),
        (["ALLOCATED DRAIN COMPLETING 8"], (0, 0, 1, 1), (8, 0, 0, 8)),
        (["DOWN 0"], (0, 0, 1, 1), (0, 0, 8, 8)),
        (["IDLE 0", "ALLOCATED 1", "DOWN 0", "IDLE DRAIN 0"], (1, 1, 2, 4), (1, 15, 16, 32)),
    ],
)
def test_nodes_and_cpus_are_counted_by_what_they_can_do(
    nodes: list[str], counts: tuple[int, ...], cpus: tuple[int, ...]
) -> None:
    """Allocated, idle, other, and all; what runs on a node that takes no more jobs is allocated."""
    infos = []
    for base, *flags, allocated in map(str.split, nodes):
        flag = reduce(or_, (NodeFlag[name] for name in flags), NodeFlag(0))
        infos.append(
            NodeInfo(
                name="n",
                base=NodeBase[base],
                flags=flag,
                cpus=8,
                cpus_allocated=int(allocated),
                memory_mb=1,
                memory_allocated_mb=0,
            )
        )
    row = NodeRow(part=cast(Any, None), nodes=tuple(infos))
    assert (row.counts, row.cpu_counts) == (counts, cpus)
