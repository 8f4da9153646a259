"""`simctl swarm`: what it draws, what it notices, and how it tells it."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from simctl.cli import main
from simctl.ctld.state.records import NodeRecord
from simctl.kernel.procs import RunsAs
from simctl.runners.work import CHUNK, LostError
from simctl.scenario.load import read_scenario
from simctl.testing.explore.progress import Progress
from simctl.testing.explore.trial import Broken
from simctl.testing.swarm.draft import fault, run
from simctl.testing.swarm.features import FAULTS
from simctl.testing.swarm.make import draft
from simctl.testing.swarm.rules import RULES, AtRest
from simctl.testing.swarm.runner import EVERY, Plan, Sums, SwarmChunk, SwarmRunner
from simctl.testing.swarm.shrink import Shrinker
from simctl.testing.swarm.trial import run_text
from simctl.world import World

RULES_SAY = {rule.name: rule.says for rule in RULES}
QUIET = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: ALL}]
users: {alice: 1001}
timeline: [{at: 0s, as: alice, run: "sbatch -N2 --wrap 'srun sleep 5'"}]
"""


def test_a_seed_means_the_same_scenario_everywhere() -> None:
    """A failure is known by its seed; this changes only with what is drawn, never by machine."""
    texts = "".join(draft(seed).text() for seed in range(40))
    again = "".join(draft(seed).text() for seed in range(40))
    assert texts == again
    assert hashlib.sha256(texts.encode()).hexdigest()[:8] == "3748a43f"


def test_whatever_is_drawn_is_a_scenario() -> None:
    """Nothing that is drawn is refused, or could be read in two ways."""
    for seed in range(1000, 1040):
        drawn = draft(seed)
        scenario = read_scenario(drawn.text(), file="swarm.yaml")
        assert len(scenario.timeline) == len(drawn.happenings) + len(drawn.tail)


def test_no_message_fault_lies_in_wait_for_the_end() -> None:
    """One that struck the next few messages of a name struck all that cancelled what was left."""
    texts = [each for seed in range(2000, 2200) for each in draft(seed).happenings]
    kinds = ("drop", "duplicate", "delay", "reorder")
    faults = [each for each in texts if any(f"fault: {{{kind}:" in each for kind in kinds)]
    assert any("times: 5" in each for each in faults)
    assert [each for each in faults if ", for: " not in each] == []


def test_a_fault_that_is_left_out_changes_nothing_else() -> None:
    """Kinds are drawn for all, so that a find can be looked at with fewer faults."""
    for seed in range(40):
        drawn, calm = draft(seed), draft(seed, ())
        assert not set(calm.features) & set(FAULTS)
        assert (drawn.conf, drawn.nodes, drawn.files) == (calm.conf, calm.nodes, calm.files)


def test_a_short_swarm_holds() -> None:
    """Random clusters with random faults come to rest, and nothing is lost."""
    result = SwarmRunner(Plan(first_seed=0, runs=16, faults=tuple(FAULTS)), Path()).run_chunk(
        0, 16, stop=False, done=lambda: None
    )
    assert [(find.seed, find.broken) for find in result.finds] == []
    assert result.sums.runs == 16
    seeds = dict(result.digests)
    assert len(result.digests) == 2 * len(seeds)
    assert all((seed, digest) in seeds.items() for seed, digest in result.digests)


def test_runs_that_are_made_twice_come_after_others() -> None:
    """Each seed comes once, and the first of every sixteen a second time."""
    plan = Plan(first_seed=100, runs=40, faults=())
    told = [plan.seed_of(trial) for trial in range(plan.trials)]
    assert [seed for seed, again in told if not again] == list(range(100, 140))
    assert [seed for seed, again in told if again] == [100, 100 + EVERY, 100 + 2 * EVERY]


# Each rule notices what it is there for.


def _lose(world: World) -> None:
    row = world.ctld.ended_rows.pop(1)
    world.ctld.ended_rows[2] = attrs.evolve(row, job_id=2, state="RUNNING")


