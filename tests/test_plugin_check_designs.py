# ruff: noqa: E501 - changes of lines are easier to read on one line
"""`simctl plugins check` of switch plugins of many designs: silent on them, and not on slips."""

from pathlib import Path

import pytest

from simctl.plugins.importing import find
from simctl.testing.plugin_check.check import check_plugin
from simctl.testing.plugin_check.switch import drive
from simctl.testing.plugin_check.switch.trials import RESTARTS
from simctl.testing.plugin_check.trials import STEPS

BITMAP = '''
from simctl.plugin import *

SLOTS = 64

class Bitmap(SwitchPlugin):
    """Each step has a run of slots of the whole fabric; taken ones are bits of a number."""
    plugin_type = "switch/bitmap"
    plugin_name = "bitmap"

    def __init__(self):
        self.taken = 0

    def _mask(self, cred):
        return ((1 << cred["count"]) - 1) << cred["first"]

    def switch_p_libstate_save(self, dir_name):
        disk().write(dir_name + "/bitmap", self.taken.to_bytes(8, "big"))

    def switch_p_libstate_restore(self, dir_name):
        if disk().exists(dir_name + "/bitmap"):
            self.taken = int.from_bytes(disk().read(dir_name + "/bitmap"), "big")

    def switch_p_alloc_jobinfo(self):
        return {"first": 0, "count": 0}

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        for first in range(SLOTS - nprocs + 1):
            mask = ((1 << nprocs) - 1) << first
            if not self.taken & mask:
                switch_job["first"], switch_job["count"] = first, nprocs
                self.taken |= mask
                return
        raise SlurmError(errno.ESLURM_INTERCONNECT_FAILURE)

    def switch_p_copy_jobinfo(self, switch_job):
        return dict(switch_job)

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        buffer.pack16(switch_job["first"])
        buffer.pack16(switch_job["count"])
        return 4

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job["first"] = buffer.unpack16()
        switch_job["count"] = buffer.unpack16()

    def switch_p_job_step_complete(self, switch_job, nodelist):
        self.taken &= ~self._mask(switch_job)

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["SLOT"] = str(switch_job["first"] + rank)
'''

PER_NODE = '''
from simctl.plugin import *

PORTS = range(5000, 5032)

class PerNode(SwitchPlugin):
    """Each node has ports of its own; a step has some of each of its nodes."""
    plugin_type = "switch/per_node"
    plugin_name = "per_node"

    def __init__(self):
        self.busy = {}

    def switch_p_libstate_save(self, dir_name):
        lines = [f"{node} {port}" for node, ports in self.busy.items() for port in sorted(ports)]
        disk().write(dir_name + "/per_node", "\\n".join(lines).encode())

    def switch_p_libstate_restore(self, dir_name):
        if disk().exists(dir_name + "/per_node"):
            for line in disk().read(dir_name + "/per_node").decode().splitlines():
                node, port = line.split()
                self.busy.setdefault(node, set()).add(int(port))

    def switch_p_alloc_jobinfo(self):
        return {"tasks": 0, "ports": {}}

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        nodes = hostlist(nodelist)
        each = -(-nprocs // len(nodes))
        found = {}
        for node in nodes:
            idle = [port for port in PORTS if port not in self.busy.get(node, ())]
            if len(idle) < each:
                raise SlurmError(errno.ESLURM_INTERCONNECT_FAILURE, "no port is idle on " + node)
            found[node] = idle[:each]
        for node, ports in found.items():
            self.busy.setdefault(node, set()).update(ports)
        switch_job["tasks"] = nprocs
        switch_job["ports"] = found

    def switch_p_copy_jobinfo(self, switch_job):
        ports = {node: list(some) for node, some in switch_job["ports"].items()}
        return {"tasks": switch_job["tasks"], "ports": ports}

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        start = buffer.size
        buffer.pack32(switch_job["tasks"])
        buffer.pack16(len(switch_job["ports"]))
        for node, ports in switch_job["ports"].items():
            buffer.packstr(node)
            buffer.pack16(len(ports))
            for port in ports:
                buffer.pack16(port)
        return buffer.size - start

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job["tasks"] = buffer.unpack32()
        for _ in range(buffer.unpack16()):
            node = buffer.unpackstr()
            switch_job["ports"][node] = [buffer.unpack16() for _ in range(buffer.unpack16())]

    def switch_p_job_step_complete(self, switch_job, nodelist):
        for node, ports in switch_job["ports"].items():
            self.busy[node] -= set(ports)
            if not self.busy[node]:
                del self.busy[node]

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        node = list(switch_job["ports"])[nodeid]
        env["PORT"] = str(switch_job["ports"][node][procid])
'''

