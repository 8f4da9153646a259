"""slurmctld dies and starts again: what its files keep, and what becomes of jobs in each model."""

import random

import attrs
import pytest

from simctl.ctld.saved.saved_records import UnsaidFieldError, form_of
from simctl.ctld.state.records import JobRecord
from simctl.orderings.observed import arg
from simctl.reports.text import summary
from simctl.wire.state_files import Header, framed, read_file, write_file
from tests.cluster import run
from tests.crashes import BOTH, launches, states, timeline
from tests.damaged import changed, copied, doubled, dropped, moved, told, without

ELAN = "slurm_conf: {SwitchType: switch/elan}\n"


CRASHED = timeline(
    "0 srun -N2 -n4 sleep 60",
    "1 sbatch -N2 --wrap 'srun sleep 30'",
    "1 sbatch -N1 --dependency=afterok:2 --wrap 'srun sleep 30'",
    "1 sbatch --array=0-2%1 -N1 --wrap 'sleep 5'",
    "10 {crash: slurmctld}",
    "40 {start: slurmctld}",
)


@BOTH
@pytest.mark.parametrize("how", ["crash", "stop"])
def test_a_slurmctld_that_stays_away_need_not_forget_its_jobs(how: str, model: str) -> None:
    """A job was over before it went; rule 64 asks only a slurmctld that is there to the end."""
    ran = run(timeline("0 sbatch --wrap 'srun -n2 true'", f"60 {{{how}: slurmctld}}"), model=model)
    assert states(ran) == {1: "COMPLETED"}
    assert ran.all("slurm_ckpt_free_job", step="1.0")
    assert not [call for call in ran.all("slurm_ckpt_free_job") if not isinstance(call.step, str)]


def test_a_run_does_not_wait_for_a_node_that_still_ends_the_last_one() -> None:
    """Not though the node is told to end the job while the next run ends; rule 46 knows."""
    ran = run(
        "latency: 400ms\n"
        "slurm_conf: {SwitchType: switch/federation, SlurmdTimeout: 15, ReturnToService: 1}\n"
        "programs: {./three: {runs: 3s, exit: 3}}\n"
        + timeline(
            "0 sbatch -n4 --wrap '[ $SLURM_RESTART_COUNT ] && sleep 1.4 && exit 3; srun ./three'",
            "2 sbatch -w n2 --exclusive --wrap 'sleep 200'",
            "3 {cut: [slurmctld, n1], for: 100s}",
            "REQUEST_TERMINATE_JOB+job=1+phase=receive {crash: slurmctld}",
            "400 {start: slurmctld}",
        ),
    )
    over = ran.one("job_state", job=1, args_to="FAILED")
    again = ran.all("REQUEST_TERMINATE_JOB", job=1, phase="send", peer="slurmd@n1")[-1]
    gone = ran.all("MESSAGE_EPILOG_COMPLETE", job=1, phase="receive", peer="slurmd@n1")[-1]
    assert again.seq < over.seq < gone.seq


@BOTH
@pytest.mark.parametrize("again", [True, False])
def test_whoever_waits_for_a_slurmctld_that_gives_up_learns_of_its_end(
    again: bool, model: str
) -> None:
    """Its connections break, as those of one that is killed: nobody waits for ever."""
    ran = run(
        timeline(
            "0 sbatch -N1 --wrap 'srun sleep 20'",
            "10 {hang: switch_p_build_jobinfo, for: 60s}",
            "10 {fail: slurm_ckpt_alloc_job step=2.0}",
            "11 sbatch -N1 --wrap 'srun true'",
            *["500 {start: slurmctld}"] * again,
        ),
        model=model,
    )
    lost = {arg(each, "rpc") for each in ran.all("undeliverable", args_to="slurmctld")}
    assert "REQUEST_STEP_COMPLETE" in lost
    assert not [each for each in ran.result.stalled if "waits for a message" in each]
    assert bool(ran.result.stalled) is not again
    if again:
        assert states(ran) == {1: "COMPLETED", 2: "COMPLETED"}


