"""What a job_submit.lua reads and writes: fields as Slurm has them, messages, modules beside it."""

from pathlib import Path

import pytest

from simctl.scenario.load import read_scenario
from simctl.world import RunResult, World

pytest.importorskip("lupa")

HEAD = """\
slurm_conf: {JobSubmitPlugins: lua}
job_submit_lua: site.lua
nodes: [{name: "n[1-2]", cpus: 4, gres: "fpga:2"}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}, {name: other, nodes: n1}]
users: {alice: 1001}
timeline:
"""
SCRIPT = """\
function slurm_job_submit(desc, parts, uid)
  {}
  return 0
end
function slurm_job_modify(desc, job, parts, uid)
  {}
  return 0
end
"""


def run(tmp_path: Path, submit: str, *lines: str, modify: str = "") -> tuple[RunResult, World]:
    """Run commands, a second apart, under a script with a body in each function."""
    (tmp_path / "site.lua").write_text(SCRIPT.format(submit, modify))
    text = HEAD + "".join(
        f"  - {{at: {at}s, as: alice, run: {line!r}}}\n" for at, line in enumerate(lines, 1)
    )
    world = World(read_scenario(text, file=str(tmp_path / "s.yaml")))
    world.trace.add_sink(world.events.append)
    return world.run(), world


def told(result: RunResult) -> list[str]:
    """Return what the script told the user of each command."""
    return [each.stderr.partition(": ")[2].strip() for each in result.commands]


def logged(world: World) -> list[str]:
    """Return the lines of the log."""
    return [
        str(each.args.get("text"))
        for each in world.events
        if each.kind == "log" and isinstance(each.args, dict)
    ]


def test_messages_take_the_last_argument_and_no_nil_for_an_error(tmp_path: Path) -> None:
    """user_msg, error and log do not format; what is no text shows as (null)."""
    result, world = run(
        tmp_path,
        "slurm.user_msg('of %s', 'alice') slurm.error(nil) slurm.error('a', 'b') "
        "slurm.log('bare') slurm.log(0, {}) slurm.log('0', 'as a text') slurm.log(-1, 'unheard')",
        "sbatch --wrap true",
    )
    assert told(result) == ["alice"]
    lines = [each for each in logged(world) if each.startswith("lua: ")]
    assert lines == ["lua: (null)", "lua: b", "lua: bare", "lua: (null)", "lua: as a text"]


def test_records_are_empty_tables_that_keep_what_is_put_in(tmp_path: Path) -> None:
    """Fields show by name alone; what a script sets in them is its own, for one call."""
    seen = "part.seen == nil and next(part) == nil and part.nodes"
    _, world = run(
        tmp_path,
        f"local part = parts.other slurm.log_info('%s', tostring({seen})) part.seen = 1 "
        "slurm.log_info('%s', tostring(part.seen))",
        "sbatch -H --wrap true",
        "sbatch -H --wrap true",
        "scontrol update jobid=1 comment=x",
        modify="job.partition = 'other' slurm.log_info('%s', job.partition)",
    )
    lines = [each for each in logged(world) if each.startswith("lua: ")]
    assert lines == ["lua: n1", "lua: 1"] * 2 + ["lua: other"]
    assert not [each for each in world.events if each.kind == "log" and each.name == "error"]


def test_a_job_has_its_gres_by_both_names(tmp_path: Path) -> None:
    """As in Slurm since 18.08; nil where it asked for none."""
    _, world = run(
        tmp_path,
        "",
        "sbatch -H --gres=fpga:2 --wrap true",
        "sbatch -H --wrap true",
        "scontrol update jobid=1 comment=x",
        "scontrol update jobid=2 comment=x",
        modify="slurm.log_info('%s %s', tostring(job.gres), tostring(job.tres_per_node))",
    )
    lines = [each for each in logged(world) if each.startswith("lua: ")]
    assert lines == ["lua: gres:fpga:2 gres:fpga:2", "lua: nil nil"]