WINDOWS = '''
import dataclasses
from simctl.plugin import *

@dataclasses.dataclass
class Window:
    number: int
    nodes: str
    size: int

@dataclasses.dataclass
class Credential:
    window: int = 0
    nodes: str = ""
    size: int = 0

class Windows(SwitchPlugin):
    """slurmctld keeps a table of windows; a step daemon loads one into the adapter, by a file."""
    plugin_type = "switch/windows"
    plugin_name = "windows"

    def init(self):
        self.windows = {}
        self.adapters = 0

    def switch_p_libstate_save(self, dir_name):
        buffer = Buf()
        buffer.pack32(len(self.windows))
        for each in self.windows.values():
            buffer.pack32(each.number)
            buffer.packstr(each.nodes)
            buffer.pack32(each.size)
        disk().write(f"{dir_name}/windows", buffer.data())

    def switch_p_libstate_restore(self, dir_name):
        if not disk().exists(f"{dir_name}/windows"):
            return
        buffer = Buf(disk().read(f"{dir_name}/windows"))
        for _ in range(buffer.unpack32()):
            each = Window(buffer.unpack32(), buffer.unpackstr(), buffer.unpack32())
            self.windows[each.number] = each

    def switch_p_node_init(self):
        self.adapters = 2
        disk().write("/var/spool/windows_adapters", b"2")

    def switch_p_alloc_jobinfo(self):
        return Credential()

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        number = next(n for n in range(1, len(self.windows) + 2) if n not in self.windows)
        self.windows[number] = Window(number, nodelist, nprocs)
        switch_job.window, switch_job.nodes, switch_job.size = number, nodelist, nprocs

    def switch_p_copy_jobinfo(self, switch_job):
        return dataclasses.replace(switch_job)

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        before = buffer.size
        buffer.pack32(switch_job.window)
        buffer.packstr(switch_job.nodes)
        buffer.pack32(switch_job.size)
        return buffer.size - before

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job.window = buffer.unpack32()
        switch_job.nodes = buffer.unpackstr()
        switch_job.size = buffer.unpack32()

    def switch_p_job_step_complete(self, switch_job, nodelist):
        self.windows.pop(switch_job.window, None)

    def switch_p_job_init(self, switch_job, uid):
        adapters = int(disk().read("/var/spool/windows_adapters"))
        disk().write(f"/var/spool/windows_{switch_job.window}", f"{uid} {adapters}".encode())

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["WINDOW"] = f"{switch_job.window}:{rank}"

    def switch_p_job_postfini(self, switch_job, pgid, job_id, step_id):
        if disk().exists(f"/var/spool/windows_{switch_job.window}"):
            disk().remove(f"/var/spool/windows_{switch_job.window}")
'''

