"""burst_buffer/generic in whole runs: what its scripts are called with, and what fails."""

from pathlib import Path

import pytest

from tests.cluster import Ran, run

GIB = 1 << 30
SCRIPTS = {
    "GetSysState": "/bb/state",
    "StartStageIn": "/bb/in",
    "StopStageIn": "/bb/stop_in",
    "StartStageOut": "/bb/out",
    "StopStageOut": "/bb/stop_out",
}
CONF = "slurm_conf: {BurstBufferType: burst_buffer/generic, AccountingStorageTRES: bb/generic}\n"
JOB = """\
files:
  job.sh: |
    #!/bin/sh
    #SBATCH -N1
    #BB size=10G
    #BB stage_in source=/lus/in
    sleep 20
  big.sh: |
    #!/bin/sh
    #BB size=60G
    sleep 20
"""
COMMENTS = ["#SBATCH -N1", "#BB size=10G", "#BB stage_in source=/lus/in"]
WORKING = ["start_stage_in", "stop_stage_in", "start_stage_out", "stop_stage_out"]


def ran(*lines: str, conf: str = "", more: str = "", model: str = "guide", **keys: str) -> Ran:
    """Run a timeline of entries; *keys* are those of burst_buffer.conf beside the scripts."""
    given = {**SCRIPTS, "Granularity": "1GiB", **keys}
    pairs = ", ".join(f"{key}: {value}" for key, value in given.items() if value)
    timeline = "timeline:\n" + "".join(f"  - {{{line}}}\n" for line in lines)
    text = f"{conf or CONF}burst_buffer_conf: {{{pairs}}}\n{JOB}{more}{timeline}"
    return run(text, model=model)


def submitted(at: int = 1, user: str = "alice", command: str = "sbatch job.sh") -> str:
    """Return an entry of the timeline: somebody submits a job."""
    return f'at: {at}s, as: {user}, run: "{command}"'


def states(run: Ran, job: int = 1) -> list[str]:
    """Return the states that a job's buffer went through."""
    return [event.args["to"] for event in run.all("bb_state", job=job)]  # type: ignore[index]


def argv(run: Ran, name: str, job: int = 1) -> list[list[str]]:
    """Return what each call of a script had as arguments."""
    return [event.args["argv"] for event in run.all(name, kind="script", job=job)]  # type: ignore[index]


def moment(run: Ran, state: str, job: int = 1) -> float:
    """Return when a job's buffer came into a state, in seconds."""
    events = run.all("bb_state", job=job, args_to=state)
    return events[0].time_us / 1e6


def shown(run: Ran, place: int) -> str:
    """Return what a command of the timeline printed."""
    return run.result.commands[place].stdout


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_job_is_staged_in_runs_and_is_staged_out(model: str) -> None:
    """Nobody waits for the scripts: passes and the agent find out how far they are."""
    found = ran(submitted(), model=model)
    assert states(found) == ["STAGING_IN", "STAGED_IN", "RUNNING", "STAGING_OUT", "STAGED_OUT"]
    order = [
        event.name
        for event in found.all(job=1)
        if event.name in ("bb_p_job_begin", "bb_p_job_start_stage_out", *WORKING)
    ]
    assert order == [
        "start_stage_in",
        "bb_p_job_begin",
        "bb_p_job_start_stage_out",
        "start_stage_out",
    ]
    assert found.job()[:2] == ("COMPLETED", "0:0")
    assert found.result.complaints == ()
    answers = [event.rc for event in found.all("bb_p_job_test_stage_in")]
    assert answers[0] == -1
    assert answers[-1] == 1
    assert found.all("bb_p_job_test_stage_out")[-1].rc == 1


