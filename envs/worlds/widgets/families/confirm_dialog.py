"""Confirm dialog: the browser asks whether, and then why."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick, some
from agent_gym.envs.worlds.widgets.words import REASONS, TOPICS

__all__ = ["WIDGET"]


def _draw(rng: np.random.Generator) -> Drawn:
    files = [f"{topic} {int(rng.integers(2010, 2026))}" for topic in some(rng, TOPICS, 5)]
    slots = {"file": pick(rng, files), "reason": pick(rng, REASONS)}
    return Drawn(slots, f"{slots['file']}: {slots['reason']}", {"files": files})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    if seen.saved == f"{slots['file']}: {slots['reason']}":
        return FINISH
    if not seen.dialog:
        return seen.click(f"Delete {slots['file']}")
    if slots["file"] not in seen.outline:
        return ToolCall("dismiss_dialog")
    return ToolCall("accept_dialog", {"text": slots["reason"]} if seen.outline.startswith("! prompt") else {})


WIDGET = Widget(
    name="confirm_dialog",
    title="Confirm dialog",
    goal='Delete the file "{file}", and when asked give the reason "{reason}".',
    draw=_draw,
    way=_way,
    capabilities=("dialog",),
)