IN_FILES = '''
import json
from simctl.plugin import *

STATE = "/var/spool/fabric.json"
DEFAULTS = {"lanes": 2, "mtu": 4096}
_names = {}

def name_of(lane):
    """Return a name; those that were asked for are kept."""
    if lane % 2 not in _names:
        _names[lane % 2] = f"lane-{lane % 2}"
    return _names[lane % 2]

class InFiles(SwitchPlugin):
    """All state is in a file; settings are constants of the module and of the class."""
    plugin_type = "switch/in_files"
    plugin_name = "in_files"
    limits = {"lanes": 40}

    def _state(self):
        if not disk().exists(STATE):
            return {"used": {}, "served": 0}
        return json.loads(disk().read(STATE))

    def _store(self, state):
        disk().write(STATE, json.dumps(state).encode())

    def switch_p_alloc_jobinfo(self):
        return {"lanes": [], "mtu": 0}

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        state = self._state()
        idle = [lane for lane in range(self.limits["lanes"]) if str(lane) not in state["used"]]
        if len(idle) < DEFAULTS["lanes"]:
            raise SlurmError(errno.ESLURM_INTERCONNECT_FAILURE)
        for lane in idle[:DEFAULTS["lanes"]]:
            state["used"][str(lane)] = nodelist
            switch_job["lanes"].append(lane)
        switch_job["mtu"] = DEFAULTS["mtu"]
        state["served"] += 1
        self._store(state)

    def switch_p_copy_jobinfo(self, switch_job):
        return {"lanes": list(switch_job["lanes"]), "mtu": switch_job["mtu"]}

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        return buffer.packstr(json.dumps(switch_job))

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job.update(json.loads(buffer.unpackstr()))

    def switch_p_job_step_complete(self, switch_job, nodelist):
        state = self._state()
        for lane in switch_job["lanes"]:
            state["used"].pop(str(lane), None)
        self._store(state)

    def switch_p_job_preinit(self, switch_job):
        env = stepd.environment
        disk().write(f"/var/spool/fabric_{env['SLURM_JOB_ID']}.{env['SLURM_STEP_ID']}", b"up")

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        lanes = switch_job["lanes"]
        env["LANE"] = name_of(lanes[rank % len(lanes)])

    def switch_p_job_postfini(self, switch_job, pgid, job_id, step_id):
        path = f"/var/spool/fabric_{job_id}.{step_id}"
        if disk().exists(path):
            disk().remove(path)
'''

COUNTER = '''
from simctl.plugin import *

class Counter(SwitchPlugin):
    """Each step has a key that is never used again, and a cookie made of it."""
    plugin_type = "switch/counter"
    plugin_name = "counter"

    def init(self):
        self.last = 0
        self.live = set()
        self.peak = 0
        self.by_host = {}

    def switch_p_libstate_save(self, dir_name):
        buffer = Buf()
        buffer.pack64(self.last)
        buffer.pack32(len(self.live))
        for key in sorted(self.live):
            buffer.pack64(key)
        disk().write(dir_name + "/keys", buffer.data())

    def switch_p_libstate_restore(self, dir_name):
        if disk().exists(dir_name + "/keys"):
            buffer = Buf(disk().read(dir_name + "/keys"))
            self.last = buffer.unpack64()
            self.live = {buffer.unpack64() for _ in range(buffer.unpack32())}

    def switch_p_alloc_jobinfo(self):
        return {"key": 0, "cookie": ""}

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        if nprocs < 1:
            raise SlurmError(errno.EINVAL)
        self.last += 1
        self.live.add(self.last)
        self.peak = max(self.peak, len(self.live))
        self.by_host[nodelist] = self.by_host.get(nodelist, 0) + 1
        switch_job["key"] = self.last
        switch_job["cookie"] = f"{self.last * 2654435761 % 2**32:08x}"

    def switch_p_copy_jobinfo(self, switch_job):
        return {**switch_job}

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        size = buffer.size
        buffer.pack64(switch_job["key"])
        buffer.packstr(switch_job["cookie"])
        return buffer.size - size

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job["key"] = buffer.unpack64()
        switch_job["cookie"] = buffer.unpackstr()

    def switch_p_job_step_complete(self, switch_job, nodelist):
        self.live.discard(switch_job["key"])

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["FABRIC_COOKIE"] = switch_job["cookie"]
        env["FABRIC_RANK"] = str(rank)
'''

