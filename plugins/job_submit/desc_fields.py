"""The fields of `job_desc` in job_submit.lua: Slurm's names and numbers for what a draft holds."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from simctl.plugin import INFINITE, NO_VAL, DraftJob, compress, hostlist

_NO_VAL8: Final = 0xFE
_NO_VAL16: Final = 0xFFFE
_NO_VAL64: Final = 0xFFFFFFFFFFFFFFFE
_MEM_PER_CPU: Final = 1 << 63
_NICE_OFFSET: Final = 1 << 31
_KILL_INV_DEP, _NO_KILL_INV_DEP = 1, 2

_TEXTS: Final = {
    "account": "account",
    "array_inx": "array",
    "burst_buffer": "burst_buffer",
    "comment": "comment",
    "container": "container",
    "dependency": "dependency",
    "features": "features",
    "licenses": "licenses",
    "name": "name",
    "partition": "partition",
    "qos": "qos",
    "reservation": "reservation",
    "script": "script",
    "std_err": "std_err",
    "std_out": "std_out",
    "wckey": "wckey",
    "work_dir": "work_dir",
}
_READ_ONLY_TEXTS: Final = {"user_name": "user", "alloc_node": "submit_host"}
_NUMBERS: Final = {
    "min_nodes": "min_nodes",
    "max_nodes": "max_nodes",
    "num_tasks": "num_tasks",
    "time_limit": "time_limit_min",
    "priority": "priority",
}
_SHORT: Final = {
    "cpus_per_task": "cpus_per_task",
    "ntasks_per_node": "ntasks_per_node",
    "pn_min_cpus": "min_cpus_per_node",
    "requeue": "requeue",
}
"""Numbers of 16 bits: what is not set is NO_VAL16 to a script."""

_ELSEWHERE: Final[Mapping[str, Any]] = {
    **dict.fromkeys(
        (
            *("acctg_freq", "admin_comment", "assoc_comment", "batch_features", "clusters"),
            *("cpus_per_tres", "extra", "mail_user", "mcs_label", "mem_per_tres", "network"),
            *("prefer", "req_context", "selinux_context", "std_in", "tres_bind", "tres_freq"),
            *("tres_per_job", "tres_per_socket", "tres_per_task"),
        )
    ),
    **dict.fromkeys(
        (
            *("boards_per_node", "cores_per_socket", "ntasks_per_board", "ntasks_per_core"),
            *("ntasks_per_socket", "ntasks_per_gpu", "ntasks_per_tres", "reboot"),
            *("sockets_per_board", "sockets_per_node", "threads_per_core", "power_flags"),
        ),
        float(_NO_VAL16),
    ),
    **dict.fromkeys(
        (
            *("cpu_freq_gov", "cpu_freq_max", "cpu_freq_min", "delay_boot", "het_job_offset"),
            *("max_cpus", "pack_job_offset", "req_switch", "site_factor", "wait4switch"),
        ),
        float(NO_VAL),
    ),
    "contiguous": 0.0,
    "cron_job": False,
    "mail_type": 0.0,
    "spank_job_env_size": 0.0,
}
"""What simctl does not simulate: a script reads Slurm's default, and what it writes is kept."""

_YOUNGER: Final = frozenset({"assoc_qos", "core_spec", "segment_size", "thread_spec"})
"""What only Slurm after 24.05 has: nil unless a script sets it."""

_READ_ONLY: Final = frozenset(
    {
        *("alloc_node", "argc", "argv", "boards_per_node", "cron_job", "default_account"),
        *("default_qos", "environment", "group_id", "network", "ntasks_per_board"),
        *("ntasks_per_core", "het_job_offset", "pack_job_offset", "req_context", "assoc_comment"),
        "assoc_qos",
        *("sockets_per_board", "spank_job_env", "spank_job_env_size", "user_id", "user_name"),
    }
)


_OF_SUBMISSIONS: Final[Mapping[str, Any]] = {"min_cpus": float(NO_VAL), "work_dir": None}
"""What a submission always has, as a change reads it: nobody asked."""


