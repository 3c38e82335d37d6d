"""How much of a page a snapshot shows: all of it, or of a long one the part that is scrolled to."""

import re
from typing import NamedTuple

import orjson

from agent_gym.browser.snapshot import Element

__all__ = ["LINE_PX", "Window", "window"]

LINE_PX = 20.0
"""Pixels of scrolling that a line of an outline counts for."""
_MOST_OUTLINE = 12_000
"""Bytes of an outline. An environment's observation has it as text too."""
_MOST = 40_000
"""Bytes of JSON that outline and elements take together."""
_SMALL, _FEW = 5_000, 30
"""Bytes of an outline and elements that fit without being measured: what an element has beside the outline is bounded."""
_BRACKET = re.compile(r"(?<!\\)\[(\d+)\]")


class Window(NamedTuple):
    """The part of a page that is shown.

    Attributes:
        outline: Its lines.
        elements: The elements in them.
        note: Which part it is, if there is more.
    """

    outline: str
    elements: tuple[Element, ...]
    note: str = ""


def window(outline: str, elements: tuple[Element, ...], scrolled: float) -> Window:
    """The part of a page that a snapshot shows.

    Args:
        outline: All of its outline.
        elements: All of its elements.
        scrolled: Pixels that it was scrolled by.
    """
    size = len(outline.encode())
    if size <= _SMALL and len(elements) <= _FEW:
        return Window(outline, elements)
    if size <= _MOST_OUTLINE and len(orjson.dumps((outline, elements))) <= _MOST:
        return Window(outline, elements)
    lines = outline.split("\n")
    first = min(int(scrolled / LINE_PX), len(lines) - 1)
    by_bid = {element.bid: element for element in elements}
    outline_room, room, last = _MOST_OUTLINE, _MOST, first
    seen: list[Element] = []
    for line in lines[first:]:
        there = [by_bid[bid] for bid in _BRACKET.findall(line) if bid in by_bid]
        outline_room -= len(line.encode()) + 1
        room -= len(orjson.dumps((line, [vars(element) for element in there])))
        if last > first and (outline_room < 0 or room < 0):
            break
        seen += there
        last += 1
    note = f"the page is too long to show at once: these are lines {first + 1} to {last} of {len(lines)}; scroll to see others"
    return Window("\n".join(lines[first:last]), tuple(seen), note)
