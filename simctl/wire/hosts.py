"""Names of hosts that are no nodes."""

from typing import Final

LOGIN: Final = "login"
"""The host where the commands of a timeline are typed; no node may have its name."""


CONTROLLER: Final = "slurmctld"
"""The host of the controller."""
