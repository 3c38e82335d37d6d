"""NormalizeReturn: one scale for every kind of task, from what came lately."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import Autoreset, TimeLimit

from agent_gym.errors import ConfigurationError
from agent_gym.factory import make
from agent_gym.wrappers import AggregateReward, NormalizeReturn


class Paying(gymnasium.Env[Any, Any]):
    """Pays the action times what the kind of task pays, at every step; ``length`` steps an episode. The kinds take turns."""

    def __init__(self, length: int = 2, **pays: float) -> None:
        self.observation_space, self.action_space = Discrete(1), Discrete(3, start=-1)
        self.length, self.pays = length, pays
        self.episode, self.steps = -1, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.episode, self.steps = self.episode + 1, 0
        return 0, {"task_type": self.kind}

    @property
    def kind(self) -> str:
        return list(self.pays)[self.episode % len(self.pays)]

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return 0, float(action) * self.pays[self.kind], self.steps == self.length, False, {"task_type": self.kind}


def episodes(env: gymnasium.Env[Any, Any], count: int, action: int = 1) -> list[list[float]]:
    """The rewards of so many episodes."""
    rewards: list[list[float]] = []
    for _ in range(count):
        env.reset()
        rewards.append([])
        over = False
        while not over:
            _, reward, terminated, truncated, info = env.step(action)
            assert info["reward_parts"] == {"reward": reward}
            rewards[-1].append(float(reward))
            over = terminated or truncated
    return rewards


def test_rich_and_poor_kinds_of_task_come_to_the_same_scale() -> None:
    env = NormalizeReturn(Paying(rich=100.0, poor=0.01), window=8, gamma=0.5)
    assert episodes(env, 16)[:2] == [[100.0, 100.0], [0.01, 0.01]], "until enough is known, nothing is scaled"
    assert episodes(env, 4) == [[pytest.approx(1 / 1.5)] * 2] * 4, "a return of 100 + 0.5 · 100 has become 1"
    assert env.scales == {"rich": pytest.approx(150.0), "poor": pytest.approx(0.015)}
    assert NormalizeReturn(Paying(rich=100.0, poor=0.01), window=8, per=None).scales == {}


def test_it_follows_a_change_within_one_window() -> None:
    inner = Paying(only=1.0)
    env = NormalizeReturn(inner, window=10, gamma=1.0)
    episodes(env, 10)
    inner.pays["only"] = 50.0
    assert episodes(env, 1)[0] == [pytest.approx(25.0)] * 2, "the scale of an episode is known when it begins"
    episodes(env, 9)
    assert episodes(env, 1)[0] == [pytest.approx(0.5)] * 2


def test_signs_and_zeros_stay() -> None:
    env = NormalizeReturn(Paying(only=4.0), window=8, gamma=1.0)
    assert episodes(env, 20, action=0)[-1] == [0.0, 0.0], "of nothing but zeros there is no size"
    episodes(env, 8, action=-1)
    assert episodes(env, 1, action=-1)[0] == [pytest.approx(-0.5)] * 2
    assert episodes(env, 1, action=0)[0] == [0.0, 0.0]
    assert episodes(env, 1, action=1)[0][0] > 0


def test_returns_do_not_run_on_over_a_truncation() -> None:
    env = NormalizeReturn(TimeLimit(Paying(length=100, only=1.0), 3), window=8, gamma=1.0)
    episodes(env, 8)
    assert env.scales == {"only": pytest.approx(3.0)}


@pytest.mark.parametrize("truncated", [False, True])
def test_an_autoreset_beneath_is_no_step(truncated: bool) -> None:
    inner: Any = TimeLimit(Paying(length=100, only=1.0), 3) if truncated else Paying(length=3, only=1.0)
    env = NormalizeReturn(Autoreset(inner), window=8, gamma=1.0)
    env.reset()
    for _ in range(4 * 8):
        env.step(1)
    assert env.scales == {"only": pytest.approx(3.0)}


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_environments_of_both_kinds_agree(mode: AutoresetMode) -> None:
    vector = SyncVectorEnv([lambda: NormalizeReturn(Paying(only=2.0), window=8, gamma=1.0)] * 2, autoreset_mode=mode)
    vector.reset()
    for _ in range(8 * (3 if mode is AutoresetMode.NEXT_STEP else 2)):
        vector.step(np.array([1, -1]))
    assert [env.scales for env in vector.envs] == [{"only": pytest.approx(4.0)}] * 2  # type: ignore[attr-defined]


def test_its_windows_travel_with_its_state() -> None:
    env, other = (NormalizeReturn(Paying(rich=100.0, poor=0.01), window=8) for _ in range(2))
    episodes(env, 17)
    env.reset()
    first = env.step(1)[1]
    state = env.save_state()
    other.reset()
    other.reset()
    other.step(0)
    other.load_state(state)
    assert other.scales == env.scales
    assert other.step(1)[1] == env.step(1)[1] == first
    assert other.scales == env.scales


def test_a_wrong_place_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="AggregateReward must be inside NormalizeReturn"):
        AggregateReward(NormalizeReturn(Paying(only=1.0)), {"reward": 1.0})
    with pytest.raises(ConfigurationError, match="must be inside NormalizeReturn"):
        NormalizeReturn(NormalizeReturn(Paying(only=1.0)))
    with pytest.raises(ConfigurationError, match="has no 'difficulty'; give per=None"):
        NormalizeReturn(Paying(only=1.0), per="difficulty").reset()
    with pytest.raises(ConfigurationError, match="window must be"):
        NormalizeReturn(Paying(only=1.0), window=2)
    with pytest.raises(ConfigurationError, match="gamma must be"):
        NormalizeReturn(Paying(only=1.0), gamma=0.0)
    bent = NormalizeReturn(gymnasium.wrappers.TransformReward(AggregateReward(Paying(only=1.0), {"reward": 1.0}), lambda r: 2 * float(r)))
    bent.reset()
    with pytest.raises(ConfigurationError, match="the reward is 2 and its parts sum to 1"):
        bent.step(1)


def test_an_episode_of_which_a_reward_is_unknown_does_not_count() -> None:
    judged = AggregateReward(
        make(env="agent_gym.testing:SmallTask", interface="text"), {"judge": "tests.wrappers.sources:not_of_the_second"}
    )
    env = NormalizeReturn(judged, window=8, per=None)
    for _ in range(8):
        env.reset(seed=0)
        assert [env.step(call)[4]["reward_valid"] for call in ("look(1)", "look(2)", "finish()")] == [True, False, True]
    assert env.scales == {}
    broken = NormalizeReturn(Paying(only=float("nan")), window=8)
    for _ in range(8):
        broken.reset()
        assert all(np.isnan(broken.step(1)[1]) for _ in range(2))
    assert broken.scales == {}
