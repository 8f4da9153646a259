"""Who may do what: every request by everybody, credentials of launches, rules about them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, get_type_hints

import msgspec
import pytest
from msgspec import UNSET

from simctl.api.asking import ask
from simctl.kernel.events import Event
from simctl.kernel.procs import RunsAs
from simctl.nodes.slurmd import HANDLERS
from simctl.orderings.observed import LAUNCHES, arg
from simctl.orderings.rules import AUTHORITY
from simctl.scenario.load import read_scenario
from simctl.wire import messages
from simctl.wire.buf import Packed
from simctl.wire.credentials import JobCredential, KeyPair
from simctl.wire.errno import SlurmError, errno_name
from simctl.wire.ids import SECOND, SLURM_BATCH_SCRIPT
from simctl.wire.layout import Distribution
from simctl.wire.messages import Message, RequestLaunchTasks, StepLaunch
from simctl.wire.records import JobDesc
from simctl.wire.rights import DENIALS, OF_SLURMCTLD, OF_SLURMD, Right, Who
from simctl.world import RunResult, World
from tests.cluster import TWO_NODES, Ran, run
from tests.damaged import Damage, changed, copied, doubled, dropped, moved, together, told

ALICE, BOB, CAROL, DAVE, SLURM, ROOT = 1001, 1002, 1003, 1004, 64030, 0
CLUSTER: Final = TWO_NODES.replace(
    "bob: 1002",
    "bob: 1002, carol: {uid: 1003, admin: operator}, dave: {uid: 1004, admin: administrator}",
)
RUNS: Final = """\
files:
  two.sh: |
    #!/bin/bash
    #SBATCH -N2 -n2
    srun sleep 100
timeline: [{at: 0s, as: alice, run: sbatch two.sh}]
"""
CLASSES: Final = {
    ALICE: Who.OWNER,
    BOB: Who(0),
    CAROL: Who.OPERATOR,
    DAVE: Who.OPERATOR | Who.ADMINISTRATOR,
    SLURM: Who.DAEMONS,
    ROOT: Who.DAEMONS | Who.ROOT,
}
"""Each of them asks for everything; the job is alice's."""


def allowed(right: Right, uid: int) -> bool:
    """Return whether the table lets somebody ask."""
    return bool(right.who & Who.ANYBODY or right.who & CLASSES[uid])


# Messages of every kind.

USUAL: Final[dict[str, Any]] = {
    "job_id": 1,
    "step_id": 0,
    "node_name": "n1",
    "node_names": "n1",
    "name": "debug",
    "nodes": "n1",
    "slurm_rc": 0,
    "range_last": 1,
    "signal": 18,
    "end_s": 4_000_000_000,
    "node_list": "n1",
}
BY_TYPE: Final[dict[Any, Any]] = {
    int: 0,
    str: "",
    bool: False,
    Packed: Packed(),
    Distribution: Distribution.BLOCK,
}


def sample(kind: type[Message], desc: JobDesc) -> Message:
    """Return a message of a kind about job 1, with the least that it has to have."""
    values: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for field in msgspec.structs.fields(kind):
        if not field.required:
            continue
        hint = hints[field.name]
        if hint is JobDesc:
            values[field.name] = desc
        elif field.name in USUAL and not (field.name == "nodes" and hint is not str):
            values[field.name] = USUAL[field.name]
        else:
            values[field.name] = BY_TYPE.get(hint, ())
    if kind is messages.RequestCheckpoint:
        values |= {"op": 3, "step_id": SLURM_BATCH_SCRIPT}
    if kind is messages.RequestKillJob:
        values["signal"] = 18
    if kind is messages.ResponseSlurmRc:
        values["answers"] = "REQUEST_PING"
    return kind(**values)


def kinds_of(rpc: str) -> type[Message]:
    """Return the class of a message."""
    every = (each for each in vars(messages).values() if isinstance(each, type))
    return next(
        each for each in every if issubclass(each, Message) and getattr(each, "rpc", "") == rpc
    )


