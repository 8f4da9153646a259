"""The shell: what scripts do, held against what sh and bash do."""

from __future__ import annotations

import itertools
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.limits import LOOP_TURNS
from simctl.stepd.scripts import tools
from simctl.stepd.scripts.arithmetic import ArithmeticMistake, evaluate
from simctl.stepd.scripts.host import Inherited, OpenFile, Redirects
from simctl.stepd.scripts.script import parse
from simctl.stepd.scripts.shell import Shell
from simctl.stepd.signals import EXIT_TRAP
from tests.shell_host import FakeHost, Killed, Program, run_script

TERM, USR1, USR2, HUP = 15, 10, 12, 1


def output_of(text: str, *args: str) -> str:
    """Return what a script writes."""
    return run_script(text, *args).output


def ends_with(status: int) -> Program:
    """Return a program that ends with *status*."""
    return lambda _host, _argv: status


def host_with(**programs: int) -> FakeHost:
    """Return a host whose programs end with these statuses."""
    host = FakeHost()
    for name, status in programs.items():
        host.programs[name] = ends_with(status)
    return host


def sends(*signals: int, times: int = 0) -> FakeHost:
    """Return a host whose program `job` sees *signals* arrive at the shell while it runs.

    Only the first *times* that it runs, if that is told.
    """
    host = FakeHost()
    ran = itertools.count(1)

    def job(host: FakeHost, argv: tuple[str, ...]) -> int:
        if not times or next(ran) <= times:
            for signal in signals:
                host.deliver(signal)
        return 4

    host.programs["job"] = job
    return host


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("echo a  'b  c' \"d  $X\" \\$X e\\ f", "a b  c d   $X e f\n"),
        ("X='a  b'; echo $X; echo \"$X\" x$X'y'", "a b\na  b xa by\n"),
        ("X=' a b '; for w in 1$X'2'; do echo \"<$w>\"; done", "<1>\n<a>\n<b>\n<2>\n"),
        ('for w in $NONE "$NONE" \'\'; do echo "<$w>"; done', "<>\n<>\n"),
        ("echo ${A:-b c} ${A-d} ${A:=e} $A ${A:+f} ${B:+g} ${B+h} ${B:-}.", "b c d e e f .\n"),
        ("echo \"${A:-x  y}\" ${A:-'x  y'} ${A:-x  y}", "x  y x  y x y\n"),
        ('set -- "${A:-}" ${A:-} "${A+x}"; echo $#', "2\n"),
        ("A=~/x; echo ~ $A '~' a~", "/home/alice /home/alice/x ~ a~\n"),
        ("echo n[1-2] * ? {} $", "n[1-2] * ? {} $\n"),
        ("echo a\\\nb 'c\\\nd' \"e\\\nf\"", "ab c\\\nd ef\n"),
        ("A=1 B=$A$A; A+=2; echo $A $B", "12 11\n"),
        ("echo if then fi; for in in do; do echo $in; done", "if then fi\ndo\n"),
        ("E='echo a b'; $E c; $NOTHING echo d", "a b c\nd\n"),
        (
            "echo $((1 + 2 * 3)) $(( (x = 5) * x++ )) $x $((010 + 0x1f)) $((-7 / 2))",
            "7 25 6 39 -3\n",
        ),
        ("echo $((1 ? 2 : (b = 3)))$b $((0 ? (c = 3) : 4))$c", "2 4\n"),
        ("echo -n a; echo -e 'b\\tc'; echo - -n -z", "ab\tc\n- -n -z\n"),
        (
            "printf '%s-%03d|' a 7 b 8; printf 'x%%\\n'; printf '%b%c' 'q\\n' rst",
            "a-007|b-008|x%\nq\nr",
        ),
        (
            "pwd; cd /home; pwd; cd alice; echo $PWD $OLDPWD; cd -",
            "/home/alice\n/home\n/home/alice /home\n/home\n",
        ),
    ],
)
def test_words_become_what_sh_makes_of_them(text: str, written: str) -> None:
    """Quoting, expansion and splitting are those of sh."""
    assert output_of(text) == written


def test_arguments_are_kept_apart_only_where_they_are_quoted() -> None:
    """Quoted "$@" gives each argument as it came, an empty one too; the rest is split."""
    show = 'do echo "<$w>"; done; '
    text = f'for w in "$@"; {show} for w in $*; {show} for w in "$*"; {show} for w; {show}'
    each = "<a b>\n<>\n"
    assert output_of(text, "a b", "") == each + "<a>\n<b>\n" + "<a b >\n" + each
    assert output_of('for w in "$@" "x$@y"; do echo "<$w>"; done') == "<xy>\n"


