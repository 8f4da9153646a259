"""What a worker does: it sees which tests reach what, or shows mutants to the tests that do.

A worker is any process of `simctl.runners`, here or on another machine: it gets the packed tree and
plain data, works in a copy of its own, and answers in plain data.
"""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from simctl.runners.brought import Answers
from tests.mutants.catalogue import Mutant, probed, replaced
from tests.mutants.copies import PACKED, Copy
from tests.mutants.sites import read

_SHIPPED: Final = "tests/test_shipped_scenarios.py::test_does_what_it_says"


def file_of(test: str) -> str:
    """Return the file of a test by its id."""
    return test.partition("::")[0]


class Prober:
    """Runs files of tests once, with probes in the code; an answer tells of one test.

    ``{id, failed, hits, took_s, golden}``, without the last three where it fails at once.
    """

    def __init__(self, folder: Path, files: Sequence[str], tests: Sequence[str]) -> None:
        """Make a copy of the tree in *folder*; trial I is the Ith of *files*."""
        self._files = files
        self._copy = Copy(folder / PACKED, tests)
        self._items = self._copy.answer()
        self._request = {"do": "probe", **_code(self._copy.tree)}

    def run_chunk(self, first: int, last: int, *, stop: bool, done: Callable[[], None]) -> Answers:
        """Probe some of the files."""
        files = set(self._files[first : last + 1])
        golden = {
            each["id"]: each["golden"] for each in self._items if file_of(each["id"]) in files
        }
        todo = list(golden)
        answers: list[dict[str, Any]] = []
        while todo:
            answer = self._copy.ask({**self._request, "tests": todo})
            if "probed" in answer:
                answers += [{**each, "golden": golden[each["id"]]} for each in answer["probed"]]
                break
            if answer["caught"] not in todo:
                raise RuntimeError(f"{answer['caught']} {answer['why']} without any mutation")
            answers.append({"id": answer["caught"], "failed": answer["why"]})
            todo.remove(answer["caught"])
        for _ in range(first, last + 1):
            done()
        return Answers(first=first, last=last, ended=False, answers=answers)


def _code(root: Path) -> dict[str, Any]:
    """Return every function with probes, as a request wants it."""
    finder = read(root)
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


class Hunter:
    """Shows mutants to the tests that reach them; an answer tells of one mutant.

    What comes of one depends on what is known of the tests, not on who tries it: they come in one
    order, those that take little first, for as long as they took when nothing was mutated.
    """

    def __init__(
        self,
        folder: Path,
        chosen: Sequence[dict[str, Any]],
        hits: dict[str, list[str]],
        took_s: dict[str, float],
        golden: Sequence[str],
        tests: Sequence[str],
        budget_s: float,
    ) -> None:
        """Make a copy of the tree in *folder*; trial I is the Ith of *chosen*.

        Args:
            folder: Where the packed tree is.
            chosen: The mutants to try, each as `attrs.asdict` gives it.
            hits: Which tests reach each probe.
            took_s: How long each test takes that may say something.
            golden: Those of them that compare with golden traces.
            tests: Files to which mutants are shown; all if there is none.
            budget_s: For how long each is shown to tests.
        """
        self._mutants = [Mutant(**each) for each in chosen]
        self._hits = hits
        self._took_s = took_s
        self._golden = frozenset(golden)
        self._budget_s = budget_s
        self._copy = Copy(folder / PACKED, tests)
        self._there = {item["id"] for item in self._copy.answer()}
        # Read before anything is mutated there.
        paths = {mutant.path for mutant in self._mutants}
        self._sources = {path: (self._copy.tree / path).read_text() for path in paths}
        self._mentions = _Mentions(self._copy.tree)

    def run_chunk(self, first: int, last: int, *, stop: bool, done: Callable[[], None]) -> Answers:
        """Try some of the mutants."""
        answers = []
        for mutant in self._mutants[first : last + 1]:
            answers.append(self._tried(mutant))
            done()
        return Answers(first=first, last=last, ended=False, answers=answers)

    def _tried(self, mutant: Mutant) -> dict[str, Any]:
        began = time.monotonic()
        good = self._in_order(mutant)
        tests = [name for name in good if name not in self._golden]
        shown = self._within_budget(tests)
        source = replaced(self._sources[mutant.path], {mutant.function: mutant.text})
        answer = self._copy.ask(
            {
                "do": "hunt",
                "files": {mutant.path: source},
                "code": {mutant.module: {"source": source, "functions": [mutant.function]}},
                "scenarios": [_stem(name) for name in good if name.startswith(_SHIPPED)],
                "tests": shown,
                "goldens": [name for name in good if name in self._golden],
            }
        )
        # A mutant that ends the process it is in, or never ends, tells no stage.
        stage = answer.get("stage", "tests")
        return {
            "id": mutant.id,
            "stage": stage,
            "by": answer["caught"],
            "why": answer["why"][:300],
            "reached": len(good),
            "left": len(tests) - len(shown) if stage in ("goldens", "") else 0,
            "took_s": round(time.monotonic() - began, 2),
        }

    def _in_order(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant, first those that most likely notice it."""
        reaching = self._hits.get(mutant.block if mutant.moves else mutant.site, [])
        at_once = frozenset(self._hits.get(mutant.site, ()))
        point = re.split(r"[:#()]", mutant.id)[2]

        def rank(name: str) -> tuple[Any, ...]:
            mentions = self._mentions.of(file_of(name), point)
            return name not in at_once, not mentions, self._took_s[name], name

        good = [name for name in reaching if name in self._there and name in self._took_s]
        return sorted(good, key=rank)

    def _within_budget(self, tests: list[str]) -> list[str]:
        """Return the tests for which there is time, one at least."""
        spent_s = 0.0
        for number, name in enumerate(tests, start=1):
            spent_s += self._took_s[name]
            if spent_s > self._budget_s:
                return tests[:number]
        return tests


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
