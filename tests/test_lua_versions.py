"""What differs for a site's burst_buffer.lua between versions of Slurm."""

from pathlib import Path

import pytest

from simctl.scenario.load import read_scenario
from simctl.world import RunResult, World

pytest.importorskip("lupa")

SCRIPT = """\
local function told(name, ...)
  local kinds = {}
  for at = 1, select("#", ...) do kinds[at] = type((select(at, ...))):sub(1, 1) end
  slurm.log_info("%s(%s)", name, table.concat(kinds))
end
local polls = "/tmp/polls"
function slurm_bb_pools()
  return 0, '{"pools": [{"id": "fast", "quantity": 100, "granularity": 10}]}'
end
for _, name in ipairs({"job_process", "data_in", "real_size", "paths", "pre_run", "post_run",
                       "data_out", "test_data_out", "job_teardown", "get_status"}) do
  _G["slurm_bb_" .. name] = function(...) told(name, ...) return 0 end
end
function slurm_bb_setup(id, ...)
  told("setup", id, ...)
  if id == "2" then return 1, "no room" end
  slurm.log_info("names %s %s %s", tostring(slurm.ESLURM_INVALID_QOS ~= nil),
    tostring(slurm.job_info_to_string ~= nil), tostring(slurm.SLURM_BB_BUSY))
  return 0
end
function slurm_bb_test_data_in(...)
  told("test_data_in", ...)
  local file = io.open(polls, "r")
  if file then return 0, "done" end
  io.open(polls, "w"):close()
  return 0, slurm.SLURM_BB_BUSY
end
"""
TEXT = """\
slurm_conf: {BurstBufferType: burst_buffer/lua}
burst_buffer_lua: script.lua
nodes: [{name: n1, cpus: 4}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
files: {job.sh: "#!/bin/bash\\n#BB_LUA pool=fast capacity=10\\nsleep 5\\n"}
timeline:
  - {at: 1s, as: alice, run: sbatch job.sh}
  - {at: 2s, as: alice, run: sbatch job.sh}
  - {at: 59s, as: alice, run: scontrol show bbstat x y, exit: 0}
  - {at: 60s, run: squeue -h -j 2 -o %r}
"""
OLD = {
    *("job_process(s)", "setup(ssssss)", "data_in(ss)", "real_size(s)", "paths(sss)"),
    *("pre_run(ss)", "post_run(ss)", "data_out(ss)", "job_teardown(sss)"),
    "get_status(ss)",
}
NEW = {
    *("job_process(ssst)", "setup(sssssst)", "data_in(sssst)", "real_size(ssst)", "paths(ssssst)"),
    *("pre_run(sssst)", "post_run(sssst)", "data_out(sssst)", "job_teardown(sssss)"),
    "get_status(ssss)",
}
POLLS = {"test_data_in(sssst)", "test_data_out(sssst)"}


def run(
    tmp_path: Path, slurm: str, text: str = TEXT, script: str = SCRIPT
) -> tuple[RunResult, World]:
    """Run two jobs under a version; the second's setup fails."""
    (tmp_path / "script.lua").write_text(script)
    scenario = read_scenario(
        f'lua: {{version: "5.4", slurm: "{slurm}"}}\n{text}', file=str(tmp_path / "s.yaml")
    )
    world = World(scenario, model="modern", orderings=False)
    world.trace.add_sink(world.events.append)
    return world.run(), world


@pytest.mark.parametrize(
    ("slurm", "calls", "names", "reason"),
    [
        ("22.05", OLD, "false false nil", "burst_buffer/lua: slurm_bb_setup: no room"),
        ("23.02", NEW, "true true nil", "burst_buffer/lua: slurm_bb_setup: no room"),
        ("24.05", NEW | POLLS, "true true BUSY", "burst_buffer/lua: slurm_bb_setup: no room"),
        (
            "25.05",
            NEW | POLLS,
            "true false BUSY",
            "JobHeldAdmin: burst_buffer/lua: slurm_bb_setup failed: no room",
        ),
    ],
)
def test_arguments_names_polls_and_reasons(
    tmp_path: Path, slurm: str, calls: set[str], names: str, reason: str
) -> None:
    """uid, gid and job_info from 23.02 on, polls from 24.05 on, other words from 25.05 on."""
    result, world = run(tmp_path, slurm)
    told = [
        str(each.args["text"]).removeprefix("lua: ")
        for each in world.events
        if each.kind == "log" and isinstance(each.args, dict) and "text" in each.args
    ]
    assert {each for each in told if each.endswith(")")} == calls
    assert f"names {names}" in told
    assert told.count("test_data_in(sssst)") == (2 if calls >= POLLS else 0)
    assert result.commands[-1].stdout == f"{reason}\n"


