"""Read expectations of what no event tells: `always`, `file`, `output` and `environment`."""

import re
from typing import Any, Final

import yaml

from simctl.kernel.disk import Disk
from simctl.kernel.pattern import near
from simctl.scenario.kept_rules import Check, Equal, Rule, Unique
from simctl.scenario.model import (
    AlwaysExpect,
    EnvironmentExpect,
    Expectation,
    FileExpect,
    OutputExpect,
    TextWanted,
)
from simctl.scenario.positions import Reading, Value
from simctl.scenario.scalars import BOOLEAN, choice, text, whole
from simctl.scenario.shapes import Either, Field, Items, Nothing, Record, Scalar, Table, Values
from simctl.wire.hosts import LOGIN

ROLES: Final = ("slurmctld", "slurmd", "manager", "session", "task", "srun")
"""The processes that load plugins."""

_TEXT: Final = text("a text")
_PATH: Final = re.compile(r"[^.\s]+(\.[^.\s]+)*")
_STEP: Final = re.compile(r"[0-9]+\.(?:[0-9]+|batch)")
_JOB: Final = re.compile(r"[0-9]+(?:_[0-9]+)?")
_PLUGIN: Final = re.compile(r"(switch|checkpoint|burst_buffer)/\S+")
_CHECK: Final = re.compile(r".+\.py:[A-Za-z_][A-Za-z0-9_]*")


def _matching(pattern: re.Pattern[str], expected: str) -> Scalar[str]:
    def convert(value: Value, _: Reading) -> str:
        if pattern.fullmatch(value.scalar) is None:
            raise ValueError
        return value.scalar

    return Scalar(expected=expected, convert=convert, json={"type": ["string", "number"]})


def _read_plugin(value: Value, reading: Reading) -> str:
    if _PLUGIN.fullmatch(value.scalar) is None:
        raise ValueError
    reading.kept.append((value.scalar, value))
    return value.scalar


def _read_host(value: Value, reading: Reading) -> str:
    hosts = (*reading.nodes, LOGIN)
    if value.scalar not in hosts:
        raise ValueError(f"no host {value.scalar!r}{near(value.scalar, hosts)}")
    return value.scalar


def _read_absolute(value: Value, _: Reading) -> str:
    if not value.scalar.startswith("/"):
        raise ValueError
    return Disk.resolve(value.scalar)


def _read_user(value: Value, reading: Reading) -> str:
    if value.scalar not in reading.users:
        raise ValueError(f"no user {value.scalar!r}{near(value.scalar, reading.users)}")
    return value.scalar


_DATA_PATH: Final = _matching(_PATH, "a path into the plugin's state such as steps.*.ports")


def _data(node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_data(each) for each in node.value]
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _data(value) for key, value in node.value}
    quoted = isinstance(node, yaml.ScalarNode) and node.style
    return node.value if quoted else yaml.safe_load(str(node.value))


def _read_equal(value: Value, reading: Reading) -> Equal:
    items = value.items()
    if len(items) != 2:  # noqa: PLR2004 - the path and the value
        raise reading.refuse(value, "expected [PATH, VALUE], such as [free, 128]")
    return Equal(_DATA_PATH.read(items[0], reading), _data(items[1].node))


class _EqualShape:
    """A path and what stands there."""

    def read(self, value: Value, reading: Reading) -> Equal:
        """Return the rule."""
        return _read_equal(value, reading)

    def schema(self) -> dict[str, Any]:
        """Return a list of two."""
        return {"type": "array", "minItems": 2, "maxItems": 2}


def _check_always(values: Values, reading: Reading) -> None:
    rules = [key for key in ("unique", "equal", "check") if key in values.places]
    if len(rules) != 1:
        message = "an `always` has one rule: `unique`, `equal` or `check`"
        reading.mistake(values.place(rules[1]) if rules else values.whole, message)


def _build_always(values: Values, value: Value, _: Reading) -> Expectation:
    rule: Rule = Check(values["check"])
    if values["unique"]:
        rule = Unique(values["unique"])
    elif values["equal"] is not None:
        rule = values["equal"]
    role = f" role={values['role']}" if values["role"] else ""
    return AlwaysExpect(
        text=f"always {values['always']}{role} {rule.text}",
        line=value.line,
        plugin=values["always"],
        role=values["role"],
        rule=rule,
    )


ALWAYS: Final[Record[Expectation]] = Record(
    what="an `always`",
    fields=(
        Field(
            name="always",
            shape=Scalar(
                expected="the type of a plugin such as switch/mine",
                convert=_read_plugin,
                json={"type": "string"},
            ),
            required=True,
            doc="Plugin whose simctl_state() is held to the rule after each of its calls.",
        ),
        Field(name="role", shape=choice(*ROLES), default="", doc="Only in processes of this part."),
        Field(
            name="unique",
            shape=_DATA_PATH,
            default="",
            doc="Path to values of which none may be there twice, such as `steps.*.ports`.",
        ),
        Field(
            name="equal", shape=_EqualShape(), doc="A path, and what every value there has to be."
        ),
        Field(
            name="check",
            shape=_matching(_CHECK, "a function in a file such as ./rules.py:no_port_twice"),
            default="",
            doc="Function that gets the state, and returns a text where something is wrong.",
        ),
    ),
    build=_build_always,
    check=_check_always,
)

