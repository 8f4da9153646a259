"""What a submission asks for."""

from collections.abc import Mapping
from typing import Any, Final, Self

import attrs
from msgspec import UNSET

from simctl.wire.ids import NO_VAL
from simctl.wire.layout import Distribution

__all__ = ["UNSET", "DraftJob", "JobDesc", "SubmittedJob"]


@attrs.frozen(kw_only=True)
class JobDesc:
    """A job as sbatch or srun describes it; NO_VAL stands for what was not asked.

    `time_limit_min` is in minutes; `cpus_per_task` counts the cpus that each task needs; memory is
    in megabytes, and 0 stands for all a node has; `partition` may name several. A
    `priority` of 0 holds the job; `begin_s` is in seconds since the epoch, 0 for at once, and so is
    `deadline_s`, 0 for none; a job of `no_kill` goes on without a node that fails. One that may
    `overcommit` cpus gets those of one task on each node. `warn_signal` is sent `warn_time_s`
    seconds before the time limit, 0 for none: to the steps, or with `warn_batch` to the batch
    script alone. A job with a `ckpt_interval_min` is checkpointed that often, into `ckpt_dir`;
    steps go on from the images in `restart_dir`.
    """

    name: str
    uid: int
    gid: int
    user: str
    account: str = ""
    partition: str = ""
    min_nodes: int = NO_VAL
    max_nodes: int = NO_VAL
    num_tasks: int = NO_VAL
    cpus_per_task: int = NO_VAL
    ntasks_per_node: int = NO_VAL
    time_limit_min: int = NO_VAL
    time_min_min: int = 0  # down to which backfill may lower the limit; 0 for not at all
    nodes: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    distribution: Distribution = Distribution.UNKNOWN
    plane_size: int = 0
    job_id: int = NO_VAL
    requeue: int = NO_VAL
    priority: int = NO_VAL
    nice: int = 0
    begin_s: int = 0
    dependency: str = ""
    min_cpus_per_node: int = NO_VAL
    memory_per_node_mb: int = NO_VAL
    memory_per_cpu_mb: int = NO_VAL
    gres: Mapping[str, int] = attrs.field(factory=dict)
    tres_per_job: str = ""  # gpus of the whole job, counted in gres as well: "gpu:2"
    tres_per_task: str = ""
    tres_per_node: str = ""  # gres as it was typed: "gpu", "gpu:0"
    features: str = ""
    licenses: str = ""
    comment: str = ""
    wckey: str = ""
    qos: str = "normal"
    burst_buffer: str = ""
    container: str = ""
    tmp_disk_mb: int = 0
    exclusive: bool = False
    oversubscribe: bool = False
    overcommit: bool = False
    reservation: str = ""
    array: str = ""
    warn_signal: int = 0
    warn_time_s: int = 0
    warn_batch: bool = False
    deadline_s: int = 0
    kill_on_invalid_dep: int = NO_VAL
    immediate: bool = False
    no_kill: bool = False
    ckpt_interval_min: int = 0
    ckpt_dir: str = ""
    restart_dir: str = ""
    work_dir: str = "/"
    submit_dir: str = "/"
    submit_host: str = "login"
    appends: bool = False
    std_in: str = ""
    std_out: str = ""
    std_err: str = ""
    script: str = ""
    script_name: str = ""
    argv: tuple[str, ...] = ()
    submit_line: str = ""
    filled: tuple[str, ...] = ()
    """Fields that the command has filled in: the user did not ask for them."""

    environment: dict[str, str] = attrs.field(factory=dict)


