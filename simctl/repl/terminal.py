"""A session on a terminal: history, completion and colour, through prompt_toolkit."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead

from simctl.repl.errors import CommandError
from simctl.repl.fronts import Front
from simctl.repl.registry import COMMANDS, lookup
from simctl.repl.session import Session


class TerminalFront(Front):
    """Lines that a person edits; `session` is asked for the words that may come next."""

    greets = True

    def __init__(self, out: IO[str]) -> None:
        super().__init__(out)
        self.session: Session | None = None
        self._lines_shown = 0
        self._skips = False
        # As https://no-color.org has it: set, and to more than nothing.
        self.colours = not os.environ.get("NO_COLOR")
        self._prompts: PromptSession[str] | None = None
        self._lines: list[str] = []

    def attend(self, session: Session) -> None:
        """Complete the words of this session from now on."""
        self.session = session

    def write(self, text: str, colour: str = "") -> None:
        """Print text, a page at a time."""
        for line in text.splitlines(keepends=True):
            if self._lines_shown >= _page_lines() and not self._skips:
                self._skips = self._turns_page()
                self._lines_shown = 0
            if not self._skips:
                super().write(line, colour)
                self._lines_shown += 1

    def _turns_page(self) -> bool:
        """Ask whether to go on with long output; return whether the rest is to be left out."""
        self.flush()
        try:
            answer = PromptSession[str]().prompt("-- more: Enter, or q to leave the rest out -- ")
        except (KeyboardInterrupt, EOFError):
            return True
        return answer.strip().lower().startswith("q")

    def read(self, prompt: str) -> str | None:
        """Return the line that a person typed; Ctrl-C gives it up, Ctrl-D at its start leaves."""
        while not self._lines:
            try:
                typed = self._ask(prompt)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None
            # What is pasted may be several lines.
            self._lines = typed.splitlines() or [""]
        return self._lines.pop(0)

    def more(self) -> str | None:
        """Return a line of a file that is being written."""
        if self._lines:
            return self._lines.pop(0)
        try:
            return self._ask("> ")
        except (KeyboardInterrupt, EOFError):
            return None

    def _ask(self, prompt: str) -> str:
        self.flush()
        self._lines_shown, self._skips = 0, False
        if self._prompts is None:
            self._prompts = PromptSession(
                history=_history(),
                completer=_Words(lambda: self.session),
                complete_while_typing=False,
                bottom_toolbar=self._next,
            )
        # Reading a line sets both, and trio needs its own afterwards.
        at_ctrl_c = signal.getsignal(signal.SIGINT)
        wakes = signal.set_wakeup_fd(-1)
        try:
            shown = FormattedText([("bold" if self.colours else "", prompt)])
            return self._prompts.prompt(shown, handle_sigint=False)
        finally:
            signal.set_wakeup_fd(wakes)
            signal.signal(signal.SIGINT, at_ctrl_c)

    def edit(self, name: str, text: str) -> str:
        """Run the person's editor on a real file with the text.

        Raises:
            CommandError: The editor cannot be run, or failed.
        """
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        suffix = Path(name).suffix
        with tempfile.NamedTemporaryFile("w+", suffix=suffix, encoding="utf-8") as file:
            file.write(text)
            file.flush()
            try:
                ran = subprocess.run([*shlex.split(editor), file.name], check=False)
            except (OSError, ValueError) as error:
                raise CommandError(f"cannot run {editor!r}: {error}") from error
            if ran.returncode:
                raise CommandError(f"{editor!r} left with status {ran.returncode}; nothing changed")
            # An editor may have put another file in its place.
            return Path(file.name).read_text(encoding="utf-8", errors="replace")

    def _next(self) -> FormattedText:
        words = "" if self.session is None else f"next: {self.session.ahead()}"
        return FormattedText([("", words[: os.get_terminal_size().columns - 1])])

    def unread(self) -> Any:
        """Return lines that were pasted, and keys that were typed ahead."""
        keys = [] if self._prompts is None else get_typeahead(self._prompts.input)
        return self._lines, keys

    def resume(self, unread: Any) -> None:
        """Go on with what was pasted or typed ahead; the history is read anew."""
        self._lines, keys = unread
        self._prompts = None
        if keys:
            self._prompts = PromptSession(history=_history())
            store_typeahead(self._prompts.input, keys)
            self._prompts = None


def _page_lines() -> int:
    """Return how many lines fit the screen, above a prompt; very many where that is not known."""
    lines = shutil.get_terminal_size((80, 0)).lines
    return lines - 1 if lines > _LEAST_LINES else sys.maxsize


_LEAST_LINES: Final = 4


def _history() -> History:
    """Return the lines of earlier sessions, in the user's folder for such things."""
    root = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(root) / "simctl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "repl_history").touch()
    except (OSError, RuntimeError):
        return InMemoryHistory()
    return FileHistory(str(folder / "repl_history"))


class _Words(Completer):
    """Gives the words that may come next."""

    def __init__(self, session: "Callable[[], Session | None]") -> None:
        self._session = session

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Return what begins as the word at the cursor does."""
        before = document.text_before_cursor
        word = "" if not before or before[-1].isspace() else before.split()[-1]
        parts = before[: len(before) - len(word)].split()
        for each in sorted(dict.fromkeys(self._words(parts))):
            if each.startswith(word):
                end = "" if each.endswith("=") else " "
                yield Completion(each + end, start_position=-len(word), display=each)

    def _words(self, parts: list[str]) -> Iterable[str]:
        session = self._session()
        if not parts or session is None:
            return COMMANDS
        found = lookup(parts[0])
        return () if found is None else found.words(session, parts[1:])