def test_faults_strike_functions_in_slurmctld_and_space_goes_below_zero(tmp_path: Path) -> None:
    """A `fail` counts for them as for children; a pool that is not known yet has less than none."""
    text = TEXT.partition("timeline:")[0] + (
        "timeline:\n"
        "  - {at: 1s, fault: {fail: slurm_bb_job_process}}\n"
        "  - {at: 2s, as: alice, run: sbatch job.sh, exit: 1}\n"
        "  - {at: 3s, as: alice, run: sbatch job.sh, exit: 0}\n"
        "  - {at: 4s, run: scontrol reconfigure}\n"
        "  - {at: 5s, run: scontrol show burst, stdout: FreeSpace=18446744073709551606}\n"
    )
    result, _ = run(tmp_path, "22.05", text.replace("sleep 5", "sleep 50"))
    assert [(each.text, each.detail) for each in result.expectations if not each.held] == []


HOLDER = """\
from simctl.plugin import BurstBufferPlugin


class Holder(BurstBufferPlugin):
    plugin_type = "burst_buffer/holder"
    plugin_name = "holds jobs"
    plugin_version = 100

    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        if not test_only:
            job_ptr.priority = 0
        return 1
"""


def test_a_job_that_another_plugin_has_held_is_not_staged_in(tmp_path: Path) -> None:
    """The plugins are asked one after the other, and the first may hold it."""
    (tmp_path / "holder.py").write_text(HOLDER)
    text = TEXT.partition("timeline:")[0].replace(
        "burst_buffer/lua}",
        '"burst_buffer/holder,burst_buffer/lua"}\nplugins: ["./holder.py:Holder"]',
    )
    text += (
        "timeline:\n"
        "  - {at: 1s, as: alice, run: sbatch job.sh, exit: 0}\n"
        "  - {at: 60s, run: scancel 1}\n"
    )
    _, world = run(tmp_path, "22.05", text)
    asked = [each for each in world.events if each.name == "bb_p_job_test_stage_in"]
    assert {each.plugin for each in asked} >= {"burst_buffer/holder", "burst_buffer/lua"}
    assert not [each for each in world.events if each.name == "slurm_bb_setup"]


@pytest.mark.parametrize("interval", [7, 60, 1000])
def test_a_transfer_that_stays_busy_fails_at_its_limit(tmp_path: Path, interval: int) -> None:
    """However long the time from poll to poll is: StageInTimeout after slurm_bb_data_in."""
    script = SCRIPT.replace('if file then return 0, "done" end', "if file then file:close() end")
    text = TEXT.partition("timeline:")[0] + (
        f"burst_buffer_conf: {{PollInterval: {interval}, StageInTimeout: 100}}\n"
        "timeline:\n"
        "  - {at: 1s, as: alice, run: sbatch job.sh, exit: 0}\n"
        "  - {at: 101s, run: squeue -h -o %r}\n"
        "  - {at: 102s, run: squeue -h -o %r}\n"
    )
    result, _ = run(tmp_path, "24.05", text, script)
    before, after = (each.stdout for each in result.commands[1:])
    assert "exceeded" not in before
    assert after == "burst_buffer/lua: slurm_bb_test_data_in: Poll exceeded time limit\n"


def test_a_job_tells_the_name_of_its_cluster(tmp_path: Path) -> None:
    """That of slurm.conf; scripts hand it on to programs that serve several clusters."""
    script = SCRIPT.replace('told("setup", id, ...)', "local info = select(6, ...)").replace(
        'if id == "2"', 'slurm.log_info("cluster " .. info.cluster)\n  if id == "2"'
    )
    (tmp_path / "script.lua").write_text(script)
    text = 'lua: {version: "5.4", slurm: "23.02"}\n' + TEXT.replace(
        "{BurstBufferType", "{ClusterName: blue, BurstBufferType"
    )
    world = World(read_scenario(text, file=str(tmp_path / "s.yaml")), orderings=False)
    world.trace.add_sink(world.events.append)
    world.run()
    told = [each.args for each in world.events if each.kind == "log"]
    assert {"text": "lua: cluster blue"} in [
        {"text": each["text"]} for each in told if isinstance(each, dict) and "text" in each
    ]


@pytest.mark.parametrize(("capacity", "waits"), [(490, False), (500, False), (510, True)])
def test_what_is_left_of_a_pool_is_given_to_the_last_of_it(
    capacity: int, waits: bool, tmp_path: Path
) -> None:
    """Half of it is in use: what asks for more is set up once that has come back."""
    sized = "#!/bin/bash\\n#BB_LUA pool=fast capacity={}\\nsleep 50\\n"
    text = TEXT.partition("files:")[0] + (
        f'files: {{half.sh: "{sized.format(500)}", rest.sh: "{sized.format(capacity)}"}}\n'
        "timeline:\n"
        "  - {at: 1s, as: alice, run: sbatch half.sh}\n"
        "  - {at: 2s, as: alice, run: sbatch rest.sh}\n"
    )
    _, world = run(tmp_path, "23.02", text, SCRIPT.replace('id == "2"', "false"))
    begun = [
        each.time_us // 1_000_000
        for each in world.events
        if each.name == "bb_state" and isinstance(each.args, dict) and each.job == 2
        if each.args["to"] == "STAGING_IN"
    ]
    assert [at > 50 for at in begun] == [waits]


