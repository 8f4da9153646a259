"""switch/none: for networks that need no set-up, such as Ethernet."""

from typing import ClassVar

from simctl.plugin import SwitchPlugin


class SwitchNone(SwitchPlugin):
    """Answer every call with success and keep nothing; the credential is empty."""

    __slots__ = ()

    plugin_type: ClassVar[str] = "switch/none"
    plugin_name: ClassVar[str] = "no interconnect to set up"
    plugin_version: ClassVar[int] = 100
