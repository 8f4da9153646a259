"""Tries mutants: which tests reach them is found once, then each is shown to those alone."""

import hashlib
import json
import re
import selectors
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import attrs

from tests.mutants.catalogue import Mutant, probed, replaced
from tests.mutants.copies import Copy
from tests.mutants.sites import Finder

_SHIPPED: Final = "tests/test_shipped_scenarios.py::test_does_what_it_says"
_CHUNK: Final = 200
"""How many tests are probed by one request."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What became of a mutant."""

    id: str
    key: str
    """Changes when the mutated function does."""

    stage: str
    """What caught it: ``rules``, ``tests``, ``goldens`` or nothing."""

    by: str
    why: str
    reached: int
    """How many tests and scenarios reach the place."""

    left: int = 0
    """How many tests there was no time for."""

    took_s: float = 0.0


@attrs.define
class Reach:
    """Which tests reach which probes, and how long each takes."""

    hits: dict[str, list[str]] = attrs.field(factory=dict)
    took_s: dict[str, float] = attrs.field(factory=dict)
    failing: dict[str, str] = attrs.field(factory=dict)
    """Tests that fail in the copy without a mutation, and so can say nothing."""

    hashes: dict[str, str] = attrs.field(factory=dict)
    """Of each file of tests as it was when it was probed, and of all else."""


class Crew:
    """Copies of the tree that work side by side."""

    def __init__(self, root: Path, workers: int, tests: Sequence[str] = ()) -> None:
        self._stack = ExitStack()
        self._copies = []
        try:
            for _ in range(workers):
                copy = Copy(root, tests)
                self.tree = copy.tree
                self._stack.callback(copy.close)
                self._copies.append(copy)
            for copy in self._copies:
                self.items: list[dict[str, Any]] = copy.answer()
        except BaseException:
            self._stack.close()
            raise

    def close(self) -> None:
        """Remove the copies."""
        self._stack.close()

    def do(
        self, jobs: Iterable[tuple[Any, dict[str, Any]]]
    ) -> Iterator[tuple[Any, dict[str, Any], float]]:
        """Hand jobs out; give each one's name, its answer and how long it took, as they end."""
        waiting = iter(jobs)
        under_way: dict[int, tuple[Any, float]] = {}
        with selectors.DefaultSelector() as selector:

            def start(copy: Copy) -> None:
                job = next(waiting, None)
                if job is not None:
                    under_way[copy.answers] = job[0], time.monotonic()
                    copy.ask(job[1])

            for copy in self._copies:
                selector.register(copy.answers, selectors.EVENT_READ, copy)
                start(copy)
            while under_way:
                for key, _ in selector.select():
                    answer = key.data.answer()
                    name, began = under_way.pop(key.fd)
                    start(key.data)
                    yield name, answer, time.monotonic() - began


def probe(crew: Crew, root: Path, finder: Finder, reach: Reach, say: Callable[[str], None]) -> None:
    """Bring up to date which tests reach what."""
    hashes = _hashes(root)
    if reach.hashes.get("") != hashes[""]:
        for known in (reach.hashes, reach.hits, reach.took_s, reach.failing):
            known.clear()
    files = {item["id"]: _file(item["id"]) for item in crew.items}
    stale = {file for file in files.values() if reach.hashes.get(file) != hashes[file]}
    _forget(reach, {name for name in {*reach.took_s, *reach.failing} if _file(name) in stale})
    fresh = [name for name, file in files.items() if file in stale]
    if fresh:
        say(f"running {len(fresh)} tests once, to see what each reaches")
    request = {"do": "probe", **_code(root, finder)}
    todo = [fresh[start : start + _CHUNK] for start in range(0, len(fresh), _CHUNK)]
    while todo:
        jobs = ((chunk, {**request, "tests": chunk}) for chunk in todo)
        todo = []
        for chunk, answer, _ in crew.do(jobs):
            if "probed" in answer:
                _note(reach, answer["probed"])
            elif answer["caught"] in chunk:
                reach.failing[answer["caught"]] = answer["why"]
                todo.append([name for name in chunk if name != answer["caught"]])
            else:
                raise RuntimeError(f"{answer['caught']} {answer['why']} without any mutation")
            say(f"  {len(reach.took_s)} of {len(files)}")
    reach.hashes.update({name: hashes[name] for name in ("", *stale)})


def _note(reach: Reach, tests: list[dict[str, Any]]) -> None:
    for test in tests:
        reach.took_s[test["id"]] = test["took_s"]
        if test["failed"]:
            reach.failing[test["id"]] = test["failed"]
        for hit in test["hits"]:
            reach.hits.setdefault(hit, []).append(test["id"])


