"""Whatever a reader is given, it answers, or says what is wrong: no traceback, and no hang."""

import contextlib
import gzip
import io
import json
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import simctl.repl.commands  # noqa: F401 - to import them is to register them
from simctl.cli import main
from simctl.commands.table import COMMANDS
from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern, PatternError
from simctl.repl.registry import COMMANDS as REPL_COMMANDS
from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.status import InputError
from simctl.testing.keywords import selects
from simctl.wire.arrays import parse_array
from simctl.wire.features import ConstraintError, feature_names
from simctl.wire.hostlist import compress, expand
from simctl.wire.past_times import parse_past_moment
from simctl.wire.time_limits import parse_time_limit
from simctl.wire.times import parse_moment
from tests.cluster import TWO_NODES
from tests.hostile import fuzzed, junk, mutated, mutated_bytes, odd

TREE: Final = Path(__file__).resolve().parent.parent
SHIPPED: Final = tuple(
    path.read_text() for path in sorted((TREE / "scenarios").glob("*.yaml")) if path.stat().st_size
)
LONGEST_S: Final = 20.0
"""Processor time that no example takes, on a machine that others use as well."""

RUN: Final = ("--quiet", "--max-turns", "20000", "--until", "2d", "--watchdog", "0")
WORDS: Final = ("simctl: internal error", "Traceback (most recent call last)")


def ends_well(*argv: str) -> int:
    """Run a command line, and see that it ends as it should, in no long time."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    began = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(argv)
        except SystemExit as end:  # what argparse has to say
            status = 2 if end.code else 0
    told = err.getvalue()
    assert status in (0, 1, 2), told
    assert status < 2 or told.strip(), "it says nothing of what is wrong"
    assert not any(word in told for word in WORDS), told
    assert time.process_time() - began < LONGEST_S
    return status


def given_file(name: str, data: str | bytes, *argv: str) -> int:
    """Run a command line of which `FILE` is a file with *data*."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
        return ends_well(*(str(path) if each == "FILE" else each for each in argv))


others: st.SearchStrategy[Any] = (
    odd
    | st.integers(-(2**70), 2**70)
    | st.sampled_from((None, True, 1.5, {}, [], [[]], {"a": "b"}))
)
"""Values of another kind."""

# Scenarios.


@cache
def trees() -> tuple[Any, ...]:
    """Return the shipped scenarios as data."""
    return tuple(yaml.safe_load(text) for text in SHIPPED)


@st.composite
def damaged_trees(draw: st.DrawFn) -> Any:
    """Return the data of a scenario in which some values are others."""
    tree = json.loads(json.dumps(draw(st.sampled_from(trees())), default=str))
    for _ in range(draw(st.integers(1, 3))):
        here, last = tree, None
        for _ in range(draw(st.integers(1, 5))):
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not keys:
                break
            last = (here, draw(st.sampled_from(keys)))
            here = here[last[1]]
            if not isinstance(here, dict | list):
                break
        if last is not None:
            value: st.SearchStrategy[Any] = (
                odd | st.integers() | st.sampled_from(([], {}, None, True, [[]], {"a": "b"}))
            )
            last[0][last[1]] = draw(value | st.just(here))
            if draw(st.booleans()) and isinstance(last[0], dict):
                last[0][draw(odd)] = draw(others)
    return tree


@fuzzed(20)
@given(mutated(*SHIPPED))
def test_no_text_of_a_scenario_breaks_simctl(text: str) -> None:
    """It is checked and run, or its mistakes are told."""
    if given_file("s.yaml", text, "check", "FILE") == 0:
        given_file("s.yaml", text, "run", "FILE", *RUN)


@fuzzed(25)
@given(damaged_trees())
def test_no_value_in_a_scenario_breaks_simctl(tree: Any) -> None:
    """Values of another kind, numbers of any size, and keys there are not."""
    text = yaml.safe_dump(tree, sort_keys=False)
    given_file("s.yaml", text, "run", "FILE", *RUN)


@fuzzed(6)
@given(junk)
def test_no_bytes_break_what_reads_a_file(data: bytes) -> None:
    """Every reader of a file gets the same junk."""
    for argv in (
        ("check", "FILE"),
        ("explore", "FILE"),
        ("run", "--swf", "FILE", "--nodes", "4"),
        ("import", "slurm.conf", "FILE"),
        ("import", "sacct", "FILE"),
        ("repl", "--script", "FILE"),
        ("trace", "show", "FILE"),
        ("trace", "conform", "FILE", "FILE"),
        ("plugins", "check", "FILE"),
    ):
        given_file("some", data, *argv)


# Batch scripts.

