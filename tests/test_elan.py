"""switch/elan: what its steps get, what the card of a node sees, what survives slurmctld."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.plugin import Buf, SlurmError
from simctl.plugins.switch import qsnet
from simctl.plugins.switch.elan import SwitchElan
from simctl.plugins.switch.qsw_records import ElanJobInfo
from tests.cluster import Ran, run
from tests.inside import failure, slurmctld

ELAN = "slurm_conf: {SwitchType: switch/elan}\n"
FEW = "slurm_conf: {SwitchType: switch/elan, SwitchParameters: contexts=4}\n"
APP = """\
files:
  app.sh: |
    #!/bin/sh
    echo "$RMS_RANK $RMS_PROCID $RMS_NODEID $RMS_NNODES $RMS_NPROCS $ELAN_STATKEY"
"""


def state_of(ran: Ran) -> tuple[int, int]:
    """Return the last program number and how many steps are live, as they were saved."""
    path = f"{ran.world.scenario.slurm_conf.state_save_location}/qsw_state"
    buffer = Buf(ran.world.disk.view("slurmctld", 0).read(path))
    assert buffer.unpack32() == 0xF00FF00F
    buffer.unpack32()
    return buffer.unpack32(), buffer.unpack32()


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_tasks_learn_where_they_stand(model: str) -> None:
    """The rank stands twice, the node's place once; the key is the program's."""
    text = ELAN + APP + 'timeline: [{at: 0s, as: alice, run: "srun -N2 -n3 ./app.sh"}]\n'
    ran = run(text, model=model)
    out = sorted(ran.result.commands[0].stdout.splitlines())
    assert out == ["0 0 0 2 3 0x1ff", "1 1 0 2 3 0x1ff", "2 2 1 2 3 0x1ff"]
    assert [event.errno for event in ran.all(kind="plugin", rc=-1)] == []
    assert state_of(ran) == (1, 0)


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_step_without_contexts_is_not_created_and_a_later_one_is(model: str) -> None:
    """Two contexts: while one step of two tasks has them another fails, and later it does not."""
    text = FEW.replace("=4", "=2") + (
        'files: {b.sh: "#!/bin/sh\\nsrun -n2 sleep 20 &\\nsleep 5\\nsrun -n2 sleep 1\\n'
        'echo second $?\\nwait\\nsrun -n2 true\\necho third $?\\n"}\n'
        "timeline: [{at: 0s, as: alice, run: sbatch -N1 -n2 b.sh}]\n"
    )
    ran = run(text, model=model)
    output = ran.world.disk.read("slurm-1.out", "/home/alice")
    assert output is not None
    assert "second 1" in output
    assert "third 0" in output
    assert "Error configuring interconnect" in output
    assert ran.one("switch_p_build_jobinfo", rc=-1).errno == "3016"
    assert ran.one("switch_p_get_errno", daemon="slurmctld").rc == qsnet.ENOCONTEXT
    # The step that was not made is told like those that were.
    assert len(ran.all("switch_p_job_step_complete")) == 3
    assert state_of(ran)[1] == 0


def test_steps_on_other_nodes_share_contexts() -> None:
    """Four contexts each: two jobs on nodes of their own need no others."""
    text = FEW + (
        "timeline:\n"
        '  - {at: 0s, as: alice, run: "srun -w n1 -n4 sleep 5"}\n'
        '  - {at: 0s, as: bob, run: "srun -w n2 -n4 sleep 5"}\n'
    )
    ran = run(text)
    assert ran.all(kind="plugin", rc=-1) == []
    assert [ran.job(1)[0], ran.job(2)[0]] == ["COMPLETED", "COMPLETED"]


def test_nothing_starts_while_a_job_completes() -> None:
    """no_frag is true: the second job waits for the first one's epilog, though a node is free."""
    text = ELAN + (
        "timeline:\n"
        '  - {at: 0s, as: alice, run: "srun -N1 sleep 5"}\n'
        '  - {at: 1s, as: bob, run: "srun -N2 sleep 5"}\n'
    )
    ran = run(text)
    rows = {row.job_id: row for row in ran.result.rows}
    last = ran.last("MESSAGE_EPILOG_COMPLETE", phase="receive", job=1)
    assert ran.first("job_state", job=2, args_to="RUNNING") > last
    assert rows[2].state == "COMPLETED"


