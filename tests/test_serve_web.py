"""The page of a served cluster: what happens comes to it, and what is typed there happens."""

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simctl.testing.served import CLUSTER, Served
from tests.browser import browser

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="serve needs Linux")
LONG_S = 20.0


def messages(stream: Any) -> Iterator[dict[str, Any]]:
    """Yield what a page is told of how things stand."""
    for line in stream:
        told = json.loads(line[6:]) if line.startswith(b"data: ") else {}
        if "prompt" in told:
            yield told


def test_a_page_shows_a_served_cluster_and_takes_words_of_ctl() -> None:
    """It is for whoever has the token, at 127.0.0.1 alone."""
    cluster = Served(CLUSTER, "--scale", "10", "--web")
    try:
        found = re.search(r"its page is (http://127\.0\.0\.1:\d+)/\?t=(\S+)", cluster.said)
        assert found is not None
        base, token = found.groups()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{base}/?t=guess", timeout=LONG_S)
        page = urllib.request.urlopen(f"{base}/?t={token}", timeout=LONG_S).read().decode()
        assert re.search(r'"kind":\s*"served"', page)
        with urllib.request.urlopen(f"{base}/events?t={token}&tab=a", timeout=LONG_S) as stream:
            told = messages(stream)
            assert cluster.run("sbatch", "--wrap", "exit 3").returncode == 0
            events: list[Any] = []
            for each in told:
                events[each["start"] :] = each["events"]
                if any(job["state"] == "FAILED" for job in each["jobs"]):
                    break
            assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
            assert do(f"{base}/do?t={token}", "crash n1 noticed") == "done"
            said = next(each for each in told if "fault: crash n1 noticed" in each["said"])
            assert "> crash n1 noticed\n" in said["said"]
            assert do(f"{base}/do?t={token}", "nonsense") == "done"
            assert any("expected one of" in each["said"] for each in told)
            assert do(f"{base}/do?t={token}", "stop") == "done"
        assert cluster.process.wait(LONG_S) == 0
    finally:
        cluster.close()


def do(address: str, line: str) -> str:
    """Type a line on the page; return what the server says to that."""
    data = json.dumps({"tab": "a", "line": line}).encode()
    answer: bytes = urllib.request.urlopen(address, data, timeout=LONG_S).read()
    return answer.decode()


def test_a_browser_shows_a_job_come_run_and_end_and_that_the_cluster_has_ended(
    tmp_path: Path,
) -> None:
    """And who has another token is told to open the address that was printed."""
    with browser(tmp_path) as chromium:
        cluster = Served(CLUSTER, "--scale", "10", "--web")
        try:
            found = re.search(r"its page is (\S+\?t=)(\S+)", cluster.said)
            assert found is not None
            stranger, tab = chromium.tab(), chromium.tab()
            stranger.open(f"{found[1]}guess")
            assert stranger.text().strip() == "open the address that simctl printed"
            tab.open(found[1] + found[2])
            tab.until("live.now && !live.now.jobs.length")
            cluster.run("sbatch", "--wrap", "until test -e go; do sleep 0.1; done; exit 3")
            row = "document.querySelector('#panel table')?.innerText.replace(/\\s+/g, ' ') ?? ''"
            for state in ("RUNNING", "FAILED"):
                tab.until(f"/ 1 \\S+ {state} on n1/.test({row})")
                (cluster.path.parent / "go").touch()
            assert cluster.ask("stop").status == 0
            tab.until("live.ended")
            assert "The cluster is served no more." in tab.text("#said")
            assert tab.text("#stand h3").lower() == "ended"
            assert tab.run("document.getElementById('line').disabled")
            assert [each for each in tab.errors if "403" not in each] == []
        finally:
            cluster.close()
