"""EpisodeBudget: what an episode may use, and that the text says what is left."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_gym.errors import ConfigurationError
from agent_gym.factory import make
from agent_gym.wrappers import RecordTrajectory


def small(**limits: Any) -> Any:
    return make(env="agent_gym.testing:SmallTask", interface="text", rich_wrappers=[["agent_gym.wrappers:EpisodeBudget", limits]])


def words(text: str) -> list[str]:
    return text.split()


def play(env: Any, *actions: Any) -> tuple[dict[str, Any], dict[str, Any], int]:
    """The last text and info, and how many of the actions were made."""
    env.reset(seed=0)
    made = 0
    for action in actions:
        made += 1
        shown, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            assert truncated
            break
    return shown, info, made


def test_the_step_that_uses_up_the_budget_ends_the_episode() -> None:
    env = small(steps=5, calls=2)
    shown, _ = env.reset(seed=0)
    assert shown["text"].endswith("\nBudget left: 5 steps, 2 calls.")
    shown, info, made = play(env, "look(1)", "nonsense", "look(2)", "look(3)")
    assert (made, info["ending"], info["success"]) == (3, "budget", False)
    assert shown["text"].endswith("\nBudget left: 2 steps, 0 calls.")
    assert env.last_record.checks[0].detail == "calls: 2 of 2 used"


def test_success_within_the_last_step_is_success() -> None:
    env = small(steps=2)
    env.reset(seed=0)
    env.step({"name": "switch_off", "arguments": {"room": env.task.spec["room"]}})
    _, reward, terminated, truncated, info = env.step("finish()")
    assert (reward, terminated, truncated, info["ending"]) == (1.0, True, False, "success")


def test_tokens_are_those_of_what_is_read_and_written() -> None:
    env = small(tokens=10_000)
    first, _ = env.reset(seed=0)
    second, *_ = env.step("look(1)")
    env.step({"name": "look", "arguments": {"room": 2}})
    texts = [first["text"], "look(1)", second["text"], '{"arguments":{"room":2},"name":"look"}']
    assert env.rich.used["tokens"] == sum(-(-len(text.encode()) // 4) for text in texts)
    counted = small(tokens=10_000, tokenizer=f"{__name__.rpartition('.')[0] or 'tests.wrappers'}.test_episode_budget:words")
    first, _ = counted.reset(seed=0)
    counted.step("look(1)")
    assert counted.rich.used["tokens"] == len(words(first["text"])) + 1


def test_what_is_known_of_a_steps_usage_counts_instead(tmp_path: Path) -> None:
    env = small(tokens=1_000, cost=1.0, cost_per_token=0.01, cost_per_call=0.125)
    recorded = RecordTrajectory(env, str(tmp_path))
    recorded.reset(seed=0)
    recorded.note(usage={"prompt_tokens": 30, "completion_tokens": 12, "cost_usd": 0.25})
    recorded.step("look(1)")
    assert env.rich.used == {"steps": 1, "calls": 1, "tokens": 42, "cost": 0.375}
    *_, info = recorded.step("look(2)")  # this one is counted: more than a hundred tokens at a cent each
    assert info["ending"] == "budget"
    assert env.last_record.checks[0].detail.startswith("cost: ")
    recorded.close()


def test_a_state_knows_what_is_used() -> None:
    env, other = small(tokens=1_000, steps=3), small(tokens=1_000, steps=3)
    env.reset(seed=0)
    shown, *_ = env.step("look(1)")
    again, _ = other.set_state(json.loads(json.dumps(env.get_state())))
    assert again == shown
    for action in ("look(2)", "look(3)"):
        assert other.step(action) == env.step(action)
    assert other.last_record.ending == "budget"
    assert other.rich.used == env.rich.used


@pytest.mark.parametrize("limits", [{}, {"steps": 0}, {"tokens": float("nan")}, {"cost": 1.0, "cost_per_token": -1}])
def test_numbers_that_do_not_fit_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"EpisodeBudget needs|prices must be"):
        small(**limits)


@pytest.mark.parametrize("told", [float("nan"), float("-inf"), -5.0])
def test_a_usage_that_is_no_amount_gives_nothing_back(told: float, tmp_path: Path) -> None:
    recorded = RecordTrajectory(small(cost=1.0, cost_per_call=0.25), str(tmp_path))
    recorded.reset(seed=0)
    endings = []
    for _ in range(4):
        recorded.note(usage={"cost_usd": told})
        endings.append(recorded.step("look(1)")[4]["ending"])
    assert endings == ["", "", "", "budget"]
    recorded.close()


def test_a_cost_that_is_reached_but_for_rounding_is_reached(tmp_path: Path) -> None:
    recorded = RecordTrajectory(small(cost=0.8), str(tmp_path))
    recorded.reset(seed=0)
    endings = []
    for cost in (0.7, 0.1):  # 0.7999999999999999
        recorded.note(usage={"cost_usd": cost})
        endings.append(recorded.step("look(1)")[4]["ending"])
    assert endings == ["", "budget"]
    recorded.close()
