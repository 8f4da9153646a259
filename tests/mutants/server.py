"""One pytest process in a copy of the tree: it has collected all tests, and forks for each mutant.

It is run as a script, which unpacks its copy.

A fork has the modules loaded already: it puts the mutated function's code in the place of the
original's, and runs what it is told until the first failure. Requests and answers are lines of
JSON on two pipes. The file is mutated in the copy as well, for tests that start simctl anew.
When nobody holds the other end of the pipe of requests any more, whatever ended who did, this
process ends with the fork that is at work, and removes the copy.
"""

import contextlib
import gc
import importlib
import inspect
import json
import os
import select
import shutil
import signal
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import IO, Any, Final

import pytest

_KINDS: Final = ("scenarios", "tests", "goldens")
"""What a mutant is shown, in this order."""

_OWN: Final = "tests/test_mutants.py"

SILENT_S: Final = 120
"""How long a test may take; one that takes longer is taken for one that never ends."""

HITS_FILE: Final = "SIMCTL_MUTANTS_HITS"
"""Names the file into which commands that a test starts write the probes they passed."""


class Server:
    """Answers requests in place of pytest's loop over the tests."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests = requests
        self._answers = answers
        self._items: dict[str, pytest.Item] = {}
        self._sound: dict[str, bool] = {}
        """Whether a test or a scenario that has failed passes where nothing is mutated."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve until nothing more is asked."""
        self._items = {item.nodeid: item for item in session.items}
        self._answer(
            [
                {"id": item.nodeid, "golden": _is_golden(item), "file": str(item.path)}
                for item in session.items
            ]
        )
        gc.collect()
        gc.freeze()
        with contextlib.suppress(EOFError, BrokenPipeError):
            for line in self._requests:
                self._answer(self._served(session, json.loads(line)))
        return True

    def _served(self, session: pytest.Session, request: dict[str, Any]) -> dict[str, Any]:
        """Serve a request; what fails without a mutation as well catches none."""
        while True:
            kept = {path: Path(path).read_text() for path in request["files"]}
            for path, text in request["files"].items():
                Path(path).write_text(text)
            try:
                answer = self._forked(session, request)
            finally:
                for path, text in kept.items():
                    Path(path).write_text(text)
            caught = answer.get("caught", "")
            if request["do"] == "probe" or not caught or self._passes(session, request, caught):
                return answer
            for kind in _KINDS:
                request[kind] = [name for name in request[kind] if name != caught]

    def _passes(self, session: pytest.Session, request: dict[str, Any], name: str) -> bool:
        if name not in self._sound and any(name in request[kind] for kind in _KINDS):
            alone = {kind: [each for each in request[kind] if each == name] for kind in _KINDS}
            again = request | alone | {"code": {}, "files": {}}
            self._sound[name] = not self._forked(session, again)["caught"]
        return self._sound.get(name, True)

    def _answer(self, answer: Any) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()

    def _forked(self, session: pytest.Session, request: dict[str, Any]) -> dict[str, Any]:
        """Serve a request in a fork, and watch that it gets somewhere."""
        reads, writes = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reads)
            status = 1
            try:
                os.setpgid(0, 0)
                _be_quiet()
                with os.fdopen(writes, "w") as out:
                    _Child(session, self._items, out).serve(request)
                status = 0
            finally:
                os._exit(status)
        os.close(writes)
        try:
            answer = _watch(reads, self._requests.fileno())
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(reads)
        return answer


def _watch(reads: int, requests: int) -> dict[str, Any]:
    """Return what a fork answers; if it dies or falls silent, in what it did.

    Raises:
        EOFError: Nobody waits for the answer any more. Nothing else can be read from *requests*
            before it is given.
    """
    doing, text = "its start", b""
    while True:
        ready, _, _ = select.select([reads, requests], [], [], SILENT_S)
        if requests in ready:
            raise EOFError
        more = os.read(reads, 1 << 20) if ready else b""
        if not more:
            return {"caught": doing, "why": "ended all at once" if ready else "did not end"}
        *lines, text = (text + more).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "doing" not in said:
                return dict(said)
            doing = said["doing"]


def _be_quiet() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)


def _is_golden(item: pytest.Item) -> bool:
    """Return whether a test compares with a file that `--rewrite-golden` renews."""
    function = getattr(item, "function", None)
    return function is not None and "--rewrite-golden" in inspect.getsource(function)


