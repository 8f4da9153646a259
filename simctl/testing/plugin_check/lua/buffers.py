"""Drive a burst_buffer.lua: jobs with directives through their lives, and what went wrong."""

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.scenario.load import read_scenario
from simctl.status import InputError
from simctl.testing.plugin_check.lua import rules
from simctl.testing.plugin_check.lua.found import Found
from simctl.testing.plugin_check.lua.given import GivenRun
from simctl.testing.plugin_check.lua.lines import asks_slurmctld, lacking
from simctl.testing.plugin_check.lua.marks import line_of as _line
from simctl.testing.plugin_check.lua.marks import reached, shown_error, text_of
from simctl.testing.plugin_check.lua.named import required
from simctl.testing.plugin_check.lua.report import Treated
from simctl.testing.plugin_check.lua.source import Source
from simctl.wire.ids import SECOND
from simctl.world import RunResult, World

_SCRIPT: Final = "/etc/slurm/burst_buffer.lua"
_APART_S: Final = 300
_FIRST_S: Final = 100
_LACKS: Final = re.compile(r"missing required function ([\w, ]+)")
_POOL: Final = re.compile(r"PoolName\[\d+\]=(\S+) Granularity=(\d+)\S*")
_DIRECTIVE: Final = re.compile(r"#([A-Z][A-Z_0-9]*)")
_KEY: Final = re.compile(r"([A-Za-z]\w*)=")
_IN_SLURMCTLD: Final = ("slurm_bb_pools", "slurm_bb_job_process", "slurm_bb_paths")
_LIBRARIES: Final = frozenset("slurm io os string table math posix json package _G".split())
_ENDED: Final = "the call was ended"
_RESTART: Final = "restart slurmctld"
_LOST: Final = re.compile(r"(slurm_bb_\w+) returns (-?\d+), of which a child's status keeps 0")


@attrs.frozen(kw_only=True)
class Life:
    """A job of the zoo: what is done to it, at seconds after its submission."""

    name: str
    script: str
    submit: str = "sbatch {file}"
    then: tuple[tuple[int, str], ...] = ()


@attrs.frozen(kw_only=True)
class Call:
    """One call of a function."""

    function: str
    job: int
    rc: int
    took_us: int


@attrs.frozen(kw_only=True)
class BufferDrive:
    """One trial cluster."""

    lua: str
    slurm: str
    lives: tuple[Life, ...]
    events: tuple[Event, ...]
    result: RunResult

    @property
    def calls(self) -> Iterator[Call]:
        """Yield the calls that ended."""
        for event in self.events:
            name = event.name
            if event.kind == "script" and name.startswith("slurm_bb_") and event.phase == "exit":
                yield Call(
                    function=name,
                    job=event.job if isinstance(event.job, int) else 0,
                    rc=event.rc if isinstance(event.rc, int) else 0,
                    took_us=event.time_us - event.t0_us if event.t0_us is not UNSET else 0,
                )

    @property
    def logs(self) -> Iterator[str]:
        """Yield the texts of the log."""
        for event in self.events:
            if event.kind == "log" and text_of(event):
                yield text_of(event)

    @property
    def lines(self) -> Iterator[str]:
        """Yield the lines of shell that the script ran."""
        for event in self.events:
            if event.kind == "script" and event.name == "shell" and event.phase == "enter":
                yield str(event.args["argv"][-1]) if isinstance(event.args, dict) else ""


