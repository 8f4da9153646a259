"""The JSON Schema of a scenario, made from the declarations that read one."""

from typing import Any

from simctl.scenario.load import SCENARIO


def schema() -> dict[str, Any]:
    """Return the schema, draft 2020-12, for editors that complete and check scenarios.

    It says what each value looks like by itself; what refers to something else in the file, such
    as the nodes of a partition, `simctl check` alone can tell.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of simctl",
        **SCENARIO.schema(),
    }
