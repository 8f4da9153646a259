"""sbatch's options: where they come from, which of them counts, and what they do to the job."""

import pytest
import yaml

from simctl.commands.arguments.job_values import export
from simctl.commands.submission.batch_script import foreign, words_of
from simctl.ctld.reporting.info import describe_job
from simctl.world import CommandResult
from tests import cluster, printed

_FEATURES = printed.CLUSTER.replace(
    '{name: "n[1-3]", cpus: 4, memory_mb: 4000}',
    '{name: "n[1-2]", cpus: 4, memory_mb: 4000, features: "slow,big"}\n'
    '  - {name: n3, cpus: 4, memory_mb: 4000, features: "fast,big"}',
)
JOB = "#!/bin/sh\n#SBATCH -J line -t 5\nsleep 30\n"


def run(*lines: str, cluster_text: str = printed.CLUSTER, **files: str) -> cluster.Ran:
    """Run command lines as alice, ten seconds apart; *files* are scripts without their suffix."""
    entries = [{"at": f"{10 * at}s", "as": "alice", "run": line} for at, line in enumerate(lines)]
    scripts = {"j.sh": JOB, **{f"{name}.sh": text for name, text in files.items()}}
    scenario = {
        "files": scripts,
        "programs": {"./fat": {"runs": "1s", "oom": True}},
        "timeline": entries,
    }
    return cluster.run(yaml.safe_dump(scenario), cluster=cluster_text)


def typed(line: str, **files: str) -> CommandResult:
    """Run one command line."""
    return run(line, **files).result.commands[0]


def output(ran: cluster.Ran, name: str = "slurm-1.out") -> str:
    """Return what a file in alice's home holds."""
    text = ran.world.site.disk.read(f"/home/alice/{name}")
    assert text is not None
    return text


def within(env: str, line: str, **files: str) -> cluster.Ran:
    """Run a command line inside a batch job, whose own variables are *env*."""
    return run("sbatch outer.sh", outer=f"#!/bin/sh\n{env} {line} > out 2>&1\nexit $?\n", **files)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-N2 -n4", ["-N2", "-n4"]),
        ("--job-name='a b' -n1", ["--job-name=a b", "-n1"]),
        ('--comment="it\'s" # why', ["--comment=it's"]),
        ("-J a\\#b", ["-J", "a#b"]),
        ("-J a#b", ["-J", "a"]),
        ("", []),
        ("# all of it", []),
    ],
)
def test_words_of_a_line(line: str, words: list[str]) -> None:
    """Quotes group, a comment ends the line."""
    assert words_of(line) == words


def test_the_command_line_counts_for_more_than_variables_and_lines() -> None:
    """First the line, then SBATCH_ variables, then the script's own options."""
    assert run("sbatch j.sh").result.rows[0].name == "line"
    ran = within("SBATCH_JOB_NAME=var SBATCH_PARTITION=short", "sbatch j.sh")
    assert [(row.name, row.partition) for row in ran.result.rows][1] == ("var", "short")
    ran = within("SBATCH_JOB_NAME=var", "sbatch -J typed j.sh")
    assert ran.result.rows[1].name == "typed"


def test_the_later_of_two_that_contradict_each_other_counts() -> None:
    """Of --mem and --mem-per-cpu, and of --requeue and --no-requeue."""
    script = (
        "#!/bin/sh\n#SBATCH --requeue --mem=100\n"
        "echo $SLURM_MEM_PER_NODE $SLURM_MEM_PER_CPU\nsleep 50\n"
    )
    ran = run("sbatch --no-requeue --mem-per-cpu=50 s.sh", "scontrol requeue 1", s=script)
    assert output(ran) == "50\n"
    assert ran.result.commands[1].exit == 1


def test_variables_of_options_that_are_not_built_are_refused() -> None:
    """By their name."""
    assert "SBATCH_NETWORK" in output(within("SBATCH_NETWORK=x", "sbatch j.sh"), "out")


def test_slurm_exit_error_is_the_status_of_most_errors() -> None:
    """Not of an option that does not parse."""
    ran = within("SLURM_EXIT_ERROR=9", "sbatch -n abc j.sh")
    assert ran.job(1)[1] == "9:0"
    assert within("SLURM_EXIT_ERROR=9", "sbatch -p nope j.sh").job(1)[1] == "9:0"
    assert within("SLURM_EXIT_ERROR=9", "sbatch -t abc j.sh").job(1)[1] == "255:0"


