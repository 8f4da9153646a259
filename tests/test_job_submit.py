"""job_submit plugins, in Lua and in Python: what they change, refuse, tell and let through."""

from pathlib import Path

import pytest

from simctl.cli import main
from simctl.scenario.load import read_scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.world import RunResult, World

pytest.importorskip("lupa")

LUA = """\
calls = 0
function slurm_job_submit(desc, parts, uid)
  calls = calls + 1
  if desc.time_limit == slurm.NO_VAL then
    desc.time_limit = 30
    slurm.log_user("limit %d, call %d", desc.time_limit, calls)
  end
  if desc.account == "bad" then
    slurm.log_user("no account %s", desc.account)
    return slurm.ESLURM_INVALID_ACCOUNT
  end
  if desc.name == "broken" then
    desc.comment = "set before"
    error("a bug")
  end
  return slurm.SUCCESS
end
function slurm_job_modify(desc, job, parts, uid)
  if desc.comment then desc.comment = desc.comment .. " of " .. job.name end
  return slurm.SUCCESS
end
"""
PYTHON = """\
from simctl.plugin import JobSubmitPlugin, SlurmError, errno

class Site(JobSubmitPlugin):
    plugin_type = "job_submit/site"
    plugin_name = "a site's rules"

    def job_submit(self, job_desc, submit_uid):
        if job_desc.name == "no":
            raise SlurmError(errno.ESLURM_ACCESS_DENIED, "not here")
        job_desc.time_limit_min = 7
        job_desc.tell("seven minutes")
"""
HEAD = """\
nodes: [{name: n1, cpus: 4}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
"""


def run(tmp_path: Path, text: str) -> tuple[RunResult, World]:
    """Run a scenario beside which both plugins lie."""
    (tmp_path / "rules.lua").write_text(LUA)
    (tmp_path / "site.py").write_text(PYTHON)
    world = World(read_scenario(HEAD + text, file=str(tmp_path / "s.yaml")))
    world.trace.add_sink(world.events.append)
    return world.run(), world


def test_a_script_changes_refuses_and_tells(tmp_path: Path) -> None:
    """What it sets counts and is traced; what it says reaches the user, in or out."""
    result, world = run(
        tmp_path,
        """\
slurm_conf: {JobSubmitPlugins: lua}
job_submit_lua: rules.lua
timeline:
  - {at: 0s, as: alice, run: sbatch --wrap "sleep 100", stderr: "sbatch: limit 30, call 1"}
  - {at: 1s, as: alice, run: sbatch -A bad --wrap true, exit: 1, stderr: "error: no account bad"}
  - {at: 2s, as: root, run: scontrol update jobid=1 comment=seen}
  - {at: 3s, as: alice, run: scontrol show job 1, stdout: "TimeLimit=00:30:00"}
  - {at: 4s, as: alice, run: scontrol show job 1, stdout: "Comment=seen of wrap"}
  - {at: 5s, as: alice, run: srun -J x sleep 1, stderr: "srun: limit 30, call 3"}
""",
    )
    assert [each.detail for each in result.expectations if not each.held] == []
    changed = [
        each.args["changed"]
        for each in world.events
        if isinstance(each.args, dict) and "changed" in each.args
    ]
    assert changed[0]["time_limit_min"][1] == 30


@pytest.mark.parametrize(("slurm", "exit_"), [("25.11", 0), ("26.05", 1)])
def test_a_lua_error_lets_the_job_in(tmp_path: Path, slurm: str, exit_: int) -> None:
    """Up to 25.11 with what was set before it; from 26.05 on it refuses."""
    result, _ = run(
        tmp_path,
        f"""\
slurm_conf: {{JobSubmitPlugins: lua}}
lua: {{slurm: "{slurm}"}}
job_submit_lua: rules.lua
timeline:
  - {{at: 0s, as: alice, run: sbatch -J broken --wrap "sleep 9", exit: {exit_}}}
""",
    )
    assert [each.detail for each in result.expectations if not each.held] == []


