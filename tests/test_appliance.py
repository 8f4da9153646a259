"""The simulated appliance: its programs, its space, its time, and what scenarios say of it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.api.slurmctld import ScriptResult
from simctl.appliance.directives import directives, staged_paths
from simctl.appliance.dw_wlm_cli import mounts
from simctl.appliance.spec import PoolSpec
from simctl.appliance.store import RefusedError, Store
from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from tests.cluster import TWO_NODES, Ran
from tests.scripts import Caller, ran_scripts

CLI = "/opt/cray/dw_wlm/default/bin/dw_wlm_cli"
GIB = 1 << 30
SCRIPT = """\
files:
  /tmp/job: |
    #!/bin/sh
    #DW jobdw type=scratch capacity=10GiB access_mode=striped,private
    #DW stage_in type=file source=/lus/in \\
    #DW destination=$DW_JOB_STRIPED/in
    #DW stage_out type=file source=$DW_JOB_STRIPED/out destination=/lus/out
    #DW persistentdw name=shared
    srun true
    #DW stage_in type=file source=/lus/late destination=$DW_JOB_STRIPED/x
  /tmp/plain: |
    #!/bin/sh
    #DW jobdw capacity=10GiB
  /tmp/small: |
    #!/bin/sh
    #DW stage_in type=file source=/tmp/plain destination=$DW_JOB_STRIPED/in
  /tmp/both: |
    #!/bin/sh
    #DW stage_in type=file source=/tmp/plain destination=$DW_JOB_STRIPED/in
    #DW stage_in type=file source=/lus/in destination=$DW_JOB_STRIPED/in
  /tmp/wrong: |
    #!/bin/sh
    #DW jobdv capacity=10GiB
"""
CONF = """\
burst_buffer_conf:
  GetSysState: /opt/state
  StartStageIn: /opt/in
  StopStageIn: /opt/in
  StartStageOut: /opt/out
  StopStageOut: /opt/out
"""


async def dw(caller: Caller, function: str, *argv: str, job: int = 0) -> ScriptResult:
    """Call the dw_wlm_cli."""
    return await caller.run(
        CLI, "--function", function, *argv, name=f"dw_{function}", job=job or _token(argv)
    )


def _token(argv: tuple[str, ...]) -> int:
    token = argv[argv.index("--token") + 1] if "--token" in argv else ""
    return int(token) if token.isdigit() else 0


async def setup(caller: Caller, token: str, capacity: str = "wlm_pool:10GiB") -> ScriptResult:
    """Set a job's buffer up."""
    return await dw(
        caller,
        "setup",
        *("--token", token, "--caller", "SLURM", "--user", "1001", "--groupid", "1001"),
        *("--capacity", capacity, "--job", "/tmp/plain"),
    )


async def shown(caller: Caller, function: str) -> Any:
    """Return what is shown as JSON."""
    return json.loads((await dw(caller, function)).output)


def acted(text: str, *bodies: Any, **options: Any) -> tuple[Caller, Ran]:
    """Run threads that must come to their end."""
    over = []

    def told(body: Any) -> Any:
        async def act(caller: Caller) -> None:
            await body(caller)
            over.append(body)

        return act

    caller, ran = ran_scripts(text, *(told(body) for body in bodies), lingers=False, **options)
    assert len(over) == len(bodies)
    return caller, ran


# dw_wlm_cli.


def test_a_buffer_is_granted_shown_and_given_back() -> None:
    """Sizes are rounded up to granules, which quantity and free count."""

    async def body(caller: Caller) -> None:
        assert (await setup(caller, "2", "wlm_pool:10000MiB")).ok
        pools = await shown(caller, "pools")
        assert pools == {
            "pools": [
                {
                    "id": "wlm_pool",
                    "units": "bytes",
                    "granularity": GIB,
                    "quantity": 1024,
                    "free": 1014,
                }
            ]
        }
        [instance] = (await shown(caller, "show_instances"))["instances"]
        assert (instance["label"], instance["capacity"]["bytes"]) == ("2", 10 * GIB)
        [session] = (await shown(caller, "show_sessions"))["sessions"]
        assert (session["token"], session["owner"], session["used"]) == ("2", 1001, True)
        assert session["created"] == caller.world.scenario.start_epoch_s
        size = json.loads((await dw(caller, "real_size", "--token", "2")).output)
        assert size == {"token": "2", "capacity": 10 * GIB, "units": "bytes"}
        assert (await dw(caller, "teardown", "--token", "2", "--hurry")).ok
        assert (await shown(caller, "pools"))["pools"][0]["free"] == 1024
        assert (await shown(caller, "show_sessions")) == {"sessions": []}
        assert (await shown(caller, "show_configurations")) == {"configurations": []}

    acted(SCRIPT, body)


