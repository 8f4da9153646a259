"""The commands of a script: lists, pipelines, and all that a keyword begins."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import attrs

from simctl.limits import SCRIPT_NESTING
from simctl.stepd.scripts.double_brackets import DoubleBrackets
from simctl.stepd.scripts.simple import REDIRECTING
from simctl.stepd.scripts.tokens import Token
from simctl.stepd.scripts.tree import (
    AndOr,
    Background,
    Calculate,
    Case,
    Clause,
    Command,
    CountingFor,
    DoubleBracket,
    For,
    Function,
    Group,
    If,
    Line,
    Not,
    Parameter,
    Part,
    Pipeline,
    Redirected,
    Redirection,
    ScriptMistake,
    Simple,
    Subshell,
    Text,
    Time,
    ToDescriptor,
    While,
    Word,
)

_MIDDLES = ("then", "elif", "else", "do")
_ENDS = ("fi", "done", "}", ")", "esac")
_CLAUSE_ENDS = (";;", ";&", ";;&")
_CLOSERS = (*_MIDDLES, *_ENDS)
_PIPES = ("|", "|&")
_JOINING = (";", "&", *_CLAUSE_ENDS, "&&", "||", *_PIPES)
_NOTHING = Group(line=0, body=())
_FUNCTION_NAME = re.compile(r"[^\s$`'\"\\|&;()<>{}=#][^\s$`'\"\\|&;()<>=]*")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def parse_commands(
    text: str, mistakes: list[ScriptMistake], first_line: int = 1, *, extended: bool = False
) -> tuple[Command, ...]:
    """Read commands without a head, as a trap holds them, adding to *mistakes*.

    Lines are counted from *first_line*, that of the text in its script.
    """
    return _Parser(text, mistakes, first_line=first_line, extended=extended).commands()


@lru_cache(maxsize=32)
def parse_quoted(text: str) -> tuple[Part, ...]:
    """Read a text as if it stood between double quotes; what is wrong with it stands as it is."""
    mistakes: list[ScriptMistake] = []
    parts = _Parser(text, mistakes).parts(frozenset(), quoted=True, here=True)
    return (Text(text=text, quoted=True),) if mistakes else parts


@attrs.define
class _Parser(DoubleBrackets):
    """Read the commands of a script."""

    _open: list[str] = attrs.field(init=False, factory=list)  # the ends that are waited for
    _unfinished: list[int] = attrs.field(init=False, factory=list)  # where this was noted
    _read: dict[int, tuple[tuple[Command, ...], int]] = attrs.field(init=False, factory=dict)
    """What the parentheses of substitutions hold, by where they open: words are read twice."""

    def commands(self) -> tuple[Command, ...]:
        """Read to the end of the text; a closer that nothing opened is noted and skipped."""
        commands: list[Command] = []
        while True:
            commands += self._list(by_lines=True)
            token = self._next()
            if token.kind == "end":
                return tuple(commands)
            self.note(token.at, f"this `{token.keyword}` has nothing to go with")

    # What words ask for.

    def nested_commands(self, opener: int) -> tuple[Command, ...]:
        """Read commands up to the ``)`` that closes the parenthesis at *opener*, and take it."""
        if opener in self._read:
            commands, self.at = self._read[opener]
            return commands
        kept = self._ahead, self._here_documents, self._open
        self._ahead, self._here_documents, self._open = [], [], [")"]
        found: list[Command] = []
        while True:
            found += self._list()
            token = self._next()
            if token.text == ")" or token.kind == "end":
                break
            self.note(token.at, f"this `{token.keyword}` has nothing to go with")
        if token.kind == "end" and not self.cut_short:
            self._never_closed(opener, self.text[opener : opener + 2])
        self._ahead, self._here_documents, self._open = kept
        self._read[opener] = tuple(found), self.at
        return tuple(found)

    def commands_of(self, text: str, at: int) -> tuple[Command, ...]:
        """Read *text*, which was written at *at*, as commands of their own."""
        parser = _Parser(text, self.mistakes, first_line=self.line(at), extended=self.extended)
        parser._depth = self._depth
        return parser.commands()

    def text_parts(self, text: str, at: int) -> tuple[Part, ...]:
        """Read *text*, the body of a here-document that begins at *at*, as parts."""
        parser = _Parser(text, self.mistakes, first_line=self.line(at), extended=self.extended)
        parser._depth = self._depth
        return parser.parts(frozenset(), quoted=True, here=True)

    def parse_text(self, text: str, mistakes: list[ScriptMistake], first_line: int) -> None:
        """Read commands in a text of their own, for their mistakes."""
        _Parser(text, mistakes, first_line=first_line, extended=self.extended).commands()

    # Lists.

    def _list(self, *, by_lines: bool = False) -> tuple[Command, ...]:
        """Read commands up to a closer or the end, which is left standing.

        *by_lines* makes one of those that stand on one line.
        """
        lines: list[list[Command]] = []
        while True:
            goes_on = by_lines and bool(lines) and self._peek().kind != "newline"
            self._skip_newlines()
            token = self._peek()
            ends_clause = token.text in _CLAUSE_ENDS and "esac" in self._open
            if token.kind == "end" or token.keyword in _CLOSERS or ends_clause:
                return tuple(
                    each[0] if len(each) == 1 else Line(line=each[0].line, body=tuple(each))
                    for each in lines
                )
            if token.text in _JOINING:
                self._next()
                self.note(token.at, f"there is no command before this `{token.text}`")
            else:
                command = self._separated(self._and_or(), token.at)
                if goes_on:
                    lines[-1].append(command)
                else:
                    lines.append([command])

    def _separated(self, command: Command, start: int) -> Command:
        """Read what ends *command*: a line end, ``;`` or ``&``."""
        token = self._peek()
        if token.text == "&":
            self._next()
            text = " ".join(self.text[start : token.at].split())
            return Background(line=self.line(token.at), command=command, text=text)
        if token.text == ";":
            self._next()
        elif token.text in _CLAUSE_ENDS and "esac" not in self._open:
            self._next()
            self.note(token.at, f"`{token.text}` belongs into a `case`")
        elif token.text == "(":
            self.note(token.at, "this `(` is not expected here; quote it if it is meant")
            self._skip_pair(token.at)
        return command

    def _and_or(self) -> Command:
        """Read commands joined by ``&&`` and ``||``."""
        line = self.line(self._peek().at)
        first = self._pipeline()
        rest: list[tuple[Literal["&&", "||"], Command]] = []
        while (token := self._peek()).text in ("&&", "||"):
            self._next()
            if self._lacks_command(token):
                break
            rest.append(("&&" if token.text == "&&" else "||", self._pipeline()))
        return AndOr(line=line, first=first, rest=tuple(rest)) if rest else first

    def _lacks_command(self, token: Token) -> bool:
        """Note that no command stands behind the joining *token*, if so."""
        self._skip_newlines()
        behind = self._peek()
        lacks = behind.kind == "end" or behind.keyword in (*_CLOSERS, *_JOINING)
        if lacks:
            self.note(token.at, f"there is no command behind this `{token.text}`")
        return lacks

    def _pipeline(self) -> Command:
        """Read commands joined by ``|``, with the ``time`` and ``!`` before them."""
        token = self._peek()
        if token.keyword == "time":
            return self._timed(token)
        negations = 0
        while self._take("!"):
            negations += 1
        behind = self._peek()
        if negations and (behind.kind in ("end", "newline") or behind.text in _JOINING):
            self.note(token.at, "there is no command behind this `!`")
            return _NOTHING
        commands = [self._command()]
        while (pipe := self._peek()).text in _PIPES:
            self._next()
            if pipe.text == "|&":
                commands[-1] = self._with_errors(commands[-1], pipe)
            if self._lacks_command(pipe):
                break
            commands.append(self._command())
        line = self.line(token.at)
        piped = Pipeline(line=line, commands=tuple(commands)) if commands[1:] else commands[0]
        return Not(line=line, command=piped) if negations % 2 else piped

    def _timed(self, token: Token) -> Command:
        """Read ``time`` and the pipeline behind it, which may be none."""
        self._next()
        posix = self._take("-p")
        behind = self._peek()
        nothing = behind.kind in ("end", "newline") or behind.text in (";", "&")
        command = _NOTHING if nothing else self._pipeline()
        return Time(line=self.line(token.at), command=command, posix=posix)

    def _with_errors(self, command: Command, pipe: Token) -> Command:
        """Have what a command says of errors go the way of its output, as ``|&`` does."""
        line = self.line(pipe.at)
        source = Word(line=line, column=1, parts=(Text(text="1", quoted=False),))
        copied = ToDescriptor(line=line, descriptor=2, source=source)
        if isinstance(command, Simple):
            return attrs.evolve(command, redirections=(*command.redirections, copied))
        return Redirected(line=line, command=command, redirections=(copied,))

    def _command(self) -> Command:
        """Read one command of any kind."""
        token = self._peek()
        read = self._compound(token.keyword)
        if read is None:
            command = self._simple()
            return self._function(token) if self._names_function(command, token) else command
        self._next()
        if len(self._open) + self._depth >= SCRIPT_NESTING:
            if not self.cut_short:
                self.note(token.at, f"commands are nested more than {SCRIPT_NESTING} deep")
            self.cut_short, self.at = True, self._end
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
            "(": self._parenthesis,
            "case": self._case,
            "[[": self._double_bracket,
            "function": self._function,
            "coproc": self._coprocess,
        }.get(keyword)

    def _redirected(self, command: Command, token: Token) -> Command:
        """Read the redirections behind a compound command."""
        redirections: list[Redirection] = []
        while self._peek().text in REDIRECTING:
            redirections += self._redirection()
        behind = self._peek()
        if (
            behind.kind == "word"
            and behind.keyword not in _CLOSERS
            and not isinstance(command, Function)
        ):
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

    # Compound commands.

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
        if token.keyword == "select":
            self.refuse(token.at, "`select`", "write `for`, nobody answers its questions")
        line = self.line(token.at)
        opener = self._peek()
        if opener.text == "(" and self.text.startswith("((", opener.at):
            return self._counting_for(token, opener)
        self._open.append("done")
        name = self._loop_name()
        words: list[Word] = [Word(line=line, column=1, parts=(_ARGUMENTS,))]
        shown = ['"$@"']
        self._skip_newlines()
        if self._take("in"):
            words, shown = [], []
            while (ahead := self._peek()).kind == "word":
                words += self._braces(self._next().word)
                shown.append(self.written(ahead.at))
        self._take(";")
        body = self._loop_body(token)
        return For(line=line, name=name, words=tuple(words), body=body, shown=" ".join(shown))

    def _loop_body(self, token: Token) -> tuple[Command, ...]:
        """Read ``do … done``, or the ``{ … }`` that bash takes in its place."""
        self._skip_newlines()
        if self._peek().keyword == "{":
            self._open[-1] = "}"
            body = self._behind("{", token)
            self._finish("}", token)
            return body
        body = self._behind("do", token)
        self._finish("done", token)
        return body

    def _loop_name(self) -> str:
        """Read the variable of a ``for``."""
        token = self._peek()
        if token.kind == "word":
            self._next()
        if not _NAME.fullmatch(token.word.bare):
            self.note(token.at, "`for` needs a variable's name here")
        return token.word.bare

    def _counting_for(self, token: Token, opener: Token) -> Command:
        """Read ``for ((first; condition; step)); do … done``."""
        self._open.append("done")
        self._next()
        close = self.skip_balanced(opener.at, "(", ")")
        end, self._end = self._end, close if self.cut_short else close - 2
        self.at = opener.at + 2
        parts: list[tuple[Part, ...]] = []
        while True:
            parts.append(self.parts(frozenset(";"), quoted=True))
            self.check_arithmetic(opener.at, parts[-1])
            if self.at >= self._end:
                break
            self.at += 1
        self.at, self._end = close, end
        if len(parts) != 3:  # noqa: PLR2004 - its three expressions
            self.note(opener.at, "`for ((` needs three expressions, with a ; between")
            parts = [(), (), ()]
        self._skip_newlines()
        self._take(";")
        return CountingFor(
            line=self.line(token.at),
            first=parts[0],
            condition=parts[1],
            step=parts[2],
            body=self._loop_body(token),
        )

    def _group(self, token: Token) -> Command:
        """Read ``{ … }``."""
        self._open.append("}")
        body = self._body(token.keyword, token)
        self._finish("}", token)
        return Group(line=self.line(token.at), body=body)

    def _parenthesis(self, token: Token) -> Command:
        """Read ``(( … ))`` or ``( … )``."""
        if self.text.startswith("((", token.at) and (read := self._calculation(token)):
            return read
        self._open.append(")")
        body = self._body(token.keyword, token)
        self._finish(")", token)
        return Subshell(line=self.line(token.at), body=body)

    def _calculation(self, token: Token) -> Command | None:
        """Read ``(( … ))``; None if the parentheses show it to be a subshell in another."""
        mark = len(self.mistakes)
        close = self.skip_balanced(token.at, "(", ")")
        if self.text[close - 2 : close] != "))":
            if self.cut_short:
                self.at = self._end
                return _NOTHING
            del self.mistakes[mark:]
            return None
        parts = self.expression(token.at, token.at + 2, close)
        return Calculate(line=self.line(token.at), parts=parts)

    def _case(self, token: Token) -> Command:
        """Read ``case word in pattern) … ;; esac``."""
        line = self.line(token.at)
        subject = self._peek()
        if subject.kind == "word":
            self._next()
        else:
            self.note(token.at, "`case` needs a word here")
        shown = self.written(subject.at)
        self._skip_newlines()
        if not self._take("in"):
            self._miss("in", token)
        self._open.append("esac")
        clauses: list[Clause] = []
        while True:
            self._skip_newlines()
            ahead = self._peek()
            if ahead.keyword == "esac" or ahead.kind == "end" or self.cut_short:
                break
            clause = self._clause(token)
            if clause is None:
                break
            clauses.append(clause)
        self._finish("esac", token)
        return Case(line=line, word=subject.word, clauses=tuple(clauses), shown=shown)

    def _clause(self, opener: Token) -> Clause | None:
        """Read the patterns of one branch and its commands."""
        self._take("(")
        patterns: list[Word] = []
        while self._peek().kind == "word":
            patterns.append(self._next().word)
            if not self._take("|"):
                break
        if not patterns or not self._take(")"):
            self._miss("pattern)", opener)
            while self._peek().kind != "end" and self._peek().keyword not in (")", "esac"):
                self._next()
            if not self._take(")"):
                return None
        body = self._list()
        token = self._peek()
        if token.text in _CLAUSE_ENDS:
            self._next()
        elif token.keyword != "esac":
            self._miss(";;", opener)
            if token.kind == "end" or token.keyword in _CLOSERS:
                return None
        return Clause(patterns=tuple(patterns), body=body, end=token.text or ";;")

    def _double_bracket(self, token: Token) -> Command:
        """Read ``[[ … ]]``."""
        return DoubleBracket(line=self.line(token.at), test=self.read_test(token))

    def _coprocess(self, token: Token) -> Command:
        """Refuse ``coproc``, and read the command behind it."""
        self.refuse(token.at, "`coproc`", "use & or a pipe")
        return self._command()

    def _names_function(self, command: Simple, start: Token) -> bool:
        """Whether the parenthesis that comes next makes a function of *command*, one word."""
        token = self._peek()
        closes = re.compile(r"\([ \t]*\)").match(self.text, token.at)
        return (
            token.text == "("
            and closes is not None
            and len(command.words) == 1
            and not command.assignments
            and _FUNCTION_NAME.fullmatch(start.keyword) is not None
        )

    def _function(self, token: Token) -> Command:
        """Read a function: its name is *token*, or stands behind the keyword ``function``."""
        name = token.keyword
        if name == "function":
            name = self._peek().keyword
            if self._peek().kind != "word" or not _FUNCTION_NAME.fullmatch(name):
                self.note(token.at, "`function` needs a name here")
            else:
                self._next()
        if self._take("("):
            self._take(")")
        self._skip_newlines()
        body = self._peek()
        if not self._compound(body.keyword) or body.keyword in ("function", "coproc"):
            self.note(token.at, f"the function `{name}` needs a body in {{ … }} here")
            return _NOTHING
        return Function(line=self.line(token.at), name=name, body=self._command())


_ARGUMENTS = Parameter(name="@", quoted=True)
