"""What input may cost has bounds, each with a message; docs/limits.md has them all."""

import gzip
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from simctl import limits
from simctl.cli import main
from simctl.files import read_bytes
from simctl.limits import HOSTS, MIB, TEXT_BYTES, VALUE_CHARACTERS
from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.status import NOT_HELD, OK, WRONG_INPUT
from simctl.world import World
from tests.cluster import TWO_NODES, run

ROOT = Path(__file__).resolve().parent.parent
CONF = "ClusterName=c\nSlurmctldHost=h\nNodeName=n[1-2] CPUs=2\nPartitionName=p Nodes=ALL\n"


def shown(value: float, name: str) -> str:
    """Return a bound as the page writes it."""
    if name.endswith("_BYTES") or (name.endswith("_CHARACTERS") and value % MIB == 0):
        return f"{int(value) // MIB} MiB"
    return f"{value:g} s" if name.endswith("_S") else f"{value:,}"


@pytest.mark.parametrize("name", [each for each in vars(limits) if each.isupper()])
def test_the_page_has_every_bound(name: str) -> None:
    """docs/limits.md names each by its name, with its value."""
    if name == "MIB":
        return
    page = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
    assert f"| `{name}`: {shown(getattr(limits, name), name)} |" in page


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a command line that is wrong, and return what it says of that."""
    assert main(argv) == WRONG_INPUT
    error = capsys.readouterr().err
    assert "internal error" not in error
    assert "Traceback" not in error
    return error


# Files.

READERS = (
    ("check", "FILE"),
    ("run", "FILE"),
    ("explore", "FILE"),
    ("repl", "FILE"),
    ("repl", "--script", "FILE"),
    ("run", "--swf", "FILE", "--nodes", "4"),
    ("import", "slurm.conf", "FILE"),
    ("import", "sacct", "FILE"),
    ("trace", "show", "FILE"),
    ("trace", "why", "FILE", "1"),
    ("trace", "diff", "FILE", "FILE"),
    ("trace", "assert", "FILE", "{never: x}"),
    ("plugins", "check", "FILE"),
)


@pytest.mark.parametrize("argv", READERS, ids=" ".join)
@pytest.mark.parametrize("kind", ["folder", "fifo", "missing", "junk", "half"])
def test_what_is_no_such_file_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], kind: str
) -> None:
    """Every reader of a file names it, and says why it is no use; nobody waits for a FIFO."""
    path = tmp_path / "given"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
        if "--script" in argv:
            return  # nobody types anything, which is a session as well
    elif kind == "junk":
        path.write_bytes(bytes(range(256)) * 20)
    elif kind == "half":
        path.write_bytes(gzip.compress(b"x" * 5000)[:25])
    assert "given" in told(capsys, *(str(path) if word == "FILE" else word for word in argv))


@pytest.mark.parametrize(
    "argv", [each for each in READERS if each[0] in ("check", "import", "explore", "repl")], ids=str
)
def test_a_text_is_read_up_to_a_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]
) -> None:
    """A gigabyte without a line end is not read."""
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, 1 << 30)
    error = told(capsys, *(str(path) if word == "FILE" else word for word in argv))
    assert f"larger than {limits.SACCT_BYTES // MIB if 'sacct' in argv else 16} MiB" in error


def test_a_device_without_end_is_read_up_to_the_bound() -> None:
    """/dev/zero is as good as any file that is too large."""
    with pytest.raises(OSError, match="larger than 16 MiB"):
        read_bytes("/dev/zero", TEXT_BYTES)


@pytest.mark.parametrize("bound", ["LOG_BYTES", "TRACE_BYTES", "RECORDING_BYTES"])
def test_a_small_packed_file_does_not_become_a_large_one(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
) -> None:
    """Logs, traces and recordings are unpacked up to their bounds, and no further."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b'{"simctl_trace": 1}\n' + b"\n" * 8 * MIB))
    assert path.stat().st_size < 20_000
    trace = tmp_path / "t.jsonl"
    main(["run", str(ROOT / "scenarios/two_nodes.yaml"), "--model=modern", f"--trace={trace}"])
    module, argv = {
        "LOG_BYTES": ("simctl.scenario.swf", ("run", "--swf", str(path), "--nodes", "4")),
        "TRACE_BYTES": ("simctl.kernel.recording", ("trace", "show", str(path))),
        "RECORDING_BYTES": (
            "simctl.testing.conform.real",
            ("trace", "conform", str(trace), str(path)),
        ),
    }[bound]
    monkeypatch.setattr(f"{module}.{bound}", 4 * MIB)
    if bound == "TRACE_BYTES":
        path.write_bytes(gzip.compress(b" " * 8 * MIB))
    capsys.readouterr()
    assert "larger than 4 MiB unpacked, the most that is read" in told(capsys, *argv)


