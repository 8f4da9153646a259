"""What a cluster is like: nodes, partitions, users, slurm.conf."""

from typing import Final

import attrs

from simctl.testing.swarm.chance import Chance
from simctl.testing.swarm.own import Own

USERS: Final = (
    "alice: 1001",
    "bob: 1002",
    "carol: {uid: 1003, admin: operator}",
)

NAMES: Final = ("alice", "bob", "carol", "root")

SCRIPT: Final = "/etc/s"
"""The script of the site that stands for every prolog and epilog."""

_NODE_SCRIPTS: Final = ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld")
_STEP_SCRIPTS: Final = ("TaskProlog", "TaskEpilog", "SrunProlog", "SrunEpilog")


@attrs.frozen(kw_only=True)
class Cluster:
    """A cluster, as far as the draw of its work has to know it."""

    features: frozenset[str]
    model: str
    nodes: tuple[str, ...]
    gpus: bool
    partitions: tuple[str, ...]
    switch: str
    checkpoint: str
    buffers: str
    """``datawarp``, ``generic``, ``both``, ``own``, or empty."""
    directives: tuple[str, ...]
    """What jobs ask ``own`` for."""
    conf: dict[str, str]
    node_lines: tuple[str, ...]
    partition_lines: tuple[str, ...]

    def has(self, feature: str) -> bool:
        """Return whether a kind of work or of faults is among what was drawn."""
        return feature in self.features

    @property
    def all_nodes(self) -> str:
        """Return all nodes as a host list."""
        return f"n[1-{len(self.nodes)}]"


def make_cluster(seed: int, features: frozenset[str], own: Own) -> Cluster:
    """Draw a cluster; *own* plugins take the place of those that are drawn."""
    c = Chance.of(seed, "cluster")
    count = c.choice((1, 2, 2, 3, 3, 4, 4, 5, 6, 8))
    nodes = tuple(f"n{number}" for number in range(1, count + 1))
    gpus = "shared nodes" in features and c.likely(0.5)
    switch = c.choice(("none", "none", "elan", "elan", "federation", "federation"))
    checkpoint = c.choice(("none", "none", "blcr", "ompi"))
    buffers = c.choice(("", "", "datawarp", "datawarp", "generic", "both"))
    partitions = ("a", "b") if "two partitions" in features or "preemption" in features else ("a",)
    model = c.choice(("guide", "guide", "modern"))
    conf = _conf(c, features, switch, checkpoint, buffers)
    return Cluster(
        features=features,
        model=model,
        nodes=nodes,
        gpus=gpus,
        partitions=partitions,
        switch=own.type_of("switch") or switch,
        checkpoint=own.type_of("checkpoint") or checkpoint,
        buffers="own" if own.directives else buffers,
        directives=own.directives,
        conf=own.over(conf),
        node_lines=_node_lines(c, nodes, gpus=gpus),
        partition_lines=_partition_lines(c, features, count, partitions),
    )


def _node_lines(c: Chance, nodes: tuple[str, ...], *, gpus: bool) -> tuple[str, ...]:
    even = c.likely(0.4)
    cpus, memory = c.choice((1, 2, 4, 8)), c.choice((400, 800))
    lines = []
    for name in nodes:
        if not even:
            cpus, memory = c.randint(1, 5), c.choice((200, 400, 800))
        more = f', gres: "gpu:{c.randint(1, 2)}"' if gpus else ""
        more += ", features: fast" if c.likely(0.3) else ""
        lines.append(f"{{name: {name}, cpus: {cpus}, memory_mb: {memory}{more}}}")
    return tuple(lines)


def _partition_lines(
    c: Chance, features: frozenset[str], count: int, names: tuple[str, ...]
) -> tuple[str, ...]:
    longest = c.choice(("5m", "10m", "30m", "2h"))
    lines = []
    for name in names:
        first = name == "a"
        low = 1 if first else c.randint(1, count)
        keys = [f"name: {name}", f'nodes: "n[{low}-{count}]"', f"max_time: {longest}"]
        keys += ["default: true"] if first else [f"priority_tier: {c.randint(1, 3)}"]
        if "exclusive" in features and c.likely(0.4):
            keys.append("over_subscribe: EXCLUSIVE")
        if "preemption" in features and c.likely(0.4):
            keys.append(f"grace_time: {c.choice((1, 15, 90))}")
        if "preemption" in features and c.likely(0.3):
            keys.append(f"preempt_mode: {c.choice(('CANCEL', 'REQUEUE', 'SUSPEND', 'OFF'))}")
        lines.append(f"{{{', '.join(keys)}}}")
    return tuple(lines)


def _conf(
    c: Chance, features: frozenset[str], switch: str, checkpoint: str, buffers: str
) -> dict[str, str]:
    keys = {
        "SwitchType": f"switch/{switch}",
        "CheckpointType": f"checkpoint/{checkpoint}",
        "SchedulerType": f"sched/{c.choice(('builtin', 'backfill'))}",
        "KillWait": str(c.choice((1, 5, 30))),
        "MinJobAge": str(c.choice((5, 60, 300))),
        "SlurmdTimeout": str(c.choice((15, 60, 300))),
        "ReturnToService": str(c.choice((0, 1, 2))),
        "TreeWidth": str(c.choice((1, 2, 50))),
        "JobRequeue": str(c.choice((0, 1, 1, 1))),
    }
    if switch != "none" and c.likely(0.3):
        name = "contexts" if switch == "elan" else "windows"
        keys["SwitchParameters"] = f"{name}={c.choice((2, 4, 8))}"
    if checkpoint != "none":
        keys["JobCheckpointDir"] = c.choice(("/shared/ck", "/var/slurm/checkpoint"))
    types = ("datawarp", "generic") if buffers == "both" else (buffers,) if buffers else ()
    if types:
        keys["BurstBufferType"] = f'"{",".join(f"burst_buffer/{name}" for name in types)}"'
    if "shared nodes" in features:
        keys["SelectType"] = "select/cons_tres"
        keys["SelectTypeParameters"] = c.choice(("CR_CPU", "CR_Core", "CR_CPU_Memory", "CR_Memory"))
    if "preemption" in features:
        modes = ["REQUEUE", "CANCEL", '"SUSPEND,GANG"']
        modes += ["CHECKPOINT"] if checkpoint != "none" else []
        keys["PreemptType"] = "preempt/partition_prio"
        keys["PreemptMode"] = c.choice(modes)
    if "prologs" in features:
        for name in (*c.some(_NODE_SCRIPTS, 0.5), *c.some(_STEP_SCRIPTS, 0.25)):
            keys[name] = SCRIPT
        if c.likely(0.4):
            keys["PrologFlags"] = "Alloc"
    for odds, name, values in (
        (0.15, "RequeueExit", ("3",)),
        (0.1, "RequeueExitHold", ("2",)),
        (0.1, "KillOnBadExit", ("1",)),
        (0.1, "WaitTime", ("5",)),
        (0.1, "OverTimeLimit", ("1", "UNLIMITED")),
        (0.15, "MessageTimeout", ("2", "30")),
        (0.15, "SchedulerParameters", ("batch_sched_delay=0", "bf_max_job_start=1", "defer")),
        (0.1, "FirstJobId", ("100", "67043200")),
        (0.1, "MaxJobCount", ("4", "12")),
        (0.1, "SlurmUser", ("root",)),
    ):
        if c.likely(odds):
            keys[name] = c.choice(values)
    return keys