def test_special_parameters() -> None:
    """Parameters $0 $1 ${10} $# $$ $? $! are the shell's own."""
    text = (
        "echo $0 $1 ${10} $# $$ $?; false; echo $?; true & echo $!\n"
        "shift 9; echo $1; shift 5; echo $?"
    )
    assert output_of(text, *"abcdefghij") == "job.sh a j 10 100 0\n1\n101\nj\n1\n"
    assert output_of("set -- x 'y z'; echo $# $2; set --; echo $#") == "2 y z\n0\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 0),
        ("true", 0),
        ("false", 1),
        ("! false", 0),
        ("! true", 1),
        ("exit 7", 7),
        ("exit 300", 44),
        ("exit -1", 255),
        ("exit abc; true", 2),
        ("false; exit", 1),
        ("nosuch", 127),
        ("false || true && false", 1),
        ("true || false && false", 1),
        ("if false; then false; fi", 0),
        ("while false; do :; done", 0),
        ("for i in 1 2; do false; done", 1),
        ("for i in 1 2; do false; break; done", 0),
        ("{ exit 3; }; true", 3),
        ("exec five; true", 5),
        ("five & wait $!", 5),
        ("five & wait", 0),
        ("wait 999", 127),
        ("[ a", 2),
    ],
)
def test_a_script_ends_with_the_status_of_sh(text: str, status: int) -> None:
    """The status is that of the last command, or of exit, in eight bits."""
    if text == "[ a":
        text = "B='a'; A=[; $A $B"
    assert run_script(text, host=host_with(five=5)).status == status


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("if false; then echo a; elif true; then echo b; else echo c; fi", "b\n"),
        ("if nosuch; then :; else echo $?; fi", "127\n"),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); [ $i = 2 ] && continue; echo $i; done", "1\n3\n"),
        ('until [ "$i" = xx ]; do i=x$i; echo $i; done', "x\nxx\n"),
        (
            "for i in a b; do for j in 1 2; do [ $j = 2 ] && continue 2; echo $i$j; done; done",
            "a1\nb1\n",
        ),
        ("for i in a b; do for j in 1 2; do break 2; done; done; echo $i$j", "a1\n"),
        ("for i in a b; do for j in 1 2; do break 5; done; done; echo $i$j", "a1\n"),
        ("false && echo a || echo b; true || echo c && echo d", "b\nd\n"),
        ("for i in 1 2; do echo $i; done > f; { echo 3; echo 4; } >> f; echo end", "end\n"),
        ("break; echo $?", "0\n"),
    ],
)
def test_control_flow(text: str, written: str) -> None:
    """Branches, loops and lists run what sh runs."""
    assert output_of(text) == written


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("", 1),
        ("a", 0),
        ("''", 1),
        ("! a", 1),
        ("-n a", 0),
        ("-z a", 1),
        ("-n", 0),
        ("a = a", 0),
        ("a != a", 1),
        ("a == b", 1),
        ("! = a", 1),
        ("'(' = '('", 0),
        ("-n = -n", 0),
        ("08 -eq 8", 0),
        ("2 -lt 10", 0),
        ("-3 -ge 2", 1),
        ("1 -ne 1", 1),
        ("3 -gt 2 -a 2 -le 1", 1),
        ("3 -gt 2 -o 2 -le 1", 0),
        ("! a = b", 0),
        ("! a -a b", 1),
        ("'(' a = b ')' -o '(' ! '' ')'", 0),
        ("-f there", 0),
        ("-e gone", 1),
        ("-e /home", 0),
        ("-f /home", 1),
        ("-d /home", 0),
        ("-d there", 1),
        ("x -eq 1", 2),
        ("99999999999999999999 -gt 1", 2),
        ("a = b c", 2),
        ("a b", 2),
    ],
)
def test_conditions(arguments: str, status: int) -> None:
    """Both ``test`` and ``[`` judge as POSIX has it, 2 being no condition at all."""
    host = FakeHost(files={"/home/alice/there": ""})
    assert run_script(f"[ {arguments} ]", host=host).status == status
    assert run_script(f"test {arguments}", host=host).status == status


