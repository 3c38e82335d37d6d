"""What a training run can be told, checked when it is made."""

import dataclasses
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from agent_gym.errors import ConfigurationError, unknown
from agent_gym.runner.backends import BACKENDS

__all__ = ["ALGORITHMS", "TrainConfig"]

ALGORITHMS = {
    "maskable-ppo": "sb3_contrib:MaskablePPO",
    "ppo": "stable_baselines3:PPO",
    "async-maskable-ppo": "agent_gym.baselines.sb3:AsyncMaskablePPO",
    "async-ppo": "agent_gym.baselines.sb3:AsyncPPO",
}
"""The algorithms, by the name that the command line knows."""

_ABOVE_ZERO = 1e-12
_RANGES = {
    **dict.fromkeys(("seed", "steps", "bc", "final_learning_rate", "ent_coef", "vf_coef", "eval_episodes"), (0, float("inf"))),
    **dict.fromkeys(("threads", "bc_epochs", "bc_batch_size", "n_envs", "n_steps", "epochs", "width"), (1, float("inf"))),
    **dict.fromkeys(("eval_every", "checkpoint_every"), (1, float("inf"))),
    **dict.fromkeys(("bc_learning_rate", "learning_rate", "clip_range", "max_grad_norm"), (_ABOVE_ZERO, float("inf"))),
    "batch_size": (2, float("inf")),
    "gamma": (_ABOVE_ZERO, 1),
    "gae_lambda": (0, 1),
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run."""

    algorithms: ClassVar[Collection[str]] = ALGORITHMS.keys()
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = _RANGES

    env_id: str = "AgentBase/ToolTask-v0"
    """Gymnasium id of the environment, with or without ``agent_gym:``."""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Further keywords of the environment, as JSON values."""
    algo: str = "maskable-ppo"
    """``maskable-ppo`` or ``ppo``; both see the mask, PPO in the observation only. ``async-`` in front: a slow tool keeps nobody waiting
    but its own environment."""
    backend: str = "thread"
    """Where the environments of an asynchronous algorithm run: ``thread`` (for those that wait) or ``process`` (for those that compute)."""
    seed: int = 0
    """Root of all randomness, from 0."""
    steps: int = 60_000
    """Environment steps of PPO in all, from 0 (then only demonstrations are cloned); rounded up to whole rollouts."""
    time_limit_s: float | None = None
    """Seconds after which training stops even if steps are left, above 0; None for no limit."""
    threads: int = 1
    """Threads that torch uses in this process, from 1. More than one seldom pays: the networks are small."""

    bc: int = 300
    """Oracle episodes of the train split to clone before PPO; 0 trains from scratch."""
    bc_epochs: int = 10
    """Passes over the demonstrations, from 1."""
    bc_batch_size: int = 32
    """Demonstrated steps in one gradient step, from 1."""
    bc_learning_rate: float = 1e-3
    """Learning rate of cloning, above 0."""

    n_envs: int = 16
    """Environments side by side, from 1."""
    n_steps: int = 128
    """Steps of each environment in a rollout, from 1."""
    batch_size: int = 512
    """Steps in one gradient step, from 2."""
    epochs: int = 4
    """Passes over a rollout, from 1."""
    learning_rate: float = 1e-3
    """PPO's learning rate at the start, above 0."""
    final_learning_rate: float = 1e-4
    """Its learning rate at the last step, from 0; in between it falls in a straight line."""
    gamma: float = 0.98
    """Discount, in (0, 1]."""
    gae_lambda: float = 0.95
    """λ of the generalized advantage estimate, in [0, 1]."""
    clip_range: float = 0.2
    """PPO's clipping range, above 0."""
    ent_coef: float = 0.01
    """Weight of the entropy bonus, from 0."""
    vf_coef: float = 0.5
    """Weight of the critic's loss, from 0."""
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this norm, above 0."""
    width: int = 128
    """Units of the hidden layers, from 1."""

    eval_every: int = 10_000
    """Steps between measurements for the learning curve, from 1."""
    eval_episodes: int = 100
    """Episodes of a measurement; 0 measures never, and then the last model is kept instead of the best."""
    eval_split: str = "validation"
    """The split to measure on, by which the best model is chosen; so never a split that results are reported on."""
    checkpoint_every: int = 10_000
    """Steps between checkpoints, from 1."""

    def __post_init__(self) -> None:
        if self.algo not in self.algorithms:
            raise unknown("algo", self.algo, self.algorithms)
        if self.backend not in BACKENDS:
            raise unknown("backend", self.backend, BACKENDS)
        for one in dataclasses.fields(self):
            if one.type is int and type(getattr(self, one.name)) is not int:
                raise ConfigurationError(f"{one.name} must be a whole number, got {getattr(self, one.name)!r}")
        for name, (low, high) in self.ranges.items():
            if not low <= getattr(self, name) <= high:
                raise ConfigurationError(f"{name} must be within [{low:g}, {high:g}], got {getattr(self, name)}")
        if self.time_limit_s is not None and self.time_limit_s <= 0:
            raise ConfigurationError(f"time_limit_s must be above 0, got {self.time_limit_s}")
        if self.n_envs * self.n_steps % self.batch_size:
            raise ConfigurationError(
                f"batch_size {self.batch_size} does not divide a rollout of n_envs · n_steps = {self.n_envs * self.n_steps}"
            )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**dataclasses.asdict(self), "env_kwargs": dict(self.env_kwargs)}

    @classmethod
    def load(cls, folder: str | Path) -> "TrainConfig":
        """The configuration of the run in a folder.

        Raises:
            ConfigurationError: There is none, or it is damaged.
        """
        path = Path(folder) / "config.json"
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, TypeError, json.JSONDecodeError) as error:
            raise ConfigurationError(f"{str(folder)!r} holds no training run: {error}") from error
