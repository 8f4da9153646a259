"""The points in words: docs/lifecycle.md, and what `simctl plugins show` prints.

`make docs` writes the page.
"""

import sys
import textwrap
from collections.abc import Iterator
from typing import Final

from simctl.kernel.procs import RunsAs
from simctl.plugins.points import BY_CLASS, OPTIONAL, OWN
from simctl.plugins.points.declare import OnError, Places, Point, Returns

_WIDTH: Final = 79
_PAGE_WIDTH: Final = 100

CLASSES: Final = ("switch", "checkpoint", "burst_buffer", "job_submit", "cli_filter")
MODELS: Final = ("guide", "modern")

_PROCESSES: Final = {
    "guide": {
        "slurmctld": "slurmctld",
        "slurmd": "slurmd",
        "manager": "slurmstepd's job manager (P1)",
        "session": "slurmstepd's session manager (P2)",
        "task": "the task itself (P3)",
        "srun": "srun",
        "sbatch": "sbatch",
        "salloc": "salloc",
    },
    "modern": {
        "slurmctld": "slurmctld",
        "slurmd": "slurmd",
        "manager": "slurmstepd",
        "task": "the task itself",
        "srun": "srun",
        "sbatch": "sbatch",
        "salloc": "salloc",
    },
}

_BLOCKS: Final = {
    "slurmctld": "slurmctld, which answers no other client until the call returns",
    "slurmd": "this node's slurmd, which handles its messages one after another",
    "manager": "this step daemon, and signals to the step",
    "session": "this step daemon, and signals to the step",
    "task": "this task alone",
    "srun": "this srun",
    "sbatch": "this sbatch",
    "salloc": "this salloc",
}

_USERS: Final = {RunsAs.USER: "the user", RunsAs.EITHER: "root or the user"}

_TITLES: Final = {
    "switch": "Switch",
    "checkpoint": "Checkpoint",
    "burst_buffer": "Burst buffer",
    "job_submit": "Job submit",
    "cli_filter": "Cli filter",
}

_TODAY: Final = {
    "switch": (
        "The guide is version 0 of the API, of Slurm 0.4 (2005). Slurm still has switch plugins; "
        "of the guide's functions eight keep their names today (24.11), with other arguments, and "
        "three have new names. Of the functions that releases in between added, those that Slurm "
        "18.08 calls are called in model modern, of plugins that have them: from "
        "[switch_p_slurmctld_init](#switch_p_slurmctld_init) on."
    ),
    "checkpoint": (
        "Slurm 1.0 to 19.05 had checkpoint plugins. The whole interface left Slurm with 20.02; "
        "today it exists here alone. Real Slurm looked for one more function, "
        "[slurm_ckpt_task_comp](#slurm_ckpt_task_comp): a plugin may bring it; without it such a "
        "report gets ESLURM_NOT_SUPPORTED."
    ),
    "burst_buffer": (
        "Slurm has had burst buffer plugins since 15.08, and all functions of the guide exist "
        "today. Real Slurm looks for one more since 17.11, [bb_p_get_status](#bb_p_get_status): a "
        "plugin may bring it; of one without it `scontrol show bbstat` tells nothing."
    ),
    "job_submit": (
        "Slurm has had job submit plugins since 1.3; most sites that have one write it in Lua "
        "([job_submit_lua.md](job_submit_lua.md)). JobSubmitPlugins lists them; each sees a "
        "submission as the one before it has left it."
    ),
    "cli_filter": (
        "Slurm has had cli filter plugins since 18.08 ([cli_filter_lua.md](cli_filter_lua.md)). "
        "CliFilterPlugins lists them; sbatch, salloc and srun load them as their user."
    ),
}


def points_of(plugin_class: str) -> tuple[Point, ...]:
    """Return a class's functions: init, the guide's in its order, the optional ones, fini."""
    return (
        OWN[plugin_class, "init"],
        *BY_CLASS[plugin_class],
        *(point for point in OPTIONAL.values() if point.plugin_class == plugin_class),
        OWN[plugin_class, "fini"],
    )


def _who(places: Places, model: str) -> str:
    if not places:
        return "nobody"
    return ", ".join(
        f"{_PROCESSES[model][role]} as {_USERS.get(user, user.value)}"
        for role, user in places.items()
    )


