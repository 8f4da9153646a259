"""Pages of runs, as a person uses them: in a real browser, with the mouse and the keyboard."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import simctl
from simctl import cli
from simctl.kernel.pattern import Pattern
from simctl.kernel.recording import read_recording
from simctl.orderings.checking import check_orderings
from simctl.orderings.observed import Terms
from simctl.testing import run_scenario
from simctl.view.command import page_of_run
from simctl.view.reading import EVERYTHING, seen_of
from tests.browser import Browser, Tab, browser

ATTACH = "switch_p_job_attach"
SHIPPED = Path(simctl.__file__).parent / "scenarios"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Give one browser to all tests of this file."""
    with browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Return the page and the events of the first shipped scenario."""
    folder = tmp_path_factory.mktemp("run")
    page, trace = folder / "two_nodes.html", folder / "two_nodes.jsonl"
    words = ["run", "two_nodes", "--quiet", "--html", str(page), "--trace", str(trace)]
    assert cli.main(words) == cli.OK
    return page, [json.loads(line) for line in trace.read_text().splitlines()[1:-1]]


@pytest.fixture
def tab(chromium: Browser, run: tuple[Path, list[dict[str, Any]]]) -> Iterator[Tab]:
    """Return the page, opened anew; a test fails if it complained of anything."""
    opened = chromium.tab()
    opened.open(run[0].as_uri())
    yield opened
    errors, opened.errors[:] = list(opened.errors), []
    opened.call("Page.close")
    assert errors == []


def _first(run: tuple[Path, list[dict[str, Any]]], name: str) -> dict[str, Any]:
    return next(event for event in run[1] if event["name"] == name)


def test_the_first_screen_says_in_words_what_the_page_shows(tab: Tab) -> None:
    """The scenario, what held, each job's end, and how the picture is read."""
    text = tab.text("#panel")
    for each in ("two_nodes.yaml", "6 of 6 expectations held", "alice", "COMPLETED", "How to read"):
        assert each in text
    assert "job 1 COMPLETED" in tab.text("#jobs")


def test_a_filter_and_a_click_say_who_called_a_function_as_whom_and_after_what(
    tab: Tab, run: tuple[Path, list[dict[str, Any]]]
) -> None:
    """What somebody who never saw Slurm has to find: the process, its user, what came before."""
    attach = _first(run, ATTACH)
    tab.click("#filter")
    tab.type(ATTACH)
    assert tab.text("#count").startswith("5 shown of 279")
    tab.click(f'g.event[data-seq="{attach["seq"]}"]')
    text = tab.text("#panel")
    assert f"task 0 of 1.0 ./app, pid {attach['pid']}" in text
    assert "alice (uid 1001)" in text
    assert f"fork of slurmstepd session 1.0 (pid 10), event {attach['cause']}" in text
    assert "nprocs" in text
    assert "returned 0" in text


def test_a_click_lights_the_causal_past_and_nothing_else(
    tab: Tab, run: tuple[Path, list[dict[str, Any]]]
) -> None:
    """The fork before an attach stays lit; what another node does then is dimmed."""
    attach = _first(run, ATTACH)
    tab.run(f"simctl.select({attach['seq']}, true)")
    lit = tab.run("[...document.querySelectorAll('g.event:not(.faint)')].map(e => +e.dataset.seq)")
    dimmed = tab.run("[...document.querySelectorAll('g.event.faint')].map(e => +e.dataset.seq)")
    assert attach["cause"] in lit
    assert dimmed
    past = {attach["seq"]}
    for event in reversed(run[1][: attach["seq"]]):
        if event["seq"] in past:
            past.update(event.get("needs", [event["cause"]] if "cause" in event else []))
    assert not past & set(dimmed)


def test_the_keyboard_alone_walks_the_run(tab: Tab, run: tuple[Path, list[dict[str, Any]]]) -> None:
    """/ filters, Enter takes the first match, arrows go to its cause, back and on, Esc ends it."""
    attach = _first(run, ATTACH)
    tab.key("/")
    tab.type(f"{ATTACH} task=0")
    tab.key("Enter")
    assert f"event {attach['seq']}" in tab.text("#panel h2")
    tab.key("ArrowUp")
    assert f"event {attach['cause']}" in tab.text("#panel h2")
    tab.key("ArrowDown")
    assert f"event {attach['seq']}" in tab.text("#panel h2")
    tab.key("ArrowRight")
    assert "exec" in tab.text("#panel h2")
    tab.key("Escape")
    assert "What this page shows" in tab.text("#panel h2")


def test_an_address_leads_to_an_event(chromium: Browser, run: tuple[Path, Any]) -> None:
    """What is chosen stands in the address, and the address chooses it again."""
    tab = chromium.tab()
    tab.open(run[0].as_uri())
    tab.run("simctl.select(89, true)")
    address = tab.run("location.href")
    assert address.endswith("#event=89")
    other = chromium.tab()
    other.open(address)
    assert "event 89" in other.text("#panel h2")
    tab.call("Page.close")
    other.call("Page.close")


