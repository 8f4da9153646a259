"""slurm.conf and Slurm's time limits."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.wire.conf.scheduler import SchedulerParameters
from simctl.wire.conf.slurm_conf import BUILT_KEYS, ConfMistake, SlurmConf, read_conf
from simctl.wire.ids import INFINITE
from simctl.wire.time_limits import format_time_limit_min, parse_time_limit, parse_time_limit_min


def mistake(key: str, value: object) -> str:
    """Return the one mistake that a key and its value make."""
    _, mistakes = read_conf({key: value})
    assert [found.key for found in mistakes] == [key]
    return mistakes[0].message


def test_nothing_given_is_slurms_defaults() -> None:
    """Without slurm_conf a cluster runs with Slurm's defaults."""
    conf, mistakes = read_conf({})
    assert (conf, mistakes) == (SlurmConf(), [])
    assert (conf.kill_wait_s, conf.min_job_age_s, conf.first_job_id) == (30, 300, 1)
    assert conf.max_job_id == 67043328
    assert conf.scheduler_parameters.batch_sched_delay_us == 3_000_000


def test_every_built_key_sets_its_field() -> None:
    """Keys match whatever their case; numbers may be written as texts."""
    conf, mistakes = read_conf(
        {
            "CLUSTERNAME": "tux",
            "slurmuser": "root",
            "SwitchType": "switch/elan",
            "CheckpointType": "checkpoint/blcr",
            "SchedulerType": "sched/builtin",
            "SchedulerParameters": "batch_sched_delay=0.5, Sched_Interval=30",
            "SelectType": "select/linear",
            "FirstJobId": "100",
            "MaxJobId": 200,
            "MaxJobCount": 5,
            "KillWait": "5",
            "MinJobAge": 0,
            "SlurmdTimeout": 15,
            "ReturnToService": 1,
            "OverTimeLimit": "unlimited",
            "TreeWidth": 2,
            "MaxTasksPerNode": 128,
            "JobRequeue": "0",
            "StateSaveLocation": "/state",
            "SlurmdSpoolDir": "/spool/%n",
            "PluginDir": "/lib/a:/lib/b",
        }
    )
    assert mistakes == []
    assert conf == SlurmConf(
        cluster_name="tux",
        scheduler_type="sched/builtin",
        slurm_user="root",
        switch_type="switch/elan",
        checkpoint_type="checkpoint/blcr",
        scheduler_parameters=SchedulerParameters(
            batch_sched_delay_us=500_000, sched_interval_us=30_000_000
        ),
        first_job_id=100,
        max_job_id=200,
        max_job_count=5,
        kill_wait_s=5,
        min_job_age_s=0,
        slurmd_timeout_s=15,
        return_to_service=1,
        over_time_limit_min=INFINITE,
        tree_width=2,
        max_tasks_per_node=128,
        job_requeue=False,
        state_save_location="/state",
        slurmd_spool_dir="/spool/%n",
        plugin_dir="/lib/a:/lib/b",
    )
    assert len(BUILT_KEYS) == len(attrs.fields(SlurmConf))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("KillWait", "four", 'whole number from 0 to 65533, got "four"'),
        ("KillWait", -1, "got -1"),
        ("KillWait", 1.5, "got 1.5"),
        ("KillWait", True, "got True"),
        ("KillWait", None, "got nothing"),
        ("KillWait", "\u0663", "whole number"),
        ("KillWait", [1], r"whole number"),
        ("MaxJobCount", 0, "from 1 to"),
        ("ReturnToService", 3, "from 0 to 2"),
        ("TreeWidth", 0, "from 1 to"),
        ("JobRequeue", 2, "0 or 1"),
        ("OverTimeLimit", "never", "minutes, or UNLIMITED"),
        ("ClusterName", "", "expected a text, got nothing"),
        ("ClusterName", ["a"], "expected a text"),
        ("SwitchType", "none", "did you mean switch/none?"),
        ("SwitchType", "checkpoint/none", "expected switch/NAME"),
        ("CheckpointType", None, "got nothing"),
        ("SchedulerType", "sched/hold", "not simulated yet; sched/backfill and sched/builtin are"),
        ("SchedulerType", "builtin", "did you mean sched/builtin?"),
        ("SchedulerType", "sched/buildin", "did you mean sched/builtin?"),
        ("SelectType", "select/cons_res", "not simulated yet; select/linear and select/cons_tres"),
        ("SelectType", "select/cons_res", "not simulated yet"),
        ("SelectType", "", "expected select/linear or select/cons_tres, got nothing"),
        ("SchedulerParameters", "max_rpc_cnt=9", "max_rpc_cnt is known to Slurm but not"),
        ("SchedulerParameters", "bf_window=0", "expected a number of minutes above 0"),
        ("SchedulerParameters", "batch_sched_dealy=3", "did you mean batch_sched_delay?"),
        ("SchedulerParameters", "batch_sched_delay=soon", 'seconds of 0 or more, got "soon"'),
        ("SchedulerParameters", "batch_sched_delay", 'got ""'),
        ("SchedulerParameters", "sched_interval=0", "seconds above 0"),
        ("SchedulerParameters", "sched_interval=1,sched_interval=2", "given twice"),
        ("SchedulerParameters", "bf_continue=3", 'a word by itself, got "=3"'),
        ("BurstBufferType", "generic", "did you mean burst_buffer/generic?"),
        ("BurstBufferType", "burst_buffer/a,burst_buffer/a", "burst_buffer/a is given twice"),
        ("BurstBufferType", "burst_buffer/a,", "expected burst_buffer/NAME"),
        ("AccountingStorageTRES", "gres/gpu", "gres/gpu is known to Slurm but not simulated yet"),
        ("AccountingStorageTRES", "bb/generic,emergy", "did you mean energy?"),
        ("CompleteWait", 5, "not simulated yet; leave it out, or give Slurm's default, 0"),
        ("SlurmctldTimeout", 0, "from 1 to"),
        (
            "PrologFlags",
            "Alloc,Contain",
            "Contain is known to Slurm but not simulated yet; Alloc is",
        ),
        ("PrologFlags", "Allocate", "did you mean Alloc?"),
        ("Prolog", ["a"], "expected a text"),
        ("auth_type", "x", "did you mean AuthType?"),
        ("AuthType", "auth/munge", "AuthType is known to Slurm but not simulated yet"),
        ("killwaitt", 30, "did you mean KillWait?"),
        ("Colour", "red", "is not a slurm.conf key"),
        ("NodeName", "n[1-2]", "under nodes"),
        ("PartitionName", "debug", "under partitions"),
    ],
)
def test_mistakes_say_what_would_do(key: str, value: object, words: str) -> None:
    """A value that cannot be taken is answered with what was expected, or what is built."""
    assert words in mistake(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("CompleteWait", 0),
        ("inactivelimit", "0"),
        ("Prolog", None),
        ("Epilog", ""),
        ("TaskProlog", "(null)"),
        ("PreemptMode", "off"),
        ("PreemptType", "preempt/none"),
        ("DisableRootJobs", "NO"),
        ("DisableRootJobs", False),
        ("BurstBufferType", ""),
        ("BurstBufferType", "none"),
        ("AccountingStorageTRES", "cpu,mem,energy,node,billing,fs/disk,vmem,pages"),
        ("MpiDefault", "none"),
        ("SlurmctldPort", 6817),
        ("TmpFS", "/tmp"),
        ("ProctrackType", "proctrack/pgid"),
        ("SchedulerParameters", None),
    ],
)
def test_a_default_that_holds_anyway_may_be_given(key: str, value: object) -> None:
    """A site's file that spells out Slurm's defaults needs no editing."""
    assert read_conf({key: value}) == (SlurmConf(), [])


