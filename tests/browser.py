"""A headless Chromium for tests of pages, spoken to by the DevTools protocol over pipes."""

import json
import os
import select
import shutil
import signal
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import F_DUPFD, fcntl
from pathlib import Path
from typing import Any, Final

import pytest

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS: Final = 60.0
_HIGH: Final = 60
_KEYS: Final = {
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "Escape": 27,
    "Enter": 13,
}


def find_browser() -> str | None:
    """Return the browser of this machine, if it has one."""
    found = (shutil.which(name) for name in _NAMES)
    return next((each for each in found if each), None)


class PageError(AssertionError):
    """A page threw an error, or the browser did not answer."""


class Tab:
    """A page that is open in the browser."""

    def __init__(self, browser: "Browser", session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol in this page; return its result."""
        return self._browser.call(method, self._session, **params)

    def open(self, url: str) -> None:
        """Go to an address, and wait until its page has loaded."""
        self._browser.loaded.discard(self._session)
        self.call("Page.navigate", url=url)
        self._browser.wait(lambda: self._session in self._browser.loaded)

    def run(self, script: str) -> Any:
        """Return what an expression comes to, as JSON can tell it; a promise is awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise PageError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def until(self, script: str) -> Any:
        """Return what an expression comes to, once that is true."""
        ends = time.monotonic() + _SECONDS
        while time.monotonic() < ends:
            found = self.run(script)
            if found:
                return found
            time.sleep(0.02)
        raise PageError(f"never true: {script}")

    def text(self, selector: str = "body") -> str:
        """Return the text of an element."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse, wherever it is seen."""
        place = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "if (!e) return null; if (!e.closest('svg')) e.scrollIntoViewIfNeeded();"
            "const seen = e.matches('g.event') ? e.firstElementChild : e;"
            "const r = seen.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2] })()"
        )
        if place is None:
            raise PageError(f"nothing to click: {selector}")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=place[0],
                y=place[1],
                button="none" if kind == "mouseMoved" else "left",
                clickCount=0 if kind == "mouseMoved" else 1,
            )

    def key(self, name: str) -> None:
        """Press and release a key."""
        text = {"Enter": "\r"}.get(name, name if len(name) == 1 else "")
        code = _KEYS.get(name, ord(name[0].upper()))
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                windowsVirtualKeyCode=code,
                **({"text": text} if text and kind == "keyDown" else {}),
            )

    def type(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.call("Input.insertText", text=text)

    def size(self, width: int, height: int) -> None:
        """Make the window so large."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def theme(self, name: str) -> None:
        """Prefer `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def worked_ms(self, script: str) -> float:
        """Return how long the page's own thread worked for what an expression does, in ms."""
        self.call("Performance.enable", timeDomain="threadTicks")
        before = self._task_s()
        self.run(script)
        return (self._task_s() - before) * 1000

    def _task_s(self) -> float:
        metrics = self.call("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    @property
    def errors(self) -> list[str]:
        """What the page complained of."""
        return self._browser.errors


class Browser:
    """A browser of our own, which ends with this object."""

    def __init__(self, program: str, folder: Path) -> None:
        reads, writes = os.pipe(), os.pipe()
        # Numbers that the two below do not write over.
        to_it, from_it = (fcntl(each, F_DUPFD, _HIGH) for each in (writes[0], reads[1]))
        words = [
            *(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--no-first-run", "--disable-extensions", "--disable-background-networking"),
            *("--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"),
        ]
        # The protocol wants these two numbers.
        wrapped = ["bash", "-c", f'exec "$@" 3<&{to_it} 4>&{from_it}', "bash", *words]
        self._process = subprocess.Popen(
            wrapped,
            pass_fds=(to_it, from_it),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for each in (to_it, from_it, writes[0], reads[1]):
            os.close(each)
        self._read, self._write = reads[0], writes[1]
        self._buffer = b""
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.loaded: set[str] = set()
        self.errors: list[str] = []

    def call(self, method: str, session: str = "", **params: Any) -> Any:
        """Call a method of the protocol; return its result."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        self.wait(lambda: number in self._answers)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise PageError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait(self, until: Any) -> None:
        """Take in what the browser says until something is so."""
        ends = time.monotonic() + _SECONDS
        while not until():
            left = ends - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise PageError("the browser does not answer")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise PageError("the browser has ended")
            *messages, self._buffer = (self._buffer + chunk).split(b"\0")
            for each in messages:
                self._take(json.loads(each))

    def _take(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if "id" in message:
            self._answers[message["id"]] = message
        elif method == "Page.loadEventFired":
            self.loaded.add(message["sessionId"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(message["params"]["exceptionDetails"])[:1000])
        elif method == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.errors.append(str(message["params"]["entry"]["text"]))

    def tab(self) -> Tab:
        """Open a page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        answer = self.call("Target.attachToTarget", targetId=target, flatten=True)
        session = answer["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable", session)
        tab = Tab(self, session)
        tab.size(1280, 800)
        return tab

    def end(self) -> None:
        """End the browser and all that it started."""
        for number in (self._read, self._write):
            os.close(number)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Give a browser; a test is skipped where there is none."""
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium here; install it with the package manager")
    started = Browser(program, folder)
    try:
        yield started
    finally:
        started.end()
