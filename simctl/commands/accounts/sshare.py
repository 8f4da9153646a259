"""sshare: the shares of accounts and users, of which nobody has used anything."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from simctl.commands.accounts.tables import Field, Table, account_of, ending_of, read_columns
from simctl.commands.arguments.command_line import answered
from simctl.commands.arguments.options import Grammar, Option, UsageError, text
from simctl.commands.asking.ask import is_slurmdbd_away
from simctl.site import CommandCall

GRAMMAR: Final = Grammar(
    command="sshare",
    usage="[OPTIONS...]",
    options=(
        Option(long="accounts", short="A", read=text, gathers=True),
        Option(long="all", short="a"),
        Option(long="format", short="o", read=text, gathers=True),
        Option(long="noheader", short="n"),
        Option(long="parsable", short="p", ousts=("parsable2",)),
        Option(long="parsable2", short="P", ousts=("parsable",)),
        Option(long="users", short="u", read=text, gathers=True),
        Option(long="Users", short="U"),
        Option(long="verbose", short="v", counts=True),
        Option(long="help"),
        Option(long="usage"),
        Option(long="version", short="V"),
    ),
    unbuilt=frozenset(("clusters", "M", "long", "l", "partition", "m")),
    bad_status=1,
)

FIELDS: Final[Mapping[str, Field]] = {
    "account": Field("Account", -20),
    "user": Field("User", 10),
    "rawshares": Field("RawShares", 10),
    "normshares": Field("NormShares", 11),
    "rawusage": Field("RawUsage", 11),
    "effectvusage": Field("EffectvUsage", 13),
    "fairshare": Field("FairShare", 10),
}


async def sshare(call: CommandCall) -> int:
    """Show shares; return the exit status."""
    try:
        given, _ = GRAMMAR.split(call.argv[1:])
        if answered(call, GRAMMAR, given):
            return 0
        options = GRAMMAR.values(given)
        columns = _columns(call, options)
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return error.status
    if is_slurmdbd_away(call):
        return 1
    header = "noheader" not in options
    table = Table(fields=FIELDS, columns=columns, ending=ending_of(options), header=header)
    for line in table.lines(list(_rows(call, options))):
        call.out(line)
    return 0


def _columns(call: CommandCall, options: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the columns that are asked for.

    Raises:
        UsageError: There is no such column, or no accounting.
    """
    if not call.site.conf.accounts:
        raise UsageError(1, "sshare: error: Slurm accounting storage is disabled")
    try:
        return read_columns(options.get("format", ",".join(FIELDS)), FIELDS)
    except LookupError as error:
        raise UsageError(1, f"sshare: error: Invalid field requested: {error.args[0]!r}") from None


def _rows(call: CommandCall, options: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    """Return the shares: of each account, and of the users in it that are asked for."""
    names = set(filter(None, options.get("users", "").split(","))) or {call.user.name}
    accounts: dict[str, list[str]] = {"root": []}
    for user in call.site.users.values():
        account = account_of(user)
        if account and ("all" in options or user.name in names):
            accounts.setdefault(account, []).append(user.name)
    chosen = set(filter(None, options.get("accounts", "").split(",")))
    share = f"{1 / max(1, sum(map(len, accounts.values()))):.6f}"
    for account, members in accounts.items():
        if chosen and account not in chosen:
            continue
        if "Users" not in options:
            yield {"account": account, "normshares": "1.000000", "rawusage": "0"}
        for name in members:
            yield {
                "account": f" {account}",
                "user": name,
                "rawshares": "1",
                "normshares": share,
                "rawusage": "0",
                "effectvusage": "0.000000",
                "fairshare": "1.000000",
            }