def test_a_line_of_a_trace_has_a_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without line ends is not gathered whole to find that it is no trace."""
    monkeypatch.setattr("simctl.files.LINE_BYTES", MIB)
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"simctl_trace": 1}\n' + b"x" * 3 * MIB)
    assert "line 2 is longer than 1 MiB" in told(capsys, "trace", "show", str(path))


def test_a_log_whose_lines_are_no_jobs_is_given_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --skip-bad as well: what is wrong with millions of lines is not kept."""
    monkeypatch.setattr("simctl.scenario.swf.LOG_MISTAKES", 10)
    path = tmp_path / "log.swf"
    path.write_text("x\n" * 30)
    error = told(capsys, "run", "--swf", str(path), "--nodes", "4", "--skip-bad")
    assert "more than 10 of its lines are no jobs; line 11: expected 18 fields" in error


def test_a_pipe_is_read_as_a_file_and_a_silent_one_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`<(command)` is welcome; whoever never writes is not waited for."""
    reader, writer = os.pipe()
    os.write(writer, b"some text")
    monkeypatch.setattr("simctl.files.SILENCE_S", 0.0)
    with pytest.raises(OSError, match="nothing came through this pipe for 0 s"):
        read_bytes(f"/dev/fd/{reader}")
    os.write(writer, b"some text")
    os.close(writer)
    assert read_bytes(f"/dev/fd/{reader}") == b"some text"
    os.close(reader)


# YAML.

LAUGHS = "".join(
    f"{one}: &{one} [{','.join([f'*{before}'] * 10) if before else 'x'}]\n"
    for before, one in zip(("", *"abcdefghi"), "abcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LAUGHS, "there are more than 500000 values here"),
        ("users: null\n", "missing key `nodes`"),
        ("a: &a [*a]\n", "x.yaml:1:4: an alias stands inside of what it is an alias of"),
        ("a: " + "[" * 100_000, "x.yaml:1:67: lists and mappings are nested too deeply"),
        ("a: " + "{b: " * 1000, "nested too deeply, more than 64 deep"),
        ("- " * 1000, "nested too deeply"),
        ("".join(f"{' ' * deep}-\n" for deep in range(300)), "nested too deeply"),
        ("seed: !!python/object/apply:os.system [ls]\n", "x.yaml:1:7: seed: the tag tag:yaml.org"),
        ('files: {a: "\\ud800"}\n', "x.yaml:1:12: \\ud800 is half of a surrogate pair"),
        ("nodes:\n" + "- {name: n1}\n" * 300, "and 100 more after these"),
        ("nodes: [{name: 'n[1-65536]'}, {name: m}]\n", "more than 65536 nodes"),
        ("nodes: [{name: 'n[1-1000000000]'}]\n", "names 1000000000 hosts; at most 65536"),
        ("nodes: [{name: 'n[1-999][1-999][1-999]'}]\n", "998001 hosts in one element are too many"),
        ("nodes: [{name: 'a[1-60000],b[1-60000]'}]\n", "it names more than 65536 hosts with this"),
    ],
)
def test_yaml_has_bounds_and_is_data(text: str, says: str) -> None:
    """What would fill the memory or the stack, or run, is a mistake with its place."""
    with pytest.raises(ScenarioErrors) as caught:
        read_scenario(text, file="x.yaml")
    assert says in str(caught.value)


def test_values_are_counted_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large text is looked at before it becomes nodes, and stops where there are too many."""
    monkeypatch.setattr("simctl.yaml_text.VALUES", 5000)
    with pytest.raises(ScenarioErrors, match=r"x.yaml:\d+:3: there are more than 5000 values"):
        read_scenario("- a\n" * (1 << 19), file="x.yaml")


