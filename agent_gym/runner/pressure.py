"""How much fits: what observations weigh, and how many episodes a budget of bytes has room for."""

import math
import sys
from typing import Any

import numpy as np

__all__ = ["Pressure", "weight"]


class Pressure:
    """Keeps what waits for a model, or for whoever takes the steps, within a budget of bytes.

    A request holds the observation that was acted on and the one that comes of it, and two more are allowed for what is just being read.
    So the budget has room for budget ÷ (2 × mean bytes of a row) − 1 episodes, the mean being exponentially weighted over some 64 rows.
    Until a row was weighed, and with the smallest of budgets, there is room for one.

    Args:
        budget: Bytes.

    Attributes:
        budget: Bytes.
        held: Bytes of the rows that are held at present.
        peak: The most that there were, together with what was expected of the rows under way.
        paused: How often an environment had to wait for room.
        row: Mean bytes of a row; None before the first.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.held = self.peak = self.paused = 0
        self.row: float | None = None
        self._paused_s = 0.0
        self._since: dict[int, float] = {}

    @property
    def capacity(self) -> int:
        """How many episodes there is room for, at least 1."""
        return 1 if self.row is None else max(1, math.floor(self.budget / max(1.0, 2.0 * self.row)) - 1)

    def expects(self, under_way: int) -> int:
        """Bytes that there will be once so many rows have come too."""
        return self.held + math.ceil(under_way * (self.row or 0.0))

    def takes(self, under_way: int) -> bool:
        """Whether a step more may be asked for; always, if none is under way."""
        return under_way == 0 or self.expects(under_way + 3) <= self.budget

    def hold(self, number: int, under_way: int) -> None:
        """A row of so many bytes has come, and so many others are under way."""
        self.held += number
        self.row = float(number) if self.row is None else self.row + (number - self.row) / 64
        self.peak = max(self.peak, self.expects(under_way))

    def release(self, number: int) -> None:
        """So many bytes are held no longer."""
        self.held -= number

    def waiting(self, env_ids: set[int], now: float) -> None:
        """Says which environments wait for room now, all that do."""
        for env_id in self._since.keys() - env_ids:
            self._paused_s += now - self._since.pop(env_id)
        for env_id in env_ids - self._since.keys():
            self._since[env_id] = now
            self.paused += 1

    def paused_s(self, now: float) -> float:
        """Seconds that environments have waited for room, all together."""
        return self._paused_s + sum(now - since for since in self._since.values())


def weight(value: Any) -> int:
    """About how many bytes of memory a value takes: arrays, text, and containers of these."""
    if isinstance(value, np.ndarray):
        return value.nbytes + 112
    if isinstance(value, dict):
        return sys.getsizeof(value) + sum(map(weight, value.values()))
    if isinstance(value, list | tuple):
        return sys.getsizeof(value) + sum(map(weight, value))
    return sys.getsizeof(value)
