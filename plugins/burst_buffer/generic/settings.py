"""What burst_buffer/generic takes from burst_buffer.conf."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from simctl.plugin import BurstBufferInfo, SlurmError, errno, log, slurmctld
from simctl.plugins.burst_buffer.space import Granularity

SCRIPTS: Final = {
    "get_sys": "GetSysState",
    "start_stage_in": "StartStageIn",
    "start_stage_out": "StartStageOut",
    "stop_stage_in": "StopStageIn",
    "stop_stage_out": "StopStageOut",
}
"""The keys that name scripts, by what each is called with."""

_DAY_S: Final = 86400


@attrs.frozen(kw_only=True)
class Settings:
    """burst_buffer.conf as it was read last; timeouts are in seconds, 0 for none."""

    scripts: Mapping[str, str] = attrs.field(factory=dict)
    granularity: Granularity = (1, "bytes")
    allow_users: tuple[str, ...] = ()
    deny_users: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    stage_in_timeout_s: int = _DAY_S
    stage_out_timeout_s: int = _DAY_S
    others: Mapping[str, Any] = attrs.field(factory=dict)
    """Keys that are only shown."""

    @property
    def get_sys_state(self) -> str:
        """Return the script that tells of the store."""
        return self.scripts["get_sys"]

    @property
    def private(self) -> bool:
        """Return whether users see their own buffers alone."""
        return "PrivateData" in self.flags

    def barred(self, uid: int) -> str:
        """Return why a user may not use burst buffers, or nothing."""
        if self.allow_users and not _among(uid, self.allow_users):
            return "AllowUsers of burst_buffer.conf does not name them"
        if _among(uid, self.deny_users):
            return "DenyUsers of burst_buffer.conf names them"
        return ""

    def info(self, **what: Any) -> BurstBufferInfo:
        """Return what is shown of the plugin: these settings, and *what* the store holds."""
        others = self.others
        return BurstBufferInfo(
            name="generic",
            default_pool=others.get("DefaultPool", ""),
            alt_pool=others.get("AltPool", ""),
            create_buffer=others.get("CreateBuffer", ""),
            destroy_buffer=others.get("DestroyBuffer", ""),
            get_sys_status=others.get("GetSysStatus", ""),
            granularity=self.granularity[0],
            flags=self.flags,
            allow_users=self.allow_users,
            deny_users=self.deny_users,
            get_sys_state=self.get_sys_state,
            start_stage_in=self.scripts["start_stage_in"],
            start_stage_out=self.scripts["start_stage_out"],
            stop_stage_in=self.scripts["stop_stage_in"],
            stop_stage_out=self.scripts["stop_stage_out"],
            stage_in_timeout=self.stage_in_timeout_s,
            stage_out_timeout=self.stage_out_timeout_s,
            validate_timeout=others.get("ValidateTimeout", 5),
            other_timeout=others.get("OtherTimeout", 300),
            **what,
        )


def _among(uid: int, names: tuple[str, ...]) -> bool:
    return any(slurmctld.uid_of(name) == uid for name in names)


def read_settings(conf: Mapping[str, Any]) -> Settings:
    """Take what acts from the values of burst_buffer.conf.

    Raises:
        SlurmError: EINVAL: it lacks one of the scripts, without which nothing can be done.
    """
    lacking = [key for key in SCRIPTS.values() if not conf.get(key)]
    if lacking:
        them = "them" if len(lacking) > 1 else "it"
        text = f"burst_buffer.conf lacks {', '.join(lacking)}; burst_buffer/generic needs {them}"
        log.error(text)
        raise SlurmError(errno.EINVAL, text)
    for key in ("AllowUsers", "DenyUsers"):
        for name in conf.get(key, ()):
            if slurmctld.uid_of(name) is None:
                log.error(f"{key} of burst_buffer.conf names {name}, who is no user")
    return Settings(
        scripts={what: conf[key] for what, key in SCRIPTS.items()},
        granularity=conf.get("Granularity", (1, "bytes")),
        allow_users=conf.get("AllowUsers", ()),
        deny_users=conf.get("DenyUsers", ()),
        flags=conf.get("Flags", ()),
        stage_in_timeout_s=conf.get("StageInTimeout", _DAY_S),
        stage_out_timeout_s=conf.get("StageOutTimeout", _DAY_S),
        others=conf,
    )