def error_of(answer: Message) -> int:
    """Return what error an answer tells."""
    return int(getattr(answer, "return_code", 0) or getattr(answer, "error_code", 0))


def ask_all(
    world: World, to: str, make: Callable[[], Message], uids: list[int]
) -> tuple[dict[int, int], RunResult]:
    """Run a world in which, after 5 s, one user after the other asks for the same.

    Returns:
        The error of each uid, -1 where nobody answered; and the result of the run.
    """
    found: dict[int, int] = {}
    process = world.procs.add(
        world.login, ppid=1, daemon="probe", role="probe", uid=0, runs_as=RunsAs.USER
    )

    async def body() -> None:
        await world.kernel.sleep_us(5 * SECOND)
        for uid in uids:
            process.uid = process.euid = uid
            try:
                answer = await ask(process, world.fabric.find(to), make(), 1, wait_s=1)
            except SlurmError:
                found[uid] = -1
            else:
                found[uid] = error_of(answer)

    def start() -> None:
        process.start(body)

    world.background.append(start)
    return found, world.run()


class Probe:
    """Asks about a job of alice's as one user after the other, and keeps the errors."""

    def __init__(self, to: str, make: Callable[[World], Message], uids: list[int]) -> None:
        text = CLUSTER + RUNS
        self.world = world = World(read_scenario(text, file="s.yaml"), until_us=300 * SECOND)
        world.trace.add_sink(world.events.append)
        self.found, self.result = ask_all(world, to, lambda: make(world), uids)

    @property
    def refused(self) -> list[tuple[Any, Any]]:
        """Return who was refused, as the trace has it, and the errno's name."""
        events = [event for event in self.world.events if event.name == "refused"]
        return [(arg(event, "by"), event.errno) for event in events]


def hold(probe: Probe, right: Right) -> None:
    """Assert that everybody was answered as the table has it, and that nothing broke."""
    denied = [uid for uid in probe.found if not allowed(right, uid)]
    for uid, error in probe.found.items():
        if uid in denied:
            assert error == right.errno or (right.besides == "nobody is answered" and error == -1)
        else:
            assert error not in DENIALS, (uid, error)
    assert probe.refused == [(uid, errno_name(right.errno)) for uid in denied]
    broken = [each.rule for each in probe.result.orderings.broken]
    assert not [each.name for each in broken if each.number > AUTHORITY]


def everybody(right: Right) -> list[int]:
    """Return all of them, those first who may not."""
    return sorted(CLASSES, key=lambda uid: allowed(right, uid))


@pytest.mark.parametrize("rpc", OF_SLURMCTLD)
def test_slurmctld_heeds_whom_the_table_names(rpc: str) -> None:
    """Everybody else gets the errno, and the trace a line; their requests come first."""
    right = OF_SLURMCTLD[rpc]
    kind = kinds_of(rpc)
    hold(
        Probe("slurmctld", lambda world: sample(kind, world.ctld.jobs[1].desc), everybody(right)),
        right,
    )


@pytest.mark.parametrize("rpc", [each for each in OF_SLURMD if each not in LAUNCHES])
def test_slurmd_heeds_whom_the_table_names(rpc: str) -> None:
    """As slurmctld does."""
    right = OF_SLURMD[rpc]
    kind = kinds_of(rpc)
    hold(
        Probe("slurmd@n1", lambda world: sample(kind, world.ctld.jobs[1].desc), everybody(right)),
        right,
    )


def test_nobody_but_slurmctld_launches_batch_scripts() -> None:
    """A user's own is refused before anybody looks at its credential."""
    probe = Probe(
        "slurmd@n1",
        lambda world: sample(messages.RequestBatchJobLaunch, world.ctld.jobs[1].desc),
        [ALICE, BOB, CAROL],
    )
    assert {errno for _, errno in probe.refused} == {"ESLURM_USER_ID_MISSING"}
    assert len(probe.refused) == len(probe.found)


