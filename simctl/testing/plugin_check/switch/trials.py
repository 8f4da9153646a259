"""What steps go through in the trial clusters of switch plugins, beside what all plugins do."""

from collections.abc import Iterable
from typing import Final

from simctl.testing.plugin_check.trials import Trial

_HEAD: Final = """\
nodes: [{name: "n[1-3]", cpus: 16}]
partitions: [{name: debug, nodes: "n[1-3]", default: true}]
users: {alice: 1001, bob: 1002}
programs:
  ./app: {runs: 20s}
  ./long: {runs: 300s}
files:
  at_once.sh: |
    #!/bin/bash
    srun -N2 -n4 --ntasks-per-node=2 --overcommit ./app &
    srun -N2 -n4 --ntasks-per-node=2 --overcommit ./app &
    wait
"""
_SHARED: Final = "SelectType: select/cons_tres, SelectTypeParameters: CR_CPU"
_WIDE: Final = "srun -w 'n[1-2]' -N2 -n4 --ntasks-per-node=2"


def _lines(*entries: tuple[str, str]) -> str:
    return "".join(f"  - {{at: {at}, {what}}}\n" for at, what in entries)


def _run(command: str, user: str = "alice") -> str:
    return f'as: {user}, run: "{command}"'


_RESTART: Final = "fault: {restart: slurmctld}"

PLAIN: Final = (
    Trial(
        "steps at one time on shared nodes",
        _lines(
            ("0s", _run(f"{_WIDE} ./app")),
            ("0s", _run("srun -w n1 -N1 -n2 ./app", "bob")),
            ("1s", _run(f"{_WIDE} ./app", "bob")),
            ("2s", _run("srun -w n1 -N1 -n2 ./app")),
            ("3s", _run("srun -w n3 -N1 -n2 ./app")),
            ("50s", _run(f"{_WIDE} -m cyclic ./app")),
            ("100s", _run("sbatch -N2 -n4 --ntasks-per-node=2 at_once.sh")),
        ),
        head=_HEAD,
        conf=_SHARED,
    ),
)

RESTARTS: Final = (
    Trial(
        "a slurmctld that restarts while steps run, and more steps after it",
        _lines(
            ("0s", _run(f"{_WIDE} ./long")),
            ("1s", _run("srun -w n1 -N1 -n2 ./long")),
            ("5s", _RESTART),
            ("30s", _run(f"{_WIDE} ./long", "bob")),
            ("31s", _run("srun -w n1 -N1 -n2 ./long", "bob")),
            ("40s", _RESTART),
            ("60s", _run(f"{_WIDE} ./app")),
            ("350s", _RESTART),
            ("400s", _run(f"{_WIDE} ./app")),
        ),
        head=_HEAD,
        conf=_SHARED,
    ),
    Trial(
        "a slurmctld that restarts between two jobs",
        _lines(
            ("0s", _run(f"{_WIDE} ./app")),
            ("60s", _RESTART),
            ("90s", _run(f"{_WIDE} ./app")),
            ("91s", _run(f"{_WIDE} ./app", "bob")),
        ),
        head=_HEAD,
        conf=_SHARED,
    ),
    Trial(
        "a slurmctld that restarts while a step begins, and while one ends",
        _lines(
            ("0s", _run(f"{_WIDE} ./app")),
            ("300us", _RESTART),
            ("60s", _run(f"{_WIDE} ./app")),
            ("80s", _RESTART),
            ("120s", _run(f"{_WIDE} ./app")),
        ),
        head=_HEAD,
        conf=_SHARED,
    ),
)


def one_by_one(count: int) -> Trial:
    """Return a trial with some equal steps one after another."""
    return Trial(
        f"{count} equal steps one after another",
        _lines(*((f"{100 * number}s", _run(f"{_WIDE} ./app")) for number in range(count))),
        head=_HEAD,
        conf=_SHARED,
    )


def failures(functions: Iterable[str]) -> list[tuple[str, Trial]]:
    """Return a trial for each function in which one call of it fails while another step lives."""
    return [
        (
            name,
            Trial(
                f"one call of {name} that fails",
                _lines(
                    ("0s", _run(f"{_WIDE} ./app", "bob")),
                    ("50s", f'fault: {{fail: "{name}", times: 1}}'),
                    ("50s", _run(f"{_WIDE} ./app")),
                    ("51s", _run(f"{_WIDE} ./app", "bob")),
                    ("200s", _run(f"{_WIDE} ./app")),
                ),
                head=_HEAD,
                conf=_SHARED,
            ),
        )
        for name in functions
    ]
