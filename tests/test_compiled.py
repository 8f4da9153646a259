"""Compiled plugins behave as their twins in Python, and end the process that they would end."""

import copy
import json
import os
import select
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simctl.api.surroundings import OutsideCallError
from simctl.cli import main
from simctl.plugins.compiled import build, classes
from simctl.plugins.compiled.look import layout_of
from simctl.plugins.compiled.process import Zygote
from simctl.status import OK
from tests.compiled_plugins import KEYS, KEYS_18, TWIN, changed, needs_compiler, sanitizers

pytestmark = needs_compiler

SCENARIO = """\
model: {model}
nodes: [{{name: "n[1-2]", cpus: 4}}]
partitions: [{{name: debug, nodes: "n[1-2]", default: true}}]
users: {{alice: 1001}}
plugins: ["{plugin}"]
slurm_conf: {{SwitchType: switch/keys, DebugFlags: Switch}}
files:
  app.sh: |
    #!/bin/sh
    echo "rank $SLURM_PROCID has key $KEYS_KEY in context $KEYS_CONTEXT"
timeline:
  - {{at: 0s, as: alice, run: srun -N2 -n4 -t5 ./app.sh}}
  - {{at: 1s, as: alice, run: srun -N2 -n2 -t5 sleep 20}}
  - {{at: 10s, run: scontrol show switch 2.0}}
  - {{at: 11s, run: scontrol show switch n1}}
"""


def run(folder: Path, plugin: Path | str, *, model: str = "guide", text: str = SCENARIO) -> Path:
    """Run the scenario with a plugin; return its trace."""
    scenario = folder / "s.yaml"
    scenario.write_text(text.format(model=model, plugin=plugin), encoding="utf-8")
    trace = folder / "trace.jsonl"
    main(["run", "--quiet", "--force", "--trace", str(trace), str(scenario)])
    return trace


def events(trace: Path, **wanted: str) -> list[dict[str, Any]]:
    """Return the events of a trace whose fields are as wanted."""
    found = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()[1:]]
    return [each for each in found if all(each.get(key) == wanted[key] for key in wanted)]


@pytest.mark.parametrize(
    ("model", "plugin"), [("guide", KEYS), ("modern", KEYS), ("modern", KEYS_18)]
)
def test_a_compiled_plugin_gives_the_trace_of_its_twin(
    tmp_path: Path, model: str, plugin: Path
) -> None:
    """Byte by byte, but for nothing: state in globals, credentials, nodes, texts, files."""
    compiled = run(tmp_path, plugin, model=model).read_bytes()
    assert compiled == run(tmp_path, TWIN, model=model).read_bytes()
    assert b"switch_p_job_attach" in compiled


def test_a_call_may_be_made_while_another_one_waits(tmp_path: Path) -> None:
    """By another thread of the daemon: in the same process, and in a fork of it."""
    plugin: Any = classes.find(changed(tmp_path, "switch_p_node_init", "sleep(2);"))()
    waits = plugin.switch_p_node_init()
    job = plugin.switch_p_alloc_jobinfo()
    assert plugin.switch_p_build_jobinfo(job, "n[1-2]", 4, 0) == 0
    forked = copy.deepcopy(plugin)
    assert forked.switch_p_build_jobinfo(job, "n[1-2]", 4, 0) == 0
    assert forked.kept()["keys"] == 2
    assert plugin.switch_p_sprint_jobinfo(job, 64) == "key=1"
    assert plugin.kept()["keys"] == 1
    with pytest.raises(OutsideCallError):
        waits.send(None)  # nobody's virtual time passes here
    assert plugin.switch_p_sprint_jobinfo(job, 64) == "key=1"


def test_two_runs_of_a_compiled_plugin_are_the_same_bytes(tmp_path: Path) -> None:
    """Addresses show nowhere."""
    plugin = changed(tmp_path, "switch_p_job_init", 'info("at %p and %p", switch_job, &keys);')
    first = run(tmp_path, plugin).read_bytes()
    assert b"at 0x... and 0x..." in first
    assert run(tmp_path, plugin).read_bytes() == first


CRASHES = {
    "volatile int *nowhere = (int *) 8; *nowhere = 1;": (11, "Segmentation fault at address 0x8"),
    "abort();": (6, "Aborted"),
    "exit(3);": (768, "called exit(3)"),
    "_exit(4);": (1024, "called _exit(4)"),
    'fatal("no switch");': (256, "called exit(1)"),
    "free((void *) &keys);": (6, "Aborted"),
    "extern int deep(int); deep(0);": (11, "Segmentation fault"),
}


