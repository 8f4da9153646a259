"""Every request, by everybody, about jobs of several owners in every state."""

from functools import cache
from typing import Final

import pytest

from simctl.orderings.rules import AUTHORITY
from simctl.scenario.load import read_scenario
from simctl.wire import rights
from simctl.wire.errno import errno_name
from simctl.wire.rights import DENIALS, Right, Who
from simctl.world import World
from tests.cluster import Ran, run, watched
from tests.entries import typed
from tests.statement_of_rights import OF_SLURMCTLD, OF_SLURMD, OF_UPDATES
from tests.test_authority import ask_all, kinds_of, sample

_LETTERS: Final = {
    "RS": Who.DAEMONS,
    "R": Who.DAEMONS | Who.ROOT,
    "A": Who.OPERATOR | Who.ADMINISTRATOR,
    "O": Who.OPERATOR,
    "W": Who.OWNER,
}
USERS: Final = """\
users:
  alice: {uid: 1001, account: bio}
  bob: {uid: 1002, account: bio}
  carol: {uid: 1003, account: bio, admin: operator}
  dave: {uid: 1004, account: bio, admin: administrator}
"""
UIDS: Final = {"alice": 1001, "bob": 1002, "carol": 1003, "dave": 1004, "slurm": 64030, "root": 0}
CLUSTER: Final = f"""\
nodes: [{{name: "n[1-2]", cpus: 4}}]
partitions:
  - {{name: debug, nodes: ALL, default: true, max_time: "2:00:00"}}
  - {{name: open, nodes: ALL}}
  - {{name: secret, nodes: ALL, root_only: true}}
  - {{name: physics, nodes: ALL, allow_accounts: [physics]}}
  - {{name: nobio, nodes: ALL, deny_accounts: [bio]}}
  - {{name: drained, nodes: ALL, state: DRAIN}}
  - {{name: inactive, nodes: ALL, state: INACTIVE}}
  - {{name: down, nodes: ALL, state: DOWN}}
{USERS}"""
STATES: Final = {
    "running": ("sbatch -N2 -t5 --wrap 'srun -n2 sleep 100'",),
    "held": ("sbatch -H -N2 -t5 --wrap true",),
    "pending": ("sbatch -N2 -t5 --begin=now+1hour --wrap true",),
    "suspended": ("sbatch -N2 -t5 --wrap 'srun -n2 sleep 100'", "root: scontrol suspend 1"),
    "completing": ("sbatch -N2 -t5 --wrap 'srun -n2 ./stays'", "root: scancel 1"),
    "over": ("sbatch -N2 -t5 --wrap true",),
}
ABOUT_JOBS: Final = (
    *("REQUEST_KILL_JOB", "REQUEST_CANCEL_JOB_STEP", "REQUEST_UPDATE_JOB", "REQUEST_JOB_REQUEUE"),
    *("REQUEST_UPDATE_JOB_STEP", "REQUEST_SUSPEND", "REQUEST_BATCH_SCRIPT", "REQUEST_JOB_NOTIFY"),
    *("REQUEST_COMPLETE_JOB_ALLOCATION", "REQUEST_STEP_COMPLETE"),
)


def rows(text: str) -> dict[str, list[str]]:
    """Return the rows of a statement by their first word."""
    return {line.split()[0]: line.split()[1:] for line in text.strip().splitlines()}


def who(letters: str) -> Who:
    """Return what the letters of a statement come to in the product's words."""
    found = Who(0)
    if letters == "*":
        return Who.ANYBODY
    if "S" in letters:
        found |= Who.DAEMONS
    elif "R" in letters:
        found |= Who.ROOT
    if "O" in letters:
        found |= Who.OPERATOR
    elif "A" in letters:
        found |= Who.ADMINISTRATOR
    return found | (Who.OWNER if "W" in letters else Who(0))


@pytest.mark.parametrize(
    ("table", "text"), [(rights.OF_SLURMCTLD, OF_SLURMCTLD), (rights.OF_SLURMD, OF_SLURMD)]
)
def test_the_table_that_is_enforced_says_what_is_stated(table: dict[str, Right], text: str) -> None:
    """The orderings read that table as well, so it is held against another statement."""
    stated = rows(text)
    assert [*table] == [*stated]
    for rpc, (letters, errno) in stated.items():
        assert table[rpc].who == who(letters), rpc
        assert (errno_name(table[rpc].errno) if table[rpc].errno else "-") == errno, rpc


