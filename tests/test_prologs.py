"""Prolog and Epilog on the nodes, and those of slurmctld: when they run, and what follows."""

from itertools import pairwise

import pytest
from msgspec import UNSET

from tests.cluster import Ran, began, entered, run, took

pytestmark = pytest.mark.parametrize("model", ["guide", "modern"])

TWO_STEPS = """\
files:
  job.sh: |
    #!/bin/sh
    srun -N2 sleep 10
    srun -N2 sleep 1
"""
SLOW = """\
programs:
  /etc/prolog: {runs: 3s}
  /etc/epilog: {runs: 2s}
  /etc/bad: {runs: 3s, exit: 1}
"""


def conf(**keys: str) -> str:
    """Return a slurm.conf with these scripts."""
    return "slurm_conf: {" + ", ".join(f"{key}: {path}" for key, path in keys.items()) + "}\n"


def timeline(*entries: str) -> str:
    """Return a timeline of entries, each without its braces."""
    return "timeline:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries)


def forks(ran: Ran, node: str) -> list[int]:
    """Return the times at which slurmd forked step daemons on a node."""
    managers = {event.pid for event in ran.events if event.role == "manager"}
    return [
        event.time_us
        for event in ran.all("fork", role="slurmd", node=node)
        if event.args is not UNSET and event.args["child"] in managers
    ]


def reason(ran: Ran, node: str) -> str:
    """Return why a node was drained."""
    record = ran.world.ctld.nodes_by_name[node]
    return record.reason if node in ran.drained() else ""


# Prolog.


def test_the_prolog_runs_once_a_node_where_the_job_first_launches(model: str) -> None:
    """On the batch host with the script, on the other node with the first step that comes there."""
    ran = run(
        conf(Prolog="/etc/prolog")
        + SLOW
        + TWO_STEPS
        + timeline("at: 0s, as: alice, run: sbatch -N2 job.sh"),
        model=model,
    )
    first = ran.one("prolog", node="n1")
    other = ran.one("prolog", node="n2")
    assert (first.uid, first.daemon, first.job, first.step) == (0, "slurmd", 1, UNSET)
    assert (first.rc, took(first)) == (0, 3_000_000)
    answer = ran.one("RESPONSE_SLURM_RC", node="n1", phase="send", step="1.batch")
    assert answer.seq < entered(first)
    assert first.time_us <= began(other)
    for node, prolog in (("n1", first), ("n2", other)):
        assert min(forks(ran, node)) >= prolog.time_us
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_launches_that_come_meanwhile_wait_for_the_prolog(model: str) -> None:
    """Two steps reach n2 together: one prolog, and both start when it has ended."""
    ran = run(
        conf(Prolog="/etc/prolog")
        + SLOW
        + timeline(
            'at: 0s, as: alice, run: sbatch -N2 --wrap "srun -N2 sleep 5 & srun -N2 sleep 5; wait"'
        ),
        model=model,
    )
    prolog = ran.one("prolog", node="n2")
    assert forks(ran, "n2") == [prolog.time_us, prolog.time_us]
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_the_credential_is_unpacked_before_the_prolog_and_freed_once(model: str) -> None:
    """Unpack, prolog, fork, pack, free: the prolog stands between."""
    ran = run(
        conf(Prolog="/etc/prolog") + SLOW + timeline("at: 0s, as: alice, run: srun sleep 1"),
        model=model,
    )
    prolog = ran.one("prolog")
    unpack = ran.one("switch_p_unpack_jobinfo", role="slurmd")
    pack = ran.one("switch_p_pack_jobinfo", role="slurmd")
    free = ran.one("switch_p_free_jobinfo", role="slurmd")
    assert unpack.seq < entered(prolog) < prolog.seq < pack.seq < free.seq


