"""The bundled interconnects at their edges: names, files, missing credentials, the last key."""

import pytest

from simctl.plugin import Buf, SlurmError
from simctl.plugins.switch import qsnet, sni
from simctl.plugins.switch.elan import SwitchElan
from simctl.plugins.switch.federation import SwitchFederation
from tests.cluster import Ran, fault, run
from tests.inside import slurmctld
from tests.test_federation import _ready

ALIKE = """\
nodes: [{name: "a[1-2]", cpus: 4}, {name: "b[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "a[1-2],b[1-2]", default: true}]
users: {alice: 1001}
"""
WIDE = 'timeline: [{at: 0s, as: alice, run: "srun -N4 -n4 sleep 10"}]\n'
MODELS = pytest.mark.parametrize("model", ["guide", "modern"])
SWITCHES = pytest.mark.parametrize("switch", ["elan", "federation"])


def conf(switch: str, more: str = "") -> str:
    """Return the slurm.conf that asks for an interconnect."""
    return f"slurm_conf: {{SwitchType: switch/{switch}{more}}}\n"


def told_by_errno(ran: Ran) -> None:
    """Check that no plugin raised what it does not mean to raise."""
    assert ran.result.complaints == ()


@MODELS
def test_nodes_whose_names_end_alike_have_windows_of_their_own(model: str) -> None:
    """Each node loads the windows of its own tasks, and nobody else's, whatever its lid is."""
    ran = run(conf("federation") + WIDE, cluster=ALIKE, model=model)
    assert ran.all(kind="plugin", rc=-1) == []
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.rows[0].end_us < 11_000_000


@MODELS
def test_two_hosts_of_one_elan_id_cannot_share_a_step(model: str) -> None:
    """Their capability would reach one of them alone: refused, until a file tells them apart."""
    ran = run(conf("elan") + WIDE, cluster=ALIKE, model=model)
    assert ran.one("switch_p_build_jobinfo").errno == str(qsnet.EGETNODEID)
    assert "Error configuring interconnect" in ran.stderr()
    hosts = 'files: {/etc/elanhosts: "eip [0-3] a[1-2],b[1-2]\\n"}\n'
    assert run(conf("elan") + hosts + WIDE, cluster=ALIKE, model=model).job()[0] == "COMPLETED"


@MODELS
@pytest.mark.parametrize("line", ["eip x n1", "eip [3-1] n1", "eip [0- n[1", "\\xff \\xfe \\xfd"])
def test_a_map_of_hosts_that_nobody_understands_names_nobody(line: str, model: str) -> None:
    """EGETNODEID, never an exception out of the plugin."""
    files = f'files: {{/etc/elanhosts: "{line}\\n"}}\n'
    ran = run(conf("elan") + files + WIDE, cluster=ALIKE, model=model)
    assert ran.one("switch_p_build_jobinfo").errno == str(qsnet.EGETNODEID)
    told_by_errno(ran)


@MODELS
@SWITCHES
@pytest.mark.parametrize("kind", ["fail", "raise"])
@pytest.mark.parametrize("call", ["copy_jobinfo", "alloc_jobinfo role=srun", "build_node_info"])
def test_what_was_never_made_is_told_as_bad_magic(
    call: str, kind: str, switch: str, model: str
) -> None:
    """A missing credential or record reaches the next functions as NULL: an errno, no exception."""
    ran = run(conf(switch) + fault(f"switch_p_{call}", kind=kind), model=model)
    told_by_errno(ran)
    assert ran.result.stalled == ()
    if call == "copy_jobinfo" and model == "guide":
        number = sni.EBADMAGIC_FEDJOBINFO if switch == "federation" else qsnet.EBADMAGIC_QSWJOBINFO
        packed = ran.one("switch_p_pack_jobinfo", role="slurmctld")
        assert packed.errno == str(number)
        assert "invalid reply" in ran.stderr()


