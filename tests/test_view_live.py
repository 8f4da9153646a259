"""`simctl view --live`: a session in the browser, and who may ask its server for what."""

import http.client
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from simctl import cli
from tests.browser import Browser, Tab, browser

_S = 30.0


class Live:
    """`simctl view --live` under way."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "simctl", "view", "--live", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], _S)[0]
        self.url = self.process.stdout.readline().strip()

    @property
    def port(self) -> int:
        """Return where it listens."""
        return urlsplit(self.url).port or 0

    def ask(
        self, path: str, method: str = "GET", body: str = "", **headers: str
    ) -> tuple[int, str]:
        """Ask the server as somebody else than its page would; return status and answer."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        link.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            link.putheader(name, value)
        link.putheader("Content-Length", str(len(body)))
        link.endheaders(body.encode())
        answer = link.getresponse()
        found = answer.read(200).decode(errors="replace")
        link.close()
        return answer.status, found

    def children(self) -> list[int]:
        """Return the processes of the session: the first one, and what it has forked."""
        found = [self.process.pid]
        for pid in found:
            path = Path(f"/proc/{pid}/task/{pid}/children")
            found += [int(each) for each in path.read_text().split()] if path.exists() else []
        return found[1:]

    def end(self) -> int:
        """Wait for its end, bounded; return its exit status."""
        try:
            return self.process.wait(_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()


@contextmanager
def live(folder: Path, *words: str) -> Iterator[Live]:
    """Give a session that is ended whatever happens, with everything it started."""
    started = Live(folder, *words)
    try:
        yield started
    finally:
        children = started.children()
        if started.process.poll() is None:
            started.process.send_signal(signal.SIGINT)
            started.end()
        for pid in children:
            assert not _alive(pid)


def _alive(pid: int) -> bool:
    ends = time.monotonic() + _S
    while time.monotonic() < ends:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Give one browser to all tests of this file."""
    with browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


def _opened(chromium: Browser, session: Live) -> Tab:
    tab = chromium.tab()
    tab.size(1600, 900)
    tab.open(session.url)
    tab.until("live.waits || live.now")
    return tab


def _do(tab: Tab, line: str) -> None:
    """Type a line, and wait until the session waits again."""
    tab.click("#line")
    tab.type(line)
    tab.key("Enter")
    tab.until("!live.waits || document.getElementById('line').value === ''")
    tab.until("live.waits")


def test_a_session_is_stepped_gone_back_in_and_saved_from_the_page(
    tmp_path: Path, chromium: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """Buttons and typed lines do what they do on a terminal; the picture follows."""
    with live(tmp_path, "two_nodes") as session:
        tab = _opened(chromium, session)
        tab.click('#acts [data-do="step"]')
        tab.until("live.waits && live.events.length === 1")
        _do(tab, "until switch_p_job_attach")
        events = tab.run("live.events.length")
        assert tab.text("#panel h2").startswith("switch_p_job_attach")
        assert tab.run("simctl.model.events.length") == events
        tab.click('#here [data-do="break switch_p_job_attach node=n1"]')
        tab.until("live.waits && live.now.breaks.length === 1")
        assert "break switch_p_job_attach node=n1" in tab.text("#stand .break")
        _do(tab, "continue")
        assert "answer for the plugin" in tab.text("#stand")
        tab.click('#answer [data-do="fail"]')
        tab.until("live.waits && live.events.length > " + str(events))
        tab.until("live.waits")
        failed = "live.events.filter(e => e.name === 'switch_p_job_attach' && e.rc === -1).length"
        assert tab.run(failed) == 1
        assert tab.text("#changed")
        tab.run("simctl.select(20, true)")
        tab.click('#here [data-do^="back "]')
        tab.until("live.waits && live.events.length === 20")
        assert tab.run(failed) == 0
        assert tab.run("simctl.model.events.length") == 20
        _do(tab, "run 10s")
        tab.run("document.getElementById('save').value = 'mine.yaml'")
        tab.click("#keep")
        tab.until("document.getElementById('said').textContent.includes('written to mine.yaml')")
        _do(tab, "save ../elsewhere.yaml")
        assert "takes a plain name here" in tab.text("#said")
        tab.click('[data-dot="1"]')
        tab.until("live.waits && live.now.breaks.length === 2")
        assert "break * pid=1" in tab.text("#stand")
        _do(tab, "delete")
        tab.click('#stand [data-do="crash n2"]')
        tab.until("live.waits && document.getElementById('said').textContent.includes('crash n2')")
        _do(tab, "run 400s")
        assert "n2 DOWN" in " ".join(tab.text("#stand").split())
        assert tab.errors == []
        tab.call("Page.close")
    assert not (tmp_path.parent / "elsewhere.yaml").exists()
    assert cli.main(["run", str(tmp_path / "mine.yaml"), "--quiet"]) == cli.OK


def test_who_goes_first_is_chosen_by_a_button(tmp_path: Path, chromium: Browser) -> None:
    """Of turns that are due at one moment the one that is clicked goes first."""
    with live(tmp_path, "two_nodes") as session:
        tab = _opened(chromium, session)
        assert "choose who goes first" in tab.text("#stand")
        second = tab.run("live.now.due[1].text")
        tab.click('#stand .due[data-do="pick 2"]')
        tab.until("live.waits && live.now.due[0].text === " + repr(second))
        tab.call("Page.close")


def test_two_pages_may_look_and_one_acts(tmp_path: Path, chromium: Browser) -> None:
    """The second sees what the first does, may not act, and may take over; or when that leaves."""
    with live(tmp_path, "two_nodes") as session:
        one = _opened(chromium, session)
        other = _opened(chromium, session)
        other.until("!live.acts")
        one.run("live.do('step 5')")
        other.until("live.events.length === 5")
        assert other.run("document.querySelector('#acts [data-do=step]').disabled")
        assert "another page acts" in other.run("live._post('/do', {line: 'step'})")
        other.click("#take")
        one.until("!live.acts")
        other.until("live.acts && live.waits")
        other.run("live.do('step')")
        one.until("live.events.length === 6")
        other.call("Page.reload")
        one.until("live.acts && live.waits")
        other.until("globalThis.live?.now && !live.acts")
        one.call("Page.close")
        other.until("live.acts && live.waits")
        other.call("Page.close")


def test_what_goes_on_is_stopped_and_the_page_that_closes_ends_all(
    tmp_path: Path, chromium: Browser
) -> None:
    """Stop is Ctrl-C; when nobody looks any more, the session ends with status 0."""
    scenario = tmp_path / "long.yaml"
    scenario.write_text(
        "nodes: [{name: n1}]\npartitions: [{name: d, nodes: n1, default: true}]\n"
        'users: {a: 1001}\nfiles: {a.sh: "#!/bin/sh\\nsrun sleep 1000000"}\n'
        "timeline: [{at: 0s, as: a, run: sbatch a.sh}]\n"
        "slurm_conf: {SlurmdTimeout: 2, SchedulerParameters: sched_interval=1}\n"
    )
    with live(tmp_path, str(scenario)) as session:
        tab = _opened(chromium, session)
        tab.run("live.do('run 100000000s')")
        tab.until("live.busy")
        tab.click("#halt")
        tab.until("live.waits")
        assert "interrupted" in tab.text("#said") or "now;" in tab.text("#said")
        children = session.children()
        assert children
        tab.call("Page.close")
        assert session.end() == cli.OK
        assert not any(_alive(pid) for pid in children)


def test_only_its_own_page_with_the_token_is_answered(tmp_path: Path) -> None:
    """No other name, page or token: 403; and no file of the machine is given to anyone."""
    with live(tmp_path, "two_nodes") as session:
        query = urlsplit(session.url).query
        here = f"127.0.0.1:{session.port}"
        assert session.ask(f"/?{query}")[0] == 200
        assert session.ask(f"/?{query}", Host=f"localhost:{session.port}")[0] == 200
        for status, path, headers in (
            (403, "/", {}),
            (403, "/?t=wrong", {}),
            (403, "/events?tab=x", {}),
            (403, f"/?{query}", {"Host": "evil.example"}),
            (403, f"/?{query}", {"Host": f"evil.example:{session.port}"}),
            (403, f"/?{query}", {"Host": here, "Origin": "http://evil.example"}),
            (404, f"/etc/passwd?{query}", {}),
            (404, f"/../../etc/passwd?{query}", {}),
            (404, f"/%2e%2e/%2e%2e/etc/passwd?{query}", {}),
            (404, f"/page.html?{query}", {}),
        ):
            found = session.ask(path, **headers)
            assert found[0] == status, (path, headers, found)
            assert "root:" not in found[1]
        assert session.ask("/do", "POST", '{"tab": "x", "line": "step"}')[0] == 403
        for body, status in (("[1]", 400), ("{", 400), ("", 400), ("[" * 5000, 400)):
            assert session.ask(f"/do?{query}", "POST", body)[0] == status
        assert session.ask(f"/other?{query}", "POST", "{}")[0] == 404
        sockets = Path(f"/proc/{session.process.pid}/net/tcp").read_text()
        listens = re.findall(rf"([0-9A-F]{{8}}):{session.port:04X} 00000000:0000 0A", sockets)
        assert listens == ["0100007F"]


def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    """Also of a session that nobody has opened."""
    with live(tmp_path) as session:
        children = session.children()
        session.process.send_signal(signal.SIGINT)
        assert session.end() == cli.INTERRUPTED
        assert not any(_alive(pid) for pid in children)


def test_a_port_in_use_and_a_wrong_scenario_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is started."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = ["view", "--live", "two_nodes", "--port", str(port)]
        assert cli.main(words) == cli.WRONG_INPUT
        assert f"--port: cannot listen at 127.0.0.1:{port}" in capsys.readouterr().err
    bad = tmp_path / "bad.yaml"
    bad.write_text("nodes: 7\n")
    assert cli.main(["view", "--live", str(bad)]) == cli.WRONG_INPUT
    assert cli.main(["view", "two_nodes", "--port", "80"]) == cli.WRONG_INPUT
    assert "--port goes with --live" in capsys.readouterr().err