def test_the_tables_name_every_request_there_is() -> None:
    """Whatever slurmctld and slurmd handle, and nothing else."""
    world = World(read_scenario(CLUSTER + RUNS, file="s.yaml"))
    for handlers, rights, more in (
        (world.ctld._handlers, OF_SLURMCTLD, ["REQUEST_SHUTDOWN"]),
        (HANDLERS, OF_SLURMD, ["REQUEST_SHUTDOWN"]),
    ):
        handled = [kind.rpc for kind in handlers if issubclass(kind, Message)]
        assert sorted({*handled, *more}) == sorted(rights)


def test_the_page_has_the_tables() -> None:
    """docs/authority.md has a row for each, with who may and the errno for others."""
    text = (Path(__file__).parent.parent / "docs" / "authority.md").read_text(encoding="utf-8")
    for rights in (OF_SLURMCTLD, OF_SLURMD):
        for rpc, right in rights.items():
            assert row(rpc, right) in text, row(rpc, right)


def row(rpc: str, right: Right) -> str:
    """Return the row of a request on the page."""
    who = ", ".join(word for each, word in WORDS.items() if right.who & each)
    errno = errno_name(right.errno) if right.errno else ""
    return f"| `{rpc}` | {who} | {errno} | {right.besides} |"


WORDS: Final = {
    Who.ANYBODY: "anybody",
    Who.OWNER: "owner",
    Who.OPERATOR: "operators",
    Who.ADMINISTRATOR: "administrators",
    Who.DAEMONS: "root and SlurmUser",
    Who.ROOT: "root",
}


# Requests beyond one's rights.


def test_a_user_cannot_say_that_a_launch_has_failed() -> None:
    """It would hold a job as slurmd's word does."""
    probe = Probe(
        "slurmctld",
        lambda _: messages.RequestJobRequeue(job_id=1, hold=True, launch_failed=True),
        [ALICE],
    )
    assert probe.refused == [(ALICE, "ESLURM_ACCESS_DENIED")]


def test_root_creates_no_step_in_a_job_of_somebody_else() -> None:
    """Its tasks would run as root in the user's job."""
    ran = run(RUNS.replace("}]", "}, {at: 5s, as: root, run: srun --jobid=1 id}]"), cluster=CLUSTER)
    assert "Access/permission denied" in ran.stderr(1)
    assert arg(ran.one("refused"), "by") == ROOT


# Credentials.


def launch_of(world: World, as_uid: int, **damage: Any) -> RequestLaunchTasks:
    """Return the launch of a step of job 1 on n1, with a good credential but for *damage*."""
    job = world.ctld.jobs[1]
    made: dict[str, Any] = {
        "job_id": 1,
        "step_id": 7,
        "restart_cnt": 0,
        "uid": ALICE,
        "node_list": "n[1-2]",
        "nodes": ("n1", "n2"),
        "cores": (1, 1),
        "made_us": world.kernel.now_us,
    } | {key: value for key, value in damage.items() if key in JobCredential.__struct_fields__}
    signer = damage.get("keys", world.site.keys).signer
    layout = job.steps[0].layout
    return RequestLaunchTasks(
        job_id=1,
        step_id=7,
        nodeid=damage.get("nodeid", 0),
        switch_job=Packed(),
        launch=StepLaunch(
            job_id=1,
            step_id=7,
            uid=as_uid,
            gid=as_uid,
            user="alice",
            restart_cnt=0,
            job_name="x",
            layout=layout,
            node_list="n[1-2]",
            argv=("sleep", "1"),
            env={},
            work_dir="/",
            tree_width=50,
            credential=None if damage.get("none") else signer.sign(JobCredential(**made)),
        ),
    )


