"""`simctl plugins check` of switch plugins: ordinary mistakes, each found for its reason."""

from pathlib import Path

import pytest

from simctl.plugins.importing import find
from simctl.testing.plugin_check.check import check_plugin

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
        (BUILD, BUILD + "\n        import time; time.sleep(1.5)", "real-time", "build_jobinfo"),
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


def test_sleeping_in_slurmctld_is_summed(tmp_path: Path) -> None:
    """Two seconds a step are told, with what they cost."""
    change = ("def switch_p_build_jobinfo", "async def switch_p_build_jobinfo")
    sleep = (BUILD, BUILD + "\n        from simctl.plugin import sleep; await sleep(2)")
    assert rules(tmp_path, change, sleep) == {"blocks-slurmctld": "build_jobinfo"}