def test_functions_take_the_times_that_were_recorded() -> None:
    """Staging takes its time only where the script stages."""

    async def body(caller: Caller) -> None:
        job = ("--token", "2", "--job", "/tmp/job")
        plain = ("--token", "2", "--job", "/tmp/plain")
        assert (await setup(caller, "2")).ok
        for function, argv, seconds in (
            ("data_in", job, 5),
            ("data_in", plain, 0),
            ("pre_run", job, 2),
            ("post_run", job, 2),
            ("data_out", job, 4),
            ("data_out", plain, 0),
            ("teardown", job, 0.5),
        ):
            before = caller.now_s
            assert (await dw(caller, function, *argv)).ok
            assert caller.now_s - before == seconds, function

    _, ran = acted(SCRIPT, body)
    setup_event = ran.one("dw_setup")
    assert (setup_event.time_us, setup_event.job, setup_event.uid) == (1_000_000, 2, 64030)


def test_a_token_that_is_not_there_is_told_in_the_known_words() -> None:
    """Every function that needs a buffer fails with them, teardown as well."""

    async def body(caller: Caller) -> None:
        for function in ("data_in", "real_size", "paths", "pre_run", "data_out", "teardown"):
            result = await dw(caller, function, "--token", "9", "--job", "/tmp/job")
            assert (result.exit_code, result.output) == (1, "token not found\n")

    acted(SCRIPT, body)


def test_what_does_not_fit_is_refused_and_leaves_nothing() -> None:
    """So are a second buffer for one token, and pools that there are not."""

    async def body(caller: Caller) -> None:
        refused = await setup(caller, "2", "wlm_pool:1025GiB")
        assert refused.exit_code == 1
        assert "no space" in refused.output
        assert "no pool other" in (await setup(caller, "2", "other:1GiB")).output
        assert (await setup(caller, "2", "wlm_pool:1024GiB")).ok
        assert "exists already" in (await setup(caller, "2")).output
        assert "no space" in (await setup(caller, "3", "wlm_pool:1")).output
        assert [one["token"] for one in (await shown(caller, "show_sessions"))["sessions"]] == ["2"]

    acted(SCRIPT, body)


def test_persistent_buffers_are_made_used_and_destroyed_by_name() -> None:
    """A job that uses one must find it; destroying it is a teardown with its name."""

    async def body(caller: Caller) -> None:
        uses = ("--token", "5", "--user", "1001", "--job", "/tmp/job")
        assert "persistent buffer shared not found" in (await dw(caller, "setup", *uses)).output
        made = await dw(
            caller,
            "create_persistent",
            *("-c", "CLI", "-t", "shared", "-u", "1001", "-C", "wlm_pool:2GiB", "-a", "striped"),
        )
        assert made.ok
        assert (await dw(caller, "setup", *uses)).ok
        assert (await dw(caller, "teardown", "--token", "shared", "--job", "/tmp/job")).ok
        assert (await shown(caller, "show_instances")) == {"instances": []}

    acted(SCRIPT, body)


