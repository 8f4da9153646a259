"""switch/federation: who gets which windows, what the adapters see, what survives."""

import random
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.plugin import Buf
from simctl.plugins.switch import sni
from simctl.plugins.switch.fed_records import Adapter, Entry, FedJobInfo, FedNodeInfo, Table, Window
from simctl.plugins.switch.federation import SwitchFederation
from tests.cluster import run
from tests.inside import failure, slurmctld, slurmd

FED = "slurm_conf: {SwitchType: switch/federation}\n"
FEW = "slurm_conf: {SwitchType: switch/federation, SwitchParameters: windows=4}\n"
APP = """\
files:
  app.sh: |
    #!/bin/sh
    echo "$MP_CHILD/$MP_PROCS $MP_PARTITION $MP_WINDOWS"
"""


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_tasks_learn_their_windows(model: str) -> None:
    """One on each adapter; tasks of another node have that node's."""
    text = FED + APP + 'timeline: [{at: 0s, as: alice, run: "srun -N2 -n3 ./app.sh"}]\n'
    ran = run(text, model=model)
    assert sorted(ran.result.commands[0].stdout.splitlines()) == [
        "0/3 1 sni0:0,sni1:0",
        "1/3 1 sni0:1,sni1:1",
        "2/3 1 sni0:0,sni1:0",
    ]
    assert ran.all(kind="plugin", rc=-1) == []


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_step_without_windows_is_not_created_and_a_later_one_is(model: str) -> None:
    """Two windows: what the failed step had taken is there again at once."""
    text = FEW.replace("=4", "=2") + (
        'files: {b.sh: "#!/bin/sh\\nsrun -n1 sleep 20 &\\nsleep 5\\nsrun -n2 sleep 1\\n'
        "echo second $?\\nsrun -n1 true\\necho third $?\\nwait\\nsrun -n2 true\\n"
        'echo fourth $?\\n"}\n'
        "timeline: [{at: 0s, as: alice, run: sbatch -N1 -n3 b.sh}]\n"
    )
    ran = run(text, model=model)
    output = ran.world.disk.read("slurm-1.out", "/home/alice")
    assert output is not None
    assert "second 1" in output
    assert "third 0" in output
    assert "fourth 0" in output
    assert ran.one("switch_p_build_jobinfo", rc=-1).errno == str(sni.EWINDOW)
    assert ran.one("switch_p_get_errno", daemon="slurmctld").rc == sni.EWINDOW


def test_adapters_are_those_of_the_nodes_file() -> None:
    """/etc/federation.conf names them, on every host."""
    conf = 'files: {/etc/federation.conf: "AdapterName=sni3 # one\\n"}\n'
    text = FED + conf + "timeline: [{at: 0s, as: alice, run: srun true}]\n"
    ran = run(text)
    assert ran.world.disk.view("n1", 0).listdir("/var/lib/sni") == ["sni3"]


def test_another_driver_stops_slurmd() -> None:
    """EVERSION in node_init is fatal."""
    text = FED + 'files: {/etc/federation.conf: "DriverVersion=99\\n"}\ntimeline: []\n'
    ran = run(text)
    assert {each.errno for each in ran.all("switch_p_node_init")} == {str(sni.EVERSION)}
    assert ran.all("MESSAGE_NODE_REGISTRATION_STATUS") == []


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("model", ["guide", "modern"])
def test_windows_outlive_a_crash_until_a_clean_start(model: str, clean: bool) -> None:
    """A window that is loaded still is waited for, and fails the launch; a clean start frees it."""
    text = (
        "slurm_conf: {SwitchType: switch/federation, ReturnToService: 2}\n"
        "timeline:\n"
        '  - {at: 0s, as: alice, run: "srun -w n2 sleep 600"}\n'
        "  - {at: 30s, fault: {crash: n2}}\n"
        f"  - {{at: 20m, fault: {{start: n2, clean: {str(clean).lower()}}}}}\n"
        '  - {at: 30m, as: alice, run: "srun -w n2 true"}\n'
    )
    ran = run(text, model=model)
    assert len(ran.all("switch_p_clear_node_state", node="n2", rc=0)) == clean
    again = ran.one("switch_p_job_init", job=2)
    if clean:
        assert again.rc == 0
        cleared = ran.first("switch_p_clear_node_state", node="n2")
        inits = [each.seq for each in ran.all("switch_p_node_init", node="n2")]
        assert inits[-1] < cleared < ran.last("MESSAGE_NODE_REGISTRATION_STATUS", node="n2")
    else:
        assert (again.rc, again.errno) == (-1, str(sni.ESTATUS))
        assert again.time_us - (again.t0_us or 0) == 15_000_000
        assert ran.all("switch_p_job_attach", job=2) == []
        assert len(ran.all("switch_p_job_postfini", job=2)) == 1


