"""Toast: a message that is gone a moment later, with what must be remembered."""

import re

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget

__all__ = ["WIDGET"]


def _draw(rng: np.random.Generator) -> Drawn:
    code = f"{int(rng.integers(100, 1000))}-{int(rng.integers(100, 1000))}"
    return Drawn({}, code, {"code": code})


def _way(seen: Seen, slots: Slots) -> ToolCall:  # noqa: ARG001 - the goal says nothing of the code
    told = re.search(r"Your code is ([\d-]+)", "\n".join(seen.outlines))
    if told is None:
        return seen.click("Show the code")
    if seen.saved == told[1]:
        return FINISH
    return seen.click("Save") if seen.value("Code") == told[1] else seen.act("fill", "Code", value=told[1])


WIDGET = Widget(
    name="toast",
    title="Toast",
    goal="Have the code shown, and save that code.",
    draw=_draw,
    way=_way,
    capabilities=("remember",),
)