def test_a_script_may_ask_slurmctld_and_change_nothing(tmp_path: Path) -> None:
    """Questions are answered while it looks at a submission, others' too; the rest waits for it."""
    script = LUA.replace(
        "  calls = calls + 1\n",
        """  if desc.name == "asks" then
    local file = io.popen("squeue -h -o %j; scontrol show partition debug; sinfo -h; sleep 5")
    local posix = require("posix")
    slurm.log_user("%s %s", file:read("*a"), posix.uname("%n"))
    slurm.log_user("%s at home in %s", posix.getpasswd(uid, "name"), posix.getpasswd().dir)
    slurm.log_user("%s", os.getenv("HOME"))
  end
  if desc.name == "acts" then os.execute("scancel 1") end
  calls = calls + 1
""",
    )
    text = (
        "slurm_conf: {JobSubmitPlugins: lua}\n"
        "job_submit_lua: asks.lua\n"
        "timeline:\n"
        "  - {at: 1s, as: alice, run: sbatch -J first --wrap 'sleep 90'}\n"
        "  - {at: 2s, as: alice, run: sbatch -J asks --wrap true, exit: 0,"
        " stderr: [first, PartitionName=debug, debug*, slurmctld, alice at home in /]}\n"
        "  - {at: 3s, run: squeue -h -o %j, stdout: first}\n"
        "  - {at: 20s, as: alice, run: sbatch -J acts --wrap true, exit: 1, stderr: timed out}\n"
    )
    (tmp_path / "asks.lua").write_text(script)
    result, world = run(tmp_path, text)
    assert [(each.text, each.detail) for each in result.expectations if not each.held] == []
    asked = [each for each in world.events if each.name == "RESPONSE_JOB_INFO"]
    assert [each.time_us // 1_000_000 for each in asked if each.phase == "send"] == [2, 3]


def test_the_table_of_jobs_lags_within_a_second(tmp_path: Path) -> None:
    """Of jobs that come in within a second the third does not see the second one."""
    script = LUA.replace(
        "  calls = calls + 1\n",
        """  local n = 0
  for _ in pairs(slurm.jobs) do n = n + 1 end
  slurm.log_user("%d jobs", n)
  calls = calls + 1
""",
    )
    text = "slurm_conf: {JobSubmitPlugins: lua}\njob_submit_lua: counts.lua\ntimeline:\n"
    for at in ("1s", "5.1s", "5.2s", "5.3s", "5.4s", "6.1s"):
        text += f"  - {{at: {at}, as: alice, run: sbatch -H --wrap true}}\n"
    (tmp_path / "counts.lua").write_text(script)
    result, _ = run(tmp_path, text)
    told = [each.stderr.split()[1] for each in result.commands]
    assert told == ["0", "1", "2", "2", "2", "5"]


def test_a_python_class_rules_as_well(tmp_path: Path) -> None:
    """It is declared, loaded and asked as a script is."""
    result, _ = run(
        tmp_path,
        """\
slurm_conf: {JobSubmitPlugins: site}
plugins: ["./site.py:Site"]
timeline:
  - {at: 0s, as: alice, run: sbatch --wrap "sleep 9", stderr: "sbatch: seven minutes"}
  - {at: 1s, as: alice, run: sbatch -J no --wrap true, exit: 1, stderr: "error: not here"}
  - {at: 2s, as: alice, run: scontrol show job 1, stdout: "TimeLimit=00:07:00"}
""",
    )
    assert [each.detail for each in result.expectations if not each.held] == []


def test_a_table_of_jobs_holds_a_policy_to_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each row says what becomes of a job, field by field; another thing breaks that row alone."""
    (tmp_path / "rules.lua").write_text(LUA)
    path = tmp_path / "jobs.yaml"
    path.write_text(
        HEAD
        + """\
slurm_conf: {JobSubmitPlugins: lua}
job_submit_lua: rules.lua
jobs:
  - {run: "sbatch --wrap 'sleep 1000'", becomes: {time_limit: 30}, stderr: limit 30}
  - {run: "sbatch -t 5 --wrap true", becomes: {}}
  - {run: "sbatch -t 5 -A bad --wrap true", expect: ESLURM_INVALID_ACCOUNT, becomes: {}}
  - {as: root, run: "scontrol update jobid=1 comment=seen", becomes: {comment: seen of wrap}}
  - {run: "srun sleep 1", becomes: {time_limit_min: "31"}}
  - {run: "squeue", becomes: {}}
"""
    )
    assert main(["test", str(path)]) == 1
    told = capsys.readouterr().out
    assert "BROKEN jobs[4]: `srun sleep 1` becomes: {time_limit_min: 31}" in told
    assert "it became {time_limit_min: 30}" in told
    assert "BROKEN jobs[5]" in told
    assert "no plugin of job_submit was asked" in told
    assert told.count("BROKEN jobs") == 2


def test_a_table_names_fields_that_there_are(tmp_path: Path) -> None:
    """A slip in one is told where it stands."""
    rows = 'jobs: [{run: "sbatch --wrap true", becomes: {time_limits: 1}}, {as: alice}]\n'
    with pytest.raises(ScenarioErrors) as told:
        read_scenario(HEAD + rows, file=str(tmp_path / "s.yaml"))
    assert "jobs[0].becomes.time_limits: no field 'time_limits'" in str(told.value)
    assert "missing key: run" in str(told.value) or "`run`" in str(told.value)


def read_by_script(tmp_path: Path, *fields: str, run_line: str, lua: str = "") -> list[str]:
    """Return what a script reads, by expression, as one command comes by; `job` is job_desc."""
    reads = "\n".join(f'  slurm.log_info("read %s", tostring({each}))' for each in fields)
    (tmp_path / "reads.lua").write_text(
        f"local function look(job, parts)\n{reads}\nend\n"
        "function slurm_job_submit(job, parts, uid) if job.name ~= 'kept' then look(job, parts) end"
        " return 0 end\n"
        "function slurm_job_modify(job, rec, parts, uid) look(job, parts) return 0 end\n"
    )
    text = (
        "slurm_conf: {JobSubmitPlugins: lua}\n"
        f"lua: {{version: '5.4', slurm: '{lua or '22.05'}'}}\n"
        "job_submit_lua: reads.lua\n"
        "nodes: [{name: 'n[1-2]', cpus: 4, gres: 'gpu:a:4'}]\n"
        "partitions: [{name: debug, nodes: 'n[1-2]', default: true}]\n"
        "users: {alice: 1001}\n"
        "timeline:\n"
        '  - {at: 1s, as: alice, run: "sbatch -H -J kept --wrap true"}\n'
        f'  - {{at: 2s, as: alice, run: "{run_line}"}}\n'
    )
    world = World(read_scenario(text, file=str(tmp_path / "s.yaml")))
    world.trace.add_sink(world.events.append)
    world.run()
    said = [str(each.args.get("text")) for each in world.events if isinstance(each.args, dict)]
    return [each.removeprefix("lua: read ") for each in said if each.startswith("lua: read ")]


@pytest.mark.parametrize(
    ("asked", "node", "job", "task"),
    [
        ("--gres=gpu:2", "gpu:2", None, None),
        ("--gpus-per-node=2", "gpu:2", None, None),
        ("--gres=gpu", "gpu", None, None),
        ("--gres=gpu:0", "gpu:0", None, None),
        ("--gres=gpu --gpus=a:2", "gpu", "gpu:a:2", None),
        ("--gpus=2", None, "gpu:2", None),
        ("--gpus=a:2", None, "gpu:a:2", None),
        ("-n 2 --gpus-per-task=1", None, None, "gpu:1"),
        ("", None, None, None),
    ],
)
@pytest.mark.parametrize(("slurm", "sign"), [("22.05", "gres:"), ("24.05", "gres/")])
def test_gpus_are_read_where_they_were_asked_for(
    tmp_path: Path,
    asked: str,
    node: str | None,
    job: str | None,
    task: str | None,
    slurm: str,
    sign: str,
) -> None:
    """--gpus is of the job, --gpus-per-task of the task; neither is of each node to a script."""
    read = read_by_script(
        tmp_path,
        *("job.tres_per_node", "job.gres", "job.tres_per_job", "job.tres_per_task"),
        run_line=f"sbatch -N1 {asked} --wrap true",
        lua=slurm,
    )
    wanted = [node, node, job, task]
    assert read == [sign + each if each else "nil" for each in wanted]


def test_gres_that_a_script_sets_leaves_the_gpus_of_the_job(tmp_path: Path) -> None:
    """What is asked for in all stays, whatever each node is to have besides."""
    read = read_by_script(
        tmp_path,
        "job.tres_per_job",
        "(function() job.gres = '' return job.tres_per_node end)()",
        "job.tres_per_job",
        run_line="sbatch -N1 --gpus=2 --wrap true",
    )
    assert read == ["gres:gpu:2", "nil", "gres:gpu:2"]


def test_the_environment_is_a_table_for_every_command(tmp_path: Path) -> None:
    """Its names are nil for what is no batch job; it is not gone through, and nil is no value."""
    fields = (
        "type(job.environment)",
        "job.environment.HOME",
        "next(job.environment)",
        "pcall(function() job.environment.HOME = nil end)",
    )
    assert read_by_script(tmp_path, *fields, run_line="srun -J x true") == [
        *("table", "nil", "nil", "true"),
    ]
    batch = read_by_script(tmp_path, *fields, run_line="sbatch --wrap true")
    assert batch == ["table", "/home/alice", "nil", "false"]


def test_lists_that_are_empty_are_nil(tmp_path: Path) -> None:
    """Argv of srun's allocation and the environment of spank plugins are no tables then."""
    fields = ("job.argv", "job.argc", "job.spank_job_env", "job.spank_job_env_size")
    read = read_by_script(tmp_path, *fields, run_line="scontrol update jobid=1 comment=x")
    assert read == ["nil", "0.0", "nil", "0.0"]


def test_a_change_reads_as_what_is_changed_alone(tmp_path: Path) -> None:
    """Processors and directory, which every submission has, are not there."""
    fields = ("job.min_cpus", "job.work_dir", "job.comment", "job.time_limit")
    read = read_by_script(tmp_path, *fields, run_line="scontrol update jobid=1 comment=x")
    assert read == ["4294967294.0", "nil", "x", "4294967294.0"]


def test_fields_that_slurm_has_not_are_nil(tmp_path: Path) -> None:
    """They exist in the request, but no script of any version reads them."""
    names = ("profile", "plane_size", "submit_line", "core_spec", "kill_on_node_fail")
    read = read_by_script(tmp_path, *(f"job.{each}" for each in names), run_line="sbatch --wrap x")
    assert read == ["nil"] * len(names)


def test_usual_memory_of_a_partition_is_of_a_cpu_or_of_a_node(tmp_path: Path) -> None:
    """As megabytes, without the bit that tells the two apart; the other one is nil."""
    (tmp_path / "reads.lua").write_text(
        "function slurm_job_submit(job, parts, uid)\n"
        "  for _, name in ipairs{'a', 'b', 'c'} do\n"
        "    local part = parts[name]\n"
        "    slurm.log_user('%s', name .. tostring(part.def_mem_per_cpu) .. ' '"
        " .. tostring(part.def_mem_per_node))\n"
        "  end\n"
        "  return 0\nend\n"
        "function slurm_job_modify() return 0 end\n"
    )
    text = (
        "slurm_conf: {JobSubmitPlugins: lua}\n"
        "job_submit_lua: reads.lua\n"
        "nodes: [{name: n1, cpus: 4, memory_mb: 8000}]\n"
        "partitions: [{name: a, nodes: n1, default: true, def_mem_per_cpu: 100},"
        " {name: b, nodes: n1, def_mem_per_node: 200}, {name: c, nodes: n1}]\n"
        "users: {alice: 1001}\n"
        "timeline:\n"
        "  - {at: 1s, as: alice, run: sbatch --wrap true,"
        " stderr: [a100.0 nil, bnil 200.0, cnil 0.0]}\n"
    )
    world = World(read_scenario(text, file=str(tmp_path / "s.yaml")))
    result = world.run()
    assert [each.detail for each in result.expectations if not each.held] == []


def test_a_script_looks_users_up(tmp_path: Path) -> None:
    """By getent and id, by name and by number; a user that there is not has a status of its own."""
    runs = (
        "getent passwd 1001 | cut -d: -f1,3,6",
        "getent passwd alice",
        "getent group alice | cut -d: -f1",
        "getent passwd nosuch; echo $?",
        "getent passwd | grep -c alice",
        "id -un 1001; id -u alice; id -un",
        "id -u nosuch || echo no",
    )
    read = read_by_script(
        tmp_path,
        *(f"(io.popen([[{each}]]):read('*a'):gsub('\\n', ' '))" for each in runs),
        run_line="sbatch --wrap true",
    )
    assert read == [
        *("alice:1001:/home/alice ", "alice:x:1001:1001::/home/alice:/bin/bash ", "alice "),
        *("2 ", "1 ", "alice 1001 slurm ", "no "),
    ]