def test_slurmd_serves_others_while_a_prolog_runs(model: str) -> None:
    """A signal for a step that is not there is answered at once."""
    ran = run(
        conf(Prolog="/etc/prolog")
        + SLOW
        + timeline(
            'at: 0s, as: alice, run: sbatch --wrap "sleep 9"',
            "at: 1s, as: alice, run: scancel -s USR1 --batch 1",
        ),
        model=model,
    )
    answer = ran.one(
        "RESPONSE_SLURM_RC", node="n1", args_answers="REQUEST_SIGNAL_TASKS", phase="send"
    )
    assert answer.time_us < 1_100_000
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_prolog_finds_the_job_in_its_environment(model: str) -> None:
    """It is a script of the scenario, found in root's home."""
    ran = run(
        conf(Prolog="p.sh")
        + """\
files:
  p.sh: |
    #!/bin/sh
    echo $SLURM_JOB_ID $SLURM_JOB_USER $SLURM_JOB_UID $SLURM_NODELIST $SLURM_JOB_PARTITION > /tmp/p
    echo $SLURMD_NODENAME $SLURM_SCRIPT_CONTEXT >> /tmp/p
"""
        + timeline('at: 0s, as: alice, run: sbatch -N2 --wrap "sleep 1"'),
        model=model,
    )
    text = ran.world.disk.read("/tmp/p", host="n1")
    assert text == "1 alice 1001 n[1-2] debug\nn1 prolog_slurmd\n"


def test_a_prolog_that_fails_on_the_batch_host(model: str) -> None:
    """Slurmd asks for the requeue and then registers; epilogs run everywhere; the node drains."""
    ran = run(
        conf(Prolog="/etc/bad", Epilog="/etc/epilog")
        + SLOW
        + timeline('at: 0s, as: alice, run: sbatch -N2 --wrap "sleep 1"'),
        model=model,
    )
    prolog = ran.one("prolog")
    assert (prolog.node, prolog.rc) == ("n1", 256)
    requeue = ran.one("REQUEST_JOB_REQUEUE", phase="send")
    status = ran.one("MESSAGE_NODE_REGISTRATION_STATUS", args_status=4022, phase="send")
    assert prolog.seq < requeue.seq < status.seq
    assert forks(ran, "n1") == forks(ran, "n2") == []
    assert {event.node for event in ran.all("epilog")} == {"n1", "n2"}
    assert ran.job() == ("PENDING", "0:0", "launch failed requeued held")
    row = ran.result.rows[0]
    assert row.restarts == 1
    assert (reason(ran, "n1"), reason(ran, "n2")) == ("Prolog error", "")
    assert ran.result.stalled == ()
    states = [event.args["to"] for event in ran.all("job_state", job=1)]  # type: ignore[index]
    assert states[2:] == [
        "PENDING|REQUEUE",
        "PENDING|REQUEUE|COMPLETING",
        "PENDING|REQUEUE",
        "PENDING",
        "PENDING|COMPLETING",
        "PENDING",
    ]


@pytest.mark.parametrize(("ends", "status"), [("exit 0", 0), ("kill -HUP $$", 1), ("exit 1", 256)])
def test_every_wait_status_but_0_is_a_prolog_that_has_failed(
    model: str, ends: str, status: int
) -> None:
    """The least there is belongs to one that a signal has ended."""
    ran = run(
        f'files: {{/p: "#!/bin/sh\\n{ends}\\n"}}\n'
        + conf(Prolog="/p")
        + timeline('at: 0s, as: alice, run: sbatch -w n1 --wrap "sleep 1"'),
        model=model,
    )
    assert ran.all("prolog")[0].rc == status
    assert bool(ran.all("exec", step="1.batch", role="task")) is (not status)
    assert reason(ran, "n1") == ("Prolog error" if status else "")


def test_the_registration_of_a_failed_prolog_bears_no_switch_state(model: str) -> None:
    """Neither slurmd nor slurmctld calls the switch for it."""
    ran = run(
        conf(Prolog="/etc/bad")
        + SLOW
        + timeline('at: 1s, as: alice, run: sbatch --wrap "sleep 1"'),
        model=model,
    )
    calls = ran.all("switch_p_build_node_info") + ran.all("switch_p_unpack_node_info")
    assert calls
    assert all(event.time_us < 1_000_000 for event in calls)


def test_a_job_that_may_not_be_requeued_fails_with_its_prolog(model: str) -> None:
    """Slurmctld answers 2037, and slurmd reports the batch script over."""
    ran = run(
        conf(Prolog="/etc/bad")
        + SLOW
        + timeline('at: 0s, as: alice, run: sbatch --no-requeue --wrap "sleep 1"'),
        model=model,
    )
    report = ran.one("REQUEST_COMPLETE_BATCH_SCRIPT", phase="send")
    assert report.daemon == "slurmd"
    assert report.args["slurm_rc"] == 4022  # type: ignore[index]
    assert ran.job() == ("FAILED", "0:127", "JobLaunchFailure")
    assert ran.drained()[0] == "n1"


