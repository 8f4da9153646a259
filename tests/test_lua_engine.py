"""Lua scripts in virtual time: what runs, what is bounded, what is not there."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("lupa")

from simctl.kernel.disk import Disk
from simctl.plugins.lua import machine as machine_module
from simctl.plugins.lua import state as state_module
from simctl.plugins.lua.constants import slurm_table
from simctl.plugins.lua.machine import Machine, minutes
from simctl.plugins.lua.patterns import Endless, Malformed, search
from simctl.plugins.lua.state import VERSIONS, LuaExit, LuaFailure, LuaState, number_text


class Bench:
    """A state with a script, on a machine whose clock and commands are the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.said: list[str] = []
        self.commands: list[str] = []
        monkeypatch.setattr(machine_module, "now", lambda: self.now)
        monkeypatch.setattr(machine_module, "sleep", self._sleep)
        self.disk = Disk()
        monkeypatch.setattr(machine_module, "disk", lambda: self.disk.view("ctl", 0))

        class _Process:
            pid, hostname = 7, "ctl"

        monkeypatch.setattr(machine_module, "process", _Process)

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds

    async def _shell(self, command: str, given: str) -> tuple[int, str]:
        self.commands.append(command)
        self.now += 0.5
        return (3 << 8 if "bad" in command else 0), f"<{command}{given}>\n"

    def run(self, text: str, *arguments: Any, version: str = "5.4", order: int = 0) -> Any:
        """Return what the function `f` of a script returns."""
        machine = Machine(
            epoch_s=1_700_000_000,
            run_shell=self._shell,
            printed=lambda where, told: self.said.append(f"{where}: {told}"),
            logged=lambda level, told: self.said.append(f"{level}: {told}"),
        )
        state = LuaState(machine, version=version, slurm=slurm_table("22.05", "test"), order=order)

        async def whole() -> Any:
            await state.load(text, "/etc/slurm/t.lua")
            return await state.call("f", *arguments)

        return asyncio.run(whole())


@pytest.fixture(name="run")
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a machine for scripts."""
    return Bench(monkeypatch)


@pytest.mark.parametrize("version", VERSIONS)
def test_values_go_through(run: Bench, version: str) -> None:
    """Texts of any bytes, numbers and nothing come back as they went; a first line `#` is none."""
    found = run.run(
        "#!/usr/bin/lua\nfunction f(a) return a, 1, nil, true end", "hé", version=version
    )
    assert found == ("hé", 1, None, True)
    assert run.run("function f() return end", version=version) == ()


@pytest.mark.parametrize("version", ["5.1", "5.4"])
@pytest.mark.parametrize(
    "body",
    [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "coroutine.resume(coroutine.create(function() while true do end end)) while true do end",
        "xpcall(function() error('x') end, function() while true do end end)",
        "return setmetatable({}, {__index = function() while true do end end}).x",
        "for i = 1, 1e7 do os.execute('true') end",
    ],
)
def test_what_never_ends_is_ended(run: Bench, version: str, body: str) -> None:
    """A loop without end is ended, wherever it hides, and its line is told."""
    with pytest.raises(LuaFailure, match=r"t\.lua:2: .*without coming back") as told:
        run.run(f"function f()\n{body}\nend", version=version)
    assert told.value.endless


@pytest.mark.parametrize("version", ["5.1", "5.4"])
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("local function g() return 1 + g() end return g()", "stack overflow"),
        ("local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end", "not enough memory"),
        ("local s = ('a'):rep(30000) local x = s:find(('a*'):rep(20) .. 'b') return x", "too many"),
        ("local x = ('a'):rep(100000):find('a*b') return x", "too many steps"),
        ("return string.rep('x', 1e10)", "memory|too large"),
    ],
)
def test_what_is_too_much_fails(run: Bench, version: str, body: str, why: str) -> None:
    """Recursion, memory and patterns have bounds."""
    with pytest.raises(LuaFailure, match=why):
        run.run(f"function f() {body} end", version=version)


def test_what_goes_through_long_texts_counts(run: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of C's over many bytes is as many instructions; the watchdog ends a call as well."""
    monkeypatch.setattr(state_module, "_STRIDES", 30)
    for body in (
        "local s = ('x'):rep(1e6) while true do s = s:gsub('x', 'y') end",
        "local s = ('x'):rep(1e6) while true do s = s:upper() end",
        "local t = {} for at = 1, 1e5 do t[at] = at end while true do table.insert(t, 1, 0) end",
    ):
        with pytest.raises(LuaFailure, match="too many instructions") as failed:
            run.run(f"function f() {body} end")
        assert failed.value.endless

    def ends() -> None:
        raise RuntimeError

    monkeypatch.setattr(Machine, "breathe", staticmethod(ends))
    with pytest.raises(LuaFailure, match=r"t\.lua:1: took too long on this machine"):
        run.run("function f() while true do pcall(error) end end")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "text",
    [
        "python",
        "debug.getregistry and pcall(debug.getregistry) == true",
        "package.loadlib and (package.loadlib('/lib/libc.so.6', '*'))",
        "newproxy",
        "debug.getinfo(1, 'f').func",
        "(loadstring or load)('\\27Lua')",
        "io.open('/etc/passwd')",
        "os.rename('/etc/hostname', '/tmp/x')",
        "loadfile('/etc/hostname')",
    ],
)
def test_no_way_out(run: Bench, version: str, text: str) -> None:
    """Nothing of Python's, of compiled code's or of the real machine's disk is there."""
    found = run.run(f"function f() return {text} end", version=version)
    assert found[0] in (None, False)