def _python(point: Point) -> str:
    return f"def {point.name}({', '.join(('self', *point.parameters))})"


def _returns(point: Point) -> str:
    text = point.returns.value
    if point.returns is Returns.TEXT:
        text = "a text, or None"
    elif point.none_is_success and point.returns is not Returns.VOID:
        text = f"{text}; nothing returned is 0"
    if point.returns in (Returns.BOOL, Returns.THREE):
        return point.result
    return f"{text}: {point.result}" if point.result else text


def _blocked(point: Point) -> str:
    parts = list(dict.fromkeys(_BLOCKS[role] for role in (*point.guide, *point.modern)))
    if point.locks:
        parts.append(f"in real Slurm, threads that need slurmctld's locks: {point.locks}")
    return "; ".join(parts)


def _facts(point: Point) -> Iterator[tuple[str, str]]:
    """Return what there is to say of a point, a heading and a text each."""
    if point.optional:
        yield "Optional", "the guide does not have it; it is called of a plugin that does"
    yield "When", point.doc.replace("\n", " ")
    if point.modern_moment:
        yield "When, in modern", point.modern_moment
    yield "How often", point.often
    if point.modern_often:
        yield "How often, in modern", point.modern_often
    if point.guide == point.modern and _who(point.guide, "guide") == _who(point.modern, "modern"):
        yield "Called by", _who(point.guide, "guide")
    else:
        for model in MODELS:
            yield f"Called by, in {model}", _who(point.places(model), model)
    yield "If it fails", point.failure
    if point.modern_failure:
        yield "If it fails, in modern", point.modern_failure
    yield "Meanwhile wait", _blocked(point)
    if point.modern_arguments:
        yield "Slurm 18.08 passes", point.modern_arguments
    yield "In real Slurm", point.versions
    if point.later:
        yield "In simctl", point.later


# Plain text.


def describe(point: Point) -> list[str]:
    """Return one point in lines of at most 79 columns."""
    lines = [
        f"{point.name} ({point.plugin_class})",
        *_filled(point.c, "    "),
        *_filled(_python(point), "    "),
        "",
    ]
    for heading, text in _facts(point):
        lines += _filled(f"{heading}: {text}", "", "    ")
    lines += _filled(f"Returns: {_returns(point)}", "", "    ")
    if point.arguments:
        lines.append("Arguments:")
    for name, text in point.arguments.items():
        lines += _filled(f"{name}: {text}", "    ", "        ")
    return lines


def _filled(text: str, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=first + "    " if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


_SHORT: Final = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "srun": "srun",
    "sbatch": "sbatch",
    "salloc": "salloc",
    "manager": "P1",
    "session": "P2",
    "task": "P3",
}
_ALSO_COMMANDS: Final = ("sbatch", "salloc")
_EVERYONE: Final = "every process"


def overview(plugin_class: str) -> list[str]:
    """Return a table of a class's points in lines of at most 79 columns."""
    points = points_of(plugin_class)
    lines = [_row("FUNCTION", "CALLED BY", "AS", "IF IT FAILS")]
    for point in points:
        name = point.name + ("*" if point.later else "")
        label = _label(point.on_error) if point.guide else ""
        lines.append(_row(name, *_caller(point.guide), label))
        if (point.guide, point.on_error) != (point.modern, point.modern_on_error):
            process, user = _caller(point.modern)
            label = _label(point.modern_on_error) if point.modern else ""
            modern = _row("  in modern", process.replace("P1", "slurmstepd"), user, label)
            lines += [modern] if process != _EVERYONE else []
    if any(point.later for point in points):
        lines += ["", "* no run calls it yet, or only on demand; `simctl plugins check` does"]
    used = {each for point in points for each in (point.on_error, point.modern_on_error)}
    lines.append("")
    lines += [f"{_label(each)}: {each.value}" for each in OnError if each in used]
    if any(place in point.guide for point in points for place in ("manager", "session", "task")):
        lines.append("")
        lines.append(
            "P1 is a step's job manager, P2 its session manager, P3 a task of it; in model"
        )
        lines.append("modern one slurmstepd, as root, does what P1 and P2 do.")
    return lines


