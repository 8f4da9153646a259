"""`simctl plugins check FILE.lua`: planted mistakes are found where they are, good scripts pass."""

import json
from pathlib import Path

import pytest

from simctl.cli import main
from simctl.scenario.load import read_scenario
from simctl.status import InputError
from simctl.testing.plugin_check.lua import named
from simctl.testing.plugin_check.lua.check import check_script
from simctl.testing.plugin_check.lua.report import ScriptReport
from simctl.testing.plugin_check.lua.source import Source
from simctl.testing.plugin_check.lua.static import findings

pytest.importorskip("lupa")

MODIFY = """\
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end
"""
# Each is reached by a job of its own, as the script asks for its name; `@` is the line to be named.
MISTAKES = """\
local limits = {alpha = 60, beta = 600}
function slurm_job_submit(job_desc, part_list, submit_uid)
  local name = job_desc.name
  if name == "a1" then slurm.log_info("account %s", job_desc.wckey) end --@ nil-in-log
  if name == "a2" then slurm.log_info("%s wants %s", job_desc.wckey, "x") end --@ nil-in-log
  if name == "a3" then job_desc.comment = "of " .. job_desc.reservation end --@ lua-error
  if name == "a4" then job_desc.features = nil end --@ lua-error
  if name == "a5" then return slurm.ESLURM_NO_SUCH_THING end --@ unknown-name
  if name == "a6" then slurm.log_warning("x") end --@ unknown-name
  if name == "a7" and job_desc.acct == "x" then return slurm.ERROR end --@ unknown-field
  if name == "a8" then return false end
  if name == "a9" then slurm.log_info("%d", unpack({1})) end --@ lua-version
  if name == "b1" then slurm.log_info("%d", table.unpack({1})) end --@ lua-version
  if name == "b2" and job_desc.time_min == nil then return slurm.ERROR end --@ never-nil
  if name == "b3" and job_desc.num_tasks and job_desc.num_tasks > 9 then return 1 end --@ never-nil
  if job_desc.cpus_per_task == slurm.NO_VAL then return slurm.ERROR end --@ wrong-no-val
  if job_desc.account == slurm.NO_VAL then return slurm.ERROR end --@ wrong-no-val
  if job_desc.begin_time == slurm.NO_VAL then return slurm.ERROR end --@ wrong-no-val
  if submit_uid == "0" or job_desc.time_limit == "60" then return 0 end --@ never-equal
  if name == "b4" then job_desc.user_id = 0 end --@ read-only-field
  if name == "b5" then os.execute("scontrol update jobid=1 comment=x") end --@ self-waiting
  if name == "b6" then for k in pairs(limits) do job_desc.comment = k end end --@ order-of-pairs
  for _, part in pairs(part_list) do
    if part.max_wall ~= nil then return slurm.ERROR end --@ unknown-field
  end
  if name == "b7" then
    if job_desc.tres_per_node ~= nil and job_desc.time_limit > 700 then
      job_desc.comment = undefined_name .. "x" --@ undefined-name
    end
  end
  return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  if job_rec.owner == 7 then return slurm.ERROR end --@ unknown-field
  if job_desc.partition:match("gpu") then return slurm.ERROR end --@ lua-error
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""
GOOD = """\
-- What sites do, and do well.
local unpack = table.unpack or unpack
local most_minutes = {debug = 60, batch = 2880}
local admins = {[0] = true, [1002] = true}

local queues = {{limit = 5}}
local function part_of(part) return part.limit > 9 and part.limit or nil end

