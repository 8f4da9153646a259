"""`simctl plugins check` of switch plugins: ordinary mistakes, each found for its reason."""

from pathlib import Path

import pytest

from simctl.plugins.importing import find
from simctl.testing.plugin_check import bench
from simctl.testing.plugin_check.canon import plain
from simctl.testing.plugin_check.check import check_plugin
from simctl.testing.plugin_check.switch.compare import values_in_rows

GOOD = '''
"""A switch plugin that gives each task a link of the fabric."""
from simctl.plugin import Buf, SlurmError, SwitchPlugin, disk, errno

LINKS = 24


class Links(SwitchPlugin):
    plugin_type = "switch/links"
    plugin_name = "gives links away"

    def init(self):
        self.idle = list(range(100, 100 + LINKS))
        self.card = None
        self.built = 0
        self.history = []

    def switch_p_libstate_save(self, dir_name):
        buf = Buf()
        buf.pack32(len(self.idle))
        for link in self.idle:
            buf.pack16(link)
        disk().write(f"{dir_name}/links", buf.data())

    def switch_p_libstate_restore(self, dir_name):
        if disk().exists(f"{dir_name}/links"):
            buf = Buf(disk().read(f"{dir_name}/links"))
            self.idle = [buf.unpack16() for _ in range(buf.unpack32())]

    def switch_p_alloc_jobinfo(self):
        return {"links": [], "nodes": ""}

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        if len(self.idle) < nprocs:
            raise SlurmError(errno.ESLURM_INTERCONNECT_FAILURE)
        self.built += 1
        self.history.append(f"{nprocs} on {nodelist}")
        switch_job["nodes"] = nodelist
        for _ in range(nprocs):
            switch_job["links"].append(self.idle.pop(0))

    def switch_p_copy_jobinfo(self, switch_job):
        return {"links": list(switch_job["links"]), "nodes": switch_job["nodes"]}

    def switch_p_free_jobinfo(self, switch_job):
        pass

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        before = buffer.size
        buffer.packstr(switch_job["nodes"])
        buffer.pack32(len(switch_job["links"]))
        for link in switch_job["links"]:
            buffer.pack16(link)
        return buffer.size - before

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job["nodes"] = buffer.unpackstr()
        switch_job["links"] = [buffer.unpack16() for _ in range(buffer.unpack32())]

    def switch_p_job_step_complete(self, switch_job, nodelist):
        self.idle.extend(switch_job["links"])

    def switch_p_node_init(self):
        self.card = "hca0"

    def switch_p_job_init(self, switch_job, uid):
        pass

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["LINK"] = str(switch_job["links"][rank])
'''

BACK = 'self.idle.extend(switch_job["links"])'
COPY = 'return {"links": list(switch_job["links"]), "nodes": switch_job["nodes"]}'
TAKE = 'switch_job["links"].append(self.idle.pop(0))'
INIT = "def switch_p_job_init(self, switch_job, uid):\n        pass"
FREE = "def switch_p_free_jobinfo(self, switch_job):\n        pass"
BUILD = 'switch_job["nodes"] = nodelist'
SAVE = 'disk().write(f"{dir_name}/links", buf.data())'
_ASKS = """self.ready = uid

    def switch_p_job_postfini(self, switch_job, pgid, job_id, step_id):
        ready = getattr(self, "ready", None)"""
_BEATS = """
        from simctl.plugin import start
        self.card = "hca0"
        start(self.beat)

    async def beat(self):
        import time
        time.sleep(0.3)"""
ATTACH = 'switch_job["links"][rank]'
UNPACKED = "[buffer.unpack16() for _ in range(buffer.unpack32())]"


def rules(tmp_path: Path, *changes: tuple[str, str]) -> dict[str, str]:
    """Return the rules of what is found in the plugin after some changes, with the functions."""
    text = GOOD
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (tmp_path / "links.py").write_text(text)
    (found,) = find("links.py", tmp_path)
    checked = check_plugin(found.kind, found.origin, models=("guide",))
    assert "switch_p_build_jobinfo" in checked.driven
    return {each.rule: each.function.removeprefix("switch_p_") for each in checked.mistakes}


