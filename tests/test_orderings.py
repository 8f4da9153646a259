"""The built-in orderings as people meet them: in a run's end, its JSON, its exit status."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from simctl import cli
from simctl.orderings import page
from simctl.orderings.checking import declared, tell
from simctl.orderings.observed import Observed
from simctl.orderings.rules import AUTHORITY, KEPT, RULES, Broken, Finding, Rule, rule
from simctl.scenario.load import read_scenario
from simctl.testing import run_scenario
from simctl.world import World
from tests.cluster import BATCH, STEP, TWO_NODES, run


@pytest.fixture
def wrong_rule() -> Iterator[None]:
    """Have a rule that every run with two step daemons breaks, until the test is over."""
    declared.cache_clear()
    declared()
    RULES.append(_wrong())
    declared.cache_clear()
    yield
    RULES.pop()
    declared.cache_clear()


def _wrong() -> Rule:
    @rule(
        99,
        "preinit-never",
        says="nobody calls preinit",
        key="call",
        source="a test",
        functions=("switch_p_job_preinit",),
    )
    def never(run: Observed) -> Iterator[Finding]:
        yield KEPT
        for call in run.calls("switch_p_job_preinit"):
            yield Broken(group=f"node {call.node}", what="it was called", events=(call,))

    return RULES.pop()


def write(folder: Path, text: str) -> str:
    """Write a scenario on two nodes; return its path."""
    path = folder / "s.yaml"
    path.write_text(TWO_NODES + text)
    return str(path)


def test_the_summary_says_how_many_rules_held_on_how_many_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that holds says so in one line, and JSON in two numbers."""
    path = write(tmp_path, STEP)
    assert cli.main(["run", path]) == cli.OK
    told = next(
        line for line in capsys.readouterr().out.splitlines() if line.startswith("orderings: ")
    )
    assert cli.main(["run", path, "--json"]) == cli.OK
    found = json.loads(capsys.readouterr().out)["orderings"]
    assert found["broken"] == []
    assert found["checked"] > 0
    assert told == f"orderings: {found['checked']} rules held on {found['groups']:,} groups"


@pytest.mark.usefixtures("wrong_rule")
def test_a_broken_rule_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named with what it says, the lines are shown, and the command that repeats the run."""
    path = write(tmp_path, STEP)
    assert cli.main(["run", path]) == cli.NOT_HELD
    shown = capsys.readouterr()
    assert "BROKEN ordering 99 preinit-never: nobody calls preinit" in shown.out
    assert "in node n1 (and in 1 more group): it was called:" in shown.out
    assert "pid=5 uid=0 switch_p_job_preinit job=1 step=1.0 rc=0" in shown.out
    assert ", 1 broken" in shown.out
    assert f"to repeat: simctl run {path} --seed 0 --schedule fifo --model guide" in shown.err


@pytest.mark.usefixtures("wrong_rule")
def test_a_broken_rule_is_told_where_nothing_else_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--quiet and --json tell it on standard error; JSON has it in full."""
    path = write(tmp_path, STEP)
    assert cli.main(["run", path, "--json"]) == cli.NOT_HELD
    shown = capsys.readouterr()
    assert "simctl: ordering 99 preinit-never: nobody calls preinit" in shown.err
    [broken] = json.loads(shown.out)["orderings"]["broken"]
    assert (broken["rule"], broken["number"], broken["groups"]) == ("preinit-never", 99, 2)
    assert len(broken["seqs"]) == 1