def test_filters_find_what_trace_show_finds(tab: Tab, run: tuple[Path, Any]) -> None:
    """The page reads patterns as `expect:` does: wildcards, users, states, arguments, quotes."""
    recording = read_recording(run[0].with_suffix(".jsonl"))
    users = recording.header["users"]
    for text in (
        "switch_p_job_* user=alice",
        "* node=null kind=state",
        "job_state state=COMPLETING",
        "job_state state=RUNNING job=1",
        f"{ATTACH} args.nprocs=4 task=2",
        "* kind=message phase=send peer=srun@*",
        "'fork' node=n2",
        '* step="1.*" role=session rc=0',
        "* args.env=[]",
        "* uid=0 task=null",
    ):
        pattern = Pattern.parse(text, users)
        wanted = [event.seq for event in recording.happened if pattern.matches(event)]
        # A filter lets the beginnings of calls pass as well.
        found = tab.run(
            f"(() => {{ simctl.setFilter({json.dumps(text)}); return simctl.model.events"
            ".filter(e => simctl.options.filter.test(e) && (e.phase !== 'enter'))"
            ".map(e => e.seq) })()"
        )
        assert found == wanted, text
    assert tab.run("(simctl.setFilter('nmae=x'), document.getElementById('told').textContent)")


def test_names_with_markup_in_them_do_nothing(chromium: Browser, tmp_path: Path) -> None:
    """A run's names are text wherever they come up: title, rows, panel, data."""
    evil = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
    events = [
        {"seq": 1, "time_us": 0, "kind": "command", "name": evil, "daemon": evil, "node": evil},
        {"seq": 2, "time_us": 0, "kind": "plugin", "name": "switch_p_x", "daemon": evil},
    ]
    for event in events:
        event |= {"role": evil, "pid": 7, "uid": 5, "job": 1, "step": evil, "cause": 0}
        event |= {"args": {evil: evil, "line": evil}, "rc": evil, "errno": evil, "peer": evil}
        event |= {"plugin": evil}
    events[1]["cause"] = 1
    state = {"seq": 3, "time_us": 1, "kind": "state", "name": "job_state", "daemon": evil}
    events.append({**state, "pid": 7, "job": 1, "args": {"from": None, "to": evil, "reason": evil}})
    end = {"seq": 4, "time_us": 1, "kind": "log", "name": "end"}
    broken = {"what": evil, "title": evil, "says": evil, "text": evil, "seqs": [1, 2]}
    events.append({**end, "args": {"events": 3, "reason": evil}, "rc": [broken]})
    header = {"simctl_trace": 1, "version": evil, "scenario": evil, "seed": evil, "schedule": evil}
    header |= {"model": evil, "users": {evil: 5}}
    trace = tmp_path / "t.jsonl"
    trace.write_text("".join(json.dumps(each) + "\n" for each in (header, *events)))
    assert cli.main(["view", str(trace), "-o", str(tmp_path / "t.html")]) == cli.OK
    tab = chromium.tab()
    tab.open((tmp_path / "t.html").as_uri())
    for act in ("select(1)", "select(2)", "select(3)", "showMark(0)", "overview()"):
        tab.run(f"simctl.{act}")
    assert tab.run("window.hacked") is None
    assert tab.run("document.querySelectorAll('img').length") == 0
    assert tab.run("document.scripts.length") == 2
    assert evil in tab.text("h1")
    tab.call("Page.close")
    tab.errors.clear()


def test_hosts_and_processes_fold(tab: Tab) -> None:
    """A folded host is one row, on which its events stand; another click unfolds it."""
    rows = tab.run("simctl.picture.rows.length")
    tab.click('[data-fold="hn1"]')
    assert tab.run("simctl.picture.rows.length") < rows
    assert tab.run("simctl.picture.shownCount") == 191
    tab.click('[data-fold="hn1"]')
    assert tab.run("simctl.picture.rows.length") == rows