def test_a_correct_plugin_with_counters_and_a_log_is_fine(tmp_path: Path) -> None:
    """What only grows, and decides nothing, is no leak."""
    assert rules(tmp_path) == {}


@pytest.mark.parametrize(
    ("old", "new", "rule", "function"),
    [
        (BACK, "pass", "never-freed", "job_step_complete"),
        (BACK, BACK + "\n        " + BACK, "freed-twice", "job_step_complete"),
        (COPY, "return switch_job", "copy", "copy_jobinfo"),
        (COPY, 'return {"links": list(switch_job["links"]), "nodes": ""}', "copy", "copy_jobinfo"),
        (FREE, FREE.replace("pass", BACK), "freed-early", "free_jobinfo"),
        (SAVE, "pass", "lost-at-restart", "libstate_restore"),
        (UNPACKED, UNPACKED.replace("k16", "k32"), "always-fails", "unpack_jobinfo"),
        (UNPACKED, UNPACKED + "[:1]", "pack-unpack", "unpack_jobinfo"),
        (
            "raise SlurmError(",
            "self.idle[-1:] = []; raise SlurmError(",
            "leaks-on-failure",
            "build_jobinfo",
        ),
        (ATTACH, ATTACH.replace("rank", "procid"), "wrong-rank", "job_attach"),
        (INIT, INIT.replace("pass", "log = str(self.card)"), "wrong-process", "job_init"),
        (INIT, INIT.replace("pass", _ASKS), "wrong-process", "job_postfini"),
        (BUILD, BUILD + "\n        import time; time.sleep(1.5)", "real-time", "build_jobinfo"),
        ('self.card = "hca0"', _BEATS, "real-time", "beat"),
        (
            TAKE,
            "import random; random.shuffle(self.idle); " + TAKE,
            "chance",
            "build_jobinfo",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_each_mistake_is_found_once_for_its_reason(
    tmp_path: Path, old: str, new: str, rule: str, function: str
) -> None:
    """One mistake is one entry."""
    assert rules(tmp_path, (old, new)) == {rule: function}


def test_calls_that_take_the_wall_clock_end_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they do with it: compute, or wait for a program. No more clusters are made then."""
    monkeypatch.setattr(bench, "_BUSY_S", 0.3)
    change = (BUILD, BUILD + "\n        sum(range(12_000_000))")
    assert rules(tmp_path, change) == {"real-time": "build_jobinfo"}


class Row:
    """A part of a credential."""

    def __init__(self, number: int) -> None:
        self.number, self.speed = number, 100


def test_what_tasks_get_may_be_in_objects_of_a_list() -> None:
    """One for each rank: ranks that got the same are told by them as by plain numbers."""
    credential = plain({"rows": (Row(4), Row(5)), "nodes": "n1", "keys": [{"key": 7}, {"key": 8}]})
    assert values_in_rows(credential) == [{4, 5}, {100}, {7, 8}]


def test_sleeping_in_slurmctld_is_summed(tmp_path: Path) -> None:
    """Two seconds a step are told, with what they cost."""
    change = ("def switch_p_build_jobinfo", "async def switch_p_build_jobinfo")
    sleep = (BUILD, BUILD + "\n        from simctl.plugin import sleep; await sleep(2)")
    assert rules(tmp_path, change, sleep) == {"blocks-slurmctld": "build_jobinfo"}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (
            (BACK, "pass"),
            (SAVE, "pass"),
            {"never-freed": "job_step_complete", "lost-at-restart": "libstate_restore"},
        ),
        (
            (BACK, "pass"),
            ('env["LINK"] =', 'env["LINK"] = 1 / 0 or'),
            {"never-freed": "job_step_complete", "call-breaks": "job_attach"},
        ),
        (
            (FREE, FREE.replace("pass", BACK)),
            (SAVE, "pass"),
            {"freed-early": "free_jobinfo", "lost-at-restart": "libstate_restore"},
        ),
        (
            (UNPACKED, UNPACKED.replace("k16", "k32")),
            ("raise SlurmError(", "self.idle[-1:] = []; raise SlurmError("),
            {"always-fails": "unpack_jobinfo", "leaks-on-failure": "build_jobinfo"},
        ),
    ],
    ids=["saved", "breaks", "early", "unpack"],
)
def test_one_mistake_hides_no_other(
    tmp_path: Path, one: tuple[str, str], other: tuple[str, str], found: dict[str, str]
) -> None:
    """What was seen in slurmctld alone is no effect of what goes wrong in tasks, or the like."""
    assert rules(tmp_path, one, other) == found


def test_what_may_follow_is_told_apart(tmp_path: Path) -> None:
    """It may be a mistake of its own, and is no entry of its own."""
    changes = (UNPACKED, UNPACKED + "[:1]"), (SAVE, "pass")
    assert rules(tmp_path, *changes) == {"pack-unpack": "unpack_jobinfo"}
    (found,) = find("links.py", tmp_path)
    checked = check_plugin(found.kind, found.origin, models=("guide",))
    assert "lost-at-restart" in [each.rule for each in checked.may_follow]
    assert "lost-at-restart" in str(checked.as_json()["may_follow"])
    (line,) = [each for each in checked.lines() if each.startswith("seen besides; ")]
    assert "may follow" in line


_STARTS = """
        if process().role == "slurmctld":
            self.thread = start(self.watch)
"""
_WATCHES = """
    async def watch(self):
        while True:
            await sleep(5)
            %s

"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            "for job in slurmctld.jobs(): job.admin_comment = str(len(self.idle))",
            {"unlocked": "watch"},
        ),
        (
            "async with slurmctld.locked():\n"
            "                for job in slurmctld.jobs(): job.admin_comment = str(len(self.idle))",
            {},
        ),
        ("log.info('free', number=len(self.idle), jobs=len(slurmctld.jobs()))", {}),
    ],
    ids=["changes", "locked", "looks"],
)
def test_a_thread_that_changes_jobs_takes_the_lock(
    tmp_path: Path, body: str, found: dict[str, str]
) -> None:
    """A switch plugin may watch its fabric in slurmctld, beside the functions that hold it."""
    assert (
        rules(
            tmp_path,
            ("disk, errno", "disk, errno, log, process, sleep, slurmctld, start"),
            ("        self.history = []\n", "        self.history = []\n" + _STARTS),
            ("    def switch_p_alloc_jobinfo", _WATCHES % body + "    def switch_p_alloc_jobinfo"),
        )
        == found
    )