@attrs.define(eq=False)
class DescFields:
    """Reads and writes a draft by Slurm's names; numbers are floats, as Slurm hands them over.

    `job_desc` of a change (*modifies*) has what is changed alone.
    """

    draft: DraftJob
    slurm: str
    account: str = ""
    """The user's usual account."""

    modifies: bool = False

    others: dict[str, Any] = attrs.field(factory=dict)
    """What was written that simctl does not simulate."""

    def get(self, name: Any) -> Any:
        """Return a field's value; nothing for one that there is not."""
        if name in self.others:
            return self.others[name]
        draft = self.draft
        if self.modifies and name in _OF_SUBMISSIONS:
            return _OF_SUBMISSIONS[name]
        if name in _TEXTS or name in _READ_ONLY_TEXTS:
            field = _TEXTS.get(name) or _READ_ONLY_TEXTS[name]
            return None if field in draft.filled else getattr(draft, field) or None
        if name in _NUMBERS:
            return float(getattr(draft, _NUMBERS[name]))
        if name in _SHORT:
            return _short(getattr(draft, _SHORT[name]))
        reader = _READERS.get(name)
        return reader(self) if reader is not None else _ELSEWHERE.get(name)

    def knows(self, name: Any) -> bool:
        """Return whether there is such a field."""
        return name in KNOWN

    def put(self, name: Any, value: Any) -> str | None:
        """Set a field; return what Lua's error is to say, if it cannot be.

        One that is not there, or not to be written, is logged by the caller.
        """
        if name in _TEXTS:
            return self._put_text(_TEXTS[name], value)
        number = _number(value)
        if name in _NUMBERS or name in _SHORT or name in _WRITERS:
            if name in _TEXT_WRITERS:
                text = _text(value)
                return _no("string", value) if text is None else _WRITERS[name](self, text)
            if number is None:
                return _no("number", value)
            if name in _WRITERS:
                return _WRITERS[name](self, number)
            field = _NUMBERS.get(name) or _SHORT[name]
            return self._set(field, NO_VAL if number in (_NO_VAL16, NO_VAL) else int(number))
        if name in _YOUNGER:
            self.others[name] = value
            return None
        default = _ELSEWHERE[name]
        if default is None:
            text = _text(value)
            if text is None:
                return _no("string", value)
            self.others[name] = text or None
        elif number is None:
            return _no("number", value)
        else:
            self.others[name] = float(number)
        return None

    def writes(self, name: Any) -> bool:
        """Return whether a script may write a field."""
        return name in KNOWN and name not in _READ_ONLY

    def _put_text(self, field: str, value: Any) -> str | None:
        text = _text(value)
        if text is None:
            return _no("string", value)
        if field in self.draft.filled:
            left = tuple(name for name in self.draft.filled if name != field)
            object.__setattr__(self.draft, "filled", left)
        return self._set(field, text)

    def _set(self, field: str, value: Any) -> str | None:
        try:
            setattr(self.draft, field, value)
        except (TypeError, ValueError, AttributeError) as error:
            return str(error)
        return None

    def environment(self, name: Any) -> Any:
        """Return a variable of the job's environment."""
        return self.draft.environment.get(name)

    def set_environment(self, name: Any, value: Any) -> str | None:
        """Set a variable of the job's environment; there is no way to take one away."""
        text = _text(value)
        if text is None:
            return _no("string", value)
        self.draft.environment[str(name)] = text
        return None


def _short(number: int) -> float:
    return float(_NO_VAL16 if number == NO_VAL else number)