def test_scripts_are_called_with_the_job_and_the_comments_of_its_script() -> None:
    """Job, uid, bytes; then a whole line each, but for the one of `#!`."""
    found = ran(submitted())
    own = ["1", "1001", str(10 * GIB), *COMMENTS]
    assert argv(found, "start_stage_in") == [["start_stage_in", *own]]
    assert argv(found, "start_stage_out") == [["start_stage_out", *own]]
    assert all(event.uid == 64030 for event in found.all(kind="script"))
    asked = {tuple(event.args["argv"]) for event in found.all("get_sys")}  # type: ignore[index]
    assert ("get_sys",) in asked
    assert asked <= {("get_sys",), ("get_job", "1")}


def test_the_job_s_space_is_its_tres_and_is_shown() -> None:
    """In MB of bb/generic; `scontrol show burst` has sizes of their own."""
    found = ran(submitted(), "at: 40s, run: scontrol show burst", DenyUsers="bob")
    counts = [event.args["tres_cnt"] for event in found.all("bb_p_job_set_tres_cnt")]  # type: ignore[index]
    assert counts == [{"bb/generic": 10240}] * 2
    text = shown(found, 1)
    assert "Name=generic DefaultPool=(null) Granularity=1GiB TotalSpace=1TiB" in text
    assert "Size=10GiB State=running UserID=alice(1001)" in text
    assert "DenyUsers=bob" in text
    assert "StopStageOut=/bb/stop_out" in text


def test_a_begun_megabyte_of_a_job_s_space_counts_whole() -> None:
    """In its TRES, where the store gives out less than a megabyte at a time."""
    found = ran(submitted(command="sbatch --bb=size=1537k --wrap true"), Granularity="1k")
    counts = [event.args["tres_cnt"] for event in found.all("bb_p_job_set_tres_cnt")]  # type: ignore[index]
    assert counts == [{"bb/generic": 2}] * 2


def test_without_a_size_there_is_no_buffer() -> None:
    """No script is run for the job, and no function of the plugin keeps it."""
    found = ran(submitted(command="sbatch --wrap hostname"), submitted(2, command="srun true"))
    assert [found.job(job)[0] for job in (1, 2)] == ["COMPLETED", "COMPLETED"]
    assert found.all("bb_state") == []
    assert {event.rc for event in found.all("bb_p_job_test_stage_in")} == {1}


def test_a_job_without_a_batch_script_has_nothing_to_stage() -> None:
    """It has its space at once, and its data are where they belong at its end."""
    found = ran(submitted(command="srun --bb=size=2G sleep 5"))
    assert states(found) == ["STAGED_IN", "RUNNING", "STAGED_OUT"]
    assert found.job()[0] == "COMPLETED"
    assert [name for name in WORKING if found.all(name)] == []


@pytest.mark.parametrize("lacking", ["StopStageIn", "GetSysState"])
def test_slurmctld_does_not_start_without_one_of_the_scripts(lacking: str) -> None:
    """The log says which."""
    found = ran(submitted(), **{lacking: ""})
    assert found.result.fatalities
    texts = [event.args["text"] for event in found.all("plugin_log")]  # type: ignore[index]
    assert texts == [f"burst_buffer.conf lacks {lacking}; burst_buffer/generic needs it"]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"DenyUsers": "'alice,bob'"}, "DenyUsers of burst_buffer.conf names them"),
        ({"AllowUsers": "bob"}, "AllowUsers of burst_buffer.conf does not name them"),
    ],
)
def test_who_may_not_use_burst_buffers_is_refused(keys: dict[str, str], text: str) -> None:
    """With an error of its own; who asks for none may submit."""
    found = ran(
        f"{submitted()}, expect: ESLURM_BURST_BUFFER_PERMISSION",
        submitted(2, command="sbatch --wrap hostname"),
        **keys,
    )
    assert found.result.held
    assert text in found.stderr()
    assert found.job()[0] == "COMPLETED"


