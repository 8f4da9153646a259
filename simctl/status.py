"""How the command ends: its exit statuses, and the error that stands for wrong input."""

from typing import Final

OK: Final = 0
NOT_HELD: Final = 1
WRONG_INPUT: Final = 2
BROKEN: Final = 3
INTERRUPTED: Final = 130


class InputError(Exception):
    """Something the user gave is wrong; the text says what.

    With *placed* each line begins with a file, a line and a column, as editors like it.
    """

    def __init__(self, text: str, *, placed: bool = False) -> None:
        super().__init__(text)
        self.placed = placed
