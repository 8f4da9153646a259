"""--wckey and --get-user-env: keys that jobs bear, and what a login gives them."""

import pytest

from tests.scontrol_situations import Lines, type_in


def told(*lines: tuple[str, str]) -> list[str]:
    """Type lines of alice's, each at a moment; return what each wrote."""
    typed: Lines = [(at, "alice", line) for at, line in lines]
    return [each.stdout + each.stderr for each in type_in(typed).result.commands]


@pytest.mark.parametrize(
    "line", ["sbatch --wckey=k --wrap 'sleep 50'", "srun --wckey k sleep 50",
             "salloc -Q --wckey=k sleep 50"],
)  # fmt: skip
def test_a_job_bears_its_key(line: str) -> None:
    """In squeue's and sacct's columns; what is chosen by keys finds it."""
    _, _, shown, accounted, chosen, _, left = told(
        ("1s", line),
        ("2s", "sbatch -Q --wrap 'sleep 50'"),
        ("3s", "squeue -h -S i -o '%i %w'"),
        ("4s", "sacct -X -n -P -o JobID,WCKey,WCKeyID"),
        ("4s", "sacct -X -n -P -W x,k -o JobID"),
        ("5s", "scancel -u alice --wckey=k"),
        ("7s", "squeue -h -t R -o %i"),
    )
    assert shown == "1 k\n2 (null)\n"
    assert accounted == "1|k|0\n2||0\n"
    assert chosen == "1\n"
    assert left == "2\n"


@pytest.mark.parametrize("value", ["", "=0", "=10", "=10L", "=s"])
def test_a_batch_job_has_what_a_login_gives(value: str) -> None:
    """Where sbatch lacks it; what sbatch has counts for more."""
    script = (
        f"unset HOME LOGNAME; export USER=eve; sbatch -Q -o out --get-user-env{value} "
        f'--wrap "echo \\$USER \\$HOME \\$LOGNAME \\$SLURM_GET_USER_ENV"'
    )
    _, shown = told(("1s", f"salloc -Q -n1 sh -c '{script}'"), ("9s", "salloc -Q -n1 cat out"))
    assert shown == "eve /home/alice alice 1\n"


@pytest.mark.parametrize("value", ["x", "1x", "SL", "-1"])
def test_other_values_are_refused(value: str) -> None:
    """By name."""
    (said,) = told(("1s", f"sbatch --get-user-env={value} --wrap true"))
    assert said == "sbatch: error: Invalid --get-user-env specification\n"


def test_of_salloc_it_is_for_root() -> None:
    """No job comes of it for others; srun takes it."""
    said, ran, _ = told(
        ("1s", "salloc --get-user-env true"), ("2s", "srun --get-user-env true"), ("3s", "squeue")
    )
    assert said == "salloc: WARNING: you must be root to use --get-user-env\n"
    assert ran == ""
