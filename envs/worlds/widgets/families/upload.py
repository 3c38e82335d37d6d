"""Upload: one of the files that the episode offers, sent by a script."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick
from agent_gym.envs.worlds.widgets.words import TOPICS

__all__ = ["FILES", "WIDGET"]

_YEARS = (2023, 2024, 2025)
FILES = {f"{topic}-{year}.txt": f"The {topic} of {year}".encode() for topic in TOPICS for year in _YEARS}
"""What can be uploaded, by name."""


def _draw(rng: np.random.Generator) -> Drawn:
    topic, year = pick(rng, TOPICS), pick(rng, _YEARS)
    name = f"{topic}-{year}.txt"
    return Drawn({"topic": topic, "year": str(year)}, f"{name}: {FILES[name].decode()}", {"names": list(FILES)})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    name = f"{slots['topic']}-{slots['year']}.txt"
    if seen.saved.startswith(f"{name}: "):
        return FINISH
    if seen.value("File") != name:
        return seen.act("upload_file", "File", file=name)
    return seen.click("Send")


WIDGET = Widget(
    name="upload",
    title="Upload",
    goal="Upload the file about the {topic} of {year}.",
    draw=_draw,
    way=_way,
    capabilities=("files",),
)