def test_paths_tell_the_job_where_its_buffers_are() -> None:
    """They are written into the file that slurmctld reads, as SlurmUser's."""

    async def body(caller: Caller) -> None:
        await setup(caller, "2")
        argv = ("--job", "/tmp/job", "--token", "2", "--pathfile", "/tmp/path")
        assert (await dw(caller, "paths", *argv)).ok
        text = caller.world.disk.read("/tmp/path", host="slurmctld")
        assert text == (
            "DW_JOB_STRIPED=/var/opt/cray/dws/mounts/batch/2/ss/\n"
            "DW_JOB_PRIVATE=/var/opt/cray/dws/mounts/batch/2/priv/\n"
            "DW_PERSISTENT_STRIPED_shared=/var/opt/cray/dws/mounts/batch/shared/ss/\n"
        )

    acted(SCRIPT, body)


def test_job_process_finds_what_no_appliance_knows() -> None:
    """It names the directive, and a script that is not there."""

    async def body(caller: Caller) -> None:
        assert (await dw(caller, "job_process", "--job", "/tmp/job")).ok
        assert "#DW jobdv" in (await dw(caller, "job_process", "--job", "/tmp/wrong")).output
        assert "No such file" in (await dw(caller, "job_process", "--job", "/tmp/none")).output
        assert "no function 'fly'" in (await dw(caller, "fly")).output

    acted(SCRIPT, body)


def test_a_teardown_stops_the_stage_that_is_under_way() -> None:
    """data_in fails at that moment, and the space is free."""
    ends: list[tuple[float, str]] = []

    async def stage(caller: Caller) -> None:
        await setup(caller, "2")
        result = await dw(caller, "data_in", "--token", "2", "--job", "/tmp/job")
        ends.append((caller.now_s, result.output))

    async def stop(caller: Caller) -> None:
        await caller.sleep(3)
        assert (await dw(caller, "teardown", "--token", "2", "--hurry")).ok
        assert (await shown(caller, "pools"))["pools"][0]["free"] == 1024

    acted(SCRIPT, stage, stop)
    assert ends == [(3.0, "token not found\n")]


def test_a_killed_stage_keeps_its_buffer() -> None:
    """A time limit ends the program, not what it has set up."""

    async def body(caller: Caller) -> None:
        await setup(caller, "2")
        argv = ("--function", "data_in", "--token", "2", "--job", "/tmp/job")
        assert (await caller.run(CLI, *argv, timeout=2)).timed_out
        assert (await dw(caller, "data_in", "--token", "2", "--job", "/tmp/job")).ok
        assert caller.now_s == 8

    acted(SCRIPT, body)


# Bandwidth and data.


def test_stages_share_the_bandwidth_by_what_is_to_be_moved() -> None:
    """40 GiB at 10 GiB/s take 4 s alone, 8 s where two do so at once."""
    text = f"burst_buffer: {{bandwidth: 10GiB, data: {{/lus/in: 40GiB, /lus/out: 5GiB}}}}\n{SCRIPT}"
    ends: list[float] = []

    def staging(token: str, after_s: float) -> Any:
        async def body(caller: Caller) -> None:
            await caller.sleep(after_s)
            await setup(caller, token)
            assert (await dw(caller, "data_in", "--token", token, "--job", "/tmp/job")).ok
            ends.append(caller.now_s)

        return body

    acted(text, staging("1", 0), staging("2", 0), staging("3", 20))
    assert ends == [9.0, 9.0, 25.0]


def test_a_size_nobody_knows_takes_the_usual_time() -> None:
    """A file on the simulated disk is as large as it is there."""
    text = f"burst_buffer: {{bandwidth: 10}}\n{SCRIPT}"

    async def body(caller: Caller) -> None:
        await setup(caller, "2")
        assert (await dw(caller, "data_in", "--token", "2", "--job", "/tmp/small")).ok
        assert caller.now_s == 1 + len("#!/bin/sh\n#DW jobdw capacity=10GiB\n") / 10
        before = caller.now_s
        assert (await dw(caller, "data_in", "--token", "2", "--job", "/tmp/job")).ok
        assert caller.now_s - before == 5
        before = caller.now_s
        assert (await dw(caller, "data_in", "--token", "2", "--job", "/tmp/both")).ok
        assert caller.now_s - before == 5 + len("#!/bin/sh\n#DW jobdw capacity=10GiB\n") / 10

    acted(text, body)


# What a scenario describes.


