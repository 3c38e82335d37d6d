"""Trains a policy: oracle demonstrations are cloned, then PPO goes on from there on the outcome reward.

A run lives in a folder::

    config.json           what was asked for
    model.zip             the best model by the validation split so far; the newest one if nothing is measured
    checkpoint.zip        the newest model, its optimizer and the learning curve; replaced in one stroke, so it is always whole
    learning_curve.json   a list of measurements
    tensorboard/          what TensorBoard shows
"""

import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from agent_gym.baselines.sb3.bc import clone, demonstrate
from agent_gym.baselines.sb3.config import ALGORITHMS, TrainConfig
from agent_gym.baselines.sb3.policy import CandidatePolicy
from agent_gym.baselines.sb3.saved import SB3Policy, read_card, save
from agent_gym.core.seeding import derive_seed
from agent_gym.errors import ConfigurationError
from agent_gym.evaluation import evaluate
from agent_gym.factory import load_object
from agent_gym.runner import AgentVecEnv
from agent_gym.trajectories.store import Run
from agent_gym.wrappers import RecordTrajectory, StateLeakCheck

__all__ = ["TrainResult", "train"]

_LEAK_CHECK_EVERY = 500
"""Resets, of all environments together, after which one of them is compared with fresh ones."""
_MAY_CHANGE = frozenset({"steps", "time_limit_s", "threads", "backend"})


@dataclass(frozen=True)
class TrainResult:
    """What came of a training run.

    Attributes:
        model: The best model's file; `agent_gym.policies.load` takes its path.
        steps: Environment steps of PPO, those before a resume included.
        seconds: Wall-clock seconds, demonstrations and measurements included.
        curve: The measurements: ``steps``, ``seconds``, ``success_rate``, ``success_macro``, ``by_task_type``.
    """

    model: Path
    steps: int
    seconds: float
    curve: list[dict[str, Any]]


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
    going_on = _prepare(config, folder, resume)
    torch.set_num_threads(config.threads)
    with _Bars(progress) as bars:
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
                state = {"seconds": 0.0, "curve": []}
                envs.seed(_env_seed("train", config.seed))
            model.set_logger(configure(str(folder / "tensorboard"), ["tensorboard"]))
            keeper = _Keeper(config, folder, state, bars)
            if config.bc and not going_on:
                _warm_start(model, config, store, bars)
            if model.num_timesteps < config.steps:
                bars.begin("PPO", config.steps, model.num_timesteps)
                model.learn(config.steps - model.num_timesteps, callback=keeper, reset_num_timesteps=not going_on)
            keeper.finish(model)
        finally:
            envs.close()
    return TrainResult(folder / "model.zip", model.num_timesteps, keeper.seconds, keeper.curve)


def _prepare(config: TrainConfig, folder: Path, resume: bool) -> bool:
    """Readies the folder; whether there is a checkpoint to go on from."""
    going_on = (folder / "checkpoint.zip").is_file()
    if going_on and not resume:
        raise ConfigurationError(f"{str(folder)!r} holds a training run already; resume it or give another folder")
    if going_on:
        earlier, now = TrainConfig.load(folder).to_dict(), config.to_dict()
        for name in sorted(now.keys() - _MAY_CHANGE):
            if now[name] != earlier[name]:
                raise ConfigurationError(f"{str(folder)!r} holds another run: its {name} is {earlier[name]!r}, not {now[name]!r}")
    else:
        shutil.rmtree(folder / "tensorboard", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*.tmp"):  # by a run that was killed while it wrote
        left.unlink()
    _write_json(folder / "config.json", config.to_dict())
    return going_on


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


def _warm_start(model: OnPolicyAlgorithm, config: TrainConfig, store: Run | None, bars: "_Bars") -> None:
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


class _Keeper(BaseCallback):
    """Measures, keeps the best model, writes checkpoints and watches the clock; all of it between two rollouts."""

    def __init__(self, config: TrainConfig, folder: Path, state: dict[str, Any], bars: "_Bars") -> None:
        super().__init__()
        self.config, self.folder, self.bars = config, folder, bars
        self.curve: list[dict[str, Any]] = state["curve"]
        self._seconds_before: float = state["seconds"]
        self._started = time.monotonic()
        self._saved_at = -1

    @property
    def seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    def _on_step(self) -> bool:
        self.bars.show(self.num_timesteps)
        return self.config.time_limit_s is None or self.seconds < self.config.time_limit_s

    def _on_rollout_start(self) -> None:
        self._keep(self.model)

    def finish(self, model: Any) -> None:
        self._keep(model, last=True)

    def _keep(self, model: Any, last: bool = False) -> None:
        steps = model.num_timesteps
        if self.config.eval_episodes:
            measured = self.curve[-1]["steps"] if self.curve else -self.config.eval_every
            if steps - measured >= self.config.eval_every or (last and steps > measured):
                self._measure(model)
        elif last:
            save(model, self.folder / "model.zip", self._card(model))
        if self._saved_at < 0 or steps - self._saved_at >= self.config.checkpoint_every or (last and steps > self._saved_at):
            save(model, self.folder / "checkpoint.zip", {**self._card(model), "seconds": self.seconds, "curve": self.curve})
            self._saved_at = steps

    def _measure(self, model: Any) -> None:
        policy = SB3Policy(model.policy)
        config = self.config
        report = evaluate(
            policy,
            config.env_id,
            episodes=config.eval_episodes,
            split=config.eval_split,
            seed=config.seed,
            env_kwargs={name: value for name, value in config.env_kwargs.items() if name not in ("split", "task_ids")},
        )
        best = max((point["success_macro"] for point in self.curve), default=-1.0)
        point = {
            "steps": model.num_timesteps,
            "seconds": self.seconds,
            "success_rate": report["success_rate"],
            "success_macro": report["success_macro"],
            "by_task_type": {name: part["success_rate"] for name, part in report["by_task_type"].items()},
        }
        self.curve.append(point)
        _write_json(self.folder / "learning_curve.json", self.curve)
        model.logger.record("validation/success_macro", point["success_macro"])
        self.bars.say(f"validation {point['success_macro']:.2f}")
        if point["success_macro"] >= best:
            save(model, self.folder / "model.zip", self._card(model))

    def _card(self, model: Any) -> dict[str, Any]:
        return {"name": self.config.algo, "steps": model.num_timesteps, "config": self.config.to_dict()}


class _Bars:
    """A progress bar on stderr, or nothing."""

    def __init__(self, shown: bool | None) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        shown = sys.stderr.isatty() if shown is None else shown
        self._progress = Progress(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True), disable=not shown)
        self._task: TaskID | None = None

    def __enter__(self) -> "_Bars":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self._task = self._progress.add_task(what, total=total, completed=done, note="")

    def advance(self) -> None:
        if self._task is not None:
            self._progress.advance(self._task)

    def show(self, done: int) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=done)

    def say(self, note: str) -> None:
        if self._task is not None:
            self._progress.update(self._task, note=note)


def _write_json(path: Path, value: Any) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value, indent=1), encoding="utf-8")
    temporary.replace(path)