ASYNC = '''
from simctl.plugin import *

VNIS = 30

class Vni:
    def __init__(self):
        self.vni = None
        self.slots = {}

class Vnis(SwitchPlugin):
    """A step has a network number, and on each node slots that a fabric manager is asked for."""
    plugin_type = "switch/vni"
    plugin_name = "vni"

    def __init__(self):
        self.vnis = [None] * VNIS
        self.slots = {}

    async def switch_p_libstate_save(self, dir_name):
        await sleep(0.001)
        taken = ",".join(str(number) for number, nodes in enumerate(self.vnis) if nodes)
        slots = ";".join(f"{node}={count}" for node, count in self.slots.items())
        disk().write(dir_name + "/vnis", f"{taken}|{slots}".encode())

    async def switch_p_libstate_restore(self, dir_name):
        if disk().exists(dir_name + "/vnis"):
            taken, _, slots = disk().read(dir_name + "/vnis").decode().partition("|")
            for number in taken.split(",") if taken else ():
                self.vnis[int(number)] = "before"
            for each in slots.split(";") if slots else ():
                node, count = each.split("=")
                self.slots[node] = int(count)

    def switch_p_alloc_jobinfo(self):
        return Vni()

    async def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        if None not in self.vnis:
            raise SlurmError(errno.ESLURM_INTERCONNECT_FAILURE, "all networks are in use")
        vni = self.vnis.index(None)
        self.vnis[vni] = nodelist
        await sleep(0.002)
        nodes = hostlist(nodelist)
        each = -(-nprocs // len(nodes))
        switch_job.vni = vni
        for node in nodes:
            self.slots[node] = self.slots.get(node, 0) + each
            switch_job.slots[node] = each

    def switch_p_copy_jobinfo(self, switch_job):
        copied = Vni()
        copied.vni = switch_job.vni
        copied.slots = dict(switch_job.slots)
        return copied

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        before = buffer.size
        buffer.pack32(NO_VAL if switch_job.vni is None else switch_job.vni)
        buffer.pack32(len(switch_job.slots))
        for node, slots in switch_job.slots.items():
            buffer.packstr(node)
            buffer.pack32(slots)
        return buffer.size - before

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        vni = buffer.unpack32()
        switch_job.vni = None if vni == NO_VAL else vni
        for _ in range(buffer.unpack32()):
            node = buffer.unpackstr()
            switch_job.slots[node] = buffer.unpack32()

    async def switch_p_job_step_complete(self, switch_job, nodelist):
        if switch_job.vni is None:
            return
        await sleep(0.001)
        self.vnis[switch_job.vni] = None
        for node, slots in switch_job.slots.items():
            self.slots[node] -= slots
            if not self.slots[node]:
                del self.slots[node]

    async def switch_p_job_init(self, switch_job, uid):
        await sleep(0.01)
        disk().write(f"/var/spool/vni{switch_job.vni}", str(uid).encode())

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["FABRIC_VNI"] = str(switch_job.vni)

    async def switch_p_job_postfini(self, switch_job, pgid, job_id, step_id):
        await sleep(0.01)
        if disk().exists(f"/var/spool/vni{switch_job.vni}"):
            disk().remove(f"/var/spool/vni{switch_job.vni}")
'''

HEAP = '''
import heapq
from simctl.plugin import *

class Card:
    __slots__ = ("contexts", "owner")

    def __init__(self, contexts=(), owner=""):
        self.contexts = contexts
        self.owner = owner

class Contexts(SwitchPlugin):
    """The smallest idle context first, from a heap that is made when the first is asked for."""
    plugin_type = "switch/contexts"
    plugin_name = "contexts"
    idle = None
    failures = 0

    def _heap(self):
        if self.idle is None:
            self.idle = list(range(1024, 1024 + 48))
        return self.idle

    def switch_p_libstate_save(self, dir_name):
        if self.idle is not None:
            disk().write(f"{dir_name}/contexts", ",".join(map(str, self.idle)).encode())

    def switch_p_libstate_restore(self, dir_name):
        if disk().exists(f"{dir_name}/contexts"):
            text = disk().read(f"{dir_name}/contexts").decode()
            self.idle = [int(each) for each in text.split(",") if each]
            heapq.heapify(self.idle)

    def switch_p_alloc_jobinfo(self):
        return Card()

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        heap = self._heap()
        found = []
        try:
            for _ in range(nprocs):
                found.append(heapq.heappop(heap))
        except IndexError:
            for each in found:
                heapq.heappush(heap, each)
            self.failures += 1
            raise SlurmError(errno.ESLURM_INTERCONNECT_FAILURE) from None
        switch_job.contexts = tuple(found)
        switch_job.owner = nodelist

    def switch_p_copy_jobinfo(self, switch_job):
        return Card(switch_job.contexts, switch_job.owner)

    def switch_p_free_jobinfo(self, switch_job):
        switch_job.owner = "free"

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        before = buffer.size
        buffer.packstr(switch_job.owner)
        buffer.pack32(len(switch_job.contexts))
        for each in switch_job.contexts:
            buffer.pack32(each)
        return buffer.size - before

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job.owner = buffer.unpackstr()
        switch_job.contexts = tuple(buffer.unpack32() for _ in range(buffer.unpack32()))

    def switch_p_job_step_complete(self, switch_job, nodelist):
        for each in switch_job.contexts:
            heapq.heappush(self._heap(), each)

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["CONTEXT"] = str(switch_job.contexts[rank])
'''