@pytest.mark.parametrize("version", VERSIONS)
def test_commands_answer_as_the_version_says(run: Bench, version: str) -> None:
    """os.execute gives a status in 5.1 and three values later; close of a popen as well."""
    script = """
    function f()
      local p = io.popen('echo hi')
      local text = p:read('*l')
      return text, os.execute('bad'), select('#', p:close())
    end"""
    first, *rest = run.run(script, version=version)
    assert first == "<echo hi>"
    assert rest == ([768, 1] if version == "5.1" else [None, 3])
    assert run.commands == ["echo hi", "bad"]


@pytest.mark.parametrize("version", VERSIONS)
def test_waiting_for_the_clock_lets_it_go_on(run: Bench, version: str) -> None:
    """A loop that asks for the time waits in virtual time, also below pcall and in a coroutine."""
    script = """
    function f()
      local function wait() local over = os.time() + 3 while os.time() < over do end end
      pcall(wait)
      coroutine.wrap(wait)()
      local c = os.clock()
      while os.clock() < c + 0.1 do end
      return os.time()
    end"""
    assert run.run(script, version=version) == (1_700_000_006,)
    assert run.now == pytest.approx(6.1, abs=0.05)


@pytest.mark.parametrize("version", VERSIONS)
def test_tables_are_gone_through_in_an_order_of_their_own(run: Bench, version: str) -> None:
    """Numbers, then texts, each in order; another seed has another order, the same each time."""
    script = """
    function f()
      local o = {}
      for k in pairs{b = 1, a = 2, [3] = 4, [1] = 5} do o[#o + 1] = tostring(k) end
      for k in next, {y = 1, x = 2} do o[#o + 1] = k end
      return table.concat(o, ' ')
    end"""
    assert run.run(script, version=version) == ("1 3 a b x y",)
    others = {run.run(script, version=version, order=seed)[0] for seed in range(1, 8)}
    assert len(others) > 1
    assert run.run(script, version=version, order=5) == run.run(script, version=version, order=5)


def test_nothing_tells_where_memory_is(run: Bench) -> None:
    """Addresses and chance are the same in each run."""
    script = (
        "function f() return tostring({}), tostring(print), math.random(100), ('%s'):format({}) end"
    )
    assert run.run(script) == run.run(script)


def test_a_nil_at_the_end_of_a_log_call_is_lost(run: Bench) -> None:
    """As in Slurm: log_info("%s", nil) raises, with the line of the script."""
    with pytest.raises(LuaFailure, match=r"t\.lua:2: bad argument #2 to 'format' \(no value\)"):
        run.run("function f()\nslurm.log_info('%s', nil)\nend")
    run.run("function f() slurm.log_info('%s is %d', 'a', 3) slurm.log_debug2('x') end")
    assert run.said == ["info: a is 3", "debug2: x"]


def test_errors_say_where(run: Bench) -> None:
    """A script that does not parse, an error, and one that is a table."""
    with pytest.raises(LuaFailure, match=r"t\.lua:1: .*unexpected symbol|t\.lua:1:"):
        run.run("x = = 1")
    with pytest.raises(LuaFailure, match=r"t\.lua:1: oh"):
        run.run("function f() error('oh') end")
    with pytest.raises(LuaFailure, match=r"^\(null\)$"):
        run.run("function f() error({}) end")
    with pytest.raises(LuaExit) as gone:
        run.run("function f() pcall(os.exit, 4) end")
    assert gone.value.code == 4