def _row(name: str, process: str, user: str, failure: str) -> str:
    return f"{name:<27} {process:<24} {user:<9} {failure}".rstrip()


def _caller(places: Places) -> tuple[str, str]:
    """Return the processes that call, and as whom."""
    if not places:
        return "nobody", ""
    users = dict.fromkeys(places.values())
    user = next(iter(users)).value if len(users) == 1 else "its own"
    if len(places) > len(_SHORT) - len(_ALSO_COMMANDS) - 2:
        return _EVERYONE, user
    return ",".join(_SHORT[role] for role in _SHORT if role in places), user


def _label(on_error: OnError) -> str:
    return on_error.name.lower().replace("_", " ")


# The page of the docs.

_INTRODUCTION: Final = """\
# Every plugin function: who calls it, when, as whom

This page is made from the declarations in plugins/points, by `python -m
simctl.plugins.points.page`. They also decide what simctl does: a call in another process, or as
another user, is refused as a fault of simctl's own.

A **point** is a function of one of Slurm's three plugin guides. simctl calls it in two models:

- **guide**, the default: what the guides say. A step has three processes on each node. The *job
  manager* (P1, root) forks the *session manager* (P2, root until it becomes the job's owner), which
  forks a process for each task (P3, the user). What one stores in memory after a fork the others do
  not see.
- **modern**: what recordings of Slurm 18.08 show. One root slurmstepd, and its tasks. A plugin has
  the guide's arguments here too; what Slurm 18.08 passes besides or instead is told below.

slurmctld acts as SlurmUser, slurmd and slurmstepd as root, srun and tasks as the user.

Which of this still exists:

| interface | in real Slurm |
|---|---|
"""

_RULES: Final = """
In every class: a plugin's `init` runs in a process before any other of its functions, and `fini`
after every other. Forks (P2, P3) have the parent's plugin, and no init of their own. A function
fails by raising `SlurmError`, or by returning what the table of its class says; whatever else it
raises counts as a failure too, and is told in the trace and at the end of the run.
"""


def lifecycle_page() -> str:
    """Return docs/lifecycle.md."""
    return "\n".join(_page_lines()) + "\n"


def _page_lines() -> Iterator[str]:
    yield _INTRODUCTION.rstrip("\n")
    for plugin_class in CLASSES:
        yield f"| [{plugin_class}](#{_anchor(plugin_class)}) | {_TODAY[plugin_class]} |"
    yield _RULES.rstrip("\n")
    for plugin_class in CLASSES:
        yield ""
        yield f"## {_TITLES[plugin_class]} plugins"
        yield ""
        yield from _table(plugin_class)
        for point in points_of(plugin_class):
            yield ""
            yield from _section(point)


def _anchor(plugin_class: str) -> str:
    return f"{_TITLES[plugin_class].lower().replace(' ', '-')}-plugins"


def _table(plugin_class: str) -> Iterator[str]:
    yield "| function | guide | modern | if it fails |"
    yield "|---|---|---|---|"
    for point in points_of(plugin_class):
        cells = (_who(point.places(model), model) for model in MODELS)
        failure = "-" if point.on_error is OnError.IGNORED else point.on_error.value
        if point.modern_on_error is not point.on_error:
            failure += f"; in modern: {point.modern_on_error.value}"
        star = "\\*" if point.later else ""
        yield f"| `{point.name}`{star} | {' | '.join(cells)} | {failure} |"
    if any(point.later for point in points_of(plugin_class)):
        yield ""
        yield "\\* No run calls it yet, or only on demand; `simctl plugins check` does."


def _section(point: Point) -> Iterator[str]:
    yield f"### {point.name}{f' ({point.plugin_class})' if point.name in ('init', 'fini') else ''}"
    yield ""
    yield "```"
    yield from _paged(point.c, "    ")
    yield from _paged(_python(point), "    ")
    yield "```"
    yield ""
    for heading, text in _facts(point):
        yield from _paged(f"- **{heading}:** {text}", "  ")
    yield from _paged(f"- **Returns:** {_returns(point)}", "  ")
    for name, text in point.arguments.items():
        yield from _paged(f"- `{name}`, {text}", "  ")


def _paged(text: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text,
        _PAGE_WIDTH,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


if __name__ == "__main__":
    sys.stdout.write(lifecycle_page())
