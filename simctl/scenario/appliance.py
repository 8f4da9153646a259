"""Read `burst_buffer`: the simulated appliance behind burst buffer plugins."""

from typing import Any, Final

import attrs

from simctl.appliance.spec import (
    FOREVER_US,
    FUNCTIONS,
    ApplianceSpec,
    FunctionSpec,
    PoolSpec,
)
from simctl.kernel.pattern import near
from simctl.scenario.durations import parse_duration_us
from simctl.scenario.positions import Reading, Value
from simctl.scenario.programs import PROGRAM
from simctl.scenario.scalars import BOOLEAN, size, text
from simctl.scenario.shapes import (
    Built,
    Either,
    Field,
    Items,
    Nothing,
    Record,
    Scalar,
    Table,
    Values,
)


def _read_runs(value: Value, _: Reading) -> int:
    return FOREVER_US if value.scalar == "forever" else parse_duration_us(value.scalar)


def _check_pool(values: Values, reading: Reading) -> None:
    capacity, granularity = values["capacity"], values["granularity"]
    if capacity and granularity > capacity:
        message = "the pool is smaller than one granule, so that nothing could ever be granted"
        reading.mistake(values.place("granularity"), message)


_POOL: Final[Record[PoolSpec]] = Record(
    what="a pool",
    fields=(
        Field(
            name="capacity",
            shape=size("a size such as 1TiB", least=0),
            required=True,
            doc="How many bytes it has.",
        ),
        Field(
            name="granularity",
            shape=size("a size above 0 such as 1GiB", least=1),
            default=PoolSpec().granularity,
            shown="1GiB",
            doc="Of how many bytes each grant is a multiple.",
        ),
    ),
    build=lambda values, _value, _reading: PoolSpec(**values),
    check=_check_pool,
)


def _check_pool_name(name: str) -> None:
    if not name or any(character.isspace() or character in ":,=" for character in name):
        raise ValueError(f"{name!r} cannot be a pool: requests name it in one word, without `:`")


def _build_pools(pools: dict[str, PoolSpec], value: Value, reading: Reading) -> Any:
    if not value.node.value:
        raise reading.refuse(value, "expected pools such as {wlm_pool: {capacity: 1TiB}}")
    return tuple(attrs.evolve(pool, name=name) for name, pool in pools.items())


_AS_PROGRAMS: Final = {field.name: field for field in PROGRAM.fields}


def _check_function(values: Values, reading: Reading) -> None:
    if "exit" in values.places and "signal" in values.places:
        message = "`exit` and `signal` together: a function ends in one way"
        reading.mistake(values.place("signal"), message)


def _build_function(values: Values, _: Value, __: Reading) -> FunctionSpec:
    return FunctionSpec(
        runs_us=values["runs"],
        exit=values["exit"],
        signal=values["signal"],
        output=values["output"],
        token=values["job"],
    )


_FUNCTION: Final[Record[FunctionSpec]] = Record(
    what="a function of the appliance",
    fields=(
        Field(
            name="runs",
            shape=Scalar(
                expected="a length of time such as 30s, or forever",
                convert=_read_runs,
                json={"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]},
            ),
            doc="How long it takes beyond moving bytes; as long as usual if left out.",
        ),
        _AS_PROGRAMS["exit"],
        _AS_PROGRAMS["signal"],
        Field(
            name="output",
            shape=text("a text", empty=True),
            default="",
            doc="What it writes: why it fails, or more than it writes by itself.",
        ),
        Field(
            name="job",
            shape=text("a job id, or the name of a persistent buffer"),
            default="",
            doc="The one job, or persistent buffer, that it is so for; all if left out.",
        ),
    ),
    build=_build_function,
    check=_check_function,
)


def _check_function_name(name: str) -> None:
    if name not in FUNCTIONS:
        hint = near(name, FUNCTIONS) or f"; there are {', '.join(FUNCTIONS)}"
        raise ValueError(f"the appliance has no function {name!r}{hint}")


_FUNCTIONS: Final[Table[Any]] = Table(
    expected="names of functions with how they go",
    check_key=_check_function_name,
    item=Either(
        expected="how the function goes, such as {runs: 5s, exit: 1}",
        mapping=Built(shape=_FUNCTION, build=lambda one, _value, _reading: (one,)),
        sequence=Items(item=_FUNCTION, expected="a list of calls", least=1),
        empty=Nothing(value=()),
    ),
)
APPLIANCE: Final[Record[ApplianceSpec]] = Record(
    what="the burst buffer appliance",
    fields=(
        Field(
            name="pools",
            shape=Built(
                shape=Table(
                    item=_POOL,
                    expected="names of pools with their capacity",
                    check_key=_check_pool_name,
                ),
                build=_build_pools,
            ),
            doc="Its pools; one called wlm_pool, of 1TiB in granules of 1GiB, if left out.",
        ),
        Field(
            name="bandwidth",
            shape=size("a size above 0 such as 10GiB", least=1),
            doc="Bytes a second, shared by all stages under way; without it they take fixed times.",
        ),
        Field(
            name="data",
            shape=Table(
                item=size("a size such as 40GiB", least=0),
                expected="paths with the size of what is staged",
            ),
            doc="How much there is to stage, by the path that a job's script names.",
        ),
        Field(name="functions", shape=_FUNCTIONS, doc="How long functions take and how they end."),
        Field(name="up", shape=BOOLEAN, shown=True, doc="Whether it answers."),
    ),
    build=lambda values, _value, _reading: ApplianceSpec(**values),
)


def change_text(value: Value) -> str:
    """Describe in a few words what a timeline changes about the appliance."""
    names = ", ".join(str(key.value) for key, _ in value.node.value)
    up = next((node.value for key, node in value.node.value if key.value == "up"), "")
    return f"{names}: {up}" if up and names == "up" else names