def test_programs_live_in_the_card_from_init_to_postfini() -> None:
    """The card knows the program while tasks run, with the user; afterwards nothing is left."""
    text = ELAN + 'timeline: [{at: 0s, as: alice, run: "srun -N2 -n2 sleep 5"}]\n'
    ran = run(text)
    for node in ("n1", "n2"):
        assert ran.world.disk.view(node, 0).listdir("/run/qsnet/prg") == []


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_program_that_cannot_be_made_fails_the_launch_with_the_cards_error(model: str) -> None:
    """A leftover of the same number: EINVAL_PRGCREATE, and postfini destroys what is there."""
    text = (
        ELAN
        + 'files: {/run/qsnet/prg/1: "1 1024 1024\\n"}\n'
        + 'timeline: [{at: 0s, as: alice, run: "srun -N1 -n1 true"}]\n'
    )
    ran = run(text, model=model)
    assert ran.one("switch_p_job_init").errno == "3002"
    assert ran.all("switch_p_job_attach") == []
    assert len(ran.all("switch_p_job_postfini")) == 1
    assert "Error configuring interconnect" in ran.stderr()


def test_hosts_without_an_elan_id_fail_the_step() -> None:
    """A map that lacks a node, and a name without a number."""
    text = (
        ELAN
        + 'files: {/etc/elanhosts: "eip 7 n1  # the other is missing\\n"}\n'
        + "timeline:\n"
        + '  - {at: 0s, as: alice, run: "srun -w n1 true"}\n'
        + '  - {at: 10s, as: alice, run: "srun -w n2 true"}\n'
    )
    ran = run(text)
    assert [each.rc for each in ran.all("switch_p_build_jobinfo")] == [0, -1]
    assert ran.one("switch_p_build_jobinfo", rc=-1).errno == "3012"
    assert "Error configuring interconnect" in ran.stderr(1)


def test_a_wrong_parameter_stops_slurmctld() -> None:
    """SwitchParameters that mean nothing are not passed over."""
    text = "slurm_conf: {SwitchType: switch/elan, SwitchParameters: context=4}\ntimeline: []\n"
    ran = run(text)
    assert ran.one("init", daemon="slurmctld", plugin="switch/elan").rc == -1
    assert len(ran.all("fatal", daemon="slurmctld")) == 1


@pytest.mark.parametrize("damage", ["short", "foreign"])
def test_damaged_state_stops_slurmctld(damage: str) -> None:
    """EBADMAGIC_QSWLIBSTATE: what is there is not read as something else."""
    with slurmctld(ELAN) as world:
        plugin = SwitchElan()
        plugin.init()
        plugin.switch_p_libstate_save("/tmp")
        saved = world.disk.view("slurmctld", 0).read("/tmp/qsw_state")
        assert world.disk.view("slurmctld", 0).stat("/tmp/qsw_state").mode & 0o777 == 0o600
        files = world.disk.view("slurmctld", 64030)
        files.remove("/tmp/qsw_state")
        files.write("/tmp/qsw_state", saved[:-1] if damage == "short" else b"\0\0\0\1" + saved[4:])
        with pytest.raises(SlurmError) as caught:
            SwitchElan().switch_p_libstate_restore("/tmp")
        assert caught.value.errno == qsnet.EBADMAGIC_QSWLIBSTATE


def test_state_of_another_version_is_a_clean_start() -> None:
    """It is told, and not read."""
    with slurmctld(ELAN) as world:
        SwitchElan().switch_p_libstate_save("/tmp")
        files = world.disk.view("slurmctld", 64030)
        saved = bytearray(files.read("/tmp/qsw_state"))
        saved[7] += 1
        files.write("/tmp/qsw_state", bytes(saved))
        SwitchElan().switch_p_libstate_restore("/tmp")


