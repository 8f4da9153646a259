"""What burst_buffer.conf says to burst_buffer/lua."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

_MOST_S: Final = 24 * 86_400
"""Slurm cuts the time-outs to 24 days."""

_REFUSED: Final = ("GetSysState", "GetSysStatus", "DefaultPool")
_REFUSED_FLAGS: Final = ("EnablePersistent", "EmulateCray")


@attrs.frozen(kw_only=True)
class Settings:
    """The values that count; times in seconds."""

    directive: str = "BB_LUA"
    allow_users: tuple[str, ...] = ()
    deny_users: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    stage_in_timeout: int = 86_400
    stage_out_timeout: int = 86_400
    validate_timeout: int = 5
    other_timeout: int = 300
    poll_interval: int = 15

    def welcome(self, user: str) -> bool:
        """Return whether a user may have burst buffers."""
        if self.allow_users:
            return user in self.allow_users
        return user not in self.deny_users

    @property
    def teardown_failure(self) -> bool:
        """Return whether a buffer is taken down whose stage failed."""
        return "TeardownFailure" in self.flags

    @property
    def private(self) -> bool:
        """Return whether people see their own buffers alone."""
        return "PrivateData" in self.flags


def read_settings(conf: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """Return the settings of a burst_buffer.conf, and what in it is of no use here."""
    given: dict[str, Any] = {}
    for field in attrs.fields(Settings):
        key = "".join(word.capitalize() for word in field.name.split("_"))
        if key in conf:
            value = tuple(conf[key]) if isinstance(field.default, tuple) else conf[key]
            given[field.name] = min(value, _MOST_S) if isinstance(value, int) else value
    strange = [key for key in _REFUSED if conf.get(key)]
    flags = given.get("flags", ())
    strange += [f"Flags={flag}" for flag in flags if flag in _REFUSED_FLAGS]
    given["flags"] = tuple(flag for flag in flags if flag not in _REFUSED_FLAGS)
    return Settings(**given), strange
