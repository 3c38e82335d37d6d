"""A pool as a Gymnasium vector environment: lock-step, as Gymnasium's own, but one environment's fault is one truncated row."""

import multiprocessing
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray

from agent_gym.errors import ResetNeeded
from agent_gym.runner.adapters.lockstep import Lockstep, Turn, batch, open_pool
from agent_gym.runner.episodes import spread

__all__ = ["AgentVectorEnv", "make_vec"]

_StepResult = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


def make_vec(
    id: str,
    num_envs: int = 1,
    *,
    backend: str = "thread",
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    vector_kwargs: Mapping[str, Any] | None = None,
    **env_kwargs: Any,
) -> "AgentVectorEnv":
    """A vector environment over an `AsyncPool`; ``gymnasium.make_vec`` gives Gymnasium's own instead.

    Args:
        id: An environment's id, with ``module:`` in front where its module is not imported.
        num_envs: How many.
        backend: ``"thread"`` (cheap, for environments that wait) or ``"process"`` (isolated, for environments that compute).
        autoreset_mode: When an environment whose episode has ended is reset.
        vector_kwargs: Keywords for `AgentVectorEnv`: deadlines, ``max_restarts``, ``workdir``.
        **env_kwargs: Keywords for every environment.
    """
    return AgentVectorEnv(
        id, num_envs, backend=backend, autoreset_mode=autoreset_mode, env_kwargs=env_kwargs or None, **(vector_kwargs or {})
    )