def _keep(world: World) -> None:
    world.ctld.suspended[1] = None  # type: ignore[assignment]


def _account_twice(world: World) -> None:
    world.ctld.books.jobs *= 2


def _never_end(world: World) -> None:
    command = attrs.evolve(world.shell.results[0], exit=-1)
    world.shell.unended = lambda: [command]  # type: ignore[method-assign]


def _leak_a_cpu(world: World) -> None:
    world.ctld.nodes[0].free.cpus -= 1


def _leave_a_process(world: World) -> None:
    world.procs.add(
        world.hosts["n1"], ppid=1, daemon="task", role="task", uid=1001, runs_as=RunsAs.USER
    )


def _leave_a_thread(world: World) -> None:
    async def body() -> None:
        await world.kernel.park("nothing")

    world.ctld.process.start(body, "left behind")


def _leave_a_file(world: World) -> None:
    world.disk.write("/var/spool/slurmd/job00001/slurm_script", "", host="n1")


def _cut(world: World) -> None:
    world.fabric.cut("n1", "n2")


def _leave_a_program(world: World) -> None:
    world.disk.write("/run/qsnet/prg/7", "1001 1 2", host="n2")


def _leave_a_buffer(world: World) -> None:
    world.site.appliance.store.grant("1", 1 << 30)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("jobs-end", _lose),
        ("records-go", _keep),
        ("accounted-once", _account_twice),
        ("commands-end", _never_end),
        ("nodes-free", _leak_a_cpu),
        ("processes-gone", _leave_a_process),
        ("threads-done", _leave_a_thread),
        ("files-gone", _leave_a_file),
        ("links-whole", _cut),
        ("cards-empty", _leave_a_program),
        ("buffers-free", _leave_a_buffer),
    ],
)
def test_each_rule_at_rest_notices_its_damage(name: str, damage: Callable[[World], None]) -> None:
    """A rule that nothing can break says nothing."""
    world = World(read_scenario(QUIET, file="s.yaml"))
    world.trace.add_sink(world.events.append)
    found: list[list[str]] = []
    rule = next(each for each in RULES if each.name == name)
    on_idle = world.kernel.on_idle

    def look() -> bool:
        if world.running and not found:
            found.append(list(rule.check(AtRest(world))))
            damage(world)
            found.append(list(rule.check(AtRest(world))))
        return on_idle()

    world.kernel.on_idle = look
    world.run()
    assert found[0] == []
    assert found[1]


KILLED = "2m, fault: {crash: stepd 2.0@n1}"
CRASHED = "1m, fault: {crash: n1}", "70s, fault: {start: n1}"


@pytest.mark.parametrize(
    ("faults", "excused"),
    [
        ((KILLED,), True),
        ((*CRASHED, KILLED), True),
        ((KILLED, "3m, fault: {crash: n1}", "4m, fault: {start: n1}"), False),
        (CRASHED, False),
    ],
)
def test_what_a_killed_step_daemon_left_on_a_card_is_excused_until_its_node_crashes(
    faults: tuple[str, ...], excused: bool
) -> None:
    """A crash empties the card and leaves nothing; who is killed after it may leave a program."""
    text = QUIET.partition("timeline")[0] + "slurm_conf: {SwitchType: switch/elan}\ntimeline:\n"
    entries = (
        "58s, as: alice, run: srun -N2 sleep 5",
        "100s, as: alice, run: srun -N2 sleep 300",
        *faults,
        "50m, as: root, run: scontrol update nodename=n1 state=resume",
        "1h, stay: true",
    )
    text += "".join(f"  - {{at: {entry}}}\n" for entry in entries)
    world = World(read_scenario(text, file="s.yaml"))
    world.trace.add_sink(world.events.append)
    world.run()
    rule = next(each for each in RULES if each.name == "cards-empty")
    assert list(rule.check(AtRest(world))) == []
    world.disk.write("/run/qsnet/prg/7", "1001 1 2", host="n1")
    assert bool(list(rule.check(AtRest(world)))) is not excused


