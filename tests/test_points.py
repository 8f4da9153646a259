"""The declarations against the three guides, the plugin classes, the daemons and the docs."""

import inspect
import re
from pathlib import Path
from typing import Final

import pytest

import simctl
from simctl import plugin
from simctl.plugins.points import ALL, BY_CLASS, OPTIONAL, OWN
from simctl.plugins.points.declare import Point, Returns
from simctl.plugins.points.page import describe, lifecycle_page, overview

SWITCH: Final = """
    switch_p_libstate_save(dir_name)
    switch_p_libstate_restore(dir_name)
    switch_p_no_frag()
    switch_p_clear_node_state()
    switch_p_alloc_node_info() switch_node
    switch_p_build_node_info(switch_node)
    switch_p_pack_node_info(switch_node, buffer)
    switch_p_unpack_node_info(switch_node, buffer)
    switch_p_free_node_info(switch_node)
    switch_p_sprintf_node_info(switch_node, size) buf
    switch_p_alloc_jobinfo() switch_job
    switch_p_build_jobinfo(switch_job, nodelist, nprocs, cyclic_alloc)
    switch_p_copy_jobinfo(switch_job)
    switch_p_free_jobinfo(switch_job)
    switch_p_pack_jobinfo(switch_job, buffer)
    switch_p_unpack_jobinfo(switch_job, buffer)
    switch_p_get_jobinfo(switch_job, data_type) data
    switch_p_job_step_complete(switch_job, nodelist)
    switch_p_print_jobinfo(fp, switch_job)
    switch_p_sprint_jobinfo(switch_job, size) buf
    switch_p_get_data_jobinfo(switch_job, key) resulting_data
    switch_p_node_init()
    switch_p_node_fini()
    switch_p_job_preinit(switch_job)
    switch_p_job_init(switch_job, uid)
    switch_p_job_attach(switch_job, env, nodeid, procid, nnodes, nprocs, rank)
    switch_p_job_fini(switch_job)
    switch_p_job_postfini(switch_job, pgid, job_id, step_id)
    switch_p_get_errno()
    switch_p_strerror(errnum)
"""

CHECKPOINT: Final = """
    slurm_ckpt_alloc_job() jobinfo
    slurm_ckpt_free_job(jobinfo)
    slurm_ckpt_pack_job(jobinfo, buffer, protocol_version)
    slurm_ckpt_unpack_job(jobinfo, buffer, protocol_version)
    slurm_ckpt_copy_job(jobinfo)
    slurm_ckpt_op(job_id, step_id, step_ptr, op, data, image_dir) event_time error_code error_msg
    slurm_ckpt_comp(step_ptr, event_time, error_code, error_msg)
    slurm_ckpt_stepd_prefork(slurmd_job)
    slurm_ckpt_signal_tasks(slurmd_job, image_dir)
    slurm_ckpt_restart_task(slurmd_job, image_dir, gtid)
"""

BURST_BUFFER: Final = """
    bb_p_load_state(init_config)
    bb_p_state_pack(uid, buffer, protocol_version)
    bb_p_reconfig()
    bb_p_get_system_size(name)
    bb_p_job_validate(job_desc, submit_uid)
    bb_p_job_validate2(job_ptr) err_msg
    bb_p_job_set_tres_cnt(job_ptr, tres_cnt, locked)
    bb_p_job_get_est_start(job_ptr)
    bb_p_job_try_stage_in()
    bb_p_job_test_stage_in(job_ptr, test_only)
    bb_p_job_begin(job_ptr)
    bb_p_job_revoke_alloc(job_ptr)
    bb_p_job_start_stage_out(job_ptr)
    bb_p_job_test_post_run(job_ptr)
    bb_p_job_test_stage_out(job_ptr)
    bb_p_job_cancel(job_ptr)
    bb_p_xlate_bb_2_tres_str(burst_buffer)
"""

