"""sacctmgr and sshare show what the scenario says of accounts, and change nothing."""

import pytest

from tests.cluster import run

CLUSTER = """
nodes: [{name: n1, cpus: 4}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: {uid: 1001, account: physics}, bob: {uid: 1002, account: physics}, carol: 1003}
"""


def shown(line: str, conf: str = "") -> tuple[int, str, str]:
    """Type a line as alice; return its exit status, output and error output."""
    typed = line.replace('"', "'")
    more = f'{conf}timeline: [{{at: 1s, as: alice, run: "{typed}"}}]\n'
    result = run(more, cluster=CLUSTER, model="modern").result.commands[0]
    return result.exit, result.stdout, result.stderr


def test_a_client_finds_the_account_of_a_user() -> None:
    """As snakemake's plugin for Slurm asks: without headings, a wide column."""
    status, out, _ = shown('sacctmgr -n -s list user "alice" format=account%20')
    assert (status, out) == (0, f"{'physics':>20} \n")
    assert shown("sshare -U --format Account%10 --noheader") == (0, "   physics \n", "")


def test_associations_are_shown_with_bars() -> None:
    """One of each account, then one of each user in it; who has no account has none."""
    _, out, _ = shown("sacctmgr -nP show assoc format=account,user,qos")
    assert out.splitlines() == [
        "root||normal",
        "root|root|normal",
        "physics||normal",
        "physics|alice|normal",
        "physics|bob|normal",
    ]


@pytest.mark.parametrize(
    ("line", "out"),
    [
        ("sacctmgr -np list cluster format=cluster,controlport", "cluster|6817|\n"),
        ("sacctmgr -nP list qos", "normal|0|00:00:00||cluster||1.000000\n"),
        ("sacctmgr -nP list account name=physics", "physics|physics|physics\n"),
        ("sacctmgr -nP list users bob format=user,defaultaccount", "bob|physics\n"),
        ("sacctmgr -n list user nobody", ""),
    ],
)
def test_each_entity_is_listed(line: str, out: str) -> None:
    """Conditions choose, a format says which columns."""
    assert shown(line) == (0, out, "")


def test_headings_and_rules_are_as_wide_as_their_columns() -> None:
    """A text that does not fit ends with a plus."""
    _, out, _ = shown("sacctmgr list user alice format=user%6,account%4")
    assert out.splitlines() == ["  User Acc+ ", "------ ---- ", " alice      "]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sacctmgr add user dave account=x", "are only shown"),
        (
            "sacctmgr show tres",
            "sacctmgr: error: show tres is known to Slurm but not simulated yet",
        ),
        ("sacctmgr list nonsense", "Invalid show option: nonsense"),
        ("sacctmgr list user format=nonsense", "Unknown field 'nonsense'"),
        ("sacctmgr list user where colour=red", "Unknown condition: colour=red"),
        ("sacctmgr", "asks nobody"),
        ("sshare --format=nonsense", "Invalid field requested"),
        ("sshare --long", "--long is an option of Slurm's"),
    ],
)
def test_what_cannot_be_shown_is_told(line: str, told: str) -> None:
    """The words at fault are in the message."""
    status, out, err = shown(line)
    assert status == 1
    assert not out
    assert told in err


def test_there_are_no_accounts_without_accounting() -> None:
    """As of a Slurm without slurmdbd."""
    conf = "slurm_conf: {AccountingStorageType: accounting_storage/none}\n"
    for line in ("sacctmgr list user", "sshare"):
        assert shown(line, conf)[0] == 1
