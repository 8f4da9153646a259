"""The parser of batch scripts: what it takes, and what it refuses and where."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.stepd.scripts.conditions import BINARY_TESTS
from simctl.stepd.scripts.file_tests import UNARY_TESTS
from simctl.stepd.scripts.rules import BUILTINS, SET_NAMES
from simctl.stepd.scripts.script import (
    ScriptMistake,
    has_interpreter,
    parse,
    programs_used,
    sbatch_options,
)
from simctl.stepd.signals import SignalError, signal_name, signal_number, trap_number
from tests.bash_runs import in_ours

DOCS = Path(__file__).parent.parent / "docs" / "scripts.md"


def mistakes_of(text: str) -> list[tuple[int, str]]:
    """Return the line and message of each mistake."""
    return [(mistake.line, mistake.message) for mistake in parse(text)[1]]


def single_mistake(text: str) -> ScriptMistake:
    """Return the one mistake of *text*."""
    mistakes = parse(text)[1]
    assert len(mistakes) == 1, mistakes
    return mistakes[0]


WHOLE = """#!/bin/bash -e
#SBATCH -N2 -n4
# words, quotes, variables
A=1 B="two words" export C=$A
export D="$B"
unset C
echo "a $A ${B:-none} $(( A + 1 ))" '$literal' plain\\ word \\
  continued > out 2>&1 < in
if [ "$A" -eq 1 ] && test -f out || ! false; then
  srun ./app &
  wait $!
elif :; then shift; else cd /tmp; fi
while true; do break; done
until false
do
  continue
