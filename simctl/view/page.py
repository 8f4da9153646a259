"""Pages: one file of HTML with its style, its script and its data; it needs no network."""

import base64
import hashlib
import html
import sys
from collections.abc import Sequence
from errno import ENOENT
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from simctl import __version__
from simctl.outputs import Kind, place_of, write_output
from simctl.status import InputError

PAGE: Final = Kind("page", (b'<meta name="generator" content="simctl view',))

_ASSETS: Final = Path(__file__).parent / "assets"
_PICTURE: Final = ("pattern.js", "model.js", "draw.js", "panel.js", "main.js")
TRACE_SCRIPTS: Final = (*_PICTURE, "trace_page.js")
"""What a page of a finished run is made of."""
LIVE_SCRIPTS: Final = (*_PICTURE, "live.js")
"""What the page of a session is made of."""


@cache
def asset(name: str) -> str:
    """Return a file of the room `assets`."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def script_of(names: Sequence[str]) -> str:
    """Return scripts as one, in which their names are their own."""
    body = "\n".join(asset(name) for name in names)
    return f'"use strict";\n(() => {{\n{body}}})();'


def to_json(value: Any) -> str:
    """Return a value as JSON that may stand in a script element: nothing in it ends one."""
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def policy_of(script: str, *, connects: bool = False) -> str:
    """Return what a browser may do for a page: run this script, and load nothing else."""
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    allowed = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'"
    return f"{allowed}; connect-src 'self'" if connects else allowed


def write_page(
    title: str,
    data: Any,
    *,
    scripts: Sequence[str] = TRACE_SCRIPTS,
    template: str = "page.html",
    live: str = "",
    connects: bool = False,
) -> bytes:
    """Return a page.

    Args:
        title: What it is called, in plain text.
        data: What its scripts find in the element `run`, as JSON.
        scripts: Files of `assets`, in the order in which they run.
        template: The file with the body.
        live: More of the body, beside the picture: that of a session.
        connects: Whether it may ask the server it came from.
    """
    script = script_of(scripts)
    parts = {
        "version": __version__,
        "title": html.escape(title),
        "policy": html.escape(policy_of(script, connects=connects)),
        "style": asset("page.css") + (asset("live.css") if live else ""),
        "live": live,
        "data": f'<script type="application/json" id="run">{to_json(data)}</script>\n',
        "script": script,
    }
    pieces: list[str] = []
    rest = asset(template)
    while rest:
        before, brace, after = rest.partition("{")
        name, end, behind = after.partition("}")
        if brace and end and name in parts:
            pieces += (before, parts[name])
            rest = behind
        else:
            pieces += (before, brace)
            rest = after
    return "".join(pieces).encode(errors="replace")


def write(path: str, kind: Kind, data: bytes, option: str, *, force: bool) -> None:
    """Write an output.

    Raises:
        InputError: It cannot be written, or something else is there.
    """
    if path == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        write_output(path, kind, data, force=force)
    except OSError as error:
        raise InputError(f"{option}: cannot write {path}: {error.strerror or error}") from error


def check_output(path: str, kind: Kind, option: str, *, force: bool) -> None:
    """Check beforehand that a file may be written, so that no run is lost for it.

    Raises:
        InputError: It may not.
    """
    if not path:
        raise InputError(f"{option}: name a file")
    if path == "-":
        return
    try:
        place = place_of(path, kind, force=force)
        if place is not None and not place.parent.is_dir():
            raise FileNotFoundError(ENOENT, f"there is no folder {place.parent.name or '/'}")
    except OSError as error:
        raise InputError(f"{option}: cannot write {path}: {error.strerror or error}") from error