@pytest.mark.parametrize("how", ["script", "fault"])
def test_a_prolog_that_fails_where_a_step_arrives(model: str, how: str) -> None:
    """4022 to srun, the node drains, the step is killed elsewhere, and the batch job goes on."""
    script = """\
files:
  p.sh: |
    #!/bin/sh
    if [ "$SLURMD_NODENAME" = n2 ]; then exit 1; fi
  job.sh: |
    #!/bin/sh
    srun -N2 sleep 100
    echo $?
    sleep 1
"""
    extra = [] if how == "script" else ['at: 0s, fault: {fail: "prolog node=n2"}']
    text = script if how == "script" else script.replace('"$SLURMD_NODENAME" = n2', "a = b")
    ran = run(
        "slurm_conf: {Prolog: p.sh, KillWait: 5}\n"
        + text
        + timeline(*extra, "at: 0s, as: alice, run: sbatch -N2 job.sh"),
        model=model,
    )
    refusal = ran.one(
        "RESPONSE_SLURM_RC", node="n2", args_answers="REQUEST_LAUNCH_TASKS", phase="send"
    )
    assert refusal.args["return_code"] == 4022  # type: ignore[index]
    assert forks(ran, "n2") == []
    assert len(ran.all("switch_p_free_jobinfo", node="n2", role="slurmd")) == 1
    report = ran.one("REQUEST_STEP_COMPLETE", phase="send", role="srun")
    assert report.args == {"range_first": 1, "range_last": 1, "step_rc": 4022}
    assert reason(ran, "n2") == "Prolog error"
    output = ran.world.disk.read("/home/alice/slurm-1.out")
    assert output == (
        "srun: error: Task launch for StepId=1.0 failed on node n2: Job prolog failed\n"
        "srun: error: Application launch failed: Job prolog failed\n"
        "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
        "slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n"
        "srun: error: n1: task 0: Killed\n"
        "srun: error: Timed out waiting for job step to complete\n"
        "182\n"
    )
    # Rank 0's daemon waits for n2's report; the job is over all the same, and COMPLETING.
    gone = ran.one("switch_p_job_step_complete", step="1.0")
    assert 60 <= gone.time_us / 1e6 <= 70
    assert ran.job() == ("COMPLETED", "0:0", "None")
    ended = [event for event in ran.all("job_state") if "COMPLETED" in event.args["to"]]  # type: ignore[index]
    assert ended[0].time_us < 10_000_000
    assert ended[1].time_us >= gone.time_us


def test_a_prolog_that_fails_under_an_interactive_srun(model: str) -> None:
    """Srun exits 182 after KillWait and two seconds; the job is FAILED, 54 in place of a signal."""
    ran = run(
        "slurm_conf: {Prolog: /etc/prolog, KillWait: 5}\n"
        + SLOW
        + timeline(
            'at: 0s, fault: {fail: "prolog node=n2"}', "at: 1s, as: alice, run: srun -N2 sleep 99"
        ),
        model=model,
    )
    assert ran.result.commands[0].exit == 182
    report = ran.one("REQUEST_COMPLETE_JOB_ALLOCATION", phase="send")
    assert report.args["job_rc"] == 4022  # type: ignore[index]
    refused = ran.one(
        "RESPONSE_SLURM_RC", node="n2", args_answers="REQUEST_LAUNCH_TASKS", phase="send"
    )
    assert 7.0 <= (report.time_us - refused.time_us) / 1e6 < 7.1
    assert ran.job() == ("FAILED", "0:54", "JobLaunchFailure")


def test_a_node_remembers_that_the_prolog_of_a_job_has_failed(model: str) -> None:
    """A later step is refused there without another prolog, and the node registers no more."""
    ran = run(
        conf(Prolog="/etc/prolog")
        + SLOW
        + timeline(
            'at: 0s, fault: {fail: "prolog node=n2"}',
            'at: 0s, as: alice, run: sbatch -N2 --wrap "srun -N2 sleep 9; srun -N2 sleep 9"',
        ),
        model=model,
    )
    assert len(ran.all("prolog", node="n2")) == 1
    refusals = ran.all("RESPONSE_SLURM_RC", node="n2", args_return_code=4022, phase="send")
    assert [event.step for event in refusals] == ["1.0", "1.1"]
    assert len(ran.all("MESSAGE_NODE_REGISTRATION_STATUS", args_status=4022, phase="send")) == 1


