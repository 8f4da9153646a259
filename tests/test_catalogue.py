"""`simctl plugins list` and `show`."""

from pathlib import Path

import pytest

from simctl.cli import main
from simctl.plugins.points import ALL, BY_CLASS

ROOT = Path(__file__).parent.parent


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run `simctl plugins` and return what it prints; it must print nothing else."""
    assert main(["plugins", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) < 80
    return out


def test_list_has_the_classes_and_the_bundled_plugins(capsys: pytest.CaptureFixture[str]) -> None:
    """With how many functions each has, and where each plugin comes from."""
    out = output(capsys, "list")
    for plugin_class, points in BY_CLASS.items():
        assert f"{plugin_class:<13} {len(points)} functions" in out
    for name in ("checkpoint/none", "switch/none"):
        assert name in out


@pytest.mark.parametrize("plugin_class", BY_CLASS)
def test_show_of_a_class_has_every_function(
    capsys: pytest.CaptureFixture[str], plugin_class: str
) -> None:
    """A line each at least."""
    out = output(capsys, "show", plugin_class)
    for point in BY_CLASS[plugin_class]:
        assert f"\n{point.name}" in out


@pytest.mark.parametrize("name", [*ALL, "init", "fini"])
def test_show_of_a_function_says_who_calls_it(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """In both models, and what a failure does."""
    out = output(capsys, "show", name)
    assert "Called by" in out
    assert "If it fails" in out
    assert "In real Slurm" in out


def test_show_of_a_plugin_has_its_own_functions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By type, or by file."""
    assert "Its own functions (0; the others are stubs)" in output(capsys, "show", "switch/none")
    monkeypatch.chdir(ROOT)
    out = output(capsys, "show", "scenarios/mistakes/fork_state.py")
    assert "switch_p_job_postfini" in out
    assert "switch_p_job_attach" not in out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("swithc", "did you mean switch?"),
        ("switch_p_job_atach", "did you mean switch_p_job_attach?"),
        ("./none.py", "there is no file './none.py'"),
    ],
)
def test_what_is_not_there_exits_2(
    capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    """With what is near."""
    assert main(["plugins", "show", name]) == 2
    assert text in capsys.readouterr().err
