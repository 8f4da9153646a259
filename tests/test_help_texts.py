"""--help of the commands that start work: each option is explained, and nothing else."""

import pytest

from simctl.commands.arguments.help_texts import HELP
from simctl.commands.arguments.options import Grammar
from simctl.commands.salloc import command as salloc
from simctl.commands.srun import command as srun
from simctl.commands.submission import sbatch
from tests.scontrol_situations import type_in

GRAMMARS = (sbatch.GRAMMAR, salloc.GRAMMAR, srun.GRAMMAR)


def test_each_option_is_explained() -> None:
    """And nothing that is no option of theirs."""
    assert set(HELP) == {option.long for grammar in GRAMMARS for option in grammar.options}


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.command)
def test_help_shows_it(grammar: Grammar) -> None:
    """Beside the option, in lines that fit a terminal."""
    (result,) = type_in([("1s", "alice", f"{grammar.command} --help")]).result.commands
    _, *lines = result.stdout.splitlines()
    assert len(lines) == len(grammar.options)
    for option, line in zip(grammar.options, lines, strict=True):
        assert f"--{option.long}" in line
        assert line.endswith(f"  {HELP[option.long]}")
        assert len(line) <= 110