FORGED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "none": ({"none": True}, "ESLURMD_INVALID_JOB_CREDENTIAL"),
    "another's key": ({"keys": KeyPair("mine")}, "ESLURMD_INVALID_JOB_CREDENTIAL"),
    "another job": ({"job_id": 2}, "ESLURMD_INVALID_JOB_CREDENTIAL"),
    "another step": ({"step_id": 6}, "ESLURMD_INVALID_JOB_CREDENTIAL"),
    "another run": ({"restart_cnt": 1}, "ESLURMD_INVALID_JOB_CREDENTIAL"),
    "another user": ({"uid": BOB}, "ESLURMD_INVALID_JOB_CREDENTIAL"),
    "another node": ({"nodes": ("n2", "n3")}, "ESLURMD_INVALID_JOB_CREDENTIAL"),
    "no node": ({"nodeid": 5}, "ESLURMD_INVALID_JOB_CREDENTIAL"),
    "too old": ({"made_us": -116 * SECOND}, "ESLURMD_CREDENTIAL_EXPIRED"),
}


@pytest.mark.parametrize("what", FORGED)
def test_slurmd_launches_nothing_with_a_wrong_credential(what: str) -> None:
    """Whatever is wrong with it, nothing is forked for the step."""
    damage, errno = FORGED[what]
    probe = Probe("slurmd@n1", lambda world: launch_of(world, ALICE, **damage), [ALICE])
    assert probe.refused == [(ALICE, errno)]
    assert errno_name(probe.found[ALICE]) == errno
    assert not [
        event for event in probe.world.events if event.step == "1.7" and event.name == "fork"
    ]


def test_a_credential_is_good_for_its_user_once() -> None:
    """Others who have got hold of it are refused, and so is whoever uses it again."""
    probe = Probe(
        "slurmd@n1", lambda world: launch_of(world, ALICE), [BOB, CAROL, ALICE, ALICE, ROOT]
    )
    assert [errno for _, errno in probe.refused] == [
        *["ESLURMD_INVALID_JOB_CREDENTIAL"] * 2,
        *["ESLURMD_CREDENTIAL_REPLAYED"] * (len(probe.refused) - 2),
    ]


def test_a_user_launches_nothing_as_root() -> None:
    """The launch asks for uid 0 with a credential of alice's own."""
    probe = Probe("slurmd@n1", lambda world: launch_of(world, ROOT), [ALICE])
    assert probe.refused == [(ALICE, "ESLURMD_INVALID_JOB_CREDENTIAL")]


SRUN: Final = 'at: 0s, as: alice, run: "srun -N2 -n2 sleep 5"'
BATCH: Final = "at: 0s, as: alice, run: sbatch two.sh"


def struck(fault: str, entry: str, **more: Any) -> Ran:
    """Run a job under a fault of messages."""
    files = RUNS.partition("timeline")[0]
    return run(
        f"{files}timeline:\n  - {{at: 0s, fault: {{{fault}}}}}\n  - {{{entry}}}\n",
        cluster=CLUSTER,
        **more,
    )


@pytest.mark.parametrize("how", ["signature", "node", "user"])
def test_a_batch_script_with_a_bad_credential_fails_its_job(how: str) -> None:
    """Slurmctld kills a job that cannot be started; nothing of it has run."""
    ran = struck(f"corrupt: REQUEST_BATCH_JOB_LAUNCH, how: {how}", BATCH)
    assert ran.job() == ("FAILED", "1:0", "NonZeroExitCode")
    refused = ran.one("refused")
    assert (refused.daemon, refused.node, refused.errno) == (
        "slurmd",
        "n1",
        "ESLURMD_INVALID_JOB_CREDENTIAL",
    )
    assert not ran.all("exec")


@pytest.mark.parametrize("rpc", ["REQUEST_LAUNCH_TASKS", "RESPONSE_JOB_STEP_CREATE"])
def test_a_step_with_a_bad_credential_is_ended(rpc: str) -> None:
    """Srun says so of the first node that refuses."""
    ran = struck(f"corrupt: {rpc}, how: user", SRUN)
    text = "Task launch for StepId=1.0 failed on node n1: Invalid job credential"
    assert text in ran.stderr()
    assert len(ran.all("refused")) == (1 if rpc.startswith("REQUEST") else 2)
    assert len(ran.all("switch_p_job_step_complete")) == 1
    assert ran.job()[0] == "FAILED"


