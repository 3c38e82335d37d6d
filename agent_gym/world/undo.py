"""Taking back: the agent's last change that is not taken back yet, row by row. Any world may list it among its operations."""

import sqlite3
from typing import Any

from agent_gym.core import ToolSpec
from agent_gym.world.operations import Conflict, NotFound, Operation
from agent_gym.world.world import World

__all__ = ["UNDO"]


def _undo(world: World) -> dict[str, Any]:
    deed = world.last_deed()
    if not deed:
        raise Conflict("there is nothing to take back")
    undone: dict[tuple[str, str], None] = {}
    for change in reversed(deed):
        table = world.schema.tables[change.where]
        try:
            if _row(world, change.where, change.key) != change.after:
                raise Conflict(f"{table.key} {change.key!r} has been changed by somebody else since")
            if change.before is None:
                world.delete(table.name, change.key)
            elif change.after is None:
                world.insert(table.name, **change.before)
            else:
                world.update(table.name, change.key, **{name: value for name, value in change.before.items() if name != table.key})
        except sqlite3.IntegrityError:
            raise Conflict(f"something else depends on {table.key} {change.key!r} by now") from None
        undone[table.key, change.key] = None
    world.strike()
    return {"undone": [{column: key} for column, key in undone]}


def _row(world: World, table: str, key: str) -> dict[str, Any] | None:
    try:
        return world.get(table, key)
    except NotFound:
        return None


UNDO = Operation(
    ToolSpec(
        name="undo",
        description="Takes back your last change that is not taken back yet. A conflict if there is none, if what you did last cannot be "
        "undone, or if somebody else has since changed the same.",
        output_schema={
            "type": "object",
            "properties": {"undone": {"type": "array", "items": {"type": "object"}}},
            "required": ["undone"],
            "additionalProperties": False,
        },
        annotations={"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False},
        may_block=False,
        remote=True,
    ),
    _undo,
)
"""The operation ``undo``: rows are as they were before; logs, clock and ids go on, and a violation stays one."""
