"""The house: its pages name places that are there, functions are short, handlers tell errnos."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from simctl.ctld.daemon import Slurmctld
from simctl.wire.errno import ESLURM_DISABLED, ESLURM_NODES_BUSY

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
PLUGINS = ("switch/elan",)
"""What has a slash and is no path."""

ROOMS = ("simctl", "simctl/ctld")
"""Where a path that a page gives may begin, besides the root."""


def places(text: str) -> Iterator[str]:
    """Return what a page gives as a path: words with a slash, in backticks."""
    for word in re.findall(r"`([\w./-]+)`", text):
        if "/" in word and not word.startswith("/") and word not in PLUGINS:
            yield word


def is_there(place: str) -> bool:
    """Return whether a path is a folder, a file or a module."""
    found = (ROOT / place, *(ROOT / room / place for room in ROOMS))
    return any(path.exists() or path.with_name(f"{path.name}.py").exists() for path in found)


def names_beside(text: str) -> Iterator[tuple[str, str]]:
    """Return each module with the names in backticks that stand right behind it."""
    for place, names in re.findall(r"`([\w/]+/[\w.]+)`( `_?\w+`(?:, `_?\w+`)*)", text):
        for name in re.findall(r"`(\w+)`", names):
            yield place, name


def is_in(place: str, name: str) -> bool:
    """Return whether a module declares a name."""
    for room in ("", *ROOMS):
        path = ROOT / room / place
        path = path if path.suffix == ".py" else path.with_name(f"{path.name}.py")
        if path.is_file():
            return (
                re.search(rf"\b(def|class) {name}\b|^{name}\b", path.read_text(), re.MULTILINE)
                is not None
            )
    return False


def test_every_place_is_there() -> None:
    """A page that a rename has left behind is told."""
    text = "\n".join((ROOT / page).read_text() for page in PAGES)
    assert len(list(places(text))) > 60
    assert [place for place in places(text) if not is_there(place)] == []
    assert len(list(names_beside(text))) > 3
    assert [each for each in names_beside(text) if not is_in(*each)] == []


def test_a_place_that_is_gone_is_noticed() -> None:
    """The check itself: a folder, a module and a name that are not there."""
    text = "`ctld/jobs/completion` `node_is_lost`, `commands/srun_watch`, `simctl/ctld/`, `jobs/`"
    assert [place for place in places(text) if not is_there(place)] == ["commands/srun_watch"]
    assert [each for each in names_beside(text) if not is_in(*each)] == [
        ("ctld/jobs/completion", "node_is_lost")
    ]


LONGEST = 60
"""How many lines a function may have, its signature and docstring among them."""

LONG = {
    "plugins/hooks.py": ["call", "run_function"],
    "plugins/points/declare.py": ["point"],
    "simctl/ctld/daemon.py": ["_all_handlers"],
    "simctl/ctld/reporting/info.py": ["describe_job"],
    "simctl/ctld/reporting/job_fields.py": ["_of_record"],
    "simctl/ctld/state/tables.py": ["__init__"],
    "simctl/serve/client.py": ["follow"],
    "simctl/testing/plugin_check/bench.py": ["run"],
    "simctl/world/world.py": ["__init__"],
}
"""Tables, wiring, and sequences that are best read in one go; the list may only grow shorter."""


def long_functions(text: str) -> Iterator[str]:
    """Return the functions of a module that have too many lines; told from their indentation."""
    open_: list[tuple[int, str, int]] = []
    last = 0
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.lstrip()
        if not bare or bare[0] in ")}]":
            last = number if bare else last
            continue
        indent = len(line) - len(bare)
        while open_ and indent <= open_[-1][0]:
            _, name, first = open_.pop()
            if last - first >= LONGEST:
                yield name
        if found := re.match(r"(?:async )?def (\w+)", bare):
            open_.append((indent, found[1], number))
        last = number
    yield from (name for _, name, first in open_ if last - first >= LONGEST)


def test_functions_are_short() -> None:
    """But for those of the list, which is held both ways."""
    rooms = [ROOT / room for room in ("simctl", "nodes", "stepd", "plugins")]
    found = {
        str(path.relative_to(ROOT)): names
        for room in rooms
        for path in sorted(room.rglob("*.py"))
        if (names := sorted(long_functions(path.read_text())))
    }
    assert found == LONG


def test_a_long_function_is_noticed() -> None:
    """One at the limit is not; methods are looked at as well."""
    body = "    x = 1\n" * LONGEST
    assert list(long_functions(f"def one():\n{body}\n\ndef two():\n    pass\n")) == ["one"]
    assert list(long_functions(f"def one(\n    a,\n):\n{body[: -3 * 10]}")) == []
    nested = "        x = 1\n" * LONGEST
    assert list(long_functions(f"class A:\n    async def b(self):\n{nested}")) == ["b"]


COMPARED = {"node_registration": {"ESLURM_DUPLICATE_JOB_ID"}}
"""Errnos that a handler reads and does not answer."""


def test_handlers_of_slurmctld_say_what_they_answer() -> None:
    """Each ESLURM_* that stands in a handler stands in its docstring."""
    handlers = Slurmctld._all_handlers().values()
    unsaid = {
        handler.__name__: missing
        for handler in handlers
        if (missing := unsaid_errnos(handler) - COMPARED.get(handler.__name__, set()))
    }
    assert unsaid == {}


def unsaid_errnos(handler: Callable[..., Any]) -> set[str]:
    """Return the errnos that a function names and its docstring does not."""
    named = {name for name in handler.__code__.co_names if name.startswith("ESLURM_")}
    return named - set(re.findall(r"ESLURM_\w+", handler.__doc__ or ""))


def test_an_errno_that_is_not_said_is_noticed() -> None:
    """The check itself."""

    def handler() -> tuple[int, int]:
        """Answer ESLURM_NODES_BUSY."""
        return ESLURM_NODES_BUSY, ESLURM_DISABLED

    assert unsaid_errnos(handler) == {"ESLURM_DISABLED"}
