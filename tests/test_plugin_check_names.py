"""`simctl plugins check`: names that nothing sets, old interfaces, and scripts that refuse all."""

from pathlib import Path

import pytest

from simctl.testing.plugin_check.lua.check import check_script
from simctl.testing.plugin_check.lua.report import ScriptReport
from simctl.testing.plugin_check.lua.scopes import out_of_block, undefined
from simctl.testing.plugin_check.lua.source import Source

pytest.importorskip("lupa")

BOTH = """\
function slurm_job_submit(job_desc, part_list, submit_uid)
  {}
  return 0
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  {}
  return 0
end
"""


def check(tmp_path: Path, submit: str, modify: str = "", head: str = "") -> ScriptReport:
    """Check a script with lines in both functions, under one Lua and one Slurm."""
    path = tmp_path / "job_submit.lua"
    path.write_text(head + BOTH.format(submit, modify))
    return check_script(str(path), luas=("5.4",), slurms=("22.05",))


def blamed(report: ScriptReport) -> list[tuple[str, str]]:
    """Return rules and places of what was found."""
    return [(each.rule, each.where.removeprefix("job_submit.lua:")) for each in report.mistakes]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("local function f(a) return a + b end", ["b"]),
        ("local function f(a) return a end\nlocal function g() return a end", ["a"]),
        ("local function f() local a = 1 return function() return a end end", []),
        ("local function f() for i = 1, 2 do g(i) end end\nfunction g() return i end", ["i"]),
        ("for key, value in pairs({}) do print(key, value, values) end", ["values"]),
        ("local t = {name = 1, other = 2}\nprint(t.name, name)", ["name"]),
        ("t = {}\nfunction t.f() return t end\nfunction t:g() return self.f, u end", ["u"]),
        ("local a <const>, b <close> = 1, nil\nprint(a, b)", []),
        ("a, b = 1, 2\nlocal function f() return a, b end", []),
        ("goto done\n::done::", []),
        ("if jit then print(jit) end\nif bit ~= nil then print(bit) end", []),
        ("unpack = unpack or table.unpack\nlocal x = type(ngx) == 'nil' and 1", []),
        ("if user == 0 then return end", ["user"]),
        ("local cfg = dofile('/etc/slurm/cfg.lua')\nprint(set_there)", []),
        ("require 'site'\nprint(set_there)", []),
        ("require 'posix'\nprint(posix.getpid(), other)", ["other"]),
        ("local s = [[ text ]] -- comment\nprint(s, 'b')", []),
    ],
)
def test_a_name_that_nothing_sets_is_found_in_its_function(text: str, names: list[str]) -> None:
    """Parameters and locals are of their function; what a script asks about is no slip."""
    assert [name for name, _, _ in undefined(Source("x.lua", text))] == names


def test_an_undefined_name_is_told_once_and_not_as_its_error(tmp_path: Path) -> None:
    """It is the cause; the Lua error on its line follows from it."""
    modify = "if submit_uid ~= 0 then slurm.log_info('by ' .. submit_uid) end"
    report = check(tmp_path, "", modify)
    assert blamed(report) == [("undefined-name", "6")]
    assert "submit_uid is set nowhere that slurm_job_modify sees" in report.mistakes[0].what


