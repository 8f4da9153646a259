"""`simctl plugins check`: every function is driven, and each kind of mistake is named."""

import json
from errno import EACCES
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest

from simctl.cli import main
from simctl.plugin import (
    Buf,
    BurstBufferPlugin,
    CheckpointPlugin,
    JobRecord,
    SlurmError,
    StepRecord,
    SwitchPlugin,
    errno,
    process,
    sleep,
)
from simctl.plugins import points
from simctl.plugins.checkpoint.none import CheckpointNone
from simctl.plugins.switch import elan
from simctl.plugins.switch.none import SwitchNone
from simctl.testing.plugin_check.check import check_plugin
from simctl.testing.plugin_check.observe import Tally
from simctl.testing.plugin_check.report import Checked

ROOT = Path(__file__).parent.parent


@cache
def checked_once(kind: Any) -> Checked:
    """Check a class of this file, if that was not done yet."""
    return check_plugin(kind, "from a test", models=("guide",), watchdog_s=0.3)


def checked(kind: Any) -> Checked:
    """Check a class of this file."""
    return checked_once(kind)


def problems(result: Checked) -> dict[str, str]:
    """Return what is wrong, by function."""
    return {each.function: each.text for each in result.mistakes}


class Named:
    """What every plugin of these tests has."""

    plugin_name: ClassVar[str] = "a plugin of a test"


class BurstBuffer(Named, BurstBufferPlugin):
    """The stubs alone."""

    plugin_type: ClassVar[str] = "burst_buffer/stub"


# Every function is called.


@pytest.mark.parametrize("kind", [SwitchNone, CheckpointNone, BurstBuffer])
def test_every_function_is_called_in_the_declared_process_as_the_declared_user(
    kind: type[Any],
) -> None:
    """By a run where one calls it, else by the check itself; never where the model has no call."""
    result = checked(kind)
    plugin_class = kind.plugin_type.partition("/")[0]
    assert result.mistakes == ()
    for model, tallies in result.tallies.items():
        declared = {point.name: point for point in points.BY_CLASS[plugin_class]}
        declared |= {name: points.OWN[plugin_class, name] for name in ("init", "fini")}
        assert set(tallies) == set(declared)
        for name, tally in tallies.items():
            # What a model has no call of, but by an option, is called as in the other.
            point = declared[name]
            callers = point.places(model) or (point.guide if point.modern_often else {})
            places = {
                f"{role} as {who}"
                for role, user in callers.items()
                for who in ("root or user", user.value)
            }
            assert bool(tally.calls) == bool(callers), (model, name)
            for place in tally.places:
                role, _, user = place.partition(" as ")
                assert place in places or f"{role} as root or user" in places, (model, name, user)


_ON_DEMAND = (
    "switch_p_get_errno",
    "switch_p_strerror",
    "slurm_ckpt_pack_job",
    "slurm_ckpt_signal_tasks",
)


@pytest.mark.parametrize("kind", [SwitchNone, CheckpointNone, BurstBuffer])
def test_what_no_run_calls_is_what_the_points_say(kind: type[Any]) -> None:
    """`later` is empty for exactly those functions that a run of simctl reaches."""
    plugin_class = kind.plugin_type.partition("/")[0]
    result = checked(kind)
    for model, tallies in result.tallies.items():
        for point in points.BY_CLASS[plugin_class]:
            tally: Tally = tallies[point.name]
            if not point.places(model):
                continue
            by_runs = tally.calls - tally.directly
            # get_errno and strerror follow on failures, which the stubs have none of in runs; who
            # asks for signal_tasks is a plugin itself; and model modern copies no record where the
            # plugin keeps none.
            if point.name in _ON_DEMAND or (model, point.name) == ("modern", "slurm_ckpt_copy_job"):
                continue
            assert bool(by_runs) != bool(point.later), (model, point.name)


# What is wrong is named.


class Raises(Named, SwitchPlugin):
    """Fails in a way that no plugin means to."""

    plugin_type: ClassVar[str] = "switch/raises"

    def switch_p_job_postfini(self, switch_job: Any, pgid: int, job_id: int, step_id: int) -> None:
        """Divide by nothing."""
        raise ValueError(1 / (step_id - step_id))

    def switch_p_job_attach(
        self,
        switch_job: Any,
        env: dict[str, str],
        nodeid: int,
        procid: int,
        nnodes: int,
        nprocs: int,
        rank: int,
    ) -> None:
        """Want what only root may do, as the user."""
        raise SlurmError(EACCES)