@pytest.mark.parametrize(
    ("text", "written", "status"),
    [
        ("false; echo no", "", 1),
        (
            "false || true; if false; then :; fi; ! true; while false; do :; done; echo ok",
            "ok\n",
            0,
        ),
        ("false && true; echo ok", "ok\n", 0),
        ("true && false; echo no", "", 1),
        ("if { false; echo in; }; then echo ok; fi", "in\nok\n", 0),
        ("for i in 1 2; do false; done; echo no", "", 1),
        ("echo a < nofile; echo no", "", 1),
        ("false & wait $!; echo no", "", 1),
        ("set +e; false; echo ok", "ok\n", 0),
        ("trap 'echo left $?' EXIT; nosuch; echo no", "left 127\n", 127),
    ],
)
def test_errexit_leaves_at_the_first_failure_nobody_asks_about(
    text: str, written: str, status: int
) -> None:
    """Under ``set -e`` conditions, all but the last of && and ||, and ! are asked about."""
    for head in ("set -e\n", "#!/bin/bash -e\n", "set -o errexit\n"):
        ran = run_script(head + text)
        assert (ran.output, ran.status) == (written, status)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("set -u; echo $NONE; echo no", "NONE: unbound variable"),
        ("set -u; echo $((NONE + 1)); echo no", "NONE: unbound variable"),
        ("set -u; echo $1; echo no", "1: unbound variable"),
        ("echo ${NONE:?is needed}; echo no", "NONE: is needed"),
        ("echo $((1 / 0)); echo no", "division by zero"),
        ("a=1+; echo $((a)); echo no", "the end was not expected"),
        ("a=b; b=a; echo $((a)); echo no", "nested"),
        ("for i in ${NONE?}; do :; done; echo no", "NONE: parameter not set"),
    ],
)
def test_an_expansion_without_value_ends_the_script(text: str, said: str) -> None:
    """The message names the script and the line; the status is 1."""
    ran = run_script(f"\n{text}")
    assert (ran.status, ran.output) == (1, "")
    assert ran.errors.startswith("job.sh: line 2: ")
    assert said in ran.errors


def test_xtrace_shows_each_command_before_it_runs() -> None:
    """Under ``set -x`` words are shown expanded and quoted."""
    ran = run_script("set -x; A='x y'; echo \"$A\" \"it's\" ''; B=1 nosuch 2> f")
    shown = "+ A='x y'\n+ echo 'x y' 'it'\\''s' ''\n+ B=1\n+ nosuch\n"
    assert ran.errors == shown


def test_programs_see_exported_variables_alone() -> None:
    """What the environment brought is exported; prefixes are seen by their one command."""
    host = host_with(p=0)
    run_script("A=1; export B=2 C; C=3; unset D; A=4 E=5 p; p", host=host, env={"D": "0", "F": "6"})
    assert host.calls[0].env == {"F": "6", "A": "4", "B": "2", "C": "3", "E": "5"}
    assert host.calls[1].env == {"F": "6", "B": "2", "C": "3"}


def test_export_splits_no_values() -> None:
    """As in bash, what export assigns is one value, however many blanks it holds."""
    assert output_of('A="x  y"; export B=$A C; echo "$B"') == "x  y\n"
    ran = run_script("X=1x; export $X=2")
    assert (ran.status, "not a valid identifier" in ran.errors) == (1, True)


def test_redirections_connect_a_program_with_files() -> None:
    """They hold from left to right: ``2>&1`` copies what output is at that point."""
    host = host_with(p=0)
    run_script("p > a 2>&1; p 2>&1 >> b; p &> c; p >&2; p < a 2> d", host=host)
    a, b, c = (OpenFile(path=name, mode="write") for name in "abc")
    b = OpenFile(path="b", mode="append")
    one, two = Inherited(descriptor=1), Inherited(descriptor=2)
    assert [call.redirects for call in host.calls] == [
        Redirects(stdout=a, stderr=a),
        Redirects(stdout=b, stderr=one),
        Redirects(stdout=c, stderr=c),
        Redirects(stdout=two),
        Redirects(
            stdin=OpenFile(path="a", mode="read", number=1),
            stderr=OpenFile(path="d", mode="write"),
        ),
    ]


def test_files_hold_what_was_written() -> None:
    """A file is emptied once for a command, a loop or ``exec``, and then grows."""
    host = FakeHost()
    run_script(
        "echo a > f; echo b >> f; for i in 1 2; do echo $i; done > g; > h; echo x > i > j\n"
        "{ echo o; echo e >&2; } > k 2>&1; exec >> l; echo m; echo n",
        host=host,
    )
    files = {path.removeprefix("/home/alice/"): text for path, text in host.files.items()}
    assert files == {
        "f": "a\nb\n",
        "g": "1\n2\n",
        "h": "",
        "i": "",
        "j": "x\n",
        "k": "o\ne\n",
        "l": "m\nn\n",
    }


