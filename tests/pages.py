"""Pages of docs/, and their sections."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def page(name: str) -> str:
    """Return the text of a page of docs."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def section(text: str, *titles: str) -> str:
    """Return the sections of a page with these titles."""
    found = re.split(r"(?m)^#+ ", text)
    return "".join(part for part in found if part.split("\n", 1)[0] in titles)
