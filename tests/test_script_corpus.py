"""A thousand scripts drawn by chance do what the machine's bash made of them."""

from __future__ import annotations

import subprocess

import pytest

from tests.bash_runs import BASH, in_bash, in_ours
from tests.script_corpus import differences, digest, recorded, script, short_scripts

_BATCH = 100
_LIVE = range(5000, 5012)


def bash_is_that_of_the_record() -> bool:
    """Tell whether the machine has a bash whose answers are those of bash 5.2."""
    if not BASH:
        return False
    asked = [BASH, "-c", 'echo "${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}"']
    return subprocess.run(asked, check=False, capture_output=True).stdout == b"5.2\n"


@pytest.mark.parametrize("start", range(0, 1000, _BATCH))
def test_short_scripts_come_to_what_bash_made_of_them(start: int) -> None:
    """Output, exit status and files, by digests that `python -m tests.script_corpus record` wrote.

    `python -m tests.script_corpus SEED SEED+1 short` shows one beside what bash does now.
    """
    texts = short_scripts()[start : start + _BATCH]
    expected = recorded()[start : start + _BATCH]
    assert len(expected) == len(texts)
    came = [digest(each) for each in in_ours(texts)]
    differ = [
        start + at for at, pair in enumerate(zip(came, expected, strict=True)) if len({*pair}) > 1
    ]
    assert differ == [], script(differ[0], "short")


@pytest.mark.skipif(not bash_is_that_of_the_record(), reason="there is no bash 5.2 to ask")
def test_long_scripts_come_to_the_same_in_bash() -> None:
    """A few that are not recorded, so that the record cannot be all that is right."""
    found = differences(_LIVE)
    assert found == {}, "\n".join(found.values())


def test_a_difference_is_told() -> None:
    """What differs is shown, so that the comparison cannot be one that never fails."""
    one, other = in_ours(["echo a; echo b > f; exit 3", "echo c"])
    assert digest(one) != digest(other)
    assert digest(one) == digest(in_ours(["echo a; echo b > f; (exit 3)"])[0])


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("echo $((36#Z)) $((36#z)) $((62#Z))", "35 35 61\n"),
        ("printf '%s\\n' a b c d > f; mapfile -s 1 -n 2 -t A < f; echo ${A[*]}", "b c\n"),
        ("set -- -a; while getopts a: o; do :; done; echo $OPTIND", "2\n"),
        ("for x in - a b; do case $x in [a-]) echo $x ;; esac; done", "-\na\n"),
        ("echo x > a; echo y > b; cat -n a b", "     1\tx\n     2\ty\n"),
        ("printf '%s\\n' 'a 1' 'a 2' 'b 1' | sort -u -k1,1", "a 1\nb 1\n"),
        ("printf '%s\\n' x 1 x 2 | grep -m1 -A1 x", "x\n1\n"),
        ("echo x > a; grep x a nofile; echo $?", "a:x\n2\n"),
        ("printf '%s\\n' 1 2 3 4 | sed '2,3c X'", "1\nX\n4\n"),
        ("echo abc | sed 's/b*/x/g'", "xaxcx\n"),
        ("printf '%o\\n' -1", "1777777777777777777777\n"),
        ("{ sleep 2; echo late > f; } | true & wait $!; cat f", "late\n"),
    ],
)
def test_what_chance_seldom_draws(text: str, printed: str) -> None:
    """Ends of options, of ranges and of matches, as bash and the tools beside it have them."""
    assert in_ours([text])[0].output == printed
    if bash_is_that_of_the_record():
        assert in_bash([text])[0].output == printed
