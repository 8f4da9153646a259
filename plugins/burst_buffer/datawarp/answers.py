"""What the appliance answers as JSON: pools, and the sessions that there are."""

from typing import Any

import attrs

from simctl.plugins.burst_buffer.records import Pool


@attrs.frozen(kw_only=True)
class Session:
    """A buffer that the appliance has."""

    token: str
    owner: int
    size: int
    created: int
    pool: str = ""


def read_pools(found: Any) -> list[Pool]:
    """Return the pools of an answer; entries that make no sense are left out."""
    pools = []
    for entry in _entries(found, "pools"):
        granularity = max(_number(entry, "granularity"), 1)
        total = _number(entry, "quantity") * granularity
        if entry.get("id"):
            pools.append(Pool(name=str(entry["id"]), total=total, granularity=granularity))
    return pools


def read_sessions(sessions: Any, instances: Any) -> list[Session]:
    """Return the sessions of an answer, with the bytes of their instances."""
    sizes: dict[str, int] = {}
    pools: dict[str, str] = {}
    for entry in _entries(instances, "instances"):
        links, capacity = entry.get("links"), entry.get("capacity")
        session = links.get("session") if isinstance(links, dict) else entry.get("label")
        size = _number(capacity, "bytes") if isinstance(capacity, dict) else 0
        sizes[str(session)] = sizes.get(str(session), 0) + size
        pools[str(session)] = str(entry.get("pool") or "")
    found = []
    for entry in _entries(sessions, "sessions"):
        token = str(entry.get("token") or "")
        key = str(entry.get("id"))
        if token:
            found.append(
                Session(
                    token=token,
                    owner=_number(entry, "owner"),
                    size=sizes.get(key, 0) or sizes.get(token, 0),
                    created=_number(entry, "created"),
                    pool=pools.get(key, ""),
                )
            )
    return found


def _entries(found: Any, name: str) -> list[dict[str, Any]]:
    listed = found.get(name) if isinstance(found, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _number(entry: dict[str, Any], key: str) -> int:
    value = entry.get(key)
    return value if type(value) is int and value >= 0 else 0