def test_a_failing_clear_node_state_stops_slurmd() -> None:
    """As the guide's table has it: fatal, and the node never registers again."""
    text = (
        FED + "timeline:\n"
        '  - {at: 0s, fault: {fail: "switch_p_clear_node_state"}}\n'
        "  - {at: 1s, fault: {crash: n2}}\n"
        "  - {at: 20m, fault: {start: n2, clean: true}}\n"
        '  - {at: 21m, as: alice, run: "srun -w n1 true"}\n'
    )
    ran = run(text)
    assert ran.one("switch_p_clear_node_state").rc == -1
    assert len(ran.all("fatal", node="n2")) == 1
    assert len(ran.all("MESSAGE_NODE_REGISTRATION_STATUS", phase="send", node="n2")) == 1


def test_data_of_a_credential_by_key() -> None:
    """0 to 4; everything else is EINVAL."""
    with slurmctld(FED) as world:
        plugin = _ready(world, SwitchFederation())
        info = plugin.switch_p_alloc_jobinfo()
        plugin.switch_p_build_jobinfo(info, "n[1-2]", 3, 1)
        assert plugin.switch_p_get_jobinfo(info, 1) == 2
        assert plugin.switch_p_get_data_jobinfo(info, 2) == 1
        tables = plugin.switch_p_get_jobinfo(info, 0)
        assert [row["task_id"] for row in tables[0]["entries"]] == [0, 1, 2]
        lids = [row["lid"] for row in tables[0]["entries"]]
        assert lids[0] == lids[2] != lids[1]
        assert failure(plugin.switch_p_get_jobinfo, info, 5) == 22
        text = plugin.switch_p_sprint_jobinfo(info, 30)
        assert text.startswith("Job key: 1 (slurm")
        assert len(text) == 29


def test_a_node_that_has_not_told_has_no_windows() -> None:
    """EHOSTNAME, and nothing is taken."""
    with slurmctld(FED):
        plugin = SwitchFederation()
        plugin.init()
        info = plugin.switch_p_alloc_jobinfo()
        assert failure(plugin.switch_p_build_jobinfo, info, "n9", 1, 0) == sni.EHOSTNAME
        plugin.switch_p_job_step_complete(info, "n9")


def test_windows_that_are_loaded_when_a_node_registers_first_are_given_out() -> None:
    """They count as free: what loaded them is over, or its credential takes them again."""
    with slurmctld(FEW):
        plugin = SwitchFederation()
        plugin.init()
        windows = [Window(id=number, status=sni.LOADED, key=7) for number in range(4)]
        told = FedNodeInfo(name="n1", adapters=[Adapter(name="sni0", lid=1, windows=windows)])
        buffer = Buf()
        plugin.switch_p_pack_node_info(told, buffer)
        record = plugin.switch_p_alloc_node_info()
        plugin.switch_p_unpack_node_info(record, Buf(buffer.data()))
        info = plugin.switch_p_alloc_jobinfo()
        plugin.switch_p_build_jobinfo(info, "n1", 4, 0)
        assert [row.window_id for row in info.tables[0].entries] == [0, 1, 2, 3]
        # The record itself shows what the node told.
        assert {each.key for each in record.adapters[0].windows} == {7}


def _ready(world: Any, plugin: SwitchFederation) -> SwitchFederation:
    """Let slurmctld's plugin know all four nodes, as registrations tell."""
    plugin.init()
    for index in range(4):
        with slurmd(world, index):
            own = SwitchFederation()
            own.init()
            record = own.switch_p_alloc_node_info()
            own.switch_p_build_node_info(record)
            buffer = Buf()
            own.switch_p_pack_node_info(record, buffer)
        plugin.switch_p_unpack_node_info(plugin.switch_p_alloc_node_info(), Buf(buffer.data()))
    return plugin


