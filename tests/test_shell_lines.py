"""Shell lines run for code of ours, as C's system and popen run them."""

import pytest

from simctl.kernel.procs import SIGKILL, exit_code_of
from simctl.site import User
from simctl.stepd.shell_lines import Finished, run_line
from tests.scripts import Caller, ran_scripts

PROGRAMS = """\
programs:
  /opt/says: {runs: 2s, output: "done\\n"}
  /opt/hangs: {runs: forever}
"""


async def shell(caller: Caller, text: str, *, stdin: str = "", limit_s: float = 0) -> Finished:
    """Run a line as the user of slurmctld."""
    parent = caller.world.ctld.process
    return await run_line(
        caller.world.site,
        parent,
        text,
        user=User(name="slurm", uid=parent.uid, gid=parent.uid),
        env={"WHO": "me"},
        work_dir="/tmp",
        stdin=stdin,
        limit_s=limit_s,
    )


def test_a_line_gives_status_and_both_outputs_and_takes_its_time() -> None:
    """It has the environment and the directory it is given, and its programs take virtual time."""

    async def body(caller: Caller) -> None:
        ran = await shell(caller, "/opt/says; echo $WHO $PWD; echo bad >&2; exit 3")
        assert (exit_code_of(ran.status), ran.stdout, ran.stderr) == (
            3,
            "done\nme /tmp\n",
            "bad\n",
        )
        assert caller.now_s == 2

    ran_scripts(PROGRAMS, body)


def test_a_line_reads_its_standard_input() -> None:
    """All of what it is given, and no more."""

    async def body(caller: Caller) -> None:
        assert (await shell(caller, "cat", stdin="a\nb\n")).stdout == "a\nb\n"

    ran_scripts(PROGRAMS, body)


def test_a_line_that_cannot_be_read_ends_with_2() -> None:
    """The mistake is on standard error, with its line."""

    async def body(caller: Caller) -> None:
        ran = await shell(caller, "echo a\nif")
        assert exit_code_of(ran.status) == 2
        assert "line 2" in ran.stderr
        assert ran.stdout == ""

    ran_scripts(PROGRAMS, body)


def test_a_line_over_its_time_is_killed_with_what_it_started() -> None:
    """And the run ends all the same."""

    async def body(caller: Caller) -> None:
        ran = await shell(caller, "/opt/hangs", limit_s=2.5)
        assert (ran.status, ran.timed_out) == (SIGKILL, True)
        assert caller.now_s == 2.5

    ran_scripts(PROGRAMS, body)


def test_what_a_line_writes_beyond_a_bound_is_lost_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A script of Lua's gets no more than fits; up to the bound it gets all."""
    monkeypatch.setattr("simctl.stepd.shell_lines.OUTPUT_CHARACTERS", 10)

    async def body(caller: Caller) -> None:
        fits = await shell(caller, "echo 12345; echo 789")
        assert (fits.stdout, fits.stderr) == ("12345\n789\n", "")
        more = await shell(caller, "echo 12345; echo 7890; echo more; exit 3")
        assert (more.stdout, exit_code_of(more.status)) == ("12345\n7890", 3)
        assert more.stderr == "sh: what it wrote beyond 10 characters is lost\n"

    ran_scripts(PROGRAMS, body)
