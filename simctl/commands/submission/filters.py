"""Show the options of a command to cli_filter plugins, and do what they say."""

from collections.abc import Iterable, Sequence

from simctl.commands.arguments.command_line import Given
from simctl.commands.arguments.options import Grammar, UsageError, with_nice
from simctl.plugins.points.cli_filter import post_submit, pre_submit, setup_defaults
from simctl.site import CommandCall
from simctl.wire.cli_options import CliOptions
from simctl.wire.ids import NO_VAL

_ENDED = "cli_filter plugin terminated with error"
_FLAG = "set"


class Filters:
    """The cli_filter plugins of one command, in the order of slurm.conf; often none."""

    def __init__(self, call: CommandCall, grammar: Grammar) -> None:
        self._call = call
        self._grammar = grammar
        self._types = call.site.conf.cli_filter_types

    async def load(self) -> None:
        """Load the plugins.

        Raises:
            UsageError: One cannot be.
        """
        for plugin_type in self._types:
            who = self._call.process
            loaded = await self._call.site.hooks.load(who, "cli_filter", plugin_type=plugin_type)
            self._tell()
            if not loaded:
                raise self._ends(f"cannot create cli_filter context for {plugin_type}")

    async def unload(self) -> None:
        """Run fini of the plugins that were loaded."""
        for plugin_type in self._types:
            who = self._call.process
            await self._call.site.hooks.unload(who, "cli_filter", plugin_type=plugin_type)

    async def defaults(self, *, early: bool = False) -> Given:
        """Return the options that plugins set before all others.

        Raises:
            UsageError: One ends the command.
        """
        if not self._types:
            return []
        if not self._types:
            return []
        options = self._options((), (), early=early)
        for plugin_type in self._types:
            rc = await self._call.site.hooks.call(
                setup_defaults, self._call.process, options, early, plugin_type=plugin_type
            )
            self._check(rc)
        return self._given(options)

    async def before(self, given: Given) -> Given:
        """Return the options with those behind them that plugins set, who have seen them all.

        Raises:
            UsageError: One ends the command.
        """
        if not self._types:
            return given
        _, words = self._grammar.split(with_nice(self._call.argv[1:]))
        options = self._options(given, words, early=False)
        for plugin_type in self._types:
            rc = await self._call.site.hooks.call(
                pre_submit, self._call.process, options, 0, plugin_type=plugin_type
            )
            self._check(rc)
        return [*given, *self._given(options)]

    async def after(self, job_id: int, step_id: int = NO_VAL) -> None:
        """Tell the plugins which job, or step, was made."""
        for plugin_type in self._types:
            await self._call.site.hooks.call(
                post_submit, self._call.process, 0, job_id, step_id, plugin_type=plugin_type
            )
            self._tell()

    def _options(
        self, given: Iterable[tuple[object, str]], words: Sequence[str], *, early: bool
    ) -> CliOptions:
        values: dict[str, str] = {}
        for option, text in given:
            for other in getattr(option, "ousts", ()):
                values.pop(other, None)
            values[getattr(option, "long", "")] = text or _FLAG
        names = frozenset(each.long for each in self._grammar.options)
        return CliOptions(
            self._grammar.command,
            values,
            tuple(words),
            names,
            early=early,
            others=frozenset(each for each in self._grammar.unbuilt if len(each) > 1),
            work_dir=self._call.work_dir,
        )

    def _given(self, options: CliOptions) -> Given:
        found: Given = []
        for name, text in options.set_now().items():
            option = self._grammar.named(name)
            found.append((option, text if option.read is not None else ""))
        return found

    def _check(self, rc: object) -> None:
        self._tell()
        if rc:
            for line in self._call.process.why.splitlines():
                self._call.err(f"{self._grammar.command}: error: {line}")
            raise self._ends(_ENDED)

    def _tell(self) -> None:
        """Print what plugins have to say."""
        for line in self._call.process.spoken:
            self._call.err(f"{self._grammar.command}: {line}")
        self._call.process.spoken.clear()

    def _ends(self, why: str) -> UsageError:
        return UsageError(1, f"{self._grammar.command}: error: {why}")