@pytest.mark.parametrize("what", ['sbatch --wrap "sleep 9"', "srun sleep 9"])
def test_a_job_cancelled_during_its_prolog_never_launches(model: str, what: str) -> None:
    """Its end waits for the prolog; then nothing is forked, and the epilog runs."""
    ran = run(
        conf(Prolog="/etc/prolog", Epilog="/etc/epilog")
        + SLOW
        + timeline(f"at: 0s, as: alice, run: '{what}'", "at: 1s, as: alice, run: scancel 1"),
        model=model,
    )
    prolog, epilog = ran.one("prolog"), ran.one("epilog")
    assert prolog.rc == 0
    assert prolog.time_us == began(epilog)
    assert forks(ran, "n1") == []
    assert ran.job()[0] == "CANCELLED"
    assert ran.drained() == []


def test_a_requeued_job_has_its_prolog_again(model: str) -> None:
    """Each run of a job has its own."""
    ran = run(
        conf(Prolog="/etc/prolog", Epilog="/etc/epilog")
        + SLOW
        + timeline(
            'at: 0s, as: alice, run: sbatch --wrap "sleep 20"',
            "at: 9s, as: alice, run: scontrol requeue 1",
        ),
        model=model,
    )
    assert len(ran.all("prolog")) == len(ran.all("epilog")) == 2
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_node_that_crashes_in_its_prolog_fails_the_job(model: str) -> None:
    """The prolog dies with the node, and nothing waits for it."""
    ran = run(
        conf(Prolog="/etc/prolog", Epilog="/etc/epilog")
        + SLOW
        + timeline(
            'at: 0s, as: alice, run: sbatch --no-requeue --wrap "sleep 20"',
            "at: 1s, fault: {crash: n1}",
            "at: 20m, fault: {start: n1}",
        ),
        model=model,
    )
    assert ran.all("prolog") == []
    assert ran.job()[0] == "NODE_FAIL"
    assert ran.result.stalled == ()


# Epilog.


def test_the_epilog_follows_postfini_and_precedes_the_report(model: str) -> None:
    """As root, on every node of the job, each node before it says that the job is gone."""
    ran = run(
        conf(Epilog="/etc/epilog") + SLOW + timeline("at: 0s, as: alice, run: srun -N2 sleep 1"),
        model=model,
    )
    for node in ("n1", "n2"):
        epilog = ran.one("epilog", node=node)
        assert (epilog.uid, epilog.job) == (0, 1)
        assert ran.last("switch_p_job_postfini", node=node) < entered(epilog)
        report = ran.one("MESSAGE_EPILOG_COMPLETE", node=node, phase="send")
        assert epilog.seq < report.seq
        assert report.cause == epilog.seq
    over = ran.all("job_state", args_to="COMPLETED")
    assert over[0].seq > ran.last("MESSAGE_EPILOG_COMPLETE", phase="receive")


def test_an_epilog_that_fails_drains_its_node_alone(model: str) -> None:
    """The job has ended well all the same."""
    ran = run(
        conf(Epilog="/etc/epilog")
        + SLOW
        + timeline(
            'at: 0s, fault: {fail: "epilog node=n2"}', "at: 0s, as: alice, run: srun -N2 sleep 1"
        ),
        model=model,
    )
    report = ran.one("MESSAGE_EPILOG_COMPLETE", node="n2", phase="send")
    assert report.args["return_code"] == 4023  # type: ignore[index]
    assert (reason(ran, "n1"), reason(ran, "n2")) == ("", "Epilog error")
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_the_epilog_finds_the_job_in_its_environment(model: str) -> None:
    """Who and where, as the request to end the job says."""
    ran = run(
        conf(Epilog="e.sh")
        + """\
files:
  e.sh: |
    #!/bin/sh
    echo $SLURM_JOB_ID $SLURM_JOB_USER $SLURM_NODELIST $SLURM_SCRIPT_CONTEXT > /tmp/e
"""
        + timeline("at: 0s, as: alice, run: srun -N2 sleep 1"),
        model=model,
    )
    for node in ("n1", "n2"):
        assert ran.world.disk.read("/tmp/e", host=node) == "1 alice n[1-2] epilog_slurmd\n"


