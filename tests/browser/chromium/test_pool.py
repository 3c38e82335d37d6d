"""Many environments in one process share one browser, whose death costs them no more than the episodes that were under way."""

from typing import Any

import gymnasium as gym
import pytest

from agent_gym.core import ToolCall
from agent_gym.runner import AsyncPool, Row
from tests.browser.chromium.conftest import browsers, kill_browsers

WEB = "agent_gym:AgentBase/WebTask-v0"
ENVS = 8


class Players:
    """Oracles for all environments of a pool, each of which sees what its own has shown."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._oracle: Any = gym.make(WEB, interface="text", disable_env_checker=True).unwrapped
        self._seen: list[list[Any]] = [[] for _ in range(pool.num_envs)]

    def go_on(self, row: Row) -> None:
        """Answers a row: with the next action, or with a new episode."""
        seen = self._seen[row.env_id]
        if row.kind == "reset":
            seen.clear()
        seen.append(row.observation)
        if row.done:
            self._pool.async_reset([row.env_id])
        else:
            self._pool.send([self._oracle.oracle(seen)], [row.env_id])


@pytest.mark.slow
@pytest.mark.usefixtures("needs_chromium")
def test_eight_at_once_and_a_browser_that_is_killed_among_them() -> None:
    with AsyncPool(WEB, ENVS, env_kwargs={"interface": "text", "engine": "chromium"}) as pool:
        players = Players(pool)
        pool.async_reset()
        finished, waiting = set[int](), dict[int, Row]()
        while len(waiting) < ENVS:  # until each has finished an episode, and then is in the middle of one
            for row in pool.recv():
                assert row.fault == ""
                if row.done:
                    assert row.info["success"]
                    finished.add(row.env_id)
                if row.done or row.kind == "reset" or len(finished) < ENVS:
                    players.go_on(row)
                else:
                    waiting[row.env_id] = row
        assert len(browsers()) == 1
        kill_browsers()
        pool.send([ToolCall("goto", {"url": "/"})] * ENVS, list(waiting))
        recovered: set[int] = set()
        while len(recovered) < ENVS:
            for row in pool.recv():
                if row.done and row.episode == waiting[row.env_id].episode:
                    ended = row.info["ending"], row.info["reward_valid"], row.reward, row.terminated, row.truncated
                    assert ended == ("infra_error", False, 0.0, False, True)
                elif row.done:
                    assert row.info["success"]
                    recovered.add(row.env_id)
                players.go_on(row)
        assert len(browsers()) == 1
        assert not pool.counters.restarts
