"""ToolTask as an environment: the oracle through the front door, its candidates, its page."""

import gc
import inspect
from typing import Any

import pytest

from agent_gym.core import Ending, ToolCall
from agent_gym.envs.tool_task import ToolTask
from agent_gym.envs.worlds import WORLDS, load_worlds
from agent_gym.errors import ConfigurationError
from agent_gym.interface import ArrayInterface

FAMILIES = ["retail/cancel", "retail/change_address", "retail/exchange", "retail/refuse", "retail/who_is_it"]


@pytest.fixture
def env() -> Any:
    made = ToolTask()
    yield made
    made.close()
    made.clear_caches()
    gc.collect()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracles_calls_are_candidates_among_others_and_solve_the_task(env: ToolTask, family: str) -> None:
    sizes = []
    interface = ArrayInterface(env)
    for split in (split for split in env.tasks.splits() if family in env.tasks.families(split)):
        for task_id in list(env.tasks.ids(split, family))[:10]:
            _, info = interface.reset(seed=1, options={"task_id": task_id})
            observations, total, over = [env.observation.to_dict()], 0.0, False
            while not over:
                offered = interface.candidates
                assert set(info["gaps"]) <= {"candidates_cut"}
                sizes.append(len(offered))
                _, reward, terminated, truncated, info = interface.step(offered.index(env.oracle(observations)))
                total, over = total + reward, terminated or truncated
                observations.append(env.observation.to_dict())
            assert (info["ending"], total, info["task_type"]) == (Ending.SUCCESS, 1.0, family)
    assert min(sizes) > 10
    assert max(sizes) <= 64


def test_the_oracle_takes_over_after_foreign_steps(env: ToolTask) -> None:
    for family in FAMILIES:
        task_id = env.tasks.ids("test", family)[3]
        observations = [env.reset(seed=1, options={"task_id": task_id})[0]]
        for action in (
            ToolCall("list_products", {"category": "home"}),
            "nonsense",
            {"name": "get_user", "arguments": {"user_id": "U0000000"}},
        ):
            observations.append(env.step(action)[0])
        for _ in range(10):
            observation, reward, terminated, _, _ = env.step(env.oracle(observations))
            observations.append(observation)
            if terminated:
                break
        assert reward == 1.0


def test_state_round_trip(env: ToolTask) -> None:
    observations = [env.reset(seed=5)[0]]
    for _ in range(2):
        observations.append(env.step(env.oracle(observations))[0])
    state = env.get_state()
    assert state["kind"] == "snapshot"
    call = env.oracle(observations)
    first = env.step(call)
    env.set_state(state)
    assert env.step(call) == first


def test_worlds_are_chosen_by_name() -> None:
    env = ToolTask(worlds=["retail"], families=["cancel"])
    assert env.reset(seed=0)[1]["task_type"] == "retail/cancel"
    env.close()
    env.clear_caches()
    with pytest.raises(ConfigurationError, match=r"unknown world 'hotel'; known: .*retail"):
        ToolTask(worlds=["hotel"])
    with pytest.raises(ConfigurationError, match="at least one world"):
        ToolTask(worlds=[])
    assert list(WORLDS)[:2] == ["retail", "workspace"]


def test_an_oracle_says_when_it_cannot_read_a_goal(env: ToolTask) -> None:
    with pytest.raises(ConfigurationError, match="no oracle can read"):
        env.oracle([{"data": {"goal": "Paint the sky.", "last": None}}])


def test_its_docstring_is_its_page(env: ToolTask) -> None:
    page = inspect.getdoc(ToolTask) or ""
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    assert headings == ["Description", "Observation", "Actions", "Reward", "Endings", "Tasks", "Versions"]
    assert all(spec.name in page for spec in env.tools)
    assert all(family in page for family in env.tasks.families("train"))
    assert all(kind.rules.count("\n") <= 12 for kind in load_worlds(None))