@pytest.mark.parametrize(
    "text",
    [
        "echo no < gone",
        "echo no > /nowhere/f",
        "for i in 1; do echo no; done > /nowhere/f",
        "A='a b'; echo no > $A",
        "echo no > $NONE",
    ],
)
def test_a_file_that_cannot_be_opened_stops_its_command_alone(text: str) -> None:
    """The command is not run, its status is 1, and the script goes on."""
    ran = run_script(f"{text}\necho $?")
    assert ran.output == "1\n"
    assert ran.errors.startswith("job.sh: line 1: ")


def test_background_children_are_waited_for_by_pid_or_all_together() -> None:
    """A status can be asked for again, until a bare wait forgets it."""
    host = host_with(five=5, six=6)
    text = (
        "five & a=$!; six & b=$!; wait $a $b; echo $?; wait $a; echo $?\n"
        "six & wait; echo $?; wait $!; echo $?; wait; wait x; echo $?"
    )
    assert run_script(text, host=host).output == "6\n5\n0\n127\n1\n"
    assert [call.background for call in host.calls] == [True, True, True]


def test_the_background_runs_what_is_no_program_in_a_shell_of_its_own() -> None:
    """Builtins and groups change nothing of the script's; a lost file makes the command fail."""
    text = (
        "A=1; echo a & wait $!; { A=2; echo $A; exit 3; } & wait $!; echo $? $A\n"
        "x > /nowhere/f & wait $!; echo $?"
    )
    assert run_script(text, host=host_with(x=0)).output == "a\n2\n3 1\n1\n"


def test_a_trap_runs_after_the_foreground_command_and_keeps_the_status() -> None:
    """The command runs to its end first; ``$?`` is the same before and after the trap."""
    ran = run_script("trap 'echo trap $?; false' TERM; job; echo after $?", host=sends(TERM))
    assert ran.output == "trap 4\nafter 4\n"


def test_a_trapped_signal_ends_a_wait_with_128_and_its_number() -> None:
    """Wait returns at once, the trap runs, and the child can be waited for again."""
    host = sends(USR1)
    text = (
        "trap 'echo trap $?' USR1; job & wait $!; echo $?\n"
        "trap - USR1; trap '' USR1; wait $!; echo $?"
    )
    assert run_script(text, host=host).output == "trap 138\n138\n4\n"


def test_a_script_signalled_before_its_time_limit_can_leave_with_its_own_status() -> None:
    """The pattern of ``--signal=B:USR1@60``: the trap's exit is the script's."""
    host = sends(USR1)
    ran = run_script('trap "echo got; exit 7" USR1; while :; do job; done', host=host)
    assert (ran.status, ran.output) == (7, "got\n")


def test_exit_in_a_trap_gives_the_status_from_before_it() -> None:
    """Without a number, exit looks back past the trap's own commands."""
    assert run_script("trap 'true; exit' TERM; job", host=sends(TERM)).status == 4
    assert run_script("trap 'true; exit' EXIT; exit 6").status == 6


def test_the_exit_trap_runs_once_at_the_end() -> None:
    """Whatever way the script ends; its own status counts only through exit."""
    assert run_script("trap 'echo bye $?; false' EXIT; exit 3").output == "bye 3\n"
    assert run_script("trap 'echo bye; false' EXIT").status == 0
    assert run_script("trap 'exit 9' EXIT; exit 3").status == 9
    assert run_script("set -u; trap 'echo bye $?' 0; echo $NONE").output == "bye 1\n"
    assert run_script("trap 'echo bye' EXIT; trap - EXIT").output == ""


def test_the_host_is_told_what_signals_do() -> None:
    """Handled, ignored, and back to the default; KILL and STOP cannot be."""
    host = FakeHost()
    run_script(
        "trap 'a' USR1 SIGTERM 1; trap '' USR2 INT; trap - 15; trap 1; trap x KILL", host=host
    )
    assert host.dispositions == {10: "trap", 15: "default", 1: "default", 12: "ignore", 2: "ignore"}


