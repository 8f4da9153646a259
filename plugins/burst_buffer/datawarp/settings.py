"""What burst_buffer.conf says to burst_buffer/datawarp."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

_DW_WLM_CLI: Final = "/opt/cray/dw_wlm/default/bin/dw_wlm_cli"
_DWSTAT: Final = "/opt/cray/dws/default/bin/dwstat"


@attrs.frozen(kw_only=True)
class Settings:
    """The values that count, with Slurm's defaults; times in seconds."""

    get_sys_state: str = _DW_WLM_CLI
    get_sys_status: str = _DWSTAT
    default_pool: str = ""
    alt_pool: str = ""
    allow_users: tuple[str, ...] = ()
    deny_users: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    validate_timeout: int = 5
    other_timeout: int = 300
    stage_in_timeout: int = 86_400
    stage_out_timeout: int = 86_400
    create_buffer: str = ""
    destroy_buffer: str = ""
    start_stage_in: str = ""
    start_stage_out: str = ""
    stop_stage_in: str = ""
    stop_stage_out: str = ""

    def welcome(self, user: str) -> bool:
        """Return whether a user may have burst buffers: AllowUsers wins over DenyUsers."""
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

    @property
    def persistent(self) -> bool:
        """Return whether all users may make and destroy persistent buffers, not operators alone."""
        return "EnablePersistent" in self.flags and "DisablePersistent" not in self.flags


def read_settings(conf: Mapping[str, Any]) -> Settings:
    """Return the settings that a burst_buffer.conf gives, by its own key names."""
    given: dict[str, Any] = {}
    for field in attrs.fields(Settings):
        key = "".join(word.capitalize() for word in field.name.split("_"))
        if key in conf:
            given[field.name] = tuple(conf[key]) if isinstance(field.default, tuple) else conf[key]
    return Settings(**given)