class SubmittedJob(JobDesc):
    """A submission while burst buffer plugins check it: what they read they may enter."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        """Set `burst_buffer`; the rest is what was asked for."""
        if name != "burst_buffer":
            raise AttributeError(f"{name} is what was asked for; a plugin may set burst_buffer")
        if not isinstance(value, str):
            raise TypeError(f"burst_buffer of a job is a text, not {type(value).__name__}")
        value.encode()
        object.__setattr__(self, name, value)

    def __str__(self) -> str:
        """Name the submission as traces do."""
        return f"submission of {self.name}"


_GIVEN: Final = frozenset(
    {
        *("uid", "gid", "user", "job_id", "submit_dir", "submit_host", "submit_line", "argv"),
        *(
            "script_name",
            "distribution",
            "filled",
            "tres_per_job",
            "tres_per_task",
            "tres_per_node",
        ),
    }
)
"""What a job_submit plugin may not set."""

_MOST: Final = (1 << 32) - 1


class DraftJob(JobDesc):
    """A submission, or a change of a job, while job_submit plugins look at it.

    Its fields may be set, and what is set counts, but who submits, and from where. `environment` is
    a copy, to be changed in place.
    """

    __slots__ = ("_before", "told")

    told: list[str]
    """Lines for the user."""

    @classmethod
    def of(cls, desc: JobDesc) -> Self:
        """Return a draft of a submission."""
        fields = {field.name: getattr(desc, field.name) for field in attrs.fields(JobDesc)}
        fields["environment"] = dict(desc.environment)
        draft = cls(**fields)
        object.__setattr__(draft, "_before", desc)
        object.__setattr__(draft, "told", [])
        return draft

    def tell(self, text: str) -> None:
        """Tell the user something, a line for each of the text."""
        self.told.extend(str(text).splitlines() or [""])

    def __setattr__(self, name: str, value: object) -> None:
        """Set what is asked for.

        Raises:
            AttributeError: There is no such field, or it says who submits.
            TypeError, ValueError: The value is not of the field's kind.
        """
        field = attrs.fields_dict(JobDesc).get(name)
        if field is None or name in _GIVEN:
            what = "is not the plugin's to set" if field is not None else "is no field of a job"
            raise AttributeError(f"{name} {what}")
        object.__setattr__(self, name, _fitting(name, getattr(self, name), value))

    def changed(self) -> dict[str, list[Any]]:
        """Return what was set, by field: what it was, and what it is."""
        before: JobDesc = self._before  # type: ignore[attr-defined] # set by `of`
        found = {}
        for field in attrs.fields(JobDesc):
            was, now = getattr(before, field.name), getattr(self, field.name)
            if was == now:
                continue
            if field.name == "environment":
                keys = sorted(key for key in {*was, *now} if was.get(key) != now.get(key))
                was, now = {key: was.get(key) for key in keys}, {key: now.get(key) for key in keys}
            found[field.name] = [_plain(was), _plain(now)]
        return found

    def settled(self) -> JobDesc:
        """Return the submission as it is by now."""
        return JobDesc(**{field.name: getattr(self, field.name) for field in attrs.fields(JobDesc)})

    def __str__(self) -> str:
        """Name the submission as traces do."""
        return f"submission of {self.name}"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _fitting(name: str, before: Any, value: Any) -> Any:
    """Return a value for a field, if it is of the kind that the field holds."""
    if isinstance(before, bool):
        return bool(value)
    if isinstance(before, int):
        if not isinstance(value, int):
            raise TypeError(f"{name} of a job is a whole number, not {type(value).__name__}")
        if not -_MOST <= value <= _MOST:
            raise ValueError(f"{name} of a job is a number of 32 bits, not {value}")
        return int(value)
    if isinstance(before, str):
        if not isinstance(value, str):
            raise TypeError(f"{name} of a job is a text, not {type(value).__name__}")
        value.encode()
        return value
    if isinstance(before, tuple):
        return tuple(map(str, value if isinstance(value, list | tuple) else _no_list(name, value)))
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} of a job is a mapping, not {type(value).__name__}")
    return dict(value)


def _no_list(name: str, value: object) -> list[str]:
    raise TypeError(f"{name} of a job is a list of texts, not {type(value).__name__}")
