"""The orders between processes that all recordings of tests/conformance keep.

`python -m tests.conformance_orders` writes their table anew, tests/conformance/orders.txt, after a
recording has come, and the copy of it that `simctl trace conform` has wherever it is installed.
"""

from pathlib import Path
from typing import Final

from simctl.testing import conform
from simctl.testing.conform.orders import as_text, mined
from simctl.testing.conform.real import read_real, real_story
from tests.conformance_runs import FOLDER, NAMES, recording_of

TABLE: Final = FOLDER / "orders.txt"
COPY: Final = Path(conform.__file__).parent / "orders.txt"


def text() -> str:
    """Return the table as the recordings have it now."""
    return as_text(mined(real_story(read_real(recording_of(name))) for name in NAMES))


def main() -> None:
    """Write the table, and its copy."""
    table = text()
    for path in (TABLE, COPY):
        path.write_text(table)


if __name__ == "__main__":
    main()
