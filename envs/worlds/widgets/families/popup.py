"""Popup: a window that the page opens, and that tells it what was chosen as it closes."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick, some

__all__ = ["WIDGET"]


def _draw(rng: np.random.Generator) -> Drawn:
    seats = sorted(some(rng, [f"{row}{letter}" for row in range(1, 10) for letter in "ABCD"], 12))
    seat = pick(rng, seats)
    return Drawn({"seat": seat}, seat, {"seats": seats})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    seat = slots["seat"]
    if seen.saved == seat:
        return FINISH
    if seen.path == "/popup/seats":
        return seen.click(f"Seat {seat}")
    return seen.click("Save" if seen.read(r"^Chosen: (.*)$") == seat else "Choose a seat")


WIDGET = Widget(
    name="popup",
    title="Popup",
    goal="Choose seat {seat} in the window that pops up, and save it.",
    draw=_draw,
    way=_way,
    capabilities=("tabs",),
)
