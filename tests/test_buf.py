"""Buf: what is packed comes back, and nothing else does."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.wire.buf import Buf
from simctl.wire.errno import ESLURM_PROTOCOL_INCOMPLETE_PACKET, SlurmError

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "8": st.integers(0, 2**8 - 1),
    "16": st.integers(0, 2**16 - 1),
    "32": st.integers(0, 2**32 - 1),
    "64": st.integers(0, 2**64 - 1),
    "time": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "str": st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    "mem": st.binary(),
}
VALUES = st.lists(
    st.sampled_from(sorted(KINDS)).flatmap(lambda kind: st.tuples(st.just(kind), KINDS[kind]))
)
UNPACKS = st.lists(st.sampled_from(sorted(KINDS)))


def call(buf: Buf, verb: str, kind: str, *values: object) -> Any:
    """Call ``pack`` or ``unpack`` of one kind."""
    method: Callable[..., Any] = getattr(buf, verb + kind)
    return method(*values)


def refusal(buf: Buf, kind: str) -> int:
    """Return the errno with which unpacking one kind is refused, 0 when it is not."""
    try:
        call(buf, "unpack", kind)
    except SlurmError as error:
        return error.errno
    return 0


@settings(derandomize=True, deadline=None)
@given(VALUES)
def test_everything_packed_comes_back_in_order(values: list[tuple[str, Any]]) -> None:
    """Pack and unpack are inverse, and leave nothing over."""
    packed = Buf()
    for kind, value in values:
        call(packed, "pack", kind, value)
    read = Buf(packed.data())
    assert [call(read, "unpack", kind) for kind, _ in values] == [value for _, value in values]
    assert read.remaining == 0
    assert read.offset == read.size == packed.size


@settings(derandomize=True, deadline=None)
@given(st.binary(), UNPACKS)
def test_any_bytes_are_read_or_refused(data: bytes, kinds: list[str]) -> None:
    """Damaged data gives SlurmError and nothing else, and a refused read does not move."""
    buf = Buf(data)
    for kind in kinds:
        before = buf.offset
        refused = refusal(buf, kind)
        if refused:
            assert (refused, buf.offset) == (ESLURM_PROTOCOL_INCOMPLETE_PACKET, before)
        assert buf.offset + buf.remaining == len(data)
    assert buf.data() == data


@settings(derandomize=True, deadline=None)
@given(VALUES.filter(bool), st.data())
def test_a_cut_buffer_is_refused(values: list[tuple[str, Any]], data: st.DataObject) -> None:
    """However a message is cut short, its reader notices."""
    packed = Buf()
    for kind, value in values:
        call(packed, "pack", kind, value)
    cut = Buf(packed.data()[: data.draw(st.integers(0, packed.size - 1))])
    assert any(refusal(cut, kind) for kind, _ in values)


def test_numbers_are_big_endian_and_texts_end_with_nul() -> None:
    """The bytes are Slurm's: a recorded buffer can be read."""
    buf = Buf()
    buf.pack16(0x0102)
    buf.pack32(3)
    buf.packstr("ab")
    buf.packstr("")
    buf.packstr(None)
    buf.packmem(b"\x07")
    assert buf.data().hex(" ", 1) == (
        "01 02 00 00 00 03 00 00 00 03 61 62 00 00 00 00 01 00 00 00 00 00 00 00 00 01 07"
    )


def test_packing_goes_on_behind_what_was_given() -> None:
    """A buffer made from bytes may grow; the bytes it was made from do not."""
    given_bytes = b"\x00\x01"
    buf = Buf(given_bytes)
    buf.pack8(9)
    assert buf.unpack16() == 1
    assert buf.unpack8() == 9
    assert (given_bytes, buf.data()) == (b"\x00\x01", b"\x00\x01\x09")


def test_buffers_do_not_share_bytes() -> None:
    """Two empty buffers are two buffers, and data handed out is a copy."""
    one, other = Buf(), Buf()
    one.pack8(1)
    snapshot = one.data()
    one.pack8(2)
    assert (other.size, snapshot, one.size) == (0, b"\x01", 2)
    source = bytearray(b"ab")
    copied = Buf(source)
    source[0] = 0
    assert copied.data() == b"ab"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("8", 256),
        ("16", -1),
        ("32", 2**32),
        ("64", -1),
        ("time", 2**63),
        ("32", 1.5),
        ("32", None),
        ("double", "one"),
        ("str", "a\0b"),
        ("str", "\udc80"),
    ],
)
def test_values_that_do_not_fit_are_named_and_not_packed(kind: str, value: object) -> None:
    """A plugin that packs nonsense hears what was expected; the buffer stays whole."""
    buf = Buf(b"x")
    with pytest.raises(ValueError, match=rf"pack{kind}.*expected|cannot hold"):
        call(buf, "pack", kind, value)
    assert buf.data() == b"x"


@pytest.mark.parametrize(("kind", "value"), [("str", b"bytes"), ("mem", "text"), ("mem", 3)])
def test_texts_and_bytes_are_not_mixed_up(kind: str, value: object) -> None:
    """A text is packed as a text and bytes as bytes."""
    with pytest.raises(TypeError, match=f"pack{kind}: expected"):
        call(Buf(), "pack", kind, value)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0\0\0\x02ab", "NUL"),
        (b"\0\0\0\x02\xff\0", "UTF-8"),
        (b"\0\0\0\x09ab\0", "9 bytes wanted, 3 left"),
        (b"\0\0", "4 bytes wanted, 2 left"),
    ],
)
def test_damaged_texts_say_what_is_wrong(data: bytes, why: str) -> None:
    """A reader learns where and why; it may go on from where it was."""
    buf = Buf(data)
    with pytest.raises(SlurmError, match=why):
        buf.unpackstr()
    assert buf.offset == 0


def test_offset_may_be_set_within_the_buffer() -> None:
    """An unknown record is skipped by moving on; not past the end."""
    buf = Buf(b"abcd")
    buf.offset = 4
    assert buf.remaining == 0
    with pytest.raises(ValueError, match="holds 4 bytes"):
        buf.offset = 5
    assert repr(buf) == "Buf(4 bytes, offset 4)"
