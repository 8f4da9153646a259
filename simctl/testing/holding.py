"""`simctl trace assert`: expectations held against a trace."""

import sys
from collections.abc import Sequence
from pathlib import Path

from simctl.files import read_text
from simctl.kernel.recording import Recording, RecordingError
from simctl.plugins.points import ALL, OPTIONAL
from simctl.scenario.expectation_text import read_expectations
from simctl.scenario.holding.evidence import NO_EVIDENCE
from simctl.scenario.holding.expect import check
from simctl.scenario.holding.recorded import Recorded
from simctl.scenario.model import (
    CountExpect,
    Expectation,
    JobExpect,
    LookingExpect,
    NeverExpect,
)
from simctl.scenario.positions import ScenarioErrors
from simctl.status import NOT_HELD, OK, WRONG_INPUT
from simctl.testing.reading import known_of, read_whole


def assert_trace(path: Path, texts: Sequence[str], files: Sequence[Path]) -> int:
    """Hold expectations against a trace, print which hold, and return the exit status.

    Args:
        path: The trace.
        texts: Expectations, each as a scenario has it: ``{never: "switch_p_job_fini node=n1"}``.
        files: Files with a list of them, or scenarios, whose `expect:` is taken.
    """
    try:
        recording = read_whole(path)
        expectations = [
            each
            for number, text in enumerate(texts, start=1)
            for each in _read(text, f"expectation {number}", recording)
        ]
        for file in files:
            expectations += _read(_text(file), str(file), recording)
        _refuse_unknowable(expectations, recording, path)
    except ScenarioErrors as error:
        print("\n".join(str(each) for each in error.mistakes), file=sys.stderr)
        return WRONG_INPUT
    except RecordingError as error:
        print(f"simctl: {error}", file=sys.stderr)
        return WRONG_INPUT
    return _hold(expectations, recording)


def _text(file: Path) -> str:
    try:
        return read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        why = (isinstance(error, OSError) and error.strerror) or "it is no text"
        raise RecordingError(f"{file}: cannot read it: {why}") from error


def _read(text: str, file: str, recording: Recording) -> list[Expectation]:
    """Return the expectations of a text; what is about the table of jobs is told and left out."""
    users = recording.header.get("users", {})
    kept: list[Expectation] = []
    known = known_of(recording)
    for each in read_expectations(text, file=file, known=known, users=users):
        if isinstance(each, LookingExpect):
            told = f"{file}:{each.line}: `{each.text}` is left out: {NO_EVIDENCE}"
            print(told, file=sys.stderr)
            continue
        if not isinstance(each, JobExpect):
            kept.append(each)
            continue
        print(
            f"{file}:{each.line}: `{each.text}` is left out: it is about the table of jobs, and a "
            "trace holds none; `count` of job_state with state= says the like",
            file=sys.stderr,
        )
    return kept


def _refuse_unknowable(
    expectations: Sequence[Expectation], recording: Recording, path: Path
) -> None:
    """Refuse what is to be absent, or counted, and may only have been left out of the trace.

    Raises:
        RecordingError: Nothing matches, and the trace has not all kinds of events.
    """
    kinds = recording.header.get("kinds")
    if not kinds:
        return
    run = Recorded(recording.events)
    for each in expectations:
        if not isinstance(each, NeverExpect | CountExpect) or run.matches(each.pattern):
            continue
        if "plugin" not in kinds or each.pattern.name not in {**ALL, **OPTIONAL}:
            raise RecordingError(
                f"{path}: `{each.text}`: nothing matches, and this trace was written with "
                f"--trace-kinds {','.join(kinds)}; write all kinds to know whether it happened"
            )


def _hold(expectations: Sequence[Expectation], recording: Recording) -> int:
    if not expectations:
        print("simctl: trace assert: no expectation is left to be held", file=sys.stderr)
        return WRONG_INPUT
    results = check(expectations, recording.events, ())
    for result in results:
        print(f"{'held  ' if result.held else 'BROKEN'} {result.text}")
        for line in result.detail.splitlines():
            print(f"       {line}")
    return OK if all(result.held for result in results) else NOT_HELD