RINGS = '''
from simctl.plugin import *

class Rings(SwitchPlugin):
    """Rings are dealt round robin; those in use are noted by number, with the step that has one."""
    plugin_type = "switch/rings"
    plugin_name = "rings"
    RINGS = 16

    def init(self):
        self.next = 0
        self.owner = {ring: None for ring in range(self.RINGS)}
        self.seen = 0
        if process().role == "slurmd":
            self.mtu = 9000

    def switch_p_libstate_save(self, dir_name):
        lines = [f"next {self.next}"]
        lines += [f"{ring} {nodes}" for ring, nodes in self.owner.items() if nodes]
        disk().write(dir_name + "/rings", "\\n".join(lines).encode())

    def switch_p_libstate_restore(self, dir_name):
        if disk().exists(dir_name + "/rings"):
            for line in disk().read(dir_name + "/rings").decode().splitlines():
                word, rest = line.split(" ", 1)
                if word == "next":
                    self.next = int(rest)
                else:
                    self.owner[int(word)] = rest

    def switch_p_alloc_jobinfo(self):
        return {"ring": -1, "_text": None}

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        for turn in range(self.RINGS):
            ring = (self.next + turn) % self.RINGS
            if self.owner[ring] is None:
                self.owner[ring] = nodelist
                self.next = (ring + 1) % self.RINGS
                switch_job["ring"] = ring
                return SLURM_SUCCESS
        return SLURM_ERROR

    def switch_p_copy_jobinfo(self, switch_job):
        return {"ring": switch_job["ring"], "_text": None}

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        buffer.pack32(switch_job["ring"] + 1)
        return 4

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job["ring"] = buffer.unpack32() - 1

    def switch_p_sprint_jobinfo(self, switch_job, size):
        switch_job = dict(switch_job)
        return f"ring={switch_job['ring']}"[:size]

    def switch_p_job_step_complete(self, switch_job, nodelist):
        if switch_job["ring"] >= 0:
            self.owner[switch_job["ring"]] = None

    def switch_p_build_node_info(self, switch_node):
        self.seen += 1

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["RING"] = str(switch_job["ring"])
        env["RING_POSITION"] = str(rank)
'''

ENTRIES = '''
from simctl.plugin import *

class Entries(SwitchPlugin):
    """What is taken is a folder with a file for each part: nothing is kept in memory."""
    plugin_type = "switch/entries"
    plugin_name = "entries"

    def folder(self):
        return conf["StateSaveLocation"] + "/entries"

    def taken(self):
        if not disk().is_dir(self.folder()):
            disk().mkdir(self.folder())
        return {int(name) for name in disk().listdir(self.folder())}

    def switch_p_alloc_jobinfo(self):
        return {"parts": []}

    def switch_p_build_jobinfo(self, switch_job, nodelist, nprocs, cyclic_alloc):
        taken = self.taken()
        parts = [part for part in range(40) if part not in taken][:nprocs]
        if len(parts) < nprocs:
            raise SlurmError(errno.ESLURM_INTERCONNECT_FAILURE)
        for part in parts:
            disk().write(f"{self.folder()}/{part}", nodelist)
        switch_job["parts"] = parts

    def switch_p_copy_jobinfo(self, switch_job):
        return {"parts": list(switch_job["parts"])}

    def switch_p_pack_jobinfo(self, switch_job, buffer):
        buffer.pack16(len(switch_job["parts"]))
        for part in switch_job["parts"]:
            buffer.pack16(part)
        return buffer.size

    def switch_p_unpack_jobinfo(self, switch_job, buffer):
        switch_job["parts"] = [buffer.unpack16() for _ in range(buffer.unpack16())]

    def switch_p_job_step_complete(self, switch_job, nodelist):
        for part in switch_job["parts"]:
            disk().remove(f"{self.folder()}/{part}")

    def switch_p_job_attach(self, switch_job, env, nodeid, procid, nnodes, nprocs, rank):
        env["PART"] = str(switch_job["parts"][rank])
'''

