"""Policies that choose among the array interface's candidates."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np

from agent_gym.core.policy import Decision, Policy
from agent_gym.core.seeding import derive
from agent_gym.interface.features import CANDIDATE_SIZE, CANDIDATES, COL_OVERLAP, COL_TRIED
from agent_gym.policies.per_episode import PerEpisode

__all__ = ["HeuristicPolicy", "RandomPolicy"]


class RandomPolicy(Policy):
    """Chooses uniformly among the valid candidates.

    Args:
        env: Not looked at.
        seed: Root of its randomness; what it does in an episode depends on this and the episode's id alone.
    """

    interface: Literal["array", "text"] = "array"
    name = "random"

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int = 0) -> None:  # noqa: ARG002 - every policy is made alike
        self._rngs = PerEpisode(lambda episode_id: derive("random", seed, episode_id))

    def reset(self, episode_ids: Sequence[str]) -> None:
        """Starts these episodes' randomness anew."""
        self._rngs.forget(episode_ids)

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Draws an index for each."""
        decisions = []
        for episode_id, observation in batch:
            valid = np.flatnonzero(observation["action_mask"])
            choice = int(valid[self._rngs[episode_id].integers(len(valid))])
            decisions.append(Decision(choice, logprob=-float(np.log(len(valid)))))
        return decisions


class HeuristicPolicy(Policy):
    """Chooses the candidate that shares most words with the goal among those not tried yet; the first of equals.

    Args:
        env: Not looked at.
        seed: Not used.
    """

    interface: Literal["array", "text"] = "array"
    name = "heuristic"

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int = 0) -> None:
        pass

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        """Chooses an index for each."""
        decisions = []
        for _, observation in batch:
            rows = observation["candidates"].reshape(CANDIDATES, CANDIDATE_SIZE)
            merit = rows[:, COL_OVERLAP] - 2.0 * rows[:, COL_TRIED]
            decisions.append(Decision(int(np.argmax(np.where(observation["action_mask"], merit, -np.inf)))))
        return decisions
