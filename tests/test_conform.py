"""`simctl trace conform` finds what is damaged in a trace, and names it."""

import gzip
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from simctl.cli import main
from simctl.kernel.events import Event
from simctl.kernel.recording import RecordingError
from simctl.testing.conform.command import compare_events
from simctl.testing.conform.compare import Difference
from simctl.testing.conform.real import check_events, read_real, real_story
from simctl.testing.conform.rules import RULES
from tests.conformance_runs import FOLDER, NAMES, held, recording_of

STEP: Final = "s03_srun_2x2"
BATCH: Final = "s05_sbatch_two_steps"

Damage = Callable[[list[Event]], list[Event]]


def found(events: list[Event], name: str = STEP) -> list[Difference]:
    """Return how a trace differs from a recording."""
    return list(compare_events(events, read_real(recording_of(name))).differences)


def kinds(differences: Iterable[Difference]) -> set[str]:
    """Return the names of differences."""
    return {each.kind for each in differences}


def place(events: list[Event], name: str, **fields: Any) -> int:
    """Return where the first event of a name and with these fields is."""
    return next(
        at
        for at, event in enumerate(events)
        if event.name == name and all(getattr(event, key) == value for key, value in fields.items())
    )


def changed(name: str, *, where: dict[str, Any], **new: Any) -> Damage:
    """Return a damage that changes fields of an event; `args` are added to its own."""

    def damage(events: list[Event]) -> list[Event]:
        at = place(events, name, **where)
        event = events[at]
        if "args" in new:
            own = event.args if isinstance(event.args, dict) else {}
            event = msgspec.structs.replace(event, args={**own, **new["args"]})
        rest = {key: value for key, value in new.items() if key != "args"}
        event = msgspec.structs.replace(event, **rest)
        return [*events[:at], event, *events[at + 1 :]]

    return damage


def dropped(name: str, **where: Any) -> Damage:
    """Return a damage that takes an event out."""

    def damage(events: list[Event]) -> list[Event]:
        at = place(events, name, **where)
        return events[:at] + events[at + 1 :]

    return damage


def doubled(name: str, **where: Any) -> Damage:
    """Return a damage that has an event happen twice."""

    def damage(events: list[Event]) -> list[Event]:
        at = place(events, name, **where)
        return [*events[: at + 1], *events[at:]]

    return damage


def moved(name: str, before: str, **where: Any) -> Damage:
    """Return a damage that puts an event before another of the same place."""

    def damage(events: list[Event]) -> list[Event]:
        at = place(events, name, **where)
        to = place(events, before, **where)
        rest = events[:at] + events[at + 1 :]
        return [*rest[:to], events[at], *rest[to:]]

    return damage


ON_N1: Final = {"node": "n1", "role": "manager"}


@pytest.mark.parametrize(
    ("damage", "kind", "text"),
    [
        (dropped("switch_p_job_fini", node="n2"), "missing call", "switch_p_job_fini"),
        (dropped("switch_p_part_comp"), "missing call", "switch_p_part_comp"),
        (dropped("switch_p_slurmd_step_init", node="n1"), "missing call", "step_init"),
        (doubled("switch_p_job_postfini", node="n1"), "extra call", "switch_p_job_postfini"),
        (doubled("switch_p_job_attach", task=2), "extra call", "switch_p_job_attach"),
        (doubled("switch_p_free_jobinfo", daemon="srun"), "extra call", "switch_p_free_jobinfo"),
        (moved("switch_p_job_postfini", "switch_p_job_fini", **ON_N1), "order", "comes elsewhere"),
        (
            moved("slurm_ckpt_stepd_prefork", "switch_p_job_init", **ON_N1),
            "order",
            "comes elsewhere",
        ),
        (changed("switch_p_job_fini", where=ON_N1, uid=2001), "user", "switch_p_job_fini"),
        (
            changed("switch_p_job_attach", where={"task": 1}, euid=0),
            "user",
            "user 1/root, recorded user 1",
        ),
        (
            changed("switch_p_job_attach", where={"task": 3}, args={"procid": 3}),
            "argument",
            "procid=3, recorded 0",
        ),
        (
            changed("switch_p_build_jobinfo", where={}, args={"task_dist": 1}),
            "argument",
            "task_dist=1, recorded 2",
        ),
        (
            changed("switch_p_job_postfini", where=ON_N1, args={"pgid": 0}),
            "argument",
            "pgid=0",
        ),
        (changed("switch_p_job_init", where=ON_N1, rc=-1), "result", "-1, recorded 0"),
        (changed("switch_p_part_comp", where={}, rc=True), "result", "1, recorded 0"),
        (dropped("MESSAGE_TASK_EXIT", node="n1"), "missing message", "MESSAGE_TASK_EXIT"),
        (
            changed("REQUEST_STEP_COMPLETE", where={"node": "n2"}, args={"range_first": 0}),
            "missing message",
            "range=1..1",
        ),
        (
            dropped(
                "job_state",
                args={"from": "COMPLETED|COMPLETING", "to": "COMPLETED", "reason": "None"},
            ),
            "missing state",
            "COMPLETED",
        ),
        (dropped("epilog", node="n2", phase="enter"), "missing script", "epilog"),
        (dropped("become_user", task=0), "missing process", "become_user"),
    ],
)
def test_a_damage_is_found_and_named(damage: Damage, kind: str, text: str) -> None:
    """Something is dropped, doubled or moved, or has another user, argument or result."""
    differences = found(damage(held(STEP).events))
    assert kind in kinds(differences)
    assert any(text in each.text for each in differences if each.kind == kind)


