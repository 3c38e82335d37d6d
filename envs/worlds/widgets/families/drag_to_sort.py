"""Drag to sort: rows that are put in order by dragging one onto another's place."""

import re

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, some
from agent_gym.envs.worlds.widgets.words import PLANTS

__all__ = ["WIDGET"]

_ROWS = 4


def _draw(rng: np.random.Generator) -> Drawn:
    rows = some(rng, PLANTS, _ROWS)
    order = rows
    while order == rows:
        order = some(rng, rows, _ROWS)
    return Drawn({"order": ", ".join(order)}, ", ".join(order), {"rows": rows})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    if seen.saved == slots["order"]:
        return FINISH
    wanted = slots["order"].split(", ")
    rows = re.findall(r'^- \[\d+\] button "(\w+)"', seen.outline, re.MULTILINE)
    for row, there in zip(wanted, rows, strict=True):
        if row != there:
            return ToolCall("drag_and_drop", {"from_bid": seen.bid(row), "to_bid": seen.bid(there)})
    return seen.click("Save")


WIDGET = Widget(
    name="drag_to_sort",
    title="Drag to sort",
    goal="Drag the rows into this order, from the top, and save it: {order}.",
    draw=_draw,
    way=_way,
    capabilities=("drag", "sort"),
)
