"""A site's look at options: what scenarios/cli_filter.yaml runs under."""

from typing import Any

from simctl.plugin import SLURM_ERROR, CliFilterPlugin, say


class CliSite(CliFilterPlugin):
    """Gives an account and a time limit where there is none, and refuses one partition."""

    plugin_type = "cli_filter/site"
    plugin_name = "a site's look at options"

    def setup_defaults(self, options: Any, early: bool) -> None:
        """Set what the script and the command line may still say otherwise."""
        if not early or options.command == "srun":
            options["account"] = "physics"

    def pre_submit(self, options: Any, offset: int) -> int:
        """Look at all options."""
        if options["partition"] == "old":
            say("error: partition old is gone; use debug")
            return SLURM_ERROR
        if "time" not in options:
            options["time"] = "10"
        return 0

    def post_submit(self, offset: int, job_id: int, step_id: int) -> None:
        """Tell the number."""
        say(f"job {job_id} is in")
