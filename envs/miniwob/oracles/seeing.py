"""What the scripts share: how to find an element among what is shown, and the calls that act on one."""

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from agent_gym.core import ToolCall

__all__ = [
    "Element",
    "Fields",
    "NotShown",
    "Oracle",
    "Script",
    "View",
    "Walk",
    "act",
    "all_of",
    "asked",
    "drag",
    "fill",
    "find",
    "middle",
    "number",
    "ordinal",
    "picked",
    "pressed",
    "submitted",
]

Fields = Mapping[str, str]
"""What is asked, in parts."""
View = Mapping[str, Any]
"""What a page shows: ``data["view"]`` of an observation."""
Element = Mapping[str, Any]
"""One of a view's elements."""
Script = Generator[ToolCall, View, None]
Walk = Generator[ToolCall, View, View]
"""Part of a script: what is shown at its end is what it returns."""
Oracle = Callable[[str, Fields, View], Script]
"""A script, still to be begun."""


class NotShown(LookupError):
    """The page does not show, or the goal does not say, what a script goes by: it gives up."""


def asked(pattern: str, goal: str) -> tuple[str, ...]:
    """The groups of a pattern in what is asked.

    Raises:
        NotShown: Something else is asked.
    """
    if (found := re.search(pattern, goal)) is None:
        raise NotShown(goal)
    return tuple(group or "" for group in found.groups())


def all_of(view: View, role: str = "", name: str | None = None, match: str = "") -> Iterator[Element]:
    """The elements of a role, of a name, or with a name in which a pattern is found; in document order."""
    for one in view["elements"]:
        told = one.get("name", "")
        if role in ("", one["role"]) and name in (None, told) and re.search(match, told):
            yield one


def find(view: View, role: str = "", name: str | None = None, match: str = "") -> Element:
    """The first of `all_of`.

    Raises:
        NotShown: There is none.
    """
    for one in all_of(view, role, name, match):
        return one
    raise NotShown(f"{role} {name or match}")


def act(tool: str, element: Element, **arguments: Any) -> ToolCall:
    """A call that acts on an element by its bid."""
    return ToolCall(tool, {"bid": element["bid"], **arguments})


def pressed(element: Element) -> ToolCall:
    """A click on an element."""
    return act("click", element)


def fill(element: Element, text: str) -> ToolCall:
    """The call that puts a text into a field."""
    return act("fill", element, value=text)


def middle(element: Element) -> tuple[int, int]:
    """The pixel in the middle of an element."""
    left, top, width, height = element["box"]
    return left + width // 2, top + height // 2


def drag(start: tuple[float, float], end: tuple[float, float]) -> ToolCall:
    """The call that drags what is at one pixel to another."""
    return ToolCall("mouse_drag_and_drop", {"from_x": start[0], "from_y": start[1], "to_x": end[0], "to_y": end[1]})


def number(text: str) -> int:
    """The first whole number in a text.

    Raises:
        NotShown: There is none.
    """
    return int(asked(r"(-?\d+)", text)[0])


def ordinal(goal: str) -> int:
    """The first place that is asked for, such as 3 for ``3rd``; 1 where none is."""
    return int(asked(r"(?:(\d+)(?:st|nd|rd|th)\b|$)", goal)[0] or 1)


def picked(elements: Iterable[Element], position: int) -> Element:
    """One of some elements by where it stands, counted from 1.

    Raises:
        NotShown: There are not so many.
    """
    for place, one in enumerate(elements, 1):
        if place == position:
            return one
    raise NotShown(f"number {position}")


def submitted(view: View) -> Script:
    """Pushes the last button that is shown: what sends off whatever has been entered."""
    buttons = list(all_of(view, "button"))
    if not buttons:
        raise NotShown("button")
    yield pressed(buttons[-1])
