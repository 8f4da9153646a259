"""What an author's own scenarios say of the directives that the plugin takes."""

import re
from collections.abc import Iterator

from simctl.scenario.model import RunEntry, Scenario
from simctl.testing.plugin_check.burst_buffer.directives import Directive

_OPTION = re.compile(r"--bb[= ](?:'([^']*)'|\"([^\"]*)\"|(\S+))")


def directives_of(scenario: Scenario) -> Iterator[Directive]:
    """Return what its batch scripts and commands ask burst buffers with, each once."""
    found: dict[Directive, None] = {}
    for text in scenario.files.values():
        lines = text.splitlines()
        if not lines or not lines[0].startswith("#!"):
            continue
        own = tuple(
            line for line in lines[1:] if re.match(r"#\w", line) and not line.startswith("#SBATCH")
        )
        if own:
            found[Directive(own)] = None
    for entry in scenario.timeline:
        if isinstance(entry, RunEntry):
            for words in _OPTION.findall(entry.command):
                found[Directive((), "".join(words))] = None
    return iter(found)


__all__ = ["directives_of"]