def test_functions_go_as_described_call_by_call() -> None:
    """A list has one item a call, the last for the rest; `job` concerns one alone."""
    text = (
        """\
burst_buffer:
  functions:
    data_in:
      - {runs: 2s, exit: 1, output: "no such file", job: 3}
      - {runs: 3s}
      - {runs: 7s}
    pre_run: {signal: KILL}
    teardown: {runs: 0s, output: "gone"}
"""
        + SCRIPT
    )
    seen: list[tuple[str, float, int, str]] = []

    async def body(caller: Caller) -> None:
        for token in ("2", "3"):
            await setup(caller, token)
        for token in ("2", "3", "3", "2", "2"):
            before = caller.now_s
            result = await dw(caller, "data_in", "--token", token, "--job", "/tmp/plain")
            seen.append((token, caller.now_s - before, result.exit_code, result.output))
        assert (await dw(caller, "pre_run", "--token", "2")).signal == 9
        assert (await dw(caller, "teardown", "--token", "2")).output == "gone\n"

    acted(text, body)
    assert seen == [
        ("2", 3, 0, ""),
        ("3", 2, 1, "no such file\n"),
        ("3", 7, 0, ""),
        ("2", 7, 0, ""),
        ("2", 7, 0, ""),
    ]


def test_a_function_that_never_ends_is_ended_by_its_callers_patience() -> None:
    """No run waits for it for ever."""
    text = f"burst_buffer: {{functions: {{setup: {{runs: forever}}}}}}\n{SCRIPT}"

    async def body(caller: Caller) -> None:
        argv = ("--function", "setup", "--token", "2", "--capacity", "wlm_pool:1", "--job", "")
        assert (await caller.run(CLI, *argv, timeout=30)).timed_out
        assert caller.now_s == 30

    acted(text, body)


def test_the_timeline_changes_the_appliance() -> None:
    """It stops answering, grows, and gets other functions; what it holds stays."""
    text = (
        """\
timeline:
  - {at: 10s, burst_buffer: {up: false}}
  - {at: 20s, burst_buffer: {up: true, pools: {wlm_pool: {capacity: 2TiB}, ssd: {capacity: 1TiB}}}}
  - {at: 30s, burst_buffer: {functions: {pre_run: {exit: 4}}}}
"""
        + SCRIPT
    )

    async def body(caller: Caller) -> None:
        await setup(caller, "2")
        await caller.sleep(11)
        down = await dw(caller, "pools")
        assert (down.exit_code, down.output.strip() != "") == (1, True)
        await caller.sleep(10)
        pools = (await shown(caller, "pools"))["pools"]
        assert [(one["id"], one["free"]) for one in pools] == [("wlm_pool", 2038), ("ssd", 1024)]
        await caller.sleep(10)
        assert (await dw(caller, "pre_run", "--token", "2")).exit_code == 4

    _, ran = acted(text, body)
    assert [event.args for event in ran.all("appliance")] == [
        {"change": "up: false"},
        {"change": "up, pools"},
        {"change": "functions"},
    ]


def test_a_fault_strikes_a_function_of_one_job() -> None:
    """The program exits 1 before it has asked the appliance anything."""
    text = SCRIPT + 'timeline: [{at: 0s, fault: {fail: "dw_setup job=3"}}]\n'

    async def body(caller: Caller) -> None:
        assert (await setup(caller, "3")).exit_code == 1
        assert (await shown(caller, "show_sessions")) == {"sessions": []}
        assert (await setup(caller, "3")).ok

    acted(text, body)


def test_a_described_program_is_asked_before_the_appliance() -> None:
    """What the scenario says of a path comes first."""
    text = f'programs: {{{CLI}: {{output: "mine"}}}}\n'

    async def body(caller: Caller) -> None:
        assert (await dw(caller, "pools")).output == "mine"

    acted(text, body)


# The scripts of burst_buffer/generic.


async def state(caller: Caller) -> list[str]:
    """Return what GetSysState says."""
    return (await caller.run("/opt/state", "get_sys", name="get_sys")).output.splitlines()


