"""Workload logs: what is read, what is refused, and how it is said."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import make_log as make_log_script
from benchmarks.make_log import make_log
from simctl.scenario.swf import FIELDS, SwfError, SwfLog, counts_of, read_swf, too_wide

LOG = """\
; Version: 2.2
;MaxProcs: 128
; Note: first
;       and on
; Note: second
;
; a remark without a key
  1   0  10  60  4 -1 -1  8  120 -1  1  7  2 3  1  0 -1 -1
2 5 -1 12.50 4 1.5 -1 -1 -1 -1 0 -1 -1 -1 -1 -1 -1 -1

3 3 -1 0 1 -1 -1 0 0.5 -1 5 9 1 -1 0 -1 -1 -1
"""


def job_line(**fields: object) -> str:
    """Return a good job line with some fields, named by their position (`f1`..`f18`), replaced."""
    values: list[object] = [1, 0, -1, 60, 4, -1, -1, 4, 120, -1, 1, 1, 1, 1, 1, 1, -1, -1]
    for name, value in fields.items():
        values[int(name[1:]) - 1] = value
    return " ".join(map(str, values))


def read_text(folder: Path, text: str) -> SwfLog:
    """Read *text* as a log."""
    return read_bytes(folder, text.encode())


def read_bytes(folder: Path, data: bytes, name: str = "a.swf") -> SwfLog:
    """Read *data* as a log."""
    path = folder / name
    path.write_bytes(data)
    return read_swf(path)


def test_every_field_of_a_job_comes_from_its_column(tmp_path: Path) -> None:
    """The eighteen columns have a fixed meaning, whatever the blanks between them."""
    job = read_text(tmp_path, LOG).jobs[0]
    assert (job.number, job.submit_s, job.run_s, job.processors) == (1, 0, 60, 8)
    assert (job.requested_s, job.status, job.user_id, job.group_id) == (120, 1, 7, 2)
    assert (job.queue, job.partition, job.line) == (1, 0, 8)


def test_unknown_fields_fall_back_or_stay_unknown(tmp_path: Path) -> None:
    """Requested processors fall back on allocated ones; a time limit of -1 or 0 is none."""
    _, second, third = read_text(tmp_path, LOG).jobs
    assert (second.processors, second.requested_s, second.user_id) == (4, None, -1)
    assert (third.processors, third.requested_s) == (1, 1)
    assert read_text(tmp_path, job_line(f9=0)).jobs[0].requested_s is None


def test_times_may_have_decimals_and_are_told_in_microseconds(tmp_path: Path) -> None:
    """Time fields are numbers of seconds, not necessarily whole."""
    job = read_text(tmp_path, job_line(f2="3.000001", f4="12.50")).jobs[0]
    assert (job.submit_us, job.run_us) == (3_000_001, 12_500_000)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90", 90), ("90.0", 90), ("90.1", 91), ("90.5", 91), ("90.9", 91), ("0.1", 1), ("-1", None)],
)
def test_a_time_limit_is_whole_seconds_and_never_less_than_was_asked_for(
    tmp_path: Path, written: str, seconds: int | None
) -> None:
    """A job that ran just as long as it asked for is no TIMEOUT."""
    assert read_text(tmp_path, job_line(f9=written)).jobs[0].requested_s == seconds


def test_a_run_time_of_zero_is_a_job(tmp_path: Path) -> None:
    """A job shorter than half a second is logged with 0."""
    assert read_text(tmp_path, job_line(f4=0)).jobs[0].run_us == 0


def test_jobs_keep_the_order_of_the_file_and_replay_by_submit_time(tmp_path: Path) -> None:
    """Equal submit times are replayed in the order of the lines."""
    text = "\n".join(job_line(f1=n, f2=s) for n, s in ((1, 9), (2, 5), (3, 9), (4, 5)))
    log = read_text(tmp_path, text)
    assert [job.number for job in log.jobs] == [1, 2, 3, 4]
    assert [job.number for job in log.replay_order()] == [2, 4, 1, 3]


def test_the_header_holds_keys_repeated_keys_and_continuations(tmp_path: Path) -> None:
    """A key may come again; a comment without a key continues the one right above it."""
    assert read_text(tmp_path, LOG).header == {
        "Version": "2.2",
        "MaxProcs": "128",
        "Note": "first\nand on\nsecond",
    }


def test_an_address_in_a_comment_is_no_key(tmp_path: Path) -> None:
    """A key's colon is followed by a blank."""
    header = read_text(tmp_path, f"; Information: http://a/\n;  http://b/\n{job_line()}").header
    assert header == {"Information": "http://a/\nhttp://b/"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 2 3", "expected 18 fields, got 3"),
        (job_line() + " 5", "expected 18 fields, got 19"),
        (job_line(f4="abc"), 'field 4 (run time): expected a number, got "abc"'),
        (job_line(f6="1_0"), 'field 6 (average cpu time): expected a number, got "1_0"'),
        (job_line(f2="nan"), 'field 2 (submit time): expected a number, got "nan"'),
        (job_line(f10="inf"), 'field 10 (requested memory): expected a number, got "inf"'),
        (job_line(f7="\u0663"), 'field 7 (used memory): expected a number, got "\\u0663"'),
        (job_line(f2="1e300"), 'field 2 (submit time): "1e300" is out of range'),
        (job_line(f8="2.5"), 'field 8 (requested processors): expected a whole number, got "2.5"'),
        (job_line(f2=-2), "field 2 (submit time) is negative (-2)"),
        (job_line(f4=-7), "field 4 (run time) is negative (-7)"),
        (
            job_line(f5=0, f8=0),
            "neither requested (field 8) nor allocated (field 5) processors are known",
        ),
    ],
)
def test_a_malformed_line_is_told_by_number_and_reason(
    tmp_path: Path, line: str, message: str
) -> None:
    """The other lines are read all the same: the caller decides about the log."""
    log = read_text(tmp_path, f"; Version: 2.2\n{job_line()}\n{line}\n{job_line(f1=2)}\n")
    assert [(mistake.line, mistake.message) for mistake in log.malformed] == [(3, message)]
    assert [job.line for job in log.jobs] == [2, 4]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (job_line(f2=-1), "submit time (field 2)"),
        (job_line(f4=-1), "run time (field 4)"),
        (job_line(f5=-1, f8=-1), "processors (fields 5 and 8)"),
        (job_line(f5=-1, f8=0), "processors (fields 5 and 8)"),
    ],
)
def test_what_the_log_does_not_know_is_no_mistake(tmp_path: Path, line: str, what: str) -> None:
    """The format writes -1 for it: the line is well formed, and only cannot be run."""
    log = read_text(tmp_path, f"{job_line()}\n{line}\n{line}\n")
    assert log.malformed == ()
    assert [each.line for each in log.unknown] == [2, 3]
    assert counts_of(log.unknown) == f"2 have no {what}; the first is line 2"


