"""What the reader of a site's file hands back."""

import attrs


@attrs.frozen(kw_only=True)
class Imported:
    """A scenario made of a site's file."""

    text: str
    told: str
    """What it holds, in one line for people."""
    warnings: tuple[str, ...] = ()
