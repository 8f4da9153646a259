"""What the README quotes is what simctl prints."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from simctl import cli
from simctl.scenario.load import read_scenario
from simctl.world import World


@pytest.fixture
def readme(repository_root: Path) -> str:
    """Return the README's text."""
    return (repository_root / "README.md").read_text()


@pytest.fixture
def quoted_scenario(readme: str) -> str:
    """Return the scenario that the README quotes."""
    match = re.search(r"```yaml\n(.*?)```", readme, re.DOTALL)
    assert match is not None
    return match[1]


def test_the_quoted_scenario_holds_and_gives_the_quoted_trace_line(
    readme: str, quoted_scenario: str
) -> None:
    """The trace line under the scenario is one of its events, to the letter."""
    world = World(read_scenario(quoted_scenario, file="readme.yaml"))
    world.trace.add_sink(world.events.append)
    result = world.run()
    assert result.held
    quoted = re.search(r'^    (\{"seq".*?\})\n\n', readme, re.DOTALL | re.MULTILINE)
    assert quoted is not None
    wanted = json.loads(re.sub(r"\n\s+", "", quoted[1]))
    seen = json.loads(msgspec.json.encode(world.events[wanted["seq"] - 1]))
    assert seen == wanted
    assert list(seen) == list(wanted)


def test_the_quoted_broken_order_is_what_is_printed(
    readme: str,
    quoted_scenario: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each quoted line of the failure stands in the output of the scenario with a wrong order."""
    order = re.search(r"order: \[(.*?)\]", quoted_scenario)
    assert order is not None
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(
        quoted_scenario.replace(order[1], "switch_p_job_fini, switch_p_job_attach")
    )
    assert cli.main(["run", "mine.yaml"]) == cli.NOT_HELD
    captured = capsys.readouterr()
    printed = [line.strip() for line in (captured.out + captured.err).splitlines()]
    block = re.search(r"^    BROKEN.*?\n\n", readme, re.DOTALL | re.MULTILINE)
    assert block is not None
    for line in block[0].strip().splitlines():
        assert line.strip() == "..." or line.strip() in printed


def test_the_quoted_plugin_runs(readme: str, tmp_path: Path) -> None:
    """The plugin in ten lines sets the variable that it promises."""
    match = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert match is not None
    (tmp_path / "hello.py").write_text(match[1])
    text = (
        'nodes: [{name: "n[1-2]", cpus: 1}]\n'
        'partitions: [{name: p, nodes: "n[1-2]", default: true}]\n'
        "users: {alice: 1001}\n"
        'plugins: ["./hello.py:Hello"]\n'
        "slurm_conf: {SwitchType: switch/hello}\n"
        "timeline:\n"
        "  - {at: 0s, as: alice, run: \"srun -N2 sh -c 'echo $HELLO'\", "
        "stdout: 'n2, rank 1 of 2'}\n"
    )
    path = tmp_path / "s.yaml"
    path.write_text(text)
    world = World(read_scenario(text, file=str(path)))
    assert world.run().held
