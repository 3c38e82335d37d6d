"""What passes between the pool and its workers, and between the pool and whoever uses it: plain values, nothing that acts."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Answer", "Ask", "Batch", "Kind", "Row", "Usage"]

Kind = Literal["make", "reset", "step", "call", "close", "died"]


class Ask(NamedTuple):
    """What a worker is to do.

    Attributes:
        id: Its number in the pool. An answer names it, so that a late answer is never taken for another.
        kind: ``make``, ``reset``, ``step``, ``call`` or ``close``.
        payload: ``make``: the function that makes the environment; ``reset``: (seed, options); ``step``: (action, notes);
            ``call``: (name, args, kwargs).
    """

    id: int
    kind: Kind
    payload: Any


class Answer(NamedTuple):
    """What came of it.

    Attributes:
        ask_id: The ask's id.
        slot: The worker's slot.
        kind: The ask's kind; or ``died``, from the backend: the worker is gone, and ``error`` says how.
        value: ``make``: a dict of what the pool has to know of the environment; ``reset``: (observation, info, mask); ``step``:
            (observation, reward, terminated, truncated, info, mask); ``call``: what was returned, or the exception raised.
        error: The traceback of what the environment raised; empty if all went well.
        fatal: Whether that was a `StateLeakError`, which is to stop the run.
        seconds: Time spent in the worker.
    """

    ask_id: int
    slot: int
    kind: Kind
    value: Any
    error: str = ""
    fatal: bool = False
    seconds: float = 0.0


class Usage(NamedTuple):
    """What one environment uses: its process and all that it started.

    Attributes:
        pid: The worker's process.
        cpu_s: Seconds of CPU time so far.
        memory_mib: Resident memory, in MiB.
        fds: Open file descriptors.
        processes: Processes.
    """

    pid: int
    cpu_s: float
    memory_mib: float
    fds: int
    processes: int


@dataclass(frozen=True, kw_only=True)
class Row:
    """The outcome of one reset or one step.

    Attributes:
        env_id: The slot, in [0, num_envs).
        request_id: The number of the request, unique in the pool.
        kind: ``reset`` or ``step``.
        episode: The episode's number in the pool, counted in the order in which episodes were asked for.
        task_id: The episode's task, for a pool with tasks.
        observation: The observation; after a fault the last good one, None if there was none.
        reward: The reward; 0.0 for a reset and after a fault.
        terminated: As in Gymnasium.
        truncated: As in Gymnasium; True after a fault.
        info: The environment's; after a fault ``{"ending": "infra_error", "reward_valid": False, "fault": …}``.
        mask: What ``action_masks()`` said in the worker right after the observation, bool[K]; None without one and at an end.
        fault: What failed, or empty.
        seconds: Time spent in the worker.
        waited: Seconds from the request to the arrival of its answer.
    """

    env_id: int
    request_id: int
    kind: Literal["reset", "step"]
    episode: int
    task_id: str | None = None
    observation: Any
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any]
    mask: NDArray[np.bool_] | None = None
    fault: str = ""
    seconds: float = 0.0
    waited: float = 0.0

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


@dataclass(frozen=True)
class Batch:
    """Rows in the order in which they arrived, and their columns.

    Attributes:
        rows: The rows.
    """

    rows: tuple[Row, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @cached_property
    def env_ids(self) -> NDArray[np.int64]:
        """Slots, int64[B]."""
        return np.array([row.env_id for row in self.rows], dtype=np.int64)

    @cached_property
    def rewards(self) -> NDArray[np.float64]:
        """Rewards, float64[B]."""
        return np.array([row.reward for row in self.rows], dtype=np.float64)

    @cached_property
    def terminations(self) -> NDArray[np.bool_]:
        """Whether the episodes terminated, bool[B]."""
        return np.array([row.terminated for row in self.rows], dtype=np.bool_)

    @cached_property
    def truncations(self) -> NDArray[np.bool_]:
        """Whether the episodes were truncated, bool[B]."""
        return np.array([row.truncated for row in self.rows], dtype=np.bool_)

    @cached_property
    def observations(self) -> list[Any]:
        """Observations, B of them."""
        return [row.observation for row in self.rows]

    @cached_property
    def infos(self) -> list[dict[str, Any]]:
        """Infos, B of them."""
        return [row.info for row in self.rows]
