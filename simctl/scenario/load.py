"""Read a scenario file: every mistake in it at once, each with its line."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

import attrs
import yaml

from simctl.appliance.spec import ApplianceSpec
from simctl.files import read_bytes
from simctl.kernel.disk import is_shared
from simctl.kernel.pattern import near
from simctl.scenario.appliance import APPLIANCE
from simctl.scenario.cluster import (
    NODES,
    START_TIME,
    SlurmConfShape,
    default_start_time,
)
from simctl.scenario.durations import format_moment
from simctl.scenario.expectations import EXPECT
from simctl.scenario.images import IMAGES
from simctl.scenario.looking import check_kept
from simctl.scenario.lua import LUA, SCRIPTS, ScriptShape, check_lua
from simctl.scenario.model import FilesEntry, LuaSpec, Scenario
from simctl.scenario.partitions import PARTITIONS
from simctl.scenario.patterns import FUNCTIONS
from simctl.scenario.positions import (
    Mistake,
    Reading,
    ScenarioErrors,
    Unreadable,
    Usage,
    Value,
    compose,
    line_and_column,
    pairs,
    sort_mistakes,
)
from simctl.scenario.programs import FILES, LIBRARY, PLUGINS, PROGRAMS, file_key
from simctl.scenario.scalars import DURATION, SIMCTL_VERSION, choice, whole
from simctl.scenario.scripts import ScriptCheck
from simctl.scenario.shapes import Field, Record, Table, Values
from simctl.scenario.site.burst_buffer_conf import BURST_BUFFER_CONF, BurstBufferFileShape, merge
from simctl.scenario.site.complete import complete
from simctl.scenario.site.site import SiteShape, placed
from simctl.scenario.switches import OPTIONS
from simctl.scenario.timeline.message_faults import rpc_names
from simctl.scenario.timeline.timeline import COMMANDS, JOBS, TIMELINE
from simctl.scenario.users import BUILT_IN, USERS
from simctl.site import Options
from simctl.stepd.images import ImagesSpec
from simctl.wire.conf.slurm_conf import PLUGIN_KEYS, SCRIPT_KEYS, SlurmConf
from simctl.wire.hosts import CONTROLLER, LOGIN

# Read in this order, whatever the order in the file: later keys refer to what earlier ones name.
FIELDS: Final = (
    Field(
        name="seed",
        shape=whole("a whole number of 0 or more", least=0),
        default=0,
        shown=0,
        doc="Where chance begins: random durations, schedules and latencies.",
    ),
    Field(
        name="model",
        shape=choice("guide", "modern"),
        default="guide",
        shown="guide",
        doc="Processes of a step on a node: three as in the switch guide, or one root process.",
    ),
    Field(
        name="simctl_version",
        shape=SIMCTL_VERSION,
        default="",
        doc="The oldest simctl that runs the scenario as it is meant; an older one refuses it.",
    ),
    Field(
        name="start_time",
        shape=START_TIME,
        default=default_start_time(),
        shown="2026-01-01T00:00:00Z",
        doc="What the clocks of the cluster show at virtual time 0, in UTC.",
    ),
    Field(
        name="latency",
        shape=DURATION,
        default=100,
        shown="100us",
        doc="How long a message between two hosts takes; within a host it takes no time.",
    ),
    Field(
        name="slurm_conf_file",
        shape=SiteShape(),
        default="",
        doc="A site's own slurm.conf, from the folder of the scenario on.",
    ),
    Field(
        name="slurm_conf",
        shape=SlurmConfShape(),
        default=SlurmConf(),
        doc="Keys of slurm.conf.",
    ),
    Field(
        name="burst_buffer_conf",
        shape=BURST_BUFFER_CONF,
        default={},
        doc="Keys of burst_buffer.conf, for all plugins, or below the name of each.",
    ),
    Field(
        name="burst_buffer_conf_file",
        shape=BurstBufferFileShape(),
        default="",
        doc="A site's own burst_buffer.conf; without it, one beside its slurm.conf is read.",
    ),
    Field(
        name="burst_buffer",
        shape=APPLIANCE,
        default=ApplianceSpec(),
        doc="The simulated appliance behind burst buffer plugins.",
    ),
    Field(
        name="checkpoint",
        shape=IMAGES,
        default=ImagesSpec(),
        doc="How fast checkpoint images are written and read, and how much space there is.",
    ),
    Field(
        name="options",
        shape=OPTIONS,
        default=Options(),
        doc="Switches of the simulator itself.",
    ),
    Field(
        name="lua",
        shape=LUA,
        default=LuaSpec(),
        doc="Under which Lua and which Slurm the site's Lua scripts run.",
    ),
    *(
        Field(
            name=f"{kind}_lua",
            shape=ScriptShape(kind),
            default="",
            doc=f"The site's {kind}.lua, from the folder of the scenario on.",
        )
        for kind in SCRIPTS
    ),
    Field(
        name="nodes",
        shape=NODES,
        default=(),
        required=True,
        unless="slurm_conf_file",
        doc="The compute nodes.",
    ),
    Field(
        name="partitions",
        shape=PARTITIONS,
        default=(),
        required=True,
        unless="slurm_conf_file",
        doc="The partitions.",
    ),
    Field(
        name="users",
        shape=USERS,
        default=BUILT_IN,
        doc="Users by name, beside root (0) and slurm (64030), who are always there.",
    ),
    Field(
        name="plugins",
        shape=PLUGINS,
        default=(),
        doc="Plugin classes in files, beside the bundled and the installed ones.",
    ),
    Field(
        name="slurm_lib",
        shape=LIBRARY,
        default="",
        doc="The libslurmfull.so that compiled plugins find in place of the stand-in for it.",
    ),
    Field(
        name="slurm_records",
        shape=LIBRARY,
        default="",
        doc="A file with debug information of Slurm's records, for plugins that have none.",
    ),
    Field(
        name="files",
        shape=FILES,
        default={},
        doc="Files of the users on the shared file system, batch scripts among them.",
    ),
    Field(
        name="programs",
        shape=PROGRAMS,
        default={},
        doc="What simulated programs do.",
    ),
    Field(
        name="jobs",
        shape=JOBS,
        default=(),
        doc="A table of submissions, a minute apart, and what job_submit plugins make of each.",
    ),
    Field(name="timeline", shape=TIMELINE, default=(), doc="Commands and faults, and their time."),
    Field(
        name="recorded",
        shape=Table(item=DURATION, expected="a mapping from job ids to waits"),
        doc="How long each job waited at the site: `run` prints measures, and theirs beside.",
    ),
    Field(name="expect", shape=EXPECT, default=(), doc="What should come of the run."),
)
SCENARIO: Final[Record[Values]] = Record(
    what="a scenario", fields=FIELDS, build=lambda values, _value, _reading: values
)


def load_scenario(
    path: Path,
    *,
    commands: Collection[str] = COMMANDS,
    functions: Collection[str] = FUNCTIONS,
    event_names: Collection[str] = (),
) -> Scenario:
    """Read the scenario in the file *path*.

    Args:
        path: the file; the paths of its plugins are taken from its folder.
        commands: what a timeline may run.
        functions: plugin functions that can be called.
        event_names: other names that events can have, beside RPCs; a pattern's NAME that is close
            to one of all these, and is none, is a mistake.

    Raises:
        ScenarioErrors: the file cannot be read, or holds mistakes: all of them.
    """
    file = str(path)
    return read_scenario(
        _decode(_read(path), file),
        file=file,
        commands=commands,
        functions=functions,
        event_names=event_names,
    )


def read_scenario(
    text: str,
    *,
    file: str,
    commands: Collection[str] = COMMANDS,
    functions: Collection[str] = FUNCTIONS,
    event_names: Collection[str] = (),
    root: yaml.Node | None = None,
) -> Scenario:
    """Read a scenario from its text; *file* is where it is said to stand.

    With *root* that tree is read: the text's own, with changes.

    Raises:
        ScenarioErrors: the text holds mistakes: all of them.
    """
    reading = start(text, file)
    reading.functions = tuple(functions)
    reading.event_names += tuple(event_names)
    reading.commands = tuple(commands)
    return _scenario(read_values(text, reading, root), reading, description(text))


def start(text: str, file: str) -> Reading:
    """Return a reading of a scenario at its beginning."""
    return Reading(
        file=file,
        lines=tuple(re.split(r"\r\n|\r|\n", text)),
        folder=str(Path(file).parent),
        users={user.name: user.uid for user in BUILT_IN},
        functions=tuple(FUNCTIONS),
        event_names=rpc_names(),
        commands=tuple(COMMANDS),
        loaded=SlurmConf().plugin_types,
    )


@attrs.frozen(kw_only=True)
class Checked:
    """What is wrong with a scenario file, and what of it could be read all the same."""

    mistakes: tuple[Mistake, ...]
    warnings: tuple[Mistake, ...] = ()
    scenario: Scenario | None = None


def check_scenario(path: Path, usage: Usage) -> Checked:
    """Read the scenario in the file *path* for its mistakes, options of its commands among them."""
    file = str(path)
    try:
        text = _decode(_read(path), file)
        reading = start(text, file)
        reading.usage = usage
        values = _values(text, reading)
    except ScenarioErrors as error:
        return Checked(mistakes=error.mistakes)
    return Checked(
        mistakes=sort_mistakes(reading.mistakes),
        warnings=sort_mistakes(reading.warnings),
        scenario=None if values is None else _scenario(values, reading, description(text)),
    )


def read_values(text: str, reading: Reading, root: yaml.Node | None = None) -> Values:
    """Return what stands under each key of a scenario, or its default.

    Raises:
        ScenarioErrors: the text holds mistakes: all of them.
    """
    values = _values(text, reading, root)
    if reading.mistakes or values is None:
        raise ScenarioErrors(sort_mistakes(reading.mistakes))
    return values


def _values(text: str, reading: Reading, root: yaml.Node | None = None) -> Values | None:
    """Return what could be read, None if nothing could; mistakes are noted."""
    values: Values | None = None
    whole = Value(node=root or compose(text, reading.file), path="")
    try:
        values, _ = SCENARIO.read_values(whole, reading)
        complete(values, reading)
        merge(values, reading)
        _check_backup(values, reading)
        _check_slurm_user(values, reading)
        _check_job_age(values, reading)
        _check_gres(values, reading)
        check_lua(values, reading)
        _check_scripts(values, reading)
        conf = values["slurm_conf"]
        types = (conf.switch_type, conf.checkpoint_type, *conf.burst_buffer_types)
        check_kept(types, reading)
    except Unreadable:
        pass
    return values


def files_named(root: yaml.Node) -> list[str]:
    """Return the files that a scenario names by keys of their own, as they stand there."""
    keys = [field.name for field in FIELDS if isinstance(field.shape, _FILE_SHAPES)]
    pairs = root.value if isinstance(root, yaml.MappingNode) else ()
    return [str(value.value) for key, value in pairs if key.value in keys]


_FILE_SHAPES: Final = (SiteShape, BurstBufferFileShape, ScriptShape)


def description(text: str) -> str:
    """Return the first comment of a file, without its signs."""
    lines = []
    for line in text.lstrip("\n\r").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return "\n".join(lines).strip()


def _scenario(values: Values, reading: Reading, text: str) -> Scenario:
    return Scenario(
        path_name=Path(reading.file).name,
        folder=reading.folder,
        description=text,
        seed=values["seed"],
        model=values["model"],
        start_time=f"{values['start_time']:%Y-%m-%dT%H:%M:%SZ}",
        start_epoch_s=int(values["start_time"].timestamp()),
        latency_us=values["latency"],
        slurm_conf=values["slurm_conf"],
        burst_buffer_conf=values["burst_buffer_conf"],
        burst_buffer=values["burst_buffer"],
        checkpoint=values["checkpoint"],
        options=values["options"],
        lua=values["lua"],
        lua_scripts={
            name: text
            for kind in SCRIPTS
            if f"{kind}_lua" in values.places
            for name, text in (values[f"{kind}_lua"] or {}).items()
        },
        nodes=values["nodes"],
        partitions=values["partitions"],
        users=values["users"],
        plugins=values["plugins"],
        slurm_lib=values["slurm_lib"],
        slurm_records=values["slurm_records"],
        files=values["files"],
        programs=values["programs"],
        timeline=(*values["jobs"], *values["timeline"]),
        recorded=values["recorded"],
        expect=values["expect"],
        places={key: _place(_setting(values, key, reading), reading) for key in PLUGIN_KEYS},
        warnings=sort_mistakes(reading.warnings),
        ignored=reading.site.ignored.texts() if reading.site is not None else (),
    )


def _check_slurm_user(values: Values, reading: Reading) -> None:
    name = values["slurm_conf"].slurm_user
    if name in reading.users:
        return
    message = f"SlurmUser {name!r} is no user of this cluster{near(name, reading.users)}"
    # With a conf that could not be read the name is the default, which is always there.
    reading.mistake(_setting(values, "SlurmUser", reading), message)


def _check_backup(values: Values, reading: Reading) -> None:
    """Check that a backup controller has a host of its own, and finds the state of the primary."""
    conf = values["slurm_conf"]
    name = conf.backup_controller
    if not name:
        return
    key = "SlurmctldHost" if conf.slurmctld_hosts else "BackupController"
    if name in reading.nodes or name in (CONTROLLER, LOGIN):
        message = f"{name} is there already; a backup controller has a host of its own"
        reading.mistake(_setting(values, key, reading), message)
    if not is_shared(conf.state_save_location):
        message = (
            f"StateSaveLocation {conf.state_save_location} is on one host alone; a backup "
            "controller needs it where all hosts share it, such as /shared/slurm"
        )
        reading.mistake(_setting(values, key, reading), message)


_LONG_AGE_S: Final = 3_600


def _check_job_age(values: Values, reading: Reading) -> None:
    """Note a MinJobAge for which a run goes on long after its last job."""
    age_s = values["slurm_conf"].min_job_age_s
    if age_s > _LONG_AGE_S:
        message = (
            f"records of jobs stay for {format_moment(age_s * 1_000_000)} after their end, and a "
            "run goes on until they are gone, with pings and scheduler passes; 300 is Slurm's own"
        )
        reading.warn(_setting(values, "MinJobAge", reading), message)


def _check_gres(values: Values, reading: Reading) -> None:
    """Note resources of nodes that GresTypes lacks; without GresTypes all are known."""
    types = values["slurm_conf"].gres_types
    names = {name.partition(":")[0] for node in values["nodes"] or () for name in node.gres}
    for name in sorted(names.difference(types)) if types else ():
        message = f"nodes have {name!r}, which GresTypes lacks{near(name, types)}"
        reading.mistake(_setting(values, "GresTypes", reading), message)


def _place(value: Value, reading: Reading) -> str:
    return f"{value.file or reading.file}:{value.line}:{value.column}"


def _setting(values: Values, name: str, reading: Reading) -> Value:
    """Return where a key of slurm.conf has its value: in the scenario, or in the site's file."""
    conf = values.place("slurm_conf")
    for key, node in conf.node.value if isinstance(conf.node, yaml.MappingNode) else ():
        if str(key.value).casefold() == name.casefold():
            return conf.child(str(key.value), node)
    if reading.site is not None and name.casefold() in reading.site.settings:
        return placed(reading.site.settings[name.casefold()])
    return conf