@attrs.define(eq=False)
class BufferCheck:
    """A check of one burst_buffer.lua."""

    source: Source
    found: Found
    luas: Sequence[str]
    slurms: Sequence[str]
    trials: int = 0
    notes: list[str] = attrs.field(factory=list)
    _text: str = ""
    _played: tuple[str, ...] = ()

    def run(self) -> tuple[BufferDrive, tuple[str, ...]]:
        """Drive the script under each Lua and Slurm; return the main drive, and where it was run.

        Raises:
            InputError: It loads under none.
        """
        main = self._main()
        drives, under = [main], [(main.lua, main.slurm)]
        others = [(lua, main.slurm) for lua in self.luas if lua != main.lua]
        others += [(main.lua, slurm) for slurm in self.slurms if slurm != main.slurm]
        if any(_ENDED in str(each.args) for each in main.events if each.name == "plugin_error"):
            others = []
        for lua, slurm in others:
            drive = self._drive(main.lives, lua=lua, slurm=slurm)
            under.append((lua, slurm))
            failure = _failure(drive)
            if failure:
                what = f"it does not load under Lua {lua} and Slurm {slurm}: {shown_error(failure)}"
                self.found.blame(rules.LUA_VERSION, "", what, line=_line(failure))
            else:
                drives.append(drive)
        for drive in drives:
            self._judge(drive, newer=drive is not main)
        if self._played:
            self.notes.append(
                f"{', '.join(self._played)}: played by stand-ins that take a second and succeed"
            )
        return main, tuple(f"Lua {lua} and Slurm {slurm}" for lua, slurm in under)

    def look_at(self, run: GivenRun) -> frozenset[int]:
        """Judge what the script did in a scenario of its author's; return the blocks reached."""
        drive = BufferDrive(
            lua=run.lua, slurm=run.slurm, lives=(), events=run.events, result=run.result
        )
        self._judge(drive, newer=True)
        return reached(run.events)

    def _main(self) -> BufferDrive:
        names = required("burst_buffer", self.slurms[0])
        failures: list[tuple[str, str]] = []
        for lua in reversed(self.luas):
            self._text = self.source.marked(names)
            idle = self._drive((), lua=lua, slurm=self.slurms[0])
            match = _LACKS.search(_failure(idle))
            if match:
                for name in match[1].split(", "):
                    self.found.blame(rules.MISSING, name, f"{name} is missing", line=1)
                stubs = "".join(f"function {name}() return 0 end " for name in match[1].split(", "))
                self._text = self.source.marked(names, stubs)
                idle = self._drive((), lua=lua, slurm=self.slurms[0])
            if not _failure(idle):
                for other, failure in failures:
                    what = f"it does not load under Lua {other}: {shown_error(failure)}"
                    self.found.blame(rules.LUA_VERSION, "", what, line=_line(failure))
                return self._with_jobs(idle, lua)
            failures.append((lua, _failure(idle)))
        failure = failures[0][1]
        at = f":{_line(failure)}" if _line(failure) else ""
        raise InputError(f"{self.source.name}{at}: it does not load: {shown_error(failure)}")

    def _with_jobs(self, idle: BufferDrive, lua: str) -> BufferDrive:
        shown = idle.result.commands[0].stdout if idle.result.commands else ""
        lives = tuple(_lives(self.source, _POOL.findall(shown)))
        drive = self._drive(lives, lua=lua, slurm=self.slurms[0])
        self._played = lacking(drive.lines)
        return self._drive(lives, lua=lua, slurm=self.slurms[0]) if self._played else drive

    def _drive(self, lives: Sequence[Life], *, lua: str, slurm: str) -> BufferDrive:
        self.trials += 1
        text = _scenario(self.source, lives, self._played, lua=lua, slurm=slurm)
        scenario = read_scenario(text, file="trial")
        scripts = {**self.source.modules, "burst_buffer.lua": self._text}
        scenario = attrs.evolve(scenario, lua_scripts=scripts)
        events: list[Event] = []
        until_us = (_FIRST_S + _APART_S * (len(lives) + 1)) * SECOND
        world = World(scenario, model="modern", orderings=False, until_us=until_us)
        world.trace.add_sink(events.append)
        result = world.run()
        return BufferDrive(
            lua=lua, slurm=slurm, lives=tuple(lives), events=tuple(events), result=result
        )

    def _judge(self, drive: BufferDrive, *, newer: bool) -> None:
        for text in dict.fromkeys(drive.logs):
            if text.startswith(f"{_SCRIPT}: "):
                self._error(drive, text.removeprefix(f"{_SCRIPT}: "), newer=newer)
            self._logged(text)
        for event in drive.events:
            args = event.args if isinstance(event.args, dict) else {}
            if event.name == "plugin_error" and _ENDED in str(args.get("problem")):
                what = shown_error(str(args["problem"]))
                line = _line(str(args["problem"]))
                self.found.blame(rules.ENDLESS, str(args["function"]), what, line=line)
            if event.name == "shell" and event.phase == "enter" and event.role == "slurmctld":
                line_of_shell = str(args["argv"][-1])
                asks = asks_slurmctld(line_of_shell)
                if asks and not self.found.has(rules.SELF_WAITING, f"runs {asks} "):
                    what = f"runs {asks} inside slurmctld: {line_of_shell}"
                    self.found.blame(rules.SELF_WAITING, "", what)
        for call in drive.calls:
            slow = call.function in _IN_SLURMCTLD and call.took_us >= SECOND
            if slow and not self.found.has(rules.SELF_WAITING):
                what = f"holds slurmctld for {call.took_us / SECOND:g} s"
                line = self.source.line_of(call.function)
                self.found.blame(rules.SLOW, call.function, what, line=line)

    def _error(self, drive: BufferDrive, error: str, *, newer: bool) -> None:
        text, line = shown_error(error), _line(error)
        in_log = "to 'format'" in text and "slurm.log" in self.source.line_text(line)
        rule = rules.NIL_IN_LOG if in_log else rules.STAGE_ERROR
        around = next((each for each in self.source.blocks if each.line == line), None)
        function = around.function if around is not None else self.source.function_at(line)
        where = f" (under Lua {drive.lua} and Slurm {drive.slurm})" if newer else ""
        if not self.found.on_line(rule, line):
            self.found.blame(rule, function, text + where, line=line, one=True)

    def _logged(self, text: str) -> None:
        function = text.partition(":")[0].partition(" ")[0]
        line = self.source.line_of(function)
        lost = _LOST.fullmatch(text)
        if "non-numeric return code" in text:
            self.found.blame(rules.NO_STATUS, function, "returns what is no number", line=line)
        elif "second return value is no text" in text:
            self.found.blame(
                rules.TABLE_TEXT, function, "its second value is neither text nor number", line=line
            )
        elif lost:
            self.found.blame(rules.LOST_STATUS, lost[1], f"returns {lost[2]}", line=line)
        elif text.startswith("slurm_bb_pools returned no pools"):
            self.found.blame(rules.NO_POOLS, "slurm_bb_pools", text, line=line)

    def treated(self, main: BufferDrive) -> tuple[Treated, ...]:
        """Return what became of each job."""
        return tuple(_treated(main))

    def driven(self, main: BufferDrive) -> tuple[str, ...]:
        """Return the functions that were called."""
        called = {call.function for call in main.calls}
        return tuple(name for name in required("burst_buffer", main.slurm) if name in called)


