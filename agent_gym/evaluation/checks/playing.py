"""Plays episodes for the checks, and keeps what a learner was given beside what the record says."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium

from agent_gym.core.policy import Policy
from agent_gym.core.record import StepRecord
from agent_gym.core.task import TaskSet
from agent_gym.errors import ConfigurationError
from agent_gym.evaluation.schedule import episode_seed, keywords, schedule
from agent_gym.interface import Interface

__all__ = ["IDLE", "Played", "Step", "drawn", "opened", "play"]

IDLE = ""
"""An action that cannot be read: it costs a step and does nothing."""


@dataclass(frozen=True)
class Step:
    """One step as the learner was given it, and the record of it."""

    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    record: StepRecord


@dataclass(frozen=True)
class Played:
    """One episode.

    Attributes:
        policy: Who played.
        task_id: What was played.
        steps: Its steps, without the reset.
    """

    policy: str
    task_id: str
    steps: Sequence[Step]

    @property
    def total(self) -> float:
        """The sum of its rewards."""
        return sum(step.reward for step in self.steps)

    @property
    def valid(self) -> bool:
        """Whether all its rewards are known."""
        return all(step.info["reward_valid"] for step in self.steps)

    @property
    def ending(self) -> str:
        """How it ended; empty if it went on beyond its limit."""
        return str(self.steps[-1].info["ending"])

    def sum_of(self, part: str, gamma: float = 1.0) -> float:
        """The discounted sum of a part of its rewards."""
        return math.fsum(gamma**number * step.info["reward_parts"].get(part, 0.0) for number, step in enumerate(self.steps))


@contextmanager
def opened(env_id: str, split: str, env_kwargs: Mapping[str, Any], interface: str = "text") -> Iterator[gymnasium.Env[Any, Any]]:
    """The environment, closed in the end.

    Raises:
        ConfigurationError: It is none of this package's, or a keyword does not fit.
    """
    try:
        env = gymnasium.make(env_id, interface=interface, disable_env_checker=True, **keywords(split, env_kwargs))
    except TypeError as error:
        raise ConfigurationError(f"{env_id!r} is no environment of agent_gym: {error}") from error
    with closing(env):
        if not isinstance(env.unwrapped, Interface):
            raise ConfigurationError(f"{env_id!r} is no environment of agent_gym")
        yield env


def drawn(env_id: str, split: str, env_kwargs: Mapping[str, Any], episodes: int, seed: int) -> list[str]:
    """The ids of the tasks that are played."""
    with opened(env_id, split, env_kwargs) as env:
        tasks: TaskSet = env.get_wrapper_attr("tasks")
        return list(schedule(tasks, split, episodes, seed, None, env_kwargs))


def play(env: gymnasium.Env[Any, Any], policy: Policy | None, task_ids: Sequence[str], seed: int) -> Iterator[Played]:
    """Plays tasks in turn.

    Args:
        env: The environment, or wrappers around it; its interface must be the policy's.
        policy: The policy; None does nothing (`IDLE`) until the episode is over.
        task_ids: The tasks.
        seed: Of the episodes.
    """
    inside = env.unwrapped
    assert isinstance(inside, Interface)
    for number, task_id in enumerate(task_ids):
        observation, _ = env.reset(seed=episode_seed(seed, number), options={"task_id": task_id})
        if policy is not None:
            policy.reset([task_id])
        steps: list[Step] = []
        for _ in range(inside.task.max_steps + 1):  # one that does not end at its limit ends here
            action = IDLE if policy is None else policy.act([(task_id, observation)])[0].action
            observation, reward, terminated, truncated, info = env.step(action)
            record = env.get_wrapper_attr("last_record")
            steps.append(Step(float(reward), bool(terminated), bool(truncated), info, record))
            if terminated or truncated:
                break
        yield Played("idle" if policy is None else policy.name, task_id, steps)