def test_modern_forgets_what_it_has_not_saved_when_it_gives_up_as_well() -> None:
    """A job is PENDING again that was RUNNING; rule 48 knows of a death without a signal, too."""
    ran = run(
        "options: {state_saves: always}\n"
        + timeline(
            "0 {fail: slurm_ckpt_alloc_job step=1.0}",
            "1 sbatch -N2 --begin=now+9 --wrap 'srun sleep 30'",
            "20 {start: slurmctld}",
        ),
        model="modern",
    )
    assert [each.rc for each in ran.all("exit", role="slurmctld")] == [256, 0]
    changes = [each.args["from"] for each in ran.all("job_state", job=1)]  # type: ignore[index]
    assert changes[:3] == [None, "PENDING", "PENDING"]


@BOTH
def test_who_gives_up_where_saves_are_not_simulated_has_just_saved(model: str) -> None:
    """Nothing comes back from the files of the last stop: job 1 is over, and runs but once."""
    ran = run(
        timeline(
            "0 {fail: slurm_ckpt_alloc_job step=2.0}",
            "1 sbatch --wrap 'sleep 20'",
            "3 {restart: slurmctld}",
            "30 sbatch --wrap 'srun sleep 5'",
            "40 {start: slurmctld}",
        ),
        model=model,
    )
    assert [each.rc for each in ran.all("exit", role="slurmctld")] == [0, 256, 0]
    assert launches(ran, 1) == 1
    assert len([each for each in ran.events if each.name == "slurm_ckpt_free_job"]) == 2
    assert states(ran)[1] == "COMPLETED"
    assert ran.result.lost_jobs == ()


def test_a_death_excuses_nothing_of_a_job_that_was_saved_as_it_was() -> None:
    """In model modern too: only of what slurmctld did anything about after its last save."""
    ran = run(
        timeline(
            "0 sbatch -N1 --wrap 'srun sleep 60'",
            "20 sbatch -N1 --begin=now+3 --wrap 'srun sleep 60'",
            "24 {crash: slurmctld}",
            "30 {start: slurmctld}",
        ),
        model="modern",
    )
    wrong = {"step-complete-once": "it was completed twice"}
    assert told(ran, doubled("switch_p_job_step_complete step=1.0")).items() >= wrong.items()
    changes = [each.args["from"] for each in ran.all("job_state", job=2)]  # type: ignore[index]
    assert changes[:3] == [None, "PENDING", "PENDING"]


@pytest.mark.parametrize(
    ("before", "after", "excused"),
    [
        ("", "job_state job=1", True),
        ("REQUEST_SUBMIT_BATCH_JOB phase=receive", "", False),
    ],
)
def test_a_damaged_file_excuses_tasks_of_arrays_that_were_there(
    before: str, after: str, excused: bool
) -> None:
    """Also those that left their array later; not those of an array that came in later itself."""
    ran = run("timeline: [{at: 0s, as: alice, run: \"sbatch --array=1-2 --wrap 'srun true'\"}]\n")
    array, task = (ran.first("job_state", job=job) for job in (1, 2))
    assert array < task
    damaged = "incomplete_state args.file=job_state"
    found = told(
        ran,
        copied("job_state job=1", name="incomplete_state", args_file="job_state"),
        moved(damaged, before=before, after=after),
        doubled("switch_p_job_step_complete step=2.0"),
    )
    assert found.get("step-complete-once") == (None if excused else "it was completed twice")


@pytest.mark.parametrize(
    ("at_us", "pid", "excused"), [(500, 1, True), (501, 1, False), (500, 99, False)]
)
def test_a_death_excuses_what_slurmctld_did_in_its_last_moment(
    at_us: int, pid: int, excused: bool
) -> None:
    """Rule 49: at 500 us a node leaves COMPLETING, and no message had told it to end anything."""
    ran = run(
        timeline("0 sbatch -N1 --wrap true", "20 {crash: slurmctld}", "22 {start: slurmctld}")
    )
    found = told(
        ran,
        without("REQUEST_TERMINATE_JOB phase=send"),
        changed('node_state args.from="IDLE|COMPLETING"', pid=pid),
        changed("exit role=slurmctld rc=9", time_us=at_us),
    )
    assert ("node-completing" in found) is not excused


