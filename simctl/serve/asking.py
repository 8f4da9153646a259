"""The other end of `serve ctl`: it asks a served cluster for something, and imports little."""

import socket
from pathlib import Path
from typing import Final

import attrs

from simctl.serve.files import SOCKET
from simctl.serve.frames import CONTROL, frame
from simctl.status import NOT_HELD, OK, InputError

_HEAD: Final = 5


@attrs.frozen(kw_only=True)
class Answer:
    """What came of it: an exit status, and what there is to print."""

    status: int
    out: str
    err: str


def ask(folder: Path, line: str, timeout_s: float | None = None) -> Answer:
    """Ask the cluster that is served from a folder; without an answer in time the status is 1.

    Raises:
        InputError: No cluster is served there.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(folder / SOCKET))
        except OSError as error:
            raise InputError(f"serve ctl: no cluster is served from {folder}") from error
        client.sendall(frame(CONTROL, line.encode(errors="surrogateescape")))
        client.settimeout(timeout_s)
        return _answer(client, line)


def _answer(client: socket.socket, line: str) -> Answer:
    buffer = bytearray()
    said = {b"o": bytearray(), b"e": bytearray()}
    status = -1
    while status < 0:
        try:
            data = client.recv(1 << 16)
        except TimeoutError:
            status = NOT_HELD
            break
        except ConnectionError:
            data = b""
        if not data:
            status = OK if line.strip() == "stop" else NOT_HELD
            if status != OK:
                said[b"e"] += b"serve ctl: the cluster has ended\n"
            break
        buffer += data
        while len(buffer) >= (end := _HEAD + int.from_bytes(buffer[1:_HEAD], "big")) >= _HEAD:
            if len(buffer) < _HEAD:
                break
            kind, what = bytes(buffer[:1]), bytes(buffer[_HEAD:end])
            del buffer[:end]
            if kind == b"q":
                status = int(what)
            elif kind in said:
                said[kind] += what
    out, err = (said[kind].decode(errors="replace") for kind in (b"o", b"e"))
    return Answer(status=status, out=out, err=err)