done
for word in a "b c" $D; do { echo $word; } >> log; done &> both
trap 'echo ended; exit 3' USR1 SIGTERM EXIT
trap - USR1; trap '' HUP
kill -TERM $!; set -eux; set -o pipefail +e
printf '%s\\n' x
exec ./last
"""


def test_the_whole_subset_is_accepted() -> None:
    """Every construct that docs/scripts.md names parses without a mistake."""
    assert mistakes_of(WHOLE) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("echo $[1+1]", "$[…]"),
        ("select x in a b; do break; done", "select"),
        ("coproc a", "coproc"),
        ("exec {fd}> f", "{fd}"),
        ("echo ${A@P}", "${A@P}"),
        ("echo ${#A[@]:1}", "a length"),
        ("echo ${A:1?2:3}", "`?:`"),
        ("[ a -nt b ]", "-nt"),
        ("[[ x && a -ot b ]]", "-ot"),
        ("test a -ef b", "-ef"),
        ("kill -l", "-l"),
        ("trap 'a' DEBUG", "DEBUG"),
        ("trap a RETURN", "RETURN"),
        ("set -C", "set -C"),
        ("set -o noclobber", "noclobber"),
        ("set", "set without"),
        ("shopt -s globstar", "globstar"),
        ("read -t 3 x", "read -t"),
        ("wait -p x", "wait -p"),
        ("jobs -n", "jobs -n"),
        ("declare -n x=y", "declare -n"),
        ("pushd /tmp", "`pushd`"),
        ("caller", "`caller`"),
        ("fg", "`fg`"),
        ("history", "`history`"),
        ("a $(b; fg)", "`fg`"),
        ("f() { fg; }", "`fg`"),
        ("case a in a) fg;; esac", "`fg`"),
        ("a | (b; fg)", "`fg`"),
    ],
)
def test_what_lies_outside_is_refused_by_name_and_line(text: str, named: str) -> None:
    """One construct outside the subset is one mistake, at its own line, that names it."""
    mistake = single_mistake(f"#!/bin/sh\n\n:; {text}\n\necho fine\n")
    assert mistake.line == 3
    assert named in mistake.message
    assert "is not simulated" in mistake.message


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ("if a\nthen b\n", 1, "needs `fi`"),
        ("if a\nb\nfi\n", 3, "needs `then`"),
        ("if a; then fi", 1, "nothing stands behind `then`"),
        ("if ; then a; fi", 1, "no command before"),
        ("if a; then b; else c; else d; fi", 1, "`else`"),
        ("while a\ndo b\n", 1, "needs `done`"),
        ("while a; b\ndone", 2, "needs `do`"),
        ("for x in a b\necho $x\ndone", 2, "needs `do`"),
        ("for 1x in a; do b; done", 1, "variable's name"),
        ("{ a\nb", 1, "needs `}`"),
        ("a\nfi", 2, "nothing to go with"),
        ("a\ndone; b", 2, "nothing to go with"),
        ("a; }", 1, "nothing to go with"),
        ("a; )", 1, "nothing to go with"),
        ("&& a", 1, "no command before"),
        ("a ;; b", 1, "`;;`"),
        ("a; ; b", 1, "no command before"),
        ("a &&", 1, "no command behind"),
        ("a && ;", 1, "no command behind"),
        ("a || || b", 1, "no command behind"),
        ("!", 1, "no command behind"),
        ("a >", 1, "no file behind"),
        ("a > ; b", 1, "no file behind"),
        ("a b(c)", 1, "`(`"),
        ("if a; then b; fi c", 1, "has ended"),
        ("echo 'abc\ndef\n", 1, "never closed"),
        ('a\necho "abc\n$x', 2, "never closed"),
        ("echo ${a\nb", 1, "never closed"),
        ("echo $((1 + ", 1, "never closed"),
        ("echo ${}", 1, "names no variable"),
        ("echo $((1 +))", 1, "was not expected"),
        ("echo $((1 @ 2))", 1, '"@"'),
        ("[ a = b", 1, "no ]"),
        ("kill -TREM 1", 1, "did you mean TERM"),
        ("trap 'a' USR3", 1, "did you mean USR"),
        ("trap a 99", 1, "99"),
        ("printf", 1, "format"),
        ("a\nb\r\nc\r\n", 2, "DOS line breaks"),
        ("#!/usr/bin/python3\nimport os\n", 1, "python3"),
        ("#!/usr/bin/env perl\n", 1, "perl"),
        ("#!/bin/tcsh\n", 1, "tcsh"),
    ],
)
def test_what_is_no_sh_is_said_with_its_line(text: str, line: int, named: str) -> None:
    """A mistake of syntax is found where it is, or where what it left open began."""
    found = mistakes_of(text)
    assert found[0][0] == line
    assert named in found[0][1]


def test_all_mistakes_of_a_script_come_at_once() -> None:
    """A mistake neither hides nor causes another."""
    text = (
        "#!/bin/sh\na | fg\nif c; fi\nfor x in y; do z; fi\ncat <<E\n$(fg)\nE\n"
        "case a in (b) c | fg;; esac\ndone\nf() { (fg); }\n[[ x ]] && trap 'h | fg' TERM\n"
        'echo `fg` "k\n'
    )
    lines = [line for line, _ in mistakes_of(text)]
    assert lines == [2, 3, 4, 6, 8, 9, 10, 11, 12, 12]


def test_the_column_is_that_of_the_construct() -> None:
    """Columns count characters from 1."""
    mistake = single_mistake("a\n  echo é $[b]\n")
    assert (mistake.line, mistake.column) == (2, 10)


def test_the_commands_of_a_trap_are_judged_at_their_own_lines() -> None:
    """A trap that is written out is read when the script is checked, not when it fires."""
    assert single_mistake("trap 'a\nb | fg' TERM").line == 2
    assert mistakes_of("\n\ntrap 'x; if' TERM") == [
        (3, "the `if` of line 3 needs `then`, not the end of the script, here")
    ]
    assert mistakes_of("trap '' TERM; trap - TERM; trap 2 15; trap \"$X\" TERM") == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n# only comments\n",
        "echo a#b '#' \\#",
        "srun -w n[1-2] ./app *.dat ?",
        "echo {} {a} '{a,b}' {a\\,b}",
        "if=1; echo if then fi done",
        "A={a,b}",
        "if a\nthen b\nfi > f; { c\n}",
        "a &&\n\n b ||\n c",
        "a & b & wait",
        "for x\ndo a; done; for x in; do a; done",
        'echo ${1} ${10} ${#} ${!} ${?} ${a:-${b:-c}} $ $% "$"',
        '[ "$1" = -r ]; test "$a" -a "$b"',
        "echo $((a ? b : (c << 2) ** 3, d += 4)) $(( $a $op $b ))",
        "while :; do a; done < f",
    ],
)
def test_ordinary_scripts_are_not_suspected(text: str) -> None:
    """What only looks like a construct outside the subset is let through."""
    assert mistakes_of(text) == []


@given(st.text(alphabet="if then\n;&|()<>'\"`$\\{}[]#!a1=-", max_size=60))
@settings(derandomize=True, deadline=None)
def test_no_text_breaks_the_parser(text: str) -> None:
    """Any text gives a tree and mistakes that lie inside it, in order."""
    tree, mistakes = parse(text)
    places = [(mistake.line, mistake.column) for mistake in mistakes]
    assert places == sorted(places)
    assert all(1 <= line <= text.count("\n") + 1 for line, _ in places)
    assert isinstance(programs_used(tree), tuple)


@pytest.mark.parametrize(
    "text",
    ["if a; then " * 500, "{ " * 500, "echo " + "${a:-" * 500, "echo $((" + "(" * 500 + "1))"],
)
def test_bottomless_nesting_is_a_mistake(text: str) -> None:
    """What no person writes is refused, not a crash."""
    assert "nested" in mistakes_of(text)[0][1] or "never closed" in mistakes_of(text)[0][1]


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r\0"), max_size=8)))
@settings(derandomize=True, deadline=None)
def test_quoted_words_come_back_equal(words: list[str]) -> None:
    """What shlex quotes for a shell is one literal word of the same characters."""
    tree, mistakes = parse("prog " + shlex.join(words))
    assert mistakes == ()
    assert [use.argv for use in programs_used(tree)] == [("prog", *words)]


def test_programs_are_listed_with_their_lines_and_literal_words() -> None:
    """Names written out are given; the words only where no variable decides on one."""
    text = (
        "A=1 srun -n 2 './my app'\nif sbatch x.sh; then sleep $T & fi\necho a; $PROG b\n"
        "exec ./last one\ntrap 'cleanup\n  scancel 1' TERM\nwhile a; do ! b && { c; } > f; done\n"
    )
    assert tuple(use[:3] for use in programs_used(parse(text)[0])) == (
        (1, "srun", ("srun", "-n", "2", "./my app")),
        (2, "sbatch", ("sbatch", "x.sh")),
        (2, "sleep", ()),
        (4, "./last", ("./last", "one")),
        (5, "cleanup", ("cleanup",)),
        (6, "scancel", ("scancel", "1")),
        (7, "a", ("a",)),
        (7, "b", ("b",)),
        (7, "c", ("c",)),
    )


def test_sbatch_lines_count_only_before_the_first_command() -> None:
    """The word must begin its line; after a line that is no comment none counts."""
    text = (
        "#!/bin/sh\n#SBATCH -N2 --job-name='a b'\n\n  # comment\n #SBATCH --no\n##SBATCH --no\n"
        "#SBATCH\n#SBATCH\t-t 10 # why\necho\n#SBATCH --too-late\n"
    )
    assert sbatch_options(text) == ((2, "-N2 --job-name='a b'"), (8, "-t 10 # why"))
    assert sbatch_options("") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("#!/bin/sh\n", True), ("#! sh", True), (" #!/bin/sh", False), ("", False)],
)
def test_an_interpreter_is_named_by_the_first_two_characters(text: str, expected: bool) -> None:
    """Sbatch looks at nothing else."""
    assert has_interpreter(text) is expected


@pytest.mark.parametrize(
    ("head", "options"),
    [
        ("#!/bin/bash", ()),
        ("#!/bin/bash -eu", ("e", "u")),
        ("#!/bin/bash -l", ()),
        ("#!/usr/bin/env -S bash -x", ("x",)),
        ("#! /usr/local/bin/zsh", ()),
        ("echo", ()),
    ],
)
def test_the_first_line_gives_the_shell_its_options(head: str, options: tuple[str, ...]) -> None:
    """The system starts the interpreter with what stands behind it."""
    tree, mistakes = parse(f"{head}\n")
    assert (tree.options, mistakes) == (options, ())


@pytest.mark.parametrize("number", [*range(1, 32), *range(34, 65)])
def test_signals_have_names_that_lead_back(number: int) -> None:
    """A name, with and without SIG, in any case, and the number are the same signal."""
    name = signal_name(number)
    for word in (name, f"SIG{name}", name.lower(), str(number)):
        assert signal_number(word) == number


def test_the_signals_slurm_sends_have_linux_numbers() -> None:
    """HUP 1, INT 2, KILL 9, USR1 10, SEGV 11, USR2 12, TERM 15, CONT 18, STOP 19, TSTP 20."""
    names = ("HUP", "INT", "KILL", "USR1", "SEGV", "USR2", "TERM", "CONT", "STOP", "TSTP")
    assert [signal_number(name) for name in names] == [1, 2, 9, 10, 11, 12, 15, 18, 19, 20]
    assert (signal_name(0), trap_number("EXIT"), trap_number("0")) == ("EXIT", 0, 0)


@pytest.mark.parametrize(
    "word", ["", "TREM", "0", "65", "33", "-1", "EXIT", "1" * 30, "SIGSIGTERM"]
)
def test_what_is_no_signal_is_refused(word: str) -> None:
    """Only a trap knows EXIT and 0."""
    with pytest.raises(SignalError, match="no signal"):
        signal_number(word)


def test_the_script_in_the_docs_lies_inside_the_subset() -> None:
    """What the documentation shows as an example is accepted."""
    example = DOCS.read_text(encoding="utf-8").split("```sh\n")[1].split("```")[0]
    assert mistakes_of(example) == []
    assert sbatch_options(example)


def test_the_docs_name_every_builtin_and_what_is_refused() -> None:
    """The tables the parser goes by and the documentation do not drift apart."""
    text = DOCS.read_text(encoding="utf-8")
    table = text.split("## Builtins")[1].split("## Signals")[0]
    words = re.findall(r"`(\S+?)[` ]", table)
    assert [name for name in BUILTINS if name not in words] == []
    for name in (*UNARY_TESTS, *BINARY_TESTS, *SET_NAMES):
        assert name in table


def test_hostname_has_the_address_that_the_environment_tells() -> None:
    """By both options and both names; each node's is this machine's."""
    text = "for each in -i --ip-address -I --all-ip-addresses; do hostname $each | tr -d ' '; done"
    assert in_ours([text])[0].output == "127.0.0.1\n" * 4