def test_a_death_excuses_nothing_that_came_after_it() -> None:
    """Of the job that slurmctld was at either."""
    ran = run(
        timeline(
            "0 sbatch -N1 --wrap 'srun sleep 60'",
            "job_state+job=1+args.to=RUNNING {crash: slurmctld}",
            "30 {start: slurmctld}",
        )
    )
    wrong = {"step-complete-once": "it was completed twice"}
    assert told(ran, doubled("switch_p_job_step_complete step=1.0")).items() >= wrong.items()


def test_a_death_excuses_the_call_that_slurmctld_did_not_come_back_from() -> None:
    """Rule 18: it unpacked a record that it had made anew. What came before has to hold."""
    ran = run(
        timeline(
            "0 sbatch -N1 --wrap 'sleep 60'",
            "0 sbatch -N1 --wrap 'sleep 60'",
            "5 {hang: slurm_ckpt_unpack_job, for: 5s, times: 2}",
            "10 {crash: slurmctld}",
            "11 {start: slurmctld}",
            "18 {crash: slurmctld}",
            "30 {start: slurmctld}",
        )
    )
    _, killed, _ = ran.all("exit", role="slurmctld")
    dead = killed.pid
    (broken_off,) = [
        each
        for each in ran.events
        if (each.name, each.pid, each.job, each.phase)
        == ("slurm_ckpt_unpack_job", dead, 2, "enter")
    ]
    assert killed.time_us - broken_off.time_us == 2_000_000
    wrong = {
        "checkpoint-record-made-in-place": (
            "alloc_job was called in the course of nothing, which submits no job"
        )
    }
    assert told(ran, dropped(f"slurm_ckpt_unpack_job job=1 pid={dead}")) == wrong


def test_who_has_not_heard_that_a_job_is_over_launches_its_script_anew() -> None:
    """Rule 58 goes by the state that was read; a build after the next change still breaks it."""
    ran = run(
        timeline(
            "1 sbatch -N1 -t1 --wrap 'sleep 300'",
            "job_state+state=RUNNING {crash: n1}",
            "job_state+state=COMPLETING {crash: slurmctld}",
            "900 {start: slurmctld}",
            "900 {start: n1}",
        )
    )
    first, again = ran.all("REQUEST_BATCH_JOB_LAUNCH", phase="send", job=1)
    over, known = ran.all("job_state", job=1, args_from="RUNNING")
    assert first.seq < over.seq < again.seq < known.seq
    assert first.pid == over.pid != again.pid == known.pid
    late = moved(
        f"REQUEST_BATCH_JOB_LAUNCH phase=send pid={again.pid}",
        after=f"job_state job=1 args.from=RUNNING pid={again.pid}",
    )
    assert told(ran, late)["running-for-steps"].startswith("REQUEST_BATCH_JOB_LAUNCH while it was ")


@BOTH
def test_what_was_saved_goes_on(model: str) -> None:
    """A running step, a queue, a dependency and an array outlive a crash; nothing runs twice."""
    ran = run(ELAN + CRASHED, model=model)
    assert set(states(ran).values()) == {"COMPLETED"}
    assert len(states(ran)) == 6
    assert [launches(ran, job_id) for job_id in sorted(states(ran))[1:]] == [1] * 5
    (died,) = [each for each in ran.all("exit", role="slurmctld") if each.rc == 9]
    again = ran.all("slurm_ckpt_unpack_job", role="slurmctld")
    assert {each.job for each in again if each.pid != died.pid} >= {1, 2, 3}
    third = next(each for each in ran.result.rows if each.job_id == 3)
    second = next(each for each in ran.result.rows if each.job_id == 2)
    assert third.start_us >= second.end_us


