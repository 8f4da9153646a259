"""The pages of docs name what is built: options, keys, words, states, scenarios."""

import re
from pathlib import Path

import pytest

from simctl.commands.arguments.options import Grammar
from simctl.commands.columns.jobs import LETTERS
from simctl.commands.sacct import options as sacct_options
from simctl.commands.salloc import command as salloc
from simctl.commands.scancel import command as scancel
from simctl.commands.scontrol import command as scontrol
from simctl.commands.scontrol import nodes as scontrol_nodes
from simctl.commands.scontrol import partitions as scontrol_partitions
from simctl.commands.scontrol import reservations as scontrol_reservations
from simctl.commands.scontrol import show as scontrol_show
from simctl.commands.scontrol import steps as scontrol_steps
from simctl.commands.scontrol import update as scontrol_update
from simctl.commands.sinfo import columns as sinfo_columns
from simctl.commands.sinfo import options as sinfo_options
from simctl.commands.squeue import options as squeue_options
from simctl.commands.srun import command as srun
from simctl.commands.submission import sbatch
from simctl.wire.conf.known import HONOURED, NOT_BUILT
from simctl.wire.conf.names import RENAMED
from simctl.wire.conf.records import ACTING, NO_EFFECT
from simctl.wire.conf.scheduler import BUILT_WORDS, WITHOUT_EFFECT
from simctl.wire.conf.slurm_conf import BUILT_KEYS, SlurmConf
from simctl.wire.site_files import _KINDS
from simctl.wire.states import JobBase, JobFlag, NodeBase, NodeFlag, PartState, Reason
from tests.pages import ROOT, page, section


def named(text: str, option: str) -> bool:
    """Return whether a text names a long or short option as such."""
    return re.search(rf"`[^`\n]*(?<![\w-]){re.escape(option)}(?![\w-])[^`\n]*`", text) is not None


@pytest.mark.parametrize(
    ("grammar", "titles"),
    [
        (sbatch.GRAMMAR, ("Jobs: sbatch, salloc, srun", "Of sbatch alone")),
        (salloc.GRAMMAR, ("Jobs: sbatch, salloc, srun", "Of salloc alone")),
        (srun.GRAMMAR, ("Jobs: sbatch, salloc, srun", "Of srun alone")),
        (scancel.GRAMMAR, ("scancel",)),
        (squeue_options.GRAMMAR, ("squeue",)),
        (sinfo_options.GRAMMAR, ("sinfo",)),
        (scontrol.GRAMMAR, ("scontrol",)),
        (sacct_options.GRAMMAR, ("sacct",)),
    ],
    ids=lambda value: value.command if isinstance(value, Grammar) else "",
)
def test_every_option_is_in_the_docs(grammar: Grammar, titles: tuple[str, ...]) -> None:
    """And in the table of the command that has it."""
    text = section(page("commands.md"), *titles)
    options = [f"--{option.long}" for option in grammar.options]
    letters = [f"-{option.short}" for option in grammar.options if option.short]
    assert [each for each in (*options, *letters) if not named(text, each)] == []


@pytest.mark.parametrize(
    "grammar",
    [
        *(sbatch.GRAMMAR, salloc.GRAMMAR, srun.GRAMMAR, sacct_options.GRAMMAR),
        *(scancel.GRAMMAR, squeue_options.GRAMMAR, sinfo_options.GRAMMAR),
    ],
    ids=lambda grammar: grammar.command,
)
def test_the_docs_promise_no_option_that_is_not_built(grammar: Grammar) -> None:
    """Each long option of the table of a command alone is one of its grammar's."""
    jobs = ("sbatch", "salloc", "srun")
    title = f"Of {grammar.command} alone" if grammar.command in jobs else grammar.command
    rows = [line for line in section(page("commands.md"), title).splitlines() if line[:1] == "|"]
    told = {
        name for row in rows for name in re.findall(r"--([A-Za-z][a-z-]+)", row.split(" | ")[0])
    }
    assert told
    assert told <= {option.long for option in grammar.options}


def test_every_field_and_variable_of_squeue_and_sinfo_is_in_the_docs() -> None:
    """On the part of the page about the command."""
    for title, letters, variables in (
        ("squeue", LETTERS, squeue_options.VARIABLES),
        ("sinfo", sinfo_columns.LETTERS, sinfo_options.VARIABLES),
    ):
        text = section(page("commands.md"), title)
        assert [name for name in variables if name not in text] == []
        assert set(re.findall(r"%(\w)\b", text)) == set(letters)