def test_partitions_have_a_bound_together() -> None:
    """Twenty times all nodes of a large cluster are more than are remembered."""
    parts = "".join(f"- {{name: p{number}, nodes: ALL}}\n" for number in range(20))
    text = f"nodes: [{{name: 'n[1-65536]'}}]\npartitions:\n{parts}"
    with pytest.raises(ScenarioErrors, match="all partitions together have more than 1000000"):
        read_scenario(text, file="x.yaml")


def test_a_slurm_conf_has_the_bounds_of_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ranges of a milliard, and lines that come to more nodes than a cluster has."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"{CONF}NodeName=x[1-1000000000]\nNodeName=y[1-65535]\n")
    error = told(capsys, "import", "slurm.conf", str(conf))
    assert "names 1000000000 hosts" in error
    assert "more than 65536 nodes" in error


# Commands.


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("sbatch -a 0-1000000000 --wrap=true", "Invalid job array specification"),
        ("sbatch -w n[1-1000000000] --wrap=true", "Invalid node name specified"),
        ("sbatch -x n[1-999][1-999][1-999] --wrap=true", "Invalid node name specified"),
        (f"sbatch -d afterok:{'9' * 5000} --wrap=true", "a number of 5000 digits"),
        (f"scontrol show job {'9' * 5000}", "a number of 5000 digits; one has 1000 at most"),
        (f"squeue -o %{'9' * 5000}i", "a number of 5000 digits"),
        ("scontrol show hostnames n[1-1000000000]", "Invalid range: `1-1000000000'"),
        ("scancel 1_[0-1000000000]", "Invalid job id 1_[0-1000000000]"),
        ("sacct -j 1_[0-1000000000]", "Bad job/step specified"),
        ("scontrol update nodename=n[1-1000000000] state=drain reason=x", "Invalid"),
        ("sinfo -n n[1-1000000000]", "invalid entry for --nodes"),
    ],
)
def test_a_command_refuses_what_is_absurd(command: str, says: str) -> None:
    """In Slurm's words where Slurm has some."""
    ran = run(f'timeline: [{{at: 0s, as: alice, run: "{command}"}}]\n')
    found = ran.result.commands[0]
    assert says in found.stdout + found.stderr


@pytest.mark.parametrize(
    "command",
    ["squeue -o %999999999i", "squeue -O jobid:999999999", "sacct --format=jobid%-999999999"],
)
def test_a_column_has_a_bound(command: str) -> None:
    """A field that would print a gigabyte a line is as wide as a field may be."""
    ran = run(f"timeline: [{{at: 0s, run: sbatch --wrap=true}}, {{at: 0s, run: {command}}}]\n")
    heading = ran.result.commands[1].stdout.splitlines()[0]
    assert len(heading.rstrip("\n")) <= limits.WIDTH + 1


def test_what_a_command_prints_is_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is said that there was more."""
    monkeypatch.setattr("simctl.world.login.OUTPUT_CHARACTERS", 1000)
    ran = run(
        f"programs: {{./a: {{output: '{'x' * 300}'}}}}\n"
        "timeline: [{at: 0s, as: alice, run: srun -n8 ./a}]\n"
    )
    printed = ran.result.commands[0].stdout
    assert printed.endswith("... srun prints more; so much is kept\n")
    assert len(printed) < 1100


def test_all_files_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that prints in a loop ends, and its output says what is lost; a write fails."""
    monkeypatch.setattr("simctl.kernel.disk.FILES_BYTES", 20_000)
    loop = (
        "X=0123456789; for i in 1 2 3 4 5 6 7 8 9 10 11; do X=$X$X; echo $X; done\necho $X > more"
    )
    ran = run(batch(f"#!/bin/bash\n{loop}"))
    printed = ran.world.disk.read("/home/alice/slurm-1.out") or ""
    assert len(printed) < 20_000
    assert "echo: write error: No space left on device" in printed
    disk = ran.world.disk.view("n1", 0)
    with pytest.raises(OSError, match="No space left on device"):
        disk.write("/tmp/x", b"x" * 20_000)
    disk.write("/home/alice/slurm-1.out", b"")
    disk.write("/tmp/x", b"x" * 9_000)
    disk.rename("/tmp/x", "/tmp/y")
    disk.append("/tmp/y", b"x" * 1_000)
    disk.remove("/tmp/y")
    disk.write("/tmp/z", b"x" * 9_500)