def test_generic_scripts_move_a_buffer_through_its_states() -> None:
    """Its space is free once it is staged out; it is listed for ten minutes more."""

    async def body(caller: Caller) -> None:
        assert await state(caller) == [f"TotalSize={1024 * GIB}"]
        caller.start("/opt/in", "start_stage_in", "7", "1001", str(GIB), name="start_stage_in")
        await caller.sleep(1)
        line = f"UserID=1001 JobID=7 State=%s Size={GIB}"
        assert (await state(caller))[1:] == [line % "staging-in"]
        await caller.sleep(5)
        assert (await state(caller))[1:] == [line % "staged-in"]
        caller.start("/opt/out", "start_stage_out", "7", "1001", str(GIB), name="start_stage_out")
        await caller.sleep(1)
        assert (await state(caller))[1:] == [line % "staging-out"]
        await caller.sleep(4)
        assert (await state(caller))[1:] == ["UserID=1001 JobID=7 State=staged-out Size=0"]
        await caller.sleep(601)
        assert (await state(caller))[1:] == []

    acted(CONF, body)


def test_stopping_a_stage_drops_its_buffer() -> None:
    """The script that moved its data ends with 1 at that moment."""

    async def body(caller: Caller) -> None:
        caller.start("/opt/in", "start_stage_in", "7", "1001", str(GIB), name="start_stage_in")
        await caller.sleep(2)
        assert (await caller.run("/opt/in", "stop_stage_in", "7")).ok
        assert len(await state(caller)) == 1
        assert (await caller.run("/opt/out", "stop_stage_out", "7")).exit_code == 1

    _, ran = acted(CONF, body)
    event = ran.one("start_stage_in")
    assert (event.rc, event.time_us) == (256, 2_000_000)


def test_a_generic_stage_moves_its_whole_buffer_or_what_its_lines_name() -> None:
    """The lines of the job's script follow the size."""
    text = CONF + "burst_buffer: {bandwidth: 1GiB, data: {/lus/in: 30GiB}}\n"

    async def body(caller: Caller) -> None:
        argv = ("start_stage_in", "7", "1001", str(10 * GIB))
        await caller.run("/opt/in", *argv)
        assert caller.now_s == 10
        line = "#DW stage_in source=/lus/in"
        await caller.run("/opt/in", "start_stage_in", "8", "1001", str(10 * GIB), line)
        assert caller.now_s == 40

    acted(text, body)


def test_described_generic_scripts_keep_their_own_time_and_end() -> None:
    """The appliance keeps the buffers, and adds them to a GetSysState that tells of none."""
    text = (
        CONF
        + """\
programs:
  /opt/state: {output: "TotalSize=100GiB"}
  /opt/in: {runs: 3s}
  /opt/out: {runs: 2s, exit: 1}
"""
    )

    async def body(caller: Caller) -> None:
        caller.start("/opt/in", "start_stage_in", "7", "1001", "5", name="start_stage_in")
        await caller.sleep(1)
        line = f"UserID=1001 JobID=7 State=%s Size={GIB}"
        assert await state(caller) == ["TotalSize=100GiB", line % "staging-in"]
        await caller.sleep(2)
        assert (await state(caller))[1:] == [line % "staged-in"]
        await caller.run("/opt/out", "start_stage_out", "7", "1001", "5")
        assert (await state(caller))[1:] == [line % "staging-out"]
        assert (await caller.run("/opt/in", "stop_stage_in", "7")).ok
        assert len(await state(caller)) == 1

    acted(text, body)


def test_a_described_state_that_tells_of_buffers_stands_alone() -> None:
    """The scenario knows better."""
    text = CONF + (
        'programs: {/opt/state: {output: "TotalSize=9\\nUserID=1 JobID=2 State=x Size=3\\n"}}\n'
    )

    async def body(caller: Caller) -> None:
        await caller.run("/opt/in", "start_stage_in", "7", "1001", "5")
        assert len(await state(caller)) == 2

    acted(text, body)


