"""The commands of a script: lists, ``&&`` and ``||``, ``if``, loops and groups."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import attrs

from simctl.limits import SCRIPT_NESTING
from simctl.stepd.scripts.rules import BUILTINS, IN_BACKGROUND
from simctl.stepd.scripts.simple import REDIRECTING, SimpleCommands
from simctl.stepd.scripts.tokens import Token
from simctl.stepd.scripts.tree import (
    AndOr,
    Background,
    Command,
    For,
    Group,
    If,
    Not,
    Parameter,
    Redirected,
    Redirection,
    ScriptMistake,
    Simple,
    While,
    Word,
)

_MIDDLES = ("then", "elif", "else", "do")
_ENDS = ("fi", "done", "}", ")", "esac")
_CLOSERS = (*_MIDDLES, *_ENDS)
_PIPES = ("|", "|&")
_JOINING = (";", "&", ";;", "&&", "||", *_PIPES)
_NOTHING = Group(line=0, body=())


def parse_commands(
    text: str, mistakes: list[ScriptMistake], first_line: int = 1
) -> tuple[Command, ...]:
    """Read commands without a head, as a trap holds them, adding to *mistakes*.

    Lines are counted from *first_line*, that of the text in its script.
    """
    parser = _Parser(text, mistakes, parse_commands=parse_commands, first_line=first_line)
    return parser.commands()


@attrs.define
class _Parser(SimpleCommands):
    """Read the commands of a script."""

    _open: list[str] = attrs.field(init=False, factory=list)  # the ends that are waited for
    _unfinished: list[int] = attrs.field(init=False, factory=list)  # where this was noted

    def commands(self) -> tuple[Command, ...]:
        """Read to the end of the text; a closer that nothing opened is noted and skipped."""
        commands: list[Command] = []
        while True:
            commands += self._list()
            token = self._next()
            if token.kind == "end":
                return tuple(commands)
            self.note(token.at, f"this `{token.keyword}` has nothing to go with")

    def _list(self) -> tuple[Command, ...]:
        """Read commands up to a closer or the end, which is left standing."""
        commands: list[Command] = []
        while True:
            self._skip_newlines()
            token = self._peek()
            if token.kind == "end" or token.keyword in _CLOSERS:
                return tuple(commands)
            if token.text in _JOINING:
                self._next()
                self.note(token.at, f"there is no command before this `{token.text}`")
            else:
                commands.append(self._separated(self._and_or()))

    def _separated(self, command: Command) -> Command:
        """Read what ends *command*: a line end, ``;``, ``&`` or a pipe."""
        token = self._peek()
        if token.text == "&":
            self._next()
            return self._in_background(command, token)
        if token.text in (";", *_PIPES):
            self._next()
        if token.text in _PIPES:
            self.refuse(token.at, f"a pipe, `{token.text}`,", "write to a file")
            self._skip_newlines()
        elif token.text == ";;":
            self._next()
            self.note(token.at, "`;;` belongs into a `case`, which is not simulated")
        elif token.text == "(":
            self.note(token.at, "this `(` is not expected here; quote it if it is meant")
            self._skip_pair(token.at)
        return command

    def _in_background(self, command: Command, token: Token) -> Command:
        """Put a simple command in the background; no other can be."""
        if not isinstance(command, Simple):
            advice = "put one single command in the background"
            self.refuse(token.at, "`&` behind a compound command", advice)
            return command
        name = command.words[0].literal if command.words else ""
        if not command.words or (name in BUILTINS and name not in IN_BACKGROUND):
            what = f"`{name}`" if name else "an assignment"
            self.refuse(token.at, f"{what} in the background", "leave out the `&`")
        return Background(line=command.line, command=command)

    def _and_or(self) -> Command:
        """Read commands joined by ``&&`` and ``||``."""
        line = self.line(self._peek().at)
        first = self._negated()
        rest: list[tuple[Literal["&&", "||"], Command]] = []
        while (token := self._peek()).text in ("&&", "||"):
            self._next()
            self._skip_newlines()
            behind = self._peek()
            if behind.kind == "end" or behind.keyword in (*_CLOSERS, *_JOINING):
                self.note(token.at, f"there is no command behind this `{token.text}`")
                break
            rest.append(("&&" if token.text == "&&" else "||", self._negated()))
        return AndOr(line=line, first=first, rest=tuple(rest)) if rest else first

    def _negated(self) -> Command:
        """Read a command with the ``!`` before it."""
        token = self._peek()
        negations = 0
        while self._take("!"):
            negations += 1
        behind = self._peek()
        if behind.kind in ("end", "newline") or behind.text in _JOINING:
            self.note(token.at, "there is no command behind this `!`")
            return _NOTHING
        command = self._command()
        line = self.line(token.at)
        return Not(line=line, command=command) if negations % 2 else command

    def _command(self) -> Command:
        """Read one command of any kind."""
        token = self._peek()
        read = self._compound(token.keyword)
        if read is None:
            command = self._simple()
            return self._function(token) if self._names_function(command) else command
        self._next()
        if len(self._open) >= SCRIPT_NESTING:
            self.note(token.at, f"commands are nested more than {SCRIPT_NESTING} deep")
            self.cut_short, self.at = True, len(self.text)
            self._ahead.clear()
            return _NOTHING
        return self._redirected(read(token), token)

    def _compound(self, keyword: str) -> Callable[[Token], Command] | None:
        """Return what reads the compound command that *keyword* begins."""
        return {
            "if": self._if,
            "while": self._while,
            "until": self._while,
            "for": self._for,
            "select": self._for,
            "{": self._group,
            "(": self._group,
            "case": self._case,
            "[[": self._double_bracket,
            "function": self._function,
        }.get(keyword)

    def _redirected(self, command: Command, token: Token) -> Command:
        """Read the redirections behind a compound command."""
        redirections: list[Redirection] = []
        while self._peek().text in REDIRECTING:
            redirections += self._redirection()
        behind = self._peek()
        if behind.kind == "word" and behind.keyword not in _CLOSERS:
            self.note(behind.at, f"`{token.keyword}` has ended before this: put a ; between")
        if not redirections:
            return command
        line = self.line(token.at)
        return Redirected(line=line, command=command, redirections=tuple(redirections))

    def _body(self, before: str, opener: Token) -> tuple[Command, ...]:
        """Read the commands behind the keyword *before*; there must be some."""
        at = self._peek().at
        commands = self._list()
        if not commands and not self.cut_short and self._peek().kind != "end":
            line = self.line(opener.at)
            self.note(
                at, f"nothing stands behind `{before}` (the `{opener.keyword}` of line {line})"
            )
        return commands

    def _behind(self, keyword: str, opener: Token) -> tuple[Command, ...]:
        """Read *keyword* and the commands behind it; without it, the commands there are."""
        if self._take(keyword):
            return self._body(keyword, opener)
        self._miss(keyword, opener)
        return self._list()

    def _miss(self, keyword: str, opener: Token) -> None:
        """Note that *keyword* was needed where another token stands."""
        token = self._peek()
        if self.cut_short or (token.kind == "end" and opener.at in self._unfinished):
            return
        shown = {"end": "the end of the script", "newline": "the end of the line"}
        found = shown.get(token.kind, f"`{token.keyword}`" if token.keyword else "another word")
        line = self.line(opener.at)
        at = opener.at if token.kind == "end" else token.at
        self._unfinished.append(at)
        self.note(at, f"the `{opener.keyword}` of line {line} needs `{keyword}`, not {found}, here")

    def _finish(self, keyword: str, opener: Token) -> None:
        """Take the end *keyword*; what stands there instead is noted, and skipped if it can be."""
        self._open.pop()
        if self._take(keyword):
            return
        self._miss(keyword, opener)
        while self._peek().keyword in _MIDDLES and not self.cut_short:
            self._next()
            self._list()
        end = self._peek().keyword
        if end == keyword or (end in _ENDS and end not in self._open):
            self._next()

    def _if(self, token: Token) -> Command:
        """Read ``if … then … elif … else … fi``."""
        self._open.append("fi")
        branches = [(self._body("if", token), self._behind("then", token))]
        while self._take("elif"):
            branches.append((self._body("elif", token), self._behind("then", token)))
        otherwise = self._body("else", token) if self._take("else") else ()
        self._finish("fi", token)
        return If(line=self.line(token.at), branches=tuple(branches), otherwise=otherwise)

    def _while(self, token: Token) -> Command:
        """Read ``while … do … done`` and ``until``."""
        self._open.append("done")
        condition = self._body(token.keyword, token)
        body = self._behind("do", token)
        self._finish("done", token)
        until = token.keyword == "until"
        return While(line=self.line(token.at), until=until, condition=condition, body=body)

    def _for(self, token: Token) -> Command:
        """Read ``for NAME in words; do … done``; without ``in`` the words are "$@"."""
        self._open.append("done")
        if token.keyword == "select":
            self.refuse(token.at, "`select`", "write `for`")
        line = self.line(token.at)
        name = self._loop_name(token)
        words: list[Word] = [Word(line=line, column=1, parts=(_ARGUMENTS,))]
        self._skip_newlines()
        if self._take("in"):
            words.clear()
            while self._peek().kind == "word":
                words.append(self._next().word)
        self._take(";")
        self._skip_newlines()
        body = self._behind("do", token)
        self._finish("done", token)
        return For(line=line, name=name, words=tuple(words), body=body)

    def _loop_name(self, opener: Token) -> str:
        """Read the variable of a ``for``."""
        token = self._peek()
        if token.text == "(":
            self.refuse(opener.at, "`for ((…))`", "write `while` and $((…))")
            self._skip_pair(token.at)
            return ""
        if token.kind == "word":
            self._next()
        if not re.fullmatch(r"[A-Za-z_]\w*", token.word.bare, re.ASCII):
            self.note(token.at, "`for` needs a variable's name here")
        return token.word.bare

    def _group(self, token: Token) -> Command:
        """Read ``{ … }``; a subshell is refused and read the same way."""
        if self.text.startswith("((", token.at):
            self.refuse(token.at, "`((…))`", "write NAME=$((…)) or a test")
            self._skip_pair(token.at)
            return _NOTHING
        if token.text == "(":
            self.refuse(token.at, "a subshell, `(…)`,", "write { …; } or the commands alone")
        closer = ")" if token.text == "(" else "}"
        self._open.append(closer)
        body = self._body(token.keyword, token)
        self._finish(closer, token)
        return Group(line=self.line(token.at), body=body)

    def _case(self, token: Token) -> Command:
        """Refuse a ``case``, and step over it."""
        self.refuse(token.at, "`case`", "write `if` with tests")
        noted, depth = len(self.mistakes), 1
        while depth and self._peek().kind != "end":
            keyword = self._next().keyword
            depth += (keyword == "case") - (keyword == "esac")
        del self.mistakes[noted:]
        if depth:
            self.note(token.at, "this `case` has no `esac`")
        return _NOTHING

    def _double_bracket(self, token: Token) -> Command:
        """Refuse ``[[ … ]]``, and step over it."""
        self.refuse(token.at, "`[[ … ]]`", "write `[ … ]` with quoted variables")
        noted = len(self.mistakes)
        while self._peek().kind not in ("end", "newline") and self._next().keyword != "]]":
            pass
        if not self.cut_short:
            del self.mistakes[noted:]
        return _NOTHING

    def _names_function(self, command: Simple) -> bool:
        """Whether the parenthesis that comes next makes a function of *command*, one word."""
        token = self._peek()
        closes = re.compile(r"\([ \t]*\)").match(self.text, token.at)
        return token.text == "(" and closes is not None and len(command.words) == 1

    def _function(self, token: Token) -> Command:
        """Refuse a function, and read its body for further mistakes."""
        self.refuse(token.at, "a function", "write its commands where they are needed")
        if token.keyword == "function" and self._peek().kind == "word":
            self._next()
        if self._take("("):
            self._take(")")
        self._skip_newlines()
        if self._compound(self._peek().keyword) and self._peek().keyword != "function":
            return self._command()
        return _NOTHING


_ARGUMENTS = Parameter(name="@", quoted=True)