# Scripts, and runs that would not end.


def batch(script: str, *more: str) -> str:
    """Return a scenario that submits a script."""
    return (
        f"files:\n  s.sh: |\n{textwrap.indent(script, '    ')}\n"
        "timeline:\n  - {at: 0s, as: alice, run: sbatch s.sh}\n"
    ) + "".join(more)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("X=x; while true; do X=$X$X; done", f"more than {VALUE_CHARACTERS} characters"),
        ("X=x; while true; do X+=$X; done", f"more than {VALUE_CHARACTERS} characters"),
        ('X=x; while true; do true "$X" "$X"; X=$X$X; done', "characters"),
    ],
)
def test_a_script_without_end_is_ended(body: str, says: str) -> None:
    """A variable doubles; of loops that take no time, test_shell.py has more."""
    ran = run(batch(f"#!/bin/bash\n{body}"))
    assert ran.job()[:2] == ("FAILED", "1:0")
    assert says in (ran.world.disk.read("/home/alice/slurm-1.out") or "")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("if true; then " * 50 + "true;" + " fi;" * 50, "nested more than 40 deep"),
        (f"echo {'${A:-' * 50}x{'}' * 50}", "nested more than 40 deep"),
        (f"echo $(({'(' * 30}1{')' * 30}))", "nested more than 25 deep"),
    ],
)
def test_a_script_has_bounds_of_depth(body: str, says: str) -> None:
    """They are told by `simctl check`, with their place."""
    with pytest.raises(ScenarioErrors, match=says):
        read_scenario(TWO_NODES + batch(f"#!/bin/bash\n{body}"), file="x.yaml")


ENDLESS = (
    TWO_NODES + batch("#!/bin/bash\nsbatch s.sh"),
    TWO_NODES + batch("#!/bin/bash\nscontrol requeue $SLURM_JOB_ID\nsleep 100"),
    TWO_NODES + 'timeline: [{at: 0s, run: squeue}, {when: "*", each: true, run: squeue}]\n',
    TWO_NODES + "timeline: [{at: 0s, run: sbatch --begin=9999-12-31 --wrap=true}]\n",
)


@pytest.mark.parametrize("text", ENDLESS)
def test_a_run_without_end_is_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """It is said what happened last, and what would do; the status is 1, and 0 with --until."""
    path = tmp_path / "s.yaml"
    path.write_text(text)
    assert main(["run", str(path), "--quiet", "--max-turns=3000"]) == NOT_HELD
    error = capsys.readouterr().err
    assert "more than 3000 turns were caused" in error
    assert "events:" in error
    assert "--until TIME ends a run at a moment; --max-turns N lets it go on" in error
    if "each" not in text:
        assert main(["run", str(path), "--quiet", "--max-turns=3000", "--until=50us"]) == OK


def test_a_run_that_ran_out_says_so_in_json_and_in_python() -> None:
    """Nothing else may have gone wrong with it."""
    world = World(read_scenario(ENDLESS[0], file="s.yaml"), most_turns=2000)
    result = world.run()
    assert not result.held
    assert result.as_json()["ran_out"]
    assert not result.as_json()["stalled"]
    assert (
        World(read_scenario(TWO_NODES + batch("#!/bin/sh\ntrue"), file="s.yaml")).run().ran_out
        == ()
    )


# What is loaded.


