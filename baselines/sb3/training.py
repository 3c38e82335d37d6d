"""Trains a policy: oracle demonstrations are cloned, then PPO goes on from there on the outcome reward.

A run lives in a folder, see `agent_gym.baselines.run_folder`.
"""

from pathlib import Path
from typing import Any

import gymnasium
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from agent_gym.baselines.run_folder import Bars, Keeper, TrainResult, prepare
from agent_gym.baselines.sb3.bc import clone, demonstrate
from agent_gym.baselines.sb3.config import ALGORITHMS, TrainConfig
from agent_gym.baselines.sb3.policy import CandidatePolicy
from agent_gym.baselines.sb3.saved import SB3Policy, read_card, save
from agent_gym.core.seeding import derive_seed
from agent_gym.factory import load_object
from agent_gym.runner import AgentVecEnv
from agent_gym.trajectories.store import Run
from agent_gym.wrappers import RecordTrajectory, StateLeakCheck

__all__ = ["TrainResult", "train"]

_LEAK_CHECK_EVERY = 500
"""Resets, of all environments together, after which one of them is compared with fresh ones."""


def train(
    config: TrainConfig, folder: str | Path, *, store: Run | None = None, resume: bool = False, progress: bool | None = None
) -> TrainResult:
    """Trains a policy.

    With equal configurations and seeds two runs on the same machine learn the same, unless a time limit cuts them or the algorithm is
    asynchronous. An episode that the environment itself broke off ends as truncated with a reward of 0: its last value is
    bootstrapped, so it teaches nothing; asynchronous algorithms leave that step out altogether.

    Args:
        config: What to do.
        folder: The run's folder.
        store: A run of a trajectory store, which keeps every episode that is learned from.
        resume: Go on from the folder's checkpoint, or from the start if there is none yet. ``steps``, ``time_limit_s``,
            ``threads`` and ``backend`` may have changed.
        progress: Whether to show a progress bar on stderr; by default, if stderr is a terminal.

    Raises:
        ConfigurationError: The folder holds a run already, or another one than is to be resumed; or the environment or its oracle
            does not fit.
        StateLeakError: A reset left something behind; what was learned until then is in the checkpoint.
    """
    folder = Path(folder)
    checkpoint = folder / "checkpoint.zip"
    going_on = prepare(config, folder, resume)
    torch.set_num_threads(config.threads)
    with Bars(progress) as bars:
        envs = _make_envs(config, store)
        try:
            if going_on:
                model = _algorithm(config).load(checkpoint, env=envs, device="cpu")
                state = read_card(checkpoint)
                envs.seed(_env_seed("resume", config.seed, model.num_timesteps))
                # A resumed run must not play the episodes of its beginning again, nor draw the same actions.
                torch.manual_seed(derive_seed("resume", config.seed, model.num_timesteps))
            else:
                model = _new_model(config, envs)
                state = {}
                envs.seed(_env_seed("train", config.seed))
            model.set_logger(configure(str(folder / "tensorboard"), ["tensorboard"]))
            keeper = Keeper(
                config,
                folder,
                state,
                policy=lambda: SB3Policy(model.policy),
                save=lambda path, card, _: save(model, path, card),
                bars=bars,
            )
            if config.bc and not going_on:
                _warm_start(model, config, store, bars)
            if model.num_timesteps < config.steps:
                bars.begin("PPO", config.steps, model.num_timesteps)
                model.learn(config.steps - model.num_timesteps, callback=_Between(keeper), reset_num_timesteps=not going_on)
            keeper.keep(model.num_timesteps, last=True)
        finally:
            envs.close()
    return TrainResult(folder / "model.zip", model.num_timesteps, keeper.seconds, keeper.curve)


def _algorithm(config: TrainConfig) -> type[OnPolicyAlgorithm]:
    found: type[OnPolicyAlgorithm] = load_object(ALGORITHMS[config.algo])
    return found


def _new_model(config: TrainConfig, envs: VecEnv) -> OnPolicyAlgorithm:
    return _algorithm(config)(
        CandidatePolicy,  # type: ignore[arg-type]
        envs,
        learning_rate=LinearSchedule(config.learning_rate, config.final_learning_rate, 1.0),
        n_steps=config.n_steps,
        batch_size=config.batch_size,  # type: ignore[call-arg]
        n_epochs=config.epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.ent_coef,
        vf_coef=config.vf_coef,
        max_grad_norm=config.max_grad_norm,
        policy_kwargs={"width": config.width},
        seed=config.seed,
        device="cpu",
    )


def _make_envs(config: TrainConfig, store: Run | None) -> VecEnv:
    made = [lambda: _make_env(config, store, "policy")] * config.n_envs
    return AgentVecEnv(made, backend=config.backend) if config.algo.startswith("async-") else DummyVecEnv(made)


def _make_env(config: TrainConfig, store: Run | None, source: str) -> gymnasium.Env[Any, Any]:
    env = gymnasium.make(config.env_id, disable_env_checker=True, **{"split": "train", **config.env_kwargs})
    env = StateLeakCheck(env, every=max(1, _LEAK_CHECK_EVERY // config.n_envs))
    if store is None:
        return env
    return RecordTrajectory(env, store, source=source, policy_id="oracle" if source == "oracle" else config.algo)


def _env_seed(*path: int | str) -> int:
    """Below 2**31, since SB3 adds the number of the environment to it and wants 32 bits."""
    return derive_seed(*path) >> 32


def _warm_start(model: OnPolicyAlgorithm, config: TrainConfig, store: Run | None, bars: Bars) -> None:
    env = _make_env(config, store, "oracle")
    try:
        bars.begin("demonstrations", config.bc)
        demonstrations = demonstrate(env, config.bc, seed=config.seed, gamma=config.gamma, progress=bars.advance)
    finally:
        env.close()
    bars.begin("cloning", config.bc_epochs)
    clone(
        model.policy,
        demonstrations,
        epochs=config.bc_epochs,
        batch_size=config.bc_batch_size,
        learning_rate=config.bc_learning_rate,
        seed=config.seed,
        progress=bars.advance,
    )


class _Between(BaseCallback):
    """Has what is due done between two rollouts."""

    def __init__(self, keeper: Keeper) -> None:
        super().__init__()
        self._keeper = keeper

    def _on_step(self) -> bool:
        self._keeper.bars.show(self.num_timesteps)
        return not self._keeper.out_of_time

    def _on_rollout_start(self) -> None:
        self._keeper.keep(self.num_timesteps)
        if self._keeper.curve:
            self.logger.record("validation/success_macro", self._keeper.curve[-1]["success_macro"])
