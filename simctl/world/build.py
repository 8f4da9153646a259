"""What a scenario is made into: plugins taken in, the Site, records of nodes and partitions."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from simctl.api.reach import LuaSettings
from simctl.appliance.appliance import Appliance
from simctl.commands.table import COMMANDS
from simctl.ctld.state.records import NodeRecord, PartRecord
from simctl.kernel.disk import Disk
from simctl.kernel.fabric import Fabric
from simctl.kernel.faults import CallFaults
from simctl.kernel.procs import (
    OUT_OF_MEMORY_STATUS,
    ProcessTable,
    wait_status,
)
from simctl.kernel.trace import Trace
from simctl.kernel.turns import Kernel
from simctl.plugins.compiled import Against
from simctl.plugins.hooks import Hooks
from simctl.plugins.lua.defects import there_are
from simctl.plugins.registry import PluginError, Registry, UnknownPluginError
from simctl.scenario.faults import ControllerTarget, CorruptFault, Crash, DiskFault, Fault, Stop
from simctl.scenario.model import (
    FaultEntry,
    NodeSpec,
    Program,
    ProgramSpec,
    Scenario,
    behaviour,
)
from simctl.site import Site, User
from simctl.stepd.images import Images
from simctl.stepd.outcome import NEVER_US, ProgramRun
from simctl.stepd.programs import Describe, Programs
from simctl.wire.conf.slurm_conf import PLUGIN_KEYS, SlurmConf
from simctl.wire.credentials import KeyPair
from simctl.wire.hosts import CONTROLLER
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.resources import Room
from simctl.wire.states import NodeBase, NodeFlag, PartState


def saves_are_simulated(scenario: Scenario) -> bool:
    """Return whether slurmctld saves its state as it runs: as the scenario says, or where it shows.

    It shows if slurmctld may die, or its files or its disk may be damaged.
    """
    if scenario.options.state_saves != "auto":
        return scenario.options.state_saves == "always"
    return any(
        isinstance(entry, FaultEntry) and _damages_state(entry.fault) for entry in scenario.timeline
    )


def _damages_state(fault: Fault) -> bool:
    ends = isinstance(fault, Crash | Stop) and isinstance(fault.target, ControllerTarget)
    return ends or isinstance(fault, CorruptFault | DiskFault)


def _begins(node: NodeSpec, uid: int) -> dict[str, Any]:
    """Return the state in which a node begins that is not as a node usually begins."""
    if node.state == "UNKNOWN":
        return {}
    down = node.state == "DOWN"
    return {
        "base": NodeBase.DOWN if down else NodeBase.UNKNOWN,
        "flags": NodeFlag.NONE if down else NodeFlag.DRAIN,
        "reason": node.reason,
        "reason_uid": uid if node.reason else NO_VAL,
        "reason_us": 0,
    }


def _load_plugins(registry: Registry, scenario: Scenario, model: str) -> None:
    """Register the scenario's plugins, and check those that its slurm.conf names.

    Raises:
        PluginError: Everything that is wrong with them, each with its place.
    """
    if mistakes := plugin_mistakes(registry, scenario, model):
        raise PluginError(*mistakes)


def plugin_mistakes(registry: Registry, scenario: Scenario, model: str) -> list[str]:
    """Register the scenario's plugins; return all that is wrong with them and with slurm.conf's."""
    mistakes: list[str] = []
    registry.against = Against.of(scenario)
    path = Path(scenario.folder) / scenario.path_name
    file = str(path) if path.is_file() else scenario.path_name
    for plugin in scenario.plugins:
        try:
            registry.add(plugin.reference, Path(scenario.folder))
        except PluginError as error:
            where = f"{file}:{plugin.line}:{plugin.column}"
            mistakes += [f"{where}: {mistake}" for mistake in error.mistakes]
    for node in scenario.nodes:
        for plugin in node.plugins:
            try:
                registry.add_on(node.name, plugin.reference, Path(scenario.folder), model)
            except PluginError as error:
                where = f"{file}:{plugin.line}:{plugin.column}"
                mistakes += [f"{where}: {mistake}" for mistake in error.mistakes]
    # A plugin that could not be taken in may be one that slurm.conf names.
    unsure = bool(mistakes)
    conf = scenario.slurm_conf
    types = (
        conf.switch_type,
        conf.checkpoint_type,
        conf.burst_buffer_types,
        conf.job_submit_types,
        conf.cli_filter_types,
    )
    for key, value in zip(PLUGIN_KEYS, types, strict=True):
        for plugin_type in (value,) if isinstance(value, str) else value:
            try:
                registry.require(plugin_type, key, model)
            except UnknownPluginError as error:
                where = scenario.places.get(key, file)
                if error.meant or not unsure:
                    mistakes += [f"{where}: {mistake}" for mistake in error.mistakes]
            except PluginError as error:
                where = scenario.places.get(key, file)
                mistakes += [f"{where}: {mistake}" for mistake in error.mistakes]
    return mistakes


def make_users(scenario: Scenario) -> dict[str, User]:
    """Return the people with accounts on the cluster, by name."""
    return {
        user.name: User(
            name=user.name,
            uid=user.uid,
            gid=user.gid,
            account=user.account,
            admin=user.admin,
        )
        for user in scenario.users
    }


def lua_settings(scenario: Scenario, users: Mapping[str, User], *, order: int) -> LuaSettings:
    """Return how the site's Lua scripts are run; by *order* they go through their tables."""
    slurm = users[scenario.slurm_conf.slurm_user]
    return LuaSettings(
        version=scenario.lua.version,
        slurm=scenario.lua.slurm,
        defects=there_are(scenario.lua.slurm, scenario.lua.defects, scenario.lua.mended),
        order=order,
        epoch_s=scenario.start_epoch_s,
        cluster=scenario.slurm_conf.cluster_name,
        people={user.name: (user.uid, user.gid, user.home) for user in users.values()},
        slurm_ids=(slurm.uid, slurm.gid),
    )