def test_lines_of_other_systems() -> None:
    """They are refused, for Slurm reads them; unless they are to be passed over."""
    script = "#!/bin/sh\n#PBS -N x\ntrue\n"
    assert foreign(script) == "#PBS"
    assert foreign("#!/bin/sh\ntrue\n#BSUB -n 2\n") == ""
    assert "--ignore-pbs" in typed("sbatch s.sh", s=script).stderr
    assert typed("sbatch --ignore-pbs s.sh", s=script).exit == 0


def test_beginnings_of_long_names() -> None:
    """One that is Slurm's alone will do, also of an option that is refused."""
    assert typed("sbatch --part=short j.sh").exit == 0
    assert typed("sbatch --con=x j.sh").stderr == (
        "sbatch: option '--con' is ambiguous; possibilities: '--constraint' '--container' "
        "'--contiguous'\n"
        'Try "sbatch --help" for more information\n'
    )
    assert "--contiguous is an option of Slurm's" in typed("sbatch --contig j.sh").stderr
    assert typed("sbatch j.sh --con=x --no-such").exit == 0


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("ALL", {"A", "B", "HOME", "SLURM_X"}),
        ("NONE", {"HOME", "SLURM_X"}),
        ("NIL", {"SLURM_X"}),
        ("A", {"A", "HOME", "SLURM_X"}),
        ("C=1", {"C", "HOME", "SLURM_X"}),
        ("ALL,C=1", {"A", "B", "C", "HOME", "SLURM_X"}),
    ],
)
def test_what_is_exported(text: str, seen: set[str]) -> None:
    """All, none but a login's, nothing but Slurm's, or what is named."""
    env = {"A": "1", "B": "2", "HOME": "/", "SLURM_X": "3"}
    assert set(export(text).of(env)) == seen


def test_constraints_choose_nodes() -> None:
    """By the features of nodes; one that no node has is refused."""
    ran = run(
        "sbatch -C fast j.sh", "sbatch -C 'big&slow' -N2 -n2 j.sh", "sbatch -C 'fast|slow' j.sh",
        "sbatch -C nope j.sh", "sbatch -C 'fast&slow' j.sh", cluster_text=_FEATURES,
    )  # fmt: skip
    assert [row.nodes for row in ran.result.rows][:2] == ["n3", "n[1-2]"]
    assert ran.stderr(3).endswith("Invalid feature specification\n")
    assert ran.result.commands[4].exit == 1


def test_fewer_words() -> None:
    """--quiet takes the id, the warning and the answer of --test-only."""
    for line in ("sbatch -Q -n1 -N3 j.sh", "sbatch -Q --test-only j.sh"):
        assert (typed(line).stdout, typed(line).stderr) == ("", "")


def test_waiting_for_an_array() -> None:
    """The greatest exit status of its tasks."""
    script = "#!/bin/sh\nexit $SLURM_ARRAY_TASK_ID\n"
    assert typed("sbatch -W -a 1-4%2 s.sh", s=script).exit == 4


def test_a_directory_that_is_not_there() -> None:
    """The script starts in /tmp, if its output is elsewhere, and is told."""
    ran = run("sbatch -D /nope -o /home/alice/out --wrap pwd")
    told = (
        "slurmstepd-n1: error: couldn't chdir to `/nope': No such file or directory: "
        "going to /tmp instead\n"
    )
    assert output(ran, "out") == f"{told}{told}/tmp\n"


def test_too_much_memory_is_told() -> None:
    """At the end of the output."""
    ran = run("sbatch --wrap ./fat")
    assert output(ran).startswith("slurmstepd-n1: error: Detected 1 oom_kill event in StepId=1.")
    assert ran.job(1)[0] == "OUT_OF_MEMORY"


def test_gpus_are_numbered() -> None:
    """Each job finds the numbers of its own."""
    ran = run(*['sbatch --gres=gpu:1 --wrap "echo $SLURM_JOB_GPUS; sleep 90"'] * 2)
    assert [output(ran, f"slurm-{job}.out") for job in (1, 2)] == ["0\n", "1\n"]


def test_only_root_acts_for_others() -> None:
    """And the job is then the other's."""
    entry = {"at": "0s", "as": "root", "run": "sbatch --uid=bob -D /home/bob --wrap true"}
    ran = cluster.run(yaml.safe_dump({"timeline": [entry]}), cluster=printed.CLUSTER)
    assert ran.result.rows[0].user == "bob"


def test_output_may_be_added_to_or_begun_anew() -> None:
    """--open-mode; by default it is begun anew."""
    lines = [f"sbatch -W -o out {mode} --wrap 'echo hi'" for mode in ("", "--open-mode=a", "")]
    assert output(run(*lines[:2]), "out") == "hi\nhi\n"
    assert output(run(*lines), "out") == "hi\n"