class _Child:
    """What a fork does."""

    def __init__(
        self, session: pytest.Session, items: dict[str, pytest.Item], out: IO[str]
    ) -> None:
        self._session = session
        self._items = items
        self._out = out
        self._failure = ""
        session.config.pluginmanager.register(self)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first failure."""
        if report.failed and not self._failure:
            self._failure = report.longreprtext.strip().splitlines()[-1]

    def serve(self, request: dict[str, Any]) -> None:
        """Put the code in, and do what is asked."""
        for module, sources in request["code"].items():
            patch(module, sources["source"], sources["functions"])
        if request["do"] == "probe":
            self._say({"probed": self._probe(request["tests"])})
        else:
            self._say(self._hunt(request))

    def _say(self, what: dict[str, Any]) -> None:
        self._out.write(json.dumps(what) + "\n")
        self._out.flush()

    def _run(self, names: list[str]) -> Iterator[tuple[str, str, float]]:
        """Run tests in this order; give each its name, its failure and how long it took."""
        items = [self._items[name] for name in names]
        for place, item in enumerate(items):
            following = items[place + 1] if place + 1 < len(items) else None
            self._say({"doing": item.nodeid})
            self._failure = ""
            began = time.perf_counter()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item.nodeid, self._failure, time.perf_counter() - began

    def _probe(self, names: list[str]) -> list[dict[str, Any]]:
        """Run tests with probes in the code; tell which each has passed."""
        from simctl import _acting  # type: ignore[attr-defined]  # noqa: PLC0415 - in copies alone

        hits: set[str] = _acting.HITS
        path = Path(os.environ[HITS_FILE])
        found = []
        for name, failure, took_s in self._run(names):
            if path.exists():
                hits.update(path.read_text().splitlines())
                path.unlink()
            found.append({"id": name, "hits": sorted(hits), "failed": failure, "took_s": took_s})
            hits.clear()
        return found

    def _hunt(self, request: dict[str, Any]) -> dict[str, Any]:
        """Look for what notices a mutant: rules, then tests, then golden traces."""
        broken = self._rule(request["scenarios"])
        if broken:
            return {"stage": "rules", "caught": broken[0], "why": broken[1]}
        for stage in ("tests", "goldens"):
            for name, failure, _ in self._run(request[stage]):
                if failure:
                    return {"stage": stage, "caught": name, "why": failure}
        return {"stage": "", "caught": "", "why": ""}

    def _rule(self, names: list[str]) -> tuple[str, str] | None:
        """Run scenarios; return the first that does not do what it says, and what is wrong."""
        from simctl.reports.text import what_broke  # noqa: PLC0415 - of the copy
        from simctl.testing import run_scenario  # noqa: PLC0415
        from tests import test_shipped_scenarios as shipped  # noqa: PLC0415

        paths = {path.stem: path for path in shipped.SCENARIOS}
        for name in names:
            self._say({"doing": name})
            try:
                run = run_scenario(paths[name])
            except Exception as error:  # noqa: BLE001 - whatever a mutant does is looked at
                return name, f"{type(error).__name__}: {error}"
            if not run.held:
                return name, "; ".join(what_broke(run.result))
        return None


def patch(module_name: str, source: str, functions: list[str]) -> None:
    """Give functions of a loaded module the code that they have in other source."""
    __import__(module_name)
    module = sys.modules[module_name]
    code = compile(source, module.__file__ or module_name, "exec", dont_inherit=True)
    from simctl import _acting  # type: ignore[attr-defined]  # noqa: PLC0415 - in copies alone

    module.__dict__["_acting"] = _acting
    for name in functions:
        found: Any = module
        inner = code
        for part in name.split("."):
            found = vars(found)[part]
            inner = next(
                each
                for each in inner.co_consts
                if isinstance(each, CodeType) and each.co_name == part
            )
        assert isinstance(found, FunctionType), f"{module_name}.{name} is no function"
        _replace_in_sets(found.__code__, inner)
        found.__code__ = inner


def _replace_in_sets(old: CodeType, new: CodeType) -> None:
    """Put the new code where a module of ours keeps a set of code, as the watchdog does."""
    for name, module in list(sys.modules.items()):
        if name.startswith("simctl."):
            for key, value in list(vars(module).items()):
                if isinstance(value, frozenset) and old in value:
                    setattr(module, key, (value - {old}) | {new})


def main(arguments: list[str]) -> int:
    """Unpack a tree, collect all its tests or those of the files that are named, and serve."""
    requests, answers, packed, folder, *tests = arguments
    # Whoever runs a worker keeps Ctrl-C from it; tests send themselves that signal.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", f"--ignore={_OWN}"]
    try:
        _unpack(packed, Path(folder) / "tree")
        with os.fdopen(int(requests)) as asked, os.fdopen(int(answers), "w") as answered:
            return int(pytest.main([*options, *tests], plugins=[Server(asked, answered)]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack(packed: str, tree: Path) -> None:
    with tarfile.open(packed) as archive:
        # Pythons before 3.11.4 know no filter.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tree)
    shutil.copy(tree / "tests" / "mutants" / "acting.py", tree / "simctl" / "_acting.py")
    os.chdir(tree)
    # The folder of this script makes way; the tree, on PYTHONPATH, is there only now.
    del sys.path[0]
    importlib.invalidate_caches()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
