"""sacctmgr: shows the cluster, its accounts, users, associations and QOS; it changes nothing.

There is one cluster. A user has the account that the scenario says, root has the account `root`,
and each account stands below `root`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from simctl.commands.accounts.tables import Field, Row, Table, account_of, ending_of, read_columns
from simctl.commands.arguments.command_line import answered
from simctl.commands.arguments.options import Grammar, Option, UsageError
from simctl.commands.asking.ask import is_slurmdbd_away
from simctl.site import CommandCall, User

GRAMMAR: Final = Grammar(
    command="sacctmgr",
    usage="[OPTIONS...] list|show cluster|account|user|association|qos [CONDITIONS...]",
    options=(
        Option(long="immediate", short="i"),
        Option(long="noheader", short="n"),
        Option(long="parsable", short="p", ousts=("parsable2",)),
        Option(long="parsable2", short="P", ousts=("parsable",)),
        Option(long="quiet", short="Q"),
        Option(long="readonly", short="r"),
        Option(long="associations", short="s"),
        Option(long="verbose", short="v", counts=True),
        Option(long="help", short="h"),
        Option(long="usage"),
        Option(long="version", short="V"),
    ),
    unbuilt=frozenset(("json", "o", "oneliner", "yaml")),
    bad_status=1,
    permutes=True,
)

_CHANGES: Final = (
    *("add", "create", "archive", "clear", "delete", "remove", "dump", "load", "modify", "update"),
    *("reconfigure", "shutdown"),
)
_SHOWS: Final = ("list", "show")
_LEAST: Final = 3
"""How many letters of a word Slurm needs at the least."""

FIELDS: Final[Mapping[str, Field]] = {
    "account": Field("Account", 10),
    "admin": Field("Admin", 9),
    "cluster": Field("Cluster", 10),
    "controlhost": Field("ControlHost", 15),
    "controlport": Field("ControlPort", 12),
    "defaultaccount": Field("Def Acct", 10),
    "defaultqos": Field("Def QOS", 9),
    "description": Field("Descr", 20),
    "fairshare": Field("Share", 9),
    "flags": Field("Flags", 20),
    "gracetime": Field("GraceTime", 10),
    "grpjobs": Field("GrpJobs", 7),
    "grpsubmit": Field("GrpSubmit", 9),
    "grptres": Field("GrpTRES", 13),
    "maxjobs": Field("MaxJobs", 7),
    "maxsubmit": Field("MaxSubmit", 9),
    "maxtres": Field("MaxTRES", 13),
    "maxwall": Field("MaxWall", 11),
    "name": Field("Name", 10),
    "organization": Field("Org", 20),
    "parentname": Field("Par Name", 10),
    "partition": Field("Partition", 10),
    "preempt": Field("Preempt", 10),
    "preemptmode": Field("PreemptMode", 11),
    "priority": Field("Priority", 10),
    "qos": Field("QOS", 20),
    "rpc": Field("RPC", 5),
    "usagefactor": Field("UsageFactor", 11),
    "user": Field("User", 10),
}

_LIMITS: Final = ("fairshare", "grpjobs", "grptres", "grpsubmit", "maxjobs", "maxtres")
_OF_ASSOCIATIONS: Final = (*_LIMITS, "maxsubmit", "maxwall", "qos", "defaultqos")


@attrs.frozen(kw_only=True)
class _Entity:
    """What can be shown: its usual columns, the column that names it, and its rows."""

    columns: tuple[str, ...]
    key: str
    rows: Callable[[CommandCall, bool], Iterator[Row]]
    more: tuple[str, ...] = ()
    """The columns that come with its associations."""


def _accounts(call: CommandCall) -> dict[str, list[User]]:
    """Return the users of each account."""
    found: dict[str, list[User]] = {"root": []}
    for user in call.site.users.values():
        if account := account_of(user):
            found.setdefault(account, []).append(user)
    return found


def _association(call: CommandCall, account: str, user: str = "") -> Row:
    return {
        "cluster": call.site.conf.cluster_name,
        "account": account,
        "user": user,
        "fairshare": "1",
        "qos": "normal",
        "parentname": "" if user or account == "root" else "root",
    }


def _show_clusters(call: CommandCall, _: bool) -> Iterator[Row]:
    yield {
        "cluster": call.site.conf.cluster_name,
        "controlhost": "127.0.0.1",
        "controlport": "6817",
        "rpc": "9728",
        "fairshare": "1",
        "qos": "normal",
    }


def _show_accounts(call: CommandCall, associations: bool) -> Iterator[Row]:
    for account, users in sorted(_accounts(call).items()):
        row = {
            "account": account,
            "description": "default root account" if account == "root" else account,
            "organization": account,
        }
        if not associations:
            yield row
            continue
        for name in ("", *(user.name for user in users)):
            yield {**row, **_association(call, account, name)}


def _show_users(call: CommandCall, associations: bool) -> Iterator[Row]:
    for user in sorted(call.site.users.values(), key=lambda user: user.name):
        account = account_of(user)
        if not account:
            continue
        admin = "administrator" if user.uid == 0 else user.admin
        row = {
            "user": user.name,
            "defaultaccount": account,
            "admin": "None" if admin == "none" else admin.capitalize(),
        }
        yield {**row, **_association(call, account, user.name)} if associations else row


def _show_associations(call: CommandCall, _: bool) -> Iterator[Row]:
    for account, users in sorted(_accounts(call).items(), key=lambda each: each[0] != "root"):
        yield _association(call, account)
        for user in users:
            yield _association(call, account, user.name)


def _show_qos(_: CommandCall, __: bool) -> Iterator[Row]:
    yield {
        "name": "normal",
        "priority": "0",
        "gracetime": "00:00:00",
        "preemptmode": "cluster",
        "usagefactor": "1.000000",
    }


ENTITIES: Final[Mapping[str, _Entity]] = {
    "cluster": _Entity(
        columns=("cluster", "controlhost", "controlport", "rpc", *_OF_ASSOCIATIONS),
        key="cluster",
        rows=_show_clusters,
    ),
    "account": _Entity(
        columns=("account", "description", "organization"),
        more=("cluster", "parentname", "user", *_OF_ASSOCIATIONS),
        key="account",
        rows=_show_accounts,
    ),
    "user": _Entity(
        columns=("user", "defaultaccount", "admin"),
        more=("cluster", "account", "partition", *_OF_ASSOCIATIONS),
        key="user",
        rows=_show_users,
    ),
    "association": _Entity(
        columns=("cluster", "account", "user", "partition", *_OF_ASSOCIATIONS),
        key="account",
        rows=_show_associations,
    ),
    "qos": _Entity(
        columns=("name", "priority", "gracetime", "preempt", "preemptmode", "flags", "usagefactor"),
        key="name",
        rows=_show_qos,
    ),
}

_CONDITIONS: Final = {
    **dict.fromkeys(("account", "accounts"), "account"),
    **dict.fromkeys(("cluster", "clusters"), "cluster"),
    **dict.fromkeys(("user", "users"), "user"),
    **dict.fromkeys(("name", "names"), ""),
    **dict.fromkeys(("qos", "qoslevel"), "qos"),
    **dict.fromkeys(("partition", "partitions"), "partition"),
    **dict.fromkeys(("defaultaccount",), "defaultaccount"),
}


async def sacctmgr(call: CommandCall) -> int:
    """Show what accounting keeps; return the exit status."""
    try:
        given, words = GRAMMAR.split(call.argv[1:])
        if answered(call, GRAMMAR, given):
            return 0
        options = GRAMMAR.values(given)
        entity, wanted, columns = _read(call, words, associations="associations" in options)
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return error.status
    if is_slurmdbd_away(call):
        return 1
    rows = [
        row
        for row in entity.rows(call, "associations" in options)
        if all(row.get(key, "").lower() in among for key, among in wanted.items())
    ]
    header = "noheader" not in options
    table = Table(fields=FIELDS, columns=columns, ending=ending_of(options), header=header)
    for line in table.lines(rows):
        call.out(line)
    return 0


def _read(
    call: CommandCall, words: Sequence[str], *, associations: bool
) -> tuple[_Entity, dict[str, list[str]], list[tuple[str, int]]]:
    """Return what is to be shown, which of it, and in which columns.

    Raises:
        UsageError: The words are wrong, or would change something.
    """
    if not call.site.conf.accounts:
        raise UsageError(1, "You are not running a supported accounting_storage plugin")
    if not words:
        raise UsageError(1, "sacctmgr: error: simctl answers one command a call, and asks nobody")
    verb, *rest = words
    if _begins(verb, _CHANGES):
        raise UsageError(
            1, f"sacctmgr: error: {verb}: accounts are the scenario's here, and are only shown"
        )
    if not _begins(verb, _SHOWS) or not rest:
        raise UsageError(
            1, f"Invalid command: {verb!r}" if rest else f"Invalid entity after {verb}"
        )
    name = _entity(rest[0])
    entity = ENTITIES[name]
    columns = [*entity.columns, *(entity.more if associations else ())]
    wanted: dict[str, list[str]] = {}
    shown = [(column, FIELDS[column].width) for column in dict.fromkeys(columns)]
    for word in rest[1:]:
        key, equals, value = word.partition("=")
        if key.lower() in ("where", "withassoc", "withassocs", "withdeleted"):
            continue
        if equals and key.lower().startswith("format"):
            try:
                shown = read_columns(value, FIELDS)
            except LookupError as error:
                raise UsageError(1, f" Unknown field '{error.args[0]}'") from None
            continue
        column = _CONDITIONS.get(key.lower()) if equals else ""
        if column is None:
            raise UsageError(1, f" Unknown condition: {word}")
        among = [each.strip("'\"").lower() for each in (value if equals else word).split(",")]
        wanted[column or entity.key] = among
    return entity, wanted, shown


def _begins(word: str, among: Sequence[str]) -> bool:
    return len(word) >= _LEAST and any(each.startswith(word.lower()) for each in among)


def _entity(word: str) -> str:
    low = word.lower()
    for name in ENTITIES if len(low) >= _LEAST else ():
        if name.startswith(low) or name == low.removesuffix("s"):
            return name
    if _begins(low.removesuffix("s"), _UNBUILT):
        text = f"sacctmgr: error: show {word} is known to Slurm but not simulated yet"
        raise UsageError(1, text)
    raise UsageError(1, f"Invalid show option: {word}")


_UNBUILT: Final = (
    *("configuration", "coordinator", "event", "federation", "instance", "problem", "reservation"),
    *("resource", "runawayjobs", "stats", "transaction", "tres", "wckey"),
)
"""What a Slurm's sacctmgr shows besides."""