local function defaults(job_desc, part_list)
  if job_desc.time_limit == slurm.NO_VAL then job_desc.time_limit = 60 end
  if job_desc.qos == nil then job_desc.qos = "normal" end
  local names = {}
  for name, part in pairs(part_list) do
    if part.flag_default == 1 then names[#names + 1] = name end
  end
  for _, queue in ipairs(queues) do names[#names + 1] = part_of(queue) end
  table.sort(names)
  if job_desc.partition == nil and #names > 0 then
    job_desc.partition = table.concat(names, ",")
  end
end

local function gpus(job_desc)
  local gres = job_desc.tres_per_node or job_desc.gres
  local count = 0
  if gres ~= nil then count = tonumber(string.match(gres, "gpu[^,]*:(%d+)")) or 1 end
  if count > 0 and job_desc.partition ~= "gpu" then
    slurm.log_user("%d gpus: moved to partition gpu", count)
    job_desc.partition = "gpu"
  elseif count == 0 and job_desc.partition == "gpu" then
    slurm.log_user("partition gpu is for jobs with gpus")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

local function memory(job_desc)
  local mem = job_desc.pn_min_memory
  if mem == nil or mem == slurm.NO_VAL64 then
    slurm.log_info("no memory asked for by %s", tostring(job_desc.user_name))
  elseif mem < slurm.MEM_PER_CPU and mem > 128000 then
    job_desc.partition = "bigmem"
  end
end

local function policy(job_desc, part_list, submit_uid)
  if admins[submit_uid] then return slurm.SUCCESS end
  if job_desc.account == nil or job_desc.account == "" then
    slurm.log_user("You have to give an account: sbatch -A NAME")
    return slurm.ESLURM_INVALID_ACCOUNT
  end
  defaults(job_desc, part_list)
  memory(job_desc)
  if job_desc.script == nil and job_desc.time_limit > 48 then
    job_desc.time_limit = 48
  end
  local most = most_minutes[job_desc.partition or "debug"]
  if most and job_desc.time_limit > most then
    slurm.log_user("at most %d minutes in this partition", unpack({most}))
    return slurm.ESLURM_INVALID_TIME_LIMIT
  end
  if job_desc.features ~= nil and string.find(job_desc.features, ",") then
    return slurm.ERROR
  end
  if job_desc.shared == 0 and job_desc.min_nodes ~= slurm.NO_VAL and job_desc.min_nodes > 4 then
    return slurm.ESLURM_INVALID_NODE_COUNT
  end
  return gpus(job_desc)
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  local ok, rc = pcall(policy, job_desc, part_list, submit_uid)
  if ok then return rc end
  slurm.log_error("policy: %s", tostring(rc))
  return slurm.ERROR
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  if modify_uid ~= 0 and job_desc.partition ~= nil and job_desc.partition ~= job_rec.partition then
    slurm.log_user("the partition of job %d stays", job_rec.job_id)
    return slurm.ERROR
  end
  return slurm.SUCCESS
end
slurm.log_info("loaded")
return slurm.SUCCESS
"""


def check(tmp_path: Path, text: str, *, luas: tuple[str, ...] = ("5.4",)) -> ScriptReport:
    """Check a script under one Slurm."""
    path = tmp_path / "job_submit.lua"
    path.write_text(text)
    return check_script(str(path), luas=luas, slurms=("22.05",))


def test_each_planted_mistake_is_found_on_its_line(tmp_path: Path) -> None:
    """A line has the mistake that it names; nothing else is blamed."""
    report = check(tmp_path, MISTAKES, luas=("5.1", "5.4"))
    planted = {
        (line.split("--@ ")[1], number)
        for number, line in enumerate(MISTAKES.split("\n"), 1)
        if "--@ " in line
    }
    found = {(each.rule, int(each.where.partition(":")[2])) for each in report.mistakes}
    assert found - planted == {("no-number", 2)}
    assert planted - found == set()
    let_in = [each.name for each in report.treated if "let in by a Lua error" in each.ruling]
    assert any("-J a1" in name for name in let_in)


def test_a_script_that_is_right_passes(tmp_path: Path) -> None:
    """It is driven through all its branches but those for its own failure."""
    report = check(tmp_path, GOOD, luas=("5.1", "5.4"))
    assert [(each.rule, each.where, each.what) for each in report.mistakes] == []
    assert report.driven == ("slurm_job_submit", "slurm_job_modify")
    rulings = {each.name: each.ruling for each in report.treated}
    assert rulings["gpus"].startswith("partition debug becomes gpu")
    assert rulings["no account"].startswith("refused (ESLURM_INVALID_ACCOUNT, 2045); told: You")
    assert [str(each) for each in report.unreached] == []


SUBMIT = "function slurm_job_submit(job_desc, part_list, submit_uid)\n  {}\n  return 0\nend\n"


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        (SUBMIT.format(""), "missing-function", 1),
        ("local " + SUBMIT.format("") + MODIFY, "missing-function", 1),
        (SUBMIT.format("while true do end") + MODIFY, "endless", 2),
        (SUBMIT.format("if job_desc.account == nil then os.exit(1) end") + MODIFY, "os-exit", 2),
        (SUBMIT.format('os.execute("sleep 5")') + MODIFY, "slow", 0),
    ],
    ids=["missing", "local", "endless", "exit", "slow"],
)
def test_what_stops_slurmctld_is_found(tmp_path: Path, text: str, rule: str, line: int) -> None:
    """What keeps it from starting, or from answering, is told by itself."""
    report = check(tmp_path, text)
    where = f"job_submit.lua:{line}" if line else "job_submit.lua"
    assert [(each.rule, each.where) for each in report.mistakes] == [(rule, where)]


def test_the_command_says_by_its_status_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 driven and nothing found, 1 a mistake, 2 it cannot be loaded; --json has the objects."""
    monkeypatch.chdir(tmp_path)
    one = ["--lua", "5.4", "--slurm", "22.05"]
    # Comments of old scripts are in Latin-1.
    Path("good.lua").write_bytes(b"-- caf\xe9\n" + (SUBMIT.format("") + MODIFY).encode())
    Path("bad.lua").write_text(SUBMIT.format("if submit_uid > 0 then return nil end") + MODIFY)
    Path("broken.lua").write_text("function slurm_job_submit()\n  retrun 0\nend\n")
    Path("none.lua").write_text("x = 1\n")
    assert main(["plugins", "check", "good.lua", *one]) == 0
    assert "job_submit/lua: fine" in capsys.readouterr().out
    assert main(["plugins", "check", "bad.lua", *one, "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert told["driven"] == ["slurm_job_submit", "slurm_job_modify"]
    assert [each["rule"] for each in told["mistakes"]] == ["no-number"]
    assert main(["plugins", "check", "broken.lua", *one]) == 2
    assert "broken.lua:2: it does not load: " in capsys.readouterr().err
    assert main(["plugins", "check", "none.lua", *one]) == 2
    assert "defines none of the functions" in capsys.readouterr().err


def test_a_version_under_which_a_script_does_not_load_is_named(tmp_path: Path) -> None:
    """Its main chunk uses what an older Slurm has not."""
    path = tmp_path / "job_submit.lua"
    path.write_text(
        "local shared = slurm.GRES_ALLOW_TASK_SHARING + 0\n" + SUBMIT.format("") + MODIFY
    )
    report = check_script(str(path), luas=("5.4",), slurms=("24.05", "22.05"))
    (mistake,) = [each for each in report.mistakes if each.rule == "does-not-load"]
    assert mistake.where == "job_submit.lua:1"
    assert "does not load under Lua 5.4 and Slurm 22.05" in mistake.text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("local asked = (\n    tonumber(options['ntasks']) or\n  )", r":10: it does not load: "),
        ("local n = math.floor(options.ntasks])", r":8: it does not load: "),
    ],
)
def test_a_filter_that_does_not_parse_is_refused_with_its_line(
    tmp_path: Path, body: str, message: str
) -> None:
    """Nothing else is said of it."""
    path = tmp_path / "cli_filter.lua"
    path.write_text("-- A draft.\n" + FILTER.replace("  {}\n", f"  {body}\n"))
    with pytest.raises(InputError, match=message):
        check_script(str(path), luas=("5.4",), slurms=("22.05",))


def test_a_filter_that_computes_with_numbers_of_its_site_passes(tmp_path: Path) -> None:
    """Partitions have the memory that it looks for; names of options are no values of theirs."""
    path = tmp_path / "cli_filter.lua"
    path.write_text(
        FILTER.replace(
            "  {}\n",
            "  local asked = {tonumber(options['ntasks']) > 1,\n"
            "                 tonumber(options['cpus-per-task']) > 1}\n"
            "  local pipe = io.popen('scontrol show partition --oneliner')\n"
            "  local memory = math.floor(tonumber(pipe:read('*a'):match('DefMemPerCPU=(%d+)')))\n"
            "  if not asked[1] then options['mem-per-cpu'] = memory end\n",
        )
    )
    report = check_script(str(path), luas=("5.4",), slurms=("22.05",))
    assert [(each.rule, each.where, each.what) for each in report.mistakes] == []
    assert not any("-n ntasks" in each.name for each in report.treated)


def test_a_filter_that_lacks_functions_is_driven_without_them(tmp_path: Path) -> None:
    """Each is named; and what a filter compares options with need be no number."""
    path = tmp_path / "cli_filter.lua"
    path.write_text(
        "function slurm_cli_pre_submit(options, offset)\n"
        "  if options['ntasks'] == 'ntasks' then return slurm.ERROR end\n"
        "  if options['nodes'] == '4' then return slurm.ERROR end\n"
        "  return slurm.SUCCESS\nend\n"
    )
    report = check_script(str(path), luas=("5.4",), slurms=("22.05",))
    assert sorted(each.what.partition(" ")[0] for each in report.mistakes) == [
        "slurm_cli_post_submit",
        "slurm_cli_setup_defaults",
    ]
    assert report.driven


@pytest.mark.parametrize("kind", ["job_submit", "cli_filter"])
def test_the_name_of_a_file_says_which_of_its_functions_are_called(
    tmp_path: Path, kind: str
) -> None:
    """Sites share one text between job_submit.lua and cli_filter.lua; else the first counts."""
    text = FILTER.format("") + (
        "function slurm_job_submit(desc, parts, uid) return slurm.SUCCESS end\n"
        "function slurm_job_modify(desc, job, parts, uid) return slurm.SUCCESS end\n"
    )
    for name, wanted in ((f"{kind}.lua", kind), ("shared.lua", "cli_filter")):
        path = tmp_path / name
        path.write_text(text)
        report = check_script(str(path), luas=("5.4",), slurms=("22.05",))
        assert report.plugin_type == f"{wanted}/lua"
        assert report.driven


BUFFERS = """\
function slurm_bb_pools() return slurm.SUCCESS, {pools} end
function slurm_bb_job_process(script) return slurm.SUCCESS end
function slurm_bb_setup(id, uid, gid, pool, size, script) {setup} return slurm.SUCCESS end
function slurm_bb_data_in(id, script) {data_in} return slurm.SUCCESS end
function slurm_bb_real_size(id) return slurm.SUCCESS end
function slurm_bb_paths(id, script, file) {paths} return slurm.SUCCESS end
function slurm_bb_pre_run(id, script) return slurm.SUCCESS end
function slurm_bb_post_run(id, script) {post_run} return slurm.SUCCESS end
function slurm_bb_data_out(id, script) {data_out} return slurm.SUCCESS end
function slurm_bb_job_teardown(id, script, hurry) {job_teardown} return slurm.SUCCESS end
function slurm_bb_get_status(...) return slurm.SUCCESS end
"""
POOLS = """'{"pools": [{"id": "fast", "quantity": 100, "granularity": 10}]}'"""


def buffers(tmp_path: Path, *, luas: str = "5.4", **bodies: str) -> ScriptReport:
    """Check a burst_buffer.lua with some lines in its functions."""
    empty = dict.fromkeys(
        ("setup", "data_in", "paths", "post_run", "data_out", "job_teardown"), "local _ = 0;"
    )
    text = BUFFERS.format(**{"pools": POOLS, **empty, **bodies})
    without = bodies.pop("without", "none")
    lines = [line for line in text.splitlines() if f"slurm_bb_{without}(" not in line]
    path = tmp_path / "burst_buffer.lua"
    path.write_text("\n".join(lines) + "\n")
    return check_script(str(path), luas=luas.split(), slurms=("22.05",))


def test_mistakes_of_a_burst_buffer_script_are_found(tmp_path: Path) -> None:
    """Those that leave the job alone are found together, each on its line."""
    report = buffers(
        tmp_path,
        luas="5.1 5.4",
        setup="kept = id; if size == 0 then return slurm.SUCCESS end",
        data_in="if kept then unpack({}) end if id ~= '0' then return 256 end",
        paths="os.execute('sleep 5')",
        post_run="if id == '0' then return slurm.ESLURM_NO_BB end",
        job_teardown="if hurry then return slurm.SUCCESS end",
        data_out="if id ~= '0' then return slurm.ERROR, {} end",
    )
    found = {(each.rule, int(each.where.partition(":")[2] or 0)) for each in report.mistakes}
    assert found == {
        *(("never-equal", 3), ("never-equal", 10), ("lost-global", 4), ("lua-version", 4)),
        *(("lost-status", 4), ("slow", 6), ("unknown-name", 8), ("second-value", 9)),
    }


@pytest.mark.parametrize(
    ("body", "rule", "line"),
    [
        (("without", "real_size"), "missing-function", 1),
        (("setup", "slurm.log_info('of %s', os.getenv('NONE'))"), "nil-in-log", 3),
        (("data_in", "local f = io.open('/none') f:read('*a')"), "stage-error", 4),
        (("pools", "'fast 100'"), "no-pools", 1),
        (("data_in", "if id ~= '0' then return 'done' end"), "no-status", 4),
        (("paths", "os.execute('scontrol update jobid=' .. id)"), "self-waiting", 6),
    ],
    ids=["missing", "nil", "error", "pools", "status", "waits"],
)
def test_a_mistake_that_ends_a_call_is_found(
    tmp_path: Path, body: tuple[str, str], rule: str, line: int
) -> None:
    """It is told with its line, and nothing else is."""
    function, text = body
    report = buffers(tmp_path, **{function: text})
    told = [(each.rule, each.where) for each in report.mistakes]
    assert told == [(rule, f"burst_buffer.lua:{line}")]


def test_a_burst_buffer_script_that_is_right_passes(tmp_path: Path) -> None:
    """Its directive is found out, and programs of the site are played by stand-ins."""
    report = buffers(
        tmp_path,
        luas="5.1 5.4",
        setup="if tonumber(size) > 0 then os.execute('mkdir -p /fast/' .. id) end",
        data_in="for s in io.lines(script) do if s:find('^#DW') then os.execute('/in') end end",
        paths="local f = io.open(file, 'w') f:write('BB=/fast/', id, '\\n') f:close()",
        job_teardown="if hurry == 'true' then return slurm.SUCCESS end os.execute('rm -r /fast')",
    )
    assert [(each.rule, each.where, each.what) for each in report.mistakes] == []
    assert report.notes == ("/in: played by stand-ins that take a second and succeed",)
    assert {"slurm_bb_setup", "slurm_bb_data_out", "slurm_bb_job_teardown"} <= set(report.driven)
    assert not report.unreached


def test_a_directive_is_put_together_as_the_script_does(tmp_path: Path) -> None:
    """Its word may stand in a variable, and words that must follow it are typed."""
    wants = "local n = 0 for line in io.lines(script) do if line:find({}) then n = n + 1 end end "
    ends = "if n == 0 then return slurm.ERROR, 'no directive' end"
    for pattern in ("'^#' .. 'DW'", "'^#' .. WORD", "'#DW v=1 ', 1, true"):
        report = buffers(tmp_path, setup="local WORD = 'DW' " + wants.format(pattern) + ends)
        rulings = {each.name: each.ruling for each in report.treated}
        assert "setup, data_in" in rulings["a job with a buffer"], pattern
        assert "times" not in rulings["a job with a buffer"]
    report = buffers(tmp_path, job_teardown="do return slurm.ERROR, 'no' end")
    rulings = {each.name: each.ruling for each in report.treated}
    assert "3 times job_teardown (65280)" in rulings["a job with a buffer"]


def test_plugins_of_classes_that_are_not_driven_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A class that rules over submissions in Python is shown by a scenario."""
    path = Path(__file__).parents[1] / "scenarios" / "site_rules.py"
    assert main(["plugins", "check", str(path)]) == 2
    assert "job_submit plugins in Python are not driven" in capsys.readouterr().err


def test_scenarios_of_its_authors_are_judged_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake that shows there alone is found; an expectation that breaks is told apart."""
    monkeypatch.chdir(tmp_path)
    hidden = "if job_desc.user_name == 'zoe' then error('licence ' .. job_desc.user_name) end"
    Path("job_submit.lua").write_text(SUBMIT.format(hidden) + MODIFY)
    Path("own.yaml").write_text(
        "slurm_conf: {JobSubmitPlugins: lua}\njob_submit_lua: job_submit.lua\n"
        "nodes: [{name: n1, cpus: 4}]\nusers: {zoe: 1005}\n"
        "partitions: [{name: debug, nodes: n1, default: true}]\n"
        "timeline: [{at: 1s, as: zoe, run: sbatch --wrap true, exit: 1}]\n"
    )
    one = ["plugins", "check", "job_submit.lua", "--lua", "5.4", "--slurm", "22.05"]
    assert main(one) == 0
    capsys.readouterr()
    assert main([*one, "--scenario", "own.yaml"]) == 1
    told = capsys.readouterr().out
    assert "licence zoe; seen with own.yaml, call 1" in told
    assert "expectations of your own that did not hold:" in told
    Path("own.yaml").write_text("nodes: [{name: n1}]\npartitions: [{name: d, nodes: n1}]\n")
    assert main([*one, "--scenario", "own.yaml"]) == 2
    assert "its JobSubmitPlugins does not name job_submit/lua" in capsys.readouterr().err


FILTER = """\
function slurm_cli_setup_defaults(options, early)
  options["threads-per-core"] = 1
  return slurm.SUCCESS
end
function slurm_cli_pre_submit(options, offset)
  if options["partition"] == "gpu" and options["gres"] == nil then return slurm.ERROR end
  {}
  return slurm.SUCCESS
end
function slurm_cli_post_submit(offset, job_id, step_id) return slurm.SUCCESS end
"""


def test_a_filter_of_options_is_driven_as_well(tmp_path: Path) -> None:
    """What is right passes; errors, names that there are not and returns are found."""
    path = tmp_path / "cli_filter.lua"
    path.write_text(FILTER.format('if options["comment"] == nil then options["time"] = "60" end'))
    report = check_script(str(path), slurms=("22.05",))
    assert [(each.rule, each.where, each.what) for each in report.mistakes] == []
    assert len(report.driven) == 3
    rulings = {each.name: each.ruling for each in report.treated}
    assert "time nothing becomes 60" in rulings["no time limit"]
    assert rulings["a usual batch job, -p gpu"].startswith("ended")
    path.write_text(
        FILTER.format(
            'slurm.log_info("to " .. options["partition"])\n'
            '  if options["cpus_per_task"] == "2" then return slurm.ERROR end\n'
            '  if options["qos"] == "high" then return slurm.ESLURM_NONE end\n'
            '  if options["job-name"] == "x7" then return "no" end'
        )
    )
    report = check_script(str(path), luas=("5.4",), slurms=("22.05",))
    found = {(each.rule, int(each.where.partition(":")[2])) for each in report.mistakes}
    assert found == {
        ("filter-error", 7),
        ("unknown-field", 8),
        ("unknown-name", 9),
        ("no-number", 5),
    }


WRITTEN = """\
function slurm_job_submit(job_desc, part_list, submit_uid)
  for name, value in pairs(job_desc) do slurm.log_info("%s", name) end --@ empty-walk
  if next(job_desc) == nil then return 1 end --@ empty-walk
  for _, each in ipairs(part_list) do slurm.log_info("%s", each.name) end --@ empty-walk
  for _, each in ipairs(slurm.jobs) do slurm.log_info("%s", each.name) end --@ empty-walk
  for name in pairs(job_desc.environment) do slurm.log_info("%s", name) end --@ empty-walk
  for _, part in pairs(part_list) do
    for name in pairs(part) do slurm.log_info("%s", name) end --@ empty-walk
  end
  if not job_desc.partition == "gpu" then return 1 end --@ never-equal
  if not submit_uid ~= 0 then return 1 end --@ never-equal
  local nodes, tasks = 1, 1
  nodes = job_desc.min_nodes
  if nodes == nil then return 1 end --@ never-nil
  local least = job_desc.time_min
  if not least or least < 5 then return 1 end --@ never-nil
  local threads = job_desc.cpus_per_task
  if threads == 4294967294 then return 1 end --@ wrong-no-val
  if job_desc.gres == "gpu:1" then return 1 end --@ never-equal
  local gpus = job_desc.tres_per_job
  if gpus == "gpu:a100:2" then return 1 end --@ never-equal
  local status = os.execute("true")
  if status ~= 0 then return 1 end --@ lua-version
  if job_desc.environment == nil then return 1 end --@ never-nil
  local pipe = io.popen("true")
  local ends = {pipe:close()}
  if ends[1] and ends[3] ~= 0 then return 1 end --@ lua-version
  local done, how, code = pipe:close() --@ lua-version
  if job_desc.min_mem_per_cpu == slurm.NO_VAL64 then return 1 end --@ wrong-no-val
  return 0
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  for name in pairs(job_rec) do slurm.log_info("%s", name) end --@ empty-walk
  return 0
end
"""
RIGHT = """\
local queues = setmetatable({}, {})
function slurm_job_submit(job_desc, part_list, submit_uid)
  for name, part in pairs(part_list) do slurm.log_info("%s %s", name, part.nodes) end
  for id, job in pairs(slurm.jobs) do slurm.log_info("%s %s", id, job.name) end
  for _, queue in ipairs(queues) do slurm.log_info("%s", queue) end
  for at = 1, (job_desc.argc or 1) - 1 do slurm.log_info("%s", job_desc.argv[at]) end
  if not (job_desc.partition == "gpu") then job_desc.comment = "x" end
  if not job_desc.comment and submit_uid ~= 0 then return 1 end
  local nodes = job_desc.min_nodes
  if nodes == slurm.NO_VAL then nodes = nil end
  if nodes == nil then return 1 end
  local limit = job_desc.time_limit
  if limit == nil or limit == slurm.NO_VAL then limit = 60 end
  local tasks = job_desc.num_tasks
  if tasks == nil then
    tasks = 1
  elseif tasks > 4000000 then
    tasks = 1
  end
  local gpus = job_desc.gres
  if gpus == "gres:gpu:1" or gpus == "gres/gpu:1" or gpus == "" then return 1 end
  local status = os.execute("true")
  if status == true or status == 0 then return 1 end
  if job_desc.environment["HOME"] == nil then return 1 end
  local more = part_list.debug and part_list.debug.max_nodes
  if more == nil then return 1 end
  if job_desc.min_mem_per_cpu and job_desc.min_mem_per_cpu ~= slurm.NO_VAL64 then return 1 end
  local memory = job_desc.min_mem_per_node
  memory = (memory and memory ~= slurm.NO_VAL64) and memory or 0
  return 0
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return 0 end
"""


def written(text: str) -> set[tuple[str, int]]:
    """Return what is found in a script as it is written, with the lines."""
    source = Source("job_submit.lua", text)
    return {(each.rule, each.line) for each in findings(source, "job_submit", ("22.05",))}


def test_mistakes_that_show_as_a_script_is_written() -> None:
    """Each on its line, and none of them where the script does it right."""
    planted = {
        (line.split("--@ ")[1], number)
        for number, line in enumerate(WRITTEN.split("\n"), 1)
        if "--@ " in line
    }
    assert written(WRITTEN) == planted
    assert written(RIGHT) == set()


@pytest.mark.parametrize("rule", ["submit_uid ~= 0", "true"], ids=["users", "everybody"])
def test_changes_are_tried_where_no_job_is_let_in(tmp_path: Path, rule: str) -> None:
    """On a job that no script is shown, nor any report."""
    modify = "function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)\nend\n"
    report = check(tmp_path, SUBMIT.format(f"if {rule} then return 1 end") + modify)
    assert [(each.rule, each.where) for each in report.mistakes] == [
        ("no-number", "job_submit.lua:5")
    ]
    rulings = {each.name: each.ruling for each in report.treated}
    assert {rulings[name] for name in rulings if " update " in name} == {"as it is"}
    assert len([name for name in rulings if name.endswith("by alice")]) == 9
    assert not any("held for changes" in name for name in rulings)
    assert rulings["a usual batch job"].startswith("refused (1)")


def test_a_pattern_for_what_a_name_stands_for_is_asked_for(tmp_path: Path) -> None:
    """A branch behind string.find of a name that stands for a field is reached."""
    report = check(
        tmp_path,
        "function slurm_job_submit(job_desc, part_list, submit_uid)\n"
        "  local where, gpus = '', ''\n"
        "  where = job_desc.partition\n"
        "  gpus = job_desc.tres_per_job\n"
        "  if where and string.find(where, 'serial') then\n"
        "    if gpus ~= nil then\n      return slurm.ERROR\n    end\n  end\n"
        "  return 0\nend\n" + MODIFY,
    )
    assert report.mistakes == ()
    assert [str(each) for each in report.unreached] == []


def test_what_keeps_a_script_from_loading_is_told_with_what_would_do(tmp_path: Path) -> None:
    """A module that is not there, and a file that its main chunk reads."""
    with pytest.raises(InputError, match=r"job_submit.lua:1: .* lay site/rules.lua, or a stand-in"):
        check(tmp_path, "local site = require('site.rules')\n" + SUBMIT.format("") + MODIFY)
    with pytest.raises(
        InputError, match=r"job_submit.lua:1: .* --scenario that has /opt/limits.lua"
    ):
        check(tmp_path, "local site = dofile('/opt/limits.lua')\n" + SUBMIT.format("") + MODIFY)


def test_files_of_a_scenario_are_there_in_trial_clusters(tmp_path: Path) -> None:
    """A script that reads its site's files is driven with those of its author's scenario."""
    path = tmp_path / "job_submit.lua"
    path.write_text(
        SUBMIT.format(
            "for name in io.lines('/etc/bad') do if job_desc.name == name then return 1 end end"
        )
        + MODIFY
    )
    text = (
        "slurm_conf: {JobSubmitPlugins: lua}\n"
        "job_submit_lua: job_submit.lua\n"
        'files: {/etc/bad: "usual\\n"}\n'
        "nodes: [{name: n1, cpus: 4}]\n"
        "partitions: [{name: debug, nodes: n1, default: true}]\n"
        "timeline:\n  - {at: 0s, run: sbatch --wrap true}\n"
    )
    given = read_scenario(text, file=str(tmp_path / "s.yaml"))
    report = check_script(str(path), luas=("5.4",), slurms=("22.05",), given=(given,))
    assert report.mistakes == ()
    rulings = {each.name: each.ruling for each in report.treated}
    assert rulings["a usual batch job"].startswith("refused (1)")


def test_a_text_of_a_user_that_is_taken_for_a_format_is_found(tmp_path: Path) -> None:
    """As a job has a % in its name; with a format of its own the text is only that."""
    bad = SUBMIT.format('slurm.log_info("named " .. tostring(job_desc.name))')
    good = SUBMIT.format('slurm.log_info("named %s", tostring(job_desc.name))')
    report = check(tmp_path, bad + MODIFY)
    assert [(each.rule, each.where) for each in report.mistakes] == [
        ("text-as-format", "job_submit.lua:2")
    ]
    assert "a name with odd characters" in report.mistakes[0].what
    assert check(tmp_path, good + MODIFY).mistakes == ()


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("nodes", "nodes; did you mean req_nodes?"),
        ("min_mem_per_gpu", "min_mem_per_gpu; did you mean mem_per_tres?"),
        ("acount", "acount; did you mean account?"),
        ("job_id", "job_id: a submission has no number yet"),
        ("zzz", "zzz"),
    ],
)
def test_a_field_that_is_not_there_is_told_with_the_one_that_was_meant(
    field: str, told: str
) -> None:
    """By what commands and other records call it, else by its letters."""
    text = SUBMIT.format(f"if job_desc.{field} ~= nil then return 1 end") + MODIFY
    source = Source("job_submit.lua", text)
    found = [each.what for each in findings(source, "job_submit", ("22.05",))]
    assert found == [f"job_desc has no field {told}"]


def test_each_name_for_a_field_leads_to_one() -> None:
    """And is none itself."""
    assert set(named.MEANT.values()) <= named.JOB_DESC
    assert not set(named.MEANT) & named.JOB_DESC


def test_a_module_that_a_call_lacks_is_told_in_a_line(tmp_path: Path) -> None:
    """With what would do, as when it is required at once."""
    report = check(tmp_path, SUBMIT.format("local site = require('site')") + MODIFY)
    (mistake,) = report.mistakes
    assert (mistake.rule, mistake.where) == ("lua-error", "job_submit.lua:2")
    assert mistake.what.startswith("module site is not there; lay site.lua, or a stand-in")