SCRIPT: Final = """\
#!/bin/bash
#SBATCH -N2 -n4 --time=10
#SBATCH --job-name "a b"
X=${1:-3}; export Y="$X$((X*2+1))"
trap 'echo bye; exit 3' TERM EXIT
for i in 1 2 "3 4"; do
  if [ "$i" -lt 3 ] && test -n "$Y"; then srun -n1 true & else echo "$i" >> out.txt 2>&1; fi
done
wait
while [ $((X-=1)) -gt 0 ]; do sleep 1 || break; done
set -eu
printf "%s %d\\n" a 3 > $SLURM_JOB_ID.out
exit $?
"""


@fuzzed(20)
@given(mutated(SCRIPT), st.sampled_from(("sbatch s.sh", "sbatch -N1 s.sh a 'b c'")))
def test_no_batch_script_breaks_simctl(script: str, command: str) -> None:
    """One outside of the subset is refused with its line; any other runs to an end."""
    tree = yaml.safe_load(TWO_NODES) | {
        "files": {"s.sh": script},
        "timeline": [{"at": "0s", "as": "alice", "run": command}],
    }
    given_file("s.yaml", yaml.safe_dump(tree), "run", "FILE", *RUN)


# What sites have.

LOG: Final = """\
; Version: 2.2
; MaxNodes: 8
1 0 -1 30 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1
2 10 5 0 1 -1 -1 1 3600 -1 0 2 1 -1 1 1 -1 -1
3 10.5 5 7e3 8 -1 -1 -1 -1 -1 5 2 1 -1 1 1 1 3
"""


@fuzzed(15)
@given(mutated_bytes(LOG.encode(), gzip.compress(LOG.encode(), mtime=0)))
def test_no_log_breaks_a_replay(data: bytes) -> None:
    """A log is replayed, or what is wrong with it is told."""
    given_file("log.swf", data, "run", "--swf", "FILE", "--nodes", "8", "--skip-bad", *RUN)


@fuzzed(20)
@given(mutated(*(path.read_text() for path in sorted((TREE / "tests/site").glob("*.conf")))))
def test_no_slurm_conf_breaks_the_import(text: str) -> None:
    """It is imported, or its mistakes are told; what was imported can be read."""
    given_file("slurm.conf", text, "import", "slurm.conf", "FILE")


BURST_BUFFER_CONF: Final = """\
DefaultPool=wlm_pool
GetSysState=/opt/cray/dw_wlm/default/bin/dw_wlm_cli
AllowUsers=alice,bob
Granularity=16MB
Flags=EnablePersistent,PrivateData
AltPool=other:4GB
StageInTimeout=30
OtherTimeout=300
"""


@fuzzed(15)
@given(mutated(BURST_BUFFER_CONF))
def test_no_burst_buffer_conf_breaks_simctl(text: str) -> None:
    """It stands beside the scenario that names it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "burst_buffer.conf").write_text(text, errors="surrogatepass")
        scenario = Path(folder) / "s.yaml"
        scenario.write_text(
            f"{TWO_NODES}slurm_conf: {{BurstBufferType: burst_buffer/datawarp}}\n"
            "burst_buffer_conf_file: burst_buffer.conf\n"
            "timeline: [{at: 0s, run: scontrol show burst}]\n"
        )
        ends_well("run", str(scenario), *RUN)


SACCT: Final = """\
JobID|Submit|Start|End|State|ExitCode|User|Account|Partition|JobName|Timelimit|AllocCPUS|NodeList
1|2026-11-20T00:00:00|2026-11-20T00:00:01|2026-11-20T00:01:00|COMPLETED|0:0|alice|a|debug|x|01:00:00|4|n[1-2]
1.batch|2026-11-20T00:00:00|2026-11-20T00:00:01|2026-11-20T00:01:00|COMPLETED|0:0|||||||n1
2_[3-5]|2026-11-20T00:00:05|Unknown|Unknown|PENDING|0:0|bob|a|debug|y|UNLIMITED|1|None assigned
3|2026-11-20T00:00:05|2026-11-20T00:10:00|2026-11-20T03:00:00|TIMEOUT|0:15|bob|a|debug|y|1-00:00:00|1|n1
"""


@fuzzed(20)
@given(mutated(SACCT))
def test_nothing_that_sacct_prints_breaks_the_import(text: str) -> None:
    """A scenario comes of it that can be read, or what is wrong is told."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sacct.txt").write_text(text, errors="surrogatepass")
        out = Path(folder) / "s.yaml"
        if ends_well("import", "sacct", str(Path(folder) / "sacct.txt"), "-o", str(out)) == 0:
            assert ends_well("check", str(out)) == 0


# Traces and recordings.