def may(letters: str, user: str, owner: str) -> bool:
    """Return whether letters allow a user to act on a job of *owner*."""
    letter = {"root": "R", "slurm": "S", "dave": "A", "carol": "O"}.get(user, "")
    return (letter != "" and letter in letters) or (user == owner and "W" in letters)


@pytest.mark.parametrize("owner", ["alice", "carol"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("rpc", ABOUT_JOBS)
def test_who_may_act_on_a_job_depends_on_no_state(rpc: str, state: str, owner: str) -> None:
    """Who may not is refused with the stated errno, who may with no denial; refused ones first."""
    letters, errno = rows(OF_SLURMCTLD)[rpc]
    users = sorted(UIDS, key=lambda user: may(letters, user, owner))
    entries = [f"{owner}: {words}" if ": " not in words else words for words in STATES[state]]
    lines = [
        f"  - {{at: {at}s, as: {line.partition(': ')[0]}, run: {line.partition(': ')[2]!r}}}\n"
        for at, line in enumerate(entries)
    ]
    text = (
        f"{CLUSTER}programs: {{./stays: {{runs: 500s, on_signal: {{TERM: ignore}}}}}}\n"
        "slurm_conf: {KillWait: 60}\n"
        f"timeline:\n{''.join(lines)}"
    )
    world = World(read_scenario(text, file="s.yaml"), until_us=60_000_000)
    kind = kinds_of(rpc)
    found, _ = ask_all(
        world,
        "slurmctld",
        lambda: sample(kind, world.ctld.jobs[1].desc),
        [UIDS[user] for user in users],
    )
    for user in users:
        error = found[UIDS[user]]
        if may(letters, user, owner):
            assert error not in DENIALS, (user, errno_name(error))
        else:
            assert errno_name(error) == errno, user


@cache
def updated(change: str, state: str, user: str) -> Ran:
    """Run a job of alice's that a user changes once it is in a state."""
    entries = "".join(
        f"  - {{at: {at}s, as: alice, run: {words!r}}}\n" for at, words in enumerate(STATES[state])
    )
    change = f"  - {{at: 3s, as: {user}, run: 'scontrol update jobid=1 {change}'}}\n"
    text = f"{CLUSTER}timeline:\n{entries}{change}"
    return watched(World(read_scenario(text, file="s.yaml"), until_us=10_000_000))


@pytest.mark.parametrize("line", OF_UPDATES.strip().splitlines())
def test_what_of_a_job_who_may_change(line: str) -> None:
    """The owner, an operator, an administrator and root; what is refused changes nothing."""
    change, state, letters, errno = line.split()
    for user, letter in (("alice", "W"), ("carol", "O"), ("dave", "A"), ("root", "R")):
        ran = updated(change, state, user)
        told = ran.result.commands[-1].errno
        if letter in letters:
            assert not told, user
        elif letter.lower() in letters:
            assert told == "ESLURM_PRIO_RESET_FAIL", user
        else:
            assert told == errno, user
            before = updated("requeue=1", state, "root").world.ctld.jobs[1]
            assert ran.world.ctld.jobs[1].desc == before.desc
            assert ran.world.ctld.jobs[1].priority == before.priority
        assert not [each for each in ran.result.orderings.broken if each.rule.number > AUTHORITY]


def test_a_job_that_was_refused_a_partition_never_runs_there() -> None:
    """Held, moved and released by its owner, it runs where it was submitted."""
    ran = typed(
        "0s alice sbatch -H --wrap true",
        "1s alice scontrol update jobid=1 partition=secret | exit: 1",
        "2s alice scontrol release 1",
        cluster=CLUSTER,
    )
    assert ran.job()[0] == "COMPLETED"
    assert ran.result.rows[0].partition == "debug"


HOLDS: Final = [
    # Who holds, in order; whether the owner may release the job then.
    (("alice: hold",), True),
    (("carol: hold",), False),
    (("carol: uhold",), True),
    (("carol: hold", "alice: hold"), False),
    (("carol: hold", "alice: uhold"), False),
    (("alice: hold", "carol: hold"), False),
    (("carol: hold", "carol: uhold"), True),
    (("root: hold", "carol: uhold"), True),
    (("dave: uhold", "root: hold"), False),
]


@pytest.mark.parametrize(("holds", "released"), HOLDS)
def test_an_operators_hold_is_undone_by_no_owner(holds: tuple[str, ...], *, released: bool) -> None:
    """The last word of an operator counts; an owner's own hold on top of it changes nothing."""
    lines = [
        f"  - {{at: {at}s, as: {line.split(': ')[0]}, run: scontrol {line.split(': ')[1]} 1}}\n"
        for at, line in enumerate(holds, start=1)
    ]
    ran = run(
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch --begin=now+10 --wrap true}\n"
        f"{''.join(lines)}"
        "  - {at: 9s, as: alice, run: scontrol release 1}\n",
        cluster=CLUSTER,
    )
    assert ran.result.commands[-1].errno == ("" if released else "ESLURM_ACCESS_DENIED")
    assert ran.job()[0] == ("COMPLETED" if released else "PENDING")


def test_an_owner_releases_a_job_whose_reservation_is_over() -> None:
    """It is held for ReservationDeleted, asks for no reservation any more, and runs."""
    ran = typed(
        (
            "{at: 0s, run: scontrol create reservation=r starttime=now duration=2 users=alice "
            "nodes=n1}"
        ),
        "1s alice sbatch -t9 --reservation=r --wrap true",
        "200s alice squeue -h -o %r | stdout: ReservationDeleted",
        "201s alice scontrol release 1 | exit: 0",
        cluster=CLUSTER,
    )
    assert ran.job()[0] == "COMPLETED"
    assert all(each.held for each in ran.result.expectations)


def test_what_an_operator_holds_stays_so_when_its_reservation_is_over() -> None:
    """Its owner does not get a hold that the owner could release."""
    ran = typed(
        (
            "{at: 0s, run: scontrol create reservation=r starttime=now duration=2 users=alice "
            "nodes=n1}"
        ),
        "1s alice sbatch -t9 --reservation=r --wrap true",
        "2s root scontrol hold 1",
        "200s alice squeue -h -o %r | stdout: JobHeldAdmin",
        "201s alice scontrol release 1 | exit: 1",
        "202s root scontrol release 1",
        cluster=CLUSTER,
    )
    # It asks for no reservation any more.
    assert ran.job()[0] == "COMPLETED"
    assert all(each.held for each in ran.result.expectations)


@pytest.mark.parametrize("user", ["carol", "dave"])
def test_operators_cancel_the_jobs_of_others(user: str) -> None:
    """As scancel's manual says."""
    ran = typed(
        '0s alice sbatch --wrap "sleep 100"', f"5s {user} scancel 1 | exit: 0", cluster=CLUSTER
    )
    assert ran.job()[0] == "CANCELLED"
    assert all(each.held for each in ran.result.expectations)


@pytest.mark.parametrize(
    ("command", "users"),
    [
        ("scontrol reconfigure", "dave root slurm"),
        ("scontrol update nodename=n1 state=drain reason=x", "dave root slurm"),
        ("scontrol update partitionname=open state=down", "dave root slurm"),
        ("scontrol create partition=new nodes=n1", "dave root slurm"),
        ("scontrol delete partition=down", "dave root slurm"),
        ("scontrol shutdown slurmctld", "dave root slurm"),
        (
            "scontrol create reservation=r starttime=now duration=9 users=bob nodes=n1",
            "carol dave root slurm",
        ),
    ],
)
def test_administrators_change_the_cluster_and_operators_do_not(command: str, users: str) -> None:
    """Reservations alone are for operators as well."""
    for user in UIDS:
        ran = run(f"timeline: [{{at: 0s, as: {user}, run: {command!r}}}]\n", cluster=CLUSTER)
        assert (ran.result.commands[0].exit == 0) == (user in users.split()), user


@pytest.mark.parametrize(("user", "reads"), [("alice", False), ("root", True)])
@pytest.mark.parametrize("reader", ["cat FILE", "cat < FILE", "sh FILE"])
def test_users_read_no_file_of_a_daemon(reader: str, user: str, *, reads: bool) -> None:
    """What slurmd knows of credentials is root's; a job sees what its user may read."""
    script = reader.replace("FILE", "/var/spool/slurmd/cred_state")
    ran = typed(f"0s {user} sbatch -o out --wrap '{script}'", cluster=CLUSTER)
    out = ran.world.disk.read("out", ran.world.site.users[user].home) or ""
    assert ("Permission denied" in out) is not reads


@pytest.mark.parametrize(
    "command", ["sbatch FILE", "srun --multi-prog FILE", "sbatch --bbf=FILE x"]
)
def test_no_command_reads_a_file_that_its_user_may_not(command: str) -> None:
    """As a script, a list of programs, or a list of burst buffers."""
    script = command.replace("FILE", "/var/spool/slurmd/cred_state")
    ran = typed(f"0s alice sbatch --wrap '{script}'", cluster=CLUSTER)
    assert ran.job()[0] == "FAILED"
    assert len(ran.result.rows) == 1