def test_only_paths_that_burst_buffer_conf_names_are_the_appliances() -> None:
    """Any other is nothing, and a status is shown to people."""

    async def body(caller: Caller) -> None:
        assert (await caller.run("/opt/elsewhere", "get_sys")).exit_code == 127
        status = await caller.run("/opt/cray/dws/default/bin/dwstat", "most")
        assert status.output.startswith("pool units")

    acted(CONF, body)


def test_a_job_may_have_buffers_of_both_plugins() -> None:
    """They share the pools, not the tokens."""

    async def body(caller: Caller) -> None:
        await setup(caller, "7")
        assert (await caller.run("/opt/in", "start_stage_in", "7", "1001", str(GIB))).ok
        assert len(await state(caller)) == 2
        assert (await dw(caller, "teardown", "--token", "7")).ok
        assert len(await state(caller)) == 2
        assert (await shown(caller, "pools"))["pools"][0]["free"] == 1023

    acted(CONF + SCRIPT, body)


def test_arguments_that_make_no_sense_are_refused() -> None:
    """With a text and exit status 1, whatever they are."""

    async def body(caller: Caller) -> None:
        for argv in (
            ("start_stage_in",),
            ("start_stage_in", "7", "\u00b2", "x"),
            ("stop_stage_in",),
        ):
            assert (await caller.run("/opt/in", *argv)).exit_code == 1
        for more in ((), ("--capacity",), ("--token", "5", "--capacity", "p:much")):
            assert (await dw(caller, "setup", *more)).exit_code == 1
        assert (await caller.run(CLI, "--function")).exit_code == 1
        assert (await caller.run("/opt/in")).ok

    acted(CONF + SCRIPT, body)


# Anything at any time.

CALLS = st.tuples(
    st.integers(0, 15),
    st.sampled_from(
        [
            *("setup", "data_in", "pre_run", "data_out", "teardown", "real_size"),
            *("start_stage_in", "start_stage_out", "stop_stage_in", "stop_stage_out", "get_sys"),
        ]
    ),
    st.sampled_from(["2", "3", "shared"]),
    st.sampled_from([0.0, 0.2, 3.0]),
    st.integers(0, 700),
)


@settings(max_examples=60)
@given(st.lists(CALLS, min_size=1, max_size=14), st.sampled_from(["fifo", "random"]))
def test_whatever_is_asked_at_once_the_space_adds_up(
    calls: list[tuple[int, str, str, float, int]], schedule: str
) -> None:
    """Calls overlap, are killed by their time limits, and meet an appliance that is down."""
    text = (
        CONF
        + SCRIPT
        + """\
burst_buffer: {bandwidth: 3GiB, data: {/lus/in: 20GiB, /lus/out: 7GiB}}
timeline: [{at: 6s, burst_buffer: {up: false}}, {at: 9s, burst_buffer: {up: true, bandwidth: 1GiB}}]
"""
    )

    def asking(at_s: int, function: str, token: str, limit_s: float, size: int) -> Any:
        async def body(caller: Caller) -> None:
            await caller.sleep(at_s)
            if "_stage_" in function or function == "get_sys":
                bytes_ = str(size * GIB)
                await caller.run("/opt/in", function, token, "1001", bytes_, timeout=limit_s)
                return
            more: tuple[str, ...] = ("--job", "/tmp/job")
            if function == "setup":
                more = ("--job", "/tmp/plain", "--capacity", f"wlm_pool:{size}GiB")
            await caller.run(CLI, "--function", function, "--token", token, *more, timeout=limit_s)

        return body

    caller, ran = ran_scripts(
        text, *(asking(*call) for call in calls), lingers=False, schedule=schedule, seed=1
    )
    assert len(caller.results) == len(calls)
    assert not ran.result.stalled
    appliance = ran.world.site.appliance
    pool = appliance.store.pools["wlm_pool"]
    buffers = (*appliance.store.buffers.values(), *appliance.generic_store.buffers.values())
    assert pool.used == sum(each.size for each in buffers) <= pool.capacity
    for result in caller.results:
        assert result.status in (0, 256, 9), result


# Plain functions.

REQUESTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60), st.booleans()), max_size=40)


