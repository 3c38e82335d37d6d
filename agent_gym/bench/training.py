"""How much sooner training gets somewhere when nobody waits for the slowest tool: AsyncMaskablePPO beside MaskablePPO on SubprocVecEnv.

Both begin with the same policy, which has cloned so few demonstrations that it earns about a quarter of what there is to earn, and go on
until the mean return of the newest episodes has reached 0.8. Every step waits, as for a tool's answer: lognormal, σ = 1, drawn by a seed.
"""

import math
import multiprocessing
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from agent_gym.core.seeding import derive
from agent_gym.errors import MissingExtra
from agent_gym.runner import AgentVecEnv

try:
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

    from agent_gym.baselines.sb3 import AsyncMaskablePPO, CandidatePolicy, clone, demonstrate
except ModuleNotFoundError as error:
    raise MissingExtra(error.name or "torch", "train") from error

__all__ = ["LATENCY_S", "TARGET", "SlowTools", "Training", "learn", "measure", "warm_start"]

LATENCY_S = 0.020
TARGET = 0.8
"""The return to reach: a task that is solved earns 1, a violation −1."""
_SEEDS = 3
_ENVS = 16
_TASKS: dict[str, Any] = {"worlds": ["retail"], "families": ["cancel", "change_address", "exchange"]}
_SHOWN, _EPOCHS = 100, 4
"""Demonstrations, and how often they are gone through."""
_NEWEST = 200
"""Over how many episodes the return is averaged."""
_MOST_STEPS = 30_000
_SETTINGS: dict[str, Any] = {"learning_rate": 1e-3, "n_steps": 64, "batch_size": 512, "n_epochs": 4, "gamma": 0.98, "ent_coef": 0.01}


class SlowTools(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Every step waits first.

    Args:
        env: The environment.
        mean_s: The mean of a lognormal distribution with σ = 1, in seconds; 0 for no waiting.
        number: Tells its latencies from another's.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], mean_s: float, number: int) -> None:
        super().__init__(env)
        self._mean_s, self._rng = mean_s, derive("latency", number)

    def step(self, action: Any) -> Any:
        """Waits, then steps."""
        if self._mean_s:
            time.sleep(self._mean_s * math.exp(self._rng.normal() - 0.5))
        return self.env.step(action)


class Training(NamedTuple):
    """What a training took.

    Attributes:
        reached: Whether it reached the return.
        steps: Environment steps.
        collection_s: Seconds in which steps were collected.
        wall_s: Seconds in all, from the first reset on.
        curve: Steps and mean return of the newest episodes at the end of every rollout.
    """

    reached: bool
    steps: int
    collection_s: float
    wall_s: float
    curve: list[tuple[int, float]]


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Trains both to the same return, for a few seeds; the figures are sums over them."""
    spent: dict[str, list[Training]] = {"sync": [], "async": []}
    for seed in range(_SEEDS):
        start = warm_start(seed)
        for kind, trainings in spent.items():
            progress(f"{kind}, seed {seed}")
            trainings.append(learn(kind == "async", start, seed, most_steps=_MOST_STEPS))
    total = {kind: np.sum([training[:4] for training in trainings], axis=0) for kind, trainings in spent.items()}
    times = total["sync"][2:] / total["async"][2:]
    return {
        "reached": float((total["sync"] + total["async"])[0] / (2 * _SEEDS)),
        "collection_time_x": float(times[0]),
        "wall_time_x": float(times[1]),
        "sync_steps_per_s": float(total["sync"][1] / total["sync"][2]),
        "async_steps_per_s": float(total["async"][1] / total["async"][2]),
    }


def warm_start(seed: int) -> dict[str, Any]:
    """The parameters of a policy that has cloned a few demonstrations."""
    torch.set_num_threads(1)
    env = _maker(0.0, 0)()
    shown = demonstrate(env, _SHOWN, seed=seed, gamma=_SETTINGS["gamma"])
    torch.manual_seed(seed)
    policy = CandidatePolicy(env.observation_space, env.action_space, lambda _: 1e-3)
    clone(policy, shown, epochs=_EPOCHS, batch_size=32, learning_rate=1e-3, seed=seed)
    env.close()
    return policy.state_dict()


def learn(
    asynchronous: bool,
    start: dict[str, Any],
    seed: int,
    *,
    latency_s: float = LATENCY_S,
    target: float = TARGET,
    most_steps: int = _MOST_STEPS,
) -> Training:
    """Trains until the mean return is reached.

    Args:
        asynchronous: AsyncMaskablePPO with environments in processes, or else MaskablePPO on SubprocVecEnv.
        start: The policy's parameters.
        seed: Of episodes, latencies and actions.
        latency_s: Mean latency.
        target: The return.
        most_steps: Steps after which it stops anyway.
    """
    makers = [_maker(latency_s, seed * _ENVS + number) for number in range(_ENVS)]
    multiprocessing.set_forkserver_preload([__name__])  # once for all of SubprocVecEnv's workers, as the pool does by itself
    envs: VecEnv = AgentVecEnv(makers, backend="process") if asynchronous else SubprocVecEnv(makers)
    try:
        kind: Any = AsyncMaskablePPO if asynchronous else MaskablePPO
        model = kind(CandidatePolicy, envs, seed=seed, device="cpu", **_SETTINGS)
        model.policy.load_state_dict(start)
        envs.reset()  # so that all workers are up
        watch = _Watch(target)
        since = time.perf_counter()
        model.learn(most_steps, callback=watch)
        return Training(watch.mean >= target, model.num_timesteps, watch.collection_s, time.perf_counter() - since, watch.curve)
    finally:
        envs.close()


class _Watch(BaseCallback):
    """Sums up the time in which steps are collected, and stops at the target."""

    def __init__(self, target: float) -> None:
        super().__init__()
        self.collection_s = 0.0
        self.curve: list[tuple[int, float]] = []
        self._target, self._since = target, 0.0
        self._returns: deque[float] = deque(maxlen=_NEWEST)

    @property
    def mean(self) -> float:
        return float(np.mean(self._returns)) if len(self._returns) == _NEWEST else math.nan

    def _on_rollout_start(self) -> None:
        self._since = time.perf_counter()

    def _on_rollout_end(self) -> None:
        self.collection_s += time.perf_counter() - self._since
        self.curve.append((self.num_timesteps, self.mean))

    def _on_step(self) -> bool:
        self._returns.extend(info["episode"]["r"] for info in self.locals["infos"] if "episode" in info)
        if not self.mean >= self._target:
            return True
        self._on_rollout_end()
        return False


def _maker(latency_s: float, number: int) -> Callable[[], gymnasium.Env[Any, Any]]:
    def make() -> gymnasium.Env[Any, Any]:
        env = gymnasium.make("agent_gym:AgentBase/ToolTask-v0", disable_env_checker=True, **_TASKS)
        return Monitor(SlowTools(env, latency_s, number))

    return make