def test_what_is_left_after_the_daemons_have_stopped_is_told() -> None:
    """The rules that look at the end: who gave up, what goes on, what a switch has given away."""
    text = (
        (
            "slurm_conf: {SwitchType: switch/elan}\n"
            + QUIET
            + '  - {at: 1s, fault: {raise: "switch_p_node_fini"}}\n'
        )
        .replace("timeline: [", "timeline:\n  - ")
        .replace("'srun sleep 5'\"}]", "'srun sleep 5'\"}")
    )
    world = World(read_scenario(text, file="s.yaml"))
    world.trace.add_sink(world.events.append)
    result = world.run()
    ended = {rule.name: rule for rule in RULES if rule.ended}
    assert set(ended) == {"nobody-fatal", "daemons-stop", "switch-books-empty"}
    for name, rule in ended.items():
        assert list(rule.check(AtRest(world, result))) == [], name
    broken = attrs.evolve(result, fatalities=("slurmctld: gone",))
    assert list(ended["nobody-fatal"].check(AtRest(world, broken))) == ["slurmctld: gone"]
    _leave_a_process(world)
    assert list(ended["daemons-stop"].check(AtRest(world, result)))
    saved = world.disk.view("slurmctld", 0).read("/var/spool/qsw_state")
    one_live = saved[:12] + b"\0\0\0\1" + b"\0\0\0\7" * 5
    world.disk.view("slurmctld", 0).write("/var/spool/qsw_state", one_live)
    assert list(ended["switch-books-empty"].check(AtRest(world, result)))


def test_a_switch_may_have_given_away_what_it_had_when_a_slurmctld_gave_up() -> None:
    """Its file is older: the step that stands in it is over."""
    text = (
        "slurm_conf: {SwitchType: switch/elan}\n"
        + QUIET.replace("timeline: [", "timeline:\n  - ").replace(
            "srun sleep 5'\"}]", "srun sleep 30; srun true'\"}"
        )
        + "  - {at: 10s, fault: {restart: slurmctld, for: 1s}}\n"
        "  - {at: 0s, fault: {raise: slurm_ckpt_alloc_job step=1.1}}\n"
        "  - {at: 100s, fault: {start: slurmctld}}\n"
    )
    world = World(read_scenario(text, file="s.yaml"))
    world.trace.add_sink(world.events.append)
    result = world.run()
    rule = next(rule for rule in RULES if rule.name == "switch-books-empty")
    assert list(rule.check(AtRest(world, result))) == []
    assert list(rule.check(AtRest(world, attrs.evolve(result, fatalities=()))))


# The command.


