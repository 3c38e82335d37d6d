"""PPO and MaskablePPO that step whoever is ready, so that a slow tool keeps nobody waiting but its own environment.

The learners are those of Stable-Baselines3; only how a rollout is collected differs. It is complete when ``n_steps`` x ``n_envs`` steps
have come, whosever they are: what each environment made since the last one is a *fragment*, long where it is quick, and the fragments fill
the columns of the rollout buffer one after another. A fragment that ends amid an episode is bootstrapped there, and the next one goes on
from it; what is under way comes into the next rollout. So every environment's steps are learned from once and without a gap, and tasks as
often as they are drawn, however long they take.

Before a rollout is learned from, everybody at rest is given an action: tools are at work while the learner is. Such steps were chosen by an
earlier version of the policy. They keep the log-probability they had then, which is what PPO's ratio asks for; ``rollout/lag_mean`` and
``rollout/lag_max`` in the log say how many versions earlier it was.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import is_masking_supported
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import obs_as_tensor

from agent_gym.errors import ConfigurationError, InfrastructureError
from agent_gym.runner import AgentVecEnv, AsyncPool
from agent_gym.runner.adapters.lockstep import batch

__all__ = ["AsyncMaskablePPO", "AsyncPPO"]

_ENVS = 8
"""How many environments an id stands for, where nothing is said."""


class _Step(NamedTuple):
    """One step of one environment."""

    observation: Any
    action: NDArray[Any]
    value: torch.Tensor
    log_prob: torch.Tensor
    mask: NDArray[Any] | None
    version: int
    """How many rollouts the policy that chose had learned from."""
    first: bool
    """Whether what came before belongs to another episode."""
    reward: float = 0.0
    last: bool = False
    """Whether what comes after belongs to another episode."""
    ahead: Any = None
    """Where what comes after is cut off: the observation whose value stands for it."""


class _Told(NamedTuple):
    """What callbacks are told of a step."""

    env_id: int
    action: NDArray[Any]
    reward: float
    done: bool
    info: dict[str, Any]


class _Asynchronous(OnPolicyAlgorithm):
    """What both learners have in common: where they get their environments, and how they collect."""

    _version = 0

    def __init__(self, policy: Any, env: Any, *args: Any, n_envs: int | None = None, **keywords: Any) -> None:
        envs: Any = None if env is None else _vec_env(env, n_envs)  # None where a model is loaded without
        super().__init__(policy, envs, *args, **keywords)

    @staticmethod
    def _wrap_env(env: Any, verbose: int = 0, monitor_wrapper: bool = True) -> AgentVecEnv:
        envs = _vec_env(env)
        if OnPolicyAlgorithm._wrap_env(envs, verbose, monitor_wrapper) is not envs:
            raise ConfigurationError("images must have their channels first: transpose them by a wrapper in each environment")
        return envs

    def _setup_model(self) -> None:
        super()._setup_model()
        self._begin()

    def _setup_learn(self, *args: Any, **keywords: Any) -> Any:
        before = self._last_obs
        result = super()._setup_learn(*args, **keywords)
        if self._last_obs is not before:  # the environments were reset
            self._begin()
        return result

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_pending", "_fragments", "_first", "_arrived", "_untold"]

    def _begin(self) -> None:
        self._pending: dict[int, _Step] = {}  # chosen, and not come back yet; by environment
        self._fragments: list[list[_Step]] = [[] for _ in range(self.n_envs)]  # not learned from yet; by environment
        self._first = [True] * self.n_envs  # whether an environment's next step is its first
        self._arrived: list[int] = []  # the environments of those steps, in the order in which they came
        self._untold: list[_Told] = []

    def _collect(self, envs: AgentVecEnv, callback: BaseCallback, buffer: RolloutBuffer, use_masking: bool) -> bool:
        """Fills the buffer; False if a callback says stop. Either way what was begun is kept."""
        self.policy.set_training_mode(False)
        buffer.reset()
        if self.use_sde:
            self.policy.reset_noise(envs.num_envs)
        callback.on_rollout_start()
        for i in self._pending.keys() - envs.under_way:  # somebody else has used the environments since
            self._cut(i, self._pending.pop(i))
        ready: Sequence[int] = [i for i in range(envs.num_envs) if i not in envs.under_way]
        faults = 0
        while True:
            self._act(envs, ready, use_masking)
            if len(self._arrived) >= self.n_steps * envs.num_envs:
                break
            came = envs.recv()
            for i, (reward, done, info) in came.items():
                faults += self._came(i, reward, done, info)
            if faults > self.n_steps * envs.num_envs:
                raise InfrastructureError(f"of the steps of one rollout {faults} have no valid reward; the last of them says: {info}")
            while len(self._untold) >= envs.num_envs:
                if not self._tell(envs, callback, buffer):
                    return False
            ready = list(came)
        self._fill(buffer, self._take())
        self._version += 1
        callback.on_rollout_end()
        return True

    def _act(self, envs: AgentVecEnv, env_ids: Sequence[int], use_masking: bool) -> None:
        """Gives these environments an action each, all in one pass through the policy; those that were given up get none."""
        states = envs.pool.states
        env_ids = [i for i in env_ids if states[i] != "retired"]
        if not env_ids:
            return
        observations: Any = envs.newest(env_ids)
        masks = np.stack(envs.env_method("action_masks", indices=env_ids)) if use_masking else None
        with torch.no_grad():
            chosen, values, log_probs = self.policy(obs_as_tensor(observations, self.device), **_masked(masks))
        actions, values, log_probs = chosen.cpu().numpy(), values.cpu().flatten(), log_probs.cpu()
        notes = [{"logprob": log_prob, "policy_version": self._version} for log_prob in log_probs.tolist()]
        envs.send(self._within_bounds(actions), env_ids, notes)
        for place, i in enumerate(env_ids):
            self._pending[i] = _Step(
                observation=_nth(observations, place),
                action=actions[place],
                value=values[place],
                log_prob=log_probs[place],
                mask=None if masks is None else masks[place],
                version=self._version,
                first=self._first[i],
            )

    def _within_bounds(self, actions: NDArray[Any]) -> NDArray[Any]:
        if not isinstance(self.action_space, gymnasium.spaces.Box):
            return actions
        if self.policy.squash_output:
            return self.policy.unscale_action(actions)
        clipped: NDArray[Any] = np.clip(actions, self.action_space.low, self.action_space.high)
        return clipped

    def _came(self, i: int, reward: float, done: bool, info: dict[str, Any]) -> bool:
        """Takes in what came of an action; whether it has no valid reward, and so is not learned from."""
        step = self._pending.pop(i)
        self._untold.append(_Told(i, step.action, reward, done, info))
        if not _valid(info):
            self._cut(i, step)
            return True
        ahead = info["terminal_observation"] if done and info["TimeLimit.truncated"] else None
        self._fragments[i].append(step._replace(reward=reward, last=done, ahead=ahead))
        self._arrived.append(i)
        self._first[i] = done
        return False

    def _cut(self, i: int, step: _Step) -> None:
        """Leaves a step out: what came before it ends where it stood, and what comes after it stands by itself."""
        fragment = self._fragments[i]
        if fragment and not fragment[-1].last:
            fragment[-1] = fragment[-1]._replace(last=True, ahead=step.observation)
        self._first[i] = True

    def _tell(self, envs: AgentVecEnv, callback: BaseCallback, buffer: RolloutBuffer) -> bool:
        """Tells callbacks of as many steps as a vector environment makes at once; False if one says stop."""
        told, self._untold = self._untold[: envs.num_envs], self._untold[envs.num_envs :]
        self.num_timesteps += len(told)
        seen = {
            "self": self,
            "env": envs,
            "rollout_buffer": buffer,
            "n_rollout_steps": self.n_steps,
            "env_ids": [step.env_id for step in told],
            "actions": np.stack([step.action for step in told]),
            "rewards": np.array([step.reward for step in told], np.float32),
            "dones": np.array([step.done for step in told]),
            "infos": [step.info for step in told],
        }
        callback.update_locals(seen)
        if not callback.on_step():
            return False
        valid = [step for step in told if _valid(step.info)]
        self._update_info_buffer([step.info for step in valid], np.array([step.done for step in valid]))
        return True

    def _take(self) -> list[_Step]:
        """The steps of a rollout, fragment after fragment; those that came last and are too many are left for the next."""
        self._arrived = self._arrived[self.n_steps * self.n_envs :]
        later = {i: self._fragments[i].pop() for i in self._arrived}
        steps: list[_Step] = []
        for i, fragment in enumerate(self._fragments):
            if fragment and not fragment[-1].last:
                fragment[-1] = fragment[-1]._replace(last=True, ahead=later.get(i, self._pending[i]).observation)
            steps += [step._replace(first=step.first or at == 0) for at, step in enumerate(fragment)]
            self._fragments[i] = [later[i]] if i in later else []
        return steps

    def _fill(self, buffer: RolloutBuffer, steps: Sequence[_Step]) -> None:
        """Makes steps the buffer's columns, and values what they are cut off from."""
        rewards = np.array([step.reward for step in steps], np.float32)
        cuts = [at for at, step in enumerate(steps) if step.ahead is not None]
        if cuts:
            observations = batch(self.observation_space, [steps[at].ahead for at in cuts])
            with torch.no_grad():
                values = self.policy.predict_values(obs_as_tensor(observations, self.device)).cpu().flatten()
            rewards[cuts] += self.gamma * values.numpy()
        for t in range(self.n_steps):
            row = steps[t :: self.n_steps]
            buffer.add(
                batch(self.observation_space, [step.observation for step in row]),
                np.stack([step.action for step in row]),
                rewards[t :: self.n_steps],
                np.array([step.first for step in row]),
                torch.stack([step.value for step in row]),
                torch.stack([step.log_prob for step in row]),
                **_masked(None if row[0].mask is None else np.array([step.mask for step in row])),
            )
        following = [*steps[self.n_steps :: self.n_steps], steps[-1]]  # whoever comes after the last ends, and counts for nothing
        buffer.compute_returns_and_advantage(
            torch.stack([step.value for step in following]), np.array([step.last for step in steps[self.n_steps - 1 :: self.n_steps]])
        )
        lags = [self._version - step.version for step in steps]
        self.logger.record("rollout/lag_mean", float(np.mean(lags)))
        self.logger.record("rollout/lag_max", max(lags))