def test_who_may_use_burst_buffers_is_admitted() -> None:
    """AllowUsers names alice."""
    assert ran(submitted(), AllowUsers="alice").job()[0] == "COMPLETED"


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("size=-5G", "ESLURM_BURST_BUFFER_LIMIT"),
        ("size=much", "ESLURM_INVALID_BURST_BUFFER_REQUEST"),
    ],
)
def test_what_is_no_size_is_refused_at_submission(spec: str, error: str) -> None:
    """No job comes of it."""
    found = ran(f"{submitted(command=f'srun --bb={spec} true')}, expect: {error}")
    assert found.result.held
    assert found.result.rows == ()


def small(more: str = "") -> str:
    """Return an appliance of 100 GiB."""
    return f"burst_buffer: {{pools: {{wlm_pool: {{capacity: 100GiB}}}}{more}}}\n"


def test_two_jobs_that_do_not_fit_together_follow_each_other() -> None:
    """The second is staged in once the first is staged out."""
    found = ran(
        submitted(command="sbatch big.sh"), submitted(2, "bob", "sbatch big.sh"), more=small()
    )
    assert states(found, 2) == ["STAGING_IN", "STAGED_IN", "RUNNING", "STAGING_OUT", "STAGED_OUT"]
    assert moment(found, "STAGING_IN", 2) >= moment(found, "STAGED_OUT", 1)
    assert found.job(2)[0] == "COMPLETED"


def test_two_jobs_that_fit_together_are_staged_in_together() -> None:
    """Nobody waits."""
    found = ran(submitted(), submitted(2, "bob"), more=small())
    assert moment(found, "STAGING_IN", 2) < moment(found, "STAGED_IN", 1)


def test_a_job_larger_than_the_store_waits_for_ever_and_keeps_nobody_back() -> None:
    """It is taken in, for the store may grow; the log tells."""
    found = ran(
        submitted(command="sbatch --bb=size=200G --wrap hostname"),
        submitted(2),
        submitted(3, "bob"),
        "at: 400s, run: scancel 1",
        more=small(),
    )
    assert found.job(1) == ("CANCELLED", "0:0", "BurstBufferResources")
    assert states(found, 1) == []
    assert [found.job(job)[0] for job in (2, 3)] == ["COMPLETED", "COMPLETED"]
    texts = [event.args["text"] for event in found.all("plugin_log")]  # type: ignore[index]
    assert "more is asked for than there is" in texts


def test_space_that_comes_back_is_not_kept_for_who_never_fits() -> None:
    """Job 4 waits behind a job that waits for nodes, and job 5 for more than there is."""
    found = ran(
        submitted(0, "bob", "sbatch -N2 -t 30 --exclusive --wrap 'sleep 600'"),
        submitted(command="sbatch --nice=100 -N2 -t 10 big.sh"),
        submitted(2, "bob", "sbatch --nice=100 -N2 -t 30 --wrap 'sleep 10'"),
        submitted(3, command="sbatch --nice=100 -N2 -t 10 big.sh"),
        submitted(61, command="sbatch -t 5 --bb=size=200G --wrap hostname"),
        "at: 65s, run: scancel 2",
        "at: 70s, run: scancel 5",
        more=small(),
    )
    assert 65 < moment(found, "STAGING_IN", 4) < 70


def test_a_store_that_grows_takes_what_was_too_large() -> None:
    """How large it is counts as it was told last."""
    found = ran(
        submitted(command="sbatch --bb=size=200G --wrap hostname"),
        "at: 100s, burst_buffer: {pools: {wlm_pool: {capacity: 1TiB}}}",
        more=small(),
    )
    assert found.job()[0] == "COMPLETED"
    assert moment(found, "STAGING_IN") >= 100