class AgentVectorEnv(VectorEnv[Any, Any, Any]):
    """Many copies of an environment, stepped together.

    It does what ``gymnasium.vector.AsyncVectorEnv`` does, with these differences:

    - An environment that dies, raises or passes its deadline is replaced. Its row is truncated with a reward of 0 at its last good
      observation; ``infos["fault"]`` says what happened and ``infos["reward_valid"]`` is False. If its successor cannot be reset
      either, it is tried again at the next step, and the row stays truncated.
    - A seed that is one number is spread by derivation, not by adding 0, 1, 2, …: runs with neighbouring seeds share no episode.
    - No environment is built in this process besides the workers' own, and options that are passed in are left as they are.
    - `step_wait` and `reset_wait` can be called again after their timeout.

    Observations of spaces that have no arrays, such as the text interface's, come as tuples.

    Args:
        env: An id, an ``EnvSpec`` or a callable that makes one; or a list of such, one for each environment.
        num_envs: How many.
        backend: ``"thread"`` or ``"process"``.
        autoreset_mode: When an environment whose episode has ended is reset: at the next step, whose action it ignores
            (``NEXT_STEP``); at once, with the end in ``final_obs`` and ``final_info`` (``SAME_STEP``); or by the caller, with
            ``reset(options={"reset_mask": …})`` (``DISABLED``).
        env_kwargs: Keywords for every environment that an id or a spec makes.
        **pool: `AsyncPool`'s other keywords: deadlines, ``max_restarts``, ``workdir``.

    Attributes:
        pool: The pool inside. Its ``stats()`` may be read at any time; all else would disturb the lock-step.

    Raises:
        InfrastructureError: No environment could be made; it says why.
    """

    def __init__(
        self,
        env: Any,
        num_envs: int,
        *,
        backend: str = "thread",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        env_kwargs: Mapping[str, Any] | None = None,
        **pool: Any,
    ) -> None:
        super().__init__()
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.pool = open_pool(env, num_envs, backend=backend, env_kwargs=env_kwargs, **pool)
        self.num_envs = num_envs
        self.spec = self.pool.spec
        self.metadata = {**self.pool.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = self.pool.render_mode
        self.single_observation_space = self.pool.single_observation_space
        self.single_action_space = self.pool.single_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._lockstep = Lockstep(self.pool, self.autoreset_mode)
        self._pending: Literal["reset", "step"] | None = None

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets all environments, or those of a mask.

        Args:
            seed: One number, from which every environment's seed is derived; or a list, whose entries go to the environments as they
                are.
            options: For every environment. ``"reset_mask"``, a ``bool[N]`` array, says which ones are reset; the others' rows are
                their newest observations.

        Returns:
            The observations and the infos, a dict of arrays with a mask ``_key`` beside each ``key``.

        Raises:
            TypeError, ValueError: The mask or the seeds do not fit.
            ResetNeeded: A mask leaves out an environment that was never reset.
            InfrastructureError: No environment at all could be reset.
        """
        self.reset_async(seed=seed, options=options)
        return self.reset_wait()

    def reset_async(self, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None) -> None:
        """Sends what `reset` sends; `reset_wait` gives the answers."""
        self._expect(None, "reset_async")
        if isinstance(seed, int | np.integer):
            super().reset(seed=int(seed))
            seed = [spread("vector", int(seed), i) for i in range(self.num_envs)]
        if seed is not None and len(seed) != self.num_envs:
            raise ValueError(f"there must be one seed for each of the {self.num_envs} environments, got {len(seed)}")
        options = dict(options) if options is not None else None
        mask = _checked_mask(options.pop("reset_mask"), self.num_envs) if options and "reset_mask" in options else None
        if mask is not None and any(self._lockstep.observations[i] is None for i in np.flatnonzero(~mask)):
            raise ResetNeeded("reset() with a reset_mask before reset() without one: reset all environments first")
        env_ids = range(self.num_envs) if mask is None else [int(i) for i in np.flatnonzero(mask)]
        seeds = [seed[i] for i in env_ids] if seed is not None else None
        self._lockstep.reset(env_ids, seeds, [options] * len(env_ids))
        self._pending = "reset"

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """Waits for the answers to `reset_async`.

        Raises:
            multiprocessing.TimeoutError: They did not all come within so many seconds; wait again to have them.
        """
        turns = self._receive("reset", timeout)
        infos: dict[str, Any] = {}
        for i in sorted(turns):
            infos = self._add_info(infos, turns[i].row.info, i)
        return batch(self.single_observation_space, self._lockstep.observations), infos

    def step(self, actions: Any) -> _StepResult:
        """Takes one action in each environment.

        Args:
            actions: An element of `action_space`, or a sequence like one.

        Returns:
            Observations, rewards (``float64[N]``), terminations and truncations (``bool[N]``), and the infos as of `reset`.

        Raises:
            ValueError, TypeError: The number or shape of the actions does not fit; then none of them has been sent.
            ResetNeeded: An environment has not been reset since the start or, in ``DISABLED`` mode, since its episode's end.
            InfrastructureError: No environment at all could be reset.
        """
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Sends what `step` sends; `step_wait` gives the answers."""
        self._expect(None, "step_async")
        rows = self._rows_of(actions)
        self._lockstep.step(rows)
        self._pending = "step"

    def step_wait(self, timeout: float | None = None) -> _StepResult:
        """Waits for the answers to `step_async`.

        Raises:
            multiprocessing.TimeoutError: They did not all come within so many seconds; wait again to have them.
        """
        turns = self._receive("step", timeout)
        results = [turns[i].result for i in range(self.num_envs)]
        infos: dict[str, Any] = {}
        for i in range(self.num_envs):
            final = turns[i].final
            if final is not None:
                infos = self._add_info(infos, {"final_obs": final.observation, "final_info": final.info}, i)
            infos = self._add_info(infos, turns[i].row.info, i)
        return (
            batch(self.single_observation_space, self._lockstep.observations),
            np.array([row.reward for row in results], np.float64),
            np.array([row.terminated for row in results], np.bool_),
            np.array([row.truncated for row in results], np.bool_),
            infos,
        )

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every environment, or reads an attribute; None stands for an environment that was given up."""
        self._expect(None, "call")
        return tuple(self._lockstep.call(name, *args, **kwargs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of every environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of every environment; the successor of one that breaks down does not have it.

        Args:
            name: The attribute.
            values: A list or tuple with one value for each environment, or one value for all.
        """
        self._expect(None, "set_attr")
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"there must be one value for each of the {self.num_envs} environments, got {len(values)}")
        for i, value in enumerate(values):
            self._lockstep.call("set_wrapper_attr", name, value, env_ids=[i])

    def render(self) -> tuple[Any, ...]:
        """What every environment renders."""
        return self.call("render")

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """Ends the workers.

        Args:
            timeout: How long they may take to close their environments, in seconds; by default 10.
            terminate: End them at once.
        """
        if hasattr(self, "pool"):
            self.pool.close(0.0 if terminate else 10.0 if timeout is None else timeout)

    def _expect(self, pending: str | None, caller: str) -> None:
        if self.closed:
            raise ClosedEnvironmentError(f"{caller}() after close()")
        if self._pending == pending:
            return
        if pending is None:
            raise AlreadyPendingCallError(f"{caller}() before {self._pending}_wait() has given its answers", str(self._pending))
        raise NoAsyncCallError(f"{caller}() without {pending}_async() before it", str(pending))

    def _receive(self, pending: Literal["reset", "step"], timeout: float | None) -> dict[int, Turn]:
        self._expect(pending, f"{pending}_wait")
        turns = self._lockstep.receive(timeout)
        if turns is None:
            raise multiprocessing.TimeoutError(f"{pending}_wait(): no answer within {timeout} s; wait again to have it")
        self._pending = None
        return turns

    def _rows_of(self, actions: Any) -> list[Any]:
        """One action for each environment."""
        shape = self.action_space.shape
        if shape is not None and np.shape(actions) != shape:
            raise ValueError(f"actions of shape {np.shape(actions)} do not fit: expected {shape}")
        rows = list(iterate(self.action_space, actions))
        if len(rows) != self.num_envs:
            raise ValueError(f"there must be one action for each of the {self.num_envs} environments, got {len(rows)}")
        return rows

    def _add_info(self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int) -> dict[str, Any]:
        """Gymnasium's way, but values that share no type or shape become an array of objects: nothing is cast, stretched or refused."""
        for key, value in env_info.items():
            held = vector_infos.get(key)
            if _fits(value, held):
                super()._add_info(vector_infos, {key: value}, env_num)
                continue
            objects = np.full(self.num_envs, None, object)
            mask = vector_infos.setdefault(f"_{key}", np.zeros(self.num_envs, np.bool_))
            for i in np.flatnonzero(mask):
                objects[i] = _single(held, int(i))
            objects[env_num], mask[env_num] = value, True
            vector_infos[key] = objects
        return vector_infos


def _single(held: Any, i: int) -> Any:
    """What one environment's info had."""
    if isinstance(held, dict):
        return {key: _single(part, i) for key, part in held.items() if f"_{key}" in held and held[f"_{key}"][i]}
    return held[i]


def _fits(value: Any, held: NDArray[Any] | dict[str, Any] | None) -> bool:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return False
    if held is None or isinstance(held, dict):
        return held is None or isinstance(value, dict)
    if held.dtype == object or not isinstance(value, int | float | np.generic | np.ndarray):
        return held.dtype == object and not isinstance(value, dict)
    array = np.asarray(value)
    return array.shape == held.shape[1:] and np.can_cast(array.dtype, held.dtype, "same_kind")


def _checked_mask(mask: Any, num_envs: int) -> NDArray[np.bool_]:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"options['reset_mask'] must be a numpy array of bool, got {mask!r}")
    if mask.shape != (num_envs,) or not mask.any():
        raise ValueError(f"options['reset_mask'] must have the shape ({num_envs},) and at least one True, got {mask!r}")
    return mask