# PrologSlurmctld.


@pytest.mark.parametrize("what", ['sbatch --wrap "sleep 1"', "srun sleep 1"])
def test_a_job_is_configuring_until_prologslurmctld_has_ended(model: str, what: str) -> None:
    """Neither the launch nor the allocation leaves before; it runs as SlurmUser."""
    ran = run(
        conf(PrologSlurmctld="/etc/prolog") + SLOW + timeline(f"at: 0s, as: alice, run: '{what}'"),
        model=model,
    )
    prolog = ran.one("prolog_slurmctld")
    assert (prolog.uid, prolog.daemon, prolog.node, prolog.job) == (64030, "slurmctld", None, 1)
    states = [event.args["to"] for event in ran.all("job_state", job=1)]  # type: ignore[index]
    assert states[:4] == ["PENDING", "RUNNING", "RUNNING|CONFIGURING", "RUNNING"]
    started = ran.all("job_state", args_to="RUNNING")[-1]
    assert started.cause == prolog.seq
    launch = "REQUEST_BATCH_JOB_LAUNCH" if "sbatch" in what else "RESPONSE_RESOURCE_ALLOCATION"
    assert ran.last(launch, phase="send") > started.seq
    if "srun" in what:
        assert ran.all(launch, phase="send")[0].args == {"error_code": 2016, "node_list": ""}
    assert ran.result.rows[0].start_us == prolog.time_us
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_the_time_limit_counts_from_the_end_of_prologslurmctld(model: str) -> None:
    """A prolog of five minutes does not use up a limit of one."""
    ran = run(
        conf(PrologSlurmctld="/etc/long")
        + "programs: {/etc/long: {runs: 5m}}\n"
        + timeline('at: 0s, as: alice, run: sbatch -t1 --wrap "sleep 50"'),
        model=model,
    )
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_srun_asks_again_while_prologslurmctld_runs(model: str) -> None:
    """A step of a job that is CONFIGURING is refused with 2061, which srun takes as "later"."""
    ran = run(
        conf(PrologSlurmctld="/etc/prolog")
        + SLOW
        + timeline(
            'at: 0s, as: alice, run: sbatch --wrap "sleep 20"',
            "at: 1s, as: alice, run: srun --jobid=1 sleep 1, exit: 0",
        ),
        model=model,
    )
    replies = [
        event.args["error_code"]  # type: ignore[index]
        for event in ran.all("RESPONSE_JOB_STEP_CREATE", phase="send")
    ]
    assert replies[:-1] == [2061] * (len(replies) - 1)
    assert replies[-1] == 0
    assert len(replies) > 2
    times = [event.time_us for event in ran.all("REQUEST_JOB_STEP_CREATE", phase="send")]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == sorted(gaps)
    assert ran.result.expectations[0].held


def test_a_batch_job_whose_prologslurmctld_fails_is_requeued_until_it_is_held(model: str) -> None:
    """Five times it may try again after its credential is void; the sixth time it is held."""
    ran = run(
        conf(PrologSlurmctld="/etc/bad")
        + SLOW
        + timeline('at: 0s, as: alice, run: sbatch --wrap "sleep 1"'),
        model=model,
    )
    assert len(ran.all("prolog_slurmctld")) == 6
    assert ran.job() == ("PENDING", "0:0", "JobHoldMaxRequeue")
    assert ran.result.rows[0].restarts == 6
    assert ran.all("REQUEST_BATCH_JOB_LAUNCH") == []
    assert ran.drained() == []
    assert ran.result.stalled == ()