DESIGNS = {
    name.lower(): text
    for name, text in globals().copy().items()
    if name.isupper() and isinstance(text, str)
}

MISTAKES = [
    (
        "entries",
        'in switch_job["parts"]:\n            disk().remove',
        'in switch_job["parts"][1:]:\n            disk().remove',
        "never-freed",
        "job_step_complete",
    ),
    (
        "entries",
        "if part not in taken][:nprocs]\n",
        "if part not in taken][:nprocs]\n        disk().write(f'{self.folder()}/{parts[0] if parts else 0}', '')\n",
        "leaks-on-failure",
        "build_jobinfo",
    ),
    (
        "entries",
        "= [buffer.unpack16() for",
        "= [buffer.unpack16() & 31 for",
        "pack-unpack",
        "unpack_jobinfo",
    ),
    ("bitmap", "self.taken &= ~self._mask(switch_job)", "pass", "never-freed", "job_step_complete"),
    (
        "bitmap",
        "self.taken &= ~self._mask(switch_job)",
        'self.taken &= ~(1 << switch_job["first"])',
        "never-freed",
        "job_step_complete",
    ),
    (
        "bitmap",
        "if not self.taken & mask:",
        "if not self.taken & (1 << first):",
        "given-twice",
        "build_jobinfo",
    ),
    (
        "bitmap",
        'disk().write(dir_name + "/bitmap", self.taken.to_bytes(8, "big"))',
        "pass",
        "lost-at-restart",
        "libstate_restore",
    ),
    (
        "bitmap",
        "    def switch_p_copy_jobinfo",
        "    def switch_p_free_jobinfo(self, switch_job):\n        self.taken &= ~self._mask(switch_job)\n\n    def switch_p_copy_jobinfo",
        "freed-early",
        "free_jobinfo",
    ),
    (
        "bitmap",
        '        switch_job["first"] = buffer.unpack16()\n        switch_job["count"] = buffer.unpack16()\n',
        '        switch_job["count"] = buffer.unpack16()\n        switch_job["first"] = buffer.unpack16()\n',
        "pack-unpack",
        "unpack_jobinfo",
    ),
    (
        "per_node",
        "            self.busy[node] -= set(ports)\n",
        "            self.busy[node] -= set(ports[:1])\n",
        "never-freed",
        "job_step_complete",
    ),
    (
        "per_node",
        'for node, ports in switch_job["ports"].items():\n            self.busy[node] -=',
        "for node in hostlist(nodelist):\n            ports = PORTS\n            self.busy[node] -=",
        "freed-early",
        "job_step_complete",
    ),
    (
        "per_node",
        "            found[node] = idle[:each]\n",
        "            found[node] = idle[:each]\n            self.busy.setdefault(node, set()).update(idle[:each])\n",
        "leaks-on-failure",
        "build_jobinfo",
    ),
    (
        "per_node",
        'ports = {node: list(some) for node, some in switch_job["ports"].items()}',
        'ports = switch_job["ports"]',
        "copy",
        "copy_jobinfo",
    ),
    (
        "per_node",
        "self.busy.setdefault(node, set()).add(int(port))",
        "self.busy[node] = {int(port)}",
        "lost-at-restart",
        "libstate_restore",
    ),
    (
        "per_node",
        '    def switch_p_alloc_jobinfo(self):\n        return {"tasks": 0, "ports": {}}',
        '    EMPTY = {"tasks": 0, "ports": {}}\n\n    def switch_p_alloc_jobinfo(self):\n        return dict(self.EMPTY)',
        "shared-state",
        "unpack_jobinfo",
    ),
    ("per_node", "[node][procid]", "[node][0]", "wrong-rank", "job_attach"),
    (
        "windows",
        'adapters = int(disk().read("/var/spool/windows_adapters"))',
        "adapters = self.adapters",
        "wrong-process",
        "job_init",
    ),
    (
        "windows",
        "        switch_job.size = buffer.unpack32()\n",
        "        buffer.unpack32()\n",
        "pack-unpack",
        "unpack_jobinfo",
    ),
    (
        "windows",
        "self.windows.pop(switch_job.window, None)",
        "self.windows.pop(switch_job.size, None)",
        "never-freed",
        "job_step_complete",
    ),
    (
        "windows",
        "number = next(n for n in range(1, len(self.windows) + 2) if n not in self.windows)",
        "number = len(self.windows) + 1",
        "given-twice",
        "build_jobinfo",
    ),
    (
        "windows",
        "return dataclasses.replace(switch_job)",
        "return Credential(switch_job.window, switch_job.nodes)",
        "copy",
        "copy_jobinfo",
    ),
    (
        "in_files",
        "            disk().remove(path)",
        "            pass",
        "left-on-disk",
        "job_postfini",
    ),
    (
        "in_files",
        '            state["used"].pop(str(lane), None)\n        self._store(state)',
        '            state["used"].pop(str(lane), None)',
        "never-freed",
        "job_step_complete",
    ),
    (
        "in_files",
        '            state["used"].pop(str(lane), None)',
        '            state["used"].pop(lane, None)',
        "never-freed",
        "job_step_complete",
    ),
    (
        "in_files",
        'state["served"] += 1',
        'DEFAULTS["served"] = DEFAULTS.get("served", 0) + 1',
        "shared-state",
        "build_jobinfo",
    ),
    (
        "in_files",
        'return {"used": {}, "served": 0}',
        'return {"used": {}}',
        "call-breaks",
        "build_jobinfo",
    ),
    (
        "counter",
        'disk().write(dir_name + "/keys", buffer.data())',
        "pass",
        "lost-at-restart",
        "libstate_restore",
    ),
    ("counter", 'self.live.discard(switch_job["key"])', "pass", "never-freed", "job_step_complete"),
    (
        "counter",
        "        self.last += 1\n",
        "        import uuid\n        self.last = uuid.uuid4().int % 2**60\n",
        "chance",
        "build_jobinfo",
    ),
    (
        "counter",
        "        self.last += 1\n",
        "        import time\n        self.last = time.monotonic_ns()\n",
        "chance",
        "build_jobinfo",
    ),
    (
        "counter",
        "        self.last += 1\n",
        "        self.last = id(switch_job)\n",
        "chance",
        "build_jobinfo",
    ),
    (
        "counter",
        "        self.last += 1\n",
        '        self.last = abs(hash(f"{nodelist} {self.last}"))\n',
        "chance",
        "build_jobinfo",
    ),
    (
        "counter",
        'env["FABRIC_COOKIE"] = switch_job["cookie"]',
        'env.clear(); env["FABRIC_COOKIE"] = switch_job["cookie"]',
        "changes-input",
        "job_attach",
    ),
    ("async", "await sleep(0.002)", "await sleep(3)", "blocks-slurmctld", "build_jobinfo"),
    ("async", "        self.vnis[switch_job.vni] = None\n", "", "never-freed", "job_step_complete"),
    (
        "async",
        "            self.slots[node] -= slots\n",
        "            self.slots[node] -= 1\n",
        "never-freed",
        "job_step_complete",
    ),
    (
        "async",
        '                self.vnis[int(number)] = "before"\n',
        "                pass\n",
        "lost-at-restart",
        "libstate_restore",
    ),
    (
        "async",
        "copied.slots = dict(switch_job.slots)",
        "copied.slots = switch_job.slots",
        "copy",
        "copy_jobinfo",
    ),
    (
        "heap",
        "            for each in found:\n                heapq.heappush(heap, each)\n",
        "",
        "leaks-on-failure",
        "build_jobinfo",
    ),
    (
        "heap",
        "            heapq.heappush(self._heap(), each)\n\n    def switch_p_job_attach",
        "            heapq.heappush(self._heap(), each)\n            heapq.heappush(self._heap(), each)\n\n    def switch_p_job_attach",
        "freed-twice",
        "job_step_complete",
    ),
    (
        "heap",
        '        switch_job.owner = "free"',
        "        for each in switch_job.contexts:\n            heapq.heappush(self._heap(), each)",
        "freed-early",
        "free_jobinfo",
    ),
    (
        "heap",
        "    idle = None\n",
        "    idle = list(range(1024, 1072))\n",
        "shared-state",
        "build_jobinfo",
    ),
    (
        "heap",
        "return Card(switch_job.contexts, switch_job.owner)",
        "return switch_job",
        "copy",
        "copy_jobinfo",
    ),
    (
        "rings",
        '            self.owner[switch_job["ring"]] = None\n',
        '            self.owner.pop(switch_job["ring"])\n',
        "never-freed",
        "job_step_complete",
    ),
    (
        "rings",
        "            if self.owner[ring] is None:\n",
        "            if ring not in self.owner or ring >= 0:\n",
        "given-twice",
        "build_jobinfo",
    ),
    (
        "rings",
        '        env["RING_POSITION"] = str(rank)\n',
        '        env["RING_POSITION"] = str(rank)\n        env["RING_MTU"] = str(self.mtu)\n',
        "call-breaks",
        "job_attach",
    ),
    (
        "rings",
        "        switch_job = dict(switch_job)\n",
        '        switch_job["_text"] = "ring"\n',
        "changes-input",
        "sprint_jobinfo",
    ),
    (
        "rings",
        'buffer.pack32(switch_job["ring"] + 1)\n        return 4',
        'buffer.pack32(switch_job["ring"] + 1)\n        return 8',
        "wrong-answer",
        "pack_jobinfo",
    ),
    (
        "rings",
        "    def switch_p_job_attach",
        '    def switch_p_job_init(self, switch_job, uid):\n        process().env["RING"] = "1"\n\n    def switch_p_job_attach',
        "early-environment",
        "process().env",
    ),
]