@pytest.mark.parametrize("model", ["guide", "modern"])
def test_a_stage_in_that_takes_too_long_is_stopped_and_its_job_held(model: str) -> None:
    """Released, it is staged in anew at once: the store has dropped what there was."""
    found = ran(
        submitted(),
        "at: 100s, run: squeue",
        "at: 101s, run: scontrol show burst",
        "at: 200s, run: scontrol release 1",
        more="burst_buffer: {functions: {start_stage_in: [{runs: 1d}, {runs: 5s}]}}\n",
        model=model,
        StageInTimeout="60",
    )
    assert argv(found, "stop_stage_in") == [["stop_stage_in", "1"]]
    assert found.one("stop_stage_in").time_us in range(61_000_000, 61_100_000)
    assert "Burst buffer stage-in timeout" in shown(found, 1)
    assert "UsedSpace=0" in shown(found, 2)
    assert states(found)[:4] == ["STAGING_IN", "PENDING", "STAGING_IN", "STAGED_IN"]
    again = found.all("bb_state", job=1, args_to="STAGING_IN")[1]
    assert again.time_us in range(200_000_000, 240_000_000)
    assert found.job()[0] == "COMPLETED"


def test_a_stage_in_that_fails_is_found_out_by_its_time() -> None:
    """Nobody hears of the script's status: the buffer just never is staged-in."""
    found = ran(
        "at: 0s, fault: {fail: start_stage_in job=1}",
        submitted(),
        "at: 300s, run: squeue",
        "at: 301s, run: scancel 1",
        StageInTimeout="120",
    )
    assert "Burst buffer stage-in timeout" in shown(found, 1)
    assert states(found) == ["STAGING_IN", "PENDING"]
    assert found.job()[0] == "CANCELLED"


def test_a_stage_out_that_takes_too_long_is_stopped() -> None:
    """The job's record goes once the store has dropped the buffer."""
    found = ran(
        submitted(),
        more="burst_buffer: {functions: {start_stage_out: {runs: 2d}}}\n",
        StageOutTimeout="600",
    )
    assert argv(found, "stop_stage_out") == [["stop_stage_out", "1"]]
    assert states(found)[-2:] == ["STAGING_OUT", "STAGED_OUT"]
    assert 600 <= moment(found, "STAGED_OUT") - moment(found, "STAGING_OUT") < 700
    assert found.all("bb_p_job_test_stage_out")[0].rc == 0
    assert found.all("bb_p_job_test_stage_out")[-1].rc == 1


def test_a_job_that_is_cancelled_while_it_is_staged_in_gives_its_space_back() -> None:
    """StopStageOut is told of it, with no bytes, and the comments of the script.

    The store takes its time to drop it, and is asked until it has.
    """
    found = ran(
        submitted(),
        "at: 5s, as: alice, run: scancel 1",
        "at: 20s, run: scontrol show burst",
        "at: 70s, run: scontrol show burst",
        more="burst_buffer: {functions: {start_stage_in: {runs: 1h}, "
        "stop_stage_out: {runs: 40s}}}\n",
    )
    assert argv(found, "stop_stage_out") == [["stop_stage_out", "1", "1001", "0", *COMMENTS]]
    assert states(found) == ["STAGING_IN", "STAGED_OUT"]
    assert "UsedSpace=10GiB" in shown(found, 2)
    assert "UsedSpace=0" in shown(found, 3)
    assert found.job()[0] == "CANCELLED"


def test_what_nobody_gave_space_needs_no_script_to_be_cancelled() -> None:
    """There is nothing to stop."""
    found = ran(submitted(command="sbatch -H job.sh"), "at: 5s, as: alice, run: scancel 1")
    assert [name for name in WORKING if found.all(name)] == []


def test_hurry_ends_a_stage_out() -> None:
    """Whoever cancels with --hurry gives up the results."""
    found = ran(
        submitted(),
        "at: 100s, as: alice, run: scancel --hurry 1",
        more="burst_buffer: {functions: {start_stage_out: {runs: 1h}}}\n",
    )
    assert states(found)[-2:] == ["STAGING_OUT", "STAGED_OUT"]
    assert argv(found, "stop_stage_out") == [["stop_stage_out", "1", "1001", "0", *COMMENTS]]
    assert found.job()[0] == "COMPLETED"


