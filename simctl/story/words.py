"""What each RPC is for, in a sentence: the first line of its class."""

import re
from collections.abc import Iterator
from typing import Final

from simctl.wire import messages
from simctl.wire.messages import Message


def _sentences() -> Iterator[tuple[str, str]]:
    for kind in vars(messages).values():
        if isinstance(kind, type) and issubclass(kind, Message) and hasattr(kind, "rpc"):
            first = (kind.__doc__ or "").splitlines()[0].rstrip(".").replace("`", "")
            yield kind.rpc, first[:1].lower() + first[1:]


RPCS: Final = dict(reversed([*_sentences()]))
"""The first class of a name tells: RESPONSE_JOB_INFO has two."""


def rpc(name: str) -> str:
    """Return what a message is for, in a few words."""
    return thought(RPCS.get(name, ""))


def thought(sentence: str) -> str:
    """Return the first thought of a sentence, beginning small."""
    told = re.split("[;:]", sentence.rstrip("."))[0]
    first, _, _ = told.partition(",")
    told = first if len(first) > _A_THOUGHT else told
    return told[:1].lower() + told[1:]


_A_THOUGHT: Final = 18
