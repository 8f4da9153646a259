"""The search of `make site` on pages from the disk: nothing is fetched for its worker."""

from pathlib import Path

from tests.browser import browser

WORKER = Path(__file__).parent.parent / ".ci" / "iframe-worker.js"


def test_a_worker_of_a_page_from_the_disk_answers(tmp_path: Path) -> None:
    """Messages come and go, also those that were sent before the worker had loaded."""
    (tmp_path / "shim.js").write_text(WORKER.read_text(encoding="utf-8"))
    (tmp_path / "twice.js").write_text(
        "addEventListener('message', (told) => importScripts('more.js').then(() =>"
        " postMessage(by * told.data)));"
    )
    (tmp_path / "more.js").write_text("var by = 2;")
    (tmp_path / "page.html").write_text("<!doctype html><script src='shim.js'></script>")
    with browser(tmp_path / "profile") as started:
        tab = started.tab()
        tab.open((tmp_path / "page.html").as_uri())
        told = tab.run(
            "new Promise((done) => { const worker = new Worker('twice.js');"
            "worker.onmessage = (message) => done(message.data); worker.postMessage(21); })"
        )
        assert told == 42
        assert tab.errors == []