@pytest.mark.usefixtures("wrong_rule")
def test_no_orderings_turns_them_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run holds, and says that they were not checked."""
    path = write(tmp_path, STEP)
    assert cli.main(["run", path, "--no-orderings"]) == cli.OK
    assert "orderings: not checked (--no-orderings)" in capsys.readouterr().out


@pytest.mark.usefixtures("wrong_rule")
def test_assert_held_fails_on_a_broken_rule() -> None:
    """And does not where its caller turned them off."""
    found = run_scenario(TWO_NODES + STEP)
    assert not found.held
    with pytest.raises(AssertionError, match="preinit-never: nobody calls preinit"):
        found.assert_held()
    run_scenario(TWO_NODES + STEP, orderings=False).assert_held()
    assert tell(found.result.orderings.broken[0])[0].startswith("ordering 99 ")


@pytest.mark.usefixtures("wrong_rule")
def test_a_run_whose_events_nobody_keeps_is_not_checked() -> None:
    """There is nothing to check it by; it says so."""
    result = World(read_scenario(TWO_NODES + STEP, file="s.yaml")).run()
    assert result.held
    assert result.orderings.summary == "not checked (the run's events are not kept)"


def test_a_run_that_broke_off_owes_nothing_more(tmp_path: Path) -> None:
    """What would have come later is not missed at any moment at which a run may be stopped."""
    path = write(tmp_path, BATCH.replace("sleep 10", "srun sleep 10"))
    for until in ("100us", "300us", "400us", "700us", "5s", "10.0005s", "20s"):
        assert cli.main(["run", path, "--until", until, "--quiet"]) == cli.OK


def test_rules_are_declared_once() -> None:
    """No two have one name, and each names its source."""
    names = [each.name for each in declared()]
    assert len(set(names)) == len(names)
    assert all(each.says and each.source for each in declared())
    assert all(each.key if each.check else each.unchecked for each in declared())


def test_every_event_is_kept_where_rules_are_checked() -> None:
    """Or a rule would miss what is not there."""
    ran = run(STEP)
    assert [event.seq for event in ran.events] == list(range(1, ran.world.trace.seq + 1))


RULES_OF_REAL_SLURM = 76


def test_every_rule_is_declared_and_stands_in_the_docs(request: pytest.FixtureRequest) -> None:
    """Renew the page with `make docs`; a rule that cannot be observed says why."""
    written = request.config.rootpath / "docs" / "orderings.md"
    assert written.read_text() == page.page()
    numbers = {each.number for each in declared() if each.number < AUTHORITY}
    assert numbers == set(range(1, RULES_OF_REAL_SLURM + 1))
    labels = [each.label for each in declared() if each.number > AUTHORITY]
    assert labels == [f"A{number}" for number in range(1, 7)] + [f"L{n}" for n in range(1, 12)]
    for each in declared():
        assert f"### {each.label}. {each.name}\n" in page.page()
        assert each.check is not None or each.unchecked


def test_plugins_show_lists_them_by_function(capsys: pytest.CaptureFixture[str]) -> None:
    """For a function what they say, for a class their names by function."""
    assert cli.main(["plugins", "show", "switch_p_job_postfini"]) == cli.OK
    shown = " ".join(capsys.readouterr().out.split())
    assert "7 postfini-iff-preinit: postfini is called if, and only if, preinit succeeded" in shown
    assert cli.main(["plugins", "show", "switch"]) == cli.OK
    shown = " ".join(capsys.readouterr().out.split())
    assert "switch_p_no_frag: 17 no-frag" in shown
    assert "uid-and-place" not in shown


FALSE_FRIENDS = Path(__file__).parent.parent / "scenarios" / "false_friends"


@pytest.mark.parametrize("name", page.FALSE_FRIENDS)
def test_false_friends_are_shown_false(name: str) -> None:
    """Each states the belief in its first line, and its expectations contradict it and hold."""
    path = FALSE_FRIENDS / f"{name}.yaml"
    first = " ".join(path.read_text().partition("\n")[0].split())
    belief = page.FALSE_FRIENDS[name][0]
    assert first == f'# False: "{belief[:-1]}".'
    found = run_scenario(path)
    found.assert_held()
    assert found.result.expectations


def test_every_false_friend_is_in_the_docs() -> None:
    """With what is true instead."""
    there = [path.stem for path in FALSE_FRIENDS.glob("*.yaml")]
    assert sorted(there) == sorted(page.FALSE_FRIENDS)
