"""What one run calls forced is so under other schedules, latencies and durations.

`python -m tests.happens_random FIRST LAST` tries more scenarios than are tried here.
"""

from typing import Any

import pytest

from simctl.kernel.causes import Subjects
from simctl.kernel.trace import Trace
from tests.happens_random import Situation, broken, forced_pairs, others, tell


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("block", range(4))
def test_what_is_forced_holds_in_other_runs(block: int, model: str) -> None:
    """Of every two plugin calls, wherever the jobs of both went the same way."""
    for seed in range(block * 4, block * 4 + 4):
        situation = Situation(seed)
        told = tell(situation, model=model)
        pairs = list(forced_pairs(told))
        assert pairs
        for other in others(situation, model, range(1, 3)):
            assert not next(broken(told, pairs, other), None)


def test_other_runs_notice_what_is_called_forced_and_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the trace took every cause for a need, some orders would be reversed in other runs."""

    def taken_at_its_word(_: Any, __: Any, ___: Any, cause: int) -> int:
        return cause

    monkeypatch.setattr(Subjects, "place", taken_at_its_word)
    monkeypatch.setattr(Trace, "choose", lambda *_: None)
    situation = Situation(1)
    told = tell(situation)
    pairs = list(forced_pairs(told))
    wrong = [
        next(broken(told, pairs, other), None) for other in others(situation, "guide", range(1, 4))
    ]
    assert any(wrong)