def test_a_reconfiguration_reads_the_file_again() -> None:
    """Not before: what was written meanwhile does not count."""
    found = ran(
        "at: 1s, burst_buffer_conf: {DenyUsers: alice}",
        submitted(2),
        "at: 3s, run: scontrol reconfigure",
        f"{submitted(4)}, expect: ESLURM_BURST_BUFFER_PERMISSION",
    )
    assert found.result.held
    assert found.one("bb_p_reconfig").rc == 0
    assert [row.state for row in found.result.rows] == ["COMPLETED"]


def test_a_reconfiguration_that_lacks_a_script_changes_nothing() -> None:
    """What stood there before counts."""
    found = ran(
        "at: 1s, burst_buffer_conf: {StopStageIn: }",
        "at: 3s, run: scontrol reconfigure",
        submitted(4),
    )
    assert found.one("bb_p_reconfig").rc != 0
    assert found.job()[0] == "COMPLETED"


def test_a_store_that_does_not_answer_keeps_jobs_waiting() -> None:
    """Each failure is in the log; once it answers again, all goes on."""
    found = ran(
        submitted(10),
        "at: 100s, burst_buffer: {up: true}",
        more="burst_buffer: {up: false}\n",
    )
    assert found.job()[0] == "COMPLETED"
    assert moment(found, "STAGING_IN") >= 100
    first = found.all("bb_p_load_state")[0]
    assert (first.args["init_config"], first.rc) == (True, -1)  # type: ignore[index]


def test_a_store_that_takes_too_long_to_answer_is_given_up() -> None:
    """Two seconds are enough."""
    found = ran(
        submitted(),
        "at: 200s, run: scancel 1",
        more="burst_buffer: {functions: {get_sys: {runs: 5s}}}\n",
    )
    texts = [event.args["text"] for event in found.all("plugin_log")]  # type: ignore[index]
    assert texts[0] == "/bb/state get_sys: no answer in time"
    assert found.all("bb_state") == []


def test_who_starts_later_gives_way_while_it_is_staged_in() -> None:
    """The candidate is expected to start sooner, and lacks the space."""
    found = ran(
        submitted(0, "bob", "sbatch -N2 -t 30 --wrap 'sleep 600'"),
        submitted(1, "bob", "sbatch --nice=100 big.sh"),
        submitted(40, "alice", "sbatch big.sh"),
        more=small(", functions: {start_stage_in: {runs: 30m, job: 2}}"),
    )
    assert argv(found, "stop_stage_in", 2) == [["stop_stage_in", "2"]]
    assert states(found, 2)[:3] == ["STAGING_IN", "PENDING", "STAGING_IN"]
    assert moment(found, "STAGING_IN", 3) == 40.0001
    assert [found.job(job)[0] for job in (1, 2, 3)] == ["COMPLETED"] * 3


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("at", [3, 40, 56])
def test_a_restart_finds_the_buffers_again(at: int, model: str) -> None:
    """From what the store tells: while staging in, while running, while staging out."""
    found = ran(
        submitted(),
        f"at: {at}s, fault: {{restart: slurmctld, for: 1s}}",
        more="burst_buffer: {functions: {start_stage_out: {runs: 60s}}}\n",
        model=model,
    )
    assert found.job()[:2] == ("COMPLETED", "0:0")
    assert states(found)[-3:] == ["RUNNING", "STAGING_OUT", "STAGED_OUT"]
    assert len(found.all("start_stage_in")) == len(found.all("start_stage_out")) == 1


