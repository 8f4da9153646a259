"""A switch plugin with a mistake that shows in model guide alone, for kept_in_init.yaml."""

from typing import Any, ClassVar

from simctl.plugin import SwitchPlugin, log


class ForgetfulSwitch(SwitchPlugin):
    """Keep in job_init, in memory, which table postfini is to unload."""

    plugin_type: ClassVar[str] = "switch/forgetful"
    plugin_name: ClassVar[str] = "keeps in one process what another needs"

    def __init__(self) -> None:
        """Start without a table."""
        self.table = ""

    def switch_p_job_init(self, switch_job: Any, uid: int) -> None:
        """Load a table; in model guide this is the session manager, a fork of the job manager."""
        self.table = f"table of uid {uid}"
        log.info("loaded", table=self.table)

    def switch_p_job_postfini(self, switch_job: Any, pgid: int, job_id: int, step_id: int) -> None:
        """Unload the table; in model guide this is the job manager, which has never seen it."""
        if self.table:
            log.info("unloaded", table=self.table)
        else:
            log.error("there is no table to unload: it stays loaded")