def _failure(drive: BufferDrive) -> str:
    """Return why the script does not load, or nothing."""
    for text in drive.logs:
        if text.startswith("burst_buffer.lua does not load: "):
            return text.removeprefix("burst_buffer.lua does not load: ")
    calls = list(drive.calls)
    errors = [each for each in drive.logs if each.startswith(f"{_SCRIPT}: ")]
    if calls and all(call.rc for call in calls) and errors:
        text = errors[0].removeprefix(f"{_SCRIPT}: ")
        if _LACKS.search(text) or "returned" in text or not reached(drive.events):
            return text
    return ""


def _lives(source: Source, pools: Sequence[tuple[str, str]]) -> Iterator[Life]:
    """Yield the jobs of the zoo, with directives such as the script looks for."""
    word = directive_of(source)
    pool, grain = pools[0] if pools else ("", "1")
    texts = [str(each.value) for each in source.tokens if each.kind == "text"]
    # What has to stand behind the word, as a script says that looks for it.
    head = next((text for text in texts if re.match(rf"\^?#{word} \w[^%^$]*$", text)), f"#{word}")
    head = head.removeprefix("^") + ("x" if head.endswith((" ", "=")) else "")
    plain = f"{head} pool={pool} capacity={grain}" if pool else head
    own = [f"{key}=/data/{key}" for key in _keys(source, texts)]
    full = " ".join([plain, *own])
    # The first has the number 1.
    yield Life(name="a job that is requeued", script=full, then=((12, "scontrol requeue 1"),))
    yield Life(name="a job with a buffer", script=plain)
    if own:
        yield Life(name=f"a job that asks for {', '.join(own)}", script=full)
        yield Life(name="the same without a pool", script=" ".join([head, *own]))
    literal = [text.removeprefix("^") for text in texts if _DIRECTIVE.match(text.removeprefix("^"))]
    for text in dict.fromkeys(literal):
        bare = re.sub(r"[%^$().*+?\[\]-]", "", text).strip()
        if bare not in (f"#{word}", ""):
            yield Life(name=f"a job with {bare}", script=f"{plain}\n{bare}")
    yield Life(name="a job with no directive", script="# nothing")
    yield Life(name="a directive without words", script=f"#{word}")
    cancel, hurry, show = "scancel -u alice", "scancel --hurry -u alice", "scontrol show bbstat"
    yield Life(name="an array", script=full, submit="sbatch -a 0-1 {file}")
    yield Life(name="a job that fails", script=f"{full}\nexit 7")
    yield Life(name="a job that is cancelled as it runs", script=full, then=((12, cancel),))
    yield Life(name="a job that is cancelled in a hurry", script=full, then=((12, hurry),))
    yield Life(name="a job that is cancelled at once", script=full, then=((0, cancel),))
    yield Life(name="srun with a buffer", script=full, submit=f"srun --bb='{full}' sleep 20")
    yield Life(name="bbstat", script="# nothing", then=((1, show), (2, f"{show} x y")))
    yield Life(name="slurmctld starts again as a job runs", script=full, then=((12, _RESTART),))


