"""What burst buffer plugins tell of their buffers: packed, unpacked, printed."""

import attrs
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
_BY_TYPE = {
    "str": TEXTS,
    "int": st.integers(0, 2**32 - 1),
    "tuple[str, ...]": st.lists(TEXTS, max_size=3).map(tuple),
}


def filled(kind: type) -> st.SearchStrategy:  # type: ignore[type-arg]
    """Return records of a kind with every field set to something."""
    values = {}
    for field in attrs.fields(kind):
        name = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
        text = str(field.type) if name in ("tuple", "") else name
        values[field.name] = _BY_TYPE.get(text) or _several(text)
    return st.builds(kind, **values)


def _several(text: str) -> st.SearchStrategy:  # type: ignore[type-arg]
    kinds = (BurstBufferPool, BurstBufferAlloc, BurstBufferUse)
    kind = next(each for each in kinds if each.__name__ in text)
    return st.lists(filled(kind), max_size=2).map(tuple)


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
