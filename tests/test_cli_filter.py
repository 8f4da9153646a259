"""cli_filter plugins, in Lua and in Python: what they set, end, keep, print and let go on."""

from pathlib import Path

import pytest

from simctl.plugins.cli_filter.texts import duration, memory
from simctl.scenario.load import read_scenario
from simctl.world import RunResult, World

pytest.importorskip("lupa")

LUA = """\
function slurm_cli_setup_defaults(options, early)
  slurm.log_info("defaults of %s %s", options["type"], tostring(early))
  if early and options["type"] == "sbatch" then options["partition"] = "other" end
  if not early or options["type"] == "srun" then options["account"] = "physics" end
  return slurm.SUCCESS
end
function slurm_cli_pre_submit(options, offset)
  slurm.cli_store(1, options["job-name"] or "nameless")
  if slurm.time_str2mins(options["time"]) < 0 then options["time"] = "30" end
  if options["partition"] == "old" then return slurm.ERROR end
  if options["job-name"] == "bug" then error("a bug") end
  if options["job-name"] == "json" then slurm.log_info(slurm.json_cli_options(options)) end
  options["threads-per-core"] = 1
  if options["threads-per-core"] ~= "1" then return slurm.ERROR end
  if options["job-name"] == "odd" then options["no-such"] = "x" return "odd" end
  return slurm.SUCCESS
end
function slurm_cli_post_submit(offset, job_id, step_id)
  slurm.log_info("%d %s %s", job_id, tostring(step_id == slurm.NO_VAL), slurm.cli_retrieve(1))
end
"""
HEAD = """\
nodes: [{name: n1, cpus: 4}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
slurm_conf: {CliFilterPlugins: lua}
cli_filter_lua: filter.lua
timeline:
"""
TIMELINE = """\
  - at: 1s
    as: alice
    run: sbatch --wrap "srun sleep 1"
    stderr:
      - "sbatch: lua: defaults of sbatch true\\nsbatch: lua: defaults of sbatch false"
      - "sbatch: lua: defaults of sbatch false\\nsbatch: lua: 1 true nameless"
  - {at: 2s, run: scontrol show job 1, stdout: [Account=physics, "TimeLimit=00:30:00"]}
  - {at: 3s, as: alice, run: sbatch -p old --wrap true, exit: 1, stderr: "terminated with error"}
  - {at: 4s, as: alice, run: sbatch -J bug --wrap true, stderr: "filter.lua:11: a bug", exit: 0}
  - {at: 5s, as: alice, run: sbatch -Q -A own --wrap "sleep 1", exit: 0}
  - {at: 6s, run: scontrol show job 3, stdout: Account=own}
  - {at: 7s, as: alice, run: sbatch -J odd --wrap true, stderr: "no option 'no-such'", exit: 0}
  - {at: 20s, as: alice, run: srun -J json -N 1 true, stderr: '"physics", "job-name": "json"'}
  - {at: 30s, as: alice, run: salloc true, stderr: "salloc: lua: 6 true nameless"}
  - {at: 40s, as: alice, run: srun true, stderr: "srun: lua: 7 false nameless"}
"""


def run(tmp_path: Path, text: str, script: str) -> tuple[RunResult, World]:
    """Run a scenario beside which a filter lies."""
    (tmp_path / "filter.lua").write_text(script)
    world = World(read_scenario(text, file=str(tmp_path / "s.yaml")))
    world.trace.add_sink(world.events.append)
    return world.run(), world


def test_a_script_sets_options_ends_commands_and_keeps_texts(tmp_path: Path) -> None:
    """In each command, in its passes; what it sets is traced, an error of its own goes on."""
    text = HEAD + TIMELINE.replace("filter.lua:11", "cli_filter.lua:11")
    result, world = run(tmp_path, text, LUA)
    assert [(each.text, each.detail) for each in result.expectations if not each.held] == []
    calls = [e for e in world.events if e.name == "pre_submit" and e.phase != "enter"]
    assert isinstance(calls[0].args, dict)
    assert calls[0].args["changed"] == {
        "time": [None, "30"],
        "threads-per-core": [None, "1"],
    }
    assert calls[0].uid == 1001
    # The step in the job is asked about as well, with no defaults.
    inside = [
        e.name
        for e in world.events
        if e.kind == "plugin" and e.role == "srun" and e.pid == calls[1].pid
    ]
    assert inside[:2] == ["init", "pre_submit"]
    assert "setup_defaults" not in inside


UNASKED = "2982616-04:14:00"
"""What NO_VAL minutes are as a limit of time."""

READ = """\
local function read(options)
  local out = {}
  for _, name in ipairs({"ntasks", "nodes", "ntasks-per-node", "cpus-per-task", "hold", "exclusive",
                         "mem", "mem-per-cpu", "time", "gres", "signal", "array", "pty", "export",
                         "wait", "account", "begin", "no-such", "chdir", "time-min", "uid", "gid",
                         "segment"}) do
    out[#out + 1] = name .. "=" .. tostring(options[name])
  end
  slurm.log_info("%s", table.concat(out, " "))
end
function slurm_cli_setup_defaults() return 0 end
function slurm_cli_pre_submit(options) read(options) return 0 end
function slurm_cli_post_submit() end
"""


