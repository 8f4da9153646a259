"""What burst buffer plugins tell of their buffers: packed, unpacked, printed."""

from typing import Any, get_args, get_type_hints

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simctl.commands.scontrol.shown.burst_buffer import lines_of, size_text, unpacked
from simctl.plugin import (
    Buf,
    BurstBufferAlloc,
    BurstBufferInfo,
    BurstBufferPool,
    BurstBufferUse,
    SlurmError,
)
from tests.cluster import run

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
RECORDS = (BurstBufferPool, BurstBufferAlloc, BurstBufferUse)


def filled(kind: type) -> st.SearchStrategy[Any]:
    """Return records of a kind with every field set to something."""
    return st.builds(kind, **{name: _of(hint) for name, hint in get_type_hints(kind).items()})


def _of(hint: Any) -> st.SearchStrategy[Any]:
    if hint is str:
        return TEXTS
    if hint is int:
        return st.integers(0, 2**32 - 1)
    if hint in RECORDS:
        return filled(hint)
    return st.lists(_of(get_args(hint)[0]), max_size=2).map(tuple)


@given(st.lists(filled(BurstBufferInfo), max_size=3))
def test_what_plugins_pack_comes_back_one_behind_the_other(infos: list[BurstBufferInfo]) -> None:
    """Every plugin appends to the same buffer; whoever reads takes them off in that order."""
    buffer = Buf()
    for info in infos:
        info.pack(buffer)
    buffer.offset = 0
    assert [BurstBufferInfo.unpack(buffer) for _ in infos] == infos
    assert not buffer.remaining


def test_what_is_cut_off_is_an_error_and_no_record() -> None:
    """A plugin that packs something else is found out when it is unpacked."""
    buffer = Buf()
    BurstBufferInfo(name="generic").pack(buffer)
    with pytest.raises(SlurmError):
        BurstBufferInfo.unpack(Buf(buffer.data()[:-1]))


CRAY = BurstBufferInfo(
    name="cray",
    default_pool="pool1",
    granularity=2**30,
    total_space=100 * 2**30,
    unfree_space=10 * 2**30,
    used_space=20 * 2**30,
    flags=("DisablePersistent",),
    stage_in_timeout=60,
    stage_out_timeout=60,
    validate_timeout=10,
    other_timeout=30,
    get_sys_state="/cluster/bb/dw_wlm_cli",
    get_sys_status="/cluster/bb/dw_wlm_cli",
    allocs=tuple(
        BurstBufferAlloc(
            job_id=job_id,
            create_time=created,
            pool="pool1",
            size=10 * 2**30,
            state=state,
            user_id=2001,
        )
        for job_id, created, state in ((19, 1795218477, "staged-in"), (17, 1795218343, "allocated"))
    ),
    uses=(BurstBufferUse(user_id=2001, used=20 * 2**30),),
)
PRINTED = """\
Name=cray DefaultPool=pool1 Granularity=1GiB TotalSpace=100GiB FreeSpace=90GiB UsedSpace=20GiB
  Flags=DisablePersistent
  StageInTimeout=60 StageOutTimeout=60 ValidateTimeout=10 OtherTimeout=30
  GetSysState=/cluster/bb/dw_wlm_cli
  GetSysStatus=/cluster/bb/dw_wlm_cli
  Allocated Buffers:
    JobID=19 CreateTime=2026-11-20T23:47:57 Pool=pool1 Size=10GiB State=staged-in UserID=alice(2001)
    JobID=17 CreateTime=2026-11-20T23:45:43 Pool=pool1 Size=10GiB State=allocated UserID=alice(2001)
  Per User Buffer Use:
    UserID=alice(2001) Used=20GiB
"""


def printed(info: BurstBufferInfo, *, oneliner: bool = False) -> str:
    """Return what scontrol prints of a plugin."""
    return "".join(
        f"{line}\n" for line in lines_of(info, lambda _: "alice", 1795218000, oneliner=oneliner)
    )


def test_a_plugin_is_printed_as_slurm_prints_it() -> None:
    """As recorded: what is free is what is not allocated, whatever is used."""
    assert printed(CRAY) == PRINTED


def test_what_is_set_has_a_line_and_what_is_not_has_none() -> None:
    """Other pools follow the default one; a persistent buffer goes by its name."""
    info = attrs.evolve(
        CRAY,
        flags=(),
        pools=(
            BurstBufferPool(
                name="pool2",
                granularity=200 * 10**6,
                total_space=2 * 10**12,
                unfree_space=0,
                used_space=0,
            ),
        ),
        allow_users=("alice", "bob"),
        deny_users=("carol",),
        get_sys_status="",
        start_stage_out="/bb/out",
        allocs=(
            BurstBufferAlloc(name="keep", size=7, state="allocated"),
            BurstBufferAlloc(job_id=9, array_job_id=8, array_task_id=0, state="teardown"),
        ),
        uses=(),
    )
    assert printed(info).splitlines()[1:] == [
        "  PoolName[0]=pool2 Granularity=200MB TotalSpace=2TB FreeSpace=2TB UsedSpace=0",
        "  Flags=",
        "  StageInTimeout=60 StageOutTimeout=60 ValidateTimeout=10 OtherTimeout=30",
        "  AllowUsers=alice,bob",
        "  GetSysState=/cluster/bb/dw_wlm_cli",
        "  StartStageOut=/bb/out",
        "  Allocated Buffers:",
        "    Name=keep CreateTime=2026-11-20T23:40:00 Pool=(null) Size=7 State=allocated "
        "UserID=alice(0)",
        "    JobID=8_0(9) CreateTime=2026-11-20T23:40:00 Pool=(null) Size=0 State=teardown "
        "UserID=alice(0)",
    ]


def test_one_line_holds_what_is_said_of_the_plugin_itself() -> None:
    """`scontrol -o`: its buffers stay below it."""
    lines = printed(CRAY, oneliner=True).splitlines()
    assert lines[0].startswith("Name=cray DefaultPool=pool1")
    assert lines[0].endswith("GetSysStatus=/cluster/bb/dw_wlm_cli")
    assert lines[1:] == PRINTED.splitlines()[5:]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (1, "1"), (1023, "1023"), (1024, "1KiB"), (1000, "1KB"), (3 * 2**40, "3TiB")],
)
def test_a_size_is_in_the_greatest_unit_that_divides_it(size: int, text: str) -> None:
    """Powers of 1024 come before those of 1000."""
    assert size_text(size) == text


def test_buffers_of_several_plugins_are_told_apart() -> None:
    """Packed one behind the other; nothing is printed where there is no plugin."""
    buffer = Buf()
    CRAY.pack(buffer)
    BurstBufferInfo(name="generic").pack(buffer)
    assert [info.name for info in unpacked(buffer.data())] == ["cray", "generic"]
    told = run("timeline: [{at: 1s, run: scontrol show burst}]\n").result.commands[0]
    assert (told.stdout, told.stderr, told.exit) == ("", "", 0)
