"""The server of a session's page: for this machine alone, and for who has the token."""

import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec

HOST: Final = "127.0.0.1"

_BEAT_S: Final = 1.0
"""How often a page that nothing is told hears that the server is there, in seconds."""
_AWAY_S: Final = 5.0
"""How long no browser may look before the session is over: a page that is loaded anew is away."""
_LINE_BYTES: Final = 1 << 20
_SAID_CHARACTERS: Final = 300_000
_TABS: Final = 20
_CHUNK: Final = 1 << 20
_KEPT: Final = 200
"""How many messages are kept for pages that have not heard them."""


class Conversation:
    """What the session has told so far, and who looks on; threads share it."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._news = threading.Condition()
        self._events: list[msgspec.Raw] = []
        self._said = ""
        self._status: dict[str, Any] = {}
        self._changes: list[bytes] = []
        """The last messages as they came, for pages that are there."""
        self._dropped = 0
        """How many came before those."""

        self.tabs: dict[str, float] = {}
        """Pages that look on, by their names."""
        self.actor = ""
        """The page that acts."""
        self.waiting = False
        """Whether the session waits for a line."""
        self.ended = False
        self.left_at: float | None = None
        """Since when no browser looks, once one has."""

    def listen(self) -> None:
        """Note what the session tells, until it ends."""
        rest = b""
        while True:
            try:
                chunk = self._link.recv(_CHUNK)
            except OSError:
                chunk = b""
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._take(line)
        with self._news:
            self.ended = True
            self._news.notify_all()

    def _take(self, line: bytes) -> None:
        message = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        start = msgspec.json.decode(message["start"], type=int)
        events = msgspec.json.decode(message["events"], type=list[msgspec.Raw])
        with self._news:
            self._events[start:] = [msgspec.Raw(bytes(each)) for each in events]
            self._said += msgspec.json.decode(message["said"], type=str)
            self._said = self._said[-_SAID_CHARACTERS:]
            kept = ("said", "events", "start")
            self._status = {
                key: msgspec.Raw(bytes(value)) for key, value in message.items() if key not in kept
            }
            self._changes.append(line)
            if len(self._changes) > _KEPT:
                dropped = len(self._changes) // 2
                del self._changes[:dropped]
                self._dropped += dropped
            self.waiting = True
            self._news.notify_all()

    def everything(self) -> tuple[bytes, int]:
        """Return all that was told as one message, and how many messages it is made of."""
        with self._news:
            told = {**self._status, "start": 0, "events": self._events, "said": self._said}
            return msgspec.json.encode(told), self._dropped + len(self._changes)

    def next_after(self, number: int) -> tuple[list[bytes], int, bool]:
        """Wait a while for messages after so many; return them, how many these make, and if more.

        A page that is too far behind is told everything anew.
        """
        with self._news:
            self._news.wait_for(
                lambda: self._dropped + len(self._changes) > number or self.ended, _BEAT_S
            )
            if number < self._dropped:
                told, number = self.everything()
                return [told], number, not self.ended
            news = self._changes[number - self._dropped :]
            return news, number + len(news), not self.ended

    def do(self, tab: str, line: str) -> str:
        """Give a line to the session; return what stands in the way, nothing if it was given."""
        with self._news:
            if self.ended:
                return "the session has ended"
            if self.actor not in self.tabs:
                self.actor = tab
            if tab != self.actor:
                return "another page acts; this one looks on"
            if not self.waiting:
                return "the run goes on; stop it first"
            self.waiting = False
            self._link.sendall(json.dumps(line).encode() + b"\n")
        return ""

    def act(self, tab: str) -> None:
        """Let a page be the one that acts."""
        with self._news:
            self.actor = tab

    def enter(self, tab: str) -> bool:
        """Note that a page looks on; false if there are too many already."""
        with self._news:
            if len(self.tabs) >= _TABS:
                return False
            self.tabs[tab] = time.monotonic()
            if self.actor not in self.tabs:
                self.actor = tab
            self.left_at = None
            return True

    def leave(self, tab: str) -> None:
        """Note that a page is gone."""
        with self._news:
            self.tabs.pop(tab, None)
            if self.actor == tab:
                # A page that is loaded anew is another one, and goes on with what it did.
                self.actor = next(iter(self.tabs), "")
            if not self.tabs:
                self.left_at = time.monotonic()

    @property
    def is_deserted(self) -> bool:
        """Whether the last page has gone."""
        return self.left_at is not None and time.monotonic() - self.left_at > _AWAY_S


class Server(ThreadingHTTPServer):
    """Answers the page of one session."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self, port: int, page: bytes, conversation: Conversation, stop: Callable[[], None]
    ) -> None:
        """Listen at a port, 0 for any that is free.

        Raises:
            OSError: It cannot be had.
        """
        super().__init__((HOST, port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.page = page
        self.conversation = conversation
        self.stop = stop

    @property
    def address(self) -> str:
        """Return where the page is, for those who may see it."""
        return f"http://{HOST}:{self.server_port}/?t={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has gone amid an answer."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Print nothing."""

    def do_GET(self) -> None:
        """Give the page, or what the session tells."""
        query = self._checked()
        if query is None:
            return
        path = urlsplit(self.path).path
        if path == "/":
            self._answer(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif path == "/events":
            self._events(query.get("tab", [""])[0][:64])
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here\n")

    def do_POST(self) -> None:
        """Take a line, a stop, or that a page wants to act or has gone."""
        if self._checked() is None:
            return
        asked = self._body()
        if asked is None:
            return
        conversation, tab = self.server.conversation, str(asked.get("tab", ""))[:64]
        path = urlsplit(self.path).path
        if path == "/do":
            why = conversation.do(tab, str(asked.get("line", "")))
            status = HTTPStatus.CONFLICT if why else HTTPStatus.OK
            self._answer(status, (why or "done").encode())
        elif path == "/stop":
            if tab == conversation.actor:
                self.server.stop()
            self._answer(HTTPStatus.OK, b"done")
        elif path == "/act":
            conversation.act(tab)
            self._answer(HTTPStatus.OK, b"done")
        elif path == "/leave":
            conversation.leave(tab)
            self._answer(HTTPStatus.OK, b"done")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here\n")

    def _checked(self) -> dict[str, list[str]] | None:
        """Return the query of a client that may ask; else refuse, and return None."""
        port = self.server.server_port
        hosts = (f"{HOST}:{port}", f"localhost:{port}")
        query = parse_qs(urlsplit(self.path).query)
        given = query.get("t", [""])[0]
        origin = self.headers.get("Origin")
        if self.headers.get("Host") not in hosts:
            # Another name that leads here is another site's page.
            self._answer(HTTPStatus.FORBIDDEN, b"this server answers to its own name alone\n")
        elif origin is not None and origin not in tuple(f"http://{host}" for host in hosts):
            self._answer(HTTPStatus.FORBIDDEN, b"this server answers its own page alone\n")
        elif not hmac.compare_digest(given.encode(), self.server.token.encode()):
            self._answer(HTTPStatus.FORBIDDEN, b"open the address that simctl printed\n")
        else:
            return query
        return None

    def _body(self) -> dict[str, Any] | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LINE_BYTES:
            self.close_connection = True
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"that is too long\n")
            return None
        try:
            found = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            self._answer(HTTPStatus.BAD_REQUEST, b"expected an object\n")
            return None
        return found

    def _answer(self, status: HTTPStatus, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(body)

    def _events(self, tab: str) -> None:
        """Tell a page all there is, and then what comes, until it goes."""
        conversation = self.server.conversation
        if not tab or not conversation.enter(tab):
            self._answer(HTTPStatus.TOO_MANY_REQUESTS, b"too many pages look on\n")
            return
        self.close_connection = True
        try:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            told, number = conversation.everything()
            self._send(told)
            goes_on, actor = True, ""
            while goes_on:
                news, number, goes_on = conversation.next_after(number)
                for each in news:
                    self._send(each)
                if actor != conversation.actor:
                    actor = conversation.actor
                    self._send(json.dumps({"acts": actor == tab}).encode(), "acts")
                self.wfile.write(b": there\n\n")
                self.wfile.flush()
            self._send(b"{}", "ended")
        except OSError:
            # The page has gone.
            pass
        finally:
            conversation.leave(tab)

    def _send(self, message: bytes, name: str = "message") -> None:
        self.wfile.write(b"event: " + name.encode() + b"\ndata: " + message + b"\n\n")
        self.wfile.flush()