@pytest.fixture(autouse=True)
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what none of these slips needs: runs of failures, and most of the plain ones."""
    monkeypatch.setattr(drive, "STEPS", STEPS[:1])
    monkeypatch.setattr(drive, "RESTARTS", RESTARTS[:1])
    monkeypatch.setattr(drive, "failures", lambda functions: [])


def found_in(tmp_path: Path, name: str, text: str) -> list[tuple[str, str]]:
    """Return rule and function of each mistake that is found in a plugin's text."""
    (tmp_path / f"{name}.py").write_text(text)
    (found,) = find(f"{name}.py", tmp_path)
    checked = check_plugin(found.kind, found.origin, models=("guide",))
    assert "switch_p_build_jobinfo" in checked.driven
    return [(each.rule, each.function.removeprefix("switch_p_")) for each in checked.mistakes]


@pytest.mark.parametrize("name", DESIGNS)
def test_a_correct_plugin_of_any_design_is_fine(tmp_path: Path, name: str) -> None:
    """Bits, dicts by node, tables, files, counters, heaps, calls that take time: no false alarm."""
    assert found_in(tmp_path, name, DESIGNS[name]) == []


@pytest.mark.parametrize(("name", "old", "new", "rule", "function"), MISTAKES)
def test_a_slip_in_any_design_is_one_entry(
    tmp_path: Path, name: str, old: str, new: str, rule: str, function: str
) -> None:
    """What is found names the rule that was broken, once, and nothing besides."""
    text = DESIGNS[name]
    assert text.count(old) == 1
    assert found_in(tmp_path, name, text.replace(old, new)) == [(rule, function)]
