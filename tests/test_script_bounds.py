"""Scripts without an end, or with too much of something: each ends, and says which bound it met."""

from __future__ import annotations

import random

import attrs
import pytest

from simctl.stepd.scripts.machine import TooMuchError, machine_of
from simctl.stepd.scripts.patterns import fits
from simctl.stepd.scripts.regular import RegularMistake, regular
from tests.bash_runs import in_ours

LONG = "a" * 40

ENDS = {
    "f() { f; }; f": (1, "more than 200 commands of this script are under way"),
    "f() { (f); }; f": (1, "more than 100 shells in one another"),
    "f() { x=$(f); }; f; exit 5": (5, "more than 100 shells in one another"),
    "x=x; while :; do x=$x$x; done": (1, "a word or value of more than 1048576 characters"),
    "echo {1..1000000000}": (2, "these braces stand for more than 100000 words"),
    "b='{1..9}'; eval \"echo $b$b$b$b$b$b$b\"": (2, "these braces stand for more"),
    "echo 'sh y' > x; echo 'bash x' > y; bash x": (126, "too many processes of this script"),
    "echo '. ./x' > x; . ./x": (1, "more than 200 commands of this script are under way"),
    'echo \'eval "$x"\' > x; x=$(< x); eval "$x"': (1, "more than 200 commands"),
    "yes '#' | head -c 1048576 | tr '\\n' '#' > f; . ./f; exit 3": (3, ""),
    "yes '#' | head -c 1048577 | tr '\\n' '#' > f; . ./f": (1, "source: a file of more than"),
    ". /dev/stdin < <(yes :)": (1, "source: a file of more than 1048576 characters"),
    "printf '%*s' 99999999 x": (1, "a text of more than 1048576 characters"),
    "printf '%(%Y)T' 99999999999999": (1, "no moment of the years 1 to 9999"),
    "date -d '999999999 weeks'": (1, "no moment that is simulated"),
    "seq 1 100000000": (1, "seq: more than 2000000 numbers"),
    "eval \"$(printf 'if :; then %.0s' {1..500})\"": (2, "nested more than 40 deep"),
    "echo $((" + "(" * 30 + "1" + ")" * 30 + "))": (2, "nested more than 25 deep"),
    "yes | head -n 1": (0, ""),
    f"[[ {LONG}b =~ ^(a+)+$ ]]": (1, ""),
    f"echo {LONG}b | grep -E '^(a|aa)+$'": (1, ""),
    f"[[ {LONG}b == {'*a' * 20}c ]]": (1, ""),
    f"shopt -s extglob\n[[ {LONG}b == +(a|aa)c ]]": (1, ""),
    f"shopt -s extglob\nx={LONG}; [[ ${{x//+(+(a))b/}} == $x ]]": (0, ""),
    f"shopt -s extglob\n[[ {LONG}b == +(!(b)|aa)c ]]": (1, "that repeats one of several"),
    "x=$(printf %030000d 0); echo ${x//0*1/}": (1, "looking for a pattern with * or groups"),
    "x=$(printf %0900000d 0); x=${x/%1/2}; exit ${#x}": (160, ""),
    "echo " + "{a," * 5_000 + "}" * 5_000: (2, "opens more than 100 braces"),
    "printf '%d %u' 99999999999999999999 99999999999999999999 > f; exit $(wc -c < f)": (40, ""),
    "awk 'BEGIN {printf \"%999999999d\", 1}'": (2, "a text of more than 1048576 characters"),
    "yes | head -c 2000001 | wc -c > f; exit $(wc -c < f)": (8, ""),
    "echo a > g; cat g >> g": (1, "cat: g: input file is output file"),
    "mkdir d; cp -r d d/e": (1, "cannot copy a directory, 'd', into itself"),
    "mkdir d; mv d d/e": (1, "to a subdirectory of itself"),
    f"mkdir -p {'d/' * 200}": (1, "File name too long"),
    "x=$(printf 'a\\0b'); exit ${#x}": (2, ""),
    "printf 'a\\0b' > f; exit $(wc -c < f)": (3, ""),
    "a[999999999999]=1; a[-1]=2; exit ${#a[@]}": (1, ""),
    "ln -s a b": (1, "ln: links are not simulated"),
}


def test_what_has_no_end_meets_a_bound_that_is_told() -> None:
    """One run for all; what is within bounds beside them does what it should."""
    came = dict(zip(ENDS, in_ours(list(ENDS)), strict=True))
    told = {text: (run.status, run.errors) for text, run in came.items()}
    wrong = {
        text: told[text]
        for text, (status, error) in ENDS.items()
        if told[text][0] != status or error not in told[text][1]
    }
    assert wrong == {}


