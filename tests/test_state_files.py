"""Damaged state files, full disks, a real folder: nothing is lost in silence."""

import json
import random
from pathlib import Path

import pytest

from simctl import cli
from tests.cluster import Ran, run
from tests.crashes import BOTH, states, timeline

SAVED = "20 {crash: slurmctld, saved: true}"


def damaged(file: str, how: str, *more: str, model: str) -> Ran:
    """Run jobs over a crash of slurmctld, after which a file is found damaged."""
    return run(
        timeline(
            "1 sbatch --wrap 'sleep 30'",
            "1 sbatch --wrap 'sleep 30'",
            "1 sbatch --dependency=afterok:1 --wrap 'sleep 3'",
            "2 sbatch --array=0-3 --wrap 'sleep 3'",
            SAVED,
            f"25 {{corrupt: {file}, how: {how}}}",
            "30 {start: slurmctld}",
            *more,
        ),
        model=model,
    )


@pytest.mark.parametrize("how", ["truncate", "flip"])
def test_guide_takes_from_the_old_file_what_the_new_one_lacks(how: str) -> None:
    """All jobs are there and end; what was taken from where is told."""
    ran = damaged("job_state", how, model="guide")
    assert set(states(ran).values()) == {"COMPLETED"}
    assert len(states(ran)) == 7
    (told,) = ran.result.damages
    assert "/job_state: " in told
    assert "from job_state.old" in told
    assert "job_state.old" in str(ran.one("incomplete_state").args)


def test_a_step_that_only_the_damaged_file_knew_breaks_no_rule() -> None:
    """Its job goes on; nobody can complete the step, and the orderings know why."""
    ran = run(
        timeline(
            "0 sbatch -N2 --wrap 'srun sleep 20'",
            "0 sbatch --array=1-2 -N2 --wrap 'srun sleep 20'",
            "6 {crash: slurmctld}",
            "7 {corrupt: job_state, how: truncate}",
            "15 {start: slurmctld}",
        ),
        model="guide",
    )
    assert set(states(ran).values()) == {"COMPLETED"}
    assert len(ran.all("switch_p_build_jobinfo")) > len(ran.all("switch_p_job_step_complete"))
    assert ran.result.orderings.broken == ()


@BOTH
def test_what_a_clean_start_loses_after_one_that_died_is_told(model: str) -> None:
    """The slurmctld between had read nothing, so that the jobs were those of the first."""
    ran = run(
        timeline(
            "0 sbatch --wrap 'sleep 20'",
            "6 {crash: slurmctld, saved: true}",
            "7 {corrupt: job_state, how: version}",
            "8 {start: slurmctld}",
            "9 {start: slurmctld, clean: true}",
        ),
        model=model,
    )
    assert ran.result.lost_jobs == (1,)
    assert len(ran.result.fatalities) == 1


@BOTH
@pytest.mark.parametrize("how", ["truncate", "flip"])
def test_an_array_is_there_with_its_tasks_or_not_at_all(how: str, model: str) -> None:
    """What is left of it after a damaged file can be cancelled, and is forgotten as any other."""
    ran = run(
        timeline(
            "0 sbatch --array=0-3%1 --wrap 'sleep 20'",
            "1 sbatch -H --array=0-1 --wrap 'sleep 20'",
            "6 {crash: slurmctld, saved: true}",
            f"7 {{corrupt: job_state, how: {how}}}",
            f"7 {{corrupt: job_state.old, how: {how}}}",
            "15 {start: slurmctld}",
            "40 scancel -u alice",
            "1000 squeue",
        ),
        model=model,
    )
    assert set(states(ran).values()) <= {"COMPLETED", "CANCELLED"}
    assert ran.world.ctld.arrays == {}
    assert ran.world.ctld.jobs == {}


@BOTH
def test_an_array_whose_last_task_is_lost_is_forgotten_though_it_knows_purged_ones(
    model: str,
) -> None:
    """Its record names all its tasks; one that nobody has a record of is none to wait for."""
    ran = run(
        "slurm_conf: {MinJobAge: 5}\n"
        + timeline(
            "0 sbatch --array=0-2%1 --wrap 'sleep 100'",
            "250 {crash: slurmctld, saved: true}",
            "251 {corrupt: job_state, how: flip}",
            "251 {corrupt: job_state.old, how: flip}",
            "255 {start: slurmctld}",
        ),
        model=model,
    )
    assert ran.result.lost_jobs
    assert ran.world.ctld.arrays == {}


