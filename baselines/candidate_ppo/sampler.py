"""Which task an episode gets: of a family that there is something to learn from, or of any."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agent_gym.core.seeding import derive
from agent_gym.core.task import Selection

__all__ = ["TaskSampler"]

_MEMORY = 0.95
_LEAST = 0.02


class TaskSampler:
    """Draws families by p · (1 − p), where p is a running mean of their success, and a family's tasks uniformly.

    Args:
        selection: The tasks.
        floor: Share of the draws in which families are drawn uniformly.
        seed: Root of the draws.
    """

    def __init__(self, selection: Selection, *, floor: float, seed: int) -> None:
        self._selection, self._floor = selection, floor
        self._rng = derive("task-sampler", seed)
        self._rates = dict.fromkeys(selection.by_family, 0.5)
        self.played = dict.fromkeys(selection.by_family, 0)
        """Episodes that have ended, by family."""
        self.solved = dict.fromkeys(selection.by_family, 0)
        """Those of them that succeeded."""

    def draw(self) -> str:
        """A task's id."""
        families = list(self._rates)
        rates = np.array(list(self._rates.values()))
        weights = rates * (1 - rates) + _LEAST
        shares = self._floor / len(families) + (1 - self._floor) * weights / weights.sum()
        family = families[int(self._rng.choice(len(families), p=shares / shares.sum()))]
        one = Selection(self._selection.get, {family: self._selection.by_family[family]}, self._selection.difficulty)
        return one.draw(self._rng).id

    def update(self, family: str, success: bool) -> None:
        """Takes in how an episode ended."""
        if family in self._rates:
            self._rates[family] = _MEMORY * self._rates[family] + (1 - _MEMORY) * success
            self.played[family] += 1
            self.solved[family] += success

    def state_dict(self) -> dict[str, Any]:
        """All that the next draws depend on, as JSON values."""
        return {"rng": self._rng.bit_generator.state, "rates": self._rates, "played": self.played, "solved": self.solved}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from there."""
        self._rng.bit_generator.state = state["rng"]
        self._rates, self.played, self.solved = dict(state["rates"]), dict(state["played"]), dict(state["solved"])