def _check_scripts(values: Values, reading: Reading) -> None:
    files = values.places.get("files")
    children = {} if files is None or not values["files"] else _children(files, reading)
    ScriptCheck(
        files=children,
        programs=values["programs"],
        reading=reading,
        configured=_configured(values, reading),
        written_later=_written_later(values),
    ).run()


def _written_later(values: Values) -> frozenset[str]:
    """Return the files that entries of the timeline write."""
    entries = [entry for entry in values["timeline"] if isinstance(entry, FilesEntry)]
    return frozenset(file_key(name) for entry in entries for name in entry.files)


def _configured(values: Values, reading: Reading) -> list[tuple[Value, str]]:
    """Return the prologs and epilogs that slurm.conf names, with their places."""
    conf = values["slurm_conf"]
    return [
        (_setting(values, key, reading), path)
        for key in SCRIPT_KEYS
        if (path := str(conf.value(key)))
    ]


def _children(files: Value, reading: Reading) -> dict[str, Value]:
    return {file_key(name): child for _, name, child in pairs(files, reading)}


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        message = f"cannot read the scenario: {error.strerror or error}"
        raise ScenarioErrors((_at(str(path), 0, 0, message),)) from error


def _decode(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", errors="replace")
        line, column = line_and_column(before, len(before))
        message = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise ScenarioErrors((_at(file, line, column, message),)) from error


def _at(file: str, line: int, column: int, message: str) -> Mistake:
    return Mistake(file=file, line=line, column=column, path="", message=message)
