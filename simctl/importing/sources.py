"""Choose what reads a site's file, and put the scenario where it is wanted."""

import argparse
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from simctl.outputs import SCENARIO, write_output
from simctl.status import OK, InputError

if TYPE_CHECKING:
    from simctl.importing.result import Imported

SLURM_CONF: Final = "slurm.conf"
SOURCES: Final = {SLURM_CONF: "simctl.importing.slurm_conf", "sacct": "simctl.importing.sacct"}
"""What can be imported, and the module whose `import_file` does it."""


def add_arguments(parser: Any) -> None:
    """Add the arguments that all sources share."""
    parser.add_argument(
        "words", nargs="+", metavar="FILE", help="the file; before it, what it is, if not that"
    )
    parser.add_argument(
        "-o", "--output", default="-", metavar="SCENARIO", help="write there; - is stdout"
    )
    parser.add_argument("--force", action="store_true", help="overwrite a file that is there")


def import_site(options: argparse.Namespace) -> int:
    """Read the file that the options name, and write the scenario; return the exit status."""
    source, file = chosen(options.words)
    output = Path(options.output)
    if options.output != "-" and output.is_file() and not options.force:
        raise InputError(f"import: {output} is there already; --force overwrites it")
    imported: Imported = importlib.import_module(SOURCES[source]).import_file(file)
    for warning in imported.warnings:
        print(warning, file=sys.stderr)
    if options.output == "-":
        sys.stdout.write(imported.text)
        return OK
    try:
        write_output(output, SCENARIO, imported.text.encode(), force=True)
    except OSError as error:
        raise InputError(f"import: cannot write {output}: {error.strerror or error}") from error
    print(f"{output}: {imported.told}", file=sys.stderr)
    return OK


def chosen(words: list[str]) -> tuple[str, str]:
    """Return the source and the file of `SOURCE FILE`, or of a slurm.conf that stands alone.

    Raises:
        InputError: There is no such source.
    """
    if len(words) == 1 and words[0] not in SOURCES:
        return SLURM_CONF, words[0]
    if len(words) == 1:
        if words[0] == SLURM_CONF:
            return SLURM_CONF, SLURM_CONF
        raise InputError(f"import: name a file behind {words[0]}")
    if len(words) > 2:  # noqa: PLR2004 - a source and a file
        raise InputError(f"import: one file at a time, not {' '.join(words[1:])}")
    if words[0] not in SOURCES:
        known = " and ".join(SOURCES)
        raise InputError(f"import: nothing is known of {words[0]!r}; {known} are")
    return words[0], words[1]