def make_site(
    scenario: Scenario,
    *,
    kernel: Kernel,
    trace: Trace,
    fabric: Fabric,
    procs: ProcessTable,
    hooks: Hooks,
    disk: Disk,
    users: Mapping[str, User],
    make_programs: Callable[[Mapping[str, Describe], random.Random], Programs],
    seed: int,
    run_name: str,
) -> Site:
    """Return what every daemon and command of the cluster is given."""
    conf = built_conf(scenario)
    described = {name: describe(program) for name, program in scenario.programs.items()}
    programs = make_programs(described, random.Random(f"programs:{seed}"))
    programs.seed = seed
    return Site(
        kernel=kernel,
        trace=trace,
        fabric=fabric,
        procs=procs,
        hooks=hooks,
        disk=disk,
        conf=conf,
        model=hooks.model,
        start_time_s=scenario.start_epoch_s,
        users=users,
        keys=KeyPair(f"{conf.cluster_name}:{seed}"),
        options=scenario.options,
        run_name=run_name,
        asks_nodes=scenario.asks_nodes,
        folder=str(Path(scenario.folder).resolve()),
        appliance=Appliance(
            scenario.burst_buffer,
            kernel=kernel,
            disk=disk,
            host=CONTROLLER,
            start_s=scenario.start_epoch_s,
            plugin_names=(
                *scenario.burst_buffer_conf,
                *(each.rpartition("/")[2] for each in conf.burst_buffer_types),
            ),
        ),
        images=Images(
            scenario.checkpoint,
            kernel=kernel,
            disk=disk,
            enabled=conf.checkpoint_type != "checkpoint/none",
        ),
        commands=dict(COMMANDS),
        programs=programs,
    )


def built_conf(scenario: Scenario) -> SlurmConf:
    """Return the slurm.conf of the cluster; GresTypes is what nodes have where it names none."""
    conf = scenario.slurm_conf
    known = dict.fromkeys(name.partition(":")[0] for node in scenario.nodes for name in node.gres)
    return attrs.evolve(conf, gres_types=conf.gres_types or tuple(known))


def make_hooks(
    scenario: Scenario,
    registry: Registry,
    *,
    trace: Trace,
    faults: CallFaults,
    model: str,
    values: bool,
) -> Hooks:
    """Register the scenario's plugins, and return what calls them.

    Raises:
        PluginError: Everything that is wrong with them, each with its place.
    """
    conf = scenario.slurm_conf
    _load_plugins(registry, scenario, model)
    hooks = Hooks(
        trace=trace,
        registry=registry,
        model=model,
        types={"switch": conf.switch_type, "checkpoint": conf.checkpoint_type},
        faults=faults,
    )
    hooks.values = values
    return hooks


def make_records(
    scenario: Scenario, users: Mapping[str, User]
) -> tuple[list[NodeRecord], list[PartRecord]]:
    """Return fresh records of the nodes and partitions for a slurmctld that starts."""
    slurm_uid = users[scenario.slurm_conf.slurm_user].uid
    records = [
        NodeRecord(
            index=index,
            name=node.name,
            address=f"slurmd@{node.name}",
            total=Room(
                index=index,
                cpus=node.cpus,
                memory_mb=node.memory_mb,
                gres=dict(node.gres),
            ),
            **_begins(node, slurm_uid),
            features=node.features,
        )
        for index, node in enumerate(scenario.nodes)
    ]
    by_name = {record.name: record for record in records}
    partitions = []
    for spec in scenario.partitions:
        members = tuple(by_name[name] for name in spec.nodes)
        cpus = {node.cpus for node in members}
        part = PartRecord(
            name=spec.name,
            nodes=members,
            default=spec.default,
            max_time_min=spec.max_time_min,
            default_time_min=spec.default_time_min
            if spec.default_time_min != INFINITE
            else spec.max_time_min,
            max_nodes=spec.max_nodes,
            min_nodes=spec.min_nodes,
            uniform_cpus=members[0].cpus if len(cpus) == 1 else 0,
            state=PartState[spec.state],
            tier=spec.priority_tier,
            exclusive=spec.exclusive,
            preempt_mode=spec.preempt_mode,
            grace_time_s=spec.grace_time_s,
            root_only=spec.root_only,
            allow_accounts=spec.allow_accounts,
            deny_accounts=spec.deny_accounts,
            def_mem_per_cpu_mb=spec.def_mem_per_cpu_mb,
            def_mem_per_node_mb=spec.def_mem_per_node_mb,
        )
        partitions.append(part)
    return records, partitions


def describe(program: Program) -> Callable[[int, random.Random], ProgramRun]:
    """Return what gives the behaviour of a described program in the task of a rank."""

    def describe(rank: int, chance: random.Random) -> ProgramRun:
        spec: ProgramSpec = behaviour(program, rank)
        runs_us = spec.runs_min_us
        if spec.forever:
            runs_us = NEVER_US
        elif spec.runs_max_us > spec.runs_min_us:
            runs_us = chance.randint(spec.runs_min_us, spec.runs_max_us)
        return ProgramRun(
            runs_us=runs_us,
            status=OUT_OF_MEMORY_STATUS if spec.oom else spec.signal or wait_status(spec.exit),
            output=spec.output,
            ignores=spec.ignores,
            exits_on=spec.exits_on,
            image=spec.image,
        )

    return describe