def test_options_read_as_slurm_tells_them(tmp_path: Path) -> None:
    """Defaults have texts, flags are unset, sizes and times are in Slurm's form."""
    bare = (
        "ntasks=1 nodes=1-0 ntasks-per-node=-2 cpus-per-task=0 hold=unset exclusive=unset mem=nil "
        f"mem-per-cpu=nil time={UNASKED} gres=nil signal=0@0 "
    )
    full = (
        "ntasks=4 nodes=2 ntasks-per-node=2 cpus-per-task=1 hold=set exclusive=exclusive mem=0? "
        "mem-per-cpu=nil time=1-00:30:00 gres=gres:gpu:1,gres:x "
    )
    others = "-n4 -N2-2 --ntasks-per-node=2 -c1 -H --exclusive --mem=0 -t 1-0:30 --gres=gpu:1,x"
    text = HEAD.replace("cpus: 4", 'cpus: 4, gres: "gpu:2,x:1"').replace("n1", '"n[1-2]"') + (
        "  - {at: 1s, as: alice, run: sbatch --wrap true}\n"
        f'  - {{at: 2s, as: alice, run: "sbatch {others} --wrap true"}}\n'
        "  - {at: 3s, as: alice, run: srun true}\n"
        "  - {at: 4s, as: alice, run: salloc --mem-per-cpu=2048M true}\n"
    )
    result, _ = run(tmp_path, text, READ)
    wanted = [
        f"{bare}array=nil pty=invalid-context export=nil wait=unset account=nil begin=Unknown "
        f"no-such=nil chdir=/home/alice time-min={UNASKED} uid=1001 gid=1001 segment=nil\n",
        f"{full}signal=0@0 array=nil",
        f"{bare}array=invalid-context pty=unset export=nil wait=invalid-context",
        f"mem-per-cpu=2G time={UNASKED} gres=nil signal=0@0 array=invalid-context "
        "pty=invalid-context "
        "export=invalid-context",
    ]
    for command, text in zip(result.commands, wanted, strict=True):
        assert text in command.stderr


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        *(("1023K", "1"), ("1024K", "1"), ("1025k", "2"), ("1500K", "2"), ("2048k", "2")),
        *(("1048575K", "1G"), ("1048576K", "1G"), ("1048577K", "1025"), ("1023", "1023")),
        *(("1024", "1G"), ("1025", "1025"), ("1G", "1G"), ("1024G", "1T"), ("0", "0?")),
    ],
)
def test_sizes_are_told_in_full_units_of_at_least_a_megabyte(typed: str, told: str) -> None:
    """Kilobytes are rounded up."""
    assert memory(typed) == told


@pytest.mark.parametrize(
    ("slurm", "wanted"),
    [
        ("22.05", f"time={UNASKED} pty=unset/set uid=1001 segment=nil mins=-1"),
        ("23.02", f"time={UNASKED} pty=unset/set uid=99 segment=nil mins=-1"),
        ("23.11", f"time={UNASKED} pty=unset/set uid=99 segment=nil mins=-1"),
        ("24.05", "time=nil pty=nil/ uid=99 segment=unset mins=-2"),
    ],
)
def test_what_nobody_asked_for_reads_by_version(tmp_path: Path, slurm: str, wanted: str) -> None:
    """A limit of time, a terminal, the user and a segment tell differently of nothing."""
    script = """
    function slurm_cli_setup_defaults() return 0 end
    function slurm_cli_pre_submit(options)
      if options["job-name"] == "json" then
        slurm.log_info("%s", slurm.json_cli_options(options))
      else
        slurm.log_info("time=%s pty=%s uid=%s segment=%s mins=%d", tostring(options["time"]),
                       tostring(options["pty"]), options["uid"], tostring(options["segment"]),
                       slurm.time_str2mins(options["time"]))
      end
      return 0
    end
    function slurm_cli_post_submit() end
    """
    text = HEAD.replace("timeline:", f'lua: {{slurm: "{slurm}"}}\ntimeline:') + (
        "  - {at: 1s, as: alice, run: srun true}\n"
        "  - {at: 5s, as: alice, run: srun --pty true}\n"
        "  - {at: 9s, as: alice, run: srun -J json -t 90 --mem=4096 true}\n"
    )
    result, _ = run(tmp_path, text, script)
    bare, given, json = (command.stderr for command in result.commands)
    without, _, pty = wanted.partition("/")
    assert without in bare
    assert without.rpartition(" pty=")[0] + f" pty={pty}" in given
    # The options in JSON have the texts that reading them one by one gives.
    assert '"time": "01:30:00"' in json
    assert '"mem": "4G"' in json


