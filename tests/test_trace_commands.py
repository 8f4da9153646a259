"""`simctl trace show|diff|why|assert` on traces of real runs."""

import gzip
import json
import re
from pathlib import Path

import pytest

from simctl import cli


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return the trace of the first shipped scenario."""
    path = tmp_path_factory.mktemp("traces") / "two_nodes.jsonl"
    assert cli.main(["run", "two_nodes", "--quiet", "--trace", str(path)]) == cli.OK
    return path


def test_show_prints_a_line_an_event(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them, in order, each with its number."""
    assert cli.main(["trace", "show", str(trace)]) == cli.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(trace.read_text().splitlines()) - 1
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))


def test_show_filters_by_pattern_and_kind(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """User names are those of the header."""
    words = ["trace", "show", str(trace), "switch_p_job_*", "user=alice", "step=1.0"]
    assert cli.main(words) == cli.OK
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[6 if "pid" in line.split()[4] else 5] for line in lines]
    assert len(lines) == 6, names  # four attach, two fini
    assert cli.main(["trace", "show", str(trace), "--kinds", "state", "--json"]) == cli.OK
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {event["kind"] for event in events} == {"state"}


def test_why_is_the_chain_from_the_command_to_the_call(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behind an attach stand the fork, the launch message, the step, the job, and sbatch."""
    events = [json.loads(line) for line in trace.read_text().splitlines()[1:]]
    attach = next(event for event in events if event["name"] == "switch_p_job_attach")
    assert cli.main(["trace", "why", str(trace), str(attach["seq"])]) == cli.OK
    out = capsys.readouterr().out
    wanted = [
        "sbatch enter",
        "REQUEST_SUBMIT_BATCH_JOB send",
        "REQUEST_SUBMIT_BATCH_JOB receive",
        "REQUEST_BATCH_JOB_LAUNCH receive",
        "REQUEST_JOB_STEP_CREATE receive",
        "RESPONSE_JOB_STEP_CREATE receive",
        "REQUEST_LAUNCH_TASKS receive",
        "fork job=1 step=1.0",
        "switch_p_job_attach",
    ]
    places = [out.index(text) for text in wanted]
    assert places == sorted(places)


def test_causes_come_before_their_effects(trace: Path) -> None:
    """Every cause is an earlier event; every receipt's is the sending of that message."""
    events = {}
    for line in trace.read_text().splitlines()[1:]:
        event = json.loads(line)
        events[event["seq"]] = event
        if "cause" in event:
            assert event["cause"] in events
        if event["kind"] == "message" and event["phase"] == "receive":
            sent = events[event["cause"]]
            assert (sent["name"], sent["phase"]) == (event["name"], "send")


def test_diff_of_equal_traces_exits_0(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gzipped copy is equal."""
    copy = tmp_path / "copy.jsonl.gz"
    copy.write_bytes(gzip.compress(trace.read_bytes()))
    assert cli.main(["trace", "diff", str(trace), str(copy)]) == cli.OK
    assert "equal" in capsys.readouterr().out


def test_diff_shows_what_is_missing_in_its_place(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One call dropped: that line is shown, with those before and after it, and nothing else."""
    lines = trace.read_text().splitlines()
    place = next(n for n, line in enumerate(lines) if "switch_p_job_fini" in line)
    other = tmp_path / "other.jsonl"
    kept = lines[:place]
    for line in lines[place + 1 :]:
        event = json.loads(line)
        event["seq"] -= 1
        kept.append(json.dumps(event))
    other.write_text("\n".join(kept) + "\n")
    assert cli.main(["trace", "diff", str(trace), str(other)]) == cli.NOT_HELD
    out = capsys.readouterr().out
    assert next(line for line in out.splitlines() if line.startswith("-")).count("job_fini") == 1
    assert not [line for line in out.splitlines() if line.startswith("+")]


def test_diff_tells_models_apart(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Headers that differ are told as well."""
    other = tmp_path / "modern.jsonl"
    cli.main(["run", "two_nodes", "--quiet", "--model", "modern", "--trace", str(other)])
    capsys.readouterr()
    assert cli.main(["trace", "diff", str(trace), str(other)]) == cli.NOT_HELD
    assert "model: guide | modern" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not a trace"),
        ('{"a": 1}\n', "not a trace"),
        ("nonsense\n", "not a trace"),
        ('{"simctl_trace": 1}\n{"seq": 1}\n', ":2:"),
        ('{"simctl_trace": 1}\n{"seq": 1, "time_\n', ":2:"),
    ],
)
def test_what_is_no_trace_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    """With the file, the line and what would do; exit status 2, no traceback."""
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    for words in (["show", str(path)], ["diff", str(path), str(path)], ["why", str(path), "1"]):
        assert cli.main(["trace", *words]) == cli.WRONG_INPUT
        captured = capsys.readouterr()
        assert told in captured.err
        assert "Traceback" not in captured.err


@pytest.mark.parametrize("later", [0, 1])
def test_a_cause_that_does_not_come_before_its_event_is_refused(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], later: int
) -> None:
    """A chain that leads to its own event, or to a later one and back, has no root."""
    header, *lines = trace.read_text().splitlines()
    events = [json.loads(line) for line in lines]
    at = next(n for n, event in enumerate(events) if n > 5 and "cause" in event)
    events[at]["cause"] = events[at]["seq"] + later
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text("\n".join([header, *(json.dumps(each) for each in events)]) + "\n")
    seq = events[at]["seq"]
    for asked in ([str(seq)], [str(seq), "1"], ["1", str(seq)]):
        assert cli.main(["trace", "why", str(damaged), *asked]) == cli.WRONG_INPUT
        assert f"event {seq} " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["why", "TRACE", "999999"], "they go from 1 to"),
        (["assert", "TRACE", ""], "nothing is expected; write one such as"),
        (["show", "nowhere.jsonl"], "nowhere.jsonl"),
        (["show", "TRACE", "x", "rool=task"], "role"),
        (["show", "TRACE", "--kinds", "plugins"], "'plugins'"),
    ],
)
def test_wrong_words_are_told(
    trace: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    """An event that is not there, a file that is not there, a field and a kind misspelt."""
    assert cli.main(["trace", *(str(trace) if w == "TRACE" else w for w in words)]) == 2
    assert told in capsys.readouterr().err


def test_a_trace_of_nothing_has_no_event(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a run that was interrupted before anything happened."""
    empty = tmp_path / "empty.jsonl"
    empty.write_text(trace.read_text().partition("\n")[0] + "\n")
    assert cli.main(["trace", "why", str(empty), "3"]) == cli.WRONG_INPUT
    assert "there is no event 3: the trace holds none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["init", "rc=7"], "none matches the rest"),
        (["--kinds", "fault,script"], "none is of kind fault or script"),
    ],
)
def test_an_empty_result_is_explained(
    trace: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    """On standard error, so that a pipe stays clean."""
    assert cli.main(["trace", "show", str(trace), *words]) == cli.OK
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.startswith("simctl: nothing to show: ")
    assert told in captured.err


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("REQUEST_BATCH_JOB_LANCH", "did you mean REQUEST_BATCH_JOB_LAUNCH?"),
        ("init node=n7", "no node 'n7'; there are n1, n2, login"),
        ("init role=manger", "no role 'manger'; did you mean manager?"),
        ("job_state job=9", "there was no job 9 in the run; its jobs: 1"),
        ("* step=9.0", "there was no job 9"),
        ("* plugin=switch/nne", "no plugin 'switch/nne'; did you mean switch/none?"),
    ],
)
def test_a_word_that_the_trace_cannot_have_is_wrong_input(
    trace: Path, capsys: pytest.CaptureFixture[str], pattern: str, told: str
) -> None:
    """As shown, counted and asserted on: what is never there says nothing."""
    for words in (
        ["show", str(trace), pattern],
        ["assert", str(trace), f"{{never: {pattern!r}}}"],
        ["why", str(trace), pattern],
    ):
        assert cli.main(["trace", *words]) == cli.WRONG_INPUT
        captured = capsys.readouterr()
        assert not captured.out
        assert told in captured.err


