"""Draw a whole scenario from a seed: cluster, work, misfortunes, and how all comes to rest."""

import json
from collections.abc import Collection
from typing import Final

from simctl.testing.swarm import buffers, workload
from simctl.testing.swarm.chance import Chance
from simctl.testing.swarm.cluster import NAMES, USERS, Cluster, make_cluster
from simctl.testing.swarm.draft import Draft, deed, fault, run
from simctl.testing.swarm.faults import draw_faults
from simctl.testing.swarm.features import FAULTS, WORK
from simctl.testing.swarm.own import Own
from simctl.testing.swarm.workload import PROGRAMS

RIGHT_S: Final = 1500
"""When everything that was broken is put right, in seconds."""

CANCEL_S: Final = (2500, 3500, 4500)
"""When whatever is left is cancelled."""

END_S: Final = 6000
"""A run that has not ended by then does not come to rest."""

_MOST_JOBS: Final = 60
"""As many jobs there may be, tasks of arrays and jobs of scripts among them."""


_NOTHING: Final = Own()


def draft(seed: int, faults: Collection[str] = tuple(FAULTS), own: Own = _NOTHING) -> Draft:
    """Return the scenario of a seed, with no other faults than these kinds, and *own* plugins."""
    c = Chance.of(seed, "features")
    drawn = c.some(WORK, 0.45)
    calm = c.likely(0.15)
    # All kinds are drawn, so that leaving one out changes nothing else.
    kinds = c.some(tuple(FAULTS), 0.4)
    kinds = [] if calm else [name for name in kinds if name in faults]
    features = frozenset((*drawn, *kinds))
    cluster = make_cluster(seed, features, own)
    c = Chance.of(seed, "scenario")
    last_job = c.choice((1, 2, 3, 5, 8, 12, 16, 24))
    head = [f"seed: {seed}", f"model: {cluster.model}"]
    latency = c.choice(("100us", "100us", "100us", "0", "1ms", "400ms"))
    head += [f"latency: {latency}", *own.head()]
    pools = buffers.random_pools(c)
    if cluster.buffers:
        head += _behind_buffers(c, cluster, pools)
    if cluster.checkpoint != "none":
        head.append(f"checkpoint: {{bandwidth: {c.choice(('1GiB', '4MiB', '1MiB'))}}}")
    entries, files = workload.work(seed, cluster, pools, last_job)
    entries += workload.orders(seed, cluster, last_job)
    entries += draw_faults(seed, cluster, last_job)
    return Draft(
        seed=seed,
        schedule=_schedule(c),
        features=tuple(each for each in (*WORK, *FAULTS) if each in features) or ("plain",),
        head=tuple(head),
        conf=cluster.conf,
        nodes=cluster.node_lines,
        partitions=cluster.partition_lines,
        users=USERS,
        files=files,
        programs=PROGRAMS,
        happenings=tuple(entries),
        tail=tuple(_tail(cluster, c)),
    )


def _schedule(c: Chance) -> str:
    name = c.choice(("fifo", "fifo", "random", "pct"))
    if name == "fifo":
        return name
    return name + c.choice(("", "", ",jitter=200us", ",jitter=4ms,calls", ",calls"))


def _behind_buffers(c: Chance, cluster: Cluster, pools: buffers.Pools) -> list[str]:
    parts = [f"pools: {json.dumps(pools)}"]
    if c.likely(0.4):
        parts.append(f"bandwidth: {c.choice(('100MiB', '1GiB', '10GiB'))}")
    if c.likely(0.6):
        parts.append("data: {/lus/in: 8GiB, /lus/out: 30GiB, /lus/none: 0}")
    conf = f"burst_buffer_conf: {{{buffers.random_conf(c)}}}"
    lines = [f"burst_buffer: {{{', '.join(parts)}}}", *([conf] if cluster.buffers != "own" else [])]
    names = ("bb_post_run_gate", "bb_load_first", "bb_stageout_after_epilog")
    options = [f"{name}: {c.choice(('true', 'false'))}" for name in c.some(names, 0.1)]
    return [*lines, *([f"options: {{{', '.join(options)}}}"] if options else [])]


def _tail(cluster: Cluster, c: Chance) -> list[str]:
    """Return what brings the cluster to rest: all is put right, and what is left is cancelled."""
    entries = []
    patient = c.likely(0.5)
    for at in (RIGHT_S, *CANCEL_S):
        now = f"at: {at}s"
        if cluster.buffers:
            names = {name: None for plugin in buffers.FUNCTIONS.values() for name in plugin}
            functions = json.dumps(names)
            entries.append(deed(now, f"burst_buffer: {{up: true, functions: {functions}}}"))
        entries.append(fault(now, "start: slurmctld"))
        if cluster.has("disks"):
            # It does not start with a file that tells nothing, unless it is told to.
            entries.append(fault(f"at: {at + 1}s", "start: slurmctld, clean: true"))
        entries += [fault(now, f"start: {node}") for node in cluster.nodes]
        if cluster.has("daemons"):
            entries += [fault(f"at: {at + 1}s", f"start: slurmd@{node}") for node in cluster.nodes]
        entries.append(
            run(f"at: {at + 5}s", f"scontrol update nodename={cluster.all_nodes} state=resume")
        )
        if at == RIGHT_S:
            entries += [
                run(f"at: {at + 6}s", f"scontrol update partitionname={name} state=up")
                for name in cluster.partitions
            ]
            if patient:
                entries += _let_go(cluster, at + 7)
                continue
        entries += [run(f"at: {at + 20}s", f"scancel -u {name}") for name in NAMES]
        if cluster.buffers and at > CANCEL_S[0]:
            # A filter does not find a job that is over and staged out.
            entries.append(run(f"at: {at + 40}s", f"scancel --hurry {_ids(cluster)}"))
    return [*entries, deed(f"at: {END_S}s", "stay: true")]


def _let_go(cluster: Cluster, at: int) -> list[str]:
    ids = _ids(cluster)
    return [
        run(f"at: {at}s", f"scontrol release {ids}"),
        run(f"at: {at + 1}s", f"scontrol resume {ids}"),
        run(f"at: {at + 2}s", f"scancel -s CONT {ids}"),
    ]


def _ids(cluster: Cluster) -> str:
    first = workload.first_job(cluster)
    return " ".join(str(first + number) for number in range(_MOST_JOBS))