def test_a_log_of_mistakes_alone_is_returned_with_all_of_them(tmp_path: Path) -> None:
    """So that the caller can show them instead of a mere 'no jobs'."""
    log = read_text(tmp_path, "one\ntwo\n")
    assert (log.jobs, [mistake.line for mistake in log.malformed]) == ((), [1, 2])


def test_a_long_wrong_field_is_shortened_in_its_message(tmp_path: Path) -> None:
    """A message stays a line that can be read."""
    log = read_text(tmp_path, job_line(f3="x" * 5000))
    assert len(log.malformed[0].message) < 100


def test_parts_of_a_job_that_has_a_line_of_its_own_are_left_out(tmp_path: Path) -> None:
    """Lines of status 2, 3 and 4 repeat stretches of a swapped-out job: it is replayed once."""
    lines = [
        job_line(f1=1, f11=1),
        job_line(f1=1, f11=2),
        job_line(f1=1, f2=-1, f11=3),
        job_line(f1=2, f11=4),
    ]
    log = read_text(tmp_path, "\n".join(lines))
    assert [(job.number, job.line) for job in log.jobs] == [(1, 1), (2, 4)]
    assert (log.partial_lines, log.malformed) == ((2, 3), ())


def test_too_wide_names_the_jobs_beyond_a_size(tmp_path: Path) -> None:
    """A job of exactly the size still fits."""
    log = read_text(tmp_path, "\n".join(job_line(f1=n, f8=n) for n in (5, 3, 4)))
    assert [job.number for job in too_wide(log, 4)] == [5]
    assert too_wide(log, 5) == ()


