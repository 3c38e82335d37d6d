"""AggregateReward: weighs the parts anew, asks rules, models and judges, and never takes what is missing for a number."""

import time
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agent_gym.core import ToolCall
from agent_gym.errors import ConfigurationError
from agent_gym.factory import make
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import AggregateReward, RecordTrajectory
from tests.wrappers import sources

HERE = "tests.wrappers.sources"


def small(weighed: dict[str, Any], **keywords: Any) -> AggregateReward:
    return AggregateReward(make(env="agent_gym.testing:SmallTask", interface="text", defects=True, **keywords), weighed)


def room(env: gymnasium.Env[Any, Any]) -> int:
    found: int = env.unwrapped.task.spec["room"]  # type: ignore[attr-defined]
    return found


def play(env: gymnasium.Env[Any, Any], *calls: str | ToolCall) -> list[tuple[float, dict[str, Any]]]:
    """Rewards and infos of these calls, in one episode."""
    env.reset(seed=0)
    steps = []
    for call in calls:
        _, reward, _, _, info = env.step(call.replace("ROOM", str(room(env))) if isinstance(call, str) else call)
        record = env.get_wrapper_attr("last_record")
        assert reward == sum(info["reward_parts"].values())
        assert record.reward_parts == info["reward_parts"]
        assert record.reward == (reward if info["reward_valid"] else None)
        assert list(record.gaps) == info["gaps"]
        steps.append((float(reward), info))
    return steps


def test_the_parts_beneath_are_weighed_anew_and_nothing_is_added_on_top() -> None:
    won = play(small({"outcome": 2.0, "violation": 3.0}), "switch_off(ROOM)", "finish()")
    assert [reward for reward, _ in won] == [0.0, 2.0]
    harmed = play(small({"outcome": 2.0, "violation": 3.0}), "over_reach()", "do_harm()")
    assert [reward for reward, _ in harmed] == [0.0, -3.0], "over-reach is not among the sources, so it is not in the reward"
    assert harmed[-1][1]["reward_parts"] == {"outcome": 0.0, "violation": -3.0}


def test_rules_about_the_process() -> None:
    env = small({"legality": 0.5, "progress": 1.0, "repeated_error": 0.1, "turns": {"weight": 1.0, "range": [1, 4]}})
    steps = play(env, "nonsense", "switch_off(ROOM)", "switch_off(ROOM)", "switch_off(ROOM)", "raise_error()", "finish()")
    parts = [{name: value for name, value in info["reward_parts"].items() if value} for _, info in steps]
    assert parts == [{"legality": -0.5}, {"progress": 1.0}, {}, {"repeated_error": -0.1}, {}, {"turns": -0.5}]


def test_a_call_that_failed_in_passing_may_be_made_again() -> None:
    env = small({"repeated_error": 1.0}, call_timeout_s=0.01)
    assert [reward for reward, _ in play(env, "sleep_for_ever()", "sleep_for_ever()")] == [0.0, 0.0]


def test_a_judge_is_asked_at_the_end_and_only_counts_behind_its_gates() -> None:
    judged = {"judge": {"source": f"{HERE}:calls_made", "weight": 0.1, "at": "end", "gate": "legal"}, "legal": {"weight": 0}}
    good = play(small(judged), "look(1)", "look(2)", "finish()")
    assert [info["reward_parts"] for _, info in good] == [{}, {}, {"judge": pytest.approx(0.3)}]
    bad = play(small(judged), "over_reach()", "look(2)", "finish()")
    assert bad[-1][1]["reward_parts"] == {"judge": 0.0}


@pytest.mark.parametrize(
    ("source", "why"), [("says_nothing", "none"), ("raises", "raised"), ("nan", "not_finite"), ("words", "raised"), ("hang", "late")]
)
def test_what_a_source_cannot_tell_is_a_gap_and_no_number(source: str, why: str, tmp_path: Path) -> None:
    sources.HELD.clear()
    weighed = {"outcome": 1.0, "model": {"source": f"{HERE}:{source}", "weight": 5.0, "deadline_s": 0.05}}
    env = RecordTrajectory(small(weighed), str(tmp_path))
    steps = play(env, "switch_off(ROOM)", "finish()")
    sources.HELD.set()
    assert [reward for reward, _ in steps] == [0.0, 1.0]
    for _, info in steps:
        assert info["gaps"] == [f"reward_model:{why}"]
        assert set(info["reward_parts"]) == {"outcome"}
        assert info["reward_valid"]
    env.close()
    (episode,) = TrajectoryStore(tmp_path).episodes()
    assert (episode["reward_total"], episode["gaps"]) == (1.0, [f"reward_model:{why}"])