def test_a_script_of_an_old_slurm_is_told_so(tmp_path: Path) -> None:
    """It fetches fields by functions that are gone: one mistake, whatever it breaks."""
    head = """\
meta = {
  __index = function(t, key) return _get_job_req_field(t.ptr, key) end,
  __newindex = function(t, key, value) return _set_job_req_field(t.ptr, key, value) end,
}
"""
    report = check(
        tmp_path,
        "setmetatable(job_desc, meta) if job_desc.account == nil then return 1 end",
        head=head,
    )
    assert blamed(report) == [("old-interface", "2")]
    assert all("Lua error" in each.ruling for each in report.treated if "scontrol" not in each.name)
    own = "function _get_job_req_field(t, key) return nil end\n"
    assert blamed(check(tmp_path, "local x = _get_job_req_field(job_desc, 'x')", head=own)) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("slurm.user_msg('of %s', submit_uid)", True),
        ("slurm.error('of %s', 1)", True),
        ("slurm.user_msg(string.format('of %s, %s', submit_uid, 2))", False),
        ("slurm.user_msg('a, b')", False),
        ("slurm.user_msg(({1, 2})[1] .. 'x')", False),
        ("slurm.log_user('of %s', submit_uid)", False),
    ],
)
def test_arguments_that_are_lost_are_found(tmp_path: Path, line: str, found: bool) -> None:
    """user_msg and error take one text."""
    assert blamed(check(tmp_path, line)) == ([("lost-argument", "2")] if found else [])


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("local out = job_desc.stdout or job_desc.std_out or job_desc.standard_output", []),
        ("local out = job_desc.stdout or 'none'", ["unknown-field"]),
        ("if job_desc.gpus then return job_desc.gpus end", ["unknown-field"]),
        ("if job_desc.max_nodes == nil or job_desc.max_nodes > 9 then return 1 end", []),
        ("if job_desc.max_nodes == nil or (job_desc.max_nodes >= 9) then return 1 end", []),
        (
            "if job_desc.max_nodes ~= nil and job_desc.max_nodes > 9 then return 1 end",
            ["never-nil"],
        ),
        ("if job_desc.max_nodes == nil or job_desc.max_nodes < 2 then return 1 end", ["never-nil"]),
    ],
)
def test_what_comes_to_the_same_is_no_mistake(tmp_path: Path, line: str, rules: list[str]) -> None:
    """A name of another version beside today's, and nil beside a size that NO_VAL exceeds."""
    assert [rule for rule, _ in blamed(check(tmp_path, line))] == rules


def test_a_name_that_no_partition_may_have_stops_nothing(tmp_path: Path) -> None:
    """What a script compares with becomes a partition of the trial clusters, but for DEFAULT."""
    line = "if job_desc.partition == 'default' or job_desc.partition == 'DEFAULT' then return 1 end"
    report = check(tmp_path, line)
    assert blamed(report) == []
    assert not report.unreached


def test_changes_are_tried_where_every_job_is_refused(tmp_path: Path) -> None:
    """The job that they are made on is never shown to the script."""
    report = check(tmp_path, "if job_desc.name ~= nil then return 2045 end", "do return 'done' end")
    assert blamed(report) == [("no-number", "5")]
    assert report.driven == ("slurm_job_submit", "slurm_job_modify")
    assert not [each for each in report.treated if "let-pass" in each.command]
    assert not report.unreached


def test_programs_that_a_trial_has_not_are_named(tmp_path: Path) -> None:
    """Who reads that all jobs are refused reads why."""
    line = "local f = io.popen('/opt/site/ask ' .. submit_uid) local ok = f:close() if not ok then"
    report = check(tmp_path, f"{line} return slurm.ERROR end")
    (note,) = report.notes
    assert note.startswith("/opt/site/ask: the trial clusters have no such program")
    assert check(tmp_path, "local f = io.popen('id -un') f:close()").notes == ()
    shell = "getent passwd | sort -t'|' -k 1r | awk -F: '{print $1; x}'"
    line = f'local f = io.popen("{shell}") f:close()'
    assert check(tmp_path, line).notes == ()


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("os.execute('logger of ' .. text)", ["--comment"]),
        ("os.execute('logger \"of ' .. text .. '\"')", ["--comment"]),
        ('io.popen("logger \'of " .. text .. "\'"):close()', ["--comment"]),
        ("os.execute('cd ' .. job_desc.work_dir .. ' && logger ' .. text)", ["--comment", "-D"]),
        ("if text:match('^[%w_.-]*$') then os.execute('logger of ' .. text) end", []),
        (r"""os.execute("logger '" .. text:gsub("'", "'\\''") .. "'")""", []),
        ("os.execute(string.format('logger %d', submit_uid)) slurm.log_info(text)", []),
    ],
)
def test_a_text_that_runs_as_a_command_is_found(
    tmp_path: Path, line: str, options: list[str]
) -> None:
    """It is run in a trial cluster: quotes that hold, and checks before, leave nothing to find."""
    report = check(tmp_path, f"local text = job_desc.comment or 'none' {line}")
    found = [each for each in report.mistakes if each.rule == "shell-hole"]
    assert sorted(each.what.partition(" ")[0] for each in found) == options
    assert {each.where for each in found} <= {"job_submit.lua:2"}
    assert all("simctl-hole" not in each.command for each in report.treated)