DEEDS = st.one_of(
    st.tuples(
        st.just("build"),
        st.sets(st.integers(1, 4), min_size=1).map(sorted),
        st.integers(1, 12),
        st.integers(0, 1),
    ),
    st.tuples(st.just("complete"), st.integers(0, 20)),
    st.tuples(st.just("restart")),
)


@given(st.lists(DEEDS, max_size=40))
@settings(max_examples=60, deadline=None)
def test_no_window_is_ever_given_twice_and_all_come_back(deeds: list[tuple[Any, ...]]) -> None:
    """Steps are built, fail, end, and slurmctld restarts in between, in any order."""
    with slurmctld(FEW) as world:
        plugin = _ready(world, SwitchFederation())
        live: list[tuple[FedJobInfo, str]] = []
        for deed in deeds:
            if deed[0] == "build":
                nodes = ",".join(f"n{number}" for number in deed[1])
                info = plugin.switch_p_alloc_jobinfo()
                number = failure(plugin.switch_p_build_jobinfo, info, nodes, deed[2], deed[3])
                if number:
                    assert number == sni.EWINDOW
                    plugin.switch_p_job_step_complete(info, nodes)
                    continue
                for other, _ in live:
                    assert not _windows(info) & _windows(other)
                assert len(_windows(info)) == 2 * deed[2]
                live.append((info, nodes))
            elif deed[0] == "complete" and live:
                info, nodes = live.pop(deed[1] % len(live))
                plugin.switch_p_job_step_complete(info, nodes)
            elif deed[0] == "restart":
                plugin.switch_p_libstate_save("/tmp")
                plugin = SwitchFederation()
                plugin.init()
                plugin.switch_p_libstate_restore("/tmp")
        for info, nodes in live:
            plugin.switch_p_job_step_complete(info, nodes)
        whole = plugin.switch_p_alloc_jobinfo()
        plugin.switch_p_build_jobinfo(whole, "n[1-4]", 16, 0)
        assert len(_windows(whole)) == 32


@pytest.mark.parametrize("registered", [False, True])
def test_the_key_of_a_step_that_lives_on_is_given_to_nobody(registered: bool) -> None:
    """Slurmctld restarts without libstate: it knows the key by the step's credential."""
    with slurmctld(FEW) as world:
        before = _ready(world, SwitchFederation())
        live = before.switch_p_alloc_jobinfo()
        before.switch_p_build_jobinfo(live, "n1", 1, 0)
        buffer = Buf()
        before.switch_p_pack_jobinfo(live, buffer)
        plugin = SwitchFederation()
        if registered:
            plugin = _ready(world, plugin)
        plugin.switch_p_libstate_restore("/tmp")
        plugin.switch_p_unpack_jobinfo(plugin.switch_p_alloc_jobinfo(), Buf(buffer.data()))
        plugin = _ready(world, plugin)
        keys = {live.job_key}
        for nodes in ("n2", "n3", "n4"):
            info = plugin.switch_p_alloc_jobinfo()
            plugin.switch_p_build_jobinfo(info, nodes, 1, 0)
            keys.add(info.job_key)
        assert len(keys) == 4


def _windows(info: FedJobInfo) -> set[tuple[int, int]]:
    return {(row.lid, row.window_id) for table in info.tables for row in table.entries}


U16 = st.integers(0, 2**16 - 1)
U32 = st.integers(0, 2**32 - 1)
NAMES = st.text(st.characters(codec="ascii", min_codepoint=33), min_size=1, max_size=8)
TABLES = st.builds(
    Table,
    adapter=NAMES,
    entries=st.lists(st.builds(Entry, task_id=U32, lid=U16, window_id=U32), max_size=4).map(tuple),
)
JOBS = st.builds(
    FedJobInfo,
    job_key=U16,
    job_desc=NAMES,
    window_memory=U32,
    bulk_xfer=st.booleans(),
    tables=st.lists(TABLES, max_size=3),
)
WINDOWS = st.builds(Window, id=U32, status=U32, key=U16)
NODES = st.builds(
    FedNodeInfo,
    name=NAMES,
    adapters=st.lists(
        st.builds(Adapter, name=NAMES, lid=U16, windows=st.lists(WINDOWS, max_size=4)), max_size=3
    ),
)