class AsyncPPO(_Asynchronous, PPO):
    """Stable-Baselines3's PPO, stepping whoever is ready.

    ::

        AsyncPPO("MultiInputPolicy", "agent_gym:AgentBase/ToolTask-v0", n_envs=16, n_steps=128).learn(100_000)

    Callbacks, logging, saving and loading are as always, with these differences:

    - ``on_step`` is called for every ``n_envs`` steps that have come, of whichever environments: ``locals["env_ids"]`` says which.
    - A step without a valid reward (``info["reward_valid"]`` is False: something of ours broke) is not learned from, and the step before
      it is bootstrapped with the value of where it led to.
    - What a callback calls in environments (``training_env.env_method(…)``) waits for those that are under way.
    - Which steps fall into which rollout depends on how long things take, so two runs with the same seed do not learn the same.

    Args:
        policy: As of `stable_baselines3.PPO`.
        env: An environment's id, spec or maker, of which ``n_envs`` are run side by side in threads; or an `AsyncPool` without tasks, or an
            `AgentVecEnv`, in threads or processes.
        n_envs: How many, where ``env`` does not say; 8 by default.
        *args, **keywords: PPO's.

    Raises:
        ConfigurationError: ``env`` is something else.
        InfrastructureError: In `learn`: every environment was given up, or as many steps as make a rollout came without a valid reward
            before it was complete.
    """

    def collect_rollouts(self, env: Any, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int) -> bool:  # noqa: ARG002 - it is self.n_steps
        """Fills the buffer with the first steps that come."""
        return self._collect(env, callback, rollout_buffer, use_masking=False)