def test_exit_codes_are_numbers_and_ranges_of_them() -> None:
    """RequeueExit, as sites write it; it prints as it was given."""
    conf, mistakes = read_conf({"RequeueExit": "1, 5-7,255", "RequeueExitHold": 9})
    assert mistakes == []
    assert sorted(conf.requeue_exit.codes) == [1, 5, 6, 7, 255]
    assert conf.requeue_exit_hold.codes == {9}
    assert conf.value("RequeueExit") == "1,5-7,255"
    for wrong in ("256", "7-5", "one", "1-", -1):
        assert "expected exit codes from 0 to 255" in mistake("RequeueExit", wrong)


def test_kill_invalid_depend_stands_alone() -> None:
    """Among the other parts of SchedulerParameters, without a value."""
    conf, mistakes = read_conf({"SchedulerParameters": "sched_interval=30,kill_invalid_depend"})
    assert mistakes == []
    assert conf.scheduler_parameters.kill_invalid_depend
    text = str(conf.scheduler_parameters)
    assert text.startswith("batch_sched_delay=3,sched_interval=30,default_queue_depth=100,")
    assert text.endswith(",kill_invalid_depend")
    assert read_conf({"SchedulerParameters": text}) == (conf, [])
    assert "a word by itself" in mistake("SchedulerParameters", "kill_invalid_depend=1")


