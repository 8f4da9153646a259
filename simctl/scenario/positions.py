"""Where things stand in a scenario file, and the list of everything that is wrong with it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import attrs
import yaml

from simctl import yaml_text
from simctl.limits import MEMBERS, MISTAKES
from simctl.scenario.pattern_words import Known
from simctl.wire.conf.site import Site

_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@attrs.frozen(kw_only=True)
class Usage:
    """What tells of options that commands refuse by themselves, each a text; the commands know."""

    of_line: Callable[[Sequence[str]], list[str]]
    """Takes a command line."""
    of_directive: Callable[[str], list[str]]
    """Takes what stands behind ``#SBATCH`` on a line."""


@attrs.frozen(kw_only=True)
class Mistake:
    """Something wrong at one place of a file; prints as `file:line:column: path: message`.

    `line` and `column` count from 1; a line of 0 means the file as a whole.
    """

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return ": ".join(part for part in (where, self.path, self.message) if part)


class ScenarioErrors(ValueError):
    """A scenario that cannot be run, with every mistake in it.

    Attributes:
        mistakes: all of them, in the order in which they stand in the file.
    """

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__("\n".join(str(mistake) for mistake in mistakes))
        self.mistakes = mistakes


class Unreadable(Exception):
    """Raised where a value cannot be had; the mistake has been noted already."""


@attrs.frozen(kw_only=True)
class Value:
    """A node of the file and the way to it, such as `timeline[0].run`."""

    node: yaml.Node
    path: str
    file: str = ""
    """The file it stands in, where that is another than the scenario's."""

    @property
    def line(self) -> int:
        """Line of the value, from 1."""
        return int(self.node.start_mark.line) + 1

    @property
    def column(self) -> int:
        """Column of the value, from 1."""
        return int(self.node.start_mark.column) + 1

    @property
    def scalar(self) -> str:
        """Text of a scalar as written; empty for a list or mapping."""
        return str(self.node.value) if isinstance(self.node, yaml.ScalarNode) else ""

    @property
    def quoted(self) -> bool:
        """Whether the value is a text in quotes or a block, and so nothing but a text."""
        return isinstance(self.node, yaml.ScalarNode) and bool(self.node.style)

    @property
    def nothing(self) -> bool:
        """Whether nothing is written, or null."""
        plain = isinstance(self.node, yaml.ScalarNode) and not self.quoted
        return plain and self.scalar in {"", "null", "Null", "NULL", "~"}

    def items(self) -> tuple["Value", ...]:
        """Return the items of a list, none for anything else."""
        if not isinstance(self.node, yaml.SequenceNode):
            return ()
        return tuple(
            Value(node=node, path=f"{self.path}[{index}]")
            for index, node in enumerate(self.node.value)
        )

    def child(self, key: str, node: yaml.Node) -> "Value":
        """Return the value under *key* of this mapping."""
        if not _PLAIN_KEY.fullmatch(key):
            return Value(node=node, path=f'{self.path}["{key}"]')
        return Value(node=node, path=f"{self.path}.{key}" if self.path else key)

    def shown(self) -> str:
        """Describe the value in a message: what it is, and its text if that is short."""
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if self.nothing:
            return "nothing"
        text = self.scalar if len(self.scalar) <= _SHOWN else f"{self.scalar[:_SHOWN]}..."
        return '"' + text.replace("\n", "\\n") + '"'


_SHOWN: Final = 60


