"""srun, held against recordings of Slurm's: what it prints, its exit status, what tasks find."""

import pytest

from simctl.world import CommandResult
from tests import printed
from tests.cluster import run

FILES = """\
programs: {hostname: {output: "vm\\n"}, env: {}}
files:
  mp.conf: "0 echo a\\n1 echo b %t\\n"
  noshebang.sh: "echo hi\\n"
"""

LINES = {
    "N4": 'srun -N4 -n4 bash -c "echo $SLURM_PROCID $SLURMD_NODENAME"',
    "badnode": "srun -w nope hostname",
    "badopt": "srun --foo hostname",
    "badpart": "srun -p nope hostname",
    "badtime": "srun -t foo hostname",
    "cpubind": "srun --cpu-bind=q hostname",
    "exit3": 'srun bash -c "exit 3"',
    "exit3_n2": 'srun -n2 bash -c "exit $((SLURM_PROCID+3))"',
    "export_none": "srun --export=NONE env",
    "gres": "srun --gres=foo:1 hostname",
    "immediate": "srun -I -n 16 --exclusive -N4 hostname",
    "jobid_bad": "srun --jobid=999999 hostname",
    "kill_bad": 'srun -n2 -K bash -c "[ $SLURM_PROCID = 0 ] && exit 5; sleep 20"',
    "mem": "srun --mem=100G hostname",
    "mpi_list": "srun --mpi=list",
    "multi": "srun -n2 -l --multi-prog mp.conf",
    "n2_l": "srun -n2 -l hostname",
    "nocmd": "srun",
    "noexec": "srun /nope/cmd",
    "notexec": "srun /home/alice/noshebang.sh",
    "ok": "srun hostname",
    "pty": "srun --pty hostname",
    "segv": 'srun bash -c "kill -SEGV $$"',
    "sig9": 'srun bash -c "kill -9 $$"',
    "step_time": "salloc -n1 srun -t 1:00:00 hostname",
    "test_only": "srun --test-only -N2 hostname",
    "timelimit_part": "srun -p short -t 60 --immediate=2 hostname",
    "toomanycpu": "srun -c 5 hostname",
    "v": "srun -v hostname",
    "version": "srun -V",
    "wait_for_res": "srun -N1 -n4 hostname",
    "waitq": "srun -J sj -Q -n1 true",
}
"""Recordings, and what is typed for them; what shells around srun did is left out."""

IDS = {
    r"(?<=[Jj]ob )\d+": "J",
    r"(?<=jobid )\d+": "J",
    r"(?<=StepId=)\d+": "J",
    r"(?<=STEP )\d+": "J",
    r"(?<=allocation )\d+": "J",
}
"""Jobs have other numbers here. 999999 is one, too."""


def play(line: str, *before: str, wants: str = "") -> CommandResult:
    """Return what alice's command does, a second after others."""
    lines = [*before, line]
    entries = "".join(
        f"  - {{at: {place}s, as: alice, run: '{each}'}}\n".replace("''", "'")
        for place, each in enumerate(lines)
    )
    ran = run(f"{FILES}timeline:\n{entries}", cluster=printed.CLUSTER, model="modern")
    return next(each for each in ran.result.commands if each.command == (wants or line))


@pytest.mark.parametrize("name", LINES)
def test_srun_prints_what_slurms_does(name: str) -> None:
    """Standard output, standard error and exit status, each as recorded."""
    before = ["srun -N4 --exclusive sleep 3"] if name == "wait_for_res" else []
    result = play(LINES[name], *before)
    recorded = printed.read(f"srun/{name}")
    status = recorded.exit
    if name == "export_none":
        # The recorded status is that of sort, which was fed.
        status = 2
    if name == "N4":
        assert sorted(result.stdout.splitlines()) == recorded.stdout.splitlines()
    else:
        assert printed.blurred(result.stdout, IDS) == printed.blurred(recorded.stdout, IDS)
    assert printed.blurred(result.stderr, IDS) == printed.blurred(recorded.stderr, IDS)
    assert result.exit == status


def test_a_job_too_large_waits() -> None:
    """As long as it is let; the recording of Slurm's was broken off."""
    result = play("srun -N5 hostname")
    text = (printed.FOLDER / "srun/toomany.txt").read_text()
    said = text.partition("--- stderr ---\n")[2].rpartition("--- end ---")[0]
    assert printed.blurred(result.stderr, IDS) == printed.blurred(said, IDS)
    assert result.exit == -1


def test_labels_of_standard_error() -> None:
    """Tasks write in any order."""
    result = play('srun -l -n2 bash -c "echo e >&2"')
    recorded = printed.read("srun/label_err")
    assert sorted(result.stderr.splitlines()) == sorted(recorded.stderr.splitlines())


def test_a_file_for_each_task() -> None:
    """Named by the job and the rank."""
    recorded = printed.read("srun/output")
    ran = run(
        f'{FILES}timeline: [{{at: 0s, as: alice, run: "{recorded.line.partition(";")[0]}"}}]\n',
        cluster=printed.CLUSTER,
        model="modern",
    )
    for name in recorded.stdout.split():
        assert ran.world.disk.read(f"/home/alice/{name.replace('158', '1')}") == "vm\n"


def test_steps_in_an_allocation() -> None:
    """The recording's last line, that the allocation was revoked, came or not by chance."""
    result = play(
        'salloc -n2 bash -c "srun hostname; srun -n3 hostname; srun -n1 -N2 hostname; '
        'srun --exact -n1 hostname; echo rc=$?"'
    )
    recorded = printed.read("srun/jobstep_inalloc")
    assert result.stdout == recorded.stdout
    said = printed.blurred(recorded.stderr, IDS).splitlines()[:-1]
    assert printed.blurred(result.stderr, IDS).splitlines() == said
    assert result.exit == recorded.exit


def test_what_tasks_find_in_their_environment() -> None:
    """All variables of the recording, and what is in them but for pids, ports and hosts."""
    recorded = printed.read("srun/env").stdout.splitlines()
    names = sorted({line.partition("=")[0] for line in recorded})
    words = "".join(f"echo {name}=${name}; " for name in names)
    result = play(f'srun -n2 -N2 --export=ALL -J bash bash -c "{words}"')
    blur = {r"(PORT|JOBID|JOB_ID|PID|HOST)=.*": r"\1=", r":\d{4,5}:9728:": ":PORT:9728:"}
    mine = sorted(printed.blurred(result.stdout, blur).splitlines())
    assert mine == sorted(printed.blurred(line, blur) for line in recorded)
