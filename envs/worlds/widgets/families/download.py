"""Download: a file that the page has to make ready before it can be had."""

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.widget import FINISH, Drawn, Seen, Slots, Widget, pick, some
from agent_gym.envs.worlds.widgets.words import TOPICS

__all__ = ["WIDGET"]


def _draw(rng: np.random.Generator) -> Drawn:
    files = [f"{topic}-{int(rng.integers(100, 1000))}.csv" for topic in some(rng, TOPICS, len(TOPICS))]
    file = pick(rng, files)
    return Drawn({"file": file}, file, {"files": files})


def _way(seen: Seen, slots: Slots) -> ToolCall:
    file = slots["file"]
    if seen.downloads and seen.downloads[-1].startswith(file.removesuffix(".csv")):
        return FINISH
    if seen.has(f"Download {file}"):
        return seen.click(f"Download {file}")
    return seen.click(f"Prepare {file}") if seen.has(f"Prepare {file}") else ToolCall("noop")


WIDGET = Widget(
    name="download",
    title="Download",
    goal="Download {file}.",
    draw=_draw,
    way=_way,
    capabilities=("files", "wait"),
)
