"""A session's side of the conversation with its page: one message a prompt, one line an answer."""

import json
import socket
from typing import IO, Any, Final

import msgspec

from simctl.kernel.due import next_turns, who_is
from simctl.repl.changes import tell_changes
from simctl.repl.fronts import Front
from simctl.repl.session import Session
from simctl.scenario.durations import format_moment

_CHUNK: Final = 1 << 16
_DUE: Final = 12
_JOBS: Final = 200
_LINES: Final = 40


class WebFront(Front):
    """Lines from a page, through a server; what is said goes with the next message."""

    greets = True

    def __init__(self, out: IO[str], link: socket.socket) -> None:
        super().__init__(out)
        self._session: Session | None = None
        self._link = link
        self._said: list[str] = []
        self._read = b""
        self._more: list[str] = []
        self._sent = 0
        """How many events the server has."""

    def attend(self, session: Session) -> None:
        """Tell the page of this session from now on."""
        self._session = session

    def write(self, text: str, colour: str = "") -> None:
        """Keep a text for the next message."""
        self._said.append(text)

    def flush(self) -> None:
        """Do nothing: what is said goes with the next message."""

    def read(self, prompt: str) -> str | None:
        """Tell how things stand; return what is to be done, None if the browser is gone."""
        while True:
            self._tell(prompt)
            line = self._line()
            if line is None:
                return None
            first, *self._more = line.split("\n")
            self.write(f"> {first}\n" + "".join(f". {each}\n" for each in self._more))
            if not _leads_elsewhere(first):
                return first
            self.write("error: `save` takes a plain name here: the file lies where simctl runs\n")

    def more(self) -> str | None:
        """Return the next line of what came with the command."""
        return self._more.pop(0) if self._more else None

    def _line(self) -> str | None:
        while b"\n" not in self._read:
            try:
                chunk = self._link.recv(_CHUNK)
            except OSError:
                return None
            if not chunk:
                return None
            self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        return str(json.loads(line))

    def _tell(self, prompt: str) -> None:
        message = self._message(prompt)
        self._said = []
        self._link.sendall(msgspec.json.encode(message, enc_hook=str) + b"\n")

    def _message(self, prompt: str) -> dict[str, Any]:
        session = self._session
        assert session is not None
        world = session.world
        # Going back may have taken events away that the server has.
        self._sent = min(self._sent, world.trace.seq)
        events = world.events[self._sent : world.trace.seq]
        start, self._sent = self._sent, world.trace.seq
        call = session.call
        due = [] if session.over else next_turns(world.kernel, _DUE)
        return {
            "said": "".join(self._said),
            "prompt": prompt,
            "start": start,
            "events": events,
            "now": format_moment(world.kernel.now_us),
            "ahead": session.ahead(),
            "over": session.over,
            "between": session.kind == "turn",
            "at": session.event.seq if session.event is not None else None,
            "call": None if call is None else {"name": call.name, "who": who_is(call.who)},
            "due": [
                {
                    "when": format_moment(each.due_us),
                    "text": f"{each.who} {each.what}",
                    "rank": each.rank if each.due_us == due[0].due_us else 0,
                }
                for each in due
            ],
            "user": session.desk.user,
            "users": sorted(world.site.users),
            "breaks": [{"number": each.number, "told": each.told} for each in session.desk.breaks],
            "changed": [*tell_changes(world, session.before)][:_LINES]
            if session.before is not None
            else [],
            "nodes": [{"name": node.name, "state": node.base.name} for node in world.ctld.nodes],
            "jobs": [
                {
                    "id": job.job_id,
                    "label": str(job.job_id),
                    "state": str(job.state),
                    "user": world.site.user_name(job.desc.uid),
                    "nodes": job.node_list,
                }
                for job in [*world.ctld.jobs.values()][-_JOBS:]
            ],
        }

    def unread(self) -> Any:
        """Return what was read ahead, and what was said and not told."""
        return self._read, self._more, self._said, self._sent

    def resume(self, unread: Any) -> None:
        """Go on with what another process of this session had read and not told."""
        self._read, self._more, said, self._sent = unread
        self._said = list(said)


def _leads_elsewhere(line: str) -> bool:
    """Return whether a line would write a file outside of the folder at hand."""
    word, *names = line.split()[:1] + line.split()[1:]
    return word == "save" and any("/" in name or name.startswith(".") for name in names)