def test_every_mistake_is_told_at_once() -> None:
    """One look at the messages is enough to mend the file; good values are taken."""
    conf, mistakes = read_conf(
        {
            "KillWait": "x",
            "MinJobAge": 60,
            "Nope": 1,
            "SchedulerParameters": "max_rpc_cnt,batch_sched_delay=-1,what",
            "killwait": 3,
        }
    )
    assert conf == SlurmConf(min_job_age_s=60)
    assert [found.key for found in mistakes] == [
        "KillWait",
        "Nope",
        "SchedulerParameters",
        "SchedulerParameters",
        "SchedulerParameters",
        "killwait",
    ]
    assert mistakes[-1] == ConfMistake(
        key="killwait", message="given twice: KillWait is the same key"
    )


def test_job_ids_need_room() -> None:
    """The first job id cannot lie above the last."""
    _, mistakes = read_conf({"MaxJobId": 5, "FirstJobId": 6})
    assert mistakes == [ConfMistake(key="FirstJobId", message="FirstJobId 6 is above MaxJobId 5")]


@settings(derandomize=True, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*BUILT_KEYS, "Prolog", "AuthType", "nope"]) | st.text(max_size=5),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.none()),
    )
)
def test_no_value_breaks_the_reader(mapping: dict[str, object]) -> None:
    """Whatever stands in the file is taken or is a mistake; nothing is raised."""
    conf, mistakes = read_conf(mapping)
    assert isinstance(conf, SlurmConf)
    assert all(found.key in mapping and found.message for found in mistakes)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("10", 600),
        ("0:03", 3),
        ("90:00", 5400),
        ("1:00:00", 3600),
        ("1-0", 86400),
        ("2-3", 183600),
        ("1-2:3", 93780),
        ("1-2:3:4", 93784),
        ("0-0:0:5", 5),
        (" 5 ", 300),
        ("UNLIMITED", INFINITE),
        ("infinite", INFINITE),
        ("-1", INFINITE),
    ],
)
def test_time_limits_have_slurms_six_forms(text: str, seconds: int) -> None:
    """A single number is minutes; days make the next part hours."""
    assert parse_time_limit(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "foo", "1:2:3:4", "1-", "-2", "1:", ":1", "1.5", "1-2-3", "5m", "1 2", "\u0661"]
)
def test_other_forms_are_refused(text: str) -> None:
    """The message lists the forms there are."""
    with pytest.raises(ValueError, match="minutes:seconds"):
        parse_time_limit(text)


def test_a_time_limit_beyond_32_bits_is_refused() -> None:
    """The largest numbers mean "not set" and "no limit"."""
    with pytest.raises(ValueError, match="UNLIMITED"):
        parse_time_limit("99999999-0")


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("0", 0), ("0:03", 1), ("1:00", 1), ("1:01", 2), ("1-0", 1440), ("UNLIMITED", INFINITE)],
)
def test_seconds_round_up_to_minutes(text: str, minutes: int) -> None:
    """A job has its time limit in whole minutes."""
    assert parse_time_limit_min(text) == minutes


@pytest.mark.parametrize(
    ("minutes", "short", "padded"),
    [
        (0, "0:00", "00:00:00"),
        (10, "10:00", "00:10:00"),
        (60, "1:00:00", "01:00:00"),
        (1440 + 125, "1-02:05:00", "1-02:05:00"),
        (525600, "365-00:00:00", "365-00:00:00"),
        (INFINITE, "UNLIMITED", "UNLIMITED"),
    ],
)
def test_time_limits_print_as_squeue_and_scontrol_do(minutes: int, short: str, padded: str) -> None:
    """The short form leaves out what is zero in front, the padded one keeps it."""
    assert format_time_limit_min(minutes) == short
    assert format_time_limit_min(minutes, padded=True) == padded


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 70_000_000), st.booleans())
def test_a_printed_time_limit_reads_back(minutes: int, padded: bool) -> None:
    """What a command prints may be given to another."""
    assert parse_time_limit_min(format_time_limit_min(minutes, padded=padded)) == minutes


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        ({"PreemptMode": "CANCEL"}, "PreemptMode", "needs PreemptType=preempt/partition_prio"),
        ({"PreemptType": "preempt/partition_prio"}, "PreemptType", "CANCEL, REQUEUE or SUSPEND,"),
        (
            {"preempttype": "preempt/partition_prio", "PreemptMode": "OFF"},
            "preempttype",
            "needs a PreemptMode beside it",
        ),
    ],
)
def test_preempt_type_and_mode_go_together(given: dict[str, object], key: str, words: str) -> None:
    """As in Slurm, whose daemons do not start with one of them alone."""
    _, mistakes = read_conf(given)
    assert [found.key for found in mistakes] == [key]
    assert words in mistakes[0].message