def test_only_the_named_file_is_imported(tmp_path: Path) -> None:
    """Modules that lie beside a scenario, bearing names of ours or of Python's, are left alone."""
    for name in ("yaml", "attrs", "json", "simctl", "sitecustomize", "plugins", "other"):
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r})\n"
        )
    (tmp_path / "mine.py").write_text(
        "from simctl.plugin import SwitchPlugin\n"
        "class Mine(SwitchPlugin):\n    plugin_type = 'switch/mine'\n    plugin_name = 'x'\n"
    )
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        f"{TWO_NODES}plugins: ['./mine.py:Mine']\nslurm_conf: {{SwitchType: switch/mine}}\n"
    )
    simctl = Path(sys.executable).parent / "simctl"
    done = subprocess.run(
        [str(simctl), "run", str(scenario)], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "imported").exists()


def test_a_plugin_has_the_bound_of_a_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of gigabytes is not compiled."""
    path = tmp_path / "large.py"
    path.touch()
    os.truncate(path, TEXT_BYTES + 1)
    assert "large.py is larger than 16 MiB" in told(capsys, "plugins", "check", str(path))


def test_a_cluster_may_have_as_many_nodes_as_a_host_list() -> None:
    """One node less than too many is read."""
    text = f"nodes: [{{name: 'n[1-{HOSTS}]'}}]\npartitions: [{{name: p, nodes: ALL}}]\n"
    assert len(read_scenario(text, file="x.yaml").nodes) == HOSTS


# Where results go.


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("option", ["--trace", "--db"])
def test_a_full_disk_is_told(capsys: pytest.CaptureFixture[str], option: str) -> None:
    """What cannot be written is no fault of simctl's."""
    scenario = str(ROOT / "scenarios/two_nodes.yaml")
    assert told(capsys, "run", scenario, "--quiet", option, "/dev/full")


@pytest.mark.parametrize(
    "argv",
    [
        ("check", "FILE"),
        ("explore", "FILE"),
        ("test", "FILE"),
        ("repl", "FILE"),
        ("trace", "show", "FILE"),
        ("import", "slurm.conf", "FILE"),
        ("import", "slurm.conf", "README.md", "-o", "FILE"),
        ("run", "scenarios/two_nodes.yaml", "--trace", "FILE"),
        ("run", "scenarios/two_nodes.yaml", "--db", "FILE"),
    ],
    ids=" ".join,
)
def test_a_name_that_no_file_can_have_is_told(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]
) -> None:
    """The system refuses to look at it, in whatever is done with it first."""
    assert "File name too long" in told(
        capsys, *("x" * 5000 if word == "FILE" else word for word in argv)
    )


def test_a_pipe_that_nobody_reads_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a trace or a scenario to be written; one that is read is written to."""
    os.mkfifo(tmp_path / "pipe")
    scenario = str(ROOT / "scenarios/two_nodes.yaml")
    error = told(capsys, "run", scenario, "--trace", str(tmp_path / "pipe"))
    assert "--trace: cannot write" in error
    assert "nobody reads this pipe" in error
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    kinds = ("--trace-kinds", "command", "--quiet")
    assert main(["run", scenario, "--trace", str(tmp_path / "pipe"), *kinds]) == OK
    assert os.read(reader, 16) == b'{"simctl_trace":'
    os.close(reader)


@pytest.mark.parametrize("option", ["--until", "--schedule", "--watchdog", "--trace", "--db"])
def test_two_dashes_are_no_value(capsys: pytest.CaptureFixture[str], option: str) -> None:
    """Argparse takes them for the end of the options, even there."""
    with pytest.raises(SystemExit) as end:
        main(["run", "two_nodes", f"{option}=--"])
    assert end.value.code == WRONG_INPUT
    assert f"argument {option}: expected a value, got --" in capsys.readouterr().err


def test_a_closed_stdout_is_no_error() -> None:
    """`simctl trace show FILE | head` ends when head does."""
    simctl = Path(sys.executable).parent / "simctl"
    scenario = str(ROOT / "scenarios/two_nodes.yaml")
    command = f"{simctl} run {scenario} --quiet --trace - | head -c 9 >&2; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0\n", '{"simctl_')
