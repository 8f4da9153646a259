"""scontrol's update, create and delete: which entity is meant."""

from simctl.commands.arguments.options import UsageError
from simctl.commands.scontrol.nodes import update_nodes
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.pairs import begins
from simctl.commands.scontrol.partitions import create_partition, delete_partition, update_partition
from simctl.commands.scontrol.reservations import (
    create_reservation,
    delete_reservation,
    update_reservation,
)
from simctl.commands.scontrol.steps import update_step
from simctl.commands.scontrol.update import update_jobs


async def update(order: Order) -> int:
    """Change what the words name: a job also where a partition or a reservation is named."""
    order.count(1)
    words = _with_entity(order.words)
    keys = [word.partition("=")[0].lower() for word in words if "=" in word]
    entities = (
        ("stepid", 4, update_step),
        ("jobid", 3, update_jobs),
        ("arrayjobid", 10, update_jobs),
        ("reservationname", 3, update_reservation),
        ("nodename", 3, update_nodes),
        ("partitionname", 3, update_partition),
    )
    for name, least, act in entities:
        if any(begins(key, name, least) for key in keys):
            return await act(order.with_words(words))
    if any(begins(key, "frontendname", 2) for key in keys):
        raise UsageError(1, "scontrol: error: update frontendname= is not simulated")
    raise UsageError(
        1,
        "No valid entity in update command",
        'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or '
        '"SlurmctldDebug"',
    )


def _with_entity(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words in which ``job 5`` stands as ``jobid=5``, and the like."""
    names = {"job": "jobid", "jobid": "jobid", "node": "nodename", "nodename": "nodename"}
    names |= {"partition": "partitionname", "partitionname": "partitionname"}
    names |= {"reservation": "reservationname", "reservationname": "reservationname"}
    names |= {"step": "stepid", "stepid": "stepid"}
    first = names.get(words[0].lower())
    if first is None:
        return words
    if len(words) > 1 and "=" not in words[1]:
        return (f"{first}={words[1]}", *words[2:])
    return words[1:] or words


async def create(order: Order) -> int:
    """Create a reservation or a partition."""
    what, words = _entity(order)
    if begins(what, "reservationname", 3):
        return await create_reservation(order, words)
    if begins(what, "partitionname", 1):
        return await create_partition(order, words)
    raise _no_entity(order, what, "creation")


async def delete(order: Order) -> int:
    """Delete a reservation or a partition."""
    order.count(1, 2)
    what, words = _entity(order)
    name = words[0].partition("=")[2] if words else ""
    if begins(what, "reservationname", 3):
        return await delete_reservation(order, name)
    if begins(what, "partitionname", 1):
        return await delete_partition(order, name)
    raise _no_entity(order, what, "deletion")


def _no_entity(order: Order, what: str, deed: str) -> UsageError:
    if what and begins(what, "nodename", 1):
        return UsageError(
            1, f"scontrol: error: {order.name} {what} is known to Slurm but not simulated yet"
        )
    return UsageError(1, f"Invalid {deed} entity: {order.words[0]}")


def _entity(order: Order) -> tuple[str, tuple[str, ...]]:
    """Return what is to be created or deleted, and the pairs that say which, or how."""
    order.count(1)
    key, equals, _ = order.words[0].partition("=")
    if equals:
        first = next(
            (
                word.partition("=")[0]
                for word in order.words
                if begins(word.partition("=")[0].lower(), "reservationname", 3)
            ),
            key,
        )
        return first.lower(), order.words
    rest = order.words[1:]
    if rest and "=" not in rest[0]:
        full = "reservationname" if begins(key.lower(), "reservationname", 3) else "partitionname"
        rest = (f"{full}={rest[0]}", *rest[1:])
    return key.lower(), rest
