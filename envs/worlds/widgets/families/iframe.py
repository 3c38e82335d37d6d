"""Iframe: a form in a frame, which tells the page around it what was chosen."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick
from agent_gym.envs.worlds.widgets.words import NOTES

__all__ = ["WIDGET"]

_SPEEDS = ("Express", "Night", "Standard")


def _draw(rng: np.random.Generator) -> Drawn:
    slots = {"speed": pick(rng, _SPEEDS), "note": pick(rng, NOTES)}
    return Drawn(slots, f"{slots['speed']}: {slots['note']}", {"speeds": _SPEEDS})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    wanted = f"{slots['speed']}: {slots['note']}"
    if seen.saved == wanted:
        return FINISH
    if seen.read(r"^Chosen: (.*)$") == wanted:
        return seen.click("Save")
    if not seen.shows(slots["speed"], "checked"):
        return seen.act("check", slots["speed"])
    if seen.value("Note") != slots["note"]:
        return seen.act("fill", "Note", value=slots["note"])
    return seen.click("Use this")


WIDGET = Widget(
    name="iframe",
    title="Iframe",
    goal='In the frame choose "{speed}" delivery with the note "{note}" and use this; then save it.',
    draw=_draw,
    way=_way,
    capabilities=("write", "select"),
)