def test_traps_wait_for_each_other_but_not_inside_themselves() -> None:
    """A second signal of the same kind waits for its trap to end; another kind breaks in."""
    host = sends(USR1, times=3)
    ran = run_script("trap 'echo a; job; echo b' USR1; trap 'echo c' USR2; job", host=host)
    assert ran.output == "a\nb\n" * 3
    text = "trap 'echo a; kill -USR2 $$; echo b' USR1; trap 'echo c' USR2; kill -USR1 $$"
    assert output_of(text) == "a\nc\nb\n"


def test_break_in_a_trap_leaves_the_loop_it_broke_into() -> None:
    """The trap's commands stand where the script was."""
    text = "trap break USR1; for i in 1 2; do echo $i; kill -USR1 $$; echo no; done; echo out"
    assert output_of(text) == "1\nout\n"


def test_a_trap_that_no_check_could_read_is_refused_when_it_is_set() -> None:
    """Commands out of a variable are read then; the trap before stays."""
    ran = run_script("X='a | fg'; trap \"$X\" TERM; echo $?; N=FOO; trap a $N; echo $?")
    assert ran.output == "2\n1\n"
    assert "`fg` is not simulated" in ran.errors
    assert ran.host.dispositions == {}


def test_kill_sends_signals_to_pids() -> None:
    """TERM unless another is named, in any of the ways to name one."""
    host = host_with(p=0)
    text = (
        "p & kill $!; kill -9 $!; kill -s HUP $!; kill -SIGUSR1 $! 999; echo $?\n"
        "kill -0 $$; N=FOO; kill -$N 1"
    )
    ran = run_script(text, host=host)
    child = [(101, TERM), (101, 9), (101, HUP), (101, USR1)]
    assert host.killed == [*child, (999, USR1), (100, 0)]
    # One of two was there.
    assert (ran.output, ran.status) == ("0\n", 1)
    assert "(999) - No such process" in ran.errors


def test_a_killed_shell_does_nothing_more() -> None:
    """What the host raises passes through, past traps and past ``||``."""
    host = sends(TERM)
    with pytest.raises(Killed):
        run_script("trap 'echo no' EXIT; job || echo no; echo no", host=host)
    assert host.output == ""


def test_exec_leaves_the_rest_of_the_script_and_its_traps_behind() -> None:
    """The program gets the shell's place: traps are back to the default, ignored signals stay."""
    host = host_with(five=5)
    ran = run_script("trap 'echo no' EXIT TERM; trap '' HUP; exec five a b; echo no", host=host)
    assert (ran.status, ran.output, host.calls[0].argv) == (5, "", ("five", "a", "b"))
    assert host.dispositions == {EXIT_TRAP: "default", TERM: "default", HUP: "ignore"}


@pytest.mark.parametrize(
    "text",
    [
        "while :; do :; done",
        "until false; do nosuch; done",
        "for i in 1 2 3 4 5 6; do for j in 1 2 3 4 5 6; do :; done; done",
        "trap 'kill -USR1 $$' USR1; kill -USR1 $$",
    ],
)
def test_loops_are_bounded(text: str) -> None:
    """Passing the bound ends the script with status 1, and says so at its line."""
    ran = run_script(f"trap 'echo bye' EXIT\n{text}\necho no", max_turns=20)
    assert (ran.status, ran.output) == (1, "bye\n")
    assert "job.sh: line 2: the loops of this script took more than 20 turns" in ran.errors


def test_the_bound_itself_may_be_reached() -> None:
    """The last turn within it is allowed, one more is not; it is a hundred thousand turns."""
    head = "i=0; while [ $((i += 1)) -le "
    assert run_script(f"{head}50 ]; do :; done", max_turns=50).status == 0
    assert run_script(f"{head}51 ]; do :; done", max_turns=50).status == 1
    assert LOOP_TURNS == 100_000


