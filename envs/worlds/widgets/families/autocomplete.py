"""Autocomplete: a field that takes nothing but one of the suggestions that typing brings up a moment later."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick, some
from agent_gym.envs.worlds.widgets.words import NAMES, PLANTS

__all__ = ["WIDGET"]


def _draw(rng: np.random.Generator) -> Drawn:
    people = [f"{name} ({house} House)" for name in some(rng, NAMES, 9) for house in some(rng, PLANTS, 3)]
    person = pick(rng, people)
    return Drawn({"person": person}, person, {"people": sorted(people)})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    person = slots["person"]
    if seen.saved == person:
        return FINISH
    if seen.has(person, role="option"):
        return seen.click(person)
    if seen.value("Person") == person and not seen.shows("Save", "disabled"):
        return seen.click("Save")
    return seen.act("fill", "Person", value=person.partition(" (")[0])


WIDGET = Widget(
    name="autocomplete",
    title="Autocomplete",
    goal='Choose "{person}" among the suggestions, and save it.',
    draw=_draw,
    way=_way,
    capabilities=("write", "search"),
)
