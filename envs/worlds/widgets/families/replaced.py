"""Replaced: buttons that the page makes anew while they are pressed, so that the first press is lost."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick, some
from agent_gym.envs.worlds.widgets.words import PLANTS

__all__ = ["WIDGET"]


def _draw(rng: np.random.Generator) -> Drawn:
    choices = some(rng, PLANTS, 8)
    choice = pick(rng, choices)
    return Drawn({"choice": choice}, choice, {"choices": choices})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    choice = slots["choice"]
    if seen.saved == choice:
        return FINISH
    return seen.click("Save" if seen.shows(choice, "pressed") else choice)


WIDGET = Widget(
    name="replaced",
    title="Replaced while acting",
    goal='Choose "{choice}" among the buttons that are replaced as they are pressed, and save it.',
    draw=_draw,
    way=_way,
    capabilities=("retry",),
)