def test_what_is_not_simulated_is_logged(tmp_path: Path) -> None:
    """Nodes of one user alone, and cpus beyond those of the tasks; fewer cpus change nothing."""
    _, world = run(
        tmp_path,
        "desc.shared = 2 desc.min_cpus = desc.name == 'more' and 5 or 4 "
        "slurm.log_info('%d %d', desc.shared, desc.oversubscribe)",
        "sbatch -n4 -J same --wrap true",
        "sbatch -n4 -J more --wrap true",
    )
    lines = [each for each in logged(world) if "not simulate" in each or each == "lua: 2 2"]
    shared = [f"job_desc.{name} is set, which simctl does not simulate" for name in _SHARED]
    more = "job_desc.min_cpus is set, which simctl does not simulate"
    assert lines == ["lua: 2 2", *shared, "lua: 2 2", *shared, more]


_SHARED = ("shared", "oversubscribe")


def test_minutes_of_no_time_are_negative(tmp_path: Path) -> None:
    """time_str2mins hands over a signed number: it is neither NO_VAL nor INFINITE."""
    times = ("'90:30'", "'soon'", "'UNLIMITED'", "nil")
    shown = ", ".join(f"slurm.time_str2mins({each})" for each in times)
    result, _ = run(tmp_path, f"slurm.log_user('%d %d %d %d', {shown})", "sbatch --wrap true")
    assert told(result) == ["91 -2 -1 -2"]


def test_modules_beside_a_script_come_with_it(tmp_path: Path) -> None:
    """Those that it names, and those that these name, lie where it does on every host."""
    (tmp_path / "lib").mkdir()
    outside = tmp_path.parent / f"{tmp_path.name}.lua"
    outside.write_text("return 1\n")
    (tmp_path / "rules.lua").write_text(
        "local limits = dofile('/etc/slurm/lib/limits.lua')\nreturn {most = limits.most}\n"
        f"-- dofile('/etc/slurm/{outside}') dofile('/etc/slurm/../{outside.name}')\n"
    )
    (tmp_path / "lib" / "limits.lua").write_text("return {most = 7}\n")
    (tmp_path / "other.lua").write_text("error('nobody asked for it')\n")
    result, world = run(
        tmp_path,
        "slurm.log_user('%d', require('rules').most)",
        "sbatch --wrap true",
    )
    assert told(result) == ["7"]
    assert world.scenario.lua_scripts.keys() == {"job_submit.lua", "rules.lua", "lib/limits.lua"}


@pytest.mark.parametrize("none", ["slurm.NO_VAL16", "slurm.NO_VAL"])
@pytest.mark.parametrize("field", ["cpus_per_task", "ntasks_per_node", "pn_min_cpus"])
def test_a_number_is_taken_back_by_either_size_of_no_value(
    tmp_path: Path, field: str, none: str
) -> None:
    """The request is as if the option had not been there; numbers beside them are numbers."""
    option = {"cpus_per_task": "-c2", "ntasks_per_node": "--ntasks-per-node=2"}
    asked = option.get(field, "--mincpus=2")
    shown = "scontrol -o show job 1"
    taken, _ = run(tmp_path, f"desc.{field} = {none}", f"sbatch {asked} --wrap true", shown)
    plain, _ = run(tmp_path, "", "sbatch --wrap true", shown)
    asking, _ = run(tmp_path, "", f"sbatch {asked} --wrap true", shown)
    for field_shown in ("NumCPUs=", "CPUs/Task=", "MinCPUsNode=", "NtasksPerN:B:S:C="):
        texts = [
            next(word for word in each.commands[1].stdout.split() if word.startswith(field_shown))
            for each in (taken, plain)
        ]
        assert texts[0] == texts[1]
    assert taken.commands[1].stdout.split() != asking.commands[1].stdout.split()
