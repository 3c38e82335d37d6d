"""Native select: two of them, where the first decides what the second offers."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick
from agent_gym.envs.worlds.widgets.words import PLACES

__all__ = ["WIDGET"]


def _draw(rng: np.random.Generator) -> Drawn:
    country = pick(rng, list(PLACES))
    slots = {"country": country, "city": pick(rng, PLACES[country])}
    return Drawn(slots, f"{slots['city']}, {country}", {"places": PLACES})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    if seen.saved == f"{slots['city']}, {slots['country']}":
        return FINISH
    for label, slot in (("Country", "country"), ("City", "city")):
        if seen.value(label) != slots[slot]:
            return seen.act("select_option", label, options=slots[slot])
    return seen.click("Save")


WIDGET = Widget(
    name="native_select",
    title="Native select",
    goal='Select the city "{city}" in the country "{country}", and save it.',
    draw=_draw,
    way=_way,
    capabilities=("select",),
)
