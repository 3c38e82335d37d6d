"""Environments and policies that the tests of the policy server play with."""

import ctypes
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import psutil
from gymnasium.spaces import Box, Discrete

from agent_gym.core.policy import Decision, Policy
from agent_gym.core.spaces import Unicode
from tests.runner.faulty import Faulty

LENGTH = 6


class Ending(Faulty):
    """Episodes of 1 to 6 steps, drawn by the seed; one in two is cut short. A step takes as long as it happens to, a millisecond or so."""

    def __init__(self) -> None:
        super().__init__()
        self.close_calls = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        self.length, self.cut = 1 + int(self.start) % LENGTH, bool(int(self.start) // LENGTH % 2)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep((time.monotonic_ns() // 1000 % 7) * 0.0002)
        observation, _, ended, _, info = super().step(action)
        return observation, float(action), ended and not self.cut, ended and self.cut, info


class Parity(Policy):
    """Goes by the observation alone, and remembers what it was asked.

    Args:
        values: Whether it gives values.
        takes_s: Seconds a batch.
    """

    name = "parity"

    def __init__(self, values: bool = False, takes_s: float = 0.0) -> None:
        self.values, self.takes_s = values, takes_s
        self.asked: list[tuple[str, bytes]] = []
        self.sizes: list[int] = []

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        time.sleep(self.takes_s)
        self.sizes.append(len(batch))
        self.asked += [(episode_id, np.asarray(seen).tobytes()) for episode_id, seen in batch]
        values = [float(np.asarray(seen)[1]) if self.values else None for _, seen in batch]
        return [Decision(int(np.asarray(seen)[1]) % 2, value=value) for (_, seen), value in zip(batch, values, strict=True)]


class Counting(Policy):
    """Remembers of each episode how often it has acted in it, and acts by that."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.news: list[str] = []

    def reset(self, episode_ids: Sequence[str]) -> None:
        self.news += episode_ids
        self.counts.update(dict.fromkeys(episode_ids, 0))

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        decisions = []
        for episode_id, _ in batch:
            decisions.append(Decision(self.counts[episode_id] % 2, note=self.counts[episode_id]))
            self.counts[episode_id] += 1
        return decisions


class Misbehaving(Policy):
    """Decides well a few times, and then in the way it is told to.

    Args:
        how: ``raise``, ``exit``, ``hang``, ``few``, ``many``, ``none`` or ``plain``.
        well: How many batches go well.
    """

    name = "misbehaving"

    def __init__(self, how: str, well: int = 3) -> None:
        self.how, self.well = how, well
        self.released = threading.Event()

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        self.well -= 1
        decisions = [Decision(0) for _ in batch]
        if self.well >= 0:
            return decisions
        return getattr(self, f"_{self.how}")(decisions)  # type: ignore[no-any-return]

    def _raise(self, _: Any) -> Any:
        raise ZeroDivisionError("planted in the policy")

    def _exit(self, _: Any) -> Any:
        raise SystemExit(3)

    def _hang(self, decisions: Any) -> Any:
        self.released.wait(60)
        return decisions

    def _few(self, decisions: Any) -> Any:
        return decisions[1:]

    def _many(self, decisions: Any) -> Any:
        return [*decisions, Decision(0)]

    def _none(self, _: Any) -> Any:
        return None

    def _plain(self, decisions: Any) -> Any:
        return [decision.action for decision in decisions]


class Families(gymnasium.Env[Any, Any]):
    """Two kinds of task, one episode in four of the slow kind, whose steps take ten times as long."""

    observation_space = Box(0.0, 1.0, (1,), np.float32)
    action_space = Discrete(2)
    SHARES = (0.75, 0.25)
    TAKES_S = (0.0003, 0.003)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:  # noqa: ARG002 - it has none
        super().reset(seed=seed)
        self.kind, self.left = int(self.np_random.random() < self.SHARES[1]), 3
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ARG002 - any will do
        time.sleep(self.TAKES_S[self.kind])
        self.left -= 1
        return np.zeros(1, np.float32), 0.0, self.left == 0, False, {"kind": self.kind}


class Big(gymnasium.Env[Any, Any]):
    """Says four MiB."""

    BYTES = 4 * 2**20
    observation_space = Unicode(BYTES)
    action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:  # noqa: ARG002 - it has none
        super().reset(seed=seed)
        self.left = 4
        return "4" * self.BYTES, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ARG002 - any will do
        self.left -= 1
        return str(self.left) * self.BYTES, 0.0, self.left == 0, False, {}


class Zero(Policy):
    """Always does the same."""

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        return [Decision(0) for _ in batch]


def resident() -> int:
    """Bytes of this process that are in memory. From the first call on, large blocks are given back when they are freed."""
    ctypes.CDLL(None).mallopt(-3, 2**20)  # M_MMAP_THRESHOLD, which would rise by itself; then each thread keeps what it has freed
    return int(psutil.Process().memory_info().rss)


class Watching(Zero):
    """Takes its time, and looks at how much memory is in use."""

    def __init__(self) -> None:
        self.most = 0

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        time.sleep(0.01)
        self.most = max(self.most, resident())
        return super().act(batch)