def test_stand_ins_for_modules(run: Bench) -> None:
    """JSON goes there and back; posix is there; what is missing says so."""
    script = r"""
    function f()
      local j, posix = require('json'), require('posix')
      local value = j.decode('{"a": [1, 2, {"b": null}], "c": "\\u0041\\n"}')
      posix.sleep(2)
      local there = pcall(require, 'nope')
      return j.encode(value), require('inspect')({1, k = 'v'}), posix.getpid(), there
    end"""
    found = run.run(script)
    assert found == ('{"a":[1,2,{}],"c":"A\\n"}', '{ 1, k = "v" }', 7, False)
    assert run.now == 2
    with pytest.raises(LuaFailure, match=r"posix\.fork: not simulated"):
        run.run("function f() require('posix').fork() end")
    piped = """function f() local p = require('posix')
      local pipe = p.popen({'bad', "it's"}, 'r')
      local ready = require('posix.poll').poll({[pipe.fd] = {events = {IN = true}}}, 5000)
      local all, piece = '', nil
      repeat piece = p.read(pipe.fd, 4) all = all .. piece until piece == ''
      local wait = require('posix.sys.wait').wait
      return ready, p.rpoll(pipe.fd, 0), all, select(2, wait(pipe.pids[1]))
    end"""
    for version in ("5.1", "5.4"):
        assert run.run(piped, version=version) == (*(1, 1, "<'bad' 'it'\\''s'>\n", "exited", 3),)
    with pytest.raises(LuaFailure, match=r"posix: 9 is no descriptor of posix\.popen"):
        run.run("function f() require('posix').read(9, 1) end")
    with pytest.raises(LuaFailure, match=r"socket\.tcp: not simulated; there is no network"):
        run.run("function f() require('socket').tcp() end")


@pytest.mark.parametrize(
    ("subject", "pattern"),
    [
        ("key = value", "^(%w+)%s*=%s*(%w+)$"),
        ("a.b.c", "[^.]+$"),
        ("(x(y)z)", "%b()"),
        ("THE (quick) fox", "%f[%a]%a+%f[%A]"),
        ("hello hello", "(h%a+) %1"),
        ("abc", "()b()"),
        ("a-b", "[a%-]-b"),
        ("xx]", "[]x]+"),
        ("", "^$"),
        ("aaa", "a-$"),
        ("aab", "^(a-)b"),
        ("b-a", "[a-]+$"),
        ("no", "q?n[^x-z]"),
    ],
)
def test_patterns_match_as_in_c(run: Bench, subject: str, pattern: str) -> None:
    """The matcher that counts its steps finds what Lua's own does."""
    found = run.run("function f(s, p) return s:find(p) end", subject, pattern)
    assert found == (search(subject, pattern, 1) or (None,))


def test_bad_patterns_are_refused() -> None:
    """What is no pattern says why, and what takes for ever ends."""
    for pattern in ("[a", "%", "(a", "a)", "%1", "%b"):
        with pytest.raises(Malformed):
            search("aaa", pattern, 1)
    with pytest.raises(Endless):
        search("a" * 5000, "a*" * 8 + "b", 1)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("30", 30),
        ("90:30", 91),
        ("1:00:00", 60),
        ("2-0", 2880),
        ("1-12:30", 2190),
        ("UNLIMITED", 0xFFFFFFFF),
        ("soon", 0xFFFFFFFE),
    ],
)
def test_minutes(text: str, found: int) -> None:
    """time_str2mins reads what --time takes."""
    assert minutes(text) == found


def test_numbers_as_texts() -> None:
    """From Lua 5.3 on a float says that it is one."""
    assert number_text(5.0, "5.1") == "5"
    assert number_text(5.0, "5.3") == "5.0"
    assert number_text(5, "5.4") == "5"
    assert number_text(0.1, "5.4") == "0.1"


def test_files_are_on_the_simulated_disk(run: Bench) -> None:
    """Files are written, appended to, read by lines and numbers, moved and removed."""
    script = """
    function f()
      local file = assert(io.open('/tmp/a', 'w'))
      file:write('one\\n', 2, '\\n')
      file:close()
      file = io.open('/tmp/a', 'a')
      file:write('three')
      file:flush()
      local lines = {}
      for line in io.lines('/tmp/a') do lines[#lines + 1] = line end
      file = io.open('/tmp/a', 'r+')
      local first, number = file:read('*l', '*n')
      file:seek('set', 0)
      file:write('ONE')
      os.rename('/tmp/a', '/tmp/b')
      local gone, why = io.open('/tmp/a')
      return table.concat(lines, ','), first, number, gone, why, (os.remove('/tmp/nothing'))
    end"""
    found = run.run(script)
    assert found == ("one,2,three", "one", 2, None, "/tmp/a: No such file or directory", None)
    # What is still held when the call ends is written where the file was opened.
    assert run.disk.read("/tmp/a", host="ctl") == "ONE\n2\nthree"
