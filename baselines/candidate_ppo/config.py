"""What a training run of CandidatePPO can be told, beside what every learner can be."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from agent_gym.baselines.sb3.config import TrainConfig

__all__ = ["CandidatePPOConfig"]

_NO_END = float("inf")
_RANGES = {
    **TrainConfig.ranges,
    **dict.fromkeys(("dagger", "lag_max", "bc_kl"), (0, _NO_END)),
    **dict.fromkeys(("dagger_rounds", "embedding"), (1, _NO_END)),
    **dict.fromkeys(("ratio_clip", "weight_clip"), (1e-12, _NO_END)),
    "key_weight": (1, _NO_END),
    "bc_kl_until": (1e-12, 1),
    "curriculum_floor": (0, 1),
}


@dataclass(frozen=True, kw_only=True)
class CandidatePPOConfig(TrainConfig):
    """One training run of CandidatePPO. A rollout is complete when ``n_envs`` · ``n_steps`` steps have come, whosever they are."""

    algorithms: ClassVar[Collection[str]] = ("candidate-ppo",)
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = _RANGES

    algo: str = "candidate-ppo"
    """``candidate-ppo``."""

    demos: str | None = None
    """A trajectory store whose successful episodes of this environment's train split are cloned, people's too, beside those that the
    oracle plays; None for none."""
    dagger: int = 0
    """Episodes of DAgger after cloning: the policy plays, and the oracle says at each step what it would do. 0 for none."""
    dagger_rounds: int = 3
    """In how many rounds; each is followed by cloning all there is. In the first the oracle acts in half of the steps, in each later one
    half as often."""
    key_weight: float = 2.0
    """How much more a state counts in DAgger where the policy would do something else than the oracle, or where the oracle's call changes
    something; from 1."""
    bc_kl: float = 0.1
    """Weight of the distance to the cloned policy (KL, in nats) at the beginning of PPO, from 0; it falls to 0 in a straight line."""
    bc_kl_until: float = 0.5
    """Where it is 0, as a share of ``steps``, in (0, 1]."""

    lag_max: int = 1
    """By how many updates a step may be older than the policy that learns from it, from 0. What would be older is waited for, and never
    thrown away. 0 is lock-step: everybody is waited for, and equal runs learn the same."""
    ratio_clip: float = 1.0
    """The most that a ratio counts in V-trace (ρ̄ and c̄), above 0."""
    weight_clip: float = 2.0
    """The most that a step's weight for its age may be, above 0."""
    curriculum_floor: float = 0.5
    """Share of the episodes whose family is drawn uniformly, in [0, 1]; the others are drawn where success is neither rare nor sure."""
    embedding: int = 64
    """Length of a token's vector, from 1."""