def test_modern_loses_what_came_after_the_last_save() -> None:
    """The job is gone, and its id is given away again (Slurm saves 5 s after a save)."""
    ran = run(
        timeline(
            "1 sbatch -J first --wrap 'sleep 30'",
            "7 sbatch -J lost --wrap 'sleep 30'",
            "9 {crash: slurmctld}",
            "20 {start: slurmctld}",
            "60 sbatch -J second --wrap 'sleep 3'",
        ),
        model="modern",
    )
    assert [row.name for row in ran.result.rows] == ["first", "second"]
    assert [command.stdout for command in ran.result.commands][1:] == [
        "Submitted batch job 2\n"
    ] * 2
    (told,) = ran.all("jobs_lost", role="slurmctld")
    assert told.args == {"jobs": [2]}
    assert ran.result.as_json()["lost_jobs"] == [2]
    assert "note   lost when slurmctld started again: job 2" in summary(ran.result)


def test_modern_starts_a_job_again_whose_start_it_has_forgotten() -> None:
    """Slurmd knows the run: the job is requeued and held, and the node drained."""
    ran = run(
        timeline(
            "1 sbatch --begin=now+6 --wrap 'sleep 3'",
            "REQUEST_BATCH_JOB_LAUNCH+phase=receive {crash: slurmctld}",
            "40 {start: slurmctld}",
            "60 scontrol show job 1",
        ),
        model="modern",
    )
    assert launches(ran, 1) == 1
    assert "launch failed requeued held" in ran.result.commands[1].stdout.replace("_", " ")
    assert set(ran.drained()) == {"n1"}
    assert ran.world.ctld.nodes_by_name["n1"].reason == "Duplicate jobid"


@pytest.mark.parametrize(
    "moment",
    [
        "REQUEST_SUBMIT_BATCH_JOB+phase=receive",
        "job_state+job=1+state=RUNNING",
        "REQUEST_BATCH_JOB_LAUNCH+phase=send",
        "REQUEST_BATCH_JOB_LAUNCH+phase=receive",
        "switch_p_build_jobinfo",
        "switch_p_job_step_complete",
        "job_state+job=1+state=COMPLETED|COMPLETING",
        "REQUEST_TERMINATE_JOB+phase=send",
        "MESSAGE_EPILOG_COMPLETE+phase=receive",
    ],
)
def test_guide_loses_nothing_wherever_it_is_struck(moment: str) -> None:
    """The job ends; if its script never started it does so in a second run at the latest."""
    ran = run(
        ELAN
        + timeline(
            "1 sbatch -N2 --wrap 'srun sleep 20'",
            f"{moment} {{crash: slurmctld}}",
            "90 {start: slurmctld}",
        )
    )
    if "SUBMIT" in moment:
        assert ran.result.commands[0].exit == 1
        assert states(ran) == {}
        return
    assert not ran.result.stalled
    # An srun that cannot create its step fails, and its script with it.
    early = "build" in moment or moment == "REQUEST_BATCH_JOB_LAUNCH+phase=receive"
    assert states(ran) == {1: "FAILED" if early else "COMPLETED"}
    assert launches(ran, 1) == 1
    assert ran.world.ctld.nodes_by_name["n1"].working_base().name == "IDLE"


@BOTH
def test_as_if_saved_keeps_the_last_moment(model: str) -> None:
    """With `saved: true` modern loses nothing either."""
    ran = run(
        timeline(
            "1 sbatch --wrap 'sleep 30'",
            "3 sbatch --wrap 'sleep 30'",
            "4 {crash: slurmctld, saved: true}",
            "10 {start: slurmctld}",
        ),
        model=model,
    )
    assert states(ran) == {1: "COMPLETED", 2: "COMPLETED"}


@BOTH
def test_a_clean_start_forgets_all_and_nodes_abort_what_nobody_knows(model: str) -> None:
    """No job is read; what runs is ended by REQUEST_ABORT_JOB when its node registers."""
    ran = run(
        timeline(
            "1 sbatch -N2 --wrap 'srun sleep 3000'",
            "20 {crash: slurmctld, saved: true}",
            "30 {start: slurmctld, clean: true}",
            "3600 sbatch -N2 --wrap 'sleep 1'",
        ),
        model=model,
    )
    assert [row.state for row in ran.result.rows] == ["COMPLETED"]
    assert {each.peer for each in ran.all("REQUEST_ABORT_JOB", phase="send")} == {
        "slurmd@n1",
        "slurmd@n2",
    }
    restored = ran.all("switch_p_libstate_restore")
    expected = [1, 0] if model == "modern" else [None]
    assert [each.args.get("recover") for each in restored] == expected  # type: ignore[union-attr]
    if model == "modern":
        first, clean = (each.args["dir_name"] for each in restored)  # type: ignore[index]
        assert clean == f"{first}/clean", "there is nothing, for a plugin is not told of recover"


