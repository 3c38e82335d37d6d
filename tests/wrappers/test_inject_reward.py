"""InjectReward: what somebody outside says while an episode runs is in the next step's reward, with its name."""

import threading
from typing import Any

import pytest

from agent_gym.errors import ConfigurationError, ResetNeeded
from agent_gym.factory import make
from agent_gym.runner import AsyncPool
from agent_gym.wrappers import AggregateReward, InjectReward

SOURCES = "tests.wrappers.sources"


def env(**keywords: Any) -> InjectReward:
    return InjectReward(make(env="agent_gym.testing:SmallTask", interface="text", **keywords))


def test_a_person_rewards_an_agent_in_the_middle_of_an_episode() -> None:
    watched = env()
    watched.reset(seed=0)
    assert watched.step("look(1)")[1] == 0.0
    watched.inject("human", 1.0)
    watched.inject("human", 0.5)
    watched.inject("latency", -0.25)
    _, reward, _, _, info = watched.step("look(2)")
    assert (reward, info["reward_parts"]["human"], info["reward_parts"]["latency"]) == (1.25, 1.5, -0.25)
    assert watched.last_record.reward_parts == info["reward_parts"]
    assert "human" not in watched.step("look(3)")[4]["reward_parts"]


def test_nothing_is_taken_before_an_episode_or_after_its_end() -> None:
    watched = env()
    with pytest.raises(ResetNeeded, match="no episode is running that 'human' could reward"):
        watched.inject("human", 1.0)
    watched.reset(seed=0)
    watched.step("finish()")
    with pytest.raises(ResetNeeded, match="no episode is running"):
        watched.inject("human", 1.0)
    watched.reset()
    watched.inject("human", 1.0)
    watched.reset()
    assert "human" not in watched.step("look(1)")[4]["reward_parts"], "what was meant for an abandoned episode is void"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("outcome", 1.0, "cannot name a signal"), ("", 1.0, "cannot name"), ("human", float("nan"), "finite"), ("human", "much", "finite")],
)
def test_signals_that_do_not_fit_are_refused(name: str, value: Any, said: str) -> None:
    watched = env()
    watched.reset(seed=0)
    with pytest.raises(ConfigurationError, match=said):
        watched.inject(name, value)


def test_many_threads_lose_nothing() -> None:
    watched = env()
    accepted: list[float] = []

    def judge() -> None:
        for _ in range(200):
            try:
                watched.inject("human", 1.0)
            except ResetNeeded:
                return
            accepted.append(1.0)

    watched.reset(seed=0)
    threads = [threading.Thread(target=judge) for _ in range(4)]
    for thread in threads:
        thread.start()
    total = sum(watched.step(call)[4]["reward_parts"].get("human", 0.0) for call in ["look(1)"] * 5 + ["finish()"])
    for thread in threads:
        thread.join()
    assert total == sum(accepted)


def test_a_pool_passes_signals_on_and_an_aggregate_weighs_them() -> None:
    with AsyncPool(lambda: AggregateReward(env(), {"outcome": 1.0, "human": {"source": "part:human", "weight": 0.5}}), 2) as pool:
        pool.async_reset(seed=0)
        pool.recv(2)
        pool.call("inject", "human", 1.0, env_ids=[1])
        pool.send(["look(1)", "look(1)"], [0, 1])
        rows = {row.env_id: row for row in pool.recv(2).rows}
        assert (rows[0].reward, rows[1].reward) == (0.0, 0.5)


@pytest.mark.parametrize("ends", [["LoopGuard", {"identical": 2}], ["StepDeadline", {"seconds": 0.3, "grace": 0.1}]])
def test_the_record_of_a_step_that_is_ended_from_outside_says_what_the_step_gave(ends: list[Any]) -> None:
    wrappers = [["agent_gym.wrappers:InjectReward", {}], [f"agent_gym.wrappers:{ends[0]}", ends[1]]]
    watched: Any = make(env="agent_gym.testing:SmallTask", interface="text", defects=True, shaping="milestones", rich_wrappers=wrappers)
    observation, _ = watched.reset(seed=0)
    watched.step(watched.oracle([observation]))
    watched.step({"name": "switch_off", "arguments": {"room": 1}})
    for action in ("look(1)", "look(1)", "sleep_deaf()"):
        watched.rich.get_wrapper_attr("inject")("human", 0.5)
        _, reward, terminated, truncated, info = watched.step(action)
        record = watched.last_record
        assert (record.reward, dict(record.reward_parts)) == (pytest.approx(reward), info["reward_parts"])
        if terminated or truncated:
            break
    assert info["ending"] == {"LoopGuard": "failure", "StepDeadline": "deadline"}[ends[0]]
    watched.close()


def test_a_signal_outlives_a_step_whose_reward_nobody_knows() -> None:
    watched = InjectReward(
        AggregateReward(make(env="agent_gym.testing:SmallTask", interface="text"), {"judge": f"{SOURCES}:not_of_the_second"})
    )
    watched.reset(seed=0)
    watched.step("look(1)")
    watched.inject("human", 1.0)
    assert not watched.step("look(2)")[4]["reward_valid"]
    assert watched.step("look(3)")[4]["reward_parts"] == {"judge": 1.0, "human": 1.0}
