"""`plugins check` names the slips of plugins in C as it does those of plugins in Python."""

import shlex
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from simctl.plugins.compiled import build, classes
from simctl.plugins.fitting import check_class
from simctl.plugins.guard import PluginError
from simctl.testing.plugin_check import memory
from simctl.testing.plugin_check.check import check_plugin
from tests.compiled_plugins import KEYS, KEYS_18, needs_compiler, sanitizers
from tests.test_compiled import run

pytestmark = needs_compiler

LEAKY = ("\txfree(job->nodes);\n\txfree(job);", "\txfree(job);")
"""A text in a credential of which free takes no notice."""

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


def test_slips_are_named_with_their_lines(tmp_path: Path) -> None:
    """By rule, function, the variable or field, and the line; none hides another."""
    changes = [change for change, _, _ in SLIPS.values()]
    found = check_plugin(slipped(tmp_path, *changes, LEAKY), "slipped.c", models=("guide",))
    for rule, (_, function, what) in SLIPS.items():
        mistakes = [each for each in found.mistakes if each.rule == rule]
        assert [each.function for each in mistakes] == [function]
        assert what in mistakes[0].what
        assert mistakes[0].where.startswith("slipped.c:")
    assert [each.function for each in found.mistakes if each.rule == "leaks-memory"] == [
        "switch_p_free_jobinfo"
    ]
    assert len(found.mistakes) == len(SLIPS) + 1


def test_a_double_free_is_found_where_the_copy_shares_its_memory(tmp_path: Path) -> None:
    """The second release ends the process; nothing of simctl breaks by it."""
    kind = slipped(tmp_path, QUIET, ("copy->nodes = xstrdup(job->nodes);", ""))
    found = check_plugin(kind, "slipped.c", models=("guide",))
    assert any("shares nodes with the credential" in each.what for each in found.mistakes)


REFUSED = [
    (('"switch/keys"', '"keys"'), "plugin_type is 'keys'"),
    (('"switch/keys"', '"burst_buffer/keys"'), "burst buffer plugins in C are not loaded"),
    (('"switch/keys"', '"checkpoint/keys"'), "does not export slurm_ckpt_alloc_job"),
    (("int switch_p_node_fini(void)", "int other(void)"), "does not export switch_p_node_fini"),
    (("context = -1; }", "nobody_has_this(); }"), "undefined symbol: nobody_has_this"),
    (("int init(void)", "int init(void"), "compiling slipped.c failed"),
    (("plugin_version = 1;", "plugin_version = 20 << 16 | 2 << 8;"), "is that of Slurm 20.02"),
    (
        (
            "switch_p_copy_jobinfo(switch_jobinfo_t switch_job)",
            "switch_p_duplicate_jobinfo(void *switch_job)",
        ),
        "switch_p_pack_jobinfo is declared with (void*, struct*), and that of Slurm 17.11 to 19.05",
    ),
]


def test_prototypes_of_later_slurm_are_for_model_modern(tmp_path: Path) -> None:
    """Model guide calls none of them, and says so."""
    kind = classes.find(KEYS_18)
    check_class(kind, "switch_keys_18.c", "modern")
    with pytest.raises(PluginError, match="write `model: modern` into the scenario"):
        check_class(kind, "switch_keys_18.c", "guide")


@pytest.mark.parametrize(("change", "told"), REFUSED)
def test_what_cannot_be_loaded_says_why(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    """A type, a missing function, an unknown symbol, a mistake in the source."""
    with pytest.raises(PluginError, match="slipped") as refused:
        slipped(tmp_path, change)
    assert told in str(refused.value)


PROGRAMS = {
    "library_test.c": sorted((build.HERE / "library").glob("*.c")),
    "host_test.c": [build.HERE / "host" / "frames.c", build.HERE / "host" / "record.c"],
}
"""The tests in C, and what each is built with."""


@pytest.mark.skipif(not sanitizers(), reason="the compiler has no sanitizers")
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_in_c_is_sound(tmp_path: Path, name: str) -> None:
    """Tried by a program in C, with the sanitizers for addresses and undefined behaviour."""
    program = tmp_path / "program"
    command = [
        *shlex.split(build.compiler()),
        *("-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"),
        *("-fno-sanitize-recover=all", f"-I{build.HEADER.parent}", f"-I{build.HERE / 'host'}"),
        *("-o", str(program), *map(str, [KEYS.parent / name, *PROGRAMS[name]])),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not sanitizers(), reason="the compiler has no sanitizers")
def test_the_host_does_nothing_undefined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in hosts that end where C leaves open what happens: the same trace as in others."""
    usual = run(tmp_path, KEYS_18, model="modern").read_bytes()
    strict = (*build.STRICT, "-fsanitize=undefined", "-fno-sanitize-recover=all")
    monkeypatch.setattr(build, "STRICT", strict)
    monkeypatch.setattr(classes, "_ZYGOTES", {})
    assert run(tmp_path, KEYS_18, model="modern").read_bytes() == usual


@pytest.mark.parametrize(
    ("used", "grown"),
    [
        ([0, 100, 200, 300, *[400] * 8], 0),
        ([*[0] * 4, *range(0, 64, 8)], 8),
        ([*[0] * 4, 0, 0, 0, 4096, 4096, 4096, 4096, 4096], 0),
        ([*[0] * 4, 0, 8, 16, 16, 24, 32, 40, 48], 0),
        ([*[0] * 4, 0, 8, 32, 40, 48, 56, 64, 72], 8),
        ([*[0] * 4, *range(64, 0, -8)], 0),
    ],
)
def test_memory_leaks_that_grows_in_every_round(used: list[int], grown: int) -> None:
    """By the least of them: a table of the plugin's own grows now and then, and first of all."""
    rounds = iter(used)

    class Kept:
        heap = 0

    def one(plugin: Any) -> bool:
        plugin.heap = next(rounds)
        return True

    assert memory._growth(cast(Any, Kept), one) == grown
    assert not list(rounds)