@MODELS
@pytest.mark.parametrize(
    ("switch", "path", "numbers"),
    [
        ("elan", "/run/qsnet/prg/7", {"job_init": qsnet.ECARD_QSW}),
        (
            "federation",
            "/var/lib/sni/sni0",
            {"build_node_info": sni.ESTATUS, "build_jobinfo": sni.ENOADAPTER},
        ),
    ],
)
def test_a_card_that_tells_nonsense(
    switch: str, path: str, numbers: dict[str, int], model: str
) -> None:
    """The step fails with the plugin's own error."""
    files = f'files: {{{path}: "nonsense\\n"}}\n'
    text = conf(switch) + files + 'timeline: [{at: 0s, as: alice, run: "srun -n1 sleep 1"}]\n'
    ran = run(text, model=model)
    for call, number in numbers.items():
        assert {each.errno for each in ran.all(f"switch_p_{call}")} == {str(number)}
    assert "Error configuring interconnect" in ran.stderr()
    told_by_errno(ran)


@MODELS
@SWITCHES
def test_state_that_cannot_be_written_is_an_errno(switch: str, model: str) -> None:
    """A directory is in the way: libstate_save fails, and slurmctld stops all the same."""
    name = "qsw_state" if switch == "elan" else "fed_state"
    files = f"slurm_conf: {{SwitchType: switch/{switch}}}\nfiles: {{/var/spool/{name}.new/x: ''}}\n"
    ran = run(files + WIDE.replace("-N4 -n4 ", ""), model=model)
    number = qsnet.ESTATE_QSW if switch == "elan" else sni.ESTATEFILE
    assert ran.one("switch_p_libstate_save").errno == str(number)
    told_by_errno(ran)


def test_keys_come_round_and_those_in_use_are_passed_over() -> None:
    """A step that lives on keeps its key, also across a restart; the others are used again."""
    with slurmctld("slurm_conf: {SwitchType: switch/federation}\n") as world:
        plugin = _ready(world, SwitchFederation())
        kept = plugin.switch_p_alloc_jobinfo()
        plugin.switch_p_build_jobinfo(kept, "n1", 1, 0)
        keys = []
        for number in range(0xFFF0):
            info = plugin.switch_p_alloc_jobinfo()
            plugin.switch_p_build_jobinfo(info, "n2", 1, 0)
            plugin.switch_p_job_step_complete(info, "n2")
            keys.append(info.job_key)
            if number == 0xFF00:
                plugin.switch_p_libstate_save("/tmp")
                plugin = SwitchFederation()
                plugin.init()
                plugin.switch_p_libstate_restore("/tmp")
        assert kept.job_key == 1
        assert keys[:3] == [2, 3, 4]
        assert keys[-3:] == [0xFFEF, 2, 3]


def test_a_step_that_finds_every_key_taken_is_refused() -> None:
    """EWINDOW, and no endless search."""
    plugin = SwitchFederation()
    for _ in range(0xFFEF):
        plugin._next_key()
    with pytest.raises(SlurmError) as raised:
        plugin._next_key()
    assert raised.value.errno == sni.EWINDOW


def test_contexts_up_to_the_last_one() -> None:
    """1023 on every node: two steps of 511 and one of one task fit, and then nothing does."""
    with slurmctld("slurm_conf: {SwitchType: switch/elan}\n"):
        plugin = SwitchElan()
        plugin.init()
        infos = [plugin.switch_p_alloc_jobinfo() for _ in range(4)]
        for info, tasks in zip(infos, (511, 511, 1), strict=False):
            plugin.switch_p_build_jobinfo(info, "n1", tasks, 0)
        assert [each.low_context for each in infos[:3]] == [0x400, 0x5FF, 0x7FE]
        assert infos[2].high_context == 0x7FE
        with pytest.raises(SlurmError) as raised:
            plugin.switch_p_build_jobinfo(infos[3], "n1", 1, 0)
        assert raised.value.errno == qsnet.ENOCONTEXT


UNEVEN = """\
nodes: [{name: "a[1-2]", cpus: 4}, {name: "b[3-4]", cpus: 1}]
partitions: [{name: debug, nodes: "a[1-2],b[3-4]", default: true}]
users: {alice: 1001}
files: {w.sh: "#!/bin/sh\\necho $MP_CHILD $SLURMD_NODENAME $MP_WINDOWS\\n"}
"""


