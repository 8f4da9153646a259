"""Write what came of tests as a JUnit report, which CI systems read."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from simctl.outputs import REPORT, write_output
from simctl.testing.cases import Outcome, Verdict

_NOT_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped."""

_TAGS: Final = {Verdict.BROKEN: "failure", Verdict.WRONG: "error", Verdict.CRASHED: "error"}


def report(outcomes: Sequence[Outcome]) -> bytes:
    """Return the report, a test case each."""
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", name="simctl")
    for outcome in outcomes:
        _add_case(suite, outcome)
    tags = [_TAGS.get(outcome.verdict) for outcome in outcomes]
    suite.set("tests", str(len(outcomes)))
    suite.set("failures", str(tags.count("failure")))
    suite.set("errors", str(tags.count("error")))
    suite.set("skipped", "0")
    suite.set("time", f"{sum(outcome.wall_s for outcome in outcomes):.3f}")
    ET.indent(suites, " ")
    text: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _add_case(suite: ET.Element, outcome: Outcome) -> None:
    case = outcome.case
    element = ET.SubElement(
        suite,
        "testcase",
        classname=_text(case.path.as_posix()),
        name=_text(case.name),
        file=_text(case.path.as_posix()),
        time=f"{outcome.wall_s:.3f}",
    )
    tag = _TAGS.get(outcome.verdict)
    if tag is not None:
        first = next(iter(outcome.lines), outcome.verdict.value)
        wrong = ET.SubElement(element, tag, type=outcome.verdict.value, message=_text(first))
        wrong.text = _text("\n".join(outcome.lines))
    if outcome.transcript:
        ET.SubElement(element, "system-out").text = _text("\n".join(outcome.transcript))


def _text(text: str) -> str:
    """Escape what XML cannot hold, as Python writes it."""
    return _NOT_XML.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def write(path: Path, outcomes: Sequence[Outcome], *, force: bool) -> None:
    """Write the report to a file, and the folders it is to stand in.

    Raises:
        OSError: That cannot be done.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_output(path, REPORT, report(outcomes), force=force)
