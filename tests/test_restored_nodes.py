"""Whatever slurmd knew of jobs when it died, the next slurmd of that node knows.

A run whose slurmd dies at a moment, and is started again in that moment, takes two pictures: of the
one that died, and of the next once it has read its file of credentials.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest

from simctl.nodes.credential_file import CredentialFile
from simctl.nodes.prologs import Prologs
from simctl.nodes.slurmd import Slurmd
from simctl.nodes.spool import Spool
from simctl.nodes.step_daemons import StepDaemons
from simctl.nodes.suspend import Suspensions
from simctl.nodes.terminations import Terminations
from tests.cluster import Ran, run
from tests.entries import entries

Picture = dict[str, Any]
Damage = Callable[[pytest.MonkeyPatch], None]

FILED = ("prologs", "revoked", "scripts", "over", "begun", "used", "known_from_us")
"""What of the spool stands in the file of credentials."""

RUNS_ON = ("sockets", "left")
"""What of the spool are processes, which outlive slurmd."""

OF_ONE_LIFE = {
    Spool: {"gone"},
    Slurmd: set(
        """site _clean host process mailbox at_end _file _authority _owed _known _link
        _checkpoints""".split()
    ),
    Prologs: {"path", "_site", "_slurmd", "_mailbox"},
    Suspensions: set("_site _process _steps_of _queues _suspended _heeded".split()),
    Terminations: set(
        """_site _process _mailbox _spool _told _steps _prologs _suspensions _link _ending _gone
        requeues""".split()
    ),
    StepDaemons: set("_site _slurmd _mailbox _spool".split()),
}
"""What is of one slurmd: what it is made of, has yet to answer, and slurmctld tells anew."""

KEPT = {
    Spool: {*FILED, *RUNS_ON},
    Slurmd: {"spool", "_steps", "_prologs", "_suspensions", "_terminations"},
    Prologs: {"_ended", "_prologs"},
}


def part(slurmd: Slurmd, name: str) -> Any:
    """Return a part of a slurmd."""
    return vars(slurmd)[name]


def picture(slurmd: Slurmd) -> Picture:
    """Return what a slurmd knows of jobs, in plain values."""
    parts = [slurmd, slurmd.spool, *map(part, [slurmd] * 4, sorted(KEPT[Slurmd] - {"spool"}))]
    for each in parts:
        kind = type(each)
        names = {field.name for field in attrs.fields(kind)} if kind is Spool else set(vars(each))
        unsaid = names ^ (OF_ONE_LIFE[kind] | KEPT.get(kind, set()))
        assert not unsaid, f"say above of which kind these of {kind.__name__} are: {unsaid}"
    spool = slurmd.spool
    found: Picture = {
        name: list(value.items()) if isinstance(value := getattr(spool, name), dict) else value
        for name in FILED
    }
    prologs = vars(part(slurmd, "_prologs"))["_prologs"]
    found["how prologs ended"] = sorted(
        (key, each.status) for key, each in prologs.items() if each.status >= 0
    )
    # One that has not been told what to do ends with its slurmd.
    found["steps"] = [
        (*key, socket.mailbox.process.pid) for key, socket in spool.sockets.items() if socket.daemon
    ]
    found["left"] = sorted(spool.left)
    return found


@contextmanager
def pictures(damage: Damage | None = None) -> Iterator[list[Picture]]:
    """Take a picture of each slurmd that dies and of each that comes after one, in turn."""
    taken: list[Picture] = []
    with pytest.MonkeyPatch.context() as patch:
        die, make = Slurmd.die, Slurmd.__init__

        def died(self: Slurmd) -> None:
            taken.append(picture(self))
            die(self)
            # Nothing but files and processes is left.
            for name in FILED:
                value = getattr(self.spool, name)
                setattr(self.spool, name, type(value)())

        def made(self: Slurmd, *args: Any, **how: Any) -> None:
            make(self, *args, **how)
            if how.get("spool") is not None:
                taken.append(picture(self))

        patch.setattr(Slurmd, "die", died)
        patch.setattr(Slurmd, "__init__", made)
        if damage is not None:
            damage(patch)
        yield taken


HEAD = (
    'files: {/e.sh: "#!/bin/sh\\nsleep 7\\n", /p.sh: "#!/bin/sh\\nsleep 3\\n"}\n'
    "slurm_conf: {Epilog: /e.sh, Prolog: /p.sh}\n"
)
SITUATIONS = {
    "a script and its steps": HEAD
    + entries(
        "0s alice sbatch -N2 --wrap 'srun sleep 5; srun -n1 sleep 6 & srun sleep 9'",
        "1s bob srun -w n1 sleep 4",
        "40s alice sbatch -w n1 --no-requeue --wrap 'sleep 60'",
        "50s alice scancel 3",
    ),
    "requeued and suspended": HEAD
    + entries(
        "0s alice sbatch -w n1 --wrap 'srun sleep 30'",
        "8s root scontrol suspend 1",
        "14s root scontrol resume 1",
        "20s root scontrol requeue 1",
        "21s bob salloc -w n1 srun sleep 3",
    ),
    "prologs that fail and steps that are killed": HEAD.replace("sleep 3", "exit 1")
    + entries("0s alice sbatch -w n2 --wrap 'srun sleep 30'", "1s bob srun -w n1 sleep 3"),
    "step daemons that are killed": entries(
        "0s alice sbatch -w n1 --wrap 'srun sleep 30; sleep 9'",
        "{at: 5s, fault: {crash: stepd 1.0@n1}}",
    ),
}


def crashed_at(text: str, moment_us: int, damage: Damage | None = None, **how: Any) -> list[str]:
    """Return what the next slurmd of n1 knows otherwise if the last one dies at a moment."""
    crash = f"  - {{at: {moment_us}us, fault: {{crash: slurmd@n1}}}}\n"
    again = f"  - {{at: {moment_us}us, fault: {{start: slurmd@n1}}}}\n"
    with pictures(damage) as taken:
        ran = run(text + crash + again, orderings=damage is None, **how)
    old, new = taken
    wrong = [
        f"at {moment_us} {name}: {old[name]} is {new[name]}"
        for name in old
        if old[name] != new[name]
    ]
    return wrong + [f"at {moment_us}: {each}" for each in run_again(ran)]


def run_again(ran: Ran) -> list[str]:
    """Return the prologs and epilogs that ended more often on a node than the job ran."""
    ends = Counter(
        (name, each.job, each.node) for name in ("prolog", "epilog") for each in ran.all(name)
    )
    runs: dict[object, int] = {row.job_id: 1 + row.restarts for row in ran.result.rows}
    return [f"{key}: {often} times" for key, often in ends.items() if often > runs[key[1]]]


def moments(ran: Ran) -> list[int]:
    """Return the moments just after those at which anything happened on n1."""
    return sorted({each.time_us + 1 for each in ran.events if each.node == "n1"})


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("name", SITUATIONS)
def test_another_slurmd_forgets_nothing(name: str, model: str) -> None:
    """Tables, steps and how prologs ended are as they were, after everything that happens there."""
    text = SITUATIONS[name]
    wrong = [
        each for at in moments(run(text, model=model)) for each in crashed_at(text, at, model=model)
    ]
    assert not wrong, "\n".join(wrong)


def table_lost(name: str) -> Damage:
    """Return a damage: a table is not written to the file."""
    entries = vars(CredentialFile)["_entries"]

    def damage(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(
            CredentialFile,
            "_entries",
            lambda self: (each for each in entries(self) if each.table != name),
        )

    return damage


def steps_lost(patch: pytest.MonkeyPatch) -> None:
    """Have a slurmd that starts know no step."""
    opened = CredentialFile.open

    def opens(self: CredentialFile, *, follows: bool) -> None:
        opened(self, follows=follows)
        vars(self)["_spool"].sockets.clear()

    patch.setattr(CredentialFile, "open", opens)


DAMAGES = {name: table_lost(name) for name in FILED if name != "known_from_us"} | {
    "steps": steps_lost
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_slurmd_that_forgets_is_noticed(what: str) -> None:
    """The rule above finds each table that is not kept."""
    text = SITUATIONS["a script and its steps"]
    moments_us = moments(run(text))
    assert any(crashed_at(text, at, DAMAGES[what]) for at in moments_us[::3])