@given(JOBS, NODES, st.binary(max_size=8))
def test_what_is_packed_comes_back(info: FedJobInfo, node: FedNodeInfo, after: bytes) -> None:
    """And what follows it in the buffer is left for others."""
    plugin = SwitchFederation()
    buffer = Buf()
    assert plugin.switch_p_pack_jobinfo(info, buffer) == buffer.size
    size = buffer.size
    assert plugin.switch_p_pack_node_info(node, buffer) == buffer.size - size
    read = Buf(buffer.data() + after)
    found = plugin.switch_p_alloc_jobinfo()
    plugin.switch_p_unpack_jobinfo(found, read)
    assert found == info == plugin.switch_p_copy_jobinfo(info)
    told = plugin.switch_p_alloc_node_info()
    plugin.switch_p_unpack_node_info(told, read)
    assert told == node
    assert read.remaining == len(after)


@given(JOBS, NODES, st.data())
def test_whatever_the_bytes_unpack_fails_by_errno_alone(
    info: FedJobInfo, node: FedNodeInfo, data: st.DataObject
) -> None:
    """The record to be filled in, the buffer, and slurmctld's table stay as they were."""
    plugin = SwitchFederation()
    for pack, unpack, empty in (
        (
            partial(plugin.switch_p_pack_jobinfo, info),
            plugin.switch_p_unpack_jobinfo,
            plugin.switch_p_alloc_jobinfo,
        ),
        (
            partial(plugin.switch_p_pack_node_info, node),
            plugin.switch_p_unpack_node_info,
            plugin.switch_p_alloc_node_info,
        ),
    ):
        buffer = Buf()
        pack(buffer)
        good = buffer.data()
        flipped = bytearray(good)
        flipped[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
        cut = good[: data.draw(st.integers(0, len(good) - 1))]
        for hostile in (cut, bytes(flipped), data.draw(st.binary(max_size=60))):
            kept: Any = empty()
            read = Buf(hostile)
            number = failure(unpack, kept, read)
            if number:
                assert 3000 <= number <= 3099
                assert plugin.switch_p_strerror(number)
                assert kept == empty()
                assert read.offset == 0


def test_a_wrong_record_leaves_its_neighbour_alone() -> None:
    """What follows a foreign record in a buffer is where it was."""
    plugin = SwitchFederation()
    buffer = Buf()
    plugin.switch_p_pack_node_info(FedNodeInfo(name="n1"), buffer)
    plugin.switch_p_pack_jobinfo(FedJobInfo(job_key=7), buffer)
    number = failure(plugin.switch_p_unpack_jobinfo, plugin.switch_p_alloc_jobinfo(), buffer)
    assert number == sni.EBADMAGIC_FEDJOBINFO
    plugin.switch_p_unpack_node_info(plugin.switch_p_alloc_node_info(), buffer)
    found = plugin.switch_p_alloc_jobinfo()
    plugin.switch_p_unpack_jobinfo(found, buffer)
    assert found.job_key == 7


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("seed", range(4))
def test_random_runs_leave_no_window_loaded(seed: int, model: str) -> None:
    """Jobs that end, fail and are cancelled: adapters and books are empty at the end."""
    chance = random.Random(seed)
    lines = []
    for number in range(1, 9):
        command = (
            f"srun -N{chance.randint(1, 2)} -n{chance.randint(2, 4)} sleep {chance.randint(1, 90)}"
        )
        lines.append(f"  - {{at: {chance.randint(0, 60)}s, as: alice, run: {command}}}\n")
        if chance.random() < 0.4:
            lines.append(f"  - {{at: {chance.randint(20, 90)}s, run: scancel {number}}}\n")
        if chance.random() < 0.3:
            call = chance.choice(["init", "attach", "fini"])
            lines.append(f'  - {{at: 0s, fault: {{fail: "switch_p_job_{call} job={number}"}}}}\n')
    ran = run(FEW + "timeline:\n" + "".join(lines), model=model, schedule="random", seed=seed)
    for node in ("n1", "n2"):
        view = ran.world.disk.view(node, 0)
        for adapter in view.listdir("/var/lib/sni") if view.is_dir("/var/lib/sni") else ():
            assert view.read(f"/var/lib/sni/{adapter}") == b""
    path = f"{ran.world.scenario.slurm_conf.state_save_location}/fed_state"
    state = ran.world.disk.view("slurmctld", 0).read(path)
    assert state.count((10).to_bytes(4, "big") + b"\0") == 0
