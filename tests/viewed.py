"""The data of pages that tests look at."""

import json
import re
from pathlib import Path
from typing import Any


def data_of(page: Path) -> dict[str, Any]:
    """Return what a page knows."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="run">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data
