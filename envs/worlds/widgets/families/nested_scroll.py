"""Nested scroll: rules in a box in a box, which must be read to their end before one can choose."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick, some
from agent_gym.envs.worlds.widgets.words import NOTES, PLANTS

__all__ = ["WIDGET"]

_PLANS, _CLAUSES = 6, 24


def _draw(rng: np.random.Generator) -> Drawn:
    plans = [f"{plant} plan" for plant in some(rng, PLANTS, _PLANS)]
    plan = pick(rng, plans)
    return Drawn({"plan": plan}, plan, {"plans": plans, "clauses": [pick(rng, NOTES) for _ in range(_CLAUSES)]})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    if seen.saved == slots["plan"]:
        return FINISH
    choice = f"Agree to the {slots['plan']}"
    if seen.shows(choice, "disabled"):
        return ToolCall("scroll_at", {"x": 640, "y": 360, "dx": 0, "dy": 700})  # the rules are in the middle of the window
    return seen.click(choice)


WIDGET = Widget(
    name="nested_scroll",
    title="Nested scroll",
    goal="Scroll to the end of the house rules and agree to the {plan}.",
    draw=_draw,
    way=_way,
    capabilities=("scroll",),
)