def test_a_launch_that_goes_well_forgives_those_that_failed(model: str) -> None:
    """Four that fail, one that does not, and after the job's requeue two more: it is never held."""
    gate = "case $n in 4|7) exit 0;; esac; exit 1"
    ran = run(
        "slurm_conf: {PrologSlurmctld: /etc/gate, RequeueExit: 3}\nfiles:\n  /etc/gate: |\n"
        "    #!/bin/sh\n"
        f"    n=$(cat /tmp/n || echo 0); echo $((n + 1)) > /tmp/n; {gate}\n"
        "  job.sh: |\n    #!/bin/sh\n    test -e was && exit 0; touch was; exit 3\n"
        + timeline("at: 0s, as: alice, run: sbatch job.sh"),
        model=model,
    )
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert len(ran.all("prolog_slurmctld")) == 8


@pytest.mark.parametrize("what", ['sbatch --no-requeue --wrap "sleep 1"', "srun sleep 1"])
def test_another_job_whose_prologslurmctld_fails_is_cancelled(model: str, what: str) -> None:
    """There is nothing to be requeued; a srun is told why."""
    ran = run(
        conf(PrologSlurmctld="/etc/bad") + SLOW + timeline(f"at: 0s, as: alice, run: '{what}'"),
        model=model,
    )
    assert ran.job()[0] == "CANCELLED"
    if "srun" in what:
        assert ran.stderr() == (
            "srun: job 1 queued and waiting for resources\n"
            "srun: PrologSlurmctld failed, job killed\nsrun: Force Terminated job 1\n"
        )
        assert ran.result.commands[0].exit == 1


@pytest.mark.parametrize("command", ["scancel 1", "scontrol requeue 1"])
def test_what_ends_a_configuring_job_leaves_its_prologslurmctld_behind(
    model: str, command: str
) -> None:
    """The script ends by itself, and its end launches nothing."""
    ran = run(
        conf(PrologSlurmctld="/etc/prolog")
        + SLOW
        + timeline(
            'at: 0s, as: alice, run: sbatch --wrap "sleep 1"',
            f"at: 1s, as: alice, run: {command}",
        ),
        model=model,
    )
    cancelled = command == "scancel 1"
    assert ran.job()[0] == ("CANCELLED" if cancelled else "COMPLETED")
    launches = ran.all("REQUEST_BATCH_JOB_LAUNCH", phase="send")
    assert len(launches) == (0 if cancelled else 1)
    assert all(event.time_us > 100_000_000 for event in launches)


# EpilogSlurmctld.


def test_a_job_is_completing_until_epilogslurmctld_has_ended(model: str) -> None:
    """Its nodes are free before, and the next job starts; what depends on it waits."""
    ran = run(
        conf(EpilogSlurmctld="/etc/long")
        + "programs: {/etc/long: {runs: 1m, exit: 3}}\n"
        + timeline(
            'at: 0s, as: alice, run: sbatch -N2 --wrap "sleep 1"',
            'at: 0s, as: alice, run: sbatch -N2 --wrap "sleep 1"',
            'at: 0s, as: alice, run: sbatch -N2 -d afterany:1 --wrap "sleep 1"',
        ),
        model=model,
    )
    epilog = ran.one("epilog_slurmctld", job=1)
    assert epilog.uid == 64030
    over = ran.one("job_state", job=1, args_to="COMPLETED")
    assert over.cause == epilog.seq
    assert ran.one("job_state", job=2, args_to="RUNNING").time_us < 10_000_000
    assert ran.one("job_state", job=3, args_to="RUNNING").seq > over.seq
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_epilogslurmctld_finds_how_the_job_ended(model: str) -> None:
    """The exit code, as a wait status and as Slurm prints it."""
    ran = run(
        conf(EpilogSlurmctld="/shared/e.sh")
        + """\
files:
  /shared/e.sh: |
    #!/bin/sh
    echo $SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_JOB_EXIT_CODE $SLURM_JOB_EXIT_CODE2 > /shared/log
"""
        + timeline('at: 0s, as: alice, run: sbatch -J try --wrap "exit 3"'),
        model=model,
    )
    assert ran.world.disk.read("/shared/log") == "1 try 768 3:0\n"


def test_prologslurmctld_finds_the_task_of_an_array(model: str) -> None:
    """The id of the array and the number of the task, beside the id of the task's own job."""
    ran = run(
        conf(PrologSlurmctld="/shared/p.sh")
        + """\
files:
  /shared/p.sh: |
    #!/bin/sh
    echo $SLURM_JOB_ID $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID >> /shared/log
"""
        + timeline("at: 0s, as: alice, run: sbatch -a 0-5:5 --wrap true"),
        model=model,
    )
    assert sorted(str(ran.world.disk.read("/shared/log")).splitlines()) == ["1 1 5", "2 1 0"]


