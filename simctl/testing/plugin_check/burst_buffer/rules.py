"""What is true of any good burst buffer plugin."""

from typing import Final

from simctl.testing.plugin_check.mistakes import rule

NEVER_STARTS: Final = rule(
    "job-never-starts",
    rank=2,
    cost="no job that asks for a burst buffer ever starts",
    remedy="let what stages in note that it is done and call `slurmctld.schedule()`; answer 1 from "
    "then on",
)
NOT_AGAIN: Final = rule(
    "job-never-starts-again",
    rank=2,
    cost="a job that comes back into the queue waits for ever, though there is space",
    remedy="begin anew with a job that comes back: what is noted of its run before is no state to "
    "go on from",
)
SPACE_LOST: Final = rule(
    "space-lost",
    rank=2,
    cost="the space of each such job is lost until slurmctld is started anew: in the end no job "
    "with a burst buffer starts any more",
    remedy="give back what a job has booked, once, on every way that it can end: its stage-out, "
    "job_cancel, a failed stage-in or begin",
)
GIVEN_TWICE: Final = rule(
    "space-given-twice",
    rank=2,
    cost="the buffer is full before jobs have what they were granted: they fail while they write",
    remedy="book before you answer 1 or stage in; in load_state(True) book what jobs hold by their "
    "burst_buffer_state; give back only once what a job holds",
)
KEPT: Final = rule(
    "kept-for-ever",
    rank=2,
    cost="slurmctld grows with each job; what is booked by these entries is lost to others",
    remedy="drop the entry where the job lets go of its buffer: at the end of its stage-out, in "
    "job_cancel, and in load_state for a job that is not there any more",
)
FILES_LEFT: Final = rule(
    "files-left",
    rank=2,
    cost="the file system of the burst buffer fills up with data of jobs that are gone",
    remedy="remove a job's files on every way that it can end",
)
PERSISTENT_STUCK: Final = rule(
    "persistent-never-done",
    rank=2,
    cost="who makes a persistent buffer, or wants to end one, never comes to it",
    remedy="let the job that asks for it complete once the buffer is there, or is gone; look it up "
    "in what is saved, for slurmctld may have been started anew since it was made",
)
PERSISTENT_LOST: Final = rule(
    "persistent-lost",
    rank=2,
    cost="a buffer that was to outlive jobs is forgotten: its space is given away while it is in "
    "use, or is never free again",
    remedy="write what is known of persistent buffers below StateSaveLocation whenever it changes, "
    "and read it in load_state(True)",
)
STAGE_OUT_STAYS: Final = rule(
    "stage-out-never-ends",
    rank=2,
    cost="the job's record and its space are never free, and who depends on it with "
    "afterburstbuffer never starts",
    remedy="let the thread that stages out set `job.stage_out = False`, also where its script "
    "failed, and take up stage-outs in load_state(True)",
)
NEVER_LAUNCHED: Final = rule(
    "launch-held-for-ever",
    rank=2,
    cost="the job has its nodes and computes nothing: they are lost until somebody cancels it",
    remedy="release each hold_launch once, when what it waited for is over, however that went; "
    "take jobs up in load_state(True) that are still CONFIGURING",
)
COMPLETING: Final = rule(
    "completing-for-ever",
    rank=2,
    cost="the job's nodes are lost to others",
    remedy="answer 1 in test_post_run once what follows the run is over, and for jobs without any",
)
NOT_PURGED: Final = rule(
    "record-never-purged",
    rank=2,
    cost="slurmctld keeps the job's record for ever and asks about it each minute",
    remedy="answer 1 in test_stage_out once nothing of the job is staged any more, also for one "
    "that was cancelled or never staged",
)
TEST_ONLY: Final = rule(
    "test-only-acts",
    rank=1,
    cost="backfill asks with test_only about jobs that it merely plans: data is staged and space "
    "booked for jobs that do not start, and others wait for it",
    remedy="return -1 where test_only is true, before anything is booked or started",
)
NO_MOMENT: Final = rule(
    "start-no-moment",
    rank=1,
    cost="backfill plans the job for the past or for never, and everybody behind it by that",
    remedy="return seconds since the epoch: `slurmctld.time()` and the wait; `now()` counts from "
    "the run's start",
)
WRONG_TRES: Final = rule(
    "unknown-tres",
    rank=1,
    cost="limits and accounting see no burst buffer of the job",
    remedy="count MB under `bb/` and the plugin's name",
)
WRONG_UNIT: Final = rule(
    "wrong-unit",
    rank=1,
    cost="limits, accounting and people's plans are wrong by a factor of a million",
    remedy="MB in get_system_size and set_tres_cnt, bytes in what state_pack packs",
)
OVER_TOTAL: Final = rule(
    "used-beyond-total",
    rank=1,
    cost="people plan by what `scontrol show burstbuffer` says, and it cannot be so",
    remedy="book space where it is granted, and give it back once where the job lets go of it",
)
FAILURE_IGNORED: Final = rule(
    "failure-ignored",
    rank=2,
    cost="the job runs without its data, or loses its results, and nobody is told",
    remedy="look at the script's `ok`: hold the job with a state_desc that says why, requeue it, "
    "or try again",
)
RAISES_AT_TYPO: Final = rule(
    "typo-breaks",
    rank=1,
    cost="any user's typing mistake makes the call fail; in C slurmctld would crash for all",
    remedy="raise SlurmError(errno.ESLURM_INVALID_BURST_BUFFER_REQUEST, what was expected)",
)
ACCEPTS_TYPO: Final = rule(
    "typo-accepted",
    rank=2,
    cost="the job is taken on and breaks in a thread long after its user has gone",
    remedy="read the whole directive in job_validate, and refuse there what cannot be",
)