@pytest.mark.parametrize("line", ["sbatch --version", "sbatch --usage", "sbatch --help"])
def test_what_is_answered_without_a_job(line: str) -> None:
    """Nothing is submitted."""
    ran = run(line)
    assert ran.result.commands[0].exit == 0
    assert ran.result.rows == ()


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--exclusive=user", "--exclusive=user is an option of Slurm's that simctl does not"),
        ("--exclusive=x", "sbatch: error: Invalid --exclusive specification"),
        ("-C '[a|b]'", "--constraint with counts or brackets is an option of Slurm's"),
        ("--priority=-3", "sbatch: error: Priority must be >= 0"),
        ("--nice=3000000000", "sbatch: error: Invalid nice value, must be between -2147483645"),
        ("--deadline=x", "Invalid time specification (pos=0): x\n"),
        ("--open-mode=x", "sbatch: error: Invalid --open-mode specification"),
    ],
)
def test_values_that_are_refused(option: str, told: str) -> None:
    """With what is wrong about them, and status 255."""
    result = typed(f"sbatch {option} j.sh")
    assert told in result.stderr
    assert result.exit == 255


def test_options_that_the_jobs_variables_tell_of() -> None:
    """And the reservation, if there is one."""
    echo = "echo $SLURM_JOB_DEPENDENCY $SLURM_GPUS $SLURM_CONTAINER"
    ran = run("sbatch j.sh", f"sbatch -d after:1 -G1 --container=/c --wrap '{echo}'")
    assert output(ran, "slurm-2.out") == "after:1 1 /c\n"


def test_what_a_job_left_can_be_shown() -> None:
    """By cat in the timeline and in scripts, from shared files and from a node's own."""
    ran = run(
        "sbatch -o /tmp/own --wrap 'hostname > all; cat all none; echo $?'",
        "srun cat all",
        "srun -w n1 cat /tmp/own",
        "srun -w n2 cat /tmp/own",
    )
    shown = [result.stdout for result in ran.result.commands[1:]]
    assert shown == ["n1\n", "n1\ncat: none: No such file or directory\n1\n", ""]
    assert ran.stderr(3).startswith("cat: /tmp/own: No such file or directory\n")


def command(line: str) -> str:
    """Return what is told of the command of a job that is held."""
    ran = run(line, out="#!/bin/sh\nsbatch -H < j.sh\n")
    (job,) = ran.world.ctld.jobs.values()
    return describe_job(ran.world.ctld, job).command


def test_the_command_is_told_as_sbatch_found_it() -> None:
    """Where the job starts, with its arguments; without a file there is none."""
    assert command("sbatch -H j.sh a b c") == "/home/alice/j.sh a b c"
    assert command("sbatch -H -D /nope j.sh") == "j.sh"
    assert command("sbatch -H --wrap true") == ""
    assert command("sbatch out.sh") == ""


@pytest.mark.parametrize("moment", ["at: 10s", "when: RESPONSE_SUBMIT_BATCH_JOB phase=receive"])
def test_waiting_over_a_link_that_is_cut(moment: str) -> None:
    """Whenever it is cut, the end of the job is told once the link is whole again."""
    text = (
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch -W --wrap 'sleep 30; exit 3'}\n"
        f"  - {{{moment}, fault: {{cut: [login, slurmctld], for: 2m}}}}\n"
    )
    assert cluster.run(text, cluster=printed.CLUSTER).result.commands[0].exit == 3


def test_what_a_requeued_script_finds() -> None:
    """Its output anew, unless --open-mode=append; and the tasks on a node where it has one."""
    text = (
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch -N1 --ntasks-per-node=2 -o a j.sh}\n"
        "  - {at: 0s, as: alice, run: sbatch -N1 --open-mode=append -o b j.sh}\n"
        "  - {at: 9s, as: root, run: scontrol requeue 1}\n"
        "  - {at: 9s, as: root, run: scontrol requeue 2}\n"
        'files: {j.sh: "#!/bin/sh\\necho run $SLURM_RESTART_COUNT of $SLURM_NTASKS_PER_NODE\\n'
        'sleep 30\\n"}\n'
    )
    found = cluster.run(text, cluster=printed.CLUSTER).world.disk.contents("")
    assert found["/home/alice/a"].decode() == "run 1 of 2\n"
    first, _, again = found["/home/alice/b"].decode().splitlines()
    assert (first, again) == ("run of", "run 1 of")