def test_show_tells_the_arguments_of_logs_faults_and_scripts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They say most of what there is to say of these."""
    for name, wanted in (
        ("backfill", "backfill_reservation job=2 start_us=605000100 node_list=n[1-3]"),
        ("cut_short", "fault fault=cut slurmctld n1 for 240s"),
        ("prolog_epilog", "prolog enter job=1 path=/etc/slurm/prolog"),
    ):
        path = tmp_path / f"{name}.jsonl"
        assert cli.main(["run", name, "--quiet", "--trace", str(path)]) == cli.OK
        assert cli.main(["trace", "show", str(path), "--kinds", "log,fault,script"]) == cli.OK
        assert wanted in capsys.readouterr().out


def why(trace: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what `trace why` prints."""
    assert cli.main(["trace", "why", str(trace), *words]) == cli.OK
    return capsys.readouterr().out.splitlines()


def test_why_names_each_link_of_a_forced_order(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the end of the one to the beginning of the other."""
    attach, complete = "switch_p_job_attach task=0 step=1.0", "switch_p_job_step_complete step=1.0"
    lines = why(trace, attach, complete, capsys=capsys)
    assert lines[0].startswith("forced: switch_p_job_attach (seq 89) ends before")
    links = [line[:13].strip() for line in lines[1:]]
    assert links == [
        *("", "process order", "process order", "join", "process order", "exit"),
        *("process order", "message", "process order"),
    ]
    assert lines[1].split()[0] == "89"
    assert "switch_p_job_step_complete" in lines[-1]
    page = Path(__file__).parent.parent / "docs" / "traces.md"
    assert "".join(f"    {line}\n" for line in lines) in page.read_text()


def test_why_tells_that_the_order_is_the_other_one(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks for a fini before an init is told what is the case."""
    fini, init = "switch_p_job_fini node=n1 step=1.0", "switch_p_job_init node=n1 step=1.0"
    lines = why(trace, fini, init, capsys=capsys)
    assert lines[0].startswith("forced, and the other way round: switch_p_job_init (seq 85) ends")


def test_why_tells_what_would_reverse_two_that_are_free(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here two launches, which are on their way at once; asked either way round."""
    one, other = "switch_p_job_attach task=0 step=1.0", "switch_p_job_attach task=2"
    for words in ((one, other), (other, one)):
        lines = why(trace, *words, capsys=capsys)
        assert lines[0] == (
            "free: switch_p_job_attach (seq 89) came before switch_p_job_attach (seq 114) in this "
            "run, and nothing forces it"
        )
        assert "REQUEST_LAUNCH_TASKS receive on n1" in lines[-1]
        assert "only time orders them (0:00:00.0004 and 0:00:00.0005)" in lines[-1]
    assert "cannot precede itself" in why(trace, "89", "89", capsys=capsys)[0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["why", "TRACE", "switch_p_job_attach"], "5 events match"),
        (["why", "TRACE", "switch_p_job_atach"], "did you mean switch_p_job_attach"),
        (["why", "TRACE", "89", "switch_p_job_fini task=9"], "none matches the rest of it"),
        (["why", "TRACE", "89", "999999"], "they go from 1 to"),
        (["assert", "TRACE", "{nevr: fini}"], "did you mean never"),
        (["assert", "TRACE", "{never: switch_p_job_finni}"], "no plugin function is called"),
        (["assert", "TRACE", "{never: fini node=n9}"], "no node 'n9'"),
        (["assert", "TRACE"], "no expectation"),
        (["assert", "TRACE", "{job: 1, state: COMPLETED}"], "is about the table of jobs"),
        (["assert", "TRACE", "--file", "/there/is/none.yaml"], "cannot read it"),
        (["assert", "/there/is/none.jsonl", "{never: fini}"], "cannot read it"),
    ],
)
def test_what_why_and_assert_are_asked_amiss_is_told(
    trace: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong, with exit status 2."""
    words = [str(trace) if word == "TRACE" else word for word in words]
    assert cli.main(["trace", *words]) == cli.WRONG_INPUT
    assert says in capsys.readouterr().err


def test_assert_holds_expectations_against_a_trace(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Orders, never and count, as a scenario has them; users are those of the header."""
    wanted = [
        '{never: "switch_p_job_fini role=manager"}',
        'count: "switch_p_job_attach user=alice step=1.0"\nis: 4',
        "[{order: [switch_p_job_init, switch_p_job_attach], within: step=1.0, each: node, "
        "proved: true}]",
        '{never: "init node=n2 role=srun"}',
    ]
    assert cli.main(["trace", "assert", str(trace), *wanted]) == cli.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["held"] * 4
    assert lines[2].endswith("each node proved")


def test_assert_shows_what_does_not_hold(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lines between, and exit status 1, though others hold."""
    wrong = '{order: [switch_p_job_fini, switch_p_job_init], within: "step=1.0", each: node}'
    words = ["trace", "assert", str(trace), "{count: switch_p_job_fini, min: 1}", wrong]
    assert cli.main(words) == cli.NOT_HELD
    out = capsys.readouterr().out
    assert "held   count switch_p_job_fini min 1" in out
    assert "BROKEN order switch_p_job_fini < switch_p_job_init" in out
    told = re.search(
        r"in node=n1: switch_p_job_init \(seq (\d+)\) began before switch_p_job_fini \(seq (\d+)\)",
        out,
    )
    assert told is not None
    events = dict(enumerate(trace.read_text().splitlines()))
    assert '"switch_p_job_init"' in events[int(told[1])]
    assert '"switch_p_job_fini"' in events[int(told[2])]
    assert f">   {told[2]}" in out


def test_assert_takes_the_expectations_of_files(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list of them, or a scenario, of which those about the table of jobs are left out."""
    wanted = tmp_path / "expect.yaml"
    wanted.write_text('- {never: "switch_p_job_fini role=manager"}\n- {count: nothing, is: 1}\n')
    scenario = Path(__file__).parent.parent / "scenarios" / "two_nodes.yaml"
    words = ["trace", "assert", str(trace), "--file", str(wanted), "--file", str(scenario)]
    assert cli.main(words) == cli.NOT_HELD
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == "held   never switch_p_job_fini role=manager"
    assert printed.out.splitlines()[1] == "BROKEN count nothing is 1"
    assert "held   order switch_p_job_preinit" in printed.out
    assert f"{scenario}:24: `job 1 state=COMPLETED" in printed.err


def test_nothing_is_forced_in_half_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace of plugin calls alone has none of the messages between them."""
    path = tmp_path / "plugins.jsonl"
    words = ["run", "two_nodes", "--quiet", "--trace-kinds", "plugin", "--trace", str(path)]
    assert cli.main(words) == cli.OK
    attach = "switch_p_job_attach task=0 step=1.0"
    assert cli.main(["trace", "why", str(path), attach, "switch_p_job_fini node=n2"]) == (
        cli.WRONG_INPUT
    )
    assert "nothing can be proved from a part of a trace" in capsys.readouterr().err


def test_assert_takes_no_silence_of_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace of some kinds says nothing about the others; of its own kinds it does."""
    path = str(tmp_path / "some.jsonl")
    words = ["run", "two_nodes", "--quiet", "--trace", path, "--trace-kinds", "plugin,state"]
    assert cli.main(words) == cli.OK
    absent = '{never: "switch_p_job_fini role=manager"}'
    assert cli.main(["trace", "assert", path, absent]) == cli.OK
    assert cli.main(["trace", "assert", path, "{count: fork, is: 0}"]) == cli.WRONG_INPUT
    err = capsys.readouterr().err
    assert "nothing matches, and this trace was written with --trace-kinds plugin,state" in err
