"""A pool as a Stable-Baselines3 vector environment: one environment's fault is one truncated episode, not the end of the training."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from agent_gym.errors import ConfigurationError, MissingExtra
from agent_gym.runner.adapters.lockstep import Lockstep, Turn, batch, is_wrapped, open_pool, read
from agent_gym.runner.messages import Row
from agent_gym.runner.pool import AsyncPool

try:
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn
except ModuleNotFoundError as error:
    raise MissingExtra(error.name or "stable_baselines3", "train") from error

__all__ = ["AgentVecEnv"]

_MASKS = "action_masks"


class AgentVecEnv(VecEnv):
    """Many copies of an environment for Stable-Baselines3, stepped together.

    ::

        make_vec_env("agent_gym:AgentBase/ToolTask-v0", 8, seed=0, vec_env_cls=AgentVecEnv, vec_env_kwargs={"backend": "process"})
        AgentVecEnv("agent_gym:AgentBase/ToolTask-v0", 8)

    It does what SB3's ``DummyVecEnv`` and ``SubprocVecEnv`` do, with these differences:

    - An environment that dies, raises or passes its deadline is replaced. Its episode ends as truncated with a reward of 0 at the last
      good observation, so that the algorithm bootstraps from there; ``info["fault"]`` says what happened. If its successor cannot be
      reset either, it is tried again at the next step, which ends as truncated too.
    - Action masks come with the observations, so ``MaskablePPO`` asks the workers nothing.
    - Not all need be stepped together: `send` and `recv` step whoever is ready.

    Args:
        env: A list of callables that make an environment each, as ``make_vec_env`` gives it; or an id, an ``EnvSpec`` or one callable;
            or a pool without tasks, which then is this one's alone.
        num_envs: How many; the length of the list, where one is given.
        backend: ``"thread"`` or ``"process"``.
        env_kwargs: Keywords for every environment that an id or a spec makes.
        **pool: `AsyncPool`'s other keywords: deadlines, ``max_restarts``, ``workdir``.

    Attributes:
        pool: The pool inside. Its ``stats()`` may be read at any time; all else would disturb the lock-step.

    Raises:
        ConfigurationError: ``num_envs`` is missing or is not the list's length, or the pool has tasks.
        InfrastructureError: No environment could be made; it says why.
    """

    def __init__(
        self,
        env: Sequence[Callable[[], gymnasium.Env[Any, Any]]] | Any,
        num_envs: int | None = None,
        *,
        backend: str = "thread",
        env_kwargs: Mapping[str, Any] | None = None,
        **pool: Any,
    ) -> None:
        count = len(env) if isinstance(env, list | tuple) else env.num_envs if isinstance(env, AsyncPool) else num_envs
        if count is None or num_envs not in (None, count):
            raise ConfigurationError(f"num_envs must be given, and be the length of a list that is given; got {num_envs!r}")
        if isinstance(env, AsyncPool) and (env.queue is not None or env_kwargs or pool):
            raise ConfigurationError(
                "a pool that is given must have no tasks, since it starts their episodes itself, and needs no keywords"
            )
        self.pool = env if isinstance(env, AsyncPool) else open_pool(env, count, backend=backend, env_kwargs=env_kwargs, **pool)
        self._lockstep = Lockstep(self.pool, AutoresetMode.SAME_STEP)
        super().__init__(count, self.pool.single_observation_space, self.pool.single_action_space)

    def reset(self) -> VecEnvObs:
        """Resets all environments, with the seeds and options set before; a step under way is waited for and dropped.

        Raises:
            InfrastructureError: No environment at all could be reset.
        """
        self._lockstep.receive()
        self._lockstep.reset(range(self.num_envs), self._seeds, [options or None for options in self._options])
        turns = self._lockstep.receive() or {}
        self.reset_infos = [dict(turns[i].row.info) for i in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return self.newest(range(self.num_envs))

    def step_async(self, actions: NDArray[Any]) -> None:
        """Sends one action to each environment.

        Raises:
            ValueError: There are more or fewer actions than environments; then none of them has been sent.
            ResetNeeded: An environment has never been reset.
        """
        if len(actions) != self.num_envs:
            raise ValueError(f"there must be one action for each of the {self.num_envs} environments, got {len(actions)}")
        self._lockstep.step(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Waits for the step.

        Returns:
            Observations, rewards (``float32[N]``), dones (``bool[N]``) and infos. Where ``done`` is True the observation is that of the
            next episode; the info has ``terminal_observation`` and, in ``TimeLimit.truncated``, whether it was a truncation only.

        Raises:
            InfrastructureError: No environment at all could be reset.
        """
        turns = self._turns()
        results = [turns[i].result for i in range(self.num_envs)]
        rewards = np.array([row.reward for row in results], np.float32)
        dones = np.array([row.done for row in results], np.bool_)
        return self.newest(range(self.num_envs)), rewards, dones, [_info(row) for row in results]

    @property
    def under_way(self) -> set[int]:
        """The environments that were sent an action whose outcome was not given yet."""
        return self._lockstep.under_way

    def newest(self, env_ids: Sequence[int]) -> VecEnvObs:
        """The newest observations of these environments, stacked."""
        observations: VecEnvObs = batch(self.observation_space, [self._lockstep.observations[i] for i in env_ids])
        return observations

    def send(self, actions: NDArray[Any], env_ids: Sequence[int], notes: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Sends actions to some environments, and waits for none.

        Args:
            actions: One for each of them.
            env_ids: Which; none that is under way.
            notes: What only the learner knows of these steps, one dict for each; a ``RecordTrajectory`` in the worker keeps it.

        Raises:
            ResetNeeded: An environment has never been reset.
        """
        self._lockstep.step(actions, env_ids, notes)

    def recv(self) -> dict[int, tuple[float, bool, dict[str, Any]]]:
        """Waits until at least one environment is ready.

        Returns:
            Reward, done and info, as of `step_wait`, by environment; empty if none is under way. `newest` has the observations.

        Raises:
            InfrastructureError: No environment at all could be reset.
        """
        results = {i: turn.result for i, turn in self._turns(some=True).items()}
        return {i: (row.reward, row.done, _info(row)) for i, row in results.items()}

    def close(self) -> None:
        """Ends the workers; closing twice is fine."""
        self.pool.close()

    def has_attr(self, attr_name: str) -> bool:
        """Whether all environments have an attribute; its value stays in the workers."""
        if attr_name == _MASKS and any(mask is not None for mask in self._lockstep.masks):
            return True
        return all(found is not False for found in self._lockstep.call("has_wrapper_attr", attr_name))

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute of these environments; None stands for one that was given up, as in what methods return."""
        env_ids = self._ids(indices)
        if attr_name == "render_mode":  # SB3 asks when it is made, and an environment that does not come up shall not stop it
            return [self.pool.render_mode for _ in env_ids]
        return list(self._lockstep.call(read, attr_name, env_ids=env_ids))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets an attribute of these environments; the successor of one that breaks down does not have it."""
        self.env_method("set_wrapper_attr", attr_name, value, indices=indices)

    def env_method(self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any) -> list[Any]:
        """Calls a method of these environments. ``action_masks`` is answered without asking them, as of the newest observation."""
        env_ids = self._ids(indices)
        if method_name == _MASKS and not method_args and not method_kwargs:
            return self._masks(env_ids)
        for i in env_ids:
            self._lockstep.masks[i] = None  # the call may change what can be done
        return list(self._lockstep.call(method_name, *method_args, env_ids=env_ids, **method_kwargs))

    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None) -> list[bool]:
        """Whether these environments are inside a wrapper of that class."""
        name = f"{wrapper_class.__module__}.{wrapper_class.__qualname__}"
        return [bool(found) for found in self._lockstep.call(is_wrapped, name, env_ids=self._ids(indices))]

    def get_images(self) -> Sequence[NDArray[Any] | None]:
        """What every environment renders, where they render ``rgb_array``."""
        if self.render_mode != "rgb_array":
            warnings.warn(f"images need the render mode 'rgb_array', and this one is {self.render_mode!r}", stacklevel=2)
            return [None] * self.num_envs
        return list(self._lockstep.call("render"))

    def _ids(self, indices: VecEnvIndices) -> list[int]:
        return [int(i) for i in self._get_indices(indices)]

    def _masks(self, env_ids: Sequence[int]) -> list[Any]:
        masks, failed = self._lockstep.masks, self._lockstep.failed_resets
        if unknown := [i for i in env_ids if masks[i] is None and i not in failed]:
            for i, mask in zip(unknown, self._lockstep.call(_MASKS, env_ids=unknown), strict=True):
                masks[i] = mask
        # Where there is no episode nothing can be done, and any mask will do.
        any_mask = next((mask for mask in masks if mask is not None), None)
        return [np.ones_like(any_mask) if masks[i] is None else masks[i] for i in env_ids]

    def _turns(self, some: bool = False) -> dict[int, Turn]:
        turns = self._lockstep.receive(some=some) or {}
        for i, turn in turns.items():
            if turn.row.kind == "reset":
                self.reset_infos[i] = dict(turn.row.info)
        return turns


def _info(row: Row) -> dict[str, Any]:
    """The info as SB3 wants it."""
    info = {**row.info, "TimeLimit.truncated": row.truncated and not row.terminated}
    if row.done:
        info["terminal_observation"] = row.observation
    return info
