"""When a batch goes to the model, and how large it is.

By default it goes as soon as the model is free, with whoever is ready: nothing waits that could work. Where a larger batch takes noticeably
longer, its size is bounded too, since environments that take equally long would otherwise all end up in one batch, and wait for it
together. Both follow from the time that a batch of B takes, I(B) = a + bB, which is fitted to what was measured.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np

from agent_gym.errors import ConfigurationError

__all__ = ["Batcher", "InferenceTime", "Optimum", "longest_window", "optimum"]

T = TypeVar("T")

_COST = 0.02
"""The share of the throughput that a size or a window may cost by the formula; around the optimum it is flat."""


class InferenceTime:
    """The line I(B) = a + bB through the latest batches.

    It is Theil and Sen's: b is the median of the slopes between any two batches, and a the median of what is left. So a warm-up or an
    interruption now and then, up to a quarter of the batches, changes little. As long as all are of one size, b is 0.

    Args:
        latest: How many batches it looks at.
    """

    def __init__(self, latest: int = 96) -> None:
        self._batches: deque[tuple[int, float]] = deque(maxlen=latest)
        self._line, self._stale = (0.0, 0.0), 0

    def add(self, size: int, seconds: float) -> None:
        """Takes in how long a batch took."""
        self._batches.append((size, seconds))
        self._stale += 1

    @property
    def line(self) -> tuple[float, float]:
        """A and b, in seconds, neither below 0; fitted anew when an eighth of the batches is new. 0 and 0 before the first."""
        if self._stale > len(self._batches) // 8:
            size, seconds = np.array(self._batches).T
            rise, run = seconds[:, None] - seconds, size[:, None] - size
            b = max(0.0, float(np.median(rise[run > 0] / run[run > 0]))) if np.any(run > 0) else 0.0
            self._line, self._stale = (max(0.0, float(np.median(seconds - b * size))), b), 0
        return self._line


class Optimum(NamedTuple):
    """What is best by the formula.

    Attributes:
        batch: The size B*, a real number in [1, environments].
        per_s: Steps a second X*, which nothing can exceed.
    """

    batch: float
    per_s: float


def optimum(envs: float, latency_s: float, a: float, b: float) -> Optimum:
    """The best throughput of a closed loop of environments and one model: max over B of min(N / (L + I(B)), B / I(B)).

    An environment goes round in L + I(B) at the least, and the model gives at most B answers in I(B). The two are equal at
    B* = (p + √(p² + 4Nab)) / 2b with p = Nb − a − L, or Na / (L + a) where b = 0.

    Args:
        envs: N, above 0; a model's share, if there are several.
        latency_s: L, the seconds of a step without those of the model.
        a: Seconds of a batch, whatever its size.
        b: Seconds for each observation in it.
    """
    p = envs * b - a - latency_s
    root = math.sqrt(p * p + 4.0 * envs * a * b)
    batch = (p + root) / (2.0 * b) if p > 0.0 else 2.0 * envs * a / (root - p) if root > p else 1.0  # of two forms the exact one
    batch = min(max(1.0, batch), max(1.0, envs))
    takes = a + b * batch
    bounds = [amount / seconds for amount, seconds in ((envs, latency_s + takes), (batch, takes)) if seconds > 0.0]
    return Optimum(batch, min(bounds, default=math.inf))


def longest_window(envs: float, latency_s: float, a: float, b: float) -> float:
    """The window W that costs a fiftieth of the throughput, in seconds.

    Begun by the first observation, it delays a step by w = W(1 + XW/2) / (1 + XW) in the mean, so that w may be a fiftieth of L + I(B*).
    """
    batch, per_s = optimum(envs, latency_s, a, b)
    if not 0.0 < per_s < math.inf:
        return 0.0
    w = _COST * (latency_s + a + b * batch)
    q = 1.0 - w * per_s
    return (math.sqrt(q * q + 2.0 * per_s * w) - q) / per_s


@dataclass(slots=True)
class _Queued(Generic[T]):
    item: T
    since: float
    device: int | None


@dataclass
class Batcher(Generic[T]):
    """What waits for a model, oldest first. Everything is taken once, in the order in which it came, by a device that may have it.

    Attributes:
        devices: Models, each on a device of its own, from 1; they are taken to be equally fast.
        window: Seconds that a batch which could be larger waits for more, from 0; ``"auto"`` for the longest that costs no more than a
            fiftieth of the throughput.
        max_batch: The largest batch, from 1; None for what costs nothing.
        envs: Environments that go round.
        latency_s: Seconds of a step without those of the model.
        times: How long batches took.

    Raises:
        ConfigurationError: A value does not fit.
    """

    devices: int = 1
    window: float | Literal["auto"] = 0.0
    max_batch: int | None = None
    envs: int = 1
    latency_s: float = 0.0
    times: InferenceTime = field(default_factory=InferenceTime)
    _queue: deque[_Queued[T]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        numeric = isinstance(self.window, int | float) and not isinstance(self.window, bool)
        if self.window != "auto" and not (numeric and 0.0 <= float(self.window) < math.inf):
            raise ConfigurationError(f"window must be seconds from 0, or 'auto'; got {self.window!r}")
        if self.max_batch is not None and (type(self.max_batch) is not int or self.max_batch < 1):
            raise ConfigurationError(f"max_batch must be at least 1, or None; got {self.max_batch!r}")

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def best(self) -> Optimum:
        """B* and X* by what was measured so far; X* of all devices together."""
        batch, per_s = optimum(self.envs / self.devices, self.latency_s, *self.times.line)
        return Optimum(batch, per_s * self.devices)

    @property
    def most(self) -> int:
        """How large a batch may be: B*, and beyond it as far as the formula's throughput is within a fiftieth of the best."""
        share, (a, b) = self.envs / self.devices, self.times.line
        most = max(1, self.envs)
        if b > 0.0:
            batch, per_s = optimum(share, self.latency_s, a, b)
            still = (share / ((1.0 - _COST) * per_s) - self.latency_s - a) / b
            most = min(most, max(math.ceil(batch), math.floor(still)))
        return most if self.max_batch is None else min(most, self.max_batch)

    @property
    def window_s(self) -> float:
        """The window, in seconds."""
        if self.window == "auto":
            return longest_window(self.envs / self.devices, self.latency_s, *self.times.line)
        return self.window

    def add(self, item: T, now: float, device: int | None = None) -> None:
        """Lets something wait, for any device or for one."""
        self._queue.append(_Queued(item, now, device))

    def take(self, device: int, now: float, idle: int, more: bool) -> list[T]:
        """The batch that goes to a device which is free; empty if none goes yet.

        Args:
            device: The device.
            now: Seconds, of the clock that `add` was given.
            idle: How many devices are free, this one included: they share what waits.
            more: Whether anything else can come; else there is nothing to wait for.
        """
        mine = [queued for queued in self._queue if queued.device is None or queued.device == device]
        if not mine:
            return []
        most = self.most
        if more and len(mine) < most and now < mine[0].since + self.window_s:
            return []
        alone = sum(queued.device == device for queued in mine)
        size = min(len(mine), most, max(alone, math.ceil(len(mine) / idle)))
        taken = mine[:size]
        gone = set(map(id, taken))
        self._queue = deque(queued for queued in self._queue if id(queued) not in gone)
        return [queued.item for queued in taken]

    def due(self, devices: Sequence[int]) -> float:
        """When the window of the oldest thing ends that one of these devices may have; infinity if there is none."""
        waiting = (queued.since for queued in self._queue if devices and (queued.device is None or queued.device in devices))
        return next(waiting, math.inf) + self.window_s