def test_modules_beside_a_script_are_used_and_keep_their_lines(tmp_path: Path) -> None:
    """A mistake in one is told with its own place."""
    (tmp_path / "rules.lua").write_text(
        "local m = {}\nfunction m.ask(desc) return desc.comment .. 'x' end\nreturn m\n"
    )
    report = check(tmp_path, "require('rules').ask(job_desc)")
    (mistake,) = report.mistakes
    assert (mistake.rule, mistake.where) == ("lua-error", "job_submit.lua")
    assert "/etc/slurm/rules.lua:2: attempt to concatenate a nil value" in mistake.what


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("function f(a) if a then local n = 1 end return n end", [("n", 1, "f", 1)]),
        ("function f(a)\nif a then\nlocal n = 1\nelse\nprint(n)\nend\nend", [("n", 5, "f", 3)]),
        ("function f(a) if a then local n = 1 elseif n then end end", [("n", 1, "f", 1)]),
        ("for i = 1, 3 do end\nprint(i)", [("i", 2, "", 1)]),
        ("while true do local x = 1 end print(x, x)", [("x", 1, "", 1)]),
        ("do local x, y = 1, 2 end\nfunction f() return x end\nprint(y)", [("y", 3, "", 1)]),
        ("do local function g() end end g()", [("g", 1, "", 1)]),
        ("function f() do local n = 1 end if n ~= nil then n = n + 1 end end", [("n", 1, "f", 1)]),
        ("function f(a) if a then local n = 1 end local n = 2 return n end", []),
        ("function f() do local n = 1 end n = 2 return n end", []),
        ("function f() do local n = 1 end return n end function g() n = 2 end", []),
        ("do local h = 1 end function h() end h()", []),
        ("function f(n) if n then local n = 1 end return n end", []),
        ("function f() local n for i = 1, 2 do local n = i end return n end", []),
        ("n = 1 function f() do local n = 2 end return n end", []),
        ("repeat local done = true until done", []),
        ("function f() for i = 1, 2 do local n = i g(n) end for i = 1, 2 do g(i) end end", []),
        ("function f() if a then local t = 1 end return {t = 2}, b.t, b:t() end", []),
        ("function f() do local n = 1 end return function(n) return n end end", []),
        (
            "local x = 1 if x then local f = function() local y = 2 return y end f() end print(x)",
            [],
        ),
    ],
)
def test_a_name_behind_its_block_is_found(
    text: str, found: list[tuple[str, int, str, int]]
) -> None:
    """What was local to a branch or a loop is nil behind it, if there is no other of the name."""
    assert list(out_of_block(Source("job_submit.lua", text))) == found


def test_a_local_that_was_meant_for_the_function_is_blamed(tmp_path: Path) -> None:
    """Though the script asks whether it is nil: it always is."""
    report = check(
        tmp_path,
        "if job_desc.gres then local count = 1 end\n  if count ~= nil then return 1 end",
    )
    assert blamed(report) == [("undefined-name", "3")]
    assert "count is local to a block that has ended (line 2)" in report.mistakes[0].what