class Nonsense(Named, SwitchPlugin):
    """Returns what its guide does not know."""

    plugin_type: ClassVar[str] = "switch/nonsense"

    def switch_p_job_preinit(self, switch_job: Any) -> Any:
        """Return a text."""
        return "fine"

    def switch_p_sprint_jobinfo(self, switch_job: Any, size: int) -> str:
        """Return more than was asked for."""
        return "x" * (size + 1)

    def switch_p_pack_node_info(self, switch_node: Any, buffer: Buf) -> int:
        """Count wrongly."""
        buffer.pack32(7)
        return 8

    def switch_p_unpack_node_info(self, switch_node: Any, buffer: Buf) -> None:
        """Leave half of it."""
        buffer.unpack16()


class Hangs(Named, SwitchPlugin):
    """Never comes back."""

    plugin_type: ClassVar[str] = "switch/hangs"

    def switch_p_job_init(self, switch_job: Any, uid: int) -> None:
        """Loop."""
        while True:
            pass


class Waits(Named, SwitchPlugin):
    """Takes very long in the controller."""

    plugin_type: ClassVar[str] = "switch/waits"

    async def switch_p_job_step_complete(self, switch_job: Any, nodelist: str) -> None:
        """Hold slurmctld."""
        await sleep(15)


class Uncopyable(Named, SwitchPlugin):
    """Keeps what no fork could copy."""

    plugin_type: ClassVar[str] = "switch/uncopyable"

    def init(self) -> None:
        """Keep a generator."""
        self.stream = (each for each in "abc")


class LosesState(Named, SwitchPlugin):
    """Looks in the wrong memory."""

    plugin_type: ClassVar[str] = "switch/loses"

    def __init__(self) -> None:
        """Start with nothing."""
        self.links: dict[str, int] = {}
        self.count = 0

    def switch_p_node_init(self) -> None:
        """Find the links, in slurmd."""
        self.links["ib0"] = 1

    def switch_p_job_init(self, switch_job: Any, uid: int) -> None:
        """Look for them in slurmstepd; count, for this process's own use."""
        self.count += 1
        self._use()

    def _use(self) -> None:
        assert len(self.links) < 9


class Mutates(Named, SwitchPlugin):
    """Writes into what it was given to read, and takes from the environment."""

    plugin_type: ClassVar[str] = "switch/mutates"

    def switch_p_alloc_jobinfo(self) -> dict[str, int]:
        """Make a credential."""
        return {}

    def switch_p_copy_jobinfo(self, switch_job: dict[str, int]) -> dict[str, int]:
        """Copy it."""
        return dict(switch_job)

    def switch_p_pack_jobinfo(self, switch_job: dict[str, int], buffer: Buf) -> int:
        """Count how often it is packed, in the credential."""
        switch_job["packed"] = switch_job.get("packed", 0) + 1
        return 0

    def switch_p_job_attach(
        self,
        switch_job: Any,
        env: dict[str, str],
        nodeid: int,
        procid: int,
        nnodes: int,
        nprocs: int,
        rank: int,
    ) -> None:
        """Take something out."""
        env.pop("SLURM_JOB_ID", None)


TABLE: list[int] = []


class Shares(Named, SwitchPlugin):
    """Keeps state where only Python shares it."""

    plugin_type: ClassVar[str] = "switch/shares"
    seen: ClassVar[set[int]] = set()

    def switch_p_job_preinit(self, switch_job: Any) -> None:
        """Store in the class."""
        self.seen.add(process().pid)

    def switch_p_job_fini(self, switch_job: Any) -> None:
        """Store in the module."""
        TABLE.append(process().pid)


class OneWay(Named, SwitchPlugin):
    """Unpacks something else than it packed."""

    plugin_type: ClassVar[str] = "switch/one_way"

    def switch_p_alloc_jobinfo(self) -> dict[str, int]:
        """Make a credential."""
        return {"key": 5}

    def switch_p_copy_jobinfo(self, switch_job: dict[str, int]) -> dict[str, int]:
        """Copy it."""
        return dict(switch_job)

    def switch_p_pack_jobinfo(self, switch_job: dict[str, int], buffer: Buf) -> int:
        """Pack the key."""
        buffer.pack32(switch_job["key"])
        return 4

    def switch_p_unpack_jobinfo(self, switch_job: dict[str, int], buffer: Buf) -> None:
        """Unpack it, but for one bit."""
        switch_job["key"] = buffer.unpack32() | 2