@BOTH
def test_a_stop_saves_and_a_start_goes_on(model: str) -> None:
    """What is stopped in good order loses nothing in either model."""
    ran = run(
        timeline(
            "1 sbatch --wrap 'sleep 30'",
            "2 {stop: slurmctld}",
            "3 squeue",
            "20 {start: slurmctld}",
        ),
        model=model,
    )
    assert states(ran) == {1: "COMPLETED"}
    assert "Unable to contact slurm controller" in ran.stderr(1)


def test_a_slurmctld_that_nobody_starts_is_told() -> None:
    """The run has stalled, and why is said."""
    ran = run(timeline("1 sbatch --wrap 'sleep 3'", "2 {crash: slurmctld}"))
    assert any("nothing is due to start it again" in line for line in ran.result.stalled)


def test_a_start_that_failed_can_be_tried_again() -> None:
    """A plugin's failure is fatal to that start alone; the state is as it was."""
    ran = run(
        ELAN
        + timeline(
            "1 sbatch --wrap 'srun sleep 30'",
            '5 {fail: "switch_p_libstate_restore"}',
            "10 {crash: slurmctld}",
            "20 {start: slurmctld}",
            "30 {start: slurmctld}",
        )
    )
    assert len(ran.result.fatalities) == 1
    assert states(ran) == {1: "COMPLETED"}


def test_saves_are_simulated_only_where_they_can_show() -> None:
    """An ordinary run packs nothing but at its end; `always` packs every time."""
    text = timeline("1 sbatch --wrap 'sleep 30'")
    packs = [
        len(
            run(f"options: {{state_saves: {how}}}\n{text}", model="modern").all(
                "slurm_ckpt_pack_job"
            )
        )
        for how in ("auto", "never", "always")
    ]
    assert packs[0] == packs[1] < packs[2]


