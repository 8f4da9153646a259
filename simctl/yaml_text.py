"""YAML within bounds: data and nothing else, not nested too deep, no aliases that explode."""

from typing import Any, Final

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent

from simctl.limits import NESTING, VALUES

_SLOW: Final = 1 << 18
"""Characters from which on Python's parser would take long only to word a message better."""

_MANY: Final = 1 << 20
"""Characters from which on values are counted before there are nodes of them."""

_OPENING: Final = "[{"
_INDENTING: Final = " -?:"


class BoundError(yaml.MarkedYAMLError):
    """YAML that goes too far; `problem` says how."""


def compose(text: str) -> yaml.Node | None:
    """Return the nodes of one document; nothing in it has a type yet, and tags are only words.

    Raises:
        yaml.YAMLError: The text is no YAML, more than a document, or beyond a bound.
    """
    _refuse_excess(text)
    node = _compose(text)
    if node is not None:
        _refuse_explosion(node)
    return node


def load(text: str) -> Any:
    """Return the data of one document, of YAML's own types.

    Raises:
        yaml.YAMLError: As of `compose`, or a tag means nothing, or a value is none of its type.
    """
    compose(text)
    try:
        return yaml.safe_load(text)
    except (ValueError, LookupError, AttributeError) as error:
        raise yaml.YAMLError(f"a value cannot be read: {error}") from error


def _compose(text: str) -> yaml.Node | None:
    """Compose with libyaml where PyYAML has it, for speed; messages come from Python's parser."""
    fast = getattr(yaml, "CBaseLoader", None)
    if fast is not None:
        try:
            return _single(yaml.compose(text, Loader=fast))
        except yaml.YAMLError:
            if len(text) > _SLOW:
                raise
    return _single(yaml.compose(text, Loader=yaml.BaseLoader))


def _single(node: object) -> yaml.Node | None:
    return node if isinstance(node, yaml.Node) else None


def _refuse_excess(text: str) -> None:
    """Refuse lists and mappings that are nested too deep, and too many values.

    libyaml's composer, and any walk over the nodes after it, calls itself for each level.

    Raises:
        BoundError: They are.
    """
    if len(text) < _MANY and not _may_be_deep(text):
        return
    depth = count = 0
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
            if isinstance(event, CollectionStartEvent):
                depth += 1
            elif isinstance(event, CollectionEndEvent):
                depth -= 1
            count += 1
            if depth > NESTING:
                raise _too_deep(event.start_mark)
            if count > 2 * VALUES:  # each list and mapping has an end as well
                raise _too_many(event.start_mark)
    except RecursionError:
        raise _too_deep(None) from None
    except BoundError:
        raise
    except yaml.YAMLError:
        pass  # composing it says so as well, and where


def _too_deep(mark: Any) -> BoundError:
    problem = f"lists and mappings are nested too deeply, more than {NESTING} deep"
    return BoundError(problem=problem, problem_mark=mark)


def _too_many(mark: Any) -> BoundError:
    problem = f"there are more than {VALUES} values here, aliases and all"
    return BoundError(problem=problem, problem_mark=mark)


def _may_be_deep(text: str) -> bool:
    """Tell quickly what cannot be nested deep: it has few brackets, and few columns before words.

    Brackets nest, and so does each column of what a line begins with.
    """
    brackets = sum(map(text.count, _OPENING))
    if brackets > NESTING:
        return True
    most = NESTING - brackets
    return any(len(line) - len(line.lstrip(_INDENTING)) >= most for line in text.splitlines())


def _refuse_explosion(root: yaml.Node) -> None:
    """Refuse aliases that make more values than a file may have, or a value of itself.

    Raises:
        BoundError: They do.
    """
    counts: dict[int, int] = {}
    open_nodes: set[int] = set()

    def count(node: yaml.Node) -> int:
        known = counts.get(id(node))
        if known is not None:
            return known
        if id(node) in open_nodes:
            raise BoundError(
                problem="an alias stands inside of what it is an alias of",
                problem_mark=node.start_mark,
            )
        open_nodes.add(id(node))
        total = 1
        if isinstance(node, yaml.ScalarNode):
            _refuse_half_pair(node)
        elif isinstance(node, yaml.MappingNode):
            total += sum(count(key) + count(value) for key, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            total += sum(map(count, node.value))
        if total > VALUES:
            raise _too_many(node.start_mark)
        open_nodes.discard(id(node))
        counts[id(node)] = total
        return total

    count(root)


def _refuse_half_pair(node: yaml.ScalarNode) -> None:
    """Refuse half of a surrogate pair, which no file could hold again.

    Raises:
        BoundError: There is one.
    """
    if node.value.isascii():
        return
    try:
        node.value.encode()
    except UnicodeEncodeError as error:
        half = ord(node.value[error.start])
        raise BoundError(
            problem=f"\\u{half:04x} is half of a surrogate pair, and no character",
            problem_mark=node.start_mark,
        ) from None