def test_modern_stops_at_the_first_damaged_record() -> None:
    """As real Slurm: it goes on with what came before, and says that the state is incomplete."""
    ran = damaged("job_state", "truncate", model="modern")
    assert 0 < len(states(ran)) < 7
    assert "incomplete state" in ran.result.damages[0]


@BOTH
@pytest.mark.parametrize(
    ("file", "how"),
    [
        *(("node_state", "truncate"), ("node_state", "flip")),
        *(("part_state", "truncate"), ("part_state", "flip"), ("resv_state", "flip")),
    ],
)
def test_damage_to_other_files_costs_no_job(file: str, how: str, model: str) -> None:
    """Nodes and partitions are in the configuration as well."""
    ran = damaged(file, how, model=model)
    assert set(states(ran).values()) == {"COMPLETED"}
    assert len(states(ran)) == 7
    assert ran.result.damages


TWO_PARTITIONS = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: a, nodes: "n[1-2]", default: true}, {name: b, nodes: "n[1-2]"}]
users: {alice: {uid: 1001, admin: administrator}}
"""


@BOTH
def test_a_partition_that_only_the_damaged_file_had_is_as_configured(model: str) -> None:
    """The older file has lost it too; a job that waits for it is held against it anew and runs."""
    ran = run(
        timeline(
            "1 sbatch -H -p b,a --wrap true",
            "20 {crash: slurmctld, saved: true}",
            "25 {corrupt: part_state, how: flip}",
            "26 {corrupt: part_state.old, how: flip}",
            "30 {start: slurmctld}",
            "40 scontrol update partitionname=a state=down",
            "41 scontrol release 1",
        ),
        cluster=TWO_PARTITIONS,
        model=model,
    )
    assert "record 2 of 2 is damaged" in ran.result.damages[0]
    assert states(ran) == {1: "COMPLETED"}
    assert ran.result.rows[0].partition == "b"


@BOTH
def test_a_job_whose_partition_is_lost_asks_for_what_is_left(model: str) -> None:
    """Partition c was made by hand: nothing but the damaged file had it."""
    ran = run(
        timeline(
            "1 scontrol create partition=c nodes=n1",
            "2 sbatch -H -p c,b --wrap true",
            "2 sbatch -H -p c --wrap true",
            "20 {crash: slurmctld, saved: true}",
            "25 {corrupt: part_state, how: truncate}",
            "26 {corrupt: part_state.old, how: truncate}",
            "30 {start: slurmctld}",
            "40 scontrol update partitionname=a nodes=n2",
            "40 scontrol update partitionname=b nodes=n2",
            "41 squeue -h -S i -o '%i %P'",
            "42 scontrol release 1 2",
        ),
        cluster=TWO_PARTITIONS,
        model=model,
    )
    assert ran.result.commands[-2].stdout == "1 b\n2 a\n"
    told = [each for each in ran.result.damages if "there is no partition c" in each]
    assert len(told) == 2
    assert states(ran) == {1: "COMPLETED", 2: "COMPLETED"}


@BOTH
@pytest.mark.parametrize(("how", "why"), [("version", "of version 2"), ("foreign", "of cluster")])
def test_state_of_another_version_or_cluster_is_fatal(how: str, why: str, model: str) -> None:
    """Slurmctld does not start empty in silence; it starts clean if it is told to."""
    ran = damaged("job_state", how, "60 {start: slurmctld, clean: true}", model=model)
    (told,) = ran.result.fatalities
    assert why in told
    assert "clean: true" in told
    assert states(ran) == {}


def test_a_plugins_own_file_may_be_damaged() -> None:
    """What comes of it is the plugin's matter: elan refuses it, which is fatal and told."""
    ran = run(
        "slurm_conf: {SwitchType: switch/elan}\n"
        + timeline(
            "1 srun -N2 sleep 60",
            "5 {stop: slurmctld}",
            "10 {corrupt: qsw_state, how: version}",
            "20 {start: slurmctld}",
        )
    )
    assert "its saved state cannot be restored" in ran.result.fatalities[0]
    assert ran.result.missed == ()


def test_a_file_without_a_header_is_fatal_to_modern_and_not_to_guide() -> None:
    """What is cut off in its first line tells neither its version nor its cluster."""
    assert damaged("resv_state", "truncate", model="modern").result.fatalities
    ran = damaged("resv_state", "truncate", model="guide")
    assert not ran.result.fatalities
    assert ran.result.damages