def test_a_save_comes_five_seconds_after_the_last_and_every_300() -> None:
    """Slurm's SAVE_MAX_WAIT and PERIODIC_CHECKPOINT (model modern)."""
    ran = run(
        "options: {state_saves: always}\n" + timeline("1 sbatch --wrap 'sleep 400'"),
        model="modern",
    )
    saves = sorted({each.time_us // 1_000_000 for each in ran.all("slurm_ckpt_pack_job", job=1)})
    assert saves[:2] == [5, 300]


def test_a_field_that_nobody_has_said_how_to_save_is_refused() -> None:
    """Whoever adds a field to a record says what becomes of it in a restart."""

    @attrs.define
    class Record:
        known: int = 0
        unsaid: int = 0

    with pytest.raises(UnsaidFieldError, match="unsaid"):
        form_of(Record, "record", as_is="known", rebuilt="")
    with pytest.raises(UnsaidFieldError, match="gone"):
        form_of(Record, "record", as_is="known unsaid gone", rebuilt="")
    assert "job_id" in {each.name for each in attrs.fields(JobRecord)}


HEADER = Header(simctl_state=1, file="job_state", cluster="c", clock_s=0, saved_us=0, zero_s=0)
RECORDS = [b'{"n":%d}' % number for number in range(5)]


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_file_gives_back_what_is_whole(seed: int) -> None:
    """One flipped byte costs one record at most (two if it joins or splits lines), and is told."""
    chance = random.Random(seed)
    data = bytearray(write_file(HEADER, RECORDS))
    first = len(framed(bytes(data.split(b"\n")[0][20:])))  # about the header's length
    place = chance.randrange(first + 20, len(data))
    data[place] ^= 1 << chance.randrange(8)
    read = read_file(bytes(data), "job_state")
    found = [*read.records, *read.beyond]
    assert set(found) <= set(RECORDS)
    assert len(found) >= 3
    assert read.problem


@pytest.mark.parametrize("seed", range(20))
def test_a_file_that_is_cut_off_gives_back_its_beginning(seed: int) -> None:
    """Wherever it ends: the records before, and a word about it."""
    data = write_file(HEADER, RECORDS)
    read = read_file(data[: random.Random(seed).randrange(len(data))], "job_state")
    assert list(read.records) == RECORDS[: len(read.records)]
    assert read.problem
    assert read_file(data, "job_state").problem == ""


def test_what_only_a_checkpoint_plugin_has_changed_is_saved_in_time() -> None:
    """Every operation but ABLE and ERROR asks for a save; what slurmctld knows is as it was."""
    conf = "slurm_conf: {CheckpointType: checkpoint/ompi, JobCheckpointDir: /shared/ckpt}\n"
    ran = run(
        conf
        + timeline(
            "0 salloc -N1 srun -N1 sleep 60",
            "12 scontrol checkpoint disable 1.0",
            "24 scontrol checkpoint able 1.0",
            "28 {crash: slurmctld}",
            "30 {start: slurmctld}",
            "40 scontrol checkpoint able 1.0",
        ),
        model="modern",
    )
    packed = [each.time_us // 1_000_000 for each in ran.all("slurm_ckpt_pack_job", step="1.0")]
    assert 12 in packed
    assert 24 not in packed
    assert [each.stdout for each in ran.result.commands[2:]] == ["No\n", "No\n"]


def test_who_runs_a_forgotten_job_ends_and_who_queues_for_one_waits() -> None:
    """As real ones: tasks are aborted when nodes register; nobody writes to those in the queue."""
    ran = run(
        timeline(
            "4 sbatch -N1 -w n1 --wrap 'sleep 1'",
            "6 salloc -N1 -w n2 srun sleep 50",
            "6 srun -N1 -w n2 sleep 5",
            "7 {crash: slurmctld}",
            "20 {start: slurmctld}",
        ),
        model="modern",
    )
    allocated, queued = ran.result.commands[1:3]
    assert "Relinquishing job allocation 2" in allocated.stderr
    assert "STEP 2.0 ON n2 CANCELLED" in allocated.stderr
    assert "queued and waiting for resources" in queued.stderr
    assert any("`srun -N1 -w n2 sleep 5`" in each for each in ran.result.stalled)
    assert not any("salloc" in each for each in ran.result.stalled)


@pytest.mark.parametrize("sent_before", [0, 1])
def test_model_guide_tells_nodes_again_what_it_died_of(sent_before: int) -> None:
    """Of a suspension, or of its end: the second node never heard, the first minds no repeat."""
    ran = run(
        "timeline:\n"
        "  - {at: 0s, as: alice, run: \"sbatch -N2 --wrap 'srun -N2 sleep 60'\"}\n"
        "  - {at: 10s, run: scontrol suspend 1}\n"
        "  - {at: 20s, run: scontrol resume 1}\n"
        f'  - {{when: "REQUEST_SUSPEND_INT phase=send peer=slurmd@n2", skip: {sent_before}, '
        "fault: {crash: slurmctld}}\n"
        "  - {when: exit role=slurmctld rc=9, fault: {start: slurmctld}}\n"
    )
    for node in ("n1", "n2"):
        heard = ran.all("signal", role="task", node=node, step="1.0")
        assert [arg(each, "signal") for each in heard] == [20, 19, 18]
    assert ran.job()[0] == "COMPLETED"


@BOTH
def test_whatever_a_slurmctld_has_not_read_when_it_dies_is_told(model: str) -> None:
    """All that came since it was at work, one by one; each client learns that no answer comes."""
    ran = run(
        timeline(
            "1 {hang: switch_p_build_jobinfo, for: 60s}",
            "2 srun -n1 true",
            *(f"{at} squeue" for at in (11, 12, 13, 14)),
            "20 {crash: slurmctld}",
            "300 {start: slurmctld}",
        ),
        model=model,
    )
    lost = [arg(each, "rpc") for each in ran.all("undeliverable", args_to="slurmctld")]
    assert lost.count("REQUEST_JOB_INFO") == 4