def test_prologslurmctld_finds_the_account(model: str) -> None:
    """Where the job has one."""
    ran = run(
        conf(PrologSlurmctld="/shared/p.sh")
        + """\
files:
  /shared/p.sh: |
    #!/bin/sh
    echo $SLURM_JOB_USER $SLURM_JOB_ACCOUNT >> /shared/log
"""
        + timeline("at: 0s, as: alice, run: sbatch -A physics --wrap true"),
        model=model,
    )
    assert ran.world.disk.read("/shared/log") == "alice physics\n"


def test_a_requeued_job_waits_for_epilogslurmctld_as_well(model: str) -> None:
    """It is PENDING|COMPLETING until then."""
    ran = run(
        conf(EpilogSlurmctld="/etc/long")
        + "programs: {/etc/long: {runs: 1m}}\n"
        + timeline(
            'at: 0s, as: alice, run: sbatch --wrap "sleep 20"',
            "at: 5s, as: alice, run: scontrol requeue 1",
        ),
        model=model,
    )
    first = ran.all("epilog_slurmctld")[0]
    back = ran.all("job_state", args_from="PENDING|COMPLETING", args_to="PENDING")
    assert [event.cause for event in back] == [first.seq]
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_without_scripts_nothing_of_this_runs(model: str) -> None:
    """No event of kind script, and no state beside the usual ones."""
    ran = run(timeline("at: 0s, as: alice, run: srun -N2 sleep 1"), model=model)
    assert ran.all(kind="script") == []
    assert not [event for event in ran.all("job_state") if "CONFIGURING" in str(event.args)]


def test_a_node_whose_prolog_fails_is_drained_before_it_is_free(model: str) -> None:
    """The next job does not start there, with or without an epilog."""
    ran = run(
        conf(Prolog="/etc/bad")
        + SLOW
        + timeline(
            'at: 0s, as: alice, run: sbatch -w n1 --wrap "sleep 1"',
            'at: 1s, as: alice, run: sbatch -w n1 --wrap "sleep 1"',
        ),
        model=model,
    )
    assert ran.all("REQUEST_BATCH_JOB_LAUNCH", job=2) == []
    assert ran.job(2)[0] == "PENDING"


# PrologFlags=Alloc.

ALLOC = "slurm_conf: {PrologFlags: Alloc, Prolog: /etc/prolog, Epilog: /etc/epilog}\n" + SLOW


@pytest.mark.parametrize("what", ['sbatch -N2 --wrap "srun -N2 sleep 1"', "srun -N2 sleep 1"])
def test_with_alloc_the_prologs_run_on_all_nodes_before_the_launch(model: str, what: str) -> None:
    """The job is CONFIGURING with the reason Prolog until every node has reported."""
    ran = run(ALLOC + timeline(f"at: 0s, as: alice, run: '{what}'"), model=model)
    configuring = ran.one("job_state", args_to="RUNNING|CONFIGURING")
    assert configuring.args["reason"] == "Prolog"  # type: ignore[index]
    launched = ran.one("job_state", args_from="RUNNING|CONFIGURING")
    assert launched.args["to"] == "RUNNING"  # type: ignore[index]
    for node in ("n1", "n2"):
        prolog = ran.one("prolog", node=node)
        request = ran.one("REQUEST_LAUNCH_PROLOG", node=node, phase="receive")
        report = ran.one("REQUEST_COMPLETE_PROLOG", node=node, phase="send")
        assert request.seq < entered(prolog) < prolog.seq < report.seq < launched.seq
        assert launched.time_us <= min(forks(ran, node))
    assert ran.job() == ("COMPLETED", "0:0", "None")