@MODELS
def test_a_task_beyond_the_contexts_of_its_node_is_refused(model: str) -> None:
    """Ten tasks on four nodes make three contexts on each, and the biggest nodes have four."""
    text = conf("elan") + 'timeline: [{at: 0s, as: alice, run: "srun -N4 -n10 sleep 10"}]\n'
    ran = run(text, cluster=UNEVEN, model=model)
    refused = ran.all("switch_p_job_attach", rc=-1)
    assert {each.errno for each in refused} == {str(qsnet.EINVAL_SETCAP)}
    assert {(each.node, each.task) for each in refused} == {("a1", 3), ("a2", 7)}
    assert ran.all("switch_p_job_postfini", rc=-1) == []
    for host in ran.world.hosts:
        assert ran.world.disk.view(host, 0).listdir("/run/qsnet/prg") == []


@MODELS
def test_no_task_is_told_windows_of_another_node(model: str) -> None:
    """Where the table has it elsewhere it is told none: what has that number here is another's."""
    text = conf("federation") + 'timeline: [{at: 0s, as: alice, run: "srun -N4 -n10 ./w.sh"}]\n'
    ran = run(text, cluster=UNEVEN, model=model)
    lines = sorted(line.split() for line in ran.result.commands[0].stdout.splitlines())
    assert [" ".join(line) for line in lines] == [
        *(f"{rank} a1 sni0:{rank},sni1:{rank}" for rank in range(3)),
        "3 a1",
        "4 a2 sni0:1,sni1:1",
        "5 a2 sni0:2,sni1:2",
        *("6 a2", "7 a2", "8 b3"),
        "9 b4 sni0:1,sni1:1",
    ]
    assert len(ran.all("plugin_log", daemon="task")) == 4
    for host in ran.world.hosts:
        view = ran.world.disk.view(host, 0)
        assert {view.read(f"/var/lib/sni/{each}") for each in view.listdir("/var/lib/sni")} == {b""}


@MODELS
@pytest.mark.parametrize(
    ("switch", "where", "tasks", "good"),
    [
        *(("elan", "a1", 512, True), ("elan", "a[1-2]", 513, False)),
        ("federation", "a1", 512, True),
    ],
)
def test_the_largest_step(switch: str, where: str, tasks: int, model: str, *, good: bool) -> None:
    """A capability holds 512 tasks, an adapter 512 windows: one more is refused, with an errno.

    slurmctld itself refuses more than 512 tasks on a node: no step asks an adapter for more.
    """
    cluster = UNEVEN.replace("cpus: 4", "cpus: 600")
    line = f"srun -w {where} -n{tasks} sleep 5"
    text = conf(switch) + f'timeline: [{{at: 0s, as: alice, run: "{line}"}}]\n'
    ran = run(text, cluster=cluster, model=model)
    assert ran.job()[0] == ("COMPLETED" if good else "FAILED")
    built = ran.one("switch_p_build_jobinfo")
    assert (built.rc == 0) is good
    assert good or built.errno == str(qsnet.EBADTASKCOUNT_QSW)


def test_a_step_that_ended_before_its_node_registered_takes_nothing() -> None:
    """Its credential was read after a restart; its windows are free by the time they are known."""
    with slurmctld("slurm_conf: {SwitchType: switch/federation}\n") as world:
        before = _ready(world, SwitchFederation())
        info = before.switch_p_alloc_jobinfo()
        before.switch_p_build_jobinfo(info, "n1", 2, 0)
        buffer = Buf()
        before.switch_p_pack_jobinfo(info, buffer)
        after = SwitchFederation()
        after.switch_p_libstate_restore("/tmp")
        read = after.switch_p_alloc_jobinfo()
        after.switch_p_unpack_jobinfo(read, Buf(buffer.data()))
        after.switch_p_job_step_complete(read, "n1")
        again = _ready(world, after).switch_p_alloc_jobinfo()
        after.switch_p_build_jobinfo(again, "n1", 1, 0)
        assert again.tables[0].entries[0].window_id == 0


@MODELS
def test_a_record_that_was_not_read_is_not_printed(model: str) -> None:
    """DebugFlags=Switch prints after unpack alone; the record is released all the same."""
    text = conf("federation", ", DebugFlags: Switch")
    ran = run(text + fault("switch_p_unpack_node_info", times=1), model=model)
    assert len(ran.all("switch_p_unpack_node_info")) == 3
    assert len(ran.all("switch_p_sprintf_node_info")) == 2
    assert len(ran.all("switch_p_free_node_info", daemon="slurmctld")) == 3