@pytest.mark.parametrize("described", ["", "programs: {/bb/in: {runs: 7s}}\n"])
@pytest.mark.parametrize(
    "upon",
    ["fork role=slurmctld", "exec job=1 role=script", "start_stage_in phase=enter"],
)
def test_a_slurmctld_that_dies_as_it_starts_a_stage_in_holds_nobody_up(
    upon: str, described: str
) -> None:
    """A script that was started goes on by itself; of one that was not the store never heard."""
    found = ran(
        submitted(),
        f'when: "{upon}", skip: {2 if "fork" in upon else 0}, fault: {{crash: slurmctld}}',
        "when: exit role=slurmctld rc=9, fault: {start: slurmctld}",
        more=described,
    )
    assert found.job()[0] == "COMPLETED"
    assert found.result.rows[0].end_us < 60_000_000
    assert not found.all("stop_stage_in")
    (ended,) = found.all("start_stage_in", phase="exit", rc=0)
    assert found.first("bb_p_job_begin") > ended.seq


def test_a_job_that_is_requeued_is_staged_in_again() -> None:
    """After the stage-out of its first run."""
    found = ran(submitted(), "at: 40s, run: scontrol requeue 1")
    assert found.job()[0] == "COMPLETED"
    run_states = ["STAGING_IN", "STAGED_IN", "RUNNING", "STAGING_OUT", "STAGED_OUT"]
    assert states(found) == [*run_states, "PENDING", *run_states]
    assert len(found.all("start_stage_in")) == 2


def test_nodes_that_are_lost_at_the_last_moment_leave_the_buffer_filled() -> None:
    """revoke_alloc takes begin back, and the job starts later."""
    found = ran("at: 0s, fault: {fail: select_g_job_begin}", submitted())
    assert found.all("bb_p_job_revoke_alloc")
    assert states(found)[:5] == ["STAGING_IN", "STAGED_IN", "RUNNING", "STAGED_IN", "RUNNING"]
    assert found.job()[0] == "COMPLETED"


def test_a_stage_out_that_a_restart_has_begun_is_not_begun_again() -> None:
    """Where slurmctld calls for it after the epilog only: the plugin had found the job over."""
    found = ran(
        submitted(),
        "when: MESSAGE_EPILOG_COMPLETE phase=send, fault: {restart: slurmctld, for: 0s}",
        more="options: {bb_stageout_after_epilog: true}\n",
    )
    assert found.one("bb_p_job_start_stage_out").rc == 0
    assert len(found.all("start_stage_out")) == 1
    assert states(found)[-2:] == ["STAGING_OUT", "STAGED_OUT"]


DESCRIBED = """\
programs:
  /site/state: {output: "TotalSize=100G\\nUserID=bob Name=keep State=allocated Size=50G\\n"}
  /site/in: {runs: 7s}
"""


def test_a_site_s_own_scripts_are_run() -> None:
    """As the scenario describes them; what is somebody else's is in the books too."""
    found = ran(
        submitted(command="sbatch big.sh"),
        "at: 5s, run: scontrol show burst",
        "at: 10s, run: scancel 1",
        more=DESCRIBED,
        GetSysState="/site/state",
        StartStageIn="/site/in",
    )
    assert "Name=keep" in shown(found, 1)
    assert "FreeSpace=50GiB" in shown(found, 1)
    assert states(found) == []
    buffer = next(event for event in found.all("bb_state"))
    assert buffer.args["buffer"] == "keep"  # type: ignore[index]


@pytest.mark.parametrize("user", ["alice", "bob", "root"])
def test_private_data_are_shown_to_their_owner_and_to_operators(user: str) -> None:
    """The flag PrivateData."""
    found = ran(submitted(), f"at: 40s, as: {user}, run: scontrol show burst", Flags="PrivateData")
    assert ("JobID=1" in shown(found, 1)) is (user != "bob")


def test_the_same_run_comes_of_the_same_scenario() -> None:
    """Event for event."""
    lines = (submitted(), submitted(2, "bob"), "at: 30s, run: scancel 2")
    one, other = ran(*lines), ran(*lines)
    assert [str(event) for event in one.events] == [str(event) for event in other.events]