@pytest.mark.parametrize(("first", "second"), [(20, 10), (10, 20)])
def test_who_waits_for_space_is_expected_as_the_first_of_those_who_have_it_ends(
    first: int, second: int, tmp_path: Path
) -> None:
    """By its time limit."""
    head = TEXT.partition("files:")[0].replace("n1, cpus", '"n[1-2]", cpus')
    text = head.replace("nodes: n1", 'nodes: "n[1-2]"') + (
        'files: {half.sh: "#!/bin/bash\\n#BB_LUA pool=fast capacity=500\\nsleep 50\\n"}\n'
        "timeline:\n"
        f"  - {{at: 1s, as: alice, run: sbatch -t {first} half.sh}}\n"
        f"  - {{at: 2s, as: alice, run: sbatch -t {second} half.sh}}\n"
        "  - {at: 20s, as: alice, run: sbatch -t 5 half.sh}\n"
    )
    _, world = run(tmp_path, "23.02", text, SCRIPT.replace('id == "2"', "false"))
    (asked,) = [e for e in world.events if e.name == "bb_p_job_get_est_start" and e.job == 3]
    assert isinstance(asked.rc, int)
    assert 600 <= asked.rc - 1_767_225_600 < 610


@pytest.mark.parametrize("restart", ["", "25s", "270s"])
def test_a_job_whose_pre_run_fails_for_the_fourth_time_is_held(
    tmp_path: Path, restart: str
) -> None:
    """Also if slurmctld is restarted while the job waits and has no buffer."""
    script = SCRIPT.replace('id == "2"', "false")
    script += "function slurm_bb_pre_run() return 1 end\n"
    again = f"  - {{at: {restart}, fault: {{restart: slurmctld, for: 1s}}}}\n" if restart else ""
    text = TEXT.partition("timeline:")[0] + (
        f"timeline:\n  - {{at: 1s, as: alice, run: sbatch job.sh, exit: 0}}\n{again}"
        "  - {at: 300s, run: squeue -h -o %Q}\n"
        "  - {at: 900s, run: squeue -h -o %Q}\n"
    )
    result, world = run(tmp_path, "24.05", text, script)
    tries = [e for e in world.events if e.name == "slurm_bb_pre_run" and e.phase != "enter"]
    assert len(tries) == 4
    assert [each.stdout == "0\n" for each in result.commands[1:]] == [False, True]


@pytest.mark.parametrize("slurm", ["22.05", "24.05"])
def test_who_waits_for_space_gets_it_as_soon_as_it_is_there(slurm: str, tmp_path: Path) -> None:
    """A teardown that is over leads to a pass, whatever else happens."""
    script = SCRIPT.replace('id == "2"', "false")
    script += "function slurm_bb_job_teardown() os.execute('sleep 7') return 0 end\n"
    text = TEXT.partition("files:")[0] + (
        'files: {most.sh: "#!/bin/bash\\n#BB_LUA pool=fast capacity=600\\nsleep 5\\n"}\n'
        "timeline:\n"
        "  - {at: 1s, as: alice, run: sbatch most.sh}\n"
        "  - {at: 2s, as: alice, run: sbatch most.sh}\n"
    )
    _, world = run(tmp_path, slurm, text, script)
    when = {
        (each.job, each.args["to"]): each.time_us
        for each in world.events
        if each.name == "bb_state" and isinstance(each.args, dict)
    }
    assert 0 <= when[2, "STAGING_IN"] - when[1, "COMPLETE"] < 1_000_000


def test_a_job_that_cannot_start_after_all_keeps_its_buffer(tmp_path: Path) -> None:
    """Its pre_run, which would fail, is taken back; in model modern it then stays CONFIGURING."""
    script = SCRIPT + "function slurm_bb_pre_run() os.execute('sleep 9') return 1 end\n"
    text = TEXT.partition("timeline:")[0] + (
        "timeline:\n"
        "  - {at: 0s, fault: {fail: select_g_job_begin}}\n"
        "  - {at: 1s, as: alice, run: sbatch job.sh}\n"
        "  - {at: 60s, run: squeue -h -o %T}\n"
    )
    result, world = run(tmp_path, "22.05", text, script)
    called = {each.name for each in world.events if each.name.startswith("slurm_bb_")}
    assert "slurm_bb_paths" in called
    assert not called & {"slurm_bb_pre_run", "slurm_bb_job_teardown"}
    assert result.commands[-1].stdout == "CONFIGURING\n"
