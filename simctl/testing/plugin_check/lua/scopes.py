"""Names that a script reads and nothing sets: misspelt, or parameters of other functions."""

from collections.abc import Iterator
from typing import Final

from simctl.testing.plugin_check.lua.source import Function, Source

_OF_LUA: Final = frozenset(
    """
    _G _VERSION arg assert bit32 collectgarbage coroutine debug dofile error gcinfo getfenv
    getmetatable io ipairs load loadfile loadstring math module newproxy next os package pairs pcall
    print rawequal rawget rawlen rawset require select self setfenv setmetatable string table
    tonumber tostring type unpack utf8 warn xpcall slurm const close
    """.split()
)
_BRINGS: Final = frozenset("dofile loadfile load loadstring setfenv module _ENV _G".split())
"""Whoever uses these may set names that are written nowhere in the script."""

_OF_SIMCTL: Final = frozenset("posix lfs socket json cjson dkjson lunajson inspect".split())
_TESTS: Final = frozenset({"==", "~="})
_TRUTHS: Final = frozenset({"not", "and", "or", "if", "elseif", "while", "="})
_AFTER_TRUTH: Final = frozenset({"and", "or", "then", "do", ")"})


def undefined(source: Source) -> Iterator[tuple[str, int, str]]:
    """Yield names that are nil wherever they are read, once a function, with line and function.

    Blocks within a function are not told apart, and what a script asks about is not yielded.
    """
    words = source.tokens
    if any(each.kind == "name" and each.text in _BRINGS for each in words) or _modules(source):
        return
    declared = _declared(source)
    found: set[tuple[str, str]] = set()
    for at in _variables(source):
        name = words[at].text
        around = _around(source, at)
        known = name in _OF_LUA | _OF_SIMCTL or name in declared.get(None, ())
        if known or any(name in declared.get(each.first, ()) for each in around):
            continue
        function = next((each.name for each in around if each.name), "")
        if (name, function) not in found and not _is_asked(source, name):
            found.add((name, function))
            yield name, words[at].line, function


def _modules(source: Source) -> bool:
    """Return whether a script loads modules of its site, which may set anything."""
    words = source.tokens
    for at in range(len(words) - 1):
        if words[at].kind == "name" and words[at].text == "require":
            wanted = words[at + 2] if words[at + 1].text == "(" else words[at + 1]
            if str(wanted.value or "").split(".")[0] not in _OF_SIMCTL:
                return True
    return False


def _signatures(source: Source) -> dict[int, tuple[int, int]]:
    """Return where the words of each signature stand, by the number of its function's first."""
    words, found = source.tokens, {}
    for function in source.functions:
        at = function.first
        while at > 0 and not (words[at].kind == "keyword" and words[at].text == "function"):
            at -= 1
        found[function.first] = (at, function.first)
    return found


def _around(source: Source, at: int) -> list[Function]:
    """Return the functions that a word is in, the innermost first."""
    found = [each for each in source.functions if each.first <= at <= each.last]
    return sorted(found, key=lambda each: -each.first)


def _variables(source: Source) -> Iterator[int]:
    """Yield the numbers of the words that are names of variables, and no names of fields."""
    words = source.tokens
    skipped = {at for first, last in _signatures(source).values() for at in range(first, last + 1)}
    inside: list[str] = []
    for at, word in enumerate(words):
        if word.text in ("{", "(", "[") and word.kind == "sign":
            inside.append(word.text)
        elif word.text in ("}", ")", "]") and word.kind == "sign" and inside:
            inside.pop()
        if word.kind != "name" or at in skipped:
            continue
        before = words[at - 1].text if at else ""
        after = words[at + 1].text if at + 1 < len(words) else ""
        is_key = after == "=" and inside[-1:] == ["{"]
        if before not in (".", ":", "::", "goto") and after != "::" and not is_key:
            yield at


def _declared(source: Source) -> dict[int | None, set[str]]:
    """Return what is set for all (None) and in each function, by the number of its first word."""
    words = source.tokens
    found: dict[int | None, set[str]] = {None: set()}
    for function in source.functions:
        found.setdefault(function.first, set()).update(function.parameters)
        found[None].add(function.name.partition(".")[0].partition(":")[0])
    for at in _variables(source):
        names, after = _list(source, at)
        before = words[at - 1].text if at else ""
        if before in ("local", "for"):
            around = _around(source, at)
            found.setdefault(around[0].first if around else None, set()).update(names)
        elif after == "=":
            found[None].update(names)
    return found


def _list(source: Source, at: int) -> tuple[list[str], str]:
    """Return the names of a list that begins at a word, and what follows it."""
    words, names = source.tokens, []
    while at < len(words) and words[at].kind == "name":
        names.append(words[at].text)
        at += 1
        if at + 2 < len(words) and words[at].text == "<" and words[at + 2].text == ">":
            at += 3
        if at >= len(words) or words[at].text != ",":
            break
        at += 1
    return names, words[at].text if at < len(words) else ""


def _is_asked(source: Source, name: str) -> bool:
    """Return whether a script asks somewhere if there is something of a name."""
    words = source.tokens
    for at in range(1, len(words) - 2):
        if words[at].text != name or words[at].kind != "name":
            continue
        before, after, second = words[at - 1].text, words[at + 1].text, words[at + 2].text
        of_type = before == "(" and words[at - 2].text == "type"
        if of_type or (after in _TESTS and second == "nil"):
            return True
        if before in _TRUTHS and after in _AFTER_TRUTH:
            return True
    return False