@pytest.mark.parametrize("name", ["a.swf", "a.swf.gz", "a"])
@pytest.mark.parametrize("packed", [False, True])
def test_gzip_is_known_by_its_content_not_its_name(
    tmp_path: Path, name: str, *, packed: bool
) -> None:
    """Downloads come unpacked under a .gz name, and packed under any."""
    data = gzip.compress(LOG.encode()) if packed else LOG.encode()
    assert len(read_bytes(tmp_path, data, name).jobs) == 3


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_foreign_line_ends_and_a_byte_order_mark_change_nothing(
    tmp_path: Path, ending: str, mark: str
) -> None:
    """Line numbers and header stay those of the same log from Unix."""
    log = read_text(tmp_path, mark + LOG.replace("\n", ending))
    plain = read_text(tmp_path, LOG)
    assert (log.jobs, log.header, log.malformed) == (plain.jobs, plain.header, ())


def test_odd_separators_inside_a_line_do_not_shift_line_numbers(tmp_path: Path) -> None:
    """Only line feeds and carriage returns end a line."""
    log = read_text(tmp_path, f"; a\x0cb\u2028c\n{job_line()}\nbad\n")
    assert (log.jobs[0].line, log.malformed[0].line) == (2, 3)


def test_a_comment_in_an_old_encoding_is_borne(tmp_path: Path) -> None:
    """Names in headers are older than UTF-8; the numbers are what counts."""
    log = read_bytes(tmp_path, b"; Computer: Universit\xe4t\n" + job_line().encode())
    assert len(log.jobs) == 1
    assert log.header["Computer"].startswith("Universit")


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"", "a.swf", "the log holds no jobs"),
        (b"; Version: 2.2\n\n", "a.swf", "the log holds no jobs"),
        (b"", "a.swf.gz", "is named .gz but is not gzip data"),
        (b"plain words", "a.swf.gz", "is named .gz but is not gzip data"),
        (gzip.compress(LOG.encode())[:40], "a.swf.gz", "the gzip data is damaged"),
        (b"\x1f\x8bnonsense that follows", "a.swf", "the gzip data is damaged"),
        (b"; ok\n1 2 \xff\n", "a.swf", "byte 0xff in line 2 is not text"),
        (b"\xff\xfe" + LOG.encode("utf-16-le"), "a.swf", "byte 0xff in line 1 is not text"),
    ],
    ids=["empty", "comments", "empty gz", "words", "cut gz", "odd gz", "binary", "utf-16"],
)
def test_a_file_that_is_no_log_is_refused(
    tmp_path: Path, data: bytes, name: str, said: str
) -> None:
    """The message names the file, what stood in the way, and what would do."""
    with pytest.raises(SwfError) as caught:
        read_bytes(tmp_path, data, name)
    assert caught.value.problem.startswith(said)
    assert str(caught.value).startswith(f"{tmp_path / name}: {said}")
    assert caught.value.remedy


def test_a_missing_log_gets_a_near_name(tmp_path: Path) -> None:
    """A slip in a name is answered with the name that was meant."""
    (tmp_path / "nasa.swf").write_text(LOG)
    with pytest.raises(SwfError, match=r"nasa\.swg: no such file; did you mean .*nasa\.swf\?"):
        read_swf(tmp_path / "nasa.swg")


def test_a_missing_log_in_a_missing_directory_says_so(tmp_path: Path) -> None:
    """There is nothing near to suggest."""
    with pytest.raises(SwfError, match="no readable directory"):
        read_swf(str(tmp_path / "gone" / "a.swf"))


def test_a_directory_is_no_log(tmp_path: Path) -> None:
    """The user is asked for the file in it."""
    with pytest.raises(SwfError, match="is a directory"):
        read_swf(tmp_path)


def test_what_the_system_says_against_a_file_is_passed_on(tmp_path: Path) -> None:
    """Such as that its name is too long, or that a part of the path is no directory."""
    with pytest.raises(SwfError, match="cannot be read: File name too long"):
        read_swf(tmp_path / ("x" * 5000))
    (tmp_path / "a.swf").write_text(LOG)
    with pytest.raises(SwfError, match="cannot be read: Not a directory"):
        read_swf(tmp_path / "a.swf" / "b.swf")


