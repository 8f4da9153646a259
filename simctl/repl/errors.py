"""What is wrong with a line that was typed."""


class CommandError(Exception):
    """A command cannot do what it was asked; the text says why, and what would do."""