GUIDES: Final = {"switch": SWITCH, "checkpoint": CHECKPOINT, "burst_buffer": BURST_BUFFER}
"""The guides' functions in their order; behind each what C gives back through a pointer."""

POINTS: Final = (*ALL.values(), *OPTIONAL.values(), *OWN.values())
SOURCE: Final = Path(simctl.__file__).parent
_FUNCTION: Final = (
    r"\b(?:(?:switch_p|slurm_ckpt|bb_p)_\w+|job_submit\b|job_modify\b"
    r"|setup_defaults\b|pre_submit\b|post_submit\b)"
)
CALLERS: Final = ("ctld", "nodes", "stepd", "commands", "plugins/hooks.py")
WIDTH: Final = 79


def name_of(point: Point) -> str:
    """Name a point for a test's id."""
    return (
        point.name
        if point.name in ALL or point.name in OPTIONAL
        else f"{point.plugin_class}-{point.name}"
    )


every_point = pytest.mark.parametrize("point", POINTS, ids=name_of)


@pytest.mark.parametrize(
    ("plugin_class", "count"), [("switch", 30), ("checkpoint", 10), ("burst_buffer", 17)]
)
def test_every_function_of_a_guide_is_declared_in_its_order(plugin_class: str, count: int) -> None:
    """Names, parameters, and what only C has as parameters are the guide's, and nothing else is."""
    declared = [
        " ".join(
            (
                f"{point.name}({', '.join(point.parameters)})",
                *(name for name in point.arguments if name not in point.parameters),
            )
        )
        for point in BY_CLASS[plugin_class]
    ]
    assert declared == [line.strip() for line in GUIDES[plugin_class].strip().splitlines()]
    assert len(declared) == count


def test_each_class_has_an_init_and_a_fini() -> None:
    """They share their names, and so are no functions of ALL."""
    assert set(OWN) == {(kind, name) for kind in BY_CLASS for name in ("init", "fini")}
    assert all((point.plugin_class, point.name) == key for key, point in OWN.items())
    assert not {"init", "fini"} & set(ALL)


@every_point
def test_a_declaration_leaves_nothing_out(point: Point) -> None:
    """Moment, frequency, failure and versions are told, and each argument with its direction."""
    for text in (point.doc, point.often, point.failure, point.versions):
        assert text
        assert text == text.strip()
    assert point.guide or point.optional, "model guide calls every function of the guides"
    assert point.guide or point.modern
    assert point.doc.splitlines()[0].endswith(".")
    assert set(point.parameters) <= set(point.arguments)
    for name, text in point.arguments.items():
        way = r"in|out|in/out" if name in point.parameters else r"(in|out|in/out) in C, .*"
        assert re.fullmatch(rf"({way}): \S.*", text), name


@every_point
def test_the_declaration_in_c_has_the_same_arguments(point: Point) -> None:
    """The C text names the function, and the arguments in Python's order."""
    name, arguments = re.fullmatch(r"[\w ]+?[ *](\w+)\((.*)\)", point.c).groups()  # type: ignore[union-attr]
    assert name.removeprefix("cli_filter_p_") == point.name
    declared = [re.split(r"[ *]", each)[-1] for each in arguments.split(",")]
    declared = [] if declared == ["void"] else declared
    assert set(declared) == set(point.arguments)
    assert tuple(each for each in declared if each in point.parameters) == point.parameters


@every_point
def test_results_count_as_the_guides_say(point: Point) -> None:
    """Nothing returned is success where 0 is; a test, a time or a size must be a number."""
    assert point.is_int == (
        point.returns
        in {
            Returns.INT,
            Returns.COUNT,
            Returns.ERRNO,
            Returns.NUMBER,
            Returns.THREE,
            Returns.TIME,
            Returns.SIZE_MB,
        }
    )
    if point.returns in {Returns.THREE, Returns.TIME, Returns.SIZE_MB, Returns.OBJECT}:
        assert not point.none_is_success
    if point.returns in {Returns.THREE, Returns.BOOL}:
        assert point.result, "what 1, 0 and -1, or true, stand for"
    if point.plugin_class == "burst_buffer" and point.name not in ("init", "fini"):
        assert point.returns is not Returns.INT, "a burst buffer's int functions return an errno"


