"""Short forms for writing down the tools of a world: JSON Schemas of their parameters and results."""

from collections.abc import Mapping
from typing import Any

from agent_gym.core import ToolSpec

__all__ = ["TEXT", "TEXTS", "WHOLE", "choice", "entities", "record", "rows", "shaped", "tool"]

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
WHOLE: Schema = {"type": "integer"}


def choice(values: Mapping[str, Any] | tuple[str, ...]) -> Schema:
    """One of a few words."""
    return {"type": "string", "enum": list(values)}


def shaped(patterns: Mapping[str, str]) -> dict[str, Schema]:
    """Texts of these patterns, by kind."""
    return {kind: {"type": "string", "pattern": pattern} for kind, pattern in patterns.items()}


def entities(patterns: Mapping[str, str]) -> dict[str, Schema]:
    """Parameters that name things of these kinds, by what their ids or names look like: filled in with those that were seen."""
    return {kind: {**schema, "x-entity": kind} for kind, schema in shaped(patterns).items()}


def record(optional: Mapping[str, Schema] | None = None, /, **required: Schema) -> Schema:
    """An object with exactly these fields."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def rows(**properties: Schema) -> Schema:
    """A list of objects with exactly these fields."""
    return {"type": "array", "items": record(**properties)}


def tool(name: str, description: str, parameters: Schema, result: Schema, *, writes: bool = False, destroys: bool = False) -> ToolSpec:
    """A tool of a world's service, which can fail by itself.

    Args:
        name: Its name, that of the operation.
        description: What it does, its preconditions included.
        parameters: A `record`.
        result: A `record`.
        writes: Whether it changes anything.
        destroys: Whether what it changes is hard to put back.
    """
    hints = {"readOnlyHint": not writes, "destructiveHint": destroys, "idempotentHint": not writes, "openWorldHint": False}
    return ToolSpec(
        name=name,
        description=description,
        parameters=parameters,
        output_schema=result,
        annotations=hints,
        may_block=False,
        remote=True,
    )
