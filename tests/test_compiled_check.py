"""`plugins check` names the slips of plugins in C as it does those of plugins in Python."""

import shlex
import subprocess
from pathlib import Path

import pytest

from simctl.plugins.compiled import build, classes
from simctl.plugins.guard import PluginError
from simctl.testing.plugin_check.check import check_plugin
from tests.compiled_plugins import KEYS, needs_compiler

pytestmark = needs_compiler

QUIET = ('info("step %u.%u is over, context %d", job_id, step_id, context);', "")
"""The one mistake of switch_keys.c: it looks at what another process has stored."""

SLIPS = {
    "wrong-process": (("", ""), "switch_p_job_postfini", "reads context in the manager process"),
    "copy": (
        ("copy->nodes = xstrdup(job->nodes);", "copy->nodes = NULL;"),
        "switch_p_copy_jobinfo",
        "differs from the credential in nodes",
    ),
    "pack-unpack": (
        ("safe_unpack32(&job->tasks, buffer);", "uint32_t lost; safe_unpack32(&lost, buffer);"),
        "switch_p_unpack_jobinfo",
        "does not bring back tasks",
    ),
}


def slipped(folder: Path, *changes: tuple[str, str]) -> type[classes.CompiledPlugin]:
    """Return the class of switch_keys.c with some of its text replaced."""
    text = KEYS.read_text(encoding="utf-8")
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path = folder / "slipped.c"
    path.write_text(text, encoding="utf-8")
    return classes.find(path)


def test_a_plugin_without_a_slip_is_fine(tmp_path: Path) -> None:
    """Nothing is found, and each function of the guide was driven."""
    found = check_plugin(slipped(tmp_path, QUIET), "slipped.c", models=("guide",))
    assert found.mistakes == ()
    assert not found.not_driven


@pytest.mark.parametrize("rule", SLIPS)
def test_a_slip_is_named_with_its_line(tmp_path: Path, rule: str) -> None:
    """By rule, function, the variable or field, and the line of the function."""
    change, function, what = SLIPS[rule]
    changes = (change,) if rule == "wrong-process" else (QUIET, change)
    found = check_plugin(slipped(tmp_path, *changes), "slipped.c", models=("guide",))
    mistakes = [each for each in found.mistakes if each.rule == rule]
    assert [each.function for each in mistakes] == [function]
    assert what in mistakes[0].what
    assert mistakes[0].where.startswith("slipped.c:")


def test_a_double_free_is_found_where_the_copy_shares_its_memory(tmp_path: Path) -> None:
    """The second release ends the process; nothing of simctl breaks by it."""
    kind = slipped(tmp_path, QUIET, ("copy->nodes = xstrdup(job->nodes);", ""))
    found = check_plugin(kind, "slipped.c", models=("guide",))
    assert any("shares nodes with the credential" in each.what for each in found.mistakes)


def test_memory_that_no_call_releases_is_a_mistake(tmp_path: Path) -> None:
    """The text in a credential of which free takes no notice."""
    kind = slipped(tmp_path, QUIET, ("\txfree(job->nodes);\n\txfree(job);", "\txfree(job);"))
    found = check_plugin(kind, "slipped.c", models=("guide",))
    assert [(each.rule, each.function) for each in found.mistakes] == [
        ("leaks-memory", "switch_p_free_jobinfo")
    ]


REFUSED = [
    (('"switch/keys"', '"keys"'), "plugin_type is 'keys'"),
    (('"switch/keys"', '"burst_buffer/keys"'), "burst buffer plugins in C are not loaded"),
    (('"switch/keys"', '"checkpoint/keys"'), "does not export slurm_ckpt_alloc_job"),
    (("int switch_p_node_fini(void)", "int other(void)"), "does not export switch_p_node_fini"),
    (("context = -1; }", "nobody_has_this(); }"), "undefined symbol: nobody_has_this"),
    (("int init(void)", "int init(void"), "compiling slipped.c failed"),
]


@pytest.mark.parametrize(("change", "told"), REFUSED)
def test_what_cannot_be_loaded_says_why(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    """A type, a missing function, an unknown symbol, a mistake in the source."""
    with pytest.raises(PluginError, match="slipped") as refused:
        slipped(tmp_path, change)
    assert told in str(refused.value)


def test_the_library_does_what_plugins_expect_of_slurms(tmp_path: Path) -> None:
    """Tried by a program in C, with the sanitizers for addresses and undefined behaviour."""
    program = tmp_path / "library_test"
    sources = sorted((build.HERE / "library").glob("*.c"))
    command = [
        *shlex.split(build.compiler()),
        *("-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"),
        *("-fno-sanitize-recover=all", f"-I{build.HEADER.parent}", "-o", str(program)),
        *map(str, [KEYS.parent / "library_test.c", *sources]),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot find" in built.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
