"""Work whose code is installed nowhere: it comes with the files of the work, and gives plain data.

For tools that lie beside simctl in its tree. Who passes results on need not have the code.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

from simctl.runners.work import Chunk, ChunkRunner


@attrs.frozen(kw_only=True)
class Answers(Chunk):
    """What came of trials, as plain data; an answer need not belong to one trial."""

    answers: list[Any]


@attrs.frozen
class Brought:
    """Makes a runner by a function of a module that lies below the folder of the work's files."""

    module: str
    function: str
    arguments: tuple[Any, ...]
    """What the function is given after the folder."""

    def __call__(self, folder: Path) -> ChunkRunner[Answers]:
        """Return what runs the trials of a worker."""
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        found: ChunkRunner[Answers] = getattr(import_module(self.module), self.function)(
            folder, *self.arguments
        )
        return found
