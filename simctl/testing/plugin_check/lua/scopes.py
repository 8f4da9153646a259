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


def out_of_block(source: Source) -> Iterator[tuple[str, int, str, int]]:
    """Yield names that were local to a block that has ended, and are none here.

    Each once a function, with line, function and the line on which it was local.
    """
    words, variables, walk = source.tokens, set(_variables(source)), _Walk(source)
    shared = _shared(source)
    found: set[tuple[int, str]] = set()
    for at, word in enumerate(words):
        walk.past(at)
        line = walk.gone[-1].get(word.text, 0)
        if not line or at not in variables or at in walk.headers:
            continue
        first = walk.inside[-1].first if walk.inside else -1
        elsewhere = any(each != first or set_at <= at for each, set_at in shared.get(word.text, ()))
        is_known = elsewhere or any(word.text in scope for scope in walk.scopes)
        if (first, word.text) not in found and not is_known:
            found.add((first, word.text))
            name = next((each.name for each in reversed(walk.inside) if each.name), "")
            yield word.text, word.line, name, line


def _shared(source: Source) -> dict[str, list[tuple[int, int]]]:
    """Return where names are set for all: the first word of the function, and the name's number."""
    words, found = source.tokens, dict[str, list[tuple[int, int]]]()
    for at in _variables(source):
        names, after = _list(source, at)
        if after == "=" and (words[at - 1].text if at else "") not in ("local", "for", ","):
            around = _around(source, at)
            for name in names:
                found.setdefault(name, []).append((around[0].first if around else -1, at))
    for function, (at, _) in zip(source.functions, _signatures(source).values(), strict=True):
        if at == 0 or words[at - 1].text != "local":
            found.setdefault(function.name, []).append((-2, at))
    return found


class _Walk:
    """Goes through a script, and knows what is local where it is."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._begins = {each.first: each for each in source.functions}
        self._ends = {each.last for each in source.functions}
        self._of_loops: list[dict[str, int]] = []
        self.inside: list[Function] = []
        self.scopes: list[dict[str, int]] = [{}]
        self.gone: list[dict[str, int]] = [{}]
        """What was local to blocks that have ended, of each function around."""
        self.headers: set[int] = set()
        """The names of loops, where these declare them."""

    def past(self, at: int) -> None:
        """Go past a word."""
        word = self._source.tokens[at]
        keyword = word.text if word.kind == "keyword" else ""
        if at in self._begins:
            self.inside.append(self._begins[at])
            self.scopes.append(dict.fromkeys((*self._begins[at].parameters, "self"), word.line))
            self.gone.append({})
        elif at in self._ends:
            for stack in (self.inside, self.scopes, self.gone):
                stack.pop()
        elif keyword in ("end", "else", "elseif", "until"):
            self._end(keyword)
        elif keyword in ("local", "for", "while"):
            self._declare(at, keyword)
        if keyword == "do":
            self.scopes.append(self._of_loops.pop() if self._of_loops else {})
        elif keyword in ("then", "else", "repeat"):
            self.scopes.append({})

    def _end(self, keyword: str) -> None:
        last = self.scopes.pop() if len(self.scopes) > 1 else {}
        # The condition of `until` sees what is local to its loop.
        into = self.scopes[-1] if keyword == "until" and self.scopes else self.gone[-1]
        into.update(last)

    def _declare(self, at: int, keyword: str) -> None:
        words = self._source.tokens
        names: list[str] = []
        if keyword == "local" and words[at + 1].text == "function":
            names = [words[at + 2].text]
        elif keyword != "while":
            names = _list(self._source, at + 1)[0]
        declared = dict.fromkeys(names, words[at].line)
        if keyword == "local":
            self.scopes[-1].update(declared)
        else:
            self._of_loops.append(declared)
            self.headers |= {at + 1 + 2 * each for each in range(len(names))}


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
