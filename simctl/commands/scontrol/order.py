"""One keyword of scontrol with its words, and how its answer is to look."""

import attrs

from simctl.commands.arguments.options import UsageError
from simctl.commands.asking.ask import ask
from simctl.site import CommandCall
from simctl.wire.errno import SLURM_SUCCESS, SlurmError, errno_name, slurm_strerror
from simctl.wire.messages import Message, ResponseSlurmRc


@attrs.frozen(kw_only=True)
class Order:
    """What scontrol is told to do: a keyword as it was written, the words after it, the options."""

    call: CommandCall
    keyword: str
    name: str = ""
    """The keyword in full, where it was shortened."""

    words: tuple[str, ...] = ()
    oneliner: bool = False
    details: bool = False
    quiet: bool = False

    def with_words(self, words: tuple[str, ...]) -> "Order":
        """Return the same with other words."""
        return attrs.evolve(self, words=words)

    def complain(self, text: str) -> None:
        """Write a line to standard error, unless scontrol is to be quiet."""
        if not self.quiet:
            self.call.err(text)

    def print_records(self, records: list[list[str]]) -> None:
        """Print records of several lines: one below the other, or each in one line."""
        between, after = (" ", "\n") if self.oneliner else ("\n   ", "\n\n")
        for lines in records:
            self.call.write("stdout", between.join(lines) + after)

    def count(self, least: int, most: int | None = None) -> None:
        """Refuse too few words, or too many.

        Raises:
            UsageError: With what scontrol says then.
        """
        if len(self.words) < least:
            raise self._wrong_count("few")
        if most is not None and len(self.words) > most:
            raise self._wrong_count("many")

    def _wrong_count(self, how: str) -> UsageError:
        return UsageError(1, *self._unless_quiet(f"too {how} arguments for keyword:{self.keyword}"))

    def _unless_quiet(self, line: str) -> tuple[str, ...]:
        return () if self.quiet else (line,)

    async def ask(self, request: Message, *, once: bool = False) -> int:
        """Send a request; return the error it is answered with, or why it is not."""
        reply = await self.exchange(request, once=once)
        return reply if isinstance(reply, int) else SLURM_SUCCESS

    async def load(self, request: Message, what: str) -> Message | None:
        """Send a request and return its answer; None after it was said that *what* has failed."""
        reply = await self.exchange(request)
        if isinstance(reply, int):
            self.complain(f"{what} error: {slurm_strerror(reply)}")
            return None
        return reply

    async def exchange(self, request: Message, *, once: bool = False) -> Message | int:
        """Send a request; return its answer, or the error it is answered with instead.

        One that is tried *once* fails at once if slurmctld is away.
        """
        try:
            reply = await ask(self.call, request, once=once)
        except SlurmError as error:
            self.call.errno = errno_name(error.errno)
            return error.errno
        if isinstance(reply, ResponseSlurmRc) and reply.return_code != SLURM_SUCCESS:
            self.call.errno = errno_name(reply.return_code)
            return reply.return_code
        return reply