def test_every_arrow_goes_right(tab: Tab) -> None:
    """An event stands right of all that it needs, folded or not, filtered or not."""
    script = """(() => { const {picture, model} = simctl, bad = [];
        const col = s => picture.columns.col[model.index.get(s)];
        model.events.forEach((e, i) => { for (const n of model.needs[i])
          if (col(e.seq) >= 0 && col(n) >= 0 && col(n) >= col(e.seq)) bad.push([n, e.seq]); });
        return bad })()"""
    assert tab.run(script) == []
    tab.run("(simctl.options.collapsed.add('hn1'), simctl.picture.layout())")
    assert tab.run(script) == []
    tab.run("simctl.setFilter('* kind=plugin')")
    assert tab.run(script) == []


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a run in which a session manager calls nothing as it should at its end."""
    done = run_scenario("two_nodes.yaml", folder=SHIPPED)
    events = [
        event
        for event in done.events
        if not (event.name == "switch_p_job_fini" and event.node == "n1")
    ]
    terms = Terms(model="guide", users=done.users)
    report = check_orderings(events, terms)
    assert report.broken
    result = attrs.evolve(done.result, orderings=report)
    path = tmp_path_factory.mktemp("damaged") / "damaged.html"
    path.write_bytes(page_of_run(seen_of(done.header, events, EVERYTHING, "x"), result))
    return path


def test_a_broken_ordering_is_found_in_three_clicks(damaged: Path, chromium: Browser) -> None:
    """One on its number above the picture, one on an event that shows it; the page says it."""
    tab = chromium.tab()
    tab.open(damaged.as_uri())
    assert "orderings: " in tab.text("#panel")
    assert tab.run("document.querySelectorAll('g.event.broken').length") >= 1
    tab.click("#jobs .chip.broken")
    text = tab.text("#panel")
    assert "The rule: " in text
    assert "The event" in text
    assert tab.run("document.querySelector('rect.breach') !== null")
    tab.click("#panel button.line")
    assert tab.run("simctl.picture.selected") in tab.run("simctl.page.broken[0].seqs")
    assert tab.run("document.querySelector('g.event.selected.broken') !== null")
    tab.key("Escape")
    tab.key("n")
    assert tab.run("simctl.picture.markShown") == 0
    assert tab.errors == []
    tab.call("Page.close")


def test_a_hundred_thousand_events_scroll_smoothly(tmp_path: Path, chromium: Browser) -> None:
    """Only what is seen is drawn: no frame but one takes 200 ms, folded or not."""
    rows: list[str] = []
    for seq in range(1, 100_001):
        node, turn = seq % 64, seq // 64
        one: dict[str, Any] = {"seq": seq, "time_us": turn // 20 * 100, "kind": "plugin"}
        one |= {"name": "switch_p_job_attach", "daemon": "slurmstepd", "node": f"n{node}"}
        one |= {"role": "manager", "pid": node * 1000 + turn // 50, "uid": 0, "euid": 0}
        one |= {"job": turn // 50, "step": f"{turn // 50}.0", "args": {"rank": seq % 8}, "rc": 0}
        if turn % 4 == 1:
            one |= {"kind": "message", "name": "REQUEST_X", "phase": "send", "peer": "slurmctld"}
        if turn % 4 == 2:
            one |= {"kind": "message", "name": "REQUEST_X", "phase": "receive", "cause": seq - 63}
        elif turn:
            one["cause"] = seq - 64
        rows.append(json.dumps(one))
    header = {"simctl_trace": 1, "version": "0.2.0", "model": "guide", "users": {"root": 0}}
    end = {"seq": 100_001, "time_us": 10**7, "kind": "log", "name": "end"}
    end["args"] = {"events": 100_000, "reason": "done"}
    trace = tmp_path / "large.jsonl"
    trace.write_text("\n".join([json.dumps(header), *rows, json.dumps(end)]) + "\n")
    assert cli.main(["view", str(trace), "-o", str(tmp_path / "large.html")]) == cli.OK
    tab = chromium.tab()
    tab.open((tmp_path / "large.html").as_uri())
    tab.until("globalThis.simctl && simctl.picture.columns.count > 0")
    frame = """(async () => { const b = simctl.picture.box;
        b.scrollLeft = (I * 7919) % (b.scrollWidth - b.clientWidth);
        b.scrollTop = (I * 97) % Math.max(1, b.scrollHeight - b.clientHeight);
        await new Promise(requestAnimationFrame); await new Promise((r) => setTimeout(r)) })()"""

    def worst() -> float:
        # Time of its own thread, whatever else goes on here; at one moment garbage is collected.
        took = sorted(tab.worked_ms(frame.replace("I", str(number))) for number in range(24))
        return took[-2]

    assert tab.run("simctl.options.collapsed.size") == 64
    assert worst() < 200
    tab.run("(simctl.options.zoom = 3, simctl._changed())")
    assert worst() < 200
    tab.run("(simctl.options.zoom = 0, simctl._changed(), (simctl.picture.box.scrollTop = 0))")
    seq = tab.run(
        "(() => { const p = simctl.picture, m = simctl.model, r = p.svg.getBoundingClientRect();"
        "const i = p.columns.byCol[p.columns.starts[p.drawn.from + 30]], e = m.events[i];"
        "return p.eventAt(r.x + p.left + p.x[p.columns.col[i]] - p.box.scrollLeft + 3,"
        "r.y + 42 + (p.rowOf(e) + 0.5) * 22 - p.box.scrollTop) === e.seq && e.seq })()"
    )
    assert seq
    tab.run("(simctl.options.collapsed.clear(), simctl._changed())")
    assert worst() < 200
    assert tab.run("simctl.picture.svg.querySelectorAll('*').length") < 5000
    tab.call("Page.close")