@pytest.mark.parametrize(
    ("take", "found"),
    [
        ("sorted(set(self.idle), key=str)[0]", {}),
        ("next(iter({f'{each}' for each in self.idle}))", {"chance": "build_jobinfo"}),
        ("{str(each) for each in self.idle}.pop()", {"chance": "build_jobinfo"}),
    ],
    ids=["sorted", "first", "popped"],
)
def test_the_order_of_a_set_of_texts_decides_nothing(
    tmp_path: Path, take: str, found: dict[str, str]
) -> None:
    """It is another in each process, and so is what the steps of a run are given."""
    change = f'link = int({take}); self.idle.remove(link); switch_job["links"].append(link)'
    assert rules(tmp_path, (TAKE, change)) == found


def test_what_is_taken_may_be_found_in_credentials(tmp_path: Path) -> None:
    """A slurmctld that starts unpacks those of its steps: it need not save anything besides."""
    take = """
            free = [each for each in range(100, 100 + LINKS) if each not in self.used]
            switch_job["links"].append(free[0])
            self.used.add(free[0])"""
    back = 'self.used.difference_update(switch_job["links"])'
    note = """
        if process().role == "slurmctld":
            self.used.update(switch_job["links"])
"""
    changed = rules(
        tmp_path,
        ("disk, errno", "disk, errno, process"),
        ("self.idle = list(range(100, 100 + LINKS))", "self.used = set()"),
        ("len(self.idle) < nprocs", "LINKS - len(self.used) < nprocs"),
        (
            "        buf.pack32(len(self.idle))\n        for link in self.idle:\n",
            "        for _ in ():\n",
        ),
        ("            buf.pack16(link)\n        disk()", "            pass\n        disk()"),
        (SAVE, "pass"),
        (
            "self.idle = [buf.unpack16() for _ in range(buf.unpack32())]",
            "pass",
        ),
        (TAKE, take),
        (BACK, back),
        (f'switch_job["links"] = {UNPACKED}\n', f'switch_job["links"] = {UNPACKED}{note}'),
    )
    assert changed == {}
