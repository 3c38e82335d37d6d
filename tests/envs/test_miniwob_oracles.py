"""The oracles of MiniWoB: each solves its page, whatever the seed, from nothing but what is shown."""

from collections.abc import Iterator
from typing import Any

import pytest

from agent_gym.core import ToolCall
from agent_gym.envs.miniwob import MiniWoB
from agent_gym.envs.miniwob.oracles import ORACLES

pytestmark = pytest.mark.usefixtures("needs_miniwob")


@pytest.fixture(scope="module")
def env() -> Iterator[MiniWoB]:
    env = MiniWoB()
    yield env
    env.close()


def _play(env: MiniWoB, task_id: str, *first: ToolCall) -> tuple[float, dict[str, Any]]:
    """The reward and the last info of an episode that the oracle plays once some actions have been done."""
    observation, info = env.reset(seed=0, options={"task_id": task_id})
    seen, reward = [observation], 0.0
    over = False
    while not over:
        call = first[len(seen) - 1] if len(seen) <= len(first) else env.oracle(seen)
        observation, reward, terminated, truncated, info = env.step(call)
        seen.append(observation)
        over = terminated or truncated
    return reward, info


@pytest.mark.slow
@pytest.mark.parametrize("page", ORACLES)
def test_every_oracle_solves_its_page(env: MiniWoB, page: str) -> None:
    for split, number in (("train", 1), ("test", 0)):
        reward, info = _play(env, f"miniwob/{page}/{split}-{number}")
        assert (info["success"], info["ending"], reward) == (True, "success", 1.0)


def test_an_oracle_begins_anew_where_something_else_was_done(env: MiniWoB) -> None:
    astray = (ToolCall("mouse_click", {"x": 150, "y": 200}), ToolCall("click", {"bid": "999"}))
    for page in ("click-tab-2-hard", "use-slider"):
        assert _play(env, f"miniwob/{page}/test-1", *astray)[1]["success"]


def test_an_oracle_that_no_longer_sees_its_way_gives_up(env: MiniWoB) -> None:
    observation, _ = env.reset(seed=0, options={"task_id": "miniwob/email-inbox-reply/test-0"})
    other = next(one for one in observation["data"]["view"]["elements"] if one["role"] == "generic" and one["name"] == "Brigit")
    assert "Brigit" not in observation["data"]["goal"]
    after, *_ = env.step(ToolCall("click", {"bid": other["bid"]}))
    assert env.oracle([observation, after]) == ToolCall("finish")


def test_most_pages_have_an_oracle(env: MiniWoB) -> None:
    pages = env.tasks.families("test")
    assert set(ORACLES) <= set(pages)
    assert len(ORACLES) >= 100
    kinds = {page: env.tasks.get(f"miniwob/{page}/test-0").oracle_kind for page in pages}
    assert {page for page, kind in kinds.items() if kind == "observational"} == set(ORACLES)
