"""Both engines tell the same of the same pages: episodes of the oracle, and those in which one step is another candidate.

What only a browser has, and so may differ, stands in the contract, `agent_gym.browser.Page`; the pages of these worlds have none of it.
"""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import gymnasium as gym
import numpy as np
import pytest

from agent_gym.core import ToolCall
from agent_gym.core.closing import CLOSING
from agent_gym.envs.worlds import load_worlds
from agent_gym.errors import ConfigurationError
from tests.browser.chromium.conftest import kill_browsers

WEB = "agent_gym:AgentBase/WebTask-v0"
FAMILIES = [
    f"{kind.name}/{name}/{'test' if kind.holds(family, 'test') else 'transfer'}"
    for kind in load_worlds(None)
    if kind.site
    for name, family in kind.families.items()
]
EPISODES = 40
"""Over all families, but two of each at least; every second is the oracle's own. Also run by hand with 200."""


def make(engine: str, interface: str = "text") -> Any:
    return gym.make(WEB, interface=interface, disable_env_checker=True, engine=engine).unwrapped


class Pair:
    """Both engines side by side, and what says which actions are offered."""

    def __init__(self) -> None:
        self.ours, self.chromium, self.offering = make("inprocess"), make("chromium"), make("inprocess", "array")

    def play(self, task: str, number: int) -> None:
        """Plays an episode in both; in every second one step is replaced."""
        rng = np.random.default_rng(crc32(f"{task} {number}".encode()))
        options = {"task_id": f"{task}/{number}"}
        at = int(rng.integers(8)) if number % 2 else -1
        seen, told = self.ours.reset(seed=0, options=options)[0], self.chromium.reset(seed=0, options=options)[0]
        observations, calls, done = [seen], list[ToolCall](), False
        while not done:
            assert _page_of(told) == _page_of(seen), options
            call = self._another(options, calls, rng) if len(calls) == at else self.ours.oracle(observations)
            seen, reward, terminated, truncated, info = self.ours.step(call)
            told, *ends, their_info = self.chromium.step(call)
            assert (reward, terminated, truncated, info) == (*ends, their_info), (options, call)
            observations.append(seen)
            calls.append(call)
            done = terminated or truncated
        assert _page_of(told) == _page_of(seen), options
        assert self.chromium.last_record.changes == self.ours.last_record.changes

    def _another(self, options: dict[str, Any], calls: Sequence[ToolCall], rng: np.random.Generator) -> ToolCall:
        """One of the actions that are offered after some."""
        self.offering.reset(seed=0, options=options)
        for call in calls:
            if call not in self.offering.candidates:  # then one of an earlier page
                break
            self.offering.step(self.offering.candidates.index(call))
        offered: list[ToolCall] = [
            each for each in self.offering.candidates if each.name not in CLOSING and each.name != "report_infeasible"
        ]
        return offered[int(rng.integers(len(offered)))]

    def close(self) -> None:
        self.ours.close()
        self.chromium.close()
        self.offering.close()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.usefixtures("needs_chromium")
def test_both_engines_tell_the_same(family: str) -> None:
    pair = Pair()
    for number in range(max(2, EPISODES // len(FAMILIES))):
        pair.play(family, number)
    pair.close()


def _page_of(observation: dict[str, Any]) -> dict[str, Any]:
    """All of an observation but its last line, which lists the tools: a browser has more of them."""
    text, line, _ = observation["text"].rpartition("\nTools: ")
    assert line
    return {**observation, "text": text}


PROGRAM = """
import gymnasium as gym
env = gym.make("agent_gym:AgentBase/WebTask-v0", interface="text", disable_env_checker=True, engine="chromium").unwrapped
for number in range(2):
    observation, _ = env.reset(seed=0, options={"task_id": f"retail/exchange/train/{number}"})
    seen, done = [observation], False
    while not done:
        observation, _, terminated, truncated, _ = env.step(env.oracle(seen))
        seen.append(observation)
        done = terminated or truncated
    print(*(one["text"] for one in seen), sep="\\n---\\n")
env.close()
"""


@pytest.mark.slow
@pytest.mark.usefixtures("needs_chromium")
def test_two_processes_tell_the_same() -> None:

    first, second = (subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True).stdout for _ in range(2))
    assert first == second
    assert b"[1] link" in first


@pytest.mark.usefixtures("needs_chromium")
def test_pictures() -> None:
    env = gym.make(WEB, interface="text", disable_env_checker=True, engine="chromium", observation="image").unwrapped
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    image = observation["image"]
    assert (image.shape, image.dtype) == ((720, 1280, 3), np.uint8)
    assert image.std() > 10
    assert not observation["data"]["view"]["outline"]
    assert np.array_equal(env.reset(seed=0)[0]["image"], image)
    env.close()


@pytest.mark.usefixtures("needs_chromium")
def test_what_only_a_browser_has_is_offered_there_alone() -> None:
    ours, env = make("inprocess"), make("chromium")
    for each in (ours, env):
        each.reset(seed=0, options={"task_id": "retail/cancel/train/0"})
    *_, info = ours.step(ToolCall("mouse_click", {"x": 5, "y": 5}))
    assert info["status"] == "unknown_tool"
    *_, info = env.step(ToolCall("accept_dialog", {}))
    assert info["status"] == "conflict"
    *_, info = env.step(ToolCall("mouse_click", {"x": 5, "y": 5}))
    assert info["status"] == "ok"
    env.close()


@pytest.mark.usefixtures("needs_chromium")
def test_a_browser_that_dies_is_no_failure_of_the_agents() -> None:
    env = make("chromium")
    env.reset(seed=0)
    kill_browsers()
    _, reward, terminated, truncated, info = env.step(ToolCall("goto", {"url": "/"}))
    assert (info["ending"], reward, terminated, truncated, info["reward_valid"]) == ("infra_error", 0.0, False, True, False)
    env.reset(seed=0)
    assert env.step(ToolCall("goto", {"url": "/"}))[4]["status"] == "ok"
    env.close()


def test_keywords_that_do_not_fit_are_refused() -> None:
    refused: list[dict[str, Any]] = [{"engine": "firefox"}, {"observation": "image"}, {"engine": "chromium", "observation": "sound"}]
    for keywords in refused:
        with pytest.raises(ConfigurationError):
            gym.make(WEB, interface="text", disable_env_checker=True, **keywords)