def test_where_nobody_could_tell_the_reward_is_unknown() -> None:
    ((reward, info),) = play(small({"model": f"{HERE}:raises", "other": f"{HERE}:nan"}), "look(1)")
    assert (reward, info["reward_valid"], info["reward_parts"]) == (0.0, False, {})
    ((reward, info),) = play(small({"model": f"{HERE}:raises", "calls": f"{HERE}:calls_made"}), "look(1)")
    assert (reward, info["reward_valid"]) == (1.0, True)


def test_a_source_that_hangs_costs_one_deadline_and_is_asked_again_once_it_is_back() -> None:
    sources.HELD.clear()
    sources.ASKED.clear()
    env = small({"outcome": 1.0, "model": {"source": f"{HERE}:hang", "deadline_s": 0.2}})
    env.reset(seed=0)
    for _ in range(5):
        assert env.step("look(1)")[4]["gaps"] == ["reward_model:late"]
    assert len(sources.ASKED) == 1, "it is not asked again while it is still at the first question"
    sources.HELD.set()
    for _ in range(200):
        env.reset()
        reward, info = env.step("look(1)")[1::3]
        if not info["gaps"]:
            break
        time.sleep(0.01)
    assert (reward, info["gaps"]) == (1.0, [])
    env.close()


def test_what_the_environment_itself_broke_off_stays_unknown() -> None:
    ((reward, info),) = play(small({"outcome": 1.0, "calls": f"{HERE}:calls_made"}), "break_engine()")
    assert (reward, info["reward_valid"], info["ending"]) == (0.0, False, "infra_error")


def test_a_function_is_named_in_the_spec_and_any_environment_has_a_reward() -> None:
    plain = gymnasium.make("CartPole-v1", disable_env_checker=True)
    env = AggregateReward(plain, {"reward": 0.5, "upright": {"source": sources.nan, "deadline_s": None}})
    env.reset(seed=0)
    _, reward, _, _, info = env.step(0)
    assert (reward, info["reward_parts"], info["gaps"]) == (0.5, {"reward": 0.5}, ["reward_upright:not_finite"])
    assert env.spec is not None
    assert f"{HERE}:nan" in env.spec.to_json()
    again = gymnasium.make(env.spec)
    assert again.spec == env.spec


@pytest.mark.parametrize(
    ("weighed", "said"),
    [
        ({}, "at least one source"),
        ({"outcome": -1}, "weight must be a number from 0"),
        ({"outcome": float("inf")}, "weight must be a number from 0"),
        ({"outcome": True}, "give a weight"),
        ({"outcom": 1}, "unknown source 'outcom'"),
        ({"reward": 1}, "unknown source 'reward'"),
        ({"outcome": {"wieght": 1}}, "unknown key of source 'outcome' 'wieght'"),
        ({"turns": 1}, '"range" goes with turns'),
        ({"turns": {"range": [5, 2]}}, "range must be"),
        ({"outcome": {"range": [1, 2]}}, '"range" goes with turns'),
        ({"outcome": {"gate": "legal"}}, "unknown gate of source 'outcome' 'legal'"),
        ({"a": {"source": f"{HERE}:nan", "gate": "b"}, "b": {"source": f"{HERE}:nan", "at": "end"}}, "only at the end"),
        ({"judge": f"{HERE}:nobody"}, "names nothing"),
        ({"judge": f"{HERE}:HELD"}, "cannot be called"),
        ({"judge": {"source": f"{HERE}:nan", "at": "never"}}, "unknown at"),
        ({"judge": {"source": f"{HERE}:nan", "deadline_s": 0}}, "deadline_s must be"),
    ],
)
def test_sources_that_do_not_fit_are_refused(weighed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        small(weighed)


def test_semantic_sources_need_an_environment_of_this_package() -> None:
    with pytest.raises(ConfigurationError, match="unknown source 'outcome'"):
        AggregateReward(gymnasium.make("CartPole-v1"), {"outcome": 1.0})


def test_a_reward_beneath_that_is_no_number_is_a_gap() -> None:
    class Broken(gymnasium.Env[Any, Any]):
        observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(1)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
            super().reset(seed=seed, options=options)
            return 0, {}

        def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:  # noqa: ARG002
            return 0, float("nan"), False, False, {}

    env = AggregateReward(Broken(), {"reward": 1.0})
    env.reset()
    _, reward, _, _, info = env.step(0)
    assert (reward, info["reward_valid"], info["gaps"]) == (0.0, False, ["reward_reward:not_finite"])