_TEXTS: Final = Items(item=_TEXT, expected="a text or a list of texts", single=True)
_OF_TEXT: Final = (
    Field(name="contains", shape=_TEXTS, default=(), doc="Texts that are in it."),
    Field(name="lacks", shape=_TEXTS, default=(), doc="Texts that are not in it."),
    Field(name="equals", shape=text("a text", empty=True), doc="All that it holds."),
)


def _wanted(values: Values) -> TextWanted:
    return TextWanted(contains=values["contains"], lacks=values["lacks"], equals=values["equals"])


def _said(values: Values) -> str:
    keys = ("on", "owner", "exists", "contains", "lacks", "equals", "has")
    return " ".join(f"{key} {_shown(values[key])}" for key in keys if key in values.places)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(repr, value))
    if isinstance(value, dict):
        return " ".join(key if each is None else f"{key}={each}" for key, each in value.items())
    return repr(value) if isinstance(value, str) and not value.isalnum() else str(value)


def _check_file(values: Values, reading: Reading) -> None:
    more = [key for key in ("owner", "contains", "lacks", "equals") if key in values.places]
    if not values["exists"] and more:
        reading.mistake(values.place(more[0]), f"`exists: false` and `{more[0]}` together")


def _build_file(values: Values, value: Value, _: Reading) -> Expectation:
    return FileExpect(
        text=f"file {values['file']} {_said(values) or 'exists'}",
        line=value.line,
        path=values["file"],
        host=values["on"],
        owner=values["owner"],
        exists=values["exists"],
        wanted=_wanted(values),
    )


FILE: Final[Record[Expectation]] = Record(
    what="an expectation of a file",
    fields=(
        Field(
            name="file",
            shape=Scalar(
                expected="an absolute path", convert=_read_absolute, json={"type": "string"}
            ),
            required=True,
            doc="File on the simulated disk, as the run leaves it.",
        ),
        Field(
            name="on",
            shape=Scalar(expected="a host", convert=_read_host, json={"type": "string"}),
            default=LOGIN,
            shown=LOGIN,
            doc="Host whose file it is, where not all share it.",
        ),
        Field(name="exists", shape=BOOLEAN, default=True, shown=True, doc="Whether it is there."),
        Field(
            name="owner",
            shape=Scalar(expected="a user", convert=_read_user, json={"type": "string"}),
            default="",
            doc="Whose it is.",
        ),
        *_OF_TEXT,
    ),
    build=_build_file,
    check=_check_file,
)


def _check_output(values: Values, reading: Reading) -> None:
    if not any(key in values.places for key in ("contains", "lacks", "equals")):
        message = "says nothing about the output; add `contains`, `lacks` or `equals`"
        reading.mistake(values.whole, message)


def _build_output(values: Values, value: Value, _: Reading) -> Expectation:
    stream = f" {values['stream']}" if "stream" in values.places else ""
    return OutputExpect(
        text=f"output {values['output']}{stream} {_said(values)}",
        line=value.line,
        job=values["output"],
        stream=values["stream"],
        wanted=_wanted(values),
    )


OUTPUT: Final[Record[Expectation]] = Record(
    what="an expectation of an output",
    fields=(
        Field(
            name="output",
            shape=_matching(_JOB, "a job id such as 1, or 1_2 for a task of an array"),
            required=True,
            doc="Batch job whose output file it is about.",
        ),
        Field(
            name="stream",
            shape=choice("stdout", "stderr"),
            default="stdout",
            shown="stdout",
            doc="Which of its files, where they are two.",
        ),
        *_OF_TEXT,
    ),
    build=_build_output,
    check=_check_output,
)


def _check_environment(values: Values, reading: Reading) -> None:
    if not any(key in values.places for key in ("has", "lacks")):
        reading.mistake(values.whole, "says nothing of the environment; add `has` or `lacks`")


def _build_environment(values: Values, value: Value, _: Reading) -> Expectation:
    task = "" if values["task"] is None else f" task {values['task']}"
    return EnvironmentExpect(
        text=f"environment {values['environment']}{task} {_said(values)}",
        line=value.line,
        step=values["environment"],
        task=values["task"],
        has=tuple(values["has"].items()),
        lacks=values["lacks"],
    )


ENVIRONMENT: Final[Record[Expectation]] = Record(
    what="an expectation of an environment",
    fields=(
        Field(
            name="environment",
            shape=_matching(_STEP, 'a step such as "1.0" or 1.batch'),
            required=True,
            doc="Step whose tasks it is about, as each executes its program.",
        ),
        Field(
            name="task",
            shape=whole("the number of a task", least=0),
            doc="One of its tasks; without it, all of them.",
        ),
        Field(
            name="has",
            shape=Table(
                item=Either(
                    expected="a text",
                    scalar=text("a text", empty=True),
                    empty=Nothing(value=None),
                ),
                expected="a mapping from names to values",
            ),
            default={},
            doc="Variables that are set, with their values, or with nothing for any value.",
        ),
        Field(name="lacks", shape=_TEXTS, default=(), doc="Variables that are not set."),
    ),
    build=_build_environment,
    check=_check_environment,
)


def check_kept(types: tuple[str, ...], reading: Reading) -> None:
    """Check that the plugins of `always` expectations are those of the cluster."""
    for plugin_type, value in reading.kept:
        if plugin_type not in types:
            used = ", ".join(types)
            reading.mistake(value, f"this cluster does not use {plugin_type}; it uses {used}")


__all__ = ["ALWAYS", "ENVIRONMENT", "FILE", "OUTPUT", "check_kept"]
