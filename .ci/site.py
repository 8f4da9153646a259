"""What `make site` adds to mkdocs: the pages beside docs/, links to them, and the order of pages.

docs/README.md is the first page; its tables, each below a heading, are the sections of the site.
A page that has no row there is a mistake.
"""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BESIDE = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Pages that stand at the top of the tree, and what they are called on the site."""

_ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+\.md)\) \|", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s]+)(?=\))")
_TOP_LINK = re.compile(r"(?<=\]\()docs/")


def on_config(config: Any) -> Any:
    """Give the pages their order."""
    config.nav = [{"Start": "README.md"}, *sections((ROOT / "docs" / "README.md").read_text())]
    return config


def sections(text: str) -> list[dict[str, list[str]]]:
    """Return the pages of each section of docs/README.md, as mkdocs wants them."""
    found: list[dict[str, list[str]]] = []
    for part in re.split(r"(?m)^## ", text)[1:]:
        title, _, body = part.partition("\n")
        pages = [place_of(target) for _, target in _ROW.findall(body)]
        if pages:
            found.append({title: pages})
    return found


def place_of(target: str) -> str:
    """Return where a page of docs/README.md is on the site."""
    return BESIDE.get(target.removeprefix("../"), target) if target.startswith("../") else target


def on_files(files: Any, config: Any) -> Any:
    """Add the pages beside docs/."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - tests read this file without mkdocs

    for name, on in BESIDE.items():
        text = _TOP_LINK.sub("", (ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, on, content=_relinked(text, "")))
    worker = (ROOT / ".ci" / "iframe-worker.js").read_text(encoding="utf-8")
    files.append(File.generated(config, "iframe-worker.js", content=worker))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to pages beside docs/ to where they are on the site."""
    return _relinked(markdown, "../")


def _relinked(text: str, up: str) -> str:
    def lead(match: re.Match[str]) -> str:
        target, hash_, anchor = match[1].partition("#")
        name = BESIDE.get(target.removeprefix(up)) if target.startswith(up) else None
        return f"{name}{hash_}{anchor}" if name else match[1]

    return _LINK.sub(lead, text)
