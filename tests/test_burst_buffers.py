"""What burst buffer plugins tell of their buffers: packed, unpacked, printed."""

from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simctl.plugin import (
    Buf,
    BurstBufferAlloc,
    BurstBufferInfo,
    BurstBufferPool,
    BurstBufferUse,
    SlurmError,
)

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
