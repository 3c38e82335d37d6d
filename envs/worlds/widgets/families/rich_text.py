"""Rich text: an editor whose buttons set what is selected in it."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick
from agent_gym.envs.worlds.widgets.words import NOTES

__all__ = ["WIDGET"]

_STYLES = ("bold", "italic", "underline")


def _draw(rng: np.random.Generator) -> Drawn:
    slots = {"text": pick(rng, NOTES), "style": pick(rng, _STYLES)}
    return Drawn(slots, f"{slots['style']}: {slots['text']}", {"text": "Type here"})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    text, button = slots["text"], slots["style"].capitalize()
    if seen.saved == f"{slots['style']}: {text}":
        return FINISH
    if seen.value("Text") != text:
        return seen.act("fill", "Text", value=text)
    if seen.shows(button, "pressed"):
        return seen.click("Save")
    if seen.read(r"Selected: (\d+)") != str(len(text)):
        return seen.act("press", "Text", key_comb="Control+A")
    return seen.click(button)


WIDGET = Widget(
    name="rich_text",
    title="Rich text",
    goal='Write "{text}" in the rich text editor in place of what is there, all of it in {style}, and save it.',
    draw=_draw,
    way=_way,
    capabilities=("write", "keys"),
)
