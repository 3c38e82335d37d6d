"""Operations of a world: plain functions on it, what may go wrong in them, and how one is carried out as a tool call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from agent_gym.core import ToolResult, ToolSpec
from agent_gym.core.canonical import digest
from agent_gym.errors import AgentGymError

if TYPE_CHECKING:
    from agent_gym.world.world import World

__all__ = ["Conflict", "DeadlinePassed", "NotFound", "Operation", "OperationFailed", "carry_out"]


class OperationFailed(AgentGymError):
    """An operation could not be done, for a reason of the business; nothing has changed. The message is for the caller."""

    status: ClassVar[str] = "error"


class NotFound(OperationFailed):
    """What was named does not exist."""

    status = "not_found"


class Conflict(OperationFailed):
    """A precondition does not hold."""

    status = "conflict"


class DeadlinePassed(OperationFailed):
    """The operation was stopped at its deadline or interrupted; nothing has changed."""

    status = "timeout"


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        spec: What is known of it before it is called. It writes unless its annotations say ``readOnlyHint``.
        run: ``run(world, **arguments)`` gives the result, a JSON object. It is called inside a transaction.
        listing: The field of the result whose being an empty list makes the status ``empty``, or nothing.
        final: Whether it cannot be taken back, and nothing that was done before it either.
    """

    spec: ToolSpec
    run: Callable[..., dict[str, Any]]
    listing: str = ""
    final: bool = False


def carry_out(
    world: "World", operation: Operation, arguments: Mapping[str, Any], deadline: float, key: str = "", *, trial: bool = False
) -> ToolResult:
    """Carries out an operation as one transaction.

    Args:
        world: The world.
        operation: The operation.
        arguments: Arguments that fit its schema.
        deadline: Seconds of `time.monotonic` at which it is stopped.
        key: Names the write that this is a try of, or empty: see `World.ledger`. An operation that only reads needs none.
        trial: Undo everything at the end: the result is what it would give. Leaves the key alone.

    Returns:
        Its result. What the business refuses is a status.
    """
    if key and not operation.spec.read_only and not trial:
        payload = digest([operation.spec.name, arguments])
        return world.ledger.once(key, payload, lambda: carry_out(world, operation, arguments, deadline))
    try:
        with world.transaction(deadline, trial=trial, deed=True):
            result = operation.run(world, **arguments)
            if operation.final:
                world.seal()
    except OperationFailed as error:
        return ToolResult(status=error.status, content=str(error))
    status = "empty" if operation.listing and not result[operation.listing] else "ok"
    return ToolResult(status=status, content=orjson.dumps(result).decode(), structured=result)
