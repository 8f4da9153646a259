"""The same plugin as switch_keys.c, in Python: their traces of calls are to be the same."""

from typing import Any

import attrs

from simctl.plugin import (
    SLURM_ERROR,
    Buf,
    SwitchPlugin,
    disk,
    errno,
    log,
    now,
    process,
)

BAD_CREDENTIAL = 3001
MAGIC = 0xC0FFEE
EPOCH = 1767225600


@attrs.define
class Credential:
    """A step's credential."""

    key: int = 0
    tasks: int = 0
    nodes: str | None = None


@attrs.define
class Node:
    """The switch state of a node."""

    host: str = ""
    seen: int = 0


class Keys(SwitchPlugin):
    """Hands out keys."""

    plugin_type = "switch/keys"
    plugin_name = "hands out keys"
    plugin_version = 1

    def __init__(self) -> None:
        self.keys = 0
        self.context = -1
        self.last_error = 0

    def _fail(self, number: int) -> int:
        """Note an error, which switch_p_get_errno tells."""
        self.last_error = number
        return SLURM_ERROR

    def init(self) -> None:
        """Do nothing."""

    def fini(self) -> None:
        """Forget."""
        self.context = -1

    def switch_p_libstate_save(self, dir_name: str) -> None:
        """Save the number of keys."""
        disk().write(f"{dir_name}/keys", f"{self.keys}\n")

    def switch_p_libstate_restore(self, dir_name: str) -> None:
        """Restore it."""
        if disk().exists(f"{dir_name}/keys"):
            self.keys = int(disk().read_text(f"{dir_name}/keys"))

    def switch_p_alloc_node_info(self) -> Node:
        """Return a new record."""
        return Node()

    def switch_p_build_node_info(self, switch_node: Node) -> None:
        """Fill it in."""
        switch_node.host = process().hostname
        switch_node.seen = EPOCH + int(now())

    def switch_p_pack_node_info(self, switch_node: Node, buffer: Buf) -> int:
        """Pack it."""
        start = buffer.size
        buffer.packstr(switch_node.host)
        buffer.pack32(switch_node.seen)
        return buffer.size - start

    def switch_p_unpack_node_info(self, switch_node: Node, buffer: Buf) -> None:
        """Unpack it."""
        switch_node.host = buffer.unpackstr() or ""
        switch_node.seen = buffer.unpack32()

    def switch_p_sprintf_node_info(self, switch_node: Node, size: int) -> str:
        """Print it."""
        return f"{switch_node.host} seen at {switch_node.seen}"

    def switch_p_alloc_jobinfo(self) -> Credential:
        """Return a new credential."""
        return Credential()

    def switch_p_build_jobinfo(
        self, switch_job: Credential, nodelist: str, nprocs: int, cyclic_alloc: int
    ) -> None:
        """Give it a key."""
        self.keys += 1
        switch_job.key, switch_job.tasks, switch_job.nodes = self.keys, nprocs, nodelist

    def switch_p_copy_jobinfo(self, switch_job: Credential) -> Credential:
        """Return a copy."""
        return attrs.evolve(switch_job)

    def switch_p_pack_jobinfo(self, switch_job: Credential, buffer: Buf) -> int:
        """Pack it."""
        start = buffer.size
        buffer.pack32(MAGIC)
        buffer.pack32(switch_job.key)
        buffer.pack32(switch_job.tasks)
        buffer.packstr(switch_job.nodes)
        return buffer.size - start

    def switch_p_unpack_jobinfo(self, switch_job: Credential, buffer: Buf) -> int | None:
        """Unpack it."""
        if switch_job is None:
            return SLURM_ERROR
        if buffer.unpack32() != MAGIC:
            return self._fail(BAD_CREDENTIAL)
        switch_job.key, switch_job.tasks = buffer.unpack32(), buffer.unpack32()
        switch_job.nodes = buffer.unpackstr()
        return None

    def switch_p_get_jobinfo(self, switch_job: Credential, data_type: int) -> int:
        """Return the key; there is nothing else to get."""
        if data_type:
            return self._fail(errno.EINVAL)
        return switch_job.key

    def switch_p_print_jobinfo(self, fp: Any, switch_job: Credential) -> None:
        """Print it."""
        fp.write(f"key {switch_job.key} for {switch_job.tasks} tasks on {switch_job.nodes}\n")

    def switch_p_sprint_jobinfo(self, switch_job: Credential, size: int) -> str:
        """Print it."""
        return f"key={switch_job.key}"

    def switch_p_job_init(self, switch_job: Credential, uid: int) -> None:
        """Open a context."""
        self.context = 7000 + switch_job.key

    def switch_p_job_attach(
        self,
        switch_job: Credential,
        env: dict[str, str],
        nodeid: int,
        procid: int,
        nnodes: int,
        nprocs: int,
        rank: int,
    ) -> None:
        """Tell the task."""
        env["KEYS_KEY"] = str(switch_job.key)
        env["KEYS_CONTEXT"] = f"{self.context}.{rank}.{process().uid}"

    def switch_p_job_fini(self, switch_job: Credential) -> None:
        """Close the context."""
        self.context = -1

    def switch_p_job_postfini(
        self, switch_job: Credential, pgid: int, job_id: int, step_id: int
    ) -> None:
        """Log."""
        log.info(f"step {job_id}.{step_id} is over, context {self.context}")

    def switch_p_get_errno(self) -> int:
        """Return the plugin's own last error."""
        return self.last_error

    def switch_p_strerror(self, errnum: int) -> str | None:
        """Describe an error."""
        return "no credential of switch/keys" if errnum == BAD_CREDENTIAL else None
