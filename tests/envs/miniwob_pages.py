"""What every page of MiniWoB++ shows for one seed, a line a page: run as a program, to be compared with what another process sees."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from agent_gym.browser.chromium.episode import Episode
from agent_gym.browser.chromium.tab import Tab
from agent_gym.core import ToolCall
from agent_gym.envs.miniwob import MiniWoB

__all__ = ["COMPLAINTS", "shown"]

COMPLAINTS: list[str] = []
"""What pages have complained of: errors of scripts, on the console, and of requests."""
_watch = Episode._watch


def _listen(self: Episode, tab: Tab) -> None:
    _watch(self, tab)
    page: Any = tab.page
    page.on("pageerror", lambda error: COMPLAINTS.append(str(error)))
    page.on("console", lambda said: COMPLAINTS.append(said.text) if said.type == "error" else None)
    page.on("requestfailed", lambda request: COMPLAINTS.append(f"failed: {request.url}"))
    page.on("response", lambda response: COMPLAINTS.append(f"{response.status}: {response.url}") if response.status >= 400 else None)


def shown(pages: Sequence[str], seed: int) -> Iterator[tuple[str, str, str]]:
    """Of each page: its name, what it asks, and a digest of what it shows at first and after a step."""
    Episode._watch = _listen  # type: ignore[method-assign]
    env = MiniWoB()
    for page in pages or env.tasks.families("train"):
        observation, _ = env.reset(seed=0, options={"task_id": f"miniwob/{page}/train-{seed}"})
        goal = observation["data"]["goal"]
        said = hashlib.sha256(orjson.dumps(observation))
        observation, _, _, _, info = env.step(ToolCall("noop"))
        said.update(orjson.dumps(observation))
        if info["ending"]:
            COMPLAINTS.append(f"{page} ended as {info['ending']!r} by doing nothing")
        yield page, goal, said.hexdigest()
    env.close()
    Episode._watch = _watch  # type: ignore[method-assign]


if __name__ == "__main__":
    for line in shown(sys.argv[2:], int(sys.argv[1])):
        print("\t".join(line), flush=True)
    sys.exit("\n".join(COMPLAINTS) or None)