def test_every_keyword_and_key_of_scontrol_is_in_the_docs() -> None:
    """What may be said, and what may be updated."""
    text = section(page("commands.md"), "scontrol")
    keywords = [name for name, (_, act) in scontrol.KEYWORDS.items() if act is not scontrol.refuse]
    shown = scontrol_show.ENTITIES.items()
    entities = [name for name, (_, show) in shown if show is not scontrol_show.refuse]
    words = (
        *keywords,
        *entities,
        *scontrol_update.JOB_KEYS,
        *(state.lower() for state in scontrol_nodes.BUILT),
        *scontrol_partitions.PARTITION_KEYS,
        *scontrol_reservations.RESERVATION_KEYS,
        *scontrol_steps.STEP_KEYS,
    )
    assert [word for word in words if not named(text, word)] == []


def test_every_key_of_slurm_conf_is_in_the_docs_with_its_default() -> None:
    """The keys that are built, and those that are taken with Slurm's default alone."""
    text = section(page("slurm_conf.md"), "slurm.conf: the keys that are built")
    assert [key for key in (*BUILT_KEYS, *HONOURED) if f"`{key}`" not in text] == []
    conf = SlurmConf()
    rows = [[cell.strip() for cell in row.split("|")[1:4]] for row in text.splitlines()]
    told: dict[str, str] = {}
    for keys, default, _ in (row for row in rows if len(row) == 3):
        names = re.findall(r"`(\w+)`", keys)
        values = default.split(", ") if ", " in default else [default] * len(names)
        told |= dict(zip(names, values, strict=True))
    for key in BUILT_KEYS:
        value = conf.value(key)
        expected = str(int(value) if isinstance(value, bool) else value) or "none"
        if key != "SchedulerParameters":
            assert (key, told[key]) == (key, expected)


def test_every_key_of_a_sites_own_files_is_in_the_docs() -> None:
    """Those that act, those that are ignored, and those of the files beside slurm.conf."""
    text = page("slurm_conf.md")
    own = section(text, "A site's own slurm.conf")
    records = [key for kind in (ACTING, NO_EFFECT) for keys in kind.values() for key in keys]
    beside = [name for kind in _KINDS.items() for name in (kind[0], *kind[1].keys)]
    alone = [key for key in NOT_BUILT if f"`{key}`" not in own]
    assert [key for key in (*records, *beside, *RENAMED) if f"`{key}`" not in own] == []
    assert set(alone) <= {"Include"}


def test_every_word_of_schedulerparameters_is_in_the_docs_with_its_default() -> None:
    """In the table of backfill."""
    text = section(page("scheduling.md"), "Backfill")
    words = (*BUILT_WORDS, *WITHOUT_EFFECT)
    assert [word for word in words if f"`{word}`" not in text] == []
    given = dict(pair.split("=") for pair in str(SlurmConf().scheduler_parameters).split(","))
    for word, value in given.items():
        row = next(line for line in text.splitlines() if line[:1] == "|" and f"`{word}`" in line)
        assert row.split("|")[2].strip() == value, word


def test_every_state_flag_and_reason_is_in_the_docs() -> None:
    """On the page of jobs and nodes; states of partitions on that of scheduling."""
    text = page("jobs.md")
    words = [
        *(base.name for base in (*JobBase, *NodeBase)),
        *(str(flag.name) for flag in (*JobFlag, *NodeFlag) if flag),
        *(reason.value for reason in Reason),
    ]
    assert [word for word in words if not re.search(rf"\b{word}\b", text)] == []
    partitions = section(page("scheduling.md"), "Partitions")
    assert [state for state in PartState.__members__ if f"| {state} |" not in partitions] == []


def test_every_shipped_scenario_is_in_the_docs() -> None:
    """The page of scenarios lists all of them, and none that is not there."""
    told = re.findall(
        r"`((?:mistakes/|faulty/|false_friends/)?\w+\.yaml)`",
        section(page("scenarios.md"), _SHIPPED),
    )
    folder = ROOT / "scenarios"
    there = [path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml")]
    assert sorted(told) == sorted(there)


_SHIPPED = "The shipped scenarios"


def test_links_between_pages_lead_somewhere() -> None:
    """Files are there, and so are the headings behind ``#``."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    broken = []
    for path in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            other = (path.parent / name).resolve() if name else path
            if not other.exists() or (anchor and anchor not in _anchors(other)):
                broken.append(f"{path.name}: {target}")
    assert broken == []


def _anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"(?m)^#+ (.*)$", path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