class BadStatus(Named, CheckpointPlugin):
    """Answers a checkpoint request with a tuple."""

    plugin_type: ClassVar[str] = "checkpoint/bad"

    def slurm_ckpt_op(
        self,
        job_id: int,
        step_id: int,
        step_ptr: StepRecord | None,
        op: int,
        data: int,
        image_dir: str,
    ) -> Any:
        """Return what C gives back through pointers, as C would."""
        return (0, 0, "")


class BadBuffer(Named, BurstBufferPlugin):
    """Answers out of range."""

    plugin_type: ClassVar[str] = "burst_buffer/bad"

    def bb_p_job_test_stage_in(self, job_ptr: JobRecord, test_only: bool) -> int:
        """Return a fourth value."""
        return 2

    def bb_p_get_system_size(self, name: str | None) -> int:
        """Return less than nothing."""
        return -5

    def bb_p_job_begin(self, job_ptr: JobRecord) -> int:
        """Fail by its number."""
        return int(errno.ESLURM_INVALID_BURST_BUFFER_REQUEST)

    def bb_p_job_cancel(self, job_ptr: JobRecord) -> None:
        """Fail by raising."""
        raise SlurmError(errno.ESLURM_ACCESS_DENIED)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (
            Raises,
            {
                "switch_p_job_postfini": "ZeroDivisionError",
                "switch_p_job_attach": "is refused what it does (EACCES): it runs as the user",
            },
        ),
        (
            Nonsense,
            {
                "switch_p_job_preinit": "returned 'fine'; expected SLURM_SUCCESS",
                "switch_p_sprint_jobinfo": "returned 65 bytes; *size* was 64",
                "switch_p_pack_node_info": "returned 8 and has packed 4 bytes",
                "switch_p_unpack_node_info": "left 2 of 4 bytes unread",
            },
        ),
        (Hangs, {"switch_p_job_init": "still ran after 0.3 s of wall time"}),
        (Waits, {"switch_p_job_step_complete": "held slurmctld for "}),
        (Uncopyable, {"plugin": "attribute 'stream' cannot be copied at a fork"}),
        (LosesState, {"switch_p_job_init": "reads self.links in the"}),
        (
            Mutates,
            {
                "switch_p_pack_jobinfo": "changes switch_job, which its guide gives it to read",
                "switch_p_job_attach": "takes SLURM_JOB_ID out of the task's environment",
            },
        ),
        (
            Shares,
            {
                "switch_p_job_preinit": "changes the class attribute Shares.seen",
                "switch_p_job_fini": "changes the module's global TABLE",
            },
        ),
        (OneWay, {"switch_p_unpack_jobinfo": "does not bring back key of what"}),
        (BadStatus, {"slurm_ckpt_op": "returned (0, 0, ''); expected a CheckpointStatus"}),
        (
            BadBuffer,
            {
                "bb_p_job_test_stage_in": "returned 2; expected 1, 0 or -1",
                "bb_p_get_system_size": "returned -5; expected a size in MB",
            },
        ),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_each_mistake_is_named_with_its_function(kind: type[Any], wrong: dict[str, str]) -> None:
    """Exactly these functions, and no other, have a problem."""
    found = problems(checked(kind))
    assert set(found) == set(wrong)
    for function, text in wrong.items():
        assert text in found[function]


def test_what_only_root_may_do_is_no_call_that_breaks() -> None:
    """It has a rule of its own, and a remedy: a function that runs as root."""
    rules = {each.function: each.rule for each in checked(Raises).mistakes}
    assert rules == {
        "switch_p_job_postfini": "call-breaks",
        "switch_p_job_attach": "needs-root",
    }


def test_what_a_process_keeps_for_itself_is_no_problem() -> None:
    """Each process counting its own calls, or reading what init stored, is how it should be."""

    class Keeps(Named, SwitchPlugin):
        plugin_type: ClassVar[str] = "switch/keeps"

        def init(self) -> None:
            self.host = process().hostname
            self.calls = 0

        def switch_p_job_preinit(self, switch_job: Any) -> None:
            self.calls += 1
            assert self.host == process().hostname

        def switch_p_job_init(self, switch_job: Any, uid: int) -> None:
            self.handle = uid

        def switch_p_job_fini(self, switch_job: Any) -> None:
            assert self.handle
            assert self.host

        def switch_p_job_postfini(
            self, switch_job: Any, pgid: int, job_id: int, step_id: int
        ) -> None:
            self.calls += 1

    assert problems(checked(Keeps)) == {}


