"""Tries mutants: which tests reach them is found once, then each is shown to those alone.

Where that is done, `simctl.runners` says: by processes of this machine, or on a Dask cluster.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from simctl.runners.brought import Answers, Brought
from simctl.runners.bundle import Bundle
from simctl.runners.running import run
from simctl.runners.work import Where, Work
from tests.mutants.catalogue import Mutant
from tests.mutants.copies import PACKED, pack
from tests.mutants.trying import file_of

_HERE: Final = Path(__file__).parent
_PACKAGES: Final = ("hypothesis", "pytest", "pytest-timeout", "pytest-trio")
_CHUNK: Final = 4
"""How many files of tests are probed at a time: the probes are put in for each time."""


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
    golden: list[str] = attrs.field(factory=list)
    """Tests that compare with golden traces."""

    failing: dict[str, str] = attrs.field(factory=dict)
    """Tests that fail in the copy without a mutation, and so can say nothing."""

    hashes: dict[str, str] = attrs.field(factory=dict)
    """Of each file of tests as it was when it was probed, and of all else."""


@attrs.frozen
class Crew:
    """Who works: a packed tree in a folder, and where its copies work."""

    folder: Path
    where: Where
    tests: Sequence[str] = ()
    """Files of tests, as paths in the tree; all if there is none."""

    @classmethod
    def of(cls, root: Path, folder: Path, where: Where, tests: Sequence[str] = ()) -> "Crew":
        """Return a crew for a tree, packed into a folder."""
        (folder / PACKED).write_bytes(pack(root))
        return cls(folder, where, tests)

    def do(self, function: str, arguments: tuple[Any, ...], chunks: list[Any]) -> Iterator[Answers]:
        """Have chunks run by what a function of `trying` makes; give their answers as they come.

        Raises:
            InputError: Nobody is there to run them, or two workers were killed at one chunk.
        """
        work = Work(
            make=Brought("tests.mutants.trying", function, arguments),
            chunks=chunks,
            in_order=False,
            name="make mutants",
            folder=self.folder,
            bundle=self._bundle,
            packages=_PACKAGES,
        )
        return run(work, self.where, lambda: None)

    def _bundle(self) -> Bundle:
        code = {f"tests/mutants/{path.name}": path.read_bytes() for path in _HERE.glob("*.py")}
        return Bundle(files={**code, PACKED: (self.folder / PACKED).read_bytes()})


def probe(crew: Crew, root: Path, reach: Reach, say: Callable[[str], None]) -> None:
    """Bring up to date which tests reach what."""
    hashes = _hashes(root)
    if reach.hashes.get("") != hashes[""]:
        for known in (reach.hashes, reach.hits, reach.took_s, reach.failing, reach.golden):
            known.clear()
    files = [name for name in hashes if name and (not crew.tests or name in crew.tests)]
    stale = [name for name in files if reach.hashes.get(name) != hashes[name]]
    _forget(reach, set(stale))
    if stale:
        say(f"running {len(stale)} files of tests once, to see what each test reaches")
    chunks = [
        (start, min(start + _CHUNK, len(stale)) - 1) for start in range(0, len(stale), _CHUNK)
    ]
    probed = 0
    for chunk in crew.do("Prober", (stale, list(crew.tests)), chunks) if chunks else ():
        for test in chunk.answers:
            _note(reach, test)
        probed += chunk.last - chunk.first + 1
        say(f"  {probed} of {len(stale)}")
    for hits in reach.hits.values():
        hits.sort()
    reach.hashes.update({name: hashes[name] for name in ("", *stale)})


def _note(reach: Reach, test: dict[str, Any]) -> None:
    name = test["id"]
    if test["failed"]:
        reach.failing[name] = test["failed"]
        return
    reach.took_s[name] = test["took_s"]
    if test["golden"]:
        reach.golden.append(name)
    for hit in test["hits"]:
        reach.hits.setdefault(hit, []).append(name)


def _forget(reach: Reach, files: set[str]) -> None:
    """Forget what is known of the tests of some files."""
    for known in (reach.took_s, reach.failing):
        for name in [name for name in known if file_of(name) in files]:
            del known[name]
    for names in (reach.golden, *reach.hits.values()):
        names[:] = [name for name in names if file_of(name) not in files]


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


def attempt(crew: Crew, chosen: list[Mutant], reach: Reach, budget_s: float) -> Iterator[Outcome]:
    """Try mutants; give what becomes of each, as they are done with."""
    wanted = {probe for mutant in chosen for probe in (mutant.block, mutant.site)}
    hits = {probe: tests for probe, tests in reach.hits.items() if probe in wanted}
    told = [attrs.asdict(mutant) for mutant in chosen]
    arguments = (told, hits, reach.took_s, reach.golden, list(crew.tests), budget_s)
    keys = {mutant.id: key_of(mutant) for mutant in chosen}
    for chunk in crew.do("Hunter", arguments, [(number, number) for number in range(len(told))]):
        for answer in chunk.answers:
            yield Outcome(key=keys[answer["id"]], **answer)


def key_of(mutant: Mutant) -> str:
    """Return what is another when a mutated function is."""
    return hashlib.sha256(mutant.text.encode()).hexdigest()[:16]


def load(path: Path) -> Reach:
    """Read what is known of an earlier run."""
    if not path.exists():
        return Reach()
    reach = Reach(**json.loads(path.read_text()))
    # One string for each name travels as one.
    for probe, tests in reach.hits.items():
        reach.hits[probe] = [sys.intern(name) for name in tests]
    reach.took_s = {sys.intern(name): took_s for name, took_s in reach.took_s.items()}
    return reach


def keep(path: Path, reach: Reach) -> None:
    """Write it down for the next."""
    path.write_text(json.dumps(attrs.asdict(reach)))
