"""Modal: a dialog of the page, which covers everything else while it is open."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick, some
from agent_gym.envs.worlds.widgets.words import NAMES

__all__ = ["WIDGET"]

_ROLES = ("Editor", "Guest", "Owner", "Reviewer")


def _draw(rng: np.random.Generator) -> Drawn:
    before, name = some(rng, NAMES, 2)
    slots = {"name": name, "role": pick(rng, _ROLES)}
    return Drawn(slots, f"{name}, {slots['role']}", {"name": before, "roles": some(rng, _ROLES, len(_ROLES))})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    if seen.saved == f"{slots['name']}, {slots['role']}":
        return FINISH
    if not seen.has("Apply"):
        return seen.click("Edit member")
    if seen.value("Name") != slots["name"]:
        return seen.act("fill", "Name", value=slots["name"])
    if seen.value("Role") != slots["role"]:
        return seen.act("select_option", "Role", options=slots["role"])
    return seen.click("Apply")


WIDGET = Widget(
    name="modal",
    title="Modal",
    goal='In the modal set the name to "{name}" and the role to "{role}", and apply it.',
    draw=_draw,
    way=_way,
    capabilities=("write", "select"),
)
