"""What the gallery's pages call: one operation that reads, one that writes."""

from typing import Any

import orjson

from agent_gym.core import ToolSpec
from agent_gym.world import Conflict, Operation, World

__all__ = ["MOST", "OPERATIONS"]

MOST = 500
"""Characters that can be saved."""

_WIDGET: dict[str, Any] = {"type": "string", "description": "The widget's name."}
_VALUE: dict[str, Any] = {"type": "string", "pattern": r'^\w[^"]*\w$', "maxLength": MOST, "x-entity": "value"}


def _look(world: World, widget: str) -> dict[str, Any]:
    record = world.get("widgets", widget)
    return {"widget": widget, "given": orjson.loads(record["given"]), "value": record["value"]}


def _keep(world: World, widget: str, value: str) -> dict[str, Any]:
    if len(value) > MOST:
        raise Conflict(f"{len(value)} characters are too many; at most {MOST} can be saved")
    world.update("widgets", widget, value=value)
    return {"widget": widget, "value": value}


def _spec(name: str, description: str, *, writes: bool = False, **properties: dict[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False},
        annotations={"readOnlyHint": not writes, "destructiveHint": writes, "idempotentHint": True, "openWorldHint": False},
        may_block=False,
    )


OPERATIONS = {
    "look": Operation(_spec("look", "What a widget shows, and what was saved in it.", widget=_WIDGET), _look),
    "keep": Operation(_spec("keep", "Saves what was set in a widget.", writes=True, widget=_WIDGET, value=_VALUE), _keep),
}
"""The operations by name."""