def test_a_launch_that_comes_when_its_credential_is_void_starts_nothing() -> None:
    """It was good for two minutes."""
    ran = struck("delay: REQUEST_LAUNCH_TASKS, by: 121s, to: n2", SRUN)
    refused = ran.one("refused")
    assert (refused.errno, refused.node) == ("ESLURMD_CREDENTIAL_EXPIRED", "n2")
    assert not ran.all("exec", node="n2")


def test_a_launch_that_comes_after_its_job_is_over_starts_nothing() -> None:
    """Its credential was revoked as slurmd was told to end the job."""
    ran = struck("delay: REQUEST_LAUNCH_TASKS, by: 100s, to: n2", SRUN)
    assert ran.one("refused").errno == "ESLURMD_CREDENTIAL_REVOKED"
    assert not ran.all("exec", node="n2")


def test_a_launch_that_comes_again_starts_nothing() -> None:
    """The step has run here, and is over."""
    ran = struck(
        "duplicate: REQUEST_LAUNCH_TASKS, by: 20s, to: n2",
        """at: 0s, as: alice, run: "sbatch -N2 --wrap 'srun sleep 5; sleep 60'\"""",
    )
    assert ran.one("refused").errno == "ESLURMD_CREDENTIAL_REPLAYED"
    assert len(ran.all("exec", node="n2")) == 1
    assert ran.job()[0] == "COMPLETED"


def test_a_launch_that_was_kept_by_a_cut_has_a_credential_anew() -> None:
    """Else no batch job would start after a long cut."""
    ran = run(
        f"{RUNS[:-2]}, {{when: job_state job=1 state=RUNNING, "
        "fault: {cut: [slurmctld, n1], for: 250s}}]\n",
        cluster=CLUSTER,
    )
    assert ran.job()[0] == "COMPLETED"
    assert not ran.all("refused")


# The rules, on damaged runs.

EXEC: Final = "exec step=1.0"
KILL: Final = "REQUEST_KILL_JOB phase={}"
GONE: Final = "MESSAGE_EPILOG_COMPLETE phase={}"
MADE: Final = "RESPONSE_JOB_STEP_CREATE phase=send"
BUILT: Final = "switch_p_build_jobinfo step=1.0"
LAUNCHED: Final = "REQUEST_LAUNCH_TASKS phase=receive node=n1"
END: Final = "REQUEST_TERMINATE_JOB phase=receive node=n1"
LATE: Final = moved("fork role=slurmd", after="REQUEST_TERMINATE_JOB phase=receive node=n1", nth=1)
BOBS: Final = changed(KILL.format("send"), uid=BOB)
BOB_KILLS: Final = "REQUEST_KILL_JOB of uid 1002 changed a job of 1001"
NO_CREDENTIAL: Final = "slurmctld had made no credential for it"

