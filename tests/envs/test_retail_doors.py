"""The retail world's families through the pages: the oracle finds its way, and leaves what it leaves through the tools."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

from agent_gym.core import Ending
from agent_gym.envs.worlds.retail import RETAIL

WEB, TOOL = "agent_gym:AgentBase/WebTask-v0", "agent_gym:AgentBase/ToolTask-v0"
SPLIT = {name: "transfer" if family.transfer else "test" for name, family in RETAIL.families.items()}


@pytest.fixture(scope="module")
def doors() -> Iterator[tuple[Any, Any, Any]]:
    made = [gym.make(name, disable_env_checker=True, worlds=["retail"], interface="text").unwrapped for name in (WEB, TOOL)]
    array = gym.make(WEB, disable_env_checker=True, worlds=["retail"]).unwrapped
    yield made[0], made[1], array
    for env in (*made, array):
        env.close()


@pytest.mark.parametrize("family", SPLIT)
def test_both_doors_lead_to_the_same_changes_and_the_pages_offer_the_way(doors: tuple[Any, Any, Any], family: str) -> None:
    web, tool, array = doors
    for number in range(4):
        task_id = f"retail/{family}/{SPLIT[family]}/{number}"
        array.reset(seed=0, options={"task_id": task_id})
        changes = []
        for env in (web, tool):
            observation, info = env.reset(seed=0, options={"task_id": task_id})
            observations = [observation]
            while not info["ending"]:
                call = env.oracle(observations)
                if env is web:
                    array.step(array.candidates.index(call))
                observation, *_, info = env.step(call)
                observations.append(observation)
            assert info["ending"] == Ending.SUCCESS, (task_id, env.last_record.checks)
            changes.append(env.last_record.changes)
        assert changes[0] == changes[1], task_id
