"""Infinite list: more rows come when its end is scrolled to."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, some
from agent_gym.envs.worlds.widgets.words import NAMES, PLANTS

__all__ = ["WIDGET"]

_ROWS, _LOADED = 70, 10


def _draw(rng: np.random.Generator) -> Drawn:
    rows = some(rng, [f"{plant} room, {name}" for plant in PLANTS for name in NAMES], _ROWS)
    row = rows[int(rng.integers(_LOADED, _ROWS))]
    return Drawn({"row": row}, row, {"rows": rows, "batch": _LOADED})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    row = slots["row"]
    if seen.saved == row:
        return FINISH
    if not seen.has(row):
        return ToolCall("scroll_at", {"x": 640, "y": 360, "dx": 0, "dy": 600})  # the list is in the middle of the window
    return seen.click("Save" if seen.shows(row, "pressed") else row)


WIDGET = Widget(
    name="infinite_list",
    title="Infinite list",
    goal='Find "{row}" in the infinite list, choose it, and save it.',
    draw=_draw,
    way=_way,
    capabilities=("scroll", "search"),
)
