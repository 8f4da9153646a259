"""What a person has in the session: a user's name, files, programs; and saving it all."""

import re
from typing import Any

import yaml

from simctl import yaml_text
from simctl.kernel.pattern import near
from simctl.repl import words
from simctl.repl.acts import Deed
from simctl.repl.errors import CommandError
from simctl.repl.registry import command
from simctl.repl.saving import save_session
from simctl.repl.session import Session

_HERE = re.compile(r"(?:>\s*(?P<a>\S+)\s*<<\s*(?P<x>\S+)|<<\s*(?P<y>\S+)\s*>\s*(?P<b>\S+))")
_MOST_LINES = 10_000


@command(
    "as",
    usage="as USER [COMMAND]",
    topic="session",
    example="as bob",
    words=words.users,
)
def act_as(session: Session, rest: str) -> None:
    """Type Slurm's commands as another user from now on; with a command, for that one alone."""
    name, _, line = rest.partition(" ")
    users = session.world.site.users
    if name not in users:
        raise CommandError(f"there is no user {name[:40]!r}{near(name[:40], list(users))}")
    before, session.desk.user = session.desk.user, name
    if line.strip():
        try:
            session.obey(line)
        finally:
            session.desk.user = before


@command(
    "cat",
    usage="cat FILE | cat > FILE <<EOF",
    topic="session",
    example="cat hello.sh",
    words=words.files,
)
def cat(session: Session, rest: str) -> None:
    """Print a file of the user's; or write one: the lines up to EOF follow."""
    match = _HERE.fullmatch(rest)
    if match is not None:
        name = match["a"] or match["b"]
        _write(session, name, _here(session, (match["x"] or match["y"]).strip("'\"")))
        return
    if not rest or ">" in rest or "<" in rest:
        raise CommandError("expected `cat FILE`, or `cat > FILE <<EOF` and its lines up to EOF")
    user = session.world.site.users[session.desk.user]
    text = session.world.disk.read(rest, user.home)
    if text is None:
        raise CommandError(f"{user.name} has no file {rest[:80]!r}")
    session.say(text)


@command(
    "ls", usage="ls [FOLDER]", topic="session", example="ls", aliases=("dir",), words=words.files
)
def ls(session: Session, rest: str) -> None:
    """List the user's files, and the programs that are described; or the files in a folder."""
    user = session.world.site.users[session.desk.user]
    disk = session.world.disk
    folder = disk.resolve(rest or ".", user.home)
    if rest and not disk.is_directory(folder):
        raise CommandError(f"{user.name} sees no folder {rest[:80]!r}")
    names = disk.names("login", folder)
    session.say("  ".join(names) if names else f"{folder} is empty")
    if not rest and session.scenario.programs:
        session.say(f"programs: {'  '.join(session.scenario.programs)}")


@command("edit", usage="edit FILE", topic="session", example="edit hello.sh", words=words.files)
def edit(session: Session, rest: str) -> None:
    """Edit a file of the user's with $VISUAL or $EDITOR, on a terminal."""
    if not rest:
        raise CommandError("expected a file: `edit hello.sh`")
    user = session.world.site.users[session.desk.user]
    before = session.world.disk.read(rest, user.home) or ""
    text = session.front.edit(rest, before)
    if text == before:
        session.say("nothing changed")
    else:
        _write(session, rest, text)


def _here(session: Session, end: str) -> str:
    lines: list[str] = []
    while (line := session.front.more()) is not None and line != end:
        lines.append(line)
        if len(lines) > _MOST_LINES:
            raise CommandError(f"more than {_MOST_LINES} lines without {end!r}")
    if line is None:
        raise CommandError(f"the file has no end: a line with {end!r} alone was expected")
    return "".join(f"{each}\n" for each in lines)


def _write(session: Session, name: str, text: str) -> None:
    session.act({"as": session.desk.user, "files": {name: text}})


@command(
    "program",
    usage="program NAME runs TIME [exit N] [signal NAME] | program NAME {YAML}",
    topic="session",
    example="program ./app runs 30s exit 1",
)
def program(session: Session, rest: str) -> None:
    """Say what a simulated program does, in the words of a scenario's `programs:`."""
    name, _, what = rest.partition(" ")
    what = what.strip()
    if not name or not what:
        raise CommandError("expected `program ./app runs 30s`")
    session.act({"programs": {name: _flow(what) if what.startswith("{") else _pairs(what)}})


def _flow(what: str) -> Any:
    try:
        return yaml_text.load(what)
    except yaml.YAMLError as error:
        raise CommandError(f"not YAML: {str(error).splitlines()[0]}") from error


def _pairs(what: str) -> Deed:
    parts = what.split()
    if len(parts) % 2:
        raise CommandError(f"{parts[-1][:40]!r} has no value: `runs 30s exit 1`")
    found: Deed = {}
    for key, value in zip(parts[::2], parts[1::2], strict=True):
        found[key] = int(value) if re.fullmatch("-?[0-9]{1,18}", value) else value
    return found


@command("save", usage="save [--force] FILE", topic="session", example="save my_session.yaml")
def save(session: Session, rest: str) -> None:
    """Write the session as a scenario that repeats it: `simctl run FILE` gives the same trace.

    A file that is there is left alone unless it is a saved session, or you say --force.
    """
    force = rest.split(maxsplit=1)[:1] == ["--force"]
    name = rest.removeprefix("--force").lstrip() if force else rest
    if not name:
        raise CommandError("expected a file: `save my_session.yaml`")
    for line in save_session(session, name, force=force):
        session.say(line)