def _file(name: str) -> str:
    return name.partition("::")[0]


def _forget(reach: Reach, names: set[str]) -> None:
    for name in names:
        reach.took_s.pop(name, None)
        reach.failing.pop(name, None)
    for probe_name, tests in reach.hits.items():
        reach.hits[probe_name] = [name for name in tests if name not in names]


def _hashes(root: Path) -> dict[str, str]:
    """Return a digest of each file of tests by its path, and one of all other code by ``""``."""
    found = {}
    rest = hashlib.sha256()
    for folder in ("simctl", "nodes", "stepd", "plugins", "scenarios", "tests"):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in {".py", ".yaml", ".sh"} or name.startswith("tests/mutants/"):
                continue
            content = path.read_bytes()
            if folder == "tests" and path.name.startswith("test_"):
                found[name] = hashlib.sha256(content).hexdigest()
            else:
                rest.update(name.encode() + b"\0" + content)
    return found | {"": rest.hexdigest()}


def _code(root: Path, finder: Finder) -> dict[str, Any]:
    """Return every function with probes, as a request wants it."""
    changes: dict[tuple[str, str], dict[str, str]] = {}
    for place in finder.places:
        text = probed(finder, place)
        if text:
            changes.setdefault((place.path, place.module), {})[place.name] = text
    files, code = {}, {}
    for (path, module), functions in changes.items():
        source = replaced((root / path).read_text(), functions)
        files[path] = source
        code[module] = {"source": source, "functions": list(functions)}
    return {"files": files, "code": code}


def attempt(crew: Crew, chosen: list[Mutant], reach: Reach, budget_s: float) -> Iterator[Outcome]:
    """Try mutants; give what becomes of each, as they are done with."""
    root = crew.tree
    there = {item["id"] for item in crew.items}
    golden = {item["id"] for item in crew.items if item["golden"]}
    mentions = _Mentions(root)
    # Read before anything is mutated there.
    sources = {path: (root / path).read_text() for path in {each.path for each in chosen}}

    def jobs() -> Iterator[tuple[tuple[Mutant, int], dict[str, Any]]]:
        for mutant in chosen:
            reaching = reach.hits.get(mutant.block if mutant.moves else mutant.site, [])
            good = [name for name in reaching if name in there and name not in reach.failing]
            at_once = frozenset(reach.hits.get(mutant.site, ()))
            point = re.split(r"[:#()]", mutant.id)[2]

            def rank(
                name: str, at_once: frozenset[str] = at_once, point: str = point
            ) -> tuple[Any, ...]:
                return (
                    name not in at_once,
                    not mentions.of(_file(name), point),
                    reach.took_s[name],
                    name,
                )

            good.sort(key=rank)
            source = replaced(sources[mutant.path], {mutant.function: mutant.text})
            request = {
                "do": "hunt",
                "files": {mutant.path: source},
                "code": {mutant.module: {"source": source, "functions": [mutant.function]}},
                "scenarios": [_stem(name) for name in good if name.startswith(_SHIPPED)],
                "tests": [name for name in good if name not in golden],
                "goldens": [name for name in good if name in golden],
                "budget_s": budget_s,
            }
            yield (mutant, len(good)), request

    for (mutant, reached), answer, took_s in crew.do(jobs()):
        yield Outcome(
            id=mutant.id,
            key=key_of(mutant),
            stage=answer.get("stage", "tests"),
            by=answer["caught"],
            why=answer["why"][:300],
            reached=reached,
            left=answer.get("left", 0),
            took_s=round(took_s, 2),
        )


def key_of(mutant: Mutant) -> str:
    """Return what is another when a mutated function is."""
    return hashlib.sha256(mutant.text.encode()).hexdigest()[:16]


def _stem(name: str) -> str:
    return name.rpartition("[")[2].rstrip("]")


class _Mentions:
    """Tells which files of tests name a function."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._texts: dict[str, str] = {}

    def of(self, file: str, word: str) -> bool:
        if file not in self._texts:
            self._texts[file] = (self._root / file).read_text()
        return word in self._texts[file]


def load(path: Path) -> Reach:
    """Read what is known of an earlier run."""
    return Reach(**json.loads(path.read_text())) if path.exists() else Reach()


def keep(path: Path, reach: Reach) -> None:
    """Write it down for the next."""
    path.write_text(json.dumps(attrs.asdict(reach)))