def _keys(source: Source, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the words that a script seems to look for in directives: ``in`` of ``in=/data``."""
    found = dict.fromkeys(key for text in texts for key in _KEY.findall(text))
    if any("=" in text and "%" in text for text in texts):
        # It takes directives apart by a pattern, into a table.
        functions = {each.name for each in source.functions}
        found |= dict.fromkeys(
            use.field
            for use in source.uses
            if use.owner not in _LIBRARIES and not use.call and use.owner not in functions
        )
    return tuple(key for key in found if key not in ("pool", "capacity") and key.isidentifier())


def directive_of(source: Source) -> str:
    """Return the word after # that the script looks for, or Slurm's own."""
    for at, each in enumerate(source.tokens[:-2]):
        text = str(each.value) if each.kind == "text" else ""
        if text.endswith("#") and source.tokens[at + 1].text == "..":
            # The word itself stands by itself, as a rule in a variable.
            word = source.tokens[at + 2]
            text += str(word.value or source.constants.get(word.text, ""))
        found = _DIRECTIVE.search(text)
        if found and found[1] != "SBATCH":
            return found[1]
    return "BB_LUA"


def _scenario(
    source: Source, lives: Sequence[Life], played: Sequence[str], *, lua: str, slurm: str
) -> str:
    files, timeline = {}, ["  - {at: 50s, run: scontrol show burst}"]
    for at, life in enumerate(lives):
        start, file = _FIRST_S + at * _APART_S, f"job{at}.sh"
        files[file] = f"#!/bin/bash\n{life.script.partition(chr(10) + 'exit')[0]}\nsleep 20\n"
        if "\nexit" in life.script:
            files[file] += "exit 7\n"
        submit = life.submit.format(file=file)
        timeline.append(f"  - {{at: {start}s, as: alice, run: {json.dumps(submit)}}}")
        for later, what in life.then:
            if what == _RESTART:
                timeline.append(f"  - {{at: {start + later}s, fault: {{restart: slurmctld}}}}")
                continue
            timeline.append(f"  - {{at: {start + later}s, as: root, run: {json.dumps(what)}}}")
    programs = {name: {"runs": "1s"} for name in played}
    conf = {"Directive": directive_of(source)}
    return "\n".join(
        [
            "slurm_conf: {BurstBufferType: burst_buffer/lua}",
            f'lua: {{version: "{lua}", slurm: "{slurm}"}}',
            'nodes: [{name: "n[1-2]", cpus: 4}]',
            'partitions: [{name: debug, nodes: "n[1-2]", default: true}]',
            "users: {alice: 1001}",
            f"burst_buffer_conf: {json.dumps(conf)}",
            f"files: {json.dumps(files)}",
            f"programs: {json.dumps(programs)}",
            "timeline:",
            *timeline,
            "",
        ]
    )


def _treated(drive: BufferDrive) -> Iterator[Treated]:
    submitted = [each for each in drive.result.commands if each.user == "alice"]
    for at, life in enumerate(drive.lives):
        start_us = (_FIRST_S + at * _APART_S) * SECOND
        command = submitted[at] if at < len(submitted) else None
        own = [
            call
            for event, call in zip(_ends(drive.events), drive.calls, strict=True)
            if start_us <= event.time_us < start_us + _APART_S * SECOND
            and call.function != "slurm_bb_pools"
        ]
        parts = []
        if command is not None and command.exit > 0 and not own[1:]:
            parts.append(f"refused: {command.stderr.splitlines()[0] if command.stderr else ''}")
        names = [
            call.function.removeprefix("slurm_bb_") + (f" ({call.rc})" if call.rc else "")
            for call in own
        ]
        parts.append(", ".join(_counted(names)) or "no call")
        yield Treated(
            name=life.name,
            command=command.command if command is not None else "",
            user="alice",
            ruling="; ".join(parts),
        )


def _counted(names: Sequence[str]) -> Iterator[str]:
    """Yield names, and how often those that follow themselves."""
    for name, each in itertools.groupby(names):
        count = len(list(each))
        yield name if count == 1 else f"{count} times {name}"


def _ends(events: Sequence[Event]) -> Iterator[Event]:
    for event in events:
        if event.kind == "script" and event.name.startswith("slurm_bb_") and event.phase == "exit":
            yield event
