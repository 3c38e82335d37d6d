"""A pool driven in lock-step, which is what both adapters do: every environment is sent something, and all answers are waited for.

Faults stay where they happened. The row of an environment that broke off is truncated at its last good observation, the next reset
goes to its successor, and the other rows know nothing of it.
"""

import copy
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray

from agent_gym.errors import InfrastructureError, ResetNeeded
from agent_gym.runner.episodes import spread
from agent_gym.runner.messages import Row
from agent_gym.runner.pool import AsyncPool

__all__ = ["Lockstep", "Turn", "batch", "is_wrapped", "open_pool", "read"]


class Turn(NamedTuple):
    """What came of one environment's turn.

    Attributes:
        row: Where it stands now.
        final: The last row of an episode that ended in this turn, where the environment has been reset since.
    """

    row: Row
    final: Row | None = None

    @property
    def result(self) -> Row:
        """The row that the action led to."""
        return self.final or self.row


class Lockstep:
    """Sends to all environments of a pool and waits for all.

    Args:
        pool: The pool; nobody else may use it meanwhile.
        mode: When an environment whose episode has ended is reset.

    Attributes:
        needs_reset: ``bool[N]``: whose episode is over, or could not begin.
        observations: The newest observation of each environment.
        masks: The action masks that came with them, None where the environment has none.
        failed_resets: What became of those that could not be reset when it was last tried.
    """

    def __init__(self, pool: AsyncPool, mode: AutoresetMode) -> None:
        self.pool = pool
        self.mode = mode
        self.needs_reset = np.ones(pool.num_envs, np.bool_)
        self.observations: list[Any] = [None] * pool.num_envs
        self.masks: list[Any] = [None] * pool.num_envs
        self.failed_resets: dict[int, Turn] = {}
        self._turns: dict[int, Turn] = {}
        self._open: set[int] = set()
        self._roots: list[int | None] = [None] * pool.num_envs
        self._faults = [0] * pool.num_envs
        self._replaced = [False] * pool.num_envs

    def reset(self, env_ids: Sequence[int], seeds: Sequence[int | None] | None = None, options: Sequence[Any] | None = None) -> None:
        """Sends resets.

        Args:
            env_ids: Which environments.
            seeds: One for each of them. Without a seed an environment goes on with its own random stream; the successor of one that
                broke down has none yet, and takes a seed derived from the last one given.
            options: One for each of them.
        """
        chosen: list[int | None] = list(seeds) if seeds is not None else [None] * len(env_ids)
        for place, i in enumerate(env_ids):
            root = self._roots[i]
            if chosen[place] is not None:
                self._roots[i], self._faults[i] = chosen[place], 0
            elif self._replaced[i] and root is not None:
                chosen[place] = spread("successor", root, self._faults[i])
            self._replaced[i] = False
        self.pool.async_reset(env_ids, seed=chosen, options=options)
        self._open.update(env_ids)

    @property
    def under_way(self) -> set[int]:
        """The environments whose turn has begun and was not given by `receive` yet."""
        return self._open | self._turns.keys()

    def step(
        self,
        actions: Sequence[Any] | NDArray[Any],
        env_ids: Sequence[int] | None = None,
        notes: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Sends actions. Where the episode is over a reset is sent instead, if the mode says so.

        Args:
            actions: One for each of the environments.
            env_ids: Which; by default all.
            notes: What only the learner knows, one for each of them.

        Raises:
            ResetNeeded: An environment has never been reset or, in ``DISABLED`` mode, not since its episode's end. Nothing was sent.
        """
        chosen = range(self.pool.num_envs) if env_ids is None else env_ids
        waiting = [i for i in chosen if self.needs_reset[i]]
        if any(self.observations[i] is None for i in waiting):
            raise ResetNeeded("step() before reset(): reset all environments first")
        if self.mode is AutoresetMode.DISABLED:
            if over := [i for i in waiting if i not in self.failed_resets]:
                raise ResetNeeded(f"the episodes of environments {over} are over: reset(options={{'reset_mask': …}}) them first")
            self._turns = {i: self.failed_resets[i] for i in waiting}
        elif waiting:
            self.reset(waiting)
        places = [place for place, i in enumerate(chosen) if not self.needs_reset[i]]
        if places:
            ready = [chosen[place] for place in places]
            self.pool.send([actions[place] for place in places], ready, None if notes is None else [notes[place] for place in places])
            self._open.update(ready)

    def receive(self, timeout: float | None = None, *, some: bool = False) -> dict[int, Turn] | None:
        """Waits for all that was sent, or for the first that is ready.

        Args:
            timeout: Seconds to wait at most.
            some: Whether to give what has come as soon as there is any.

        Returns:
            The turns by environment; None if the timeout (seconds) passed first: then nothing is lost, and it can be called again.

        Raises:
            InfrastructureError: No environment at all could be reset.
        """
        same_step = self.mode is AutoresetMode.SAME_STEP
        until = None if timeout is None else time.monotonic() + timeout
        while self._open and not (some and self._turns.keys() - self._open):
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return None
            # An episode's end is followed by a reset at once, not when the slowest of the others is done.
            self._wait(1 if same_step or some else len(self._open), left)
        turns = {i: turn for i, turn in self._turns.items() if i not in self._open}
        self._turns = {i: self._turns[i] for i in self._turns.keys() & self._open}  # episodes that are over, and not begun anew yet
        if len(self.failed_resets) == self.pool.num_envs:
            raise InfrastructureError(f"no environment could be reset; the first one says: {self.failed_resets[0].row.fault}")
        return turns

    def call(self, name: str | Callable[..., Any], *args: Any, env_ids: Sequence[int] | None = None, **kwargs: Any) -> list[Any]:
        """`AsyncPool.call` with one value for each environment, None for one that was given up.

        Those that are under way are waited for first; what came of it is kept for `receive`.
        """
        env_ids = range(self.pool.num_envs) if env_ids is None else env_ids
        while not self._open.isdisjoint(env_ids):
            self._wait(1, None)
        states = self.pool.states
        living = [i for i in env_ids if states[i] != "retired"]
        values = dict(zip(living, self.pool.call(name, *args, env_ids=living, **kwargs), strict=True))
        return [values.get(i) for i in env_ids]

    def _wait(self, count: int, timeout: float | None) -> None:
        """Waits for rows and takes them in."""
        rows = self.pool.recv(min=count, timeout=timeout).rows
        if not rows and timeout is None:
            raise InfrastructureError(f"the pool owes answers of environments {sorted(self._open)} and has none outstanding")
        for row in rows:
            self._take(row)

    def _take(self, row: Row) -> None:
        i = row.env_id
        if row.fault:
            self._faults[i] += 1
            self._replaced[i] = True
            if row.observation is None:
                row = replace(row, observation=self._stand_in(i))
        same_step = self.mode is AutoresetMode.SAME_STEP
        if row.kind == "step" and row.done and same_step:
            self.observations[i] = row.observation
            self._turns[i] = Turn(row, row)
            self.reset([i])
            return
        earlier, failed = self._turns.get(i), self.failed_resets.pop(i, None)
        final = earlier.final if earlier else None
        if same_step and earlier is None:  # a reset again after one that failed; its turn is truncated, so that none spans two episodes
            final = row if row.done else failed.row if failed else None
        turn = Turn(row, final)
        if row.kind == "reset" and row.done:
            self.failed_resets[i] = turn
        self._turns[i] = turn
        self._open.discard(i)
        self.needs_reset[i] = row.done
        self.observations[i] = row.observation
        if row.mask is not None:
            self.masks[i] = row.mask

    def _stand_in(self, i: int) -> Any:
        """The last observation of an environment that could not be reset; before it ever gave one, any element of its space."""
        if self.observations[i] is not None:
            return self.observations[i]
        space = copy.deepcopy(self.pool.single_observation_space)
        space.seed(0)
        return space.sample()


def open_pool(env: Any, num_envs: int, **keywords: Any) -> AsyncPool:
    """A pool with at least one environment up.

    Raises:
        InfrastructureError: No environment could be made; nothing is left of the pool.
    """
    pool = AsyncPool(env, num_envs, **keywords)
    try:
        _ = pool.single_observation_space  # waits for it
    except BaseException:
        pool.close()
        raise
    return pool


def batch(space: gymnasium.Space[Any], observations: Iterable[Any]) -> Any:
    """Observations as Gymnasium batches them: new arrays where the space has arrays, a tuple where it has not.

    Raises:
        ValueError: One does not fit the space; says which.
    """
    rows = list(observations)
    empty: Any = create_empty_array(space, len(rows))
    try:
        return concatenate(space, rows, empty)
    except (ValueError, TypeError, LookupError) as error:
        wrong = [i for i, row in enumerate(rows) if not space.contains(row)]
        raise ValueError(f"the observations of envs {wrong} are not in {space}: {error}") from error


def read(env: gymnasium.Env[Any, Any], name: str) -> Any:
    """An attribute of an environment or of a wrapper around it; runs in the worker."""
    return env.get_wrapper_attr(name)


def is_wrapped(env: gymnasium.Env[Any, Any], wrapper: str) -> bool:
    """Whether there is a wrapper of a class with that full name; runs in the worker, which so need not import the class."""
    while isinstance(env, gymnasium.Wrapper):
        if any(f"{kind.__module__}.{kind.__qualname__}" == wrapper for kind in type(env).__mro__):
            return True
        env = env.env
    return False
