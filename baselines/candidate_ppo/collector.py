"""Collects rollouts: steps whoever is ready, and waits only for what would otherwise be learned from too late.

A rollout is complete when its number of steps has come. What each environment made of it is a *fragment*; one that ends amid an episode is
cut there, and the next goes on from it. Two rules keep the data young without throwing any of it away:

- An action is given only while the steps given so far are fewer than those of ``lag_max`` rollouts beyond the one that is being collected
  (Fu et al. 2025, "AReaL", equation 3).
- A rollout is not learned from while a step is under way that would be older than ``lag_max`` updates when its own turn comes.

With ``lag_max`` 0 both together are lock-step: everybody acts, everybody is waited for, and every step of a rollout was chosen by the
newest policy.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from agent_gym.baselines.candidate_ppo.config import CandidatePPOConfig
from agent_gym.baselines.candidate_ppo.network import Scorer, collate
from agent_gym.baselines.candidate_ppo.sampler import TaskSampler
from agent_gym.core.seeding import derive, derive_seed
from agent_gym.errors import InfrastructureError
from agent_gym.runner import AsyncPool, Row

__all__ = ["Collector", "Step"]


class Step(NamedTuple):
    """One step of one environment."""

    observation: Any
    action: int
    log_prob: float
    """Of the action under the policy that chose it."""
    version: int
    """How many updates that policy had behind it."""
    reward: float = 0.0
    last: bool = False
    """Whether what comes after belongs to another fragment or episode."""
    ahead: Any = None
    """Where what comes after is cut off: the observation whose value stands for it. None where the episode terminated."""


class Collector:
    """Gives actions and takes in what comes of them.

    Args:
        pool: The environments; nobody else uses them.
        config: What was asked for.
        sampler: Which tasks are played.
    """

    def __init__(self, pool: AsyncPool, config: CandidatePPOConfig, sampler: TaskSampler) -> None:
        self._pool, self._config, self._sampler = pool, config, sampler
        self._size = config.n_envs * config.n_steps
        self._rng = derive("actions", config.seed)
        self.version = 0
        """Updates so far."""
        self.episodes = 0
        """Episodes begun so far."""
        self.rewards: list[float] = []
        """Of the episodes that have ended since the last rollout, the sum of rewards."""
        self._newest: dict[int, Any] = {}  # the observation of each environment that waits for an action
        self._pending: dict[int, Step] = {}
        self._fragments: dict[int, list[Step]] = {}
        self._sums: dict[int, float] = {}
        self._families: dict[int, str] = {}
        self._resets: set[int] = set()
        self._given = 0  # steps given since the last rollout was taken, and those under way or here then

    def restart(self) -> None:
        """Begins an episode in every environment; those under way end. Only where no step is under way."""
        while self._resets:
            for row in self._pool.recv():
                self._came(row)
        self._newest, self._fragments, self._given = {}, {}, 0
        self._begin([i for i, state in enumerate(self._pool.states) if state != "retired"])

    def collect(self, network: Scorer) -> list[Step]:
        """The steps of one rollout, fragment after fragment.

        Raises:
            InfrastructureError: Every environment was given up, or as many steps as make a rollout came without a valid reward.
        """
        faults = 0
        while sum(map(len, self._fragments.values())) < self._size or self._too_old():
            self._act(network)
            if not (self._pending or self._resets):
                raise InfrastructureError("every environment was given up; the log of the pool says why")
            lock_step = self._config.lag_max == 0
            for row in sorted(self._pool.recv(len(self._pending) + len(self._resets) if lock_step else 1), key=lambda row: row.env_id):
                faults += self._came(row)
                if faults > self._size:
                    raise InfrastructureError(f"{faults} steps of one rollout have no valid reward; the last says: {row.fault or row.info}")
        self._act(network)  # so that tools are at work while the learner is
        taken = [step for i in sorted(self._fragments) for step in self._cut(i)]
        self._fragments = {}
        self._given = len(self._pending)
        return taken

    def state_dict(self) -> dict[str, Any]:
        """Counters and randomness, as JSON values."""
        return {"version": self.version, "episodes": self.episodes, "rng": self._rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from there."""
        self.version, self.episodes = state["version"], state["episodes"]
        self._rng.bit_generator.state = state["rng"]

    def _begin(self, env_ids: Sequence[int]) -> None:
        tasks = [{"task_id": self._sampler.draw()} for _ in env_ids]
        seeds = [derive_seed("episode", self._config.seed, self.episodes + number) >> 32 for number in range(len(env_ids))]
        self.episodes += len(env_ids)
        self._resets.update(env_ids)
        self._pool.async_reset(env_ids, seeds, tasks)

    def _too_old(self) -> bool:
        """Whether somebody has to be waited for before the next update."""
        return any(self.version + 1 - step.version > self._config.lag_max for step in self._pending.values())

    def _act(self, network: Scorer) -> None:
        """Gives an action to everybody who waits for one, as far as there may be more."""
        free = (1 + self._config.lag_max) * self._size - self._given
        ready = sorted(self._newest)[: max(0, free)]
        if not ready:
            return
        observations = [self._newest.pop(i) for i in ready]
        batch = collate(observations)
        with torch.no_grad():
            log_probs = network(batch).log_probs.double().numpy()
        parts = np.split(log_probs, batch.first[1:].numpy())
        draws = self._rng.random(len(ready))
        actions = [_drawn(part, draw) for part, draw in zip(parts, draws, strict=True)]
        chosen = [float(part[action]) for part, action in zip(parts, actions, strict=True)]
        self._pool.send(actions, ready, [{"logprob": one, "policy_version": self.version} for one in chosen])
        for i, observation, action, log_prob in zip(ready, observations, actions, chosen, strict=True):
            self._pending[i] = Step(observation, action, log_prob, self.version)
        self._given += len(ready)

    def _came(self, row: Row) -> bool:
        """Takes in a row; whether it has no valid reward, and so is not learned from."""
        i = row.env_id
        if row.kind == "reset":
            self._resets.discard(i)
            if row.done:
                self._again(i)
                return True
            self._newest[i], self._sums[i], self._families[i] = row.observation, 0.0, row.info["task_type"]
            return False
        step = self._pending.pop(i)
        valid = bool(row.info.get("reward_valid", True))
        if valid:
            ahead = row.observation if row.truncated and not row.terminated else None
            self._fragments.setdefault(i, []).append(step._replace(reward=row.reward, last=row.done, ahead=ahead))
            self._sums[i] += row.reward
        else:
            self._given -= 1
            if (fragment := self._fragments.get(i)) and not fragment[-1].last:
                fragment[-1] = fragment[-1]._replace(last=True, ahead=step.observation)
        if not row.done:
            self._newest[i] = row.observation
            return not valid
        if valid:
            self._sampler.update(self._families[i], bool(row.info.get("success")))
            self.rewards.append(self._sums[i])
        self._again(i)
        return not valid

    def _again(self, i: int) -> None:
        if self._pool.states[i] != "retired":
            self._begin([i])

    def _cut(self, i: int) -> list[Step]:
        """An environment's fragment; amid an episode it ends with the value of where that stands now."""
        fragment = self._fragments[i]
        if not fragment[-1].last:
            ahead = self._pending[i].observation if i in self._pending else self._newest[i]
            fragment[-1] = fragment[-1]._replace(last=True, ahead=ahead)
        return fragment


def _drawn(log_probs: np.ndarray[Any, Any], draw: float) -> int:
    """The index that a number in [0, 1) stands for."""
    sums = np.exp(log_probs).cumsum()
    return min(int(np.searchsorted(sums, draw * sums[-1], side="right")), len(sums) - 1)