whole = st.integers(-1, 10**6)
fields = st.lists(whole, min_size=len(FIELDS), max_size=len(FIELDS))


@settings(derandomize=True, deadline=None)
@given(rows=st.lists(fields, min_size=1, max_size=20))
def test_every_line_is_a_job_a_mistake_or_a_part(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]]
) -> None:
    """No line is lost, none is told twice, and what is a job can be replayed."""
    text = "\n".join(" ".join(map(str, row)) for row in rows)
    log = read_text(tmp_path_factory.mktemp("log"), text)
    told = [job.line for job in log.jobs] + [mistake.line for mistake in log.malformed]
    told += [each.line for each in log.unknown]
    assert sorted([*told, *log.partial_lines]) == list(range(1, len(rows) + 1))
    for job in log.jobs:
        assert job.processors >= 1
        assert min(job.submit_us, job.run_us) >= 0
        assert job.requested_s is None or job.requested_s > 0


@settings(derandomize=True, deadline=None)
@given(data=st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """Any file is read or refused with an SwfError."""
    try:
        log = read_bytes(tmp_path_factory.mktemp("log"), data)
    except SwfError:
        return
    assert log.jobs or log.malformed or log.unknown


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    jobs=st.integers(1, 60),
    sizes=st.tuples(st.integers(1, 200), st.integers(1, 64)),
    load=st.floats(0.01, 10),
    seed=st.integers(0, 2**32),
)
def test_a_made_log_reads_back_without_a_mistake(
    tmp_path_factory: pytest.TempPathFactory,
    jobs: int,
    sizes: tuple[int, int],
    load: float,
    seed: int,
) -> None:
    """Jobs fit the cluster, are in submit order, and ask for at least the time they run."""
    nodes, max_width = sizes
    lines = make_log(jobs, nodes=nodes, load=load, seed=seed, max_width=max_width)
    log = read_text(tmp_path_factory.mktemp("made"), "\n".join(lines))
    assert (len(log.jobs), log.malformed) == (jobs, ())
    assert log.replay_order() == log.jobs
    assert too_wide(log, min(nodes, max_width)) == ()
    assert all(0 < job.run_s <= (job.requested_s or 0) for job in log.jobs)


@pytest.mark.parametrize("load", [0.5, 0.9, 2.0])
def test_a_made_log_offers_the_load_asked_for(tmp_path: Path, load: float) -> None:
    """The load is cpu-seconds over what the nodes give between the first and the last submit."""
    lines = make_log(500, nodes=128, load=load, seed=3)
    jobs = read_text(tmp_path, "\n".join(lines)).jobs
    area = sum(job.processors * job.run_s for job in jobs)
    assert area / (128 * (jobs[-1].submit_s - jobs[0].submit_s)) == pytest.approx(load, rel=0.01)


def test_a_made_log_says_its_mean_width_and_depends_on_the_seed_alone(tmp_path: Path) -> None:
    """The header's mean width is that of the jobs below it."""
    lines = make_log(200, nodes=64, load=0.7, seed=5)
    assert lines == make_log(200, nodes=64, load=0.7, seed=5)
    assert lines != make_log(200, nodes=64, load=0.7, seed=6)
    log = read_text(tmp_path, "\n".join(lines))
    mean_width = sum(job.processors for job in log.jobs) / 200
    assert log.header["Note"].startswith(f"mean width {mean_width:.2f},")


def test_the_script_prints_the_log_its_function_makes() -> None:
    """`python benchmarks/make_log.py` needs nothing installed."""
    script = make_log_script.__file__ or ""
    done = subprocess.run(
        [sys.executable, script, "20", "16", "0.8", "4"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == make_log(20, nodes=16, load=0.8, seed=4)


@pytest.mark.parametrize("arguments", ["0 16 0.8 4", "5 0 0.8 4", "5 16 nan 4", "5 16 x 4", "5"])
def test_the_script_refuses_nonsense_without_a_traceback(
    arguments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong argument is status 2 and one message."""
    with pytest.raises(SystemExit) as caught:
        make_log_script.main(arguments.split())
    assert caught.value.code == 2
    assert "error:" in capsys.readouterr().err