def test_a_damage_that_meets_nothing_is_told() -> None:
    """There is no such file."""
    ran = run(timeline("1 {corrupt: no_such_file, how: flip}", "1 sbatch --wrap 'sleep 1'"))
    assert "No such file" in ran.result.missed[0]


@BOTH
@pytest.mark.parametrize("how", ["full", "read_only"])
def test_saves_fail_while_the_disk_does_and_are_tried_again(how: str, model: str) -> None:
    """The failure is told once; what came meanwhile is saved once there is room."""
    ran = run(
        timeline(
            f"5 {{disk: slurmctld, how: {how}, for: 60s}}",
            "10 sbatch --wrap 'sleep 300'",
            "120 {crash: slurmctld}",
            "130 {start: slurmctld}",
        ),
        model=model,
    )
    told = ran.all("state_save")
    assert len(told) == 1
    assert "Can't save state" in str(told[0].args)
    assert states(ran) == {1: "COMPLETED"}


@BOTH
def test_each_time_that_saves_begin_to_fail_is_told(model: str) -> None:
    """Once each, when one has succeeded in between."""
    ran = run(
        timeline(
            "5 {disk: slurmctld, how: full, for: 60s}",
            "10 sbatch --wrap 'sleep 300'",
            "100 {disk: slurmctld, how: full, for: 60s}",
            "110 sbatch --wrap 'sleep 300'",
            "120 sbatch --wrap 'sleep 300'",
        ),
        model=model,
    )
    assert [each.time_us // 100_000_000 for each in ran.all("state_save")] == [0, 1]


@BOTH
def test_what_is_not_saved_for_want_of_room_is_lost(model: str) -> None:
    """Then model guide can keep no promise either."""
    ran = run(
        timeline(
            "5 {disk: slurmctld, how: full}",
            "10 sbatch --wrap 'sleep 300'",
            "20 {crash: slurmctld}",
            "30 {start: slurmctld}",
        ),
        model=model,
    )
    assert states(ran) == {}


@pytest.mark.parametrize(
    ("later", "kept"), [("", "one\n"), (", for: 3s", "one\nthree\n"), (", for: 15s", "one\n")]
)
def test_of_two_faults_of_a_disk_the_later_one_counts(later: str, kept: str) -> None:
    """The disk is well again at the end of that one, or never: not at the end of the first."""
    ran = run(
        timeline(
            "1 sbatch --wrap 'echo one; sleep 10; echo two; sleep 10; echo three'",
            "5 {disk: shared, how: full, for: 10s}",
            f"10 {{disk: shared, how: full{later}}}",
        )
    )
    assert ran.world.disk.read("/home/alice/slurm-1.out") == kept


def test_output_of_a_script_is_lost_on_a_full_disk_and_the_script_goes_on() -> None:
    """The shared file system fills up while a script writes."""
    ran = run(
        timeline(
            "1 sbatch --wrap 'echo one; sleep 10; echo two; sleep 10; echo three'",
            "5 {disk: shared, how: full, for: 10s}",
        )
    )
    assert ran.world.disk.read("/home/alice/slurm-1.out") == "one\nthree\n"
    assert "No space left" in str(ran.one("output_lost").args)
    assert states(ran) == {1: "COMPLETED"}


def test_a_script_that_cannot_be_spooled_is_not_run() -> None:
    """Slurmd reports it, the job fails, and the node is drained."""
    ran = run(
        timeline("1 {disk: n1, how: read_only}", "2 sbatch -w n1 --no-requeue --wrap 'echo one'")
    )
    assert states(ran) == {1: "FAILED"}
    assert set(ran.drained()) == {"n1"}
    assert "Read-only" in str(ran.one("script_not_spooled").args)


ONE = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001}
"""


@BOTH
def test_a_later_run_goes_on_with_a_folder(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Jobs that waited wait on under their ids; what ran is requeued, as its nodes were booted."""
    first = tmp_path / "first.yaml"
    first.write_text(
        ONE + timeline("0 sbatch -N2 --wrap 'sleep 60'", "1 sbatch -H --wrap 'sleep 3'")
    )
    second = tmp_path / "second.yaml"
    second.write_text(ONE + timeline("10 scontrol release 2", "20 sbatch --wrap 'sleep 3'"))
    folder = str(tmp_path / "state")
    options = ["--model", model, "--state-dir", folder, "--json"]
    cli.main(["run", str(first), "--until", "40s", *options])
    capsys.readouterr()
    assert cli.main(["run", str(second), *options]) == cli.OK
    found = json.loads(capsys.readouterr().out)
    assert [(job["job_id"], job["state"]) for job in found["jobs"]] == [
        (1, "COMPLETED"),
        (2, "COMPLETED"),
        (3, "COMPLETED"),
    ]
    assert found["jobs"][0]["restarts"] == 1
    assert found["jobs"][1]["start_us"] < 20_000_000