def test_a_script_that_does_not_load_ends_the_command(tmp_path: Path) -> None:
    """Its user is told why."""
    text = (
        HEAD
        + '  - {at: 1s, as: alice, run: sbatch --wrap true, exit: 1, stderr: "missing required"}\n'
    )
    result, _ = run(tmp_path, text, "function slurm_cli_pre_submit() return 0 end\n")
    assert [each.detail for each in result.expectations if not each.held] == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("slurm.cli_store(0, nil)", "'cli_store' (string expected, got nil)"),
        ("slurm.cli_store(0, true)", "'cli_store' (string expected, got boolean)"),
        ("slurm.cli_store(0, {})", "'cli_store' (string expected, got table)"),
        ("options['hold'] = true", "(string expected, got boolean)"),
        ("options['time'] = {}", "(string expected, got table)"),
        ("options['time'] = nil", "(string expected, got nil)"),
    ],
)
def test_what_is_no_text_is_a_lua_error_and_not_a_text(
    tmp_path: Path, body: str, told: str
) -> None:
    """Numbers are texts; nil, a truth and a table end the call, and the command goes on."""
    script = f"""
    function slurm_cli_setup_defaults() return 0 end
    function slurm_cli_pre_submit(options)
      slurm.cli_store(0, 1.5)
      options["time"] = 7
      slurm.log_info("first %s %s", slurm.cli_retrieve(0), options["time"])
      {body}
      slurm.log_info("not reached")
      return slurm.ERROR
    end
    function slurm_cli_post_submit() return "no number" .. tostring(slurm.cli_retrieve(1)) end
    """
    result, _ = run(tmp_path, HEAD + "  - {at: 1s, as: alice, run: sbatch --wrap true}\n", script)
    assert result.commands[0].stdout == "Submitted batch job 1\n"
    first, second, third = result.commands[0].stderr.splitlines()
    assert first == "sbatch: lua: first 1.5 00:07:00"
    at = "/etc/slurm/cli_filter.lua"
    assert second.startswith(f"sbatch: error: cli_filter_p_pre_submit/lua: {at}: {at}:7: ")
    assert second.endswith(told)
    assert third == f"sbatch: cli_filter_p_post_submit/lua: {at}: non-numeric return code"


def test_argv_is_what_is_run_and_not_the_command_line(tmp_path: Path) -> None:
    """The script or program and its arguments; none before they are read, or with --wrap."""
    script = """
    function slurm_cli_setup_defaults(options)
      if options.argv[1] then error("too early") end
      return 0
    end
    function slurm_cli_pre_submit(options)
      slurm.log_info("<%s>", table.concat(options.argv, " "))
      return 1
    end
    function slurm_cli_post_submit() return 0 end
    """
    lines = ("sbatch -n 1 /job.sh -n 2", "sbatch --wrap true", "srun -n1 hostname -s", "salloc id")
    text = HEAD.replace("timeline:", 'files: {/job.sh: "#!/bin/sh"}\ntimeline:') + "".join(
        f"  - {{at: {at}s, as: alice, run: {line}}}\n" for at, line in enumerate(lines)
    )
    result, _ = run(tmp_path, text, script)
    told = [command.stderr.splitlines()[0].partition("lua: ")[2] for command in result.commands]
    assert told == ["</job.sh -n 2>", "<>", "<hostname -s>", "<id>"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", ["sbatch: lua: noted", "sbatch: error: lua: wrong"]),
        ("--quiet ", ["sbatch: error: lua: wrong"]),
        ("-v ", ["sbatch: lua: noted", "sbatch: error: lua: wrong", "sbatch: lua: more"]),
    ],
)
def test_what_a_script_logs_is_printed_by_its_level(
    words: str, told: list[str], tmp_path: Path
) -> None:
    """Errors always, what is noted unless --quiet is said, the rest with --verbose."""
    script = """\
    function slurm_cli_setup_defaults() return 0 end
    function slurm_cli_post_submit() return 0 end
    function slurm_cli_pre_submit()
      slurm.log_info("noted")
      slurm.log_error("wrong")
      slurm.log_verbose("more")
      return 0
    end
    """
    text = HEAD + f"  - {{at: 1s, as: alice, run: sbatch {words}--wrap true}}\n"
    result, _ = run(tmp_path, text, script)
    lines = result.commands[0].stderr.splitlines()
    assert [line for line in lines if "lua: " in line] == told


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("0", "UNLIMITED"),
        ("0:00", "UNLIMITED"),
        ("UNLIMITED", "UNLIMITED"),
        ("infinite", "UNLIMITED"),
        ("1", "00:01:00"),
        ("0:30", "00:01:00"),
        ("59", "00:59:00"),
        ("60", "01:00:00"),
        ("1439", "23:59:00"),
        ("1440", "1-00:00:00"),
        ("1-2:3", "1-02:03:00"),
        ("odd", "odd"),
    ],
)
def test_time_limits_are_shown_as_slurm_writes_them(typed: str, shown: str) -> None:
    """None at all is a limit of no minutes too."""
    assert duration(typed) == shown
