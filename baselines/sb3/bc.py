"""Behaviour cloning: a warm start for a learner that the outcome reward alone would teach nothing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy
from torch.nn import functional

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import dumps
from agent_gym.core.seeding import derive, derive_seed
from agent_gym.errors import ConfigurationError

__all__ = ["Demonstrations", "OracleEpisode", "clone", "demonstrate", "discounted", "oracle_episodes", "oracle_index"]


@dataclass(frozen=True)
class Demonstrations:
    """Steps of successful oracle episodes.

    Attributes:
        observations: Each part of the array observations, ``[N, …]``.
        actions: The index of the oracle's call among the candidates, ``int64[N]``.
        returns: Discounted reward from each step on, ``float32[N]``.
        episodes: How many episodes they come from.
    """

    observations: dict[str, NDArray[Any]]
    actions: NDArray[np.int64]
    returns: NDArray[np.float32]
    episodes: int


class OracleEpisode(NamedTuple):
    """One successful episode of the oracle.

    Attributes:
        observations: What was seen before each action.
        actions: The indices of the oracle's calls among the candidates.
        returns: Discounted reward from each step on.
        task_id: The task.
    """

    observations: list[Any]
    actions: list[int]
    returns: list[float]
    task_id: str


def demonstrate(
    env: gymnasium.Env[Any, Any], episodes: int, *, seed: int, gamma: float, progress: Callable[[], None] = lambda: None
) -> Demonstrations:
    """Plays oracle episodes through the array interface. Where faults are injected it is the careful oracle that plays.

    Args:
        env: An environment with the array interface; it draws the tasks.
        episodes: How many, from 1. Left out are those in which the oracle's call is not on offer (in long tasks there can be more calls
            than candidates), and, where faults are injected, those that bad luck makes too long.
        seed: Root of the draw.
        gamma: Discount of the returns.
        progress: Called after each episode.

    Raises:
        ConfigurationError: The oracle fails, and says for which task; or no episode is left.
    """
    kept = list(oracle_episodes(env, [None] * episodes, seed=seed, gamma=gamma, progress=progress))
    if not kept:
        raise ConfigurationError(f"the oracle solved none of {episodes} episodes with the calls on offer, so there is nothing to clone")
    observations = [observation for episode in kept for observation in episode.observations]
    parts = {name: np.stack([observation[name] for observation in observations]) for name in observations[0]}
    actions = [action for episode in kept for action in episode.actions]
    returns = [ahead for episode in kept for ahead in episode.returns]
    return Demonstrations(parts, np.array(actions, np.int64), np.array(returns, np.float32), len(kept))


def oracle_episodes(
    env: gymnasium.Env[Any, Any],
    task_ids: Sequence[str | None],
    *,
    seed: int,
    gamma: float,
    progress: Callable[[], None] = lambda: None,
) -> Iterator[OracleEpisode]:
    """Plays oracle episodes through an interface with candidates; see `demonstrate`.

    Args:
        env: The environment.
        task_ids: The task of each episode; None where the environment is to draw it.
        seed: Root of the draw.
        gamma: Discount of the returns.
        progress: Called after each episode.
    """
    for number, task_id in enumerate(task_ids):
        observation, _ = env.reset(
            seed=derive_seed("demonstrate", seed) if number == 0 else None, options=None if task_id is None else {"task_id": task_id}
        )
        rich = [env.unwrapped.observation.to_dict()]  # type: ignore[attr-defined]
        observations, actions, rewards = [], [], []
        done = False
        info: dict[str, Any] = {}
        while not done:
            action = oracle_index(env.unwrapped, rich)
            if action is None:
                break
            observations.append(observation)
            actions.append(action)
            observation, reward, terminated, truncated, info = env.step(action)
            rewards.append(float(reward))
            rich.append(env.unwrapped.observation.to_dict())  # type: ignore[attr-defined]
            done = terminated or truncated
        if info.get("success"):
            yield OracleEpisode(observations, actions, discounted(rewards, gamma), info["task_id"])
        elif done and not env.unwrapped.faulty:  # type: ignore[attr-defined]
            raise ConfigurationError(f"task {info['task_id']!r}: its oracle ends with {info['ending']!r}, so it shows nothing to clone")
        progress()


def clone(
    policy: BasePolicy,
    demonstrations: Demonstrations,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    progress: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Teaches an actor-critic policy the demonstrated choices, and its critic the demonstrated returns.

    Args:
        policy: Offers ``evaluate_actions``; its own optimizer is left alone.
        demonstrations: What to imitate.
        epochs: Passes over all of it.
        batch_size: Steps in one gradient step.
        learning_rate: Adam's.
        seed: Of the order of steps.
        progress: Called after each epoch.

    Returns:
        ``loss`` (mean negative log-likelihood, in nats) and ``accuracy`` in the last epoch, as seen while learning.
    """
    rng = derive("clone", seed)
    optimizer = torch.optim.Adam(policy.parameters(), lr=learning_rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=epochs)
    observations = {name: torch.as_tensor(part) for name, part in demonstrations.observations.items()}
    actions, returns = torch.as_tensor(demonstrations.actions), torch.as_tensor(demonstrations.returns)
    policy.set_training_mode(True)
    loss_sum = hits = 0.0
    for _ in range(epochs):
        loss_sum = hits = 0.0
        order = torch.as_tensor(rng.permutation(len(actions)))
        for chosen in torch.split(order, batch_size):
            batch = {name: part[chosen] for name, part in observations.items()}
            values, logprob, _ = policy.evaluate_actions(batch, actions[chosen])  # type: ignore[operator]
            loss = -logprob.mean() + 0.5 * functional.mse_loss(values.flatten(), returns[chosen])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
            loss_sum -= float(logprob.detach().sum())
            hits += float((logprob.detach() > -np.log(2.0)).sum())
        schedule.step()
        progress()
    policy.set_training_mode(False)
    return {"loss": loss_sum / len(actions), "accuracy": hits / len(actions)}


def oracle_index(interface: Any, rich: list[dict[str, Any]]) -> int | None:
    """Where the oracle's next call stands among the candidates; None if it is not on offer."""
    wanted: ToolCall = interface.careful_oracle(rich) if interface.faulty else interface.oracle(rich)
    key = dumps(wanted.to_dict())
    calls = enumerate(interface.candidates)
    return next((index for index, call in calls if call.name == wanted.name and dumps(call.to_dict()) == key), None)


def discounted(rewards: Sequence[float], gamma: float) -> list[float]:
    """The discounted reward from each step on."""
    returns, ahead = [], 0.0
    for reward in reversed(rewards):
        ahead = reward + gamma * ahead
        returns.append(ahead)
    return returns[::-1]
