"""The page of a find, beside its scenario: what broke, and where a run that holds parts from it."""

from collections.abc import Sequence
from pathlib import Path

from simctl.status import InputError
from simctl.testing.explore.trial import Broken, Ran


def leave_find(
    file: str,
    ran: Ran,
    held: Ran | None,
    sentences: Sequence[str] = (),
    also: Sequence[Broken] = (),
) -> str:
    """Write the page of a find beside its file; return the name, or nothing if there is none.

    Args:
        file: The scenario that was found.
        ran: Its run, in which something broke.
        held: A run of the same in which all held, if there is one.
        sentences: How the schedules of the two differ.
        also: What broke that the result of the run does not tell.
    """
    from simctl.view.apart import apart_of  # noqa: PLC0415 - only what is found has a page
    from simctl.view.command import write_run  # noqa: PLC0415
    from simctl.view.findings import finding, findings_of  # noqa: PLC0415

    if ran.result is None:
        return ""
    path = str(Path(file).with_suffix(".html"))
    apart = None
    if held is not None and not held.broken:
        found = findings_of(ran.result, ran.events)
        seqs: list[int] = next((each["seqs"] for each in found if each["seqs"]), [])
        apart = apart_of(ran.events, held.events, seqs, "first come, first served", sentences)
    more = [finding(each.kind, each.text, each.detail, []) for each in also]
    try:
        write_run(
            path,
            ran.header,
            ran.events,
            ran.result,
            "page",
            force=False,
            apart=apart,
            also=more,
        )
    except InputError:
        # What was found is told all the same; a page is more than was asked for.
        return ""
    return path
