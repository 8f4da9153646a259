"""What turns and messages are called, so that a schedule can be followed by names."""

from pathlib import Path

from simctl.kernel.line import Line
from simctl.kernel.schedules import InTurn
from simctl.testing.explore.trial import Terms, load_text, run_trial

_SCENARIO = Path(__file__).parent.parent / "scenarios" / "two_nodes.yaml"


class _AllLate(InTurn):
    """Have every message between hosts be a little late."""

    def extra_us(self, _: Line) -> int:
        return 1


def test_no_two_messages_of_a_run_share_a_name() -> None:
    """The first and the second message of a turn did: the delay of one replaced the other's."""
    scenario = load_text(_SCENARIO.read_text(encoding="utf-8"), _SCENARIO)
    ran = run_trial(scenario, _AllLate(), 1, Terms(model="guide"))
    names = [name for name, _ in ran.line.late_names]
    assert len(names) > 10
    assert len(set(names)) == len(names)