class AsyncMaskablePPO(_Asynchronous, MaskablePPO):
    """sb3-contrib's MaskablePPO, stepping whoever is ready; for all else see `AsyncPPO`."""

    def collect_rollouts(
        self,
        env: Any,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,  # noqa: ARG002 - it is self.n_steps
        use_masking: bool = True,
    ) -> bool:
        """Fills the buffer with the first steps that come."""
        if use_masking and not is_masking_supported(env):
            raise ConfigurationError("the environments offer no action_masks(); pass use_masking=False to learn(), or use AsyncPPO")
        return self._collect(env, callback, rollout_buffer, use_masking)


def _vec_env(env: Any, n_envs: int | None = None) -> AgentVecEnv:
    if isinstance(env, AgentVecEnv | AsyncPool):
        if n_envs not in (None, env.num_envs):
            raise ConfigurationError(f"n_envs is {n_envs}, but {env.num_envs} environments were given")
        return env if isinstance(env, AgentVecEnv) else AgentVecEnv(env)
    if isinstance(env, str | EnvSpec):
        return AgentVecEnv(lambda: Monitor(gymnasium.make(env, disable_env_checker=True)), n_envs or _ENVS)
    if callable(env) and not isinstance(env, gymnasium.Env):
        return AgentVecEnv(lambda: Monitor(env()), n_envs or _ENVS)
    raise ConfigurationError(f"an asynchronous learner takes an environment's id or maker, an AsyncPool or an AgentVecEnv, not {env!r}")


def _valid(info: dict[str, Any]) -> bool:
    return bool(info.get("reward_valid", True))


def _masked(masks: NDArray[Any] | None) -> dict[str, Any]:
    return {} if masks is None else {"action_masks": masks}


def _nth(observations: Any, n: int) -> Any:
    return {name: part[n] for name, part in observations.items()} if isinstance(observations, dict) else observations[n]