@given(REQUESTS, st.integers(1, 100), st.integers(1, 16))
def test_a_pool_is_never_granted_beyond_its_capacity(
    requests: list[tuple[int, int, bool]], capacity: int, granularity: int
) -> None:
    """Whatever is asked for and given back; used space is that of the buffers there are."""
    store = Store((PoolSpec(name="p", capacity=capacity, granularity=granularity),))
    for token, size, drops in requests:
        try:
            if drops:
                store.drop(str(token))
            else:
                store.grant(str(token), size)
        except RefusedError:
            pass
        pool = store.pools["p"]
        assert pool.used == sum(each.size for each in store.buffers.values())
        assert 0 <= pool.used <= capacity
        assert pool.free <= capacity - pool.used


def test_directives_end_where_the_comments_end() -> None:
    """A backslash continues a line, whose prefix stands again on the next."""
    text = (
        "#!/bin/sh\n#DW stage_in source=/a \\\n#DW destination=/b\n#SBATCH -N1\n\n#DW swap 4GiB\n"
    )
    found = directives(text)
    assert [(one.word, one.options) for one in found] == [
        ("stage_in", {"source": "/a", "destination": "/b"})
    ]
    assert staged_paths(found, "stage_in") == ["/a"]


def test_access_modes_may_bear_numbers() -> None:
    """`striped(MEM)` is mounted as striped."""
    lines = directives("#DW jobdw capacity=1GiB access_mode=striped(MEM)\n")
    assert list(mounts(lines, "4")) == ["DW_JOB_STRIPED"]


# The section of the scenario.

WRONG = (
    ("pools: {p: {capacity: 1QiB}}", "expected a size such as 512"),
    ("pools: {p: {capacity: 16N}}", "got a number of nodes"),
    ("pools: {p: {granularity: 1GiB}}", "missing key `capacity`"),
    ("pools: {p: {capacity: 1MiB}}", "smaller than one granule"),
    ("pools: {'a:b': {capacity: 1TiB}}", "cannot be a pool"),
    ("pools: {}", "expected pools such as"),
    ("bandwith: 1GiB", 'did you mean "bandwidth"'),
    ("bandwidth: 0", "expected a size above 0"),
    ("data: {/a: lots}", "expected a size"),
    ("functions: {data_inn: {runs: 5s}}", 'did you mean "data_in"'),
    ("functions: {data_in: {exit: 1, signal: 9}}", "ends in one way"),
    ("functions: {data_in: {exit: 300}}", "from 0 to 255"),
    ("functions: {data_in: []}", "at least 1"),
    ("up: perhaps", "expected true or false"),
)


@pytest.mark.parametrize(("section", "message"), WRONG)
@pytest.mark.parametrize("where", ["whole", "timeline"])
def test_a_mistake_about_the_appliance_is_told_with_its_line(
    where: str, section: str, message: str
) -> None:
    """At the start of the run and in its middle alike."""
    text = f"burst_buffer: {{{section}}}\n"
    if where == "timeline":
        text = f"timeline:\n  - {{at: 5s, burst_buffer: {{{section}}}}}\n"
    with pytest.raises(ScenarioErrors) as caught:
        read_scenario(TWO_NODES + text, file="s.yaml")
    [mistake] = caught.value.mistakes
    assert message.replace('"', "") in mistake.message.replace("'", "").replace('"', "")
    assert mistake.line == (TWO_NODES + text).rstrip().count("\n") + 1


def test_what_the_appliance_does_outlives_a_restart_of_slurmctld() -> None:
    """A script that nobody waits for goes on, and its buffer is there afterwards."""
    text = CONF + "timeline: [{at: 2s, fault: {restart: slurmctld, for: 1s}}]\n"

    async def body(caller: Caller) -> None:
        caller.start("/opt/in", "start_stage_in", "7", "1001", str(GIB), name="start_stage_in")

    _, ran = ran_scripts(text, body, lingers=False)
    event = ran.one("start_stage_in")
    assert (event.rc, event.time_us) == (0, 5_000_000)
    assert ran.world.site.appliance.generic_store.get("7").state == "staged-in"
