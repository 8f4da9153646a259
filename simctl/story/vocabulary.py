"""Words explained in a line each: states, reasons, daemons, and simctl's own terms.

`explain WORD` of a session and docs/glossary.md (`make docs`) take them from here.
"""

from typing import Final

DAEMONS: Final = {
    "slurmctld": "The controller: takes jobs in, decides who runs where and when, and keeps the "
    "records; runs as SlurmUser on a host of its own.",
    "slurmd": "The daemon of a node: registers it, launches and ends what runs there, as root.",
    "slurmstepd": "The step daemon: one for each step and node, forked by slurmd; in model guide "
    "two processes, P1 and P2, in model modern one.",
    "srun": "Asks for a step, sends its launch to the nodes and carries what tasks write; runs as "
    "the user who typed it.",
    "sbatch": "Hands a batch script in, and is gone; the job's first node runs the script.",
    "salloc": "Waits for an allocation, and runs a command in it.",
    "P1": "The job manager of the switch guide: forked by slurmd, root; calls "
    "switch_p_job_preinit, and switch_p_job_postfini at the end. Role `manager`.",
    "P2": "The session manager: forked by P1; calls switch_p_job_init as root, becomes the user, "
    "forks the tasks, and calls switch_p_job_fini. Role `session`.",
    "P3": "A task before it executes its program: forked by P2 as the user; calls "
    "switch_p_job_attach. Role `task`, before and after its exec.",
    "task": "One process of a step; its number in the step is its rank. A batch script is task 0 "
    "of the step JOB.batch.",
}

JOB_STATES: Final = {
    "PENDING": "The job waits in the queue; its reason says for what.",
    "RUNNING": "The job has nodes.",
    "SUSPENDED": "The job keeps its nodes, and its processes are stopped.",
    "COMPLETED": "The script, or srun, ended with exit code 0.",
    "CANCELLED": "Somebody cancelled the job, or what it waited for can never be.",
    "FAILED": "The job ended with another exit code than 0, by a signal, or was never launched.",
    "TIMEOUT": "The job reached its time limit.",
    "NODE_FAIL": "A node of the job went down, and it was not requeued.",
    "PREEMPTED": "The job had to go for one of a higher partition.",
    "DEADLINE": "The job could not end by its deadline any more.",
    "OUT_OF_MEMORY": "A task used more memory than the job may.",
    "COMPLETING": "Flag: the job is over, and some of its nodes have yet to report its epilog.",
    "CONFIGURING": "Flag: the job has nodes and is not launched yet: a prolog or pre-run goes on.",
    "REQUEUE": "Flag: the job goes back into the queue.",
    "SPECIAL_EXIT": "Flag: the job was requeued in a state of its own, and is held.",
    "STOPPED": "Flag: the job's processes were stopped by SIGSTOP; it still has its nodes.",
    "STAGE_OUT": "Flag: the job is over, and its burst buffer stages data out.",
    "RESIZING": "Flag: the job's size is about to change.",
}

NODE_STATES: Final = {
    "UNKNOWN": "slurmctld has started, and the node has not registered yet.",
    "IDLE": "No job has any of the node.",
    "ALLOCATED": "Jobs have all of the node's processors.",
    "MIXED": "Jobs have some of the node's processors.",
    "DOWN": "The node is out of use: it did not answer, or an administrator took it down.",
    "DRAIN": "Flag: nothing new is started on the node.",
    "NO_RESPOND": "Flag: the node did not answer the last time it was asked.",
}

SHOWN_NODE_STATES: Final = {
    "DRAINED": "Nothing new is started on the node (DRAIN), and no job is left there.",
    "DRAINING": "Nothing new is started on the node (DRAIN), and jobs run there still.",
    "DRNG": "Short for DRAINING.",
    "ALLOC": "Short for ALLOCATED.",
    "MIX": "Short for MIXED.",
    "COMP": "Short for COMPLETING: a job of the node is over, and its epilog is not.",
    "RESERVED": "The node is kept for a reservation that has begun.",
    "RESV": "Short for RESERVED.",
    "MAINT": "The node is in a reservation for maintenance that has begun.",
    "PLANNED": "The node is idle, and backfill keeps it for a job that starts later.",
    "PLND": "Short for PLANNED.",
}
"""What sinfo and scontrol print of a node that is no state or flag of its own."""

BUFFER_STATES: Final = {
    "ALLOCATING": "Space is being allocated for the job's burst buffer.",
    "STAGING_IN": "Data is copied into the burst buffer before the job may start.",
    "STAGED_IN": "The data is there: the job may be given nodes.",
    "PRE_RUN": "The burst buffer is made reachable from the job's nodes.",
    "POST_RUN": "The job's run is over, and the burst buffer is taken off its nodes.",
    "STAGING_OUT": "Data is copied out of the burst buffer.",
    "STAGED_OUT": "The data is where it was wanted.",
    "TEARDOWN": "The burst buffer is removed and its space given back.",
    "TEARDOWN_FAIL": "The removal failed, and is tried again.",
}

