"""What hostile input is made of, and how long the tests of it go on."""

import os
from typing import Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

TIMES: Final = int(os.environ.get("SIMCTL_FUZZ", "1"))
"""How many times as long as in the suite; `make fuzz` says so."""

ODD: Final = (
    *("", " ", "\t", "\n", "\r\n", "\0", "\x1b[2J", "\ufeff", "\u2028", "é", "日本", "\U0001f600"),
    *("-1", "0", "00", "1e999", "nan", "inf", "-0", "0x", "1_0", "٣", "²", "9" * 30, "9" * 5000),
    *("[", "]", "[]", "[1-", "[1-1000000000]", "[9-1]", "{", "}", "{}", "(", ")", "$((", "`"),
    *("'", '"', "\\", "%", "%%", "%9999999s", "#", "&", "*", "|", ";", ":", ",", "=", "==", "@"),
    *(
        "1-",
        "-",
        "--",
        "1:2:3:4",
        "9999-12-31",
        "now-1",
        "1_[0-1000000000]",
        "1.0.0.0",
        "4294967295",
    ),
)
"""Pieces that have broken readers of text."""

odd = st.sampled_from(ODD)
junk = st.binary(max_size=400)


def mutated(*good: str) -> st.SearchStrategy[str]:
    """Return texts that began as good ones: pieces are put in, taken out, doubled and changed."""

    @st.composite
    def texts(draw: st.DrawFn) -> str:
        text = draw(st.sampled_from(good))
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(text)))
            end = min(len(text), at + draw(st.sampled_from((0, 1, 2, 5, 20))))
            piece = draw(
                odd
                | st.text(max_size=6)
                | st.sampled_from(text.split() or [""])
                | st.just(text[at:end] * 2)
            )
            text = text[:at] + piece + text[end:]
        return text

    return texts()


def mutated_bytes(*good: bytes) -> st.SearchStrategy[bytes]:
    """Return bytes that began as good ones: cut, flipped, doubled, with junk in them."""

    @st.composite
    def texts(draw: st.DrawFn) -> bytes:
        data = draw(st.sampled_from(good))
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(data)))
            end = min(len(data), at + draw(st.sampled_from((0, 1, 4, 8, 64))))
            piece = draw(
                st.binary(max_size=8)
                | st.sampled_from((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\n"))
                | st.just(data[at:end] * 2)
                | st.just(bytes(each ^ 1 for each in data[at:end]))
            )
            data = data[:at] + piece + data[end:]
        return data

    return texts()


def fuzzed(examples: int) -> settings:
    """Return settings for a test that takes *examples* in the suite."""
    if TIMES == 1:
        return settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    # A long search starts from another place each time, and tells how to repeat a find.
    return settings(
        max_examples=examples * TIMES,
        derandomize=False,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
