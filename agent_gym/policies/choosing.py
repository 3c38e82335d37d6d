"""Policies that choose among the array interface's candidates."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from agent_gym.core.policy import Decision, Policy
from agent_gym.core.seeding import derive
from agent_gym.interface.features import CANDIDATE_SIZE, CANDIDATES, COL_OVERLAP, COL_TRIED
from agent_gym.policies.per_episode import PerEpisode

__all__ = ["FirstCandidatePolicy", "HeuristicPolicy", "RandomPolicy"]


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
        return [Decision(self._choice(observation)) for _, observation in batch]

    def _choice(self, observation: Mapping[str, Any]) -> int:
        rows = observation["candidates"].reshape(CANDIDATES, CANDIDATE_SIZE)
        return int(np.argmax(np.where(observation["action_mask"], self._merit(rows), -np.inf)))

    def _merit(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        merit: NDArray[np.float32] = rows[:, COL_OVERLAP] - 2.0 * rows[:, COL_TRIED]
        return merit


class FirstCandidatePolicy(HeuristicPolicy):
    """Chooses the first candidate that was not tried yet: what the order of the candidates alone would tell.

    Args:
        env: Not looked at.
        seed: Not used.
    """

    name = "first-candidate"

    def _merit(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return -rows[:, COL_TRIED]