@cache
def trace_of(name: str) -> bytes:
    """Return the trace of a shipped scenario under model modern."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        ends_well("run", str(TREE / "scenarios" / name), "--model", "modern", "--trace", str(path))
        return path.read_bytes()


@st.composite
def damaged_traces(draw: st.DrawFn) -> bytes:
    """Return traces whose lines hold other values, miss some, or come in another order."""
    lines = trace_of("two_nodes.yaml").splitlines()
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(lines) - 1))
        what = draw(st.sampled_from(("value", "drop", "twice", "cut", "move")))
        if what == "value":
            with contextlib.suppress(ValueError, IndexError):
                line = json.loads(lines[place])
                key = draw(st.sampled_from(sorted(line)))
                line[key] = draw(others)
                lines[place] = json.dumps(line).encode()
        elif what == "drop":
            del lines[place]
        elif what == "twice":
            lines.insert(place, lines[place])
        elif what == "cut":
            lines[place] = lines[place][: draw(st.integers(0, len(lines[place])))]
        else:
            lines.append(lines.pop(place))
        if not lines:
            break
    return b"\n".join(lines)


@fuzzed(8)
@given(damaged_traces() | mutated_bytes(gzip.compress(b'{"simctl_trace":1}\n', mtime=0)))
def test_no_trace_breaks_what_reads_traces(data: bytes) -> None:
    """It is shown, compared, asked and held against expectations, or said to be damaged."""
    with tempfile.TemporaryDirectory() as folder:
        bad, good = Path(folder) / "bad", Path(folder) / "good"
        bad.write_bytes(data)
        good.write_bytes(trace_of("two_nodes.yaml"))
        ends_well("trace", "show", str(bad))
        ends_well("trace", "show", str(bad), "*", "job=1", "--kinds", "plugin,state")
        ends_well("trace", "diff", str(bad), str(good))
        ends_well("trace", "why", str(bad), "50")
        ends_well("trace", "why", str(bad), "20", "60")
        ends_well("trace", "assert", str(bad), "{never: x}", "{order: [fork, exec], each: node}")


RECORDINGS: Final = tuple(sorted((TREE / "tests/conformance").glob("s0[12]*/recording.json.gz")))


@st.composite
def damaged_recordings(draw: st.DrawFn) -> bytes:
    """Return recordings in which values are others."""
    events = json.loads(gzip.decompress(draw(st.sampled_from(RECORDINGS)).read_bytes()))
    for _ in range(draw(st.integers(1, 6))):
        event = draw(st.sampled_from(events))
        inside = event["args"] if draw(st.booleans()) and isinstance(event["args"], dict) else event
        keys = sorted(inside) or ["x"]
        inside[draw(st.sampled_from(keys))] = draw(others)
    return json.dumps(events).encode()


@fuzzed(8)
@given(damaged_recordings() | mutated_bytes(gzip.compress(b"[]", mtime=0), b'[{"args":{}}]'))
def test_no_recording_breaks_conform(data: bytes) -> None:
    """A run is held against it, or it is said to be none."""
    with tempfile.TemporaryDirectory() as folder:
        recording, trace = Path(folder) / "r.json", Path(folder) / "t.jsonl"
        recording.write_bytes(data)
        trace.write_bytes(trace_of("two_nodes.yaml"))
        ends_well("trace", "conform", str(trace), str(recording))


# Words on simctl's own command line.

OPTIONS: Final = (
    *("--schedule", "--seed", "--until", "--model", "--watchdog", "--trace-kinds", "--max-turns"),
    *("--trace", "--db"),
)
TOKENS: Final = (
    *("fifo", "random", "pct,depth=3", "random,jitter=200us,calls", "v1.0123456789", "pct"),
    *("5s", "1-00:00:00", "guide", "plugin,state", "0", "-", ""),
)


@fuzzed(15)
@given(st.sampled_from(OPTIONS), mutated(*TOKENS) | odd)
def test_no_option_of_run_breaks_it(option: str, value: str) -> None:
    """Schedules, tokens, times and numbers: what cannot be read is told."""
    if option in ("--trace", "--db"):
        value = f"/nonexistent/{value}"
    ends_well("run", str(TREE / "scenarios/two_nodes.yaml"), "--quiet", f"{option}={value}")


# The session.


@fuzzed(6)
@given(
    st.lists(
        mutated(*(each.example for each in REPL_COMMANDS.values() if each.name != "save")) | odd,
        min_size=1,
        max_size=8,
    )
)
def test_no_line_breaks_a_session(lines: list[str]) -> None:
    """A line that means nothing is told, and the session goes on."""
    typed = "".join(
        f"> {line}\n"
        for line in (one.replace("\r", " ").replace("\n", " ") for one in lines)
        if "save" not in line
    )
    given_file("session.txt", typed + "> quit\n", "repl", "--script", "FILE")


# Slurm's commands.

LINES: Final = (
    "sbatch -N2 -n4 -t 1:00:00 --wrap='sleep 10'",
    "sbatch -a 1-5:2%2 -d afterok:1 --begin=now+1hour --wrap=hostname",
    "sbatch -p debug -w n1 -x n2 --gres=gpu:1 --mem=100M -C 'a&b' -J name --wrap=true",
    "sbatch --signal=B:USR1@60 --requeue --nice=5 --deadline=2026-01-02 -o %j.%a --wrap=true",
    "srun -N1-2 -n4 --ntasks-per-node=2 -m cyclic --multi-prog x.conf",
    "srun --jobid=1 -r 1 -l -K -W 10 --mem-per-cpu=5 --export=ALL,A=b true",
    "salloc -n2 -t 5 --no-shell",
    "scancel -u alice -t PD -n wrap 1_2 1.0 -s KILL",
    "squeue -o '%.18i %9P %j %u %t %M %D %R' -S -i,u -j 1,2 -w n1 -t all -u alice",
    "squeue -O jobid:10,name:.20,state -h --array",
    "sinfo -o '%#N %.6D %t %C' -n n[1-2] -p debug -S +N -t idle,down -N -l",
    "sinfo -O nodelist:10,cpusstate -R",
    "scontrol show job 1_2 -d",
    "scontrol update jobid=1 timelimit=+10 nice=3 partition=debug numnodes=1-2",
    "scontrol update nodename=n[1-2] state=drain reason='a b'",
    "scontrol create reservation=r starttime=now duration=10 nodes=n1 users=alice flags=maint",
    "scontrol show hostnames n[1-3,05],x[1-2][3-4]",
    "scontrol hold 1,2_[1-3]",
    "scontrol checkpoint create 1.0 MaxWait=5",
    "scontrol show config",
    "sacct -a -S 2026-01-01 -E now -o jobid%20,state,elapsed -s F,CD -j 1,2_3 -X -P",
    "sacct --delimiter=; -D -n -b -l -u alice --units=G",
    "srun_cr -N1 true",
)


@fuzzed(12)
@given(st.lists(mutated(*LINES), min_size=3, max_size=12))
def test_no_command_line_breaks_a_command(lines: list[str]) -> None:
    """Each command says what is wrong with its words, and ends."""
    commands = [line for line in lines if line.split(" ", 1)[0] in COMMANDS]
    tree = yaml.safe_load(TWO_NODES) | {
        "files": {"x.conf": "0-1 true\n* false\n"},
        "timeline": [
            {"at": f"{number}s", "as": ("alice", "root")[number % 2], "run": line}
            for number, line in enumerate(("sbatch -n2 --wrap='sleep 30'", *commands))
        ],
    }
    given_file("s.yaml", yaml.safe_dump(tree), "run", "FILE", *RUN)


# Small texts.

_NOW_S: Final = 1_767_225_600
SMALL: Final = (
    (expand, ("n[1-3,05],x[1-2][3-4]", "a,b c")),
    (lambda text: expand(text, tolerant=True), ("n[1-3,05],x[1-2][3-4]", "n[1-", "[")),
    (lambda text: compress(text.split()), ("n1 n2 n3 n05", "a b")),
    (parse_array, ("1-5:2,7%3", "0")),
    (
        lambda text: parse_moment(text, _NOW_S),
        ("2026-01-02T03:04:05", "now+3days", "noon", "010226"),
    ),
    (lambda text: parse_past_moment(text, _NOW_S), ("now-2hours", "0102", "12:30pm", "yesterday")),
    (parse_time_limit, ("1-02:03:04", "30", "UNLIMITED")),
    (parse_duration_us, ("1h30m", "5ms", "1-00:00:00", "3.5")),
    (feature_names, ("a,b,c", "a&b")),
    (lambda text: selects(text, "some name"), ("some and not (name or other)", "a")),
)


@pytest.mark.parametrize("place", range(len(SMALL)))
@fuzzed(60)
@given(st.data())
def test_no_small_text_breaks_its_reader(place: int, data: st.DataObject) -> None:
    """Hosts, arrays, moments, lengths of time, features and selections: read, or refused."""
    read, good = SMALL[place]
    text = data.draw(mutated(*good) | odd)
    with contextlib.suppress(ValueError, DurationError, ConstraintError, InputError):
        read(text)


@cache
def events() -> tuple[Event, ...]:
    """Return events to hold patterns against."""
    lines = trace_of("two_nodes.yaml").splitlines()[1:]
    return tuple(msgspec.json.decode(line, type=Event) for line in lines)


@fuzzed(100)
@given(
    mutated(
        "switch_p_job_attach job=1 step=1.0 task=0 node=n1 rc=0",
        "job_state state=COMPLETED args.reason=* user=alice",
        '*_job_* kind=plugin args.env="[A-Z]*" uid!=0',
    )
)
def test_no_pattern_breaks_what_matches_events(text: str) -> None:
    """A pattern matches events or does not, or cannot be read."""
    try:
        pattern = Pattern.parse(text)
    except PatternError:
        return
    for event in events():
        pattern.matches(event)