@pytest.mark.parametrize("body", CRASHES)
def test_a_crash_ends_the_step_daemon_and_names_the_line(tmp_path: Path, body: str) -> None:
    """In job_init, which runs in the session: the step daemon is gone, and the job does not run."""
    status, told = CRASHES[body]
    top = "int deep(int n) { volatile char r[9999]; r[n % 9] = 1; return deep(n + 1) + r[0]; }"
    trace = run(tmp_path, changed(tmp_path, "switch_p_job_init", body, top=top))
    exits = events(trace, kind="process", name="exit", role="session")
    assert exits
    assert {each["rc"] for each in exits} == {status}
    problem = str(events(trace, name="plugin_error")[0]["args"])
    assert told in problem
    assert "changed.c:" in problem
    assert "switch_p_job_init" in problem
    assert not events(trace, name="switch_p_job_attach")


PLACES = {
    "switch_p_build_jobinfo": "slurmctld",
    "switch_p_node_init": "slurmd",
    "switch_p_job_preinit": "slurmstepd",
    "switch_p_job_attach": "task",
    "switch_p_unpack_jobinfo": "srun",
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("model", ["guide", "modern"])
def test_whoever_runs_the_plugin_ends_and_the_others_go_on(
    tmp_path: Path, name: str, model: str
) -> None:
    """A crash ends one process, with its signal; the run comes to its end."""
    body = "if (switch_job) abort();" if "job" in name else "abort();"
    trace = run(tmp_path, changed(tmp_path, name, body), model=model)
    ended = [each for each in events(trace, name="exit") if each["rc"] == 6]
    assert {each["daemon"] for each in ended} == {PLACES[name]}
    assert events(trace, name="end")[0]["args"]["reason"] in ("done", "stalled")


def test_nothing_is_left_when_simctl_is_killed(tmp_path: Path) -> None:
    """Not even a plugin that loops: the kernel ends all hosts as the lifeline closes."""
    plugin = changed(tmp_path, "switch_p_job_init", 'fputs("here\\n", stderr); for (;;) ;')
    scenario = tmp_path / "s.yaml"
    scenario.write_text(SCENARIO.format(model="guide", plugin=plugin), encoding="utf-8")
    running = subprocess.Popen(
        [sys.executable, "-m", "simctl", "run", str(scenario)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert running.stderr is not None
    for line in running.stderr:
        if line == b"here\n":
            break
    hosts = [os.pidfd_open(pid) for pid in hosts_of(running.pid)]
    assert len(hosts) > 2
    running.kill()
    # Hosts hold the other end of its standard error: it ends as the last of them does.
    assert running.stderr.read() == b""
    running.stderr.close()
    running.wait()
    assert_gone(hosts)


def assert_gone(processes: list[int]) -> None:
    """Hold that processes, given as descriptors, have ended, or end at once."""
    for descriptor in processes:
        ready, _, _ = select.select([descriptor], [], [], 10)
        os.close(descriptor)
        assert ready


def hosts_of(pid: int) -> list[int]:
    """Return the real processes that stand for simulated ones, below the process of a pid."""
    groups = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = each.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        groups[int(each.parent.name)] = (int(fields[1]), int(fields[2]))
    zygotes = [one for one, (parent, group) in groups.items() if parent == pid and group == one]
    return [one for one, (_, group) in groups.items() if group in zygotes]


def test_a_zygote_that_is_closed_takes_its_hosts_along() -> None:
    """Also those that nobody let go of."""
    zygote = Zygote()
    hosts = [zygote.channel.fork() for _ in range(3)]
    processes = [os.pidfd_open(host.real_pid) for host in hosts]
    zygote.close()
    assert_gone(processes)


def test_without_a_compiler_the_error_says_what_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And plugins in Python go on."""
    monkeypatch.setenv("CC", "no-such-compiler")
    run(tmp_path, KEYS)
    assert "need a C compiler, and there is no no-such-compiler" in capsys.readouterr().err
    scenario = tmp_path / "s.yaml"
    scenario.write_text(SCENARIO.format(model="guide", plugin=TWIN), encoding="utf-8")
    assert main(["run", "--quiet", str(scenario)]) == OK


def test_a_session_goes_back_with_a_compiled_plugin(tmp_path: Path) -> None:
    """What the plugin kept is as it was: the third step has the key that it had before."""
    scenario = tmp_path / "s.yaml"
    scenario.write_text(SCENARIO.format(model="guide", plugin=KEYS), encoding="utf-8")
    script = tmp_path / "script"
    script.write_text(
        "run 30s\nsrun -N1 -n1 ./app.sh\nrun 5s\n"
        "back to job_state job=2 state=COMPLETED\nsrun -N1 -n1 ./app.sh\nrun 5s\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "simctl", "repl", str(scenario), "--script", str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.count("rank 0 has key 3 in context 7003.0") == 2, done.stdout + done.stderr


def test_a_loop_is_ended_and_ends_its_daemon(tmp_path: Path) -> None:
    """By the watchdog, which names the function; the other nodes' daemons go the same way."""
    plugin = changed(tmp_path, "switch_p_job_init", "for (;;) ;")
    scenario = tmp_path / "s.yaml"
    scenario.write_text(SCENARIO.format(model="guide", plugin=plugin), encoding="utf-8")
    trace = tmp_path / "trace.jsonl"
    main(["run", "--quiet", "--watchdog", "0.5", "--trace", str(trace), str(scenario)])
    problems = [each["args"] for each in events(trace, name="plugin_error")]
    assert problems
    assert problems[0]["function"] == "switch_p_job_init"
    assert "ended its process: still ran after 0.5 s" in problems[0]["problem"]
    exits = events(trace, kind="process", name="exit", role="session")
    assert {each["rc"] for each in exits} == {9}
    assert all(each["args"] == {"by": "plugin"} for each in exits)


def test_what_a_sanitizer_finds_is_told_as_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the line; the step daemon ends by it."""
    if not sanitizers() or "clang" in build.version():
        pytest.skip("the compiler has no sanitizers, or none in a library of its own")
    monkeypatch.setenv("CFLAGS", "-fsanitize=address")
    body = "volatile char *p = xmalloc(8); p[8] = 1; xfree(p);"
    trace = run(tmp_path, changed(tmp_path, "switch_p_job_init", body))
    problem = str(events(trace, name="plugin_error")[0]["args"])
    told = "AddressSanitizer: heap-buffer-overflow in switch_p_job_init (changed.c:"
    assert told in problem
    assert {each["rc"] for each in events(trace, name="exit", role="session")} == {6}


@pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no gdb")
def test_gdb_stops_in_the_call_that_was_asked_for(tmp_path: Path) -> None:
    """The run says which process to attach to, and goes on as if nothing had been."""
    scenario = tmp_path / "s.yaml"
    scenario.write_text(SCENARIO.format(model="guide", plugin=KEYS), encoding="utf-8")
    running = subprocess.Popen(
        [sys.executable, "-m", "simctl", "run", str(scenario), "--gdb", "switch_p_job_init"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    line = next(each for each in running.stderr if "gdb -p" in each)
    words = shlex.split(line)
    done = subprocess.run(
        [*words, "-batch", "-nx", "-ex", "backtrace 1", "-ex", "delete", "-ex", "detach"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if "ptrace: " in done.stderr:
        running.kill()
        running.communicate()
        pytest.skip("nobody may attach to a process here")
    assert "switch_p_job_init (" in done.stdout
    assert "switch_keys.c:" in done.stdout
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    assert "COMPLETED" in out


@pytest.mark.parametrize(
    ("kind", "size", "name"),
    [
        *(("x", 40, "large"), ("x", 39, None), ("x", 41, None), ("x", 24, None)),
        *(("m", 40, "large"), ("m", 55, "large"), ("m", 39, None), ("m", 56, None)),
    ],
)
def test_a_block_is_told_by_the_fields_of_the_one_structure_of_its_size(
    tmp_path: Path, kind: str, size: int, name: str | None
) -> None:
    """Of malloc only the room is known; where two structures would do, none is named."""
    source = tmp_path / "blocks.c"
    source.write_text(
        "struct large { long field[5]; } one; struct twin { double a, b, c; } two;\n"
        "struct other { char *a, *b, *c; } three;\n",
        encoding="utf-8",
    )
    library = source.with_suffix(".so")
    command = [*shlex.split(build.compiler()), "-g", "-shared", "-o", str(library), str(source)]
    subprocess.run(command, check=True, timeout=60)
    found = layout_of(library).structure(kind, size)
    assert (found and found.name) == name