REASONS: Final = {
    "None": "Nothing keeps the job back, or nobody has looked yet.",
    "Priority": "A job before it in the same partition waits as well.",
    "Resources": "It is first in its queue, and what it asked for is in use.",
    "Dependency": "It waits for other jobs, as --dependency says.",
    "DependencyNeverSatisfied": "What it waits for can never be any more.",
    "BeginTime": "Its --begin is yet to come, or it was requeued and waits a while.",
    "JobHeldUser": "Its owner holds it.",
    "JobHeldAdmin": "root, an operator or slurmctld holds it: `scontrol release` lets it go.",
    "JobHoldMaxRequeue": "It was requeued more often than may be, and is held.",
    "PartitionDown": "Its partition starts nothing.",
    "PartitionInactive": "Its partition takes nothing in and starts nothing.",
    "PartitionNodeLimit": "It asks for fewer or more nodes than its partition allows.",
    "PartitionTimeLimit": "It asks for more time than its partition allows.",
    "PartitionConfig": "Its partition does not allow what it asks for.",
    "Reservation": "It waits for its reservation to begin, or for room in it.",
    "ReservationDeleted": "Its reservation is gone; it is held.",
    "ReqNodeNotAvail": "Nodes that it asked for by name are down, drained or silent.",
    "BadConstraints": "No node is what it asks for.",
    "JobArrayTaskLimit": "As many tasks of its array run as may at one time.",
    "Prolog": "PrologSlurmctld runs for it.",
    "Cleaning": "An earlier run of it is not gone from all its nodes.",
    "BurstBufferResources": "There is no room for its burst buffer yet.",
    "BurstBufferStageIn": "Its data is on the way into its burst buffer.",
    "BurstBufferOperation": "Its burst buffer failed at something.",
    "NonZeroExitCode": "It ended with another exit code than 0.",
    "TimeLimit": "It reached its time limit.",
    "NodeDown": "A node of it went down.",
    "JobLaunchFailure": "It could not be launched.",
    "DeadLine": "It could not end by its deadline.",
    "OutOfMemory": "It used more memory than it may.",
}

TERMS: Final = {
    "virtual time": "The clock of a run: it jumps from one event to the next, and has nothing to "
    "do with the time that the run takes. The same scenario, seed and schedule give the same run.",
    "turn": "What one daemon or process does from where it waited to where it waits again; nobody "
    "else does anything meanwhile.",
    "event": "A line of a trace: a plugin call, a message, a change of state, a fork, a command, a "
    "fault. It has a number, `seq`.",
    "cause": "The event without which another would not have come then: `simctl trace why`.",
    "schedule": "Which of the turns that are due at one moment goes first: fifo, random, pct, or "
    "as a token says.",
    "token": "A schedule written down, as `explore` prints it: `--schedule TOKEN` repeats the run.",
    "deviation": "A place at which a run of `explore` does otherwise than first come, first "
    "served: another turn goes first, a message comes late, a fault strikes.",
    "seed": "The number that chance is taken from.",
    "model": "guide: a step has the three processes of the switch guide on each node; modern: one "
    "root process, as in Slurm 1.0 and later.",
    "lifecycle point": "A plugin function together with where, when and as whom it is called.",
    "ordering": "A rule about the order of events that every run is held against.",
    "group": "Events of an order that are looked at by themselves: those of one node with "
    "`each: node`.",
    "foreground": "What keeps a run alive; pings, scheduler passes and other timers that come "
    "again and again do not.",
    "stall": "Nothing is left to happen, and a job or command still waits.",
    "credential": "What a switch plugin hands out for a step: opaque to Slurm, packed into "
    "messages, unpacked by whoever receives it.",
    "golden trace": "A trace that somebody has looked at, with which later runs are compared.",
    "step": "One srun in a job: JOB.0, JOB.1, ...; the batch script is JOB.batch.",
    "fault": "Something that a scenario breaks: a node, a daemon, a message, a call, a file.",
}


def explained(word: str) -> list[tuple[str, str]]:
    """Return what a word means, each meaning with what it is; nothing for one not known here."""
    kinds = (
        ("daemon or process", DAEMONS),
        ("state of a job", JOB_STATES),
        ("state of a node", NODE_STATES),
        ("state of a node as sinfo prints it", SHOWN_NODE_STATES),
        ("state of a burst buffer", BUFFER_STATES),
        ("reason of a job", REASONS),
        ("term", TERMS),
    )
    same = word.replace("_", " ").lower()
    return [
        (f"{name}, a {kind}", text)
        for kind, words in kinds
        for name, text in words.items()
        if name == word or name.lower() == same or name.lower() == word.lower()
    ]


def words() -> tuple[str, ...]:
    """Return all that can be explained."""
    return (
        *DAEMONS,
        *JOB_STATES,
        *NODE_STATES,
        *SHOWN_NODE_STATES,
        *BUFFER_STATES,
        *REASONS,
        *TERMS,
    )
