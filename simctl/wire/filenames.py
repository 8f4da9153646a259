"""File-name patterns: ``slurm-%j.out`` and its kin."""

import re
from typing import Final

_FIELD: Final = re.compile(r"%(?:%|(\d*)([AajJNnsStux]))")


def fill_in(
    pattern: str,
    *,
    job_id: int,
    user: str,
    job_name: str,
    node: str,
    step: str = "batch",
    rank: int = 0,
    nodeid: int = 0,
    array_job_id: int = 0,
    array_task_id: int = 4294967294,
) -> str:
    r"""Replace the fields of a pattern for standard output or error.

    `%j` is the job id, `%A` that of its array or else the same, `%a` the array task (4294967294
    outside an array), `%J` the job and step, `%s` the step, `%N` the node's name, `%n` its number
    in the step, `%t` the rank, `%u` the user, `%x` the job's name, `%%` a percent sign; a number
    between pads with zeros. A backslash anywhere keeps the pattern as it is, without its
    backslashes.
    """
    if "\\" in pattern:
        return pattern.replace("\\", "")
    values: dict[str, str | int] = {
        "A": array_job_id or job_id,
        "a": array_task_id,
        "j": job_id,
        "J": f"{job_id}.{step}" if step != "batch" else str(job_id),
        "N": node,
        "n": nodeid,
        "s": step,
        "S": step,
        "t": rank,
        "u": user,
        "x": job_name,
    }

    def replace(match: re.Match[str]) -> str:
        if match[2] is None:
            return "%"
        value = values[match[2]]
        return (
            str(value).zfill(int(match[1])) if match[1] and isinstance(value, int) else str(value)
        )

    return _FIELD.sub(replace, pattern)
