"""PotentialShaping: learning may get faster, the best policy stays what it was."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agent_gym.errors import ConfigurationError
from agent_gym.factory import make
from agent_gym.wrappers import AggregateReward, PotentialShaping

SOURCES = "tests.wrappers.sources"

GAMMA = 0.9
Floats = NDArray[np.float64]


class Tabular(gymnasium.Env[Any, Any]):
    """A decision process in a table, whose last state is the end. An action says what is done, and where it leads this time."""

    def __init__(self, rewards: Floats) -> None:
        states, actions = rewards.shape
        self.rewards, self.states = rewards, states
        self.observation_space, self.action_space = Discrete(states), Discrete(actions * states)
        self.state = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = (options or {}).get("state", 0)
        return self.state, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        done, following = divmod(int(action), self.states)
        reward = float(self.rewards[self.state, done])
        self.state = following
        return following, reward, following == self.states - 1, False, {}


class Bonus(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds γΦ(s′) and takes nothing away for Φ(s): what looks like shaping and is not."""

    def __init__(self, env: gymnasium.Env[Any, Any], phi: Any) -> None:
        super().__init__(env)
        self.phi = phi

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward) + GAMMA * self.phi(observation) * (not terminated), terminated, truncated, info


def best_values(env: gymnasium.Env[Any, Any], chances: Floats) -> Floats:
    """Q*(s, a), by value iteration on the rewards that the environment really gives."""
    states, actions = chances.shape[:2]
    rewards = np.zeros((states, actions, states))
    for state in range(states - 1):
        for action in range(actions):
            for following in range(states):
                env.reset(options={"state": state})
                rewards[state, action, following] = env.step(action * states + following)[1]
    values = np.zeros((states, actions))
    for _ in range(400):
        ahead = values.max(1) * (np.arange(states) < states - 1)
        values = (chances * (rewards + GAMMA * ahead)).sum(2)
    return values[:-1]


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), potentials=st.lists(st.floats(-5, 5), min_size=5, max_size=5))
def test_whatever_the_potential_the_best_policy_is_the_same(seed: int, potentials: list[float]) -> None:
    rng = np.random.default_rng(seed)
    chances, rewards = rng.dirichlet(np.ones(5) * 0.5, (5, 3)), rng.normal(size=(5, 3))
    plain = best_values(Tabular(rewards), chances)
    shaped = best_values(PotentialShaping(Tabular(rewards), potentials.__getitem__, GAMMA), chances)
    assert shaped == pytest.approx(plain - np.array(potentials[:-1])[:, None], abs=1e-6)
    assert (shaped.argmax(1) == plain.argmax(1)).all()


def test_a_bonus_that_is_no_potential_changes_it() -> None:
    """In state 0 one can stay, for nothing, or go to the end, for 1."""
    chances = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    env = Tabular(np.array([[0.0, 1.0], [0.0, 0.0]]))
    assert best_values(env, chances)[0].argmax() == 1
    assert best_values(PotentialShaping(env, lambda _: 0.5, GAMMA), chances)[0].argmax() == 1
    assert best_values(Bonus(env, lambda _: 0.5), chances)[0].argmax() == 0, "staying pays for ever"


def lamps(calls: list[str], **keywords: Any) -> list[dict[str, float]]:
    """The parts of the reward of these calls."""
    inner = make(env="agent_gym.testing:SmallTask", interface="text", **keywords)
    env = PotentialShaping(inner, "tests.wrappers.sources:lamps_off", 0.5)
    env.reset(seed=0)
    return [env.step(call)[4]["reward_parts"] for call in calls]


def test_the_end_of_the_task_has_no_potential_and_a_cut_has() -> None:
    finished = lamps(["switch_off(1)", "look(1)", "finish()"])
    assert [parts["potential"] for parts in finished] == [0.125, 0.125 - 0.25, -0.25]
    cut = lamps(["switch_off(1)", *["look(1)"] * 7])
    assert cut[-1]["potential"] == 0.125 - 0.25, "the learner goes on from there with a value"
    assert lamps(["switch_off(1)", *["look(1)"] * 7], limit_is_terminal=True)[-1]["potential"] == -0.25


def test_the_sum_over_an_episode_that_ends_is_the_same_whatever_is_done() -> None:
    for calls in (["finish()"], ["switch_off(1)", "switch_off(2)", "finish()"], ["look(1)", "nonsense", "switch_off(3)", "finish()"]):
        assert sum(0.5**step * parts["potential"] for step, parts in enumerate(lamps(calls))) == pytest.approx(0.0)


def test_arguments_that_do_not_fit_are_refused() -> None:
    env = make(env="agent_gym.testing:SmallTask", interface="text")
    with pytest.raises(ConfigurationError, match=r"gamma must be in \(0, 1\], got 1.5"):
        PotentialShaping(env, lambda _: 0.0, 1.5)
    with pytest.raises(ConfigurationError, match="no import string"):
        PotentialShaping(env, "nonsense", 0.9)
    with pytest.raises(ConfigurationError, match="must be finite"):
        PotentialShaping(env, lambda _: float("nan"), 0.9).reset(seed=0)
    twice = PotentialShaping(PotentialShaping(env, lambda _: 0.0, 0.9), lambda _: 0.0, 0.9)
    twice.reset(seed=0)
    with pytest.raises(ConfigurationError, match="another name"):
        twice.step("look(1)")


def test_a_step_whose_reward_nobody_knows_moves_the_potential_on() -> None:
    inner = AggregateReward(make(env="agent_gym.testing:SmallTask", interface="text"), {"judge": f"{SOURCES}:not_of_the_second"})
    env = PotentialShaping(inner, f"{SOURCES}:lamps_off", 0.5)
    env.reset(seed=0)
    steps = [env.step(f"switch_off({room})")[4] for room in (1, 2, 3)]
    assert [step["reward_valid"] for step in steps] == [True, False, True]
    assert steps[2]["reward_parts"]["potential"] == 0.5 * 0.75 - 0.5