def test_the_command_tells_what_runs_came_to(capsys: pytest.CaptureFixture[str]) -> None:
    """Runs, jobs, faults, calls and what was never called, in eighty columns."""
    assert main(["swarm", "--seed", "47", "--runs", "1", "--workers", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("1 run, seeds 47 to 47, ")
    assert "plugin functions were called; never called: " in printed.out
    assert max(map(len, printed.out.splitlines())) < 80
    assert main(["swarm", "--seed", "47", "--runs", "1", "--workers", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["runs"], told["broken"], told["found"]) == (1, [], None)


def test_what_is_found_is_made_small_and_can_be_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that forgets to take memory back is found out, by a job or two."""
    give_back = NodeRecord.give_back

    def forgetful(node: NodeRecord, job: object) -> None:
        give_back(node, job)  # type: ignore[arg-type]
        node.free.memory_mb -= 1

    monkeypatch.setattr(NodeRecord, "give_back", forgetful)
    monkeypatch.chdir(tmp_path)
    assert main(["swarm", "--seed", "47", "--runs", "1", "--workers", "1"]) == 1
    printed = capsys.readouterr().out
    assert "BROKEN in 1 run, seeds 47: at rest: nodes-free: " in printed
    repeat = printed.rpartition("to repeat: simctl ")[2].partition("\n")[0].split()
    text = Path(repeat[1]).read_text()
    assert len(read_scenario(text, file="s.yaml").timeline) < 5
    assert main(repeat) == 1
    monkeypatch.setattr(NodeRecord, "give_back", give_back)
    assert main(repeat) == 0
    assert "all that has to hold at rest does" in capsys.readouterr().out


def test_what_is_made_small_is_still_what_was_found() -> None:
    """A held job that nobody can cancel: without the end nobody would try, and nothing be shown."""
    held = run("at: 31s", "salloc -H true", "bob")
    lost = fault("at: 49s", 'drop: "REQUEST_KILL_JOB", times: 5')
    drawn = attrs.evolve(draft(6913), happenings=(held, lost))
    broken = Broken(kind="at rest", text="processes-gone: " + RULES_SAY["processes-gone"])
    small = Shrinker(broken, told=lambda runs, left: None).shrink(drawn)
    assert small is not None
    assert small.draft.happenings == (held, lost)
    assert small.draft.tail


def test_a_run_that_goes_on_and_on_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under first come, first served as well, where no schedule counts turns."""
    monkeypatch.setattr("simctl.testing.swarm.trial.MOST_TURNS", 20)
    tried = run_text(QUIET, "fifo")
    assert [each.kind for each in tried.broken] == ["endless"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runs", "0"], "--runs: expected a whole number from 1"),
        (["--seed", "-1"], "--seed: expected a whole number from 0 to"),
        (["--time", "soon"], "--time: "),
        (["--faults", "crash,flood"], "--faults: expected kinds of crash, "),
        (["--schedule", "random"], "--schedule goes with a SCENARIO"),
        (["two_nodes", "--runs", "3"], "--runs goes without a SCENARIO"),
        (["two_nodes", "--schedule", "sorted"], "schedule"),
        (["none.yaml"], "none.yaml"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a sentence, and status 2."""
    assert main(["swarm", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_scenario_of_a_seed_can_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    """`--show` prints it, and runs nothing."""
    assert main(["swarm", "--seed", "5", "--show"]) == 0
    assert capsys.readouterr().out == draft(5).text()


def test_the_page_has_every_rule_with_what_excuses_it() -> None:
    """docs/swarm.md is read by who is told that one is broken."""
    page = " ".join((Path(__file__).parent.parent / "docs" / "swarm.md").read_text().split())
    for rule in RULES:
        assert f"| `{rule.name}` | {rule.says} | {rule.exceptions} |" in page
    for kind, what in FAULTS.items():
        assert f"| `{kind}` | {what} |" in page


def test_a_swarm_is_stopped_by_ctrl_c_and_tells_what_it_reached(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 130; the chunk that was under way does not count."""

    def count(progress: Progress) -> None:
        progress.runs += 1
        if progress.runs > CHUNK:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "count", count)
    words = ["swarm", "--seed", "40", "--runs", "100000", "--faults", "none", "--workers", "1"]
    assert main(words) == 130
    printed = capsys.readouterr()
    assert printed.out.startswith(
        f"interrupted: this is what was reached\n{CHUNK} runs, seeds 40 to "
    )


# What swarms have found, and is mended.


def test_an_array_is_forgotten_with_the_last_of_its_tasks() -> None:
    """Also if the task that bears the array's id is not the last to go."""
    text = QUIET.replace("-N2 --wrap 'srun sleep 5'", "-a 0-2 --wrap 'sleep $SLURM_ARRAY_TASK_ID'")
    text = "slurm_conf: {MinJobAge: 5}\n" + text
    world = World(read_scenario(text, file="s.yaml"))
    world.run()
    assert (world.ctld.arrays, world.trace.arrays) == ({}, {})


def test_who_asks_for_a_job_that_is_over_is_forgotten_with_it() -> None:
    """A dependency on a job that is over, and not purged, leaves no entry behind."""
    text = QUIET.replace(
        "timeline: [",
        "timeline: [{at: 20s, as: alice, run: sbatch -d afterany:1 --wrap true}, ",
    )
    world = World(read_scenario(text, file="s.yaml"))
    result = world.run()
    assert [row.state for row in result.rows] == ["COMPLETED", "COMPLETED"]
    assert world.ctld.dependents == {}


def test_a_batch_script_is_removed_from_its_node() -> None:
    """With the directory that slurmd made for it, as the script's step daemon ends."""
    world = World(read_scenario(QUIET, file="s.yaml"))
    world.run()
    assert world.disk.view("n1", 0).listdir("/var/spool/slurmd") == ["cred_state"]


def test_a_srun_that_finds_its_options_wrong_unloads_its_plugin() -> None:
    """Two nodes cannot share one gpu alike: srun says so, having loaded the switch plugin."""
    text = QUIET.replace("sbatch -N2 --wrap 'srun sleep 5'", "srun -N2 -G1 true")
    text = text.replace("cpus: 4", 'cpus: 4, gres: "gpu:1"')
    tried = run_text(text, "fifo")
    assert tried.broken == ()
    calls = [event.name for event in tried.ran.events if event.daemon == "srun"]
    assert calls.count("init") == calls.count("fini") == 1


def test_jobs_are_refused_once_all_ids_are_taken() -> None:
    """With EAGAIN, as where MaxJobCount is reached; slurmctld once looked for an id for ever."""
    text = (
        "slurm_conf: {FirstJobId: 1, MaxJobId: 3}\n"
        + QUIET.partition("timeline")[0]
        + 'timeline:\n  - {at: 0s, as: alice, run: "sbatch -a 0-2 --wrap hostname"}\n'
        + '  - {at: 0s, as: alice, run: "sbatch -H --wrap hostname"}\n' * 2
        + '  - {at: 1s, as: alice, run: "sbatch -H --wrap hostname", expect: EAGAIN}\n'
        + "  - {at: 100s, run: scancel -u alice}\n"
    )
    tried = run_text(text, "fifo")
    assert tried.broken == ()
    assert tried.ran.result is not None
    # Tasks that were taken in before have to have ids: they get some beyond the last.
    rows = {row.job_id: row.state for row in tried.ran.result.rows}
    assert rows == dict.fromkeys((1, 4, 5), "COMPLETED") | dict.fromkeys((2, 3), "CANCELLED")


def test_nothing_starts_again_once_the_run_is_over() -> None:
    """A restart upon the last save of all would leave a slurmctld without nodes behind."""
    fault = "  - {when: switch_p_libstate_save, fault: {restart: slurmctld, for: 100s}}\n"
    text = QUIET.replace("timeline: [", "timeline:\n  - ").replace("'\"}]", "'\"}") + fault
    tried = run_text(text, "fifo")
    assert tried.broken == ()
    assert [event.time_us for event in tried.ran.events][-1] < 10**12
    assert len({event.pid for event in tried.ran.events if event.role == "slurmctld"}) == 1


def test_a_clean_start_that_meets_nobody_has_started_nobody() -> None:
    """The next slurmctld restores the state of the switch, and no ordering is broken."""
    faults = ("start: slurmctld, clean: true", "stop: slurmctld", "start: slurmctld")
    lines = "".join(f"  - {{at: {at}s, fault: {{{each}}}}}\n" for at, each in enumerate(faults, 1))
    text = QUIET.replace("timeline: [", "timeline:\n  - ").replace("'\"}]", "'\"}") + lines
    tried = run_text(text, "fifo")
    assert tried.broken == ()
    restores = [e for e in tried.ran.events if e.name == "switch_p_libstate_restore"]
    assert len({event.pid for event in restores}) == 2


def test_who_waits_for_a_job_that_was_purged_is_forgotten_after_a_restart() -> None:
    """The job that it waited for is not there to take the entry along."""
    text = (
        "slurm_conf: {MinJobAge: 5}\n"
        + QUIET.partition("timeline")[0]
        + "timeline:\n"
        + '  - {at: 0s, as: alice, run: "sbatch --wrap hostname"}\n'
        + '  - {at: 0s, as: alice, run: "sbatch -H -d after:1 --wrap hostname"}\n'
        + "  - {at: 100s, fault: {restart: slurmctld}}\n"
        + "  - {at: 200s, run: scontrol release 2}\n"
    )
    tried = run_text(text, "fifo")
    assert tried.broken == ()


def test_an_interconnect_that_takes_nothing_fails_with_an_errno() -> None:
    """On a full disk the bundled switch plugins fail as they may, and raise nothing else."""
    for switch in ("elan", "federation"):
        text = QUIET.replace("timeline: [", "timeline:\n  - ").replace("'\"}]", "'\"}")
        text = f"slurm_conf: {{SwitchType: switch/{switch}}}\n{text}"
        text += "  - {at: 0s, fault: {disk: n1, how: full, for: 3s}}\n"
        tried = run_text(text.replace("at: 0s, as: alice", "at: 1s, as: alice"), "fifo")
        assert tried.ran.result is not None
        assert tried.ran.result.complaints == ()


@pytest.mark.parametrize("failing", [True, False])
def test_a_buffer_that_a_plugin_failed_to_let_go_keeps_its_job(failing: bool) -> None:
    """The job's record waits for it, as slurmctld tells a plugin of an end but once."""
    text = (
        "slurm_conf: {BurstBufferType: burst_buffer/datawarp, MinJobAge: 5}\n"
        + QUIET.partition("timeline")[0]
        + "files:\n  bb.sh: |\n    #!/bin/sh\n    #DW jobdw capacity=1GiB\n"
        + "timeline:\n"
        + "  - {at: 0s, burst_buffer: {functions: {data_in: {runs: 60s}}}}\n"
        + '  - {at: 1s, as: alice, run: "sbatch bb.sh"}\n'
        + "  - {at: 5s, as: alice, run: scancel 1}\n"
    )
    if failing:
        text += "  - {at: 2s, fault: {raise: bb_p_job_cancel}}\n"
    tried = run_text(text, "fifo")
    assert tried.broken == ()
    asked = [event.rc for event in tried.ran.events if event.name == "bb_p_job_test_stage_out"]
    assert (asked[-1] == 1) is not failing


@pytest.mark.parametrize(
    ("faults", "kept"),
    [
        (("20s, fault: {fail: bb_p_load_state}",), True),
        (("20s, fault: {fail: bb_p_load_state, errno: EIO}",), True),
        # It is read whole by the next.
        (
            (
                "20s, fault: {fail: bb_p_load_state}",
                "40s, fault: {restart: slurmctld, for: 1s}",
            ),
            False,
        ),
        # A pass may fail, and takes nothing away.
        (("0.5s, fault: {fail: bb_p_load_state, errno: EIO}",), False),
        ((), False),
    ],
)
def test_a_plugin_that_has_not_read_its_state_keeps_the_jobs_that_have_buffers(
    faults: tuple[str, ...], kept: bool
) -> None:
    """Whatever it answered as slurmctld last started; that excuses no other job."""
    text = (
        "slurm_conf: {BurstBufferType: burst_buffer/datawarp, MinJobAge: 5}\n"
        + QUIET.partition("timeline")[0]
        + "files:\n  bb.sh: |\n    #!/bin/sh\n    #DW jobdw capacity=1GiB\n    true\n"
        + "timeline:\n"
        + '  - {at: 1s, as: alice, run: "sbatch -b now+1hour bb.sh"}\n'
        + '  - {at: 2s, as: alice, run: "sbatch --wrap hostname"}\n'
        + "".join(f"  - {{at: {each}}}\n" for each in faults)
        + "  - {at: 20s, fault: {restart: slurmctld, for: 1s}}\n"
        + "  - {at: 60s, as: alice, run: scancel 1}\n"
    )
    world = World(read_scenario(text, file="s.yaml"))
    world.trace.add_sink(world.events.append)
    world.run()
    rule = next(each for each in RULES if each.name == "records-go")
    assert list(world.ctld.jobs) == ([1] if kept else [])
    assert list(rule.check(AtRest(world))) == []
    left: Any = [
        SimpleNamespace(job_id=7, state="COMPLETED", bb_state="", burst_buffer="#DW swap 1GiB"),
        SimpleNamespace(job_id=8, state="COMPLETED", bb_state="", burst_buffer=""),
    ]
    world.ctld.jobs |= {each.job_id: each for each in left}
    assert len(list(rule.check(AtRest(world)))) == (1 if kept else 2)


def test_modern_leaves_only_buffers_of_jobs_that_another_slurmctld_took_up() -> None:
    """As real Slurm: a stage-out under way is lost; one of a job that came later is still told."""
    text = (
        "model: modern\nslurm_conf: {BurstBufferType: burst_buffer/datawarp}\n"
        "burst_buffer: {pools: {wlm_pool: {capacity: 20GiB}}}\n"
        "files:\n  job: |\n    #!/bin/sh\n    #DW jobdw capacity=4GiB\n    sleep 20\n"
        + QUIET.partition("timeline")[0]
        + "timeline:\n  - {at: 0s, as: alice, run: sbatch job}\n"
        "  - {when: bb_state job=1 args.to=STAGING_OUT, fault: {crash: slurmctld, saved: true}}\n"
        "  - {at: 200s, fault: {start: slurmctld}}\n"
        "  - {at: 300s, as: alice, run: sbatch --wrap hostname}\n"
    )
    world = World(read_scenario(text, file="s.yaml"))
    world.trace.add_sink(world.events.append)
    world.run()
    assert world.site.appliance is not None
    assert set(world.site.appliance.store.buffers) == {"1"}
    rule = next(each for each in RULES if each.name == "buffers-free")
    assert list(rule.check(AtRest(world))) == []
    world.site.appliance.store.grant("2", 1 << 30)
    assert len(list(rule.check(AtRest(world)))) == 1


@pytest.mark.parametrize("full", [True, False])
def test_accounting_may_have_an_array_end_that_slurmctld_forgot(full: bool) -> None:
    """A task whose end could not be saved waits again, and may be cancelled before it runs."""
    text = (
        QUIET.partition("timeline")[0]
        + "timeline:\n"
        + '  - {at: 1s, as: alice, run: "sbatch -a 0-0 --wrap hostname"}\n'
        + "  - {at: 50s, fault: {disk: slurmctld, how: full, for: 1s}}\n" * full
    )
    world = World(read_scenario(text, file="s.yaml"))
    world.trace.add_sink(world.events.append)
    world.run()
    (row,) = world.ctld.rows()
    world.ctld.ended_rows[1] = attrs.evolve(row, state="CANCELLED", start_us=-1)
    rule = next(each for each in RULES if each.name == "accounted-once")
    assert bool(list(rule.check(AtRest(world)))) is not full


def test_runs_that_end_their_workers_leave_what_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was reached is told, and that the rest was not tried; the status is 2, or 1 of finds."""

    def lost(*_: object, **__: object) -> Iterator[SwarmChunk]:
        sums = Sums(runs=8)
        yield SwarmChunk(first=0, last=7, ended=False, sums=sums, finds=(), digests=())
        raise LostError("two worker processes were killed at trials 8 to 15")

    monkeypatch.setattr("simctl.testing.swarm.command.run", lost)
    assert main(["swarm", "--runs", "20", "--workers", "2"]) == 2
    printed = capsys.readouterr()
    assert "8 runs" in printed.out
    assert "simctl: two worker processes were killed at trials 8 to 15" in printed.err
