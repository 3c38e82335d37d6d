"""Finding the element of a page again after its number has changed: by its role and its name, and which of those it is."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_gym.core.action import ToolCall
from agent_gym.core.tool import ToolSpec

__all__ = ["LostElement", "translated"]


class LostElement(Exception):
    """What a recorded action was done to is not there any more.

    Args:
        call: The recorded call.
        role: The element's role; empty where the recorded page has no such element.
        name: Its name.
        nth: Which of those of that role and name it was, from 1.
        found: How many there are now.
    """

    def __init__(self, call: ToolCall, role: str, name: str, nth: int, found: int) -> None:
        which = f"{role} {name!r}, number {nth} of its kind" if role else "an element that the recorded page does not list"
        super().__init__(f"{call} was done to {which}; the page has {found} of them now")


def translated(call: ToolCall, tools: Sequence[ToolSpec], recorded: Mapping[str, Any], now: Mapping[str, Any]) -> ToolCall:
    """A recorded call in terms of the page as it is now.

    Args:
        call: The call. Arguments that name elements are those that its tool declares as ``"x-entity": "bid"``.
        tools: The tools on offer.
        recorded: The data of the recorded observation before it.
        now: The data of the observation now.

    Raises:
        LostElement: There is no such element now.
    """
    spec = next((tool for tool in tools if tool.name == call.name), None)
    properties = {} if spec is None else spec.parameters.get("properties", {})
    naming = [name for name, schema in properties.items() if schema.get("x-entity") == "bid" and name in call.arguments]
    before, after = _elements(recorded), _elements(now)
    arguments = {name: _again(call, str(call.arguments[name]), before, after) for name in naming}
    return ToolCall(call.name, {**call.arguments, **arguments})


def _elements(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    view = data.get("view")
    elements = view.get("elements") if isinstance(view, Mapping) else None
    return elements if isinstance(elements, list) else ()


def _again(call: ToolCall, bid: str, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> str:
    meant = next((element for element in before if element["bid"] == bid), None)
    if meant is None:  # it was a mistake then; it is to be one now
        if any(element["bid"] == bid for element in after):
            raise LostElement(call, "", "", 0, 0)
        return bid
    kind = meant["role"], meant["name"]
    nth = [element["bid"] for element in before if (element["role"], element["name"]) == kind].index(bid)
    alike = [str(element["bid"]) for element in after if (element["role"], element["name"]) == kind]
    if nth >= len(alike):
        raise LostElement(call, *kind, nth + 1, len(alike))
    return alike[nth]