def test_failing_as_a_plugin_should_is_a_note() -> None:
    """A SlurmError is an answer, and no mistake; a number returned may be meant as one."""

    class Fails(Named, SwitchPlugin):
        plugin_type: ClassVar[str] = "switch/fails"

        def switch_p_job_preinit(self, switch_job: Any) -> None:
            raise SlurmError(errno.EBUSY)

        def switch_p_node_init(self) -> int:
            return int(errno.EBUSY)

    result = checked(Fails)
    assert problems(result) == {}
    assert {each.function: each.text for each in result.notes} == {
        "switch_p_job_preinit": "failed with EBUSY",
        "switch_p_node_init": "returned 16, which is taken for success; an error number goes with "
        "`raise SlurmError(number)`",
    }


# The command.


def test_the_command_prints_a_report_and_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines of at most 79 columns, one for each function of the plugin's own."""
    path = ROOT / "scenarios" / "counting_switch.py"
    assert main(["plugins", "check", f"{path}:CountingSwitch"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert max(map(len, lines[1:])) < 80
    assert any(line.startswith("switch_p_job_init ") and line.endswith("2s") for line in lines)
    assert lines[-1].startswith("switch/counting: fine, in ")


def test_a_check_that_was_cut_for_want_of_time_is_not_fine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine too slow for all trials is told, and the exit status is 2."""
    monkeypatch.setattr("simctl.testing.plugin_check.bench.BUDGET_S", 0.0)
    path = ROOT / "scenarios" / "counting_switch.py"
    assert main(["plugins", "check", f"{path}:CountingSwitch"]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "switch/counting: not driven: time was up after 0 trial clusters;" in out


@pytest.mark.parametrize(
    "name",
    ["fork_state", "early_environment", "privileged_fini", "blocking_controller", "shared_table"],
)
def test_the_shipped_mistakes_are_found(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each exits 1 and names what its scenario shows."""
    assert main(["plugins", "check", str(ROOT / "scenarios" / "mistakes" / f"{name}.py")]) == 1
    out, _ = capsys.readouterr()
    assert "mistakes:" in out


def test_json_has_the_functions_and_the_problems(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a plugin, on standard output."""
    path = str(ROOT / "scenarios" / "mistakes" / "fork_state.py")
    assert main(["plugins", "check", "--json", "--model", "guide", "switch/none", path]) == 1
    none, fork_state = json.loads(capsys.readouterr().out)
    assert none["mistakes"] == []
    assert list(none["functions"]) == ["guide"]
    assert none["functions"]["guide"]["switch_p_job_init"]["places"].keys() == {"session as root"}
    (problem,) = fork_state["mistakes"]
    assert problem["function"] == "switch_p_job_postfini"
    assert problem["models"] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("./nothing.py", "there is no file './nothing.py'"),
        ("switch/nothing", "there is no module 'nothing', neither installed nor in "),
        ("no.such.module", "there is no module 'no.such.module'"),
    ],
)
def test_what_is_not_there_exits_2(
    path: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong input, told on standard error."""
    assert main(["plugins", "check", path]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert text in err


def test_what_does_not_fit_exits_2_with_everything_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Type, name, version, missing and misfitting functions, with both signatures."""
    (tmp_path / "bad.py").write_text(
        "class Bad:\n"
        "    plugin_type = 'switch/bad'\n"
        "    plugin_version = 'one'\n"
        "    def switch_p_job_init(self, job): ...\n"
    )
    assert main(["plugins", "check", str(tmp_path / "bad.py")]) == 2
    err = capsys.readouterr().err
    assert "plugin_name is missing" in err
    assert "plugin_version is 'one'" in err
    assert "switch_p_job_fini is missing; the guide wants" in err
    assert "it is `def switch_p_job_init(self, job)`" in err
    assert "the guide wants `def switch_p_job_init(self, switch_job, uid)`" in err


def test_the_file_of_a_bundled_plugin_can_be_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """It stands for the plugin of its type that is there."""
    assert main(["plugins", "check", f"{elan.__file__}:SwitchElan"]) in (0, 1)
    assert capsys.readouterr().out.startswith(f"switch/elan, from {elan.__file__}:SwitchElan\n")