@BOTH
@pytest.mark.parametrize(
    ("later_s", "passed_s"), [(0, 40), (39, 40), (40, 40), (41, 41), (600, 600)]
)
def test_a_later_run_begins_at_its_own_time_or_when_the_state_was_saved(
    model: str, later_s: int, passed_s: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever is later: a begin time stays where it was in the calendar."""
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(
        ONE
        + timeline("0 sbatch --begin=now+1000 --wrap 'sleep 3'", "40 {restart: slurmctld, for: 9s}")
    )
    start = "2026-01-01T00:{:02}:{:02}Z".format(*divmod(later_s, 60))
    second.write_text(f"start_time: {start}\n{ONE}timeline: []\n")
    options = ["--model", model, "--state-dir", str(tmp_path / "state"), "--json"]
    cli.main(["run", str(first), "--until", "45s", *options])
    capsys.readouterr()
    assert cli.main(["run", str(second), *options]) == cli.OK
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert job["start_us"] // 1_000_000 == 1000 - passed_s


@BOTH
def test_a_step_on_a_node_that_is_no_longer_configured_ends(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told and accounted for; a job that asks for the node waits until it asks for others."""
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(
        ONE.replace("n[1-2]", "n[1-3]")
        + timeline("0 sbatch -N3 --wrap 'srun sleep 60'", "1 sbatch -w n3 --wrap true")
    )
    second.write_text(ONE + timeline("10 scancel 1", "20 scancel 2"))
    options = ["--model", model, "--state-dir", str(tmp_path / "state"), "--json"]
    cli.main(["run", str(first), "--until", "5s", *options])
    capsys.readouterr()
    assert cli.main(["run", str(second), *options]) == cli.OK
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    jobs = [(job["state"], job["restarts"], job["reason"]) for job in found["jobs"]]
    assert jobs == [("CANCELLED", 1, "PartitionNodeLimit"), ("CANCELLED", 0, "PartitionConfig")]
    assert "there is no node n3" in json.dumps(found)
    assert "job 2 asks for n3" in json.dumps(found)


def test_a_folder_that_holds_no_state_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its name and the reason; nothing of it is touched."""
    scenario = tmp_path / "s.yaml"
    scenario.write_text(ONE)
    (tmp_path / "state" / "inner").mkdir(parents=True)
    command = ["run", str(scenario), "--state-dir"]
    assert cli.main([*command, str(tmp_path / "state")]) == cli.WRONG_INPUT
    assert "is no file" in capsys.readouterr().err
    assert cli.main([*command, str(scenario)]) == cli.WRONG_INPUT
    assert "s.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(8))
def test_hostile_state_is_fatal_or_told_and_nothing_else(seed: int, tmp_path: Path) -> None:
    """Random bytes in place of what was saved: an error, or a run; never a traceback."""
    chance = random.Random(seed)
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        ONE
        + timeline("0 sbatch -N2 --wrap 'srun sleep 60'", "1 sbatch --array=0-3 --wrap 'sleep 3'")
    )
    folder = tmp_path / "state"
    options = ["--state-dir", str(folder), "--quiet"]
    cli.main(["run", str(scenario), "--until", "5s", *options])
    for name in ("job_state", "node_state", "part_state"):
        lines = (folder / name).read_bytes().splitlines()
        if chance.random() < 0.5:
            continue
        place = chance.randrange(1, len(lines))
        record = lines[place].split(b" ", 2)[2]
        words = [b'"n1"', b"1", b"0", b"null", b"[]", b"true", b"-1", b"99999999999999999999"]
        for _ in range(chance.randint(1, 3)):
            record = record.replace(chance.choice(words), chance.choice(words))
        from simctl.wire.state_files import framed  # noqa: PLC0415 - what a hostile hand would do

        lines[place] = framed(record).rstrip(b"\n")
        (folder / name).write_bytes(b"\n".join(lines) + b"\n")
    assert cli.main(["run", str(scenario), *options]) in (cli.OK, cli.NOT_HELD)
