"""What simctl refuses by name, and where it differs: the page of commands says so, and no more."""

import re

import pytest

from simctl.commands.accounts import sacctmgr, sshare
from simctl.commands.arguments.input_variables import UNBUILT_VARIABLES
from simctl.commands.arguments.options import Grammar
from simctl.commands.sacct import options as sacct_options
from simctl.commands.salloc import command as salloc
from simctl.commands.salloc import options as salloc_options
from simctl.commands.scancel import command as scancel
from simctl.commands.scontrol import command as scontrol
from simctl.commands.scontrol import nodes as scontrol_nodes
from simctl.commands.scontrol import partitions as scontrol_partitions
from simctl.commands.scontrol import reservations as scontrol_reservations
from simctl.commands.scontrol import show as scontrol_show
from simctl.commands.scontrol import update as scontrol_update
from simctl.commands.sinfo import options as sinfo_options
from simctl.commands.squeue import options as squeue_options
from simctl.commands.srun import command as srun
from simctl.commands.srun import options as srun_options
from simctl.commands.submission import sbatch
from tests.pages import page, section
from tests.scontrol_situations import Lines, type_in

GRAMMARS = {
    grammar.command: grammar
    for grammar in (
        *(sbatch.GRAMMAR, salloc.GRAMMAR, srun.GRAMMAR, scancel.GRAMMAR, scontrol.GRAMMAR),
        *(squeue_options.GRAMMAR, sinfo_options.GRAMMAR, sacct_options.GRAMMAR),
        *(sacctmgr.GRAMMAR, sshare.GRAMMAR),
    )
}
_FLAG = r"`--?([A-Za-z][\w-]*)`"


def rows(title: str) -> list[list[str]]:
    """Return the rows of the tables of a section, without their heads."""
    lines = [line for line in section(page("commands.md"), title).splitlines() if line[:1] == "|"]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if set("".join(row)) - set("-|") and row[0] not in _HEADS]


_HEADS = ("command", "where")


@pytest.mark.parametrize("grammar", GRAMMARS.values(), ids=list(GRAMMARS))
def test_refused_options_are_in_the_docs(grammar: Grammar) -> None:
    """Each, and no other."""
    told = next(row[1] for row in rows("Refused") if row[0] == grammar.command)
    assert set(re.findall(_FLAG, told)) == set(grammar.unbuilt)
    options = {name for option in grammar.options for name in (option.long, option.short)}
    assert not set(grammar.unbuilt) & options


def test_refused_options_of_steps_are_in_the_docs() -> None:
    """Those that shape an allocation."""
    text = section(page("commands.md"), "Refused")
    told = next(part for part in text.split("\n\n") if part.startswith("Options of srun"))
    assert set(re.findall(_FLAG, told)) == set(srun_options._REFUSED_IN_JOBS)


def test_refused_variables_are_in_the_docs() -> None:
    """And none of them stands for an option as well."""
    refused = {"sbatch": sbatch.UNBUILT_VARIABLES, **UNBUILT_VARIABLES}
    built = {*sbatch.VARIABLES, *srun_options.VARIABLES, *srun_options.OF_ALLOCATIONS}
    built |= set(salloc_options.VARIABLES)
    for command, variables in refused.items():
        told = [set(re.findall(r"`(\w+)`", row[1])) for row in rows("Refused") if row[0] == command]
        assert set(variables) in told
        assert not set(variables) & built


def test_refused_words_of_scontrol_are_in_the_docs() -> None:
    """Keywords, entities, keys of updates and states."""
    refused = {
        "keywords": [
            name for name, (_, act) in scontrol.KEYWORDS.items() if act is scontrol.refuse
        ],
        "`show`": [
            name for name, (_, act) in scontrol_show.ENTITIES.items() if act is scontrol_show.refuse
        ],
        "`update jobid=`": scontrol_update._UNBUILT,
        "`update nodename=`": scontrol_nodes._UNBUILT,
        "`update partitionname=`": scontrol_partitions._UNBUILT,
        "`update reservationname=`": scontrol_reservations._UNBUILT,
        "`state=` of a node": set(scontrol_nodes._STATES) - set(scontrol_nodes.BUILT),
    }
    told = {row[0]: set(re.findall(r"`([\w-]+)`", row[1])) for row in rows("Refused")}
    assert {where: told[where] for where in refused} == {
        where: set(words) for where, words in refused.items()
    }


def test_what_differs_is_there() -> None:
    """Each option of the table is one of the commands it is told of."""
    found = rows("Where simctl differs")
    assert len(found) > 10
    for commands, options, _ in found:
        for command in commands.split(", "):
            longs = {option.long for option in GRAMMARS[command].options}
            assert set(re.findall(_FLAG, options)) <= longs, (command, options)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sbatch --gpu-bind=x --wrap true", "--gpu-bind is an option of Slurm's"),
        ("srun -a 1-3 true", "srun: invalid option -- 'a'"),
        ("salloc --array=1-3 true", "salloc: unrecognized option '--array=1-3'"),
        ("salloc -o x true", "salloc: invalid option -- 'o'"),
    ],
)
def test_options_of_others_are_unknown(line: str, told: str) -> None:
    """What Slurm has elsewhere alone is not said to be an option of the command."""
    lines: Lines = [("1s", "alice", line)]
    result = type_in(lines).result.commands[0]
    assert told in result.stderr
    assert result.exit == 255


def test_sharing_is_shown() -> None:
    """Of all three commands that submit jobs."""
    lines: Lines = [
        ("1s", "alice", "sbatch -s --wrap 'sleep 9'"),
        ("1s", "alice", "srun -s sleep 9"),
        ("1s", "alice", "salloc -s sleep 9"),
        *[("3s", "alice", f"scontrol show job {number}") for number in (1, 2, 3)],
    ]
    for result in type_in(lines).result.commands[3:]:
        assert "   OverSubscribe=YES Contiguous=0" in result.stdout
