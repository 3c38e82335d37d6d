"""Plays an environment through either interface as a learner that knows nothing yet would, and now and then as one that knows it all."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from agent_gym.core.closing import CLOSING
from agent_gym.errors import InvalidAction
from agent_gym.evaluation.schedule import episode_seed
from agent_gym.interface import ArrayInterface, Interface, TextInterface

__all__ = ["Sampled", "drawn_action", "sampled"]

_DRAWS = 4


@dataclass(frozen=True)
class Sampled:
    """What came of a reset or of one step.

    Attributes:
        task_id: The episode's task.
        episode: Its number, from 0.
        step: The step's number, 0 for the reset.
        action: What was done; None for the reset.
        observation: What was given, as the rest.
    """

    task_id: str
    episode: int
    step: int
    action: Any
    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    def __str__(self) -> str:
        return f"episode {self.episode}, {self.task_id}, step {self.step}"


def drawn_action(env: gymnasium.Env[Any, Any]) -> Any:
    """An action from the action space, not masked out, and rarely one that closes the episode: much of what can go wrong comes later."""
    inside = env.unwrapped
    if not isinstance(inside, ArrayInterface):
        return env.action_space.sample()
    mask = inside.action_masks().astype(np.int8)
    for _ in range(_DRAWS):
        action = env.action_space.sample(mask=mask)
        call = inside.call_of(action)
        if isinstance(call, InvalidAction) or call.name not in CLOSING:
            break
    return action


def sampled(env: gymnasium.Env[Any, Any], episodes: int, seed: int) -> Iterator[Sampled]:
    """Plays episodes with actions from the action space, those masked out left out. Where actions are tool calls, the oracle plays every
    second episode, if it can: a sampled call seldom finds anything.

    Args:
        env: The environment, with an `Interface`.
        episodes: How many.
        seed: Of the episodes and of the actions.
    """
    inside = env.unwrapped
    assert isinstance(inside, Interface)
    env.action_space.seed(seed % 2**32)
    for episode in range(episodes):
        observation, info = env.reset(seed=episode_seed(seed, episode))
        yield Sampled(info["task_id"], episode, 0, None, observation, 0.0, False, False, info)
        by_oracle = isinstance(inside, TextInterface) and episode % 2 == 1 and inside.task.oracle_kind != "none"
        seen = [observation]
        for step in range(1, inside.task.max_steps + 1):
            action = inside.oracle(seen) if by_oracle else drawn_action(env)
            observation, reward, terminated, truncated, info = env.step(action)
            seen.append(observation)
            yield Sampled(info["task_id"], episode, step, action, observation, float(reward), bool(terminated), bool(truncated), info)
            if terminated or truncated:
                break