DAMAGED: Final[dict[str, dict[str, tuple[Damage, str | None]]]] = {
    "no-user-code-as-root": {
        "a task": (changed(EXEC, uid=0, euid=0), "exec as 0/0, not as 1001"),
        "two tasks": (
            together(changed(EXEC, uid=0, euid=0), changed(EXEC, 1, uid=7, euid=7)),
            "exec as 0/0, not as 1001",
        ),
        "a task whose effective user is another": (
            changed(EXEC, euid=0),
            "exec as 1001/0, not as 1001",
        ),
        **{
            f"a {each}": (
                copied(EXEC, name=each, role="script", uid=0, euid=0),
                f"{each} as 0/0, not as 1001",
            )
            for each in ("task_prolog", "task_epilog", "user_task_prolog", "user_task_epilog")
        },
        "what a plugin has run": (copied(EXEC, role="script", uid=0, euid=0), None),
        "a program of no step": (copied(EXEC, step=UNSET, uid=0, euid=0), None),
    },
    "only-who-may-changes-a-job": {
        "another user": (BOBS, BOB_KILLS),
        "a request of no job": (together(BOBS, changed(KILL.format("receive"), job=UNSET)), None),
        "a request of another job": (together(BOBS, changed(KILL.format("receive"), job=7)), None),
        "an answer": (
            together(BOBS, changed(KILL.format("receive"), name="RESPONSE_JOB_INFO")),
            None,
        ),
        "a request that nobody has sent": (dropped(KILL.format("send")), None),
    },
    "daemons-heed-daemons": {
        "a user": (
            changed(GONE.format("send"), uid=BOB),
            "slurmctld heeded what uid 1002 had sent",
        ),
        "root": (changed(GONE.format("send"), uid=ROOT), None),
        "SlurmUser": (changed(GONE.format("send"), uid=SLURM), None),
        "a user whom another daemon has heard": (
            together(
                changed(GONE.format("send"), uid=BOB),
                changed(GONE.format("receive"), role="slurmd"),
            ),
            None,
        ),
        "a request that nobody has sent": (dropped(GONE.format("send")), None),
    },
    "launched-with-a-credential": {
        "no answer to the creation of the step": (dropped(MADE), NO_CREDENTIAL),
        "an answer of somebody else": (changed(MADE, daemon="slurmd"), NO_CREDENTIAL),
        "a script launched by somebody else": (
            changed("REQUEST_BATCH_JOB_LAUNCH phase=send", daemon="srun"),
            NO_CREDENTIAL,
        ),
        "an answer that comes later": (moved(MADE, after=LAUNCHED), NO_CREDENTIAL),
        "no launch": (dropped(LAUNCHED), "nobody had asked for it"),
        "a launch that comes later": (moved(LAUNCHED, after=EXEC), "nobody had asked for it"),
        "no fork": (dropped("fork role=slurmd", 1), None),
        "another node": (changed(BUILT, args_nodelist="n2"), "its credential is for n2"),
        "another node, for a later run": (
            copied(MADE, name="switch_p_build_jobinfo", phase=UNSET, args_nodelist="n2"),
            None,
        ),
        "another node, for an earlier run": (
            together(doubled(BUILT), changed(BUILT, args_nodelist="n2")),
            None,
        ),
    },
    "nothing-launched-once-revoked": {
        "a launch after the end": (LATE, "it was launched after REQUEST_TERMINATE_JOB"),
        "after the end of a step": (together(LATE, changed(END, step="1.0")), None),
        "after somebody else has heard of the end": (
            together(LATE, changed(END, role="manager")),
            None,
        ),
        "after an end that nobody has sent": (together(LATE, changed(END, cause=UNSET)), None),
        "without a credential": (together(LATE, dropped(MADE)), None),
    },
}


def test_an_id_that_is_given_away_again_has_another_owner() -> None:
    """By a slurmctld that has read an older state; tasks of an array are whose it is then."""
    ran = run(
        "slurm_conf: {MinJobAge: 10}\n"
        "timeline:\n"
        "  - {at: 0s, fault: {disk: slurmctld, how: read_only, for: 190s}}\n"
        "  - {at: 1s, as: alice, run: srun hostname}\n"
        "  - {at: 180s, fault: {restart: slurmctld, for: 1s}}\n"
        "  - {at: 200s, as: bob, run: \"sbatch --array=0-1 --wrap 'sleep 9'\"}\n",
        cluster=CLUSTER,
    )
    assert not ran.all("jobs_lost")  # The job of that id was over and forgotten.
    uids = [each.uid for each in ran.all("exec", array_job=1, role="task")]
    assert set(uids) == {BOB}
    as_alice = changed("exec array_job=1 role=task", uid=ALICE, euid=ALICE)
    assert told(ran, as_alice)["no-user-code-as-root"] == "exec as 1001/1001, not as 1002"


@pytest.fixture(scope="module")
def cancelled() -> Ran:
    """A job with a step that its owner cancels."""
    return run(RUNS.replace("}]", "}, {at: 5s, as: alice, run: scancel 1}]"), cluster=CLUSTER)