@pytest.mark.parametrize(
    ("name", "before", "text"),
    [
        ("switch_p_job_step_complete", "REQUEST_STEP_COMPLETE", "reported it over"),
        ("REQUEST_LAUNCH_TASKS", "switch_p_build_jobinfo", "credential is built"),
        ("MESSAGE_EPILOG_COMPLETE", "epilog", "epilog is over"),
        ("switch_p_job_attach", "fork", "all tasks of a node are forked"),
    ],
)
def test_an_effect_that_comes_before_its_message_is_found(
    name: str, before: str, text: str
) -> None:
    """Also where each process by itself keeps its order."""
    events = held(STEP).events
    at = place(events, name)
    to = min(place(events, before), at)
    differences = found([*events[:to], events[at], *events[to:at], *events[at + 1 :]])
    told = [each.text for each in differences if each.kind == "order"]
    assert any(text in each for each in told), told


def test_a_run_without_damage_agrees() -> None:
    """So that what the other tests find is the damage."""
    assert [each.line() for each in found(held(STEP).events)] == []


_END_OF_A_STEP: Final = (
    *("REQUEST_STEP_COMPLETE", "switch_p_job_step_complete"),
    *("switch_p_free_jobinfo", "slurm_ckpt_free_job"),
)


def test_a_race_of_the_recording_does_not_count() -> None:
    """Whether the step or the job is over first depends on which message is faster."""
    events = held(STEP).events
    over = [
        event
        for event in events
        if event.step == "3.0"
        and event.name in _END_OF_A_STEP
        and (event.daemon == "slurmctld" or event.kind == "message")
    ]
    rest = [event for event in events if event not in over]
    to = place(rest, "REQUEST_TERMINATE_JOB")
    assert [each.line() for each in found([*rest[:to], *over, *rest[to:]])] == []


def test_no_call_of_a_run_can_be_dropped_unseen() -> None:
    """Each call that the rules leave in is missed when it is not made."""
    held_batch = held(BATCH)
    recording = read_real(recording_of(BATCH))
    compared = {
        mine.place
        for pairs in held_batch.comparison.pairs.values()
        for mine, _ in pairs
        if mine is not None and mine.kind == "call"
    }
    events = held_batch.events
    assert len(compared) > 50
    for at in sorted(compared):
        differences = compare_events(events[:at] + events[at + 1 :], recording).differences
        assert "missing call" in kinds(differences), events[at]


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_agrees_with_itself(name: str) -> None:
    """Reading one leaves nothing that depends on which side it is."""
    from simctl.testing.conform.compare import compare  # noqa: PLC0415

    story = real_story(read_real(recording_of(name)))
    assert compare(story, story).differences == ()


def test_job_ids_may_begin_elsewhere() -> None:
    """The first job of a run is the first of the recording, whatever its number."""

    def renumbered(event: Event) -> Event:
        if not isinstance(event.job, int):
            return event
        step = event.step.replace("3.", "107.") if isinstance(event.step, str) else event.step
        return msgspec.structs.replace(event, job=107, step=step)

    assert found([renumbered(event) for event in held(STEP).events]) == []


def test_each_rule_has_its_reason() -> None:
    """What does not count is declared, with a name of its own."""
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(len(rule.reason.split()) > 5 for rule in RULES)


# The command.


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return a file with a trace of the step."""
    return _written(tmp_path / "trace.jsonl", held(STEP).events)


def _written(path: Path, events: list[Event], model: str = "modern") -> Path:
    lines = [json.dumps({"simctl_trace": 1, "model": model}).encode()]
    lines += [msgspec.json.encode(event) for event in events]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def _conform(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main(["trace", "conform", *map(str, words)])
    out, err = capsys.readouterr()
    return status, out, err


def test_agreement_is_told_with_how_much_was_compared(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 0; the recording may be gzipped or not."""
    plain = trace.parent / "plain.json"
    plain.write_bytes(gzip.decompress(recording_of(STEP).read_bytes()))
    for recording in (recording_of(STEP), plain):
        status, out, _ = _conform(capsys, trace, recording)
        assert status == 0
        assert "33 plugin calls" in out
        assert ": 0 differences, 0 accepted" in out