def test_deep_nesting_that_is_allowed_can_be_run() -> None:
    """The bound on nesting is below what the interpreter can hold."""
    text = "if true; then " * 40 + "echo $((" + "(" * 20 + "1" + ")" * 20 + "))" + "; fi" * 40
    assert output_of(text) == "1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("O=-k; set $O", "set: -k"),
        ("cd nowhere", "cd: nowhere: No such file or directory"),
        ("unset HOME; cd", "cd: HOME"),
        ("N=x; shift $N", "shift: x"),
        ("F=%y; printf $F x", "printf: "),
        ("printf %d x", "printf: x: invalid number"),
        ("P=abc; kill $P", "kill: abc"),
        ("P=%1; wait $P", "wait: %1: no such job"),
    ],
)
def test_a_misused_builtin_fails_with_a_message(text: str, said: str) -> None:
    """What comes out of variables is judged when it is there; the script goes on."""
    ran = run_script(f"{text}\necho $?")
    assert f"job.sh: line 1: {said}" in ran.errors
    assert ran.output.endswith(("1\n", "2\n", "127\n"))


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r\0"), max_size=8)))
@settings(derandomize=True, deadline=None)
def test_quoted_words_reach_programs_unchanged(words: list[str]) -> None:
    """Words that shlex quotes arrive as they were, also by way of "$@" and variables."""
    host = host_with(p=0)
    quoted = " ".join(shlex.quote(word) for word in words)
    run_script(f'p {quoted}; p "$@"; for w in {quoted}; do A=$w; p "$A"; done', *words, host=host)
    calls = [call.argv[1:] for call in host.calls]
    assert calls == [tuple(words), tuple(words), *((word,) for word in words)]


def _unset(name: str, subscript: str | None) -> str:
    """Return the value of every variable here."""
    return ""


def _drop(name: str, subscript: str | None, value: int) -> None:
    """Take what is assigned, and forget it."""


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9), st.sampled_from("+-*&|^<>"))
@settings(derandomize=True, deadline=None)
def test_arithmetic_is_that_of_64_bits(left: int, right: int, operator: str) -> None:
    """Results wrap around as those of the machine do."""
    exact = int(eval(f"({left}) {operator} ({right})"))
    wrapped = (exact + 2**63) % 2**64 - 2**63
    assert evaluate(f"({left}) {operator} ({right})", _unset, _drop) == wrapped


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("", 0),
        ("2 ** 3 ** 2", 512),
        ("10 - 3 - 2", 5),
        ("-7 % 3", -1),
        ("1 ? 2 : 1 / 0", 2),
        ("0 && 1 / 0", 0),
        ("1 || 1 / 0", 1),
        ("1 << 65", 2),
        ("~0 + !5", -1),
        ("1, 2, 3", 3),
        ("3 > 2 == 1", 1),
        ("- - 3", 3),
        ("9223372036854775807 + 1", -(2**63)),
    ],
)
def test_arithmetic_follows_c(expression: str, value: int) -> None:
    """Precedence, short cuts and rounding are C's."""
    assert evaluate(expression, _unset, _drop) == value


_LEFT_OUT = ("0 && ({})", "1 || ({})", "0 ? ({}) : 1", "1 ? 1 : ({})")
_IN_ALL = ("1 && ({})", "0 || ({})", "1 ? ({}) : 0", "0 ? 0 : ({})", "{}", "0, {}")


@pytest.mark.parametrize("outer", [*_LEFT_OUT, *_IN_ALL])
@pytest.mark.parametrize("inner", [*_LEFT_OUT, *_IN_ALL])
def test_what_is_not_chosen_assigns_nothing_at_any_depth(outer: str, inner: str) -> None:
    """What stands behind it is computed again."""
    stored: list[tuple[str, int]] = []

    def store(name: str, subscript: str | None, value: int) -> None:
        stored.append((name, value))

    for changing in ("x = 5", "x += 5", "++x", "x++", "x--"):
        stored.clear()
        nested = outer.format(inner.format(f"({changing})"))
        evaluate(f"({nested}), y = 3", _unset, store)
        chosen = [] if {outer, inner} & {*_LEFT_OUT} else ["x"]
        assert [name for name, _ in stored] == [*chosen, "y"]


@pytest.mark.parametrize(
    "expression", ["1 +", "(1", "1 2", "08", "1 / 0", "5 % 0", "2 ** -1", "a b"]
)
def test_what_is_no_expression_has_no_value(expression: str) -> None:
    """The mistake says what was not expected."""
    with pytest.raises(ArithmeticMistake):
        evaluate(expression, _unset, _drop)


def test_a_script_may_be_run_by_many_shells() -> None:
    """The tree is frozen: two runs of one tree know nothing of each other."""
    script, _ = parse("A=${A}x; echo $A")
    for _ in range(2):
        host = FakeHost()
        with pytest.raises(StopIteration):
            Shell(script, host).run().send(None)
        assert host.output == "x\n"


def test_every_tool_is_there() -> None:
    """Each is imported when a script runs it, so that a name without a function is found here."""
    for known in tools._KNOWN.values():
        assert callable(tools._found(known.main))
        assert not known.check or callable(tools._found(known.check))
