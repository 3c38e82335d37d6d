"""Shadow root: an element of the page's own, with another inside it."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick
from agent_gym.envs.worlds.widgets.words import NOTES, PLANTS

__all__ = ["WIDGET"]


def _draw(rng: np.random.Generator) -> Drawn:
    slots = {"stars": str(rng.integers(2, 6)), "remark": pick(rng, NOTES)}
    return Drawn(slots, f"{slots['stars']} stars, {slots['remark']}", {"room": f"{pick(rng, PLANTS)} room"})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    stars = f"{slots['stars']} stars"
    if seen.saved == f"{stars}, {slots['remark']}":
        return FINISH
    if not seen.shows(stars, "pressed"):
        return seen.click(stars)
    if seen.value("Remark") != slots["remark"]:
        return seen.act("fill", "Remark", value=slots["remark"])
    return seen.click("Save")


WIDGET = Widget(
    name="shadow_root",
    title="Shadow root",
    goal='Give the room {stars} stars with the remark "{remark}", and save it.',
    draw=_draw,
    way=_way,
    capabilities=("write",),
)