def test_tools_and_forks_without_an_end_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts count as longer ones, so that writing them has an end as well."""
    monkeypatch.setattr("simctl.stepd.scripts.tools.tool.TOOL_CHARACTERS", 50_000)
    monkeypatch.setattr("simctl.stepd.hosts.starting.SCRIPT_FORKS", 200)
    monkeypatch.setattr("simctl.stepd.scripts.state.ASSIGNED_CHARACTERS", 50_000)
    monkeypatch.setattr("simctl.stepd.streams.SCRIPT_TURNS", 2_000)
    beside, asleep = in_ours(
        ["for i in {1..9}; do while :; do :; done & done; wait", "while :; do sleep 9 & done"]
    )
    assert beside.errors.count("all loops of this script and its processes took") == 9
    assert asleep.status == 1
    assert "fork: too many processes of this script" in asleep.errors
    monkeypatch.setattr("simctl.stepd.streams.WRITTEN_CHARACTERS", 9_000)
    (full,) = in_ours(["while echo aaaaaaaaa >> f; do :; done; wc -c < f"])
    assert "the processes of this script have written 9000 characters" in full.errors
    assert len(full.files["f"]) == 9_000
    monkeypatch.undo()
    monkeypatch.setattr("simctl.stepd.scripts.tools.tool.TOOL_CHARACTERS", 50_000)
    monkeypatch.setattr("simctl.stepd.hosts.starting.SCRIPT_FORKS", 200)
    monkeypatch.setattr("simctl.stepd.scripts.state.ASSIGNED_CHARACTERS", 50_000)
    (rewritten,) = in_ours(["x=$(printf %900s x); while :; do x=${x:1}y; done"])
    assert rewritten.status == 1
    assert "values of more than 50000 characters in all" in rewritten.errors
    loud, twice, bomb = in_ours(
        ["yes > /dev/null", "echo a > f; tee -a f < f", "f() { f | f & }; f; sleep 1; exit 3"]
    )
    assert (loud.status, twice.status, bomb.status) == (1, 1, 3)
    assert "fork: too many processes of this script" in bomb.errors
    assert "it has written more than 50000 characters" in loud.errors
    assert "it has written more than 50000 characters" in twice.errors
    assert len(twice.files["f"]) < 50_000


def expression(chance: random.Random, depth: int = 0) -> str:
    """Return a regular expression."""
    kind = chance.random()
    if kind < 0.35 or depth > 3:
        return chance.choice(("a", "b", "c", ".", "[ab]", "[^a]"))
    one, other = expression(chance, depth + 1), expression(chance, depth + 1)
    if kind < 0.6:
        return one + other
    if kind < 0.8:
        return f"({one}|{other})"
    return f"({one}){chance.choice(('*', '+', '?', '{1,2}', '{2}'))}"


def test_the_machine_finds_what_the_fast_matcher_finds() -> None:
    """It is asked where the fast one could take for ever, and is never shorter than that."""
    chance = random.Random(7)
    for _ in range(1_500):
        text = expression(chance)
        read = regular(text, extended=True)
        line = "".join(chance.choice("abc") for _ in range(chance.randint(0, 7)))
        fast = attrs.evolve(read, nested=False, repeats=0).search(line)
        slow = attrs.evolve(read, nested=True).search(line)
        assert (fast is None) == (slow is None), (text, line)
        if fast is not None and slow is not None:
            assert slow.start == fast.start, (text, line)
            assert slow.end >= fast.end, (text, line)


def test_the_machine_has_bounds_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """On what an expression may become, and on the steps it takes."""
    with pytest.raises(TooMuchError):
        machine_of(regular("((a{30}){30}){30}", extended=True).node, 0)
    monkeypatch.setattr("simctl.stepd.scripts.machine._STEPS", 1_000)
    with pytest.raises(RegularMistake, match="takes too long"):
        regular("(a|b)*c", extended=True).search("ab" * 300)


def test_back_references_hold_in_the_machine_too() -> None:
    """What a group took is taken again."""
    read = attrs.evolve(regular("((a|b)+)-\\1$", extended=True), nested=True)
    assert read.matches("ab-ab")
    assert not read.matches("ab-ba")


def test_many_stars_have_one_way_to_fit() -> None:
    """So that a pattern takes no longer than its text is long."""
    assert fits("xaybzc" * 50, "*a*b*" * 20 + "c")
    assert not fits("ab" * 2_000, "*a*b" * 40 + "*c")