@pytest.mark.parametrize(
    ("low", "high", "meets"),
    [(0, 1, False), (1, 2, True), (3, 3, True), (4, 6, True), (5, 6, False)],
)
def test_programs_meet_in_each_context_that_both_have(low: int, high: int, meets: bool) -> None:
    """One context is enough, at either end."""
    there = qsnet.Program(uid=1, low_context=2, high_context=4)
    other = qsnet.Program(uid=2, low_context=low, high_context=high)
    assert there.meets(other) == other.meets(there) == meets


# Any sequence of steps.


def _contexts(info: ElanJobInfo) -> set[tuple[int, int]]:
    """Return the contexts a step has, each on each node of its interval."""
    return {
        (node, context)
        for node in range(info.low_node, info.high_node + 1)
        for context in range(info.low_context, info.high_context + 1)
    }


def test_contexts_are_apart_where_ids_have_another_order_than_names() -> None:
    """A step has its contexts on each of its hosts, whichever of them has the lowest id."""
    plugin = SwitchElan()
    both, one = plugin.switch_p_alloc_jobinfo(), plugin.switch_p_alloc_jobinfo()
    with slurmctld(ELAN + 'files: {/etc/elanhosts: "eip 2 n1\\neip 1 n2\\n"}\n'):
        plugin.switch_p_build_jobinfo(both, "n[1-2]", 2, 0)
        plugin.switch_p_build_jobinfo(one, "n2", 1, 0)
    assert {node for node, _ in _contexts(both)} == {1, 2}
    assert {node for node, _ in _contexts(one)} == {1}
    assert not _contexts(both) & _contexts(one)


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
def test_no_context_is_ever_given_twice_and_all_come_back(deeds: list[tuple]) -> None:  # type: ignore[type-arg]
    """Steps are built, fail, end, and slurmctld restarts in between, in any order."""
    with slurmctld(FEW):
        plugin = SwitchElan()
        plugin.init()
        live: list[tuple[ElanJobInfo, str]] = []
        numbers: set[int] = set()
        for deed in deeds:
            if deed[0] == "build":
                nodes = ",".join(f"n{number}" for number in deed[1])
                info = plugin.switch_p_alloc_jobinfo()
                if failure(plugin.switch_p_build_jobinfo, info, nodes, deed[2], deed[3]):
                    plugin.switch_p_job_step_complete(info, nodes)
                    continue
                assert info.prognum not in numbers
                numbers.add(info.prognum)
                for other, _ in live:
                    assert not _contexts(info) & _contexts(other)
                live.append((info, nodes))
            elif deed[0] == "complete" and live:
                info, nodes = live.pop(deed[1] % len(live))
                plugin.switch_p_job_step_complete(info, nodes)
            elif deed[0] == "restart":
                plugin.switch_p_libstate_save("/tmp")
                plugin = SwitchElan()
                plugin.init()
                plugin.switch_p_libstate_restore("/tmp")
        for info, nodes in live:
            plugin.switch_p_job_step_complete(info, nodes)
        whole = plugin.switch_p_alloc_jobinfo()
        plugin.switch_p_build_jobinfo(whole, "n[1-4]", 16, 0)
        assert whole.high_context - whole.low_context == 3


INFOS = st.builds(
    ElanJobInfo,
    prognum=st.integers(0, 2**31 - 1),
    user_key=st.tuples(*[st.integers(0, 2**32 - 1)] * 4),
    layout=st.integers(0, 2**16 - 1),
    low_context=st.integers(0, 2**32 - 1),
    high_context=st.integers(0, 2**32 - 1),
    low_node=st.integers(0, 2**32 - 1),
    high_node=st.integers(0, 2**32 - 1),
    entries=st.integers(0, 2**32 - 1),
    rail_mask=st.integers(0, 2**32 - 1),
    bitmap=st.binary(max_size=40),
)


