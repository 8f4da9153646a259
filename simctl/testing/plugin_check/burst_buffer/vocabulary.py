"""What a plugin's own code says of the lines it reads: its examples, its words, its patterns."""

import inspect
import re
from collections.abc import Iterable, Iterator
from types import CodeType, ModuleType
from typing import Any, Final

import attrs

from simctl.testing.plugin_check.burst_buffer.patterns import example_of
from simctl.testing.plugin_check.code import modules_of, source_of

_EXAMPLE: Final = re.compile(r"#[A-Za-z][\w.-]*(?:[ \t]+[^\s`\"'#;,]+)*")
_AFTER_BB: Final = re.compile(r"--bb[= ](?:'([^']+)'|\"([^\"]+)\"|([^\s'\"`,;)]+))")
_PAIRS: Final = re.compile(r"(?<![\w.(,])[a-z]\w*=[\w./-]+(?: +[a-z]\w*=[\w./-]+)*(?![\w(.\[])")
_WORD: Final = re.compile(r"[A-Za-z_][\w-]*")
_MAKING: Final = re.compile(r"create|make|new|add")
_ENDING: Final = ("destroy", "delete", "remove", "end", "drop", "free", "release")
_SHEBANG: Final = ("#!", "#SBATCH")
_LONGEST: Final = 200
_LOOKS_LIKE_A_PATTERN: Final = re.compile(r"\\[sdwSDW]|\(\?P<|\[[^\]]+\][+*]|\([^)]*\|")


@attrs.frozen(kw_only=True)
class Vocabulary:
    """Texts that occur in a plugin's source, each once, in the order of the source."""

    examples: tuple[str, ...] = ()
    """Comment lines that its docstrings, comments and messages show."""

    options: tuple[str, ...] = ()
    """Texts such as ``tier=fast mb=512`` that its docstrings, comments and messages show."""

    beginnings: tuple[str, ...] = ()
    """Texts of its code that begin as a comment line does, such as ``#BB copies``."""

    words: tuple[str, ...] = ()
    """Texts of its code that may be keys or values of a directive."""

    matched: tuple[str, ...] = ()
    """Texts that its regular expressions match."""

    files: frozenset[str] = frozenset()
    """The files of its code."""

    @property
    def verbs(self) -> frozenset[str]:
        """Return the words that make a persistent buffer, or end it: no job's own is asked so."""
        shown = (word for line in self.examples for word in line.split())
        return frozenset(word for pair in verbs_of((*self.words, *shown)) for word in pair)


def vocabulary_of(kind: type[Any]) -> Vocabulary:
    """Read the modules that a plugin class is made of."""
    modules = list(modules_of(kind))
    sources = [source_of(module) for module in modules]
    texts = tuple(dict.fromkeys(text for each in modules for text in _texts(each)))
    patterns = [text for text in texts if _LOOKS_LIKE_A_PATTERN.search(text)]
    matched = tuple(dict.fromkeys(filter(None, (example_of(each) for each in patterns))))
    return Vocabulary(
        examples=tuple(dict.fromkeys(line for source in sources for line in examples_in(source))),
        options=tuple(dict.fromkeys(text for each in sources for text in options_in(each))),
        beginnings=tuple(
            text.rstrip() for text in texts if _EXAMPLE.match(text) and text not in patterns
        ),
        words=tuple(text for text in texts if _WORD.fullmatch(text) and len(text) < 40),  # noqa: PLR2004
        matched=matched,
        files=frozenset(str(module.__file__) for module in modules),
    )


def verbs_of(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return pairs of words that differ by a verb: to make a persistent buffer, and to end it."""
    there = dict.fromkeys(words)
    for word in there:
        making = _MAKING.search(word)
        for verb in _ENDING if making else ():
            ending = f"{word[: making.start()]}{verb}{word[making.end() :]}" if making else ""
            if ending in there:
                yield word, ending


def examples_in(text: str) -> Iterator[str]:
    """Return what may be lines of a directive in a text, as they stand there."""
    for line in text.splitlines():
        for found in _EXAMPLE.finditer(line):
            example = found.group().rstrip(".:)")
            if not example.startswith(_SHEBANG) and len(example) <= _LONGEST:
                yield example


def asked_with(text: str) -> Iterator[str]:
    """Return what stands behind ``--bb=`` in a text."""
    for found in _AFTER_BB.findall(text):
        yield "".join(found)


def options_in(text: str) -> Iterator[str]:
    """Return what may be texts after ``--bb=`` in a text, those first that stand behind it."""
    yield from asked_with(text)
    for line in text.splitlines():
        yield from (each for each in _PAIRS.findall(line) if len(each) <= _LONGEST)


def _texts(module: ModuleType) -> Iterator[str]:
    """Return every text that a module's code and data have, but for docstrings."""
    for name, value in list(vars(module).items()):
        if (
            name.startswith("__")
            or getattr(value, "__module__", module.__name__) != module.__name__
        ):
            continue
        for part in vars(value).values() if isinstance(value, type) else (value,):
            yield from _texts_of(part)


def _texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, re.Pattern):
        yield str(value.pattern)
    elif isinstance(value, dict):
        yield from (text for item in value.items() for part in item for text in _texts_of(part))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (text for part in sorted(value, key=str) for text in _texts_of(part))
    else:
        function = getattr(value, "__func__", value)
        function = getattr(function, "fget", function)
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            yield from _constants(code, inspect.getdoc(function))


def _constants(code: CodeType, doc: str | None) -> Iterator[str]:
    parts: Iterable[Any] = code.co_consts
    for part in parts:
        if isinstance(part, CodeType):
            yield from _constants(part, None)
        elif isinstance(part, str):
            if doc is None or inspect.cleandoc(part) != doc:
                yield part
        elif isinstance(part, tuple | frozenset):
            yield from _texts_of(part)


__all__ = ["Vocabulary", "asked_with", "examples_in", "options_in", "verbs_of", "vocabulary_of"]