@attrs.define(kw_only=True)
class Reading:
    """One reading of one file: its lines, what is wrong, and names that later parts refer to."""

    file: str
    lines: tuple[str, ...]
    mistakes: list[Mistake] = attrs.field(factory=list)
    warnings: list[Mistake] = attrs.field(factory=list)
    folder: str = "."
    users: dict[str, int] = attrs.field(factory=dict)
    nodes: dict[str, int] = attrs.field(factory=dict)
    """Each node's place in the order of the scenario."""
    _members: int = 0
    """How many nodes the partitions so far have together."""
    unsure: list[str] = attrs.field(factory=list)
    """Keys of the top level, nodes or users, of which some names could not be read."""
    partitions: dict[str, bool] = attrs.field(factory=dict)
    """Whether each partition is said to be the default."""
    runs: list[tuple[Value, tuple[str, ...], bool]] = attrs.field(factory=list)
    """The command lines of the timeline, with their places, and whether each is to fail."""
    usage: Usage | None = None
    """What tells of options that commands refuse, if they are to be looked at."""
    site: Site | None = None
    """The site's own slurm.conf, where the scenario names one."""
    backup: str = ""
    """The host of the backup controller, if there is one."""
    burst_buffers: dict[str, dict[str, str]] = attrs.field(factory=dict)
    """What the site's own burst_buffer.conf says, or each plugin's by its name."""
    overridden: dict[str, set[tuple[str, str]]] = attrs.field(factory=dict)
    """What the scenario says of the site's `nodes` and `partitions`: names and keys."""
    lenient: bool = False
    """Whether what is not simulated of the site's file is left out, and is no mistake."""
    plugin_types: tuple[str, ...] = ()
    """With that, the plugins there are."""
    left_out: list[Mistake] = attrs.field(factory=list)
    """What was left out so."""
    loaded: tuple[str, ...] = ()
    """The plugins that slurm.conf names, such as ``switch/none``; none where that is not known."""
    known: Known | None = None
    """What there was in a run that is over, and that is what is read about."""
    functions: tuple[str, ...] = ()
    event_names: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    kept: list[tuple[str, Value]] = attrs.field(factory=list)
    """The plugins whose state is held to rules, with their places."""

    def mistake(self, value: Value, message: str) -> None:
        """Note what is wrong with *value*."""
        self.mistakes.append(self._at(value, message))

    def refuse(self, value: Value, message: str) -> Unreadable:
        """Note what is wrong with *value* and return what to raise."""
        self.mistake(value, message)
        return Unreadable(message)

    def warn(self, value: Value, message: str) -> None:
        """Note what is allowed and yet probably not meant."""
        self.warnings.append(self._at(value, message))

    def mistake_within(self, value: Value, offset: int, message: str) -> None:
        """Note what is wrong at the character *offset* of a one-line text."""
        column = value.column
        if isinstance(value.node, yaml.ScalarNode) and value.node.style not in {"|", ">"}:
            column += offset + (1 if value.quoted else 0)
        self.mistakes.append(attrs.evolve(self._at(value, message), column=column))

    def mistake_in_block(self, value: Value, line: int, column: int, message: str) -> None:
        """Note what is wrong at a line and column, both from 1, of a text of several lines.

        Only in a literal block (`|`) do lines of the text stand on lines of the file; elsewhere
        the mistake gets the place of the text, and the message names the line in it.
        """
        self.mistakes.append(self._in_block(value, line, column, message))

    def warn_in_block(self, value: Value, line: int, message: str) -> None:
        """Note what is probably not meant on a line, from 1, of a text of several lines."""
        self.warnings.append(self._in_block(value, line, 1, message))

    def members(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Count the nodes of one more partition, and return them.

        Raises:
            ValueError: All partitions together have too many.
        """
        self._members += len(names)
        if self._members > MEMBERS:
            raise ValueError(f"all partitions together have more than {MEMBERS} nodes, the most")
        return names

    def _at(self, value: Value, message: str) -> Mistake:
        return Mistake(
            file=value.file or self.file,
            line=value.line,
            column=value.column,
            path=value.path,
            message=message,
        )

    def _in_block(self, value: Value, line: int, column: int, message: str) -> Mistake:
        if not isinstance(value.node, yaml.ScalarNode) or value.node.style != "|":
            return self._at(value, f"line {line} of the text: {message}")
        file_line = value.line + line
        text = value.scalar.split("\n")[line - 1] if line <= value.scalar.count("\n") + 1 else ""
        written = self.lines[file_line - 1] if file_line <= len(self.lines) else ""
        indent = max(len(written) - len(text), 0) if written.endswith(text) else 0
        return attrs.evolve(self._at(value, message), line=file_line, column=indent + column)


def pairs(value: Value, reading: Reading) -> Iterator[tuple[Value, str, Value]]:
    """Go through a mapping: the key's own place, the key, the value.

    Keys given twice and keys that are no words are noted as mistakes and left out. A merge key
    (`<<: *other`) brings the pairs of another mapping, below those written here.
    """
    found = _own_pairs(value, reading)
    for merged in _merged(value, reading):
        for key, pair in _own_pairs(Value(node=merged, path=value.path), reading).items():
            found.setdefault(key, pair)
    for key, (key_node, node) in found.items():
        child = value.child(key, node)
        yield Value(node=key_node, path=child.path), key, child


def _own_pairs(value: Value, reading: Reading) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    for key_node, node in value.node.value:
        place = Value(node=key_node, path=value.path)
        key = place.scalar
        if not isinstance(key_node, yaml.ScalarNode) or not key:
            reading.mistake(place, f"expected a word as key, got {place.shown()}")
        elif key in found:
            first = Value(node=found[key][0], path="").line
            reading.mistake(value.child(key, key_node), f"key given twice, first on line {first}")
        elif key != _MERGE or place.quoted:
            found[key] = (key_node, node)
    return found


_MERGE: Final = "<<"


def _merged(value: Value, reading: Reading) -> tuple[yaml.MappingNode, ...]:
    """Return the mappings a merge key names; one that merges others in turn is refused."""
    merged: list[yaml.MappingNode] = []
    for key_node, node in value.node.value:
        if key_node.value != _MERGE or key_node.style:
            continue
        for one in node.value if isinstance(node, yaml.SequenceNode) else (node,):
            if isinstance(one, yaml.MappingNode) and not any(
                inner.value == _MERGE for inner, _ in one.value
            ):
                merged.append(one)
            else:
                reading.mistake(
                    Value(node=key_node, path=value.path),
                    "<<: takes an alias of a mapping, or a list of them, without a << of its own",
                )
    return tuple(merged)


def compose(
    text: str,
    file: str,
    *,
    empty: str = "the file is empty: a scenario has at least `nodes:` and `partitions:`",
) -> yaml.Node:
    """Parse YAML without giving scalars a type: what a value means depends on where it stands.

    *empty* is what to say of a text that holds nothing.

    Raises:
        ScenarioErrors: the text is no YAML, empty, or more than one document.
    """
    try:
        node = yaml_text.compose(text)
    except yaml.YAMLError as error:
        raise ScenarioErrors((_yaml_mistake(error, text, file),)) from error
    if node is None:
        raise ScenarioErrors((_whole_file(file, empty),))
    return node


def _whole_file(file: str, message: str) -> Mistake:
    return Mistake(file=file, line=0, column=0, path="", message=message)


def _yaml_mistake(error: yaml.YAMLError, text: str, file: str) -> Mistake:
    problem = str(getattr(error, "problem", "") or getattr(error, "reason", "") or error)
    if "another document" in problem:
        problem = "a file holds one scenario; put what follows `---` in a file of its own"
    elif "\\t" in problem:
        problem = "a tab cannot indent or begin a value in YAML; use spaces"
    context = str(getattr(error, "context", "") or "")
    message = f"not YAML: {problem}" + (f" ({context})" if context else "")
    if isinstance(error, yaml_text.BoundError):
        message = problem
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        line, column = int(mark.line) + 1, int(mark.column) + 1
    else:
        line, column = line_and_column(text, int(getattr(error, "position", 0)))
    return Mistake(file=file, line=line, column=column, path="", message=message)


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Return line and column, both from 1, of a character of *text*."""
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def sort_mistakes(mistakes: list[Mistake]) -> tuple[Mistake, ...]:
    """Return the mistakes in the order of the file, each once."""
    unique: Mapping[Mistake, None] = dict.fromkeys(mistakes)
    found = sorted(unique, key=lambda one: (one.file, one.line, one.column, one.path, one.message))
    if len(found) <= MISTAKES:
        return tuple(found)
    more = f"and {len(found) - MISTAKES} more after these"
    last = Mistake(file=found[0].file, line=0, column=0, path="", message=more)
    return (*found[:MISTAKES], last)