@given(INFOS, st.binary(max_size=8))
def test_what_is_packed_comes_back(info: ElanJobInfo, after: bytes) -> None:
    """And what follows it in the buffer is left for others."""
    plugin = SwitchElan()
    buffer = Buf()
    assert plugin.switch_p_pack_jobinfo(info, buffer) == buffer.size
    read = Buf(buffer.data() + after)
    found = plugin.switch_p_alloc_jobinfo()
    plugin.switch_p_unpack_jobinfo(found, read)
    assert found == info == plugin.switch_p_copy_jobinfo(info)
    assert read.remaining == len(after)


@given(INFOS, st.data())
def test_whatever_the_bytes_unpack_fails_by_errno_alone(
    info: ElanJobInfo, data: st.DataObject
) -> None:
    """The record to be filled in and the buffer stay as they were."""
    plugin = SwitchElan()
    buffer = Buf()
    plugin.switch_p_pack_jobinfo(info, buffer)
    good = buffer.data()
    cut = good[: data.draw(st.integers(0, len(good)))]
    flipped = bytearray(good)
    flipped[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
    for hostile in (cut, bytes(flipped), data.draw(st.binary(max_size=100))):
        kept = ElanJobInfo(prognum=7)
        read = Buf(hostile)
        number = failure(plugin.switch_p_unpack_jobinfo, kept, read)
        if number:
            assert 3000 <= number <= 3099
            assert plugin.switch_p_strerror(number)
            assert kept == ElanJobInfo(prognum=7)
            assert read.offset == 0
        assert read.offset <= len(hostile)


def test_a_freed_credential_is_told_everywhere() -> None:
    """Use after free is an errno of the plugin's, in every function that takes a credential."""
    plugin = SwitchElan()
    info = plugin.switch_p_alloc_jobinfo()
    plugin.switch_p_free_jobinfo(info)
    with slurmctld(ELAN):
        for use in (
            lambda: plugin.switch_p_build_jobinfo(info, "n1", 1, 0),
            lambda: plugin.switch_p_copy_jobinfo(info),
            lambda: plugin.switch_p_pack_jobinfo(info, Buf()),
            lambda: plugin.switch_p_job_step_complete(info, "n1"),
            lambda: plugin.switch_p_job_init(info, 1001),
            lambda: plugin.switch_p_job_attach(info, {}, 0, 0, 1, 1, 0),
            lambda: plugin.switch_p_job_postfini(info, 1, 1, 0),
        ):
            with pytest.raises(SlurmError) as caught:
                use()
            assert caught.value.errno == qsnet.EBADMAGIC_QSWJOBINFO
    assert "no credential" in plugin.switch_p_sprint_jobinfo(info, 100)


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("seed", range(4))
def test_random_runs_give_all_contexts_back(seed: int, model: str) -> None:
    """Jobs that end, fail, are cancelled and lose their node: no program and no context is left."""
    chance = random.Random(seed)
    lines = []
    for number in range(1, 9):
        command = (
            f"srun -N{chance.randint(1, 2)} -n{chance.randint(2, 4)} sleep {chance.randint(1, 90)}"
        )
        lines.append(f"  - {{at: {chance.randint(0, 60)}s, as: alice, run: {command}}}\n")
        if chance.random() < 0.4:
            lines.append(f"  - {{at: {chance.randint(20, 90)}s, run: scancel {number}}}\n")
    lines.append("  - {at: 45s, fault: {crash: n2}}\n  - {at: 10m, fault: {start: n2}}\n")
    conf = "slurm_conf: {SwitchType: switch/elan, ReturnToService: 2, SlurmdTimeout: 30}\n"
    ran = run(conf + "timeline:\n" + "".join(lines), model=model, schedule="random", seed=seed)
    assert state_of(ran)[1] == 0
    for node in ("n1", "n2"):
        view = ran.world.disk.view(node, 0)
        assert not view.is_dir("/run/qsnet/prg") or view.listdir("/run/qsnet/prg") == []
    assert {event.errno for event in ran.all(kind="plugin", rc=-1)} <= {"3016"}