@pytest.mark.parametrize(
    ("what", "end"),
    [
        ('sbatch -N2 --wrap "sleep 1"', ("PENDING", "0:0", "launch failed requeued held")),
        ("srun -N2 sleep 1", ("FAILED", "0:127", "JobLaunchFailure")),
    ],
)
def test_with_alloc_one_prolog_that_fails_ends_the_run(
    model: str, what: str, end: tuple[str, str, str]
) -> None:
    """Also on a node where nothing was to be launched; nothing is."""
    ran = run(
        ALLOC
        + timeline('at: 0s, fault: {fail: "prolog node=n2"}', f"at: 0s, as: alice, run: '{what}'"),
        model=model,
    )
    assert ran.job() == end
    assert forks(ran, "n1") == forks(ran, "n2") == []
    assert reason(ran, "n2") != ""
    assert reason(ran, "n1") == ""
    assert {event.node for event in ran.all("epilog")} == {"n1", "n2"}
    assert ran.result.stalled == ()


def test_with_alloc_and_prologslurmctld_the_controllers_is_first(model: str) -> None:
    """Both are over before the launch."""
    ran = run(
        ALLOC.replace("Epilog:", "PrologSlurmctld: /etc/prolog, Epilog:")
        + timeline("at: 0s, as: alice, run: srun -N2 sleep 1"),
        model=model,
    )
    first = ran.one("prolog_slurmctld")
    assert first.seq < ran.first("REQUEST_LAUNCH_PROLOG", phase="send")
    assert ran.last("prolog") < ran.last("RESPONSE_RESOURCE_ALLOCATION", phase="send")
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_alloc_without_a_prolog_only_asks(model: str) -> None:
    """The nodes report at once."""
    ran = run(
        "slurm_conf: {PrologFlags: alloc}\n" + timeline("at: 0s, as: alice, run: srun -N2 sleep 1"),
        model=model,
    )
    assert ran.all(kind="script") == []
    assert len(ran.all("REQUEST_COMPLETE_PROLOG", phase="receive")) == 2
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_prolog_that_a_new_slurmd_ran_before_it_registered_is_followed_by_its_epilog(
    model: str,
) -> None:
    """A slurmctld starts, and has prologs run, before it hears that the node has started anew."""
    ran = run(
        ALLOC
        + timeline(
            'at: 0s, as: alice, run: sbatch -N2 --wrap "sleep 1"',
            "at: 1s, fault: {crash: n1}",
            "at: 5s, fault: {stop: slurmctld}",
            "at: 6s, fault: {start: n1}",
            "at: 30s, fault: {start: slurmctld}",
        ),
        model=model,
    )
    scripts = [
        each.name
        for each in ran.events
        if each.phase == "enter" and each.kind == "script" and each.node == "n1"
    ]
    assert scripts == ["prolog", "prolog", "epilog", "prolog", "epilog"]
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_node_that_its_job_goes_on_without_ends_what_it_has_begun(model: str) -> None:
    """The same, of a job that is not killed: its prolog runs there, and so does its epilog."""
    ran = run(
        ALLOC
        + timeline(
            'at: 0s, as: alice, run: sbatch -k -N2 --wrap "sleep 1"',
            "at: 1s, fault: {crash: n2}",
            "at: 5s, fault: {stop: slurmctld}",
            "at: 6s, fault: {start: n2}",
            "at: 30s, fault: {start: slurmctld}",
        ),
        model=model,
    )
    assert ran.one("node_removed").args == {"node": "n2"}
    epilog = ran.one("epilog", node="n2")
    assert entered(epilog) > ran.last("prolog", node="n2")
    assert ran.job() == ("COMPLETED", "0:0", "None")


def test_a_job_that_is_cancelled_as_its_prolog_ends_has_its_epilog_once(model: str) -> None:
    """Its node hears of the two in any order; what has waited for the prolog is seen to first."""
    found = set()
    for seed in range(3):
        ran = run(
            "programs: {/etc/p: {runs: 10s}}\nslurm_conf: {Prolog: /etc/p, Epilog: /etc/p}\n"
            "timeline:\n"
            "  - {at: 0s, as: alice, run: \"sbatch -w n1 --wrap 'sleep 100'\"}\n"
            "  - {at: 10s, as: alice, run: scancel 1}\n",
            model=model,
            schedule="random",
            seed=seed,
        )
        told = ran.first("REQUEST_TERMINATE_JOB", phase="receive", node="n1")
        over = ran.first("prolog", node="n1")
        found.add((over < told, bool(ran.all("fork", daemon="slurmstepd", node="n1"))))
        assert ran.one("epilog", node="n1").seq > max(told, over)
        assert ran.job()[0] == "CANCELLED"
    assert (True, False) in found
