"""Slider: a knob of the page's own making, moved by the pointer or by arrow keys."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget

__all__ = ["WIDGET"]


def _draw(rng: np.random.Generator) -> Drawn:
    start = int(rng.integers(101))
    level = (start + int(rng.integers(1, 101))) % 101
    return Drawn({"level": str(level)}, str(level), {"level": start})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    if seen.saved == slots["level"]:
        return FINISH
    missing = int(slots["level"]) - int(seen.read(r"Level: (\d+)"))
    if missing == 0:
        return seen.click("Save")
    far, up = abs(missing) > 5, missing > 0
    key = ("PageUp" if up else "PageDown") if far else ("ArrowRight" if up else "ArrowLeft")
    return seen.act("press", "Level", key_comb=key)


WIDGET = Widget(
    name="slider",
    title="Slider",
    goal="Move the slider to {level} and save it.",
    draw=_draw,
    way=_way,
    capabilities=("keys", "count"),
)
