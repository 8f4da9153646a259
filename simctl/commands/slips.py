"""What commands would refuse of their own options, before they ask a daemon: for `simctl check`."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

from simctl.commands.arguments.options import Grammar, with_nice
from simctl.commands.sacct import options as sacct_options
from simctl.commands.salloc import options as salloc_options
from simctl.commands.scancel import command as scancel
from simctl.commands.scontrol import command as scontrol
from simctl.commands.sinfo import options as sinfo_options
from simctl.commands.squeue import options as squeue_options
from simctl.commands.srun import options as srun_options
from simctl.commands.submission import batch_script, sbatch

_GRAMMARS: Final[Mapping[str, Grammar]] = {
    "sbatch": sbatch.GRAMMAR,
    "salloc": salloc_options.GRAMMAR,
    "srun": srun_options.GRAMMAR,
    "srun_cr": srun_options.GRAMMAR,
    "scancel": scancel.GRAMMAR,
    "squeue": squeue_options.GRAMMAR,
    "sinfo": sinfo_options.GRAMMAR,
    "sacct": sacct_options.GRAMMAR,
}


def of_line(argv: Sequence[str]) -> list[str]:
    """Tell of each option of a command line that its command would refuse.

    Of a command that runs another, salloc and srun, that one's words are left alone.
    """
    command, words = argv[0], list(argv[1:])
    if command == "scontrol":
        return _of_scontrol(words)
    grammar = _GRAMMARS.get(command)
    if grammar is None:
        return []
    if command == "squeue":
        words = squeue_options.usual(words)
    elif command == "sinfo":
        words = sinfo_options.usual(words)
    return [f"{command}: {slip}" for slip in grammar.slips(with_nice(words))]


def _of_scontrol(words: Sequence[str]) -> list[str]:
    flags, rest = scontrol.split_options(words)
    found = scontrol.GRAMMAR.slips(flags)
    if rest and not scontrol.is_keyword(rest[0].lower()):
        close = difflib.get_close_matches(rest[0].lower(), scontrol.KEYWORDS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        found.append(f"invalid keyword: {rest[0]}{hint}")
    return [f"scontrol: {slip}" for slip in found]


def of_directive(line: str) -> list[str]:
    """Tell of each option of a ``#SBATCH`` line, given without that word, that sbatch refuses."""
    words = with_nice(batch_script.words_of(line))
    found = sbatch.GRAMMAR.slips(words)
    if not found and (rest := sbatch.GRAMMAR.split(words)[1]):
        found = [f"Invalid directive found in batch script: {rest[0]}"]
    return found
