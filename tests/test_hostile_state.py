"""slurmctld starts, or says why not, whatever its state files hold: checksums right or wrong."""

import json
from typing import Any, Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from simctl.scenario.load import read_scenario
from simctl.wire.state_files import FILES, framed, read_file
from simctl.world import World
from tests.cluster import TWO_NODES
from tests.hostile import fuzzed, mutated_bytes, odd

STOPS: Final = """\
timeline:
  - {at: 0s, as: alice, run: "sbatch -N2 --wrap='srun sleep 60'"}
  - {at: 0s, as: alice, run: "sbatch -a 0-3%2 --wrap='sleep 30'"}
  - {at: 0s, as: bob, run: "sbatch -d afterok:1 --wrap='sleep 5'"}
  - at: 1s
    run: scontrol create reservation=r starttime=now+1hour duration=10 nodes=n1 users=bob
  - {at: 10s, fault: {stop: slurmctld}}
  - {at: 20s, fault: {start: slurmctld}}
  - {at: 30s, run: squeue}
"""
AT_US: Final = 15_000_000


others: st.SearchStrategy[Any] = (
    odd | st.integers(-(2**70), 2**70) | st.sampled_from((None, True, 1.5, {}, [], [[]]))
)
"""Values of another kind."""


@st.composite
def damaged_records(draw: st.DrawFn, data: bytes) -> bytes:
    """Return a state file with other values in its records, and checksums that are right."""
    lines = [json.loads(line.split(b" ", 2)[2]) for line in data.splitlines()]
    others: st.SearchStrategy[Any] = (
        odd | st.integers(-(2**70), 2**70) | st.sampled_from((None, True, 1.5, {}, [], [[]]))
    )
    for _ in range(draw(st.integers(1, 3))):
        here: Any = lines[draw(st.integers(0, len(lines) - 1))]
        for _ in range(draw(st.integers(1, 4))):
            keys = sorted(here) if isinstance(here, dict) else list(range(len(here)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(here[key], dict | list) and here[key] and draw(st.booleans()):
                here = here[key]
                continue
            number = st.sampled_from((-1, 0, 1, 2, 7, 1 << 31, (1 << 63) - 1))
            here[key] = draw(number if isinstance(here[key], int) else others)
            break
    # Half of a surrogate pair cannot stand in a file.
    texts = (json.dumps(line).encode("utf-8", "replace") for line in lines)
    return b"".join(framed(text) for text in texts)


def started(model: str, damage: Any) -> World:
    """Run until slurmctld has started again with state that was damaged meanwhile."""
    world = World(
        read_scenario(TWO_NODES + STOPS, file="s.yaml"),
        model=model,
        most_turns=20_000,
        until_us=600_000_000,
        orderings=False,
    )

    def spoil(_: Any) -> None:
        damage(world.disk.view("slurmctld", 0))

    def plan() -> None:
        world.kernel.call_at(AT_US, spoil, None)

    world.background.append(plan)
    world.run()
    return world


@fuzzed(8)
@given(st.sampled_from(("guide", "modern")), st.sampled_from(FILES), st.data())
def test_no_record_of_a_state_file_breaks_slurmctld(
    model: str, name: str, data: st.DataObject
) -> None:
    """A record that makes no sense is told of, as a damaged one is."""

    def damage(disk: Any) -> None:
        path = f"/var/spool/{name}"
        disk.write(path, data.draw(damaged_records(disk.read(path))))

    started(model, damage)


@fuzzed(8)
@given(st.sampled_from(("guide", "modern")), st.sampled_from(FILES), st.data())
def test_no_bytes_of_a_state_file_break_slurmctld(
    model: str, name: str, data: st.DataObject
) -> None:
    """Cut off, flipped, doubled; the old file with the new one, or not."""

    def damage(disk: Any) -> None:
        for path in (f"/var/spool/{name}", f"/var/spool/{name}.old"):
            if disk.exists(path) and data.draw(st.booleans()):
                disk.write(path, data.draw(mutated_bytes(disk.read(path))))

    started(model, damage)


@fuzzed(60)
@given(st.binary(max_size=300) | mutated_bytes(framed(msgspec.json.encode({"records": 0}))))
def test_no_bytes_break_the_reader_of_state_files(data: bytes) -> None:
    """What it cannot read it says in words."""
    found = read_file(data, "job_state")
    assert found.problem or found.header is not None
