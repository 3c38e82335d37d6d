"""The closing tools, which exist in every domain: how an agent says that it is done, will not, or cannot."""

import functools
from collections.abc import Sequence

from agent_gym.core.tool import ToolSpec

__all__ = ["CLOSING", "OWN", "closing_tools"]

CLOSING = ("finish", "refuse", "hand_over")
"""The names of the closing tools."""
OWN = (*CLOSING, "wait")
"""The names of the tools that every environment has of itself; no call of them says anything about a domain's tools."""

_HAND_OVER_REASONS = ("missing_information", "missing_permission", "beyond_the_tools")


def closing_tools(reasons: Sequence[str]) -> tuple[ToolSpec, ...]:
    """The three closing tools.

    Args:
        reasons: The reasons that ``refuse`` takes in this domain.
    """
    return _closing_tools(tuple(reasons))


@functools.lru_cache(maxsize=64)
def _closing_tools(reasons: tuple[str, ...]) -> tuple[ToolSpec, ...]:
    """The same; each made once, so that its schema is encoded once."""
    return (
        ToolSpec(
            name="finish",
            description="Say that the task is done. Give an answer only if the task asks for one.",
            parameters=_object({"answer": {"type": "string", "maxLength": 2_000}}, []),
        ),
        ToolSpec(
            name="refuse",
            description="Refuse the task because a rule forbids it. Read the record that shows so first.",
            parameters=_object({"reason": {"type": "string", "enum": list(reasons)}}, ["reason"]),
        ),
        ToolSpec(
            name="hand_over",
            description="Hand the task over to a person.",
            parameters=_object({"reason": {"type": "string", "enum": list(_HAND_OVER_REASONS)}}, ["reason"]),
        ),
    )


def _object(properties: dict[str, object], required: list[str]) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