@pytest.mark.parametrize(
    ("rule", "case"), [(rule, case) for rule, cases in DAMAGED.items() for case in cases]
)
def test_a_rule_is_broken_by_a_run_that_breaks_it(rule: str, case: str, cancelled: Ran) -> None:
    """Each by what it is about, and by nothing else."""
    damage, what = DAMAGED[rule][case]
    assert told(cancelled, damage).get(rule) == what


RIGHTS: Final = {right.who: rpc for rpc, right in OF_SLURMCTLD.items()}
"""A request for each combination of those who may ask."""


@pytest.mark.parametrize("rpc", RIGHTS.values())
def test_a_change_upon_a_request_is_for_whom_the_table_names(rpc: str, cancelled: Ran) -> None:
    """The cancelling of a job is taken for that request, of everybody in turn."""
    for uid in CLASSES:
        found = told(
            cancelled,
            changed(KILL.format("send"), name=rpc, uid=uid),
            changed(KILL.format("receive"), name=rpc),
        )
        assert ("only-who-may-changes-a-job" in found) is not allowed(OF_SLURMCTLD[rpc], uid), uid


def test_what_is_refused_is_not_heeded(cancelled: Ran) -> None:
    """Whoever has sent it."""
    receipt = GONE.format("receive")
    heard = cancelled.first("MESSAGE_EPILOG_COMPLETE", phase="receive")
    found = told(
        cancelled,
        copied(receipt, name="refused", phase=UNSET, cause=heard),
        changed(GONE.format("send"), uid=BOB),
    )
    assert "daemons-heed-daemons" not in found


@pytest.mark.parametrize("sent", [0, 1])
def test_each_word_that_a_job_is_over_revokes(sent: int, cancelled: Ran) -> None:
    """Also one after another that was sent before the credential was made; that one alone not."""
    early = cancelled.first("MESSAGE_NODE_REGISTRATION_STATUS", phase="send")
    found = told(
        cancelled,
        doubled(END),
        changed(END, cause=early),
        moved("fork role=slurmd", after=END, nth=1, to=sent),
    ).get("nothing-launched-once-revoked")
    assert found == ("it was launched after REQUEST_TERMINATE_JOB" if sent else None)


def test_a_launch_after_a_job_was_aborted_is_noticed() -> None:
    """A job that slurmctld has forgotten is over on its node as well as one that it ends."""
    ran = run(
        "slurm_conf: {ReturnToService: 1}\n"
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch -w n1 --no-requeue --wrap 'sleep 3000'}\n"
        "  - {at: 10s, fault: {cut: [slurmctld, n1], for: 1000s}}\n",
        cluster=CLUSTER,
    )
    assert ran.one("REQUEST_ABORT_JOB", phase="receive").node == "n1"
    late = moved("fork role=slurmd", after="REQUEST_ABORT_JOB phase=receive node=n1")
    what = "it was launched after REQUEST_ABORT_JOB"
    assert told(ran, late)["nothing-launched-once-revoked"] == what


@pytest.mark.parametrize(
    ("name", "rc"),
    [("job_state", 0), ("job_state", -1), ("step_state", 0), ("node_state", 0)],
)
def test_a_refusal_that_changed_something_is_noticed(name: str, rc: int) -> None:
    """The cancelling of a job is taken for that of its state; a plugin had refused nothing."""
    ran = run(RUNS.replace("}]", "}, {at: 5s, as: bob, run: scancel 1}]"), cluster=CLUSTER)
    request = ran.one("REQUEST_KILL_JOB", phase="receive")

    def cancels(events: list[Event]) -> list[Event]:
        at = next(n for n, each in enumerate(events) if each.name == "refused") + 1
        state = next(each for each in events if each.name == "job_state" and arg(each, "from"))
        again = msgspec.structs.replace(
            state, seq=10**6, name=name, time_us=request.time_us, cause=request.seq
        )
        asked = msgspec.structs.replace(
            again, seq=10**6 + 1, kind="plugin", name="bb_p_job_cancel", rc=rc
        )
        return [*events[:at], again, asked, *events[at:]]

    assert told(ran, cancels)["refused-changes-nothing"] == f"{name} changed all the same"
