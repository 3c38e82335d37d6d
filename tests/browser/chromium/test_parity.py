"""Both engines tell the same of the same pages: episodes of the oracle, and those in which one step is another candidate.

What only a browser has, and so may differ: whatever scripts, style sheets, frames and shadow roots do; dialogs; what covers what.
"""

import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from agent_gym.core import ToolCall
from agent_gym.core.closing import CLOSING
from agent_gym.errors import ConfigurationError
from tests.browser.chromium.conftest import kill_browsers

WEB = "agent_gym:AgentBase/WebTask-v0"
FAMILIES = ["cancel", "change_address", "exchange", "refuse", "who_is_it"]
EPISODES = 8
"""Of each family; every second is the oracle's own."""


def make(engine: str, interface: str = "text") -> Any:
    return gym.make(WEB, interface=interface, disable_env_checker=True, engine=engine).unwrapped


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.usefixtures("needs_chromium")
def test_both_engines_tell_the_same(family: str) -> None:
    ours, chromium, candidates = make("inprocess"), make("chromium"), make("inprocess", "array")
    for number in range(EPISODES):
        rng = np.random.default_rng(number)
        options = {"task_id": f"retail/{family}/test/{number}"}
        at = int(rng.integers(8)) if number % 2 else -1
        seen, told = ours.reset(seed=0, options=options)[0], chromium.reset(seed=0, options=options)[0]
        candidates.reset(seed=0, options=options)
        observations, done = [seen], False
        while not done:
            assert _page_of(told) == _page_of(seen), options
            offered = candidates.candidates
            call = ours.oracle(observations)
            if len(observations) == at + 1:
                call = [each for each in offered if each.name not in CLOSING and each.name != "report_infeasible"][
                    int(rng.integers(len(offered) // 2))
                ]
            seen, reward, terminated, truncated, info = ours.step(call)
            told, *ends, their_info = chromium.step(call)
            assert (reward, terminated, truncated, info) == (*ends, their_info), (options, call)
            candidates.step(offered.index(call) if call in offered else offered.index(ToolCall("noop", {})))
            observations.append(seen)
            done = terminated or truncated
        assert chromium.last_record.changes == ours.last_record.changes
    chromium.close()


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
