"""Read the users of the cluster, with root and slurm, who are always there."""

import re
from typing import Any, Final

import attrs
import yaml

from simctl.scenario.model import UserSpec
from simctl.scenario.positions import Reading, Value
from simctl.scenario.scalars import choice, text, whole
from simctl.scenario.shapes import Built, Either, Field, Record, Table, Values

SLURM_UID: Final = 64030
MAX_UID: Final = 0xFFFFFFFD
"""The two ids above it mean something else to Slurm than a user."""

BUILT_IN: Final = (
    UserSpec(name="root", uid=0, gid=0, admin="administrator"),
    UserSpec(name="slurm", uid=SLURM_UID, gid=SLURM_UID, admin="administrator"),
)

_UNKNOWN: Final = -1
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_ID: Final = whole("a whole number from 0 to 4294967293", least=0, most=MAX_UID)


@attrs.frozen(kw_only=True)
class _User:
    """A user without a name yet, and where the uid stands."""

    uid: int
    gid: int
    account: str
    admin: str
    place: Value


def _from_uid(uid: int, value: Value, _: Reading) -> _User:
    return _User(uid=uid, gid=uid, account="", admin="none", place=value)


def _from_record(values: Values, _: Value, __: Reading) -> _User:
    uid, gid = values["uid"], values["gid"]
    return _User(
        uid=uid,
        gid=uid if gid is None else gid,
        account=values["account"],
        admin=values["admin"],
        place=values.place("uid"),
    )


def check_user_name(name: str) -> None:
    """Raise ValueError for a name that no user can have."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(
            f"{name!r} cannot be the name of a user: use letters, digits, '_', '.' and '-'"
        )


def _build_users(users: dict[str, Any], value: Value, reading: Reading) -> tuple[UserSpec, ...]:
    """Add root and slurm, and note uids that two users share."""
    specs = {user.name: user for user in BUILT_IN}
    for name, user in users.items():
        if name == "root" and user.uid != 0:
            reading.mistake(user.place, f"root has the uid 0, not {user.uid}")
        specs[name] = UserSpec(
            name=name,
            uid=user.uid,
            gid=user.gid,
            account=user.account,
            admin=specs[name].admin if name in specs else user.admin,
        )
    owners: dict[int, str] = {}
    for name in [*(user.name for user in BUILT_IN), *users]:
        owner = owners.setdefault(specs[name].uid, name)
        if owner != name:
            place = users[name].place
            reading.mistake(place, f"uid {specs[name].uid} belongs to {owner!r} already")
    # A user of whom something is wrong exists nevertheless, for what refers to it by name.
    written = value.node.value if isinstance(value.node, yaml.MappingNode) else ()
    reading.users.update({str(key.value): _UNKNOWN for key, _ in written})
    reading.users.update({name: spec.uid for name, spec in specs.items()})
    return tuple(specs.values())


USERS: Final = Built(
    shape=Table(
        expected="names of users with their uid",
        check_key=check_user_name,
        item=Either(
            expected="a uid, or a mapping with `uid:`",
            scalar=Built(shape=_ID, build=_from_uid),
            mapping=Record(
                what="a user",
                fields=(
                    Field(name="uid", shape=_ID, required=True, doc="Numeric id, not used twice."),
                    Field(
                        name="gid",
                        shape=_ID,
                        doc="Id of the primary group; the same as the uid if left out.",
                    ),
                    Field(
                        name="account",
                        shape=text("the name of an account", empty=True),
                        default="",
                        doc="Account of the user's jobs; none if left out.",
                    ),
                    Field(
                        name="admin",
                        shape=choice("none", "operator", "administrator"),
                        default="none",
                        shown="none",
                        doc="What the user may do to the cluster and to jobs of others.",
                    ),
                ),
                build=_from_record,
            ),
        ),
    ),
    build=_build_users,
)