def test_a_difference_is_shown_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first one first, with what stands around it in the run and in the recording."""
    events = dropped("switch_p_job_fini", node="n2")(held(STEP).events)
    events = changed("switch_p_alloc_jobinfo", where={}, rc=-1)(events)
    status, out, _ = _conform(capsys, _written(tmp_path / "t", events), recording_of(STEP))
    assert status == 1
    assert out.index("result: switch_p_alloc_jobinfo") < out.index("missing call:")
    lines = out.splitlines()
    marked = next(at for at, line in enumerate(lines) if line.startswith("  > ") and "fini" in line)
    assert lines[marked].split("|")[0].strip() == ">"
    assert "MESSAGE_TASK_EXIT" in lines[marked + 2]
    assert lines[marked + 1].count("switch_p_job_postfini") == 2


def test_json_has_the_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An object: counts, and each difference with its kind, its strand and both acts."""
    events = dropped("switch_p_job_fini", node="n2")(held(STEP).events)
    path = _written(tmp_path / "t", events)
    status, out, _ = _conform(capsys, path, recording_of(STEP), "--json")
    assert status == 1
    (difference,) = json.loads(out)["differences"]
    assert (difference["kind"], difference["where"]) == ("missing call", "stepd[3.0]@n2")
    assert difference["run"] is None
    assert "switch_p_job_fini" in difference["recording"]["act"]


ENTRY: Final = """\
- kind: missing call
  where: "stepd[*]@n2"
  what: "switch_p_job_fini*"
  case: not simulated
  reason: for the sake of a test
"""


def test_an_accepted_difference_is_none_and_has_to_be_needed(
    tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that nothing needs any more is told, with exit status 1."""
    accepted = tmp_path / "accepted.yaml"
    accepted.write_text(ENTRY)
    events = dropped("switch_p_job_fini", node="n2")(held(STEP).events)
    path = _written(tmp_path / "t", events)
    status, out, _ = _conform(capsys, path, recording_of(STEP), "--accept", accepted)
    assert (status, ": 0 differences, 1 accepted" in out) == (0, True)
    status, out, _ = _conform(capsys, trace, recording_of(STEP), "--accept", accepted)
    assert (status, "not needed: accepted missing call" in out) == (1, True)
    accepted.write_text(ENTRY + "  recording: another\n")
    status, out, _ = _conform(capsys, trace, recording_of(STEP), "--accept", accepted)
    assert status == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", "expected a list"),
        ("- 1", "expected keys"),
        ("- {kind: missing call}", "what is needed"),
        (ENTRY + "  more: 1\n", "there is no 'more'"),
        (ENTRY.replace("missing call", "lost call"), "there is no kind 'lost call'"),
        (ENTRY.replace("not simulated", "whatever"), "expected a case"),
        ("- [", "cannot read it as YAML"),
    ],
)
def test_a_wrong_file_of_accepted_differences_is_told(
    tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    """Exit status 2, with the entry and what would do."""
    accepted = tmp_path / "accepted.yaml"
    accepted.write_text(text)
    status, _, err = _conform(capsys, trace, recording_of(STEP), "--accept", accepted)
    assert status == 2
    assert told in err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"not json", "cannot read it as a recording"),
        (b"[]", "a JSON array of events"),
        (b'[{"seq": 1}]', "it lacks daemon"),
        (b"\x1f\x8bnothing", "cannot read it as a recording"),
    ],
)
def test_what_is_no_recording_is_told(
    tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str], content: bytes, told: str
) -> None:
    """Exit status 2 and no traceback."""
    path = tmp_path / "recording.json"
    path.write_bytes(content)
    status, _, err = _conform(capsys, trace, path)
    assert status == 2
    assert told in err


@pytest.mark.parametrize("seed", range(25))
def test_a_damaged_recording_is_compared_or_refused(seed: int) -> None:
    """Whatever stands in it: there is a difference, or none, or an error that says where."""
    chance = random.Random(seed)
    recording = read_real(recording_of(STEP))
    for _ in range(chance.randint(1, 4)):
        event = chance.choice(recording)
        fields = event["args"] if event["args"] and chance.random() < 0.5 else event
        key = chance.choice(list(fields))
        fields[key] = chance.choice((None, "", -1, [], {}, "x", 3.5, True, "#1", 10**30))
    told = ""
    try:
        check_events(recording, "recording")
        compare_events(held(STEP).events, recording)
    except RecordingError as error:
        told = str(error)
    assert not told or "event " in told


def test_what_is_no_trace_of_model_modern_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace of model guide, a file that is none, and one that is not there."""
    guide = _written(tmp_path / "guide", held(STEP).events, model="guide")
    for path, told in (
        (guide, "it is of model guide"),
        (recording_of(STEP), "not a trace"),
        (tmp_path / "nowhere", "cannot read it"),
    ):
        status, _, err = _conform(capsys, path, recording_of(STEP))
        assert status == 2
        assert told in err


def test_every_recording_has_a_scenario() -> None:
    """And each folder all it needs."""
    assert NAMES
    for name in NAMES:
        assert recording_of(name).exists()
        assert (FOLDER / name / "scenario.yaml").read_text().startswith("# ")
