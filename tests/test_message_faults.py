"""Messages that are lost, doubled, late or overtaken: what senders and receivers make of it."""

import itertools
import random
from typing import Any, Final

import pytest

from simctl.kernel.events import Event
from simctl.orderings.observed import arg
from simctl.scenario.load import read_scenario
from simctl.scenario.timeline.message_faults import rpc_names
from simctl.world import World
from tests.cluster import TWO_NODES, Ran, run, watched

SCRIPT: Final = "at: 0s, as: alice, run: sbatch two.sh"
FILES: Final = """\
files:
  two.sh: |
    #!/bin/bash
    #SBATCH -N2 -n2
    srun sleep 20
  /p: |
    #!/bin/sh
    sleep 1
"""


def played(*entries: str, conf: str = "", **more: Any) -> Ran:
    """Run entries of a timeline; one without a moment is a fault from the start."""
    lines = [
        each if each.startswith(("at:", "when:")) else f"at: 0s, fault: {{{each}}}"
        for each in entries
    ]
    keys = f"slurm_conf: {{{conf}}}\n" if conf else ""
    text = "".join(f"  - {{{line}}}\n" for line in lines)
    return run(f"{FILES}{keys}timeline:\n{text}", **more)


def seconds(events: list[Event]) -> list[int]:
    """Return when events were, in whole seconds."""
    return [event.time_us // 1_000_000 for event in events]


def sending_of(ran: Ran, event: Event) -> Event:
    """Return the sending that a strike was caused by."""
    return ran.events[int(str(event.cause)) - 1]


def struck(ran: Ran, kind: str = "drop") -> list[int]:
    """Return when messages were struck; each is caused by its sending."""
    found = ran.all(kind, kind="fault")
    for each in found:
        sending = sending_of(ran, each)
        assert (sending.phase, sending.name) == ("send", arg(each, "rpc"))
    return seconds(found)


# Who is not answered.


def test_a_lost_launch_sends_the_job_back_into_the_queue() -> None:
    """MessageTimeout after it was sent; the node, which knows nothing of it, is told to end it."""
    ran = played("drop: REQUEST_BATCH_JOB_LAUNCH", SCRIPT)
    assert struck(ran) == [0]
    assert seconds(ran.all("job_state", args_to="NODE_FAIL")) == [10]
    assert seconds(ran.all("REQUEST_BATCH_JOB_LAUNCH", phase="receive")) == [131]
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.rows[0].restarts == 1


@pytest.mark.parametrize(("option", "times"), [("", 2), ("--no-requeue ", 1)])
def test_a_launch_that_is_lost_again_fails_the_job(option: str, times: int) -> None:
    """There is one retry, and none for a job that may not be requeued."""
    ran = played(
        f"drop: REQUEST_BATCH_JOB_LAUNCH, times: {times}", SCRIPT.replace("two", option + "two")
    )
    assert len(struck(ran)) == times
    assert ran.job() == ("FAILED", "0:1", "JobLaunchFailure")


def test_a_launch_whose_answer_is_lost_is_ended_on_its_node() -> None:
    """The script runs, the controller does not know, and it starts anew once it is gone."""
    ran = played("drop: RESPONSE_SLURM_RC, from: n1, to: slurmctld", SCRIPT)
    scripts = [e for e in ran.all("exec", step="1.batch") if "slurm_script" in str(e.args)]
    assert len(scripts) == 2
    first_end = next(e for e in ran.all("exit", step="1.batch", role="task"))
    assert first_end.seq < scripts[1].seq
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize(
    ("rpc", "again"),
    [
        ("MESSAGE_EPILOG_COMPLETE", [20, 90]),
        ("REQUEST_TERMINATE_JOB", [20, 90]),
        ("REQUEST_COMPLETE_BATCH_SCRIPT", [20, 45]),
        ("MESSAGE_TASK_EXIT", [20, 31]),
        ("RESPONSE_LAUNCH_TASKS", [0, 11]),
        ("MESSAGE_NODE_REGISTRATION_STATUS", [0, 10]),
    ],
)
def test_what_is_lost_is_sent_again(rpc: str, again: list[int]) -> None:
    """Ten seconds after it was sent its sender knows, and tries again after its interval."""
    ran = played(f"drop: {rpc}", SCRIPT)
    lost = ran.one("drop", kind="fault")
    sent = [
        e
        for e in ran.all(rpc, phase="send")
        if e.peer == arg(lost, "to") and e.daemon == sending_of(ran, lost).daemon
    ]
    same = [e for e in sent if e.pid == sending_of(ran, lost).pid]
    assert seconds(same)[:2] == again
    assert ran.job()[0] == "COMPLETED"
    assert len(ran.all("switch_p_job_step_complete")) == 1


@pytest.mark.parametrize(
    ("rpc", "conf", "entries"),
    [
        ("REQUEST_LAUNCH_PROLOG", "Prolog: /p, PrologFlags: Alloc", (SCRIPT,)),
        ("REQUEST_KILL_TIMELIMIT", "", ("sbatch -w n1 -t1 --wrap 'sleep 300'",)),
        ("REQUEST_KILL_TIMELIMIT", "", ("sbatch -w n1 --wrap 'srun -t1 sleep 300'",)),
        ("REQUEST_SIGNAL_TASKS", "", ("sbatch -w n1 -t3 --signal=USR1 --wrap 'srun sleep 300'",)),
        (
            "REQUEST_ABORT_JOB",
            "ReturnToService: 1",
            (
                "sbatch -w n1 --no-requeue --wrap 'sleep 3000'",
                "at: 10s, fault: {cut: [slurmctld, n1], for: 1000s}",
            ),
        ),
    ],
)
def test_what_a_node_has_not_heard_it_is_told_again(
    rpc: str, conf: str, entries: tuple[str, ...]
) -> None:
    """Once slurmctld has waited for the answer, and RPC_RETRY_INTERVAL after that; not twice."""
    lines = [f"at: 0s, as: alice, run: {e}" if e.startswith("sbatch") else e for e in entries]
    ran = played(f"drop: {rpc}, to: n1", *lines, conf=conf)
    (lost,) = struck(ran)
    told = [e for e in ran.all(rpc, phase="send", daemon="slurmctld") if e.peer == "slurmd@n1"]
    assert seconds(told) == [lost, lost + 70]
    heard = ran.all(rpc, phase="receive", node="n1", role="slurmd")
    assert seconds(heard) == [lost + 70]
    assert not ran.result.stalled


@pytest.mark.parametrize(
    ("conf", "fault"),
    [("MessageTimeout: 200", "drop: {}"), ("", "delay: {}, by: 130s")],
)
def test_what_befell_the_launch_of_an_old_run_is_nothing_to_the_next(conf: str, fault: str) -> None:
    """Nobody has answered it, or its node refuses it, once the job runs anew."""
    ran = played(
        fault.format("REQUEST_BATCH_JOB_LAUNCH"),
        "at: 0s, as: alice, run: sbatch -w n1 --wrap 'sleep 100'",
        "at: 5s, as: alice, run: scontrol requeue 1",
        conf=conf,
    )
    assert seconds(ran.all("REQUEST_BATCH_JOB_LAUNCH", phase="send")) == [0, 126]
    assert seconds(ran.all("request_refused")) == ([] if conf else [130])
    assert seconds(ran.all("job_state", args_to="COMPLETED")) == [226]


def test_a_suspension_that_is_over_is_not_sent_again() -> None:
    """Nor a resumption, once the job is suspended anew."""
    for skip, times in (("", [10, 12]), (", skip: 1", [5, 10, 12, 200])):
        told = [f"at: {at}s, run: scontrol {{}} 1" for at in times]
        words = ("suspend", "resume") * 2
        ran = played(
            f"drop: REQUEST_SUSPEND_INT{skip}",
            "at: 0s, as: alice, run: sbatch -w n1 --wrap 'sleep 100'",
            *(line.format(word) for line, word in zip(told, words, strict=False)),
        )
        assert len(struck(ran)) == 1
        assert seconds(ran.all("REQUEST_SUSPEND_INT", phase="send", daemon="slurmctld")) == times
        assert ran.job()[0] == "COMPLETED"


def test_a_report_up_the_tree_is_sent_again_a_second_later() -> None:
    """MessageTimeout and a second after the first try, while the parent still waits."""
    ran = played("drop: REQUEST_STEP_COMPLETE, from: n2", SCRIPT)
    assert seconds(ran.all("REQUEST_STEP_COMPLETE", phase="send", node="n2")) == [20, 31]
    assert len(ran.all("REQUEST_STEP_COMPLETE", phase="receive", daemon="slurmctld")) == 1


def test_srun_gives_up_a_node_that_does_not_answer_its_launch() -> None:
    """With the text of a time-out, and the step ends on the other node as well."""
    ran = played(
        "drop: REQUEST_LAUNCH_TASKS, to: n2", "at: 0s, as: alice, run: srun -N2 -n2 sleep 60"
    )
    text = "Task launch for StepId=1.0 failed on node n2: Socket timed out on send/recv operation"
    assert text in ran.stderr()
    assert len(ran.all("switch_p_job_step_complete")) == 1
    assert not ran.result.stalled


@pytest.mark.parametrize("what", ["REQUEST_JOB_STEP_CREATE", "RESPONSE_JOB_STEP_CREATE"])
def test_srun_asks_again_for_its_step(what: str) -> None:
    """A step that was made without its knowing is deleted with the job."""
    ran = played(f"drop: {what}", "at: 0s, as: alice, run: srun -N2 -n2 sleep 5")
    assert "step creation temporarily disabled, retrying (Socket timed out" in ran.stderr()
    made = ran.all("switch_p_build_jobinfo")
    assert len(made) == (2 if what.startswith("RESPONSE") else 1)
    assert len(ran.all("switch_p_job_step_complete")) == len(made)
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize(
    "what",
    [
        "REQUEST_RESOURCE_ALLOCATION",
        "RESPONSE_RESOURCE_ALLOCATION",
        "REQUEST_COMPLETE_JOB_ALLOCATION",
    ],
)
@pytest.mark.parametrize("fault", ["drop: {}", "delay: {}, by: 25s"])
def test_no_allocation_outlives_its_srun(what: str, fault: str) -> None:
    """Whichever message of the two was struck, the job ends, and the nodes are free."""
    ran = played(fault.format(what), "at: 0s, as: alice, run: srun -N2 -n2 sleep 5")
    assert not ran.result.stalled
    assert all("RUNNING" not in row.state for row in ran.result.rows)
    assert "COMPLETE_JOB" in what or "Socket timed out on send/recv operation" in ran.stderr()


def test_a_command_whose_answer_comes_too_late_has_timed_out() -> None:
    """The job is there all the same; the late answer finds nobody."""
    ran = played("delay: RESPONSE_SUBMIT_BATCH_JOB, by: 11s", SCRIPT)
    command = ran.result.commands[0]
    assert (command.exit, command.errno) == (1, "SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT")
    assert arg(ran.one("too_late"), "rpc") == "RESPONSE_SUBMIT_BATCH_JOB"
    assert ran.job()[0] == "COMPLETED"


def test_sbatch_that_waits_asks_again() -> None:
    """Its question is lost, then the word that the job is over."""
    ran = played(
        "drop: REQUEST_JOB_INFO",
        "drop: RESPONSE_JOB_INFO",
        'at: 0s, as: alice, run: sbatch -W --wrap "sleep 30; exit 3"',
    )
    assert len(struck(ran)) == 2
    assert ran.result.commands[0].exit == 3


# Nodes.


def test_a_node_whose_pings_are_lost_goes_down_and_comes_back() -> None:
    """Nobody sends it anything else; the fault ends, and it is asked to register."""
    ran = played(
        "drop: REQUEST_PING, to: n2, for: 1000s",
        'at: 0s, as: alice, run: sbatch -w n1 --wrap "sleep 3000"',
    )
    states = [(e.time_us // 1_000_000, arg(e, "to")) for e in ran.all("node_state", args_node="n2")]
    assert {"IDLE|NO_RESPOND", "DOWN|NO_RESPOND"} <= {to for _, to in states}
    assert next(at for at, to in states if "DOWN" in to) <= 500
    assert ran.result.rows[0].state == "COMPLETED"


def test_a_node_that_leaves_a_request_unanswered_gets_no_job_until_it_registers() -> None:
    """It is flagged as not responding, and asked at the next ping."""
    ran = played("drop: REQUEST_BATCH_JOB_LAUNCH", SCRIPT)
    flagged = ran.one("node_state", args_to="ALLOCATED|NO_RESPOND")
    assert flagged.time_us // 1_000_000 == 10
    back = ran.one("node_state", args_from="IDLE|NO_RESPOND")
    assert back.time_us // 1_000_000 == 100


def test_a_signal_whose_answer_is_lost_strikes_once() -> None:
    """It may have been delivered, so that it is not sent again."""
    ran = played(
        'at: 0s, as: alice, run: sbatch -w n1 --wrap "srun sleep 300"',
        "at: 10s, fault: {drop: RESPONSE_SLURM_RC, from: n1, to: slurmctld, for: 5s}",
        "at: 11s, as: alice, run: scancel -s CONT 1.0",
    )
    heard = ran.all("REQUEST_SIGNAL_TASKS", phase="receive", role="slurmd", args_signal=18)
    assert seconds(heard)[0] == 11
    assert len({each.time_us for each in heard if each.peer == "slurmctld"}) == 1


# Copies and late messages.

ONCE: Final = (
    *("REQUEST_BATCH_JOB_LAUNCH", "REQUEST_TERMINATE_JOB", "MESSAGE_EPILOG_COMPLETE"),
    *("REQUEST_STEP_COMPLETE", "REQUEST_COMPLETE_BATCH_SCRIPT", "RESPONSE_LAUNCH_TASKS"),
    *("MESSAGE_TASK_EXIT", "MESSAGE_NODE_REGISTRATION_STATUS", "RESPONSE_SLURM_RC"),
    *("REQUEST_LAUNCH_PROLOG", "REQUEST_COMPLETE_PROLOG", "SRUN_JOB_COMPLETE"),
)


@pytest.mark.parametrize("by", ["0s", "2s", "100s"])
@pytest.mark.parametrize("model", ["guide", "modern"])
def test_what_comes_twice_is_done_once(by: str, model: str) -> None:
    """One launch, one end, one epilog, one report: as in a run without copies."""
    copies = [f"duplicate: {rpc}, by: {by}, for: 1h" for rpc in ONCE]
    conf = "Prolog: /p, Epilog: /p, PrologFlags: Alloc"
    more: dict[str, Any] = {"conf": conf, "model": model}
    twice, once = played(*copies, SCRIPT, **more), played(SCRIPT, **more)
    for name in ("exec", "fork", "epilog", "prolog", "switch_p_job_step_complete", "job_state"):
        assert len(twice.all(name)) == len(once.all(name)), name
    assert {arg(e, "rpc") for e in twice.all("duplicate", kind="fault")} >= set(ONCE) - {
        "SRUN_JOB_COMPLETE"
    }
    assert twice.job() == once.job()


def test_a_copy_of_a_submission_is_refused_as_a_replay() -> None:
    """There is one job, and one answer."""
    ran = played("duplicate: REQUEST_SUBMIT_BATCH_JOB, by: 1s", SCRIPT)
    refused = ran.one("refused")
    assert (refused.daemon, refused.rc, refused.errno) == (
        "slurmctld",
        1007,
        "SLURM_PROTOCOL_AUTHENTICATION_ERROR",
    )
    assert arg(refused, "by") == 1001
    assert len(ran.result.rows) == 1
    assert ran.result.commands[0].exit == 0


def test_a_message_is_refused_that_is_older_than_what_it_bears() -> None:
    """Munge's credentials are good for five minutes."""
    ran = played("delay: MESSAGE_EPILOG_COMPLETE, by: 301s, from: n1", SCRIPT)
    assert arg(ran.one("refused"), "rpc") == "MESSAGE_EPILOG_COMPLETE"
    assert seconds(ran.all("MESSAGE_EPILOG_COMPLETE", phase="receive", peer="slurmd@n1")) == [90]
    assert ran.job()[0] == "COMPLETED"


@pytest.mark.parametrize(
    "fault", ["duplicate: REQUEST_SUSPEND_INT, by: 20s", "reorder: REQUEST_SUSPEND_INT, by: 9s"]
)
def test_a_late_suspension_does_not_stop_a_job_that_was_resumed(fault: str) -> None:
    """Whatever is heard last, what was decided last holds."""
    ran = played(
        fault,
        SCRIPT,
        "at: 5s, as: root, run: scontrol suspend 1",
        "at: 8s, as: root, run: scontrol resume 1",
    )
    assert ran.job()[0] == "COMPLETED"
    assert not ran.result.stalled


def test_a_srun_that_nobody_answers_asks_ten_times_again_for_its_step() -> None:
    """Each pause is twice the one before, up to 29 s; MessageTimeout comes to it."""
    ran = played(
        "drop: REQUEST_JOB_STEP_CREATE, for: 1h", "at: 0s, as: alice, run: srun -w n1 true"
    )
    sent = ran.all("REQUEST_JOB_STEP_CREATE", phase="send")
    pauses = [b.time_us - a.time_us for a, b in itertools.pairwise(sent)]
    assert [pause / 1_000_000 - 10 for pause in pauses] == pytest.approx(
        [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 29.0]
    )
    assert "Unable to create step for job 1: Socket timed out" in ran.stderr()


def test_what_was_lost_on_its_way_to_srun_and_is_sent_again_is_waited_for() -> None:
    """The end of the step is reported once srun has answered both: the launch, and how it ended."""
    ran = played(
        "drop: RESPONSE_LAUNCH_TASKS", "at: 0s, as: alice, run: srun -w n1 sleep 5", model="modern"
    )
    answers = [
        event.seq
        for name in ("RESPONSE_LAUNCH_TASKS", "MESSAGE_TASK_EXIT")
        for event in ran.all("RESPONSE_SLURM_RC", phase="receive", node="n1", args_answers=name)
    ]
    assert len(answers) == 2
    assert max(answers) < ran.first("REQUEST_STEP_COMPLETE", phase="send")


@pytest.mark.parametrize("by", ["0s", "2s"])
def test_a_suspension_that_comes_twice_is_heeded_once(by: str) -> None:
    """Whether the first is still under way or not: the step daemons hear of it once."""
    asked = (
        SCRIPT,
        "at: 5s, as: root, run: scontrol suspend 1",
        "at: 10s, as: root, run: scontrol resume 1",
    )
    twice, once = (
        played(f"duplicate: REQUEST_SUSPEND_INT, by: {by}, for: 1h", *asked),
        played(*asked),
    )
    assert len(twice.all("duplicate", kind="fault")) == 4
    for name in ("REQUEST_STEP_SUSPEND", "REQUEST_STEP_RESUME"):
        told = once.all(name, phase="receive")
        assert len(twice.all(name, phase="receive")) == len(told) > 0


def test_a_late_first_registration_is_no_restart_of_its_node() -> None:
    """The job that has started meanwhile goes on."""
    ran = played("duplicate: MESSAGE_NODE_REGISTRATION_STATUS, by: 5s", SCRIPT)
    assert ran.job() == ("COMPLETED", "0:0", "None")
    assert ran.result.rows[0].restarts == 0


def test_the_end_of_an_old_run_does_not_touch_the_next() -> None:
    """A copy of REQUEST_TERMINATE_JOB that comes while the job runs again."""
    ran = played(
        "duplicate: REQUEST_TERMINATE_JOB, by: 130s, to: n1",
        'at: 0s, as: alice, run: "sbatch two.sh"',
        "at: 5s, as: root, run: scontrol requeue 1",
    )
    assert ran.job()[0] == "COMPLETED"
    assert ran.result.rows[0].restarts == 1


def test_what_is_overtaken_comes_right_behind_the_next() -> None:
    """The answer to the launch waits for the next message from there."""
    ran = played(
        "reorder: RESPONSE_LAUNCH_TASKS, from: n2, by: 60s",
        "at: 0s, as: alice, run: srun -N2 -n2 sleep 5",
    )
    held = ran.one("reorder", kind="fault")
    arrived = next(
        e for e in ran.all("RESPONSE_LAUNCH_TASKS", phase="receive") if e.cause == held.cause
    )
    later = next(e for e in ran.all(phase="send", node="n2", peer="srun@login") if e.seq > held.seq)
    passed = next(e for e in ran.all(phase="receive", cause=later.seq))
    assert passed.seq < arrived.seq
    assert arrived.time_us == passed.time_us + 1


# Which messages, and how many.


def test_skip_and_times_count_the_messages_that_are_meant() -> None:
    """The second and third that go to n2."""
    ran = played("delay: '*', by: 1ms, to: slurmd@n2, skip: 1, times: 2", SCRIPT)
    to_n2 = [
        e for e in ran.events if e.phase == "send" and e.peer == "slurmd@n2" and e.node != "n2"
    ]
    hit = ran.all("delay", kind="fault")
    assert [e.cause for e in hit] == [e.seq for e in to_n2[1:3]]


def test_chance_comes_from_the_seed() -> None:
    """The same seed strikes the same messages, another one others."""
    entries = ("delay: '*', chance: 0.3, by: 1ms", SCRIPT)

    def hit(seed: int) -> list[Any]:
        return [e.cause for e in played(*entries, seed=seed).all("delay", kind="fault")]

    assert hit(1) == hit(1)
    assert hit(1) != hit(2)


def test_slurmd_and_its_step_daemons_lose_nothing_among_themselves() -> None:
    """They talk through a socket of their host; so a signal that has come to slurmd arrives."""
    ran = played(
        "drop: REQUEST_SIGNAL_TASKS, from: n1, for: 1h", SCRIPT, "at: 5s, as: alice, run: scancel 1"
    )
    assert not ran.all("drop", kind="fault")
    assert ran.job()[0] == "CANCELLED"


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        ("drop: TASK_OUTPUT", ""),
        *((f"delay: TASK_OUTPUT, by: {late_s}s", "one\ntwo\n") for late_s in (1, 2, 3, 4)),
    ],
)
def test_what_tasks_write_keeps_its_order_or_breaks_off(fault: str, shown: str) -> None:
    """After its first part was lost nothing more of a stream comes."""
    ran = played(
        fault,
        "at: 0s, as: alice, run: \"srun -n1 sh -c 'echo one; sleep 3; echo two; sleep 5'\"",
        "at: 0s, fault: {drop: '*', chance: 0.000001}",
    )
    assert ran.result.commands[0].stdout == shown


def test_a_fault_for_ever_is_named_by_the_stall_it_leads_to() -> None:
    """Nobody tries for ever."""
    ran = played("drop: 'MESSAGE_EPILOG_COMPLET*', from: n1", SCRIPT)
    assert "messages go wrong for ever: drop MESSAGE_EPILOG_COMPLET* from n1" in ran.result.stalled
    assert len(struck(ran)) == 1


# Anything.

JOBS: Final = (
    *("sbatch two.sh", "sbatch --array=0-2 --wrap 'srun sleep 4'", "srun -N2 -n3 sleep 12"),
    *("salloc -N1 srun sleep 9", "sbatch -W --wrap 'sleep 8'", "srun -n1 false"),
    *("sbatch --no-requeue two.sh", "sbatch -t1 --wrap 'srun sleep 200'"),
)
OTHERS: Final = (
    *("scancel 1", "scancel -s USR1 2", "scontrol suspend 1", "scontrol resume 1", "squeue"),
    *("scontrol requeue 2", "scontrol reconfigure", "scontrol checkpoint create 1", "sinfo"),
)


def _random_fault(chance: random.Random) -> str:
    kind = chance.choice(("drop", "duplicate", "delay", "reorder"))
    names = [each for each in rpc_names() if each != "TASK_OUTPUT"]
    words = [f"{kind}: '{chance.choice([*names, *['*'] * 12, 'REQUEST_*', 'RESPONSE_*'])}'"]
    if kind != "drop":
        words.append(f"by: {chance.choice(('1ms', '3s', '9s', '12s', '70s', '310s'))}")
    words += [
        f"{key}: {chance.choice(('slurmctld', 'login', 'n1', 'n2', 'slurmd@n1'))}"
        for key in ("from", "to")
        if chance.random() < 0.4
    ]
    words.append(
        chance.choice(
            ("chance: 0.2, for: 300s", "for: 30s", "times: 2, skip: 3", "chance: 0.05, for: 1h")
        )
    )
    return ", ".join(words)


@pytest.mark.parametrize("seed", range(24))
def test_whatever_befalls_messages_every_job_ends(seed: int) -> None:
    """No error, no stall, no broken ordering; a step is completed once."""
    chance = random.Random(seed)
    lines = [
        f"at: {chance.choice((0, 0, 4))}s, fault: {{{_random_fault(chance)}}}" for _ in range(3)
    ]
    lines += [
        f'at: {chance.choice((0, 1, 5))}s, as: alice, run: "{chance.choice(JOBS)}"'
        for _ in range(3)
    ]
    lines += [
        f'at: {chance.choice((3, 10, 60))}s, as: root, run: "{chance.choice(OTHERS)}"'
        for _ in range(2)
    ]
    text = "".join(f"  - {{{line}}}\n" for line in lines)
    conf = chance.choice(("", "slurm_conf: {Prolog: /p, PrologFlags: Alloc, Epilog: /p}\n"))
    scenario = read_scenario(f"{TWO_NODES}{FILES}{conf}timeline:\n{text}", file="s.yaml")
    world = World(
        scenario,
        seed=seed,
        model=chance.choice(("guide", "modern")),
        schedule=chance.choice(("fifo", "random")),
        until_us=200_000 * 1_000_000,
    )
    ran = watched(world)
    assert not ran.result.stalled, text
    assert not ran.result.stopped_at_limit, text
    completed = [(e.step, arg(e, "switch_job")) for e in ran.all("switch_p_job_step_complete")]
    assert len(completed) == len(set(completed))


@pytest.mark.parametrize("drop", ["REQUEST_COMPLETE_PROLOG", "RESPONSE_SLURM_RC"])
def test_a_prolog_that_is_over_is_reported_until_slurmctld_has_heard(drop: str) -> None:
    """Else a job would stay CONFIGURING."""
    fault = f"drop: {drop}, from: {'n1' if drop.startswith('REQ') else 'slurmctld'}, times: 1"
    when = f'when: "prolog phase=exit node=n1", fault: {{{fault}}}'
    ran = played(when, SCRIPT, conf="Prolog: /p, PrologFlags: Alloc", model="modern")
    reports = ran.all("REQUEST_COMPLETE_PROLOG", phase="send", node="n1")
    assert len(reports) == 2
    assert ran.job()[0] == "COMPLETED"


def test_messages_go_wrong_also_once_a_cut_link_has_healed() -> None:
    """What a fault is to strike it strikes before, meanwhile and after."""
    for cuts in ((), ("cut: [n1, n2], for: 1s",)):
        ran = played(*cuts, "drop: MESSAGE_EPILOG_COMPLETE, times: 1, from: n1", SCRIPT)
        assert len(struck(ran)) == 1


@pytest.mark.parametrize(("again", "told"), [("", 1), ('restart: "slurmd@n1", for: 1s', 2)])
def test_a_registration_that_comes_twice_is_of_one_start(again: str, told: int) -> None:
    """What a node is to end it is told once more where its slurmd has started once more."""
    ran = played(
        "duplicate: MESSAGE_NODE_REGISTRATION_STATUS, by: 50s, from: n1, times: 1",
        'at: 2s, fault: {restart: "slurmd@n1", for: 5s}',
        "at: 10s, as: alice, run: sbatch -N1 -w n1 --wrap 'srun sleep 20'",
        "at: 11s, fault: {drop: MESSAGE_EPILOG_COMPLETE, from: n1, for: 60s}",
        *[f"at: 57s, fault: {{{again}}}"] * bool(again),
    )
    assert len(struck(ran, "duplicate")) == 1
    assert len(ran.all("REQUEST_TERMINATE_JOB", phase="receive", node="n1")) == told
    assert ran.job()[0] == "COMPLETED"