SHELL = """\
#!/bin/sh
# A store of a site's own: a folder with a file a job, which holds the line that is told of it.
cd "$(dirname "$0")" && echo "$@" >> calls
case $1 in
  get_*) echo TotalSize=100G; cat job.* 2>/dev/null; exit 0;;
  start_stage_in) echo "UserID=$3 JobID=$2 State=staged-in Size=$4" > job.$2;;
  start_stage_out) echo "UserID=$3 JobID=$2 State=staged-out Size=0" > job.$2;;
  *) rm job.$2;;
esac
"""


def test_a_site_s_real_scripts_are_run(tmp_path: Path) -> None:
    """They take no virtual time; slurmctld finds out at its next question."""
    path = tmp_path / "store.sh"
    path.write_text(SHELL)
    path.chmod(0o755)
    found = ran(
        submitted(command="sbatch big.sh"),
        submitted(2, "bob", "sbatch job.sh"),
        "at: 32s, as: bob, run: scancel 2",
        more="options: {real_scripts: true}\n",
        **dict.fromkeys(SCRIPTS, str(path)),
    )
    run_states = ["STAGING_IN", "STAGED_IN", "RUNNING", "STAGING_OUT", "STAGED_OUT"]
    assert states(found, 1) == states(found, 2) == run_states
    assert [found.job(job)[0] for job in (1, 2)] == ["COMPLETED", "CANCELLED"]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call for call in calls if not call.startswith("get_")] == [
        f"start_stage_in 1 1001 {60 * GIB} #BB size=60G",
        f"start_stage_in 2 1002 {10 * GIB} {' '.join(COMMENTS)}",
        f"start_stage_out 1 1001 {60 * GIB} #BB size=60G",
        f"start_stage_out 2 1002 {10 * GIB} {' '.join(COMMENTS)}",
    ]


SLOW_TO_TELL = """\
#!/bin/sh
# A store that tells of a stage-out from the second question after its start on, and that once.
cd "$(dirname "$0")"
case $1 in
  get_*) echo TotalSize=100G; cat job.1 2>/dev/null
    if grep -q staging-out job.1 2>/dev/null; then rm job.1; fi
    if [ -e out.1 ]; then mv out.1 job.1; fi
    exit 0;;
  start_stage_in) echo "UserID=$3 JobID=$2 State=staged-in Size=$4" > job.$2;;
  start_stage_out) rm job.$2; echo "UserID=$3 JobID=$2 State=staging-out Size=$4" > out.$2;;
esac
"""


def test_a_stage_out_that_the_store_has_yet_to_tell_of_is_not_over(tmp_path: Path) -> None:
    """The buffer was told of while it was filled; gone it is once it was told of as emptied."""
    path = tmp_path / "store.sh"
    path.write_text(SLOW_TO_TELL)
    path.chmod(0o755)
    found = ran(
        submitted(),
        more="options: {real_scripts: true}\n",
        **dict.fromkeys(SCRIPTS, str(path)),
    )
    assert states(found)[-2:] == ["STAGING_OUT", "STAGED_OUT"]
    took_s = moment(found, "STAGED_OUT") - moment(found, "STAGING_OUT")
    assert 60 < took_s <= 90


@pytest.mark.parametrize(("first", "second"), [(10, 20), (20, 10)])
def test_who_waits_for_space_is_expected_as_the_first_of_those_who_have_it_ends(
    first: int, second: int
) -> None:
    """By its time limit."""
    half = "-N1 --bb=size=50G --wrap 'sleep 400'"
    found = ran(
        submitted(1, command=f"sbatch -t{first} {half}"),
        submitted(2, "bob", f"sbatch -t{second} {half}"),
        submitted(50, command=f"sbatch -t5 {half}"),
        "at: 60s, run: squeue --start -h -o %S",
        more=small(),
    )
    began = min(row.start_us for row in found.result.rows) // 1_000_000
    assert shown(found, 3) == f"2026-01-01T00:10:{began:02}\n"