@every_point
def test_who_calls_is_somebody_there_is(point: Point) -> None:
    """Model modern has no session manager; burst buffers are slurmctld's alone."""
    assert "session" not in point.modern
    assert set(point.guide) <= {
        *("slurmctld", "slurmd", "srun", "manager", "session", "task", "sbatch", "salloc"),
    }
    if point.plugin_class == "burst_buffer":
        assert {*point.guide, *point.modern} == {"slurmctld"}


@every_point
def test_a_function_that_no_run_calls_says_so(point: Point) -> None:
    """`later` is empty just where the daemons' code calls the function; change both together."""
    if point.name in ("init", "fini"):
        return
    assert bool(point.later) == (point.name not in _called())


def _called() -> set[str]:
    files = [
        file
        for place in CALLERS
        for file in ([SOURCE / place] if place.endswith(".py") else (SOURCE / place).rglob("*.py"))
    ]
    assert len(files) > len(CALLERS)
    return {
        name
        for file in files
        for name in re.findall(_FUNCTION, file.read_text())
        if not (name == "switch_p_print_jobinfo" and file.name == "hooks.py")
    }


@pytest.mark.parametrize(
    "kind",
    [
        plugin.SwitchPlugin,
        plugin.CheckpointPlugin,
        plugin.BurstBufferPlugin,
        plugin.JobSubmitPlugin,
    ],
)
def test_the_stubs_for_plugin_authors_are_the_points(kind: type[object]) -> None:
    """A base class has a method for each function, with the guide's parameters, and no other."""
    plugin_class = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__.removesuffix("Plugin")).lower()
    stubs = {
        name: tuple(inspect.signature(method).parameters)[1:]
        for base in (kind, kind.__mro__[1])
        for name, method in vars(base).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    declared = (*BY_CLASS[plugin_class], OWN[plugin_class, "init"], OWN[plugin_class, "fini"])
    assert stubs == {point.name: point.parameters for point in declared}


def test_the_page_is_what_the_points_say(request: pytest.FixtureRequest) -> None:
    """Renew it with `python -m simctl.plugins.points.page > docs/lifecycle.md`."""
    page = request.config.rootpath / "docs" / "lifecycle.md"
    assert page.read_text() == lifecycle_page()


def test_the_page_has_a_section_for_every_point() -> None:
    """A heading each, under its class, and a row in the class's table."""
    page = lifecycle_page()
    for point in (ALL | OPTIONAL).values():
        assert page.count(f"### {point.name}\n") == 1
        assert f"| `{point.name}`" in page
    for plugin_class, name in OWN:
        assert f"### {name} ({plugin_class})\n" in page


@every_point
def test_a_point_fits_on_a_terminal(point: Point) -> None:
    """Its description tells all of it, in lines of at most 79 columns."""
    lines = describe(point)
    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)
    text = " ".join(" ".join(lines).split())
    for told in (
        *(point.c, point.doc, point.result, point.versions, point.locks, point.later),
        *(point.often, point.failure),
        *(point.modern_often, point.modern_failure, point.modern_moment, point.modern_arguments),
    ):
        assert " ".join(told.split()) in text
    for name, told in point.arguments.items():
        assert f"{name}: {told}" in text


@pytest.mark.parametrize("plugin_class", list(BY_CLASS))
def test_an_overview_fits_on_a_terminal(plugin_class: str) -> None:
    """A line or more for each function of the class, of at most 79 columns."""
    lines = overview(plugin_class)
    assert max(map(len, lines)) <= WIDTH
    first_words = [line.split()[0].rstrip("*") for line in lines if line.split()]
    besides = [point for point in OPTIONAL.values() if point.plugin_class == plugin_class]
    for point in (*BY_CLASS[plugin_class], *besides):
        assert first_words.count(point.name) == 1