def _number(value: Any) -> float | None:
    """Return what counts as a number: a text does that says one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.14g}"
    return None


def _no(wanted: str, value: Any) -> str:
    kind = {"NoneType": "nil", "bool": "boolean", "str": "string", "LuaOther": "table"}
    got = kind.get(type(value).__name__, "number")
    return f"bad argument #3 to '?' ({wanted} expected, got {got})"


# What is not one field of a draft.


def _pn_min_memory(fields: DescFields) -> float:
    draft = fields.draft
    if draft.memory_per_cpu_mb != NO_VAL:
        return float(draft.memory_per_cpu_mb | _MEM_PER_CPU)
    return float(_NO_VAL64 if draft.memory_per_node_mb == NO_VAL else draft.memory_per_node_mb)


def _min_cpus(fields: DescFields) -> float:
    draft = fields.draft
    if draft.num_tasks == NO_VAL and draft.cpus_per_task == NO_VAL:
        return 1.0
    tasks = 1 if draft.num_tasks == NO_VAL else draft.num_tasks
    return float(tasks * (1 if draft.cpus_per_task == NO_VAL else draft.cpus_per_task))


def _shared(fields: DescFields) -> float:
    if fields.draft.exclusive:
        return 0.0
    return 1.0 if fields.draft.oversubscribe else float(_NO_VAL16)


def _sign(fields: DescFields) -> str:
    return "gres/" if fields.slurm >= "24.05" else "gres:"


def _gres(fields: DescFields) -> str | None:
    """Return what was asked for of each node: as it was typed, unless a plugin has changed it."""
    elsewhere, typed = _asked_elsewhere(fields), fields.draft.tres_per_node
    own = {name: n for name, n in fields.draft.gres.items() if name not in elsewhere}
    words = typed.split(",") if typed and _counts(typed) == own else [f"{k}:{own[k]}" for k in own]
    return ",".join(_sign(fields) + each for each in words) or None


def _counts(text: str) -> dict[str, int]:
    """Return generic resources by name; one without a count is one."""
    found = {}
    for word in filter(None, map(str.strip, text.replace("=", ":").split(","))):
        bare = word.removeprefix("gres:").removeprefix("gres/")
        name, colon, last = bare.rpartition(":")
        counted = colon and last.isdecimal()
        found[name if counted else bare] = int(last) if counted else 1
    return {name: count for name, count in found.items() if count}


def _asked_elsewhere(fields: DescFields) -> frozenset[str]:
    """Return the generic resources that are asked for in all, or for each task."""
    draft = fields.draft
    asked = (draft.tres_per_job, draft.tres_per_task)
    return frozenset(each.rpartition(":")[0] for each in asked if each)


def _of_gpus(field: str) -> Callable[[DescFields], str | None]:
    def read(fields: DescFields) -> str | None:
        asked = getattr(fields.draft, field)
        return _sign(fields) + asked if asked else None

    return read


def _bitflags(fields: DescFields) -> float:
    wish = fields.draft.kill_on_invalid_dep
    return float(0 if wish == NO_VAL else _KILL_INV_DEP if wish else _NO_KILL_INV_DEP)


def _argv(fields: DescFields) -> dict[int, str] | None:
    return dict(enumerate(fields.draft.argv)) or None


def _memory(unset: str, field: str) -> Callable[[DescFields], float | None]:
    def read(fields: DescFields) -> float | None:
        if getattr(fields.draft, unset) != NO_VAL:
            return None
        value = getattr(fields.draft, field)
        return None if value == NO_VAL else float(value)

    return read


_READERS: Final[Mapping[str, Callable[[DescFields], Any]]] = {
    "argc": lambda fields: float(len(fields.draft.argv)),
    "argv": _argv,
    "begin_time": lambda fields: float(fields.draft.begin_s),
    "bitflags": _bitflags,
    "default_account": lambda fields: fields.account or None,
    "default_qos": lambda _: None,
    "end_time": lambda fields: float(fields.draft.deadline_s),
    "exc_nodes": lambda fields: compress(fields.draft.excluded) or None,
    "gres": _gres,
    "group_id": lambda fields: float(fields.draft.gid),
    "immediate": lambda fields: float(fields.draft.immediate),
    "min_cpus": _min_cpus,
    "min_mem_per_cpu": _memory("memory_per_node_mb", "memory_per_cpu_mb"),
    "min_mem_per_node": _memory("memory_per_cpu_mb", "memory_per_node_mb"),
    "nice": lambda fields: float(fields.draft.nice + _NICE_OFFSET if fields.draft.nice else NO_VAL),
    "oversubscribe": _shared,
    "pn_min_memory": _pn_min_memory,
    "pn_min_tmp_disk": lambda fields: float(fields.draft.tmp_disk_mb or NO_VAL),
    "req_nodes": lambda fields: compress(fields.draft.nodes) or None,
    "shared": _shared,
    "spank_job_env": lambda _: None,
    "time_min": lambda fields: float(fields.draft.time_min_min or NO_VAL),
    "tres_per_job": _of_gpus("tres_per_job"),
    "tres_per_node": _gres,
    "tres_per_task": _of_gpus("tres_per_task"),
    "user_id": lambda fields: float(fields.draft.uid),
}


def _put_shared(fields: DescFields, value: float) -> str | None:
    if value not in (0, 1, _NO_VAL16):
        fields.others["shared"] = fields.others["oversubscribe"] = float(value)
    fields.draft.exclusive = not value  # type: ignore[misc] # a draft may be written
    fields.draft.oversubscribe = value == 1  # type: ignore[misc]
    return None


def _put_immediate(fields: DescFields, value: float) -> str | None:
    return fields._set("immediate", bool(value))


def _put_memory(fields: DescFields, value: float) -> str | None:
    if value >= _MEM_PER_CPU and value < _NO_VAL64:
        return fields._set("memory_per_cpu_mb", int(value) - _MEM_PER_CPU) or fields._set(
            "memory_per_node_mb", NO_VAL
        )
    unset = value >= NO_VAL
    return fields._set("memory_per_node_mb", NO_VAL if unset else int(value)) or fields._set(
        "memory_per_cpu_mb", NO_VAL
    )


def _put_per_cpu(fields: DescFields, value: float) -> str | None:
    return fields._set("memory_per_cpu_mb", int(value)) or fields._set("memory_per_node_mb", NO_VAL)


def _put_min_cpus(fields: DescFields, value: float) -> None:
    """Keep cpus beyond those of the tasks, which say here how many there are."""
    if value > _min_cpus(fields):
        fields.others["min_cpus"] = value


def _put_nice(fields: DescFields, value: float) -> str | None:
    return fields._set("nice", 0 if value == NO_VAL else int(value) - _NICE_OFFSET)


def _put_gres(fields: DescFields, value: str) -> str | None:
    elsewhere, had = _asked_elsewhere(fields), fields.draft.gres
    found = {name: count for name, count in had.items() if name in elsewhere}
    return fields._set("gres", found | _counts(value))


def _put_nodes(field: str) -> Callable[[DescFields, str], str | None]:
    def put(fields: DescFields, value: str) -> str | None:
        try:
            return fields._set(field, tuple(hostlist(value)) if value else ())
        except ValueError as error:
            return str(error)

    return put


def _put_flags(fields: DescFields, value: float) -> str | None:
    bits = int(value)
    wish = 1 if bits & _KILL_INV_DEP else 0 if bits & _NO_KILL_INV_DEP else NO_VAL
    return fields._set("kill_on_invalid_dep", wish)


def _put_number(field: str) -> Callable[[DescFields, float], str | None]:
    def put(fields: DescFields, value: float) -> str | None:
        return fields._set(field, 0 if value in (NO_VAL, INFINITE) else int(value))

    return put


_TEXT_WRITERS: Final = ("gres", "tres_per_node", "req_nodes", "exc_nodes")
_WRITERS: Final[Mapping[str, Callable[[DescFields, Any], str | None]]] = {
    "begin_time": _put_number("begin_s"),
    "bitflags": _put_flags,
    "end_time": _put_number("deadline_s"),
    "exc_nodes": _put_nodes("excluded"),
    "gres": _put_gres,
    "immediate": _put_immediate,
    "min_cpus": _put_min_cpus,
    "min_mem_per_cpu": _put_per_cpu,
    "min_mem_per_node": _put_memory,
    "nice": _put_nice,
    "oversubscribe": _put_shared,
    "pn_min_memory": _put_memory,
    "pn_min_tmp_disk": _put_number("tmp_disk_mb"),
    "req_nodes": _put_nodes("nodes"),
    "shared": _put_shared,
    "time_min": _put_number("time_min_min"),
    "tres_per_node": _put_gres,
}

FIELDS: Final[Mapping[str, str]] = {
    **_TEXTS,
    **_NUMBERS,
    **_SHORT,
    "begin_time": "begin_s",
    "bitflags": "kill_on_invalid_dep",
    "end_time": "deadline_s",
    "exc_nodes": "excluded",
    "gres": "gres",
    "min_mem_per_cpu": "memory_per_cpu_mb",
    "min_mem_per_node": "memory_per_node_mb",
    "nice": "nice",
    "pn_min_memory": "memory_per_node_mb",
    "pn_min_tmp_disk": "tmp_disk_mb",
    "req_nodes": "nodes",
    "time_min": "time_min_min",
    "tres_per_node": "gres",
}
"""Slurm's names of what a script may set, each with the field of a draft that holds it."""

KNOWN: Final = frozenset(
    {
        *(*_TEXTS, *_READ_ONLY_TEXTS, *_NUMBERS, *_SHORT, *_ELSEWHERE, *_READERS, *_YOUNGER),
        "environment",
    }
)
"""Every field that there is."""
