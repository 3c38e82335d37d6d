"""What CandidatePPO minimises: V-trace targets on fragments, and PPO's objective with the behaviour policy and the proximal one apart."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Objective", "Targets", "objective", "vtrace"]

Floats = NDArray[np.floating]


class Targets(NamedTuple):
    """What is learned from, by step.

    Attributes:
        values: What the critic should have said.
        advantages: How much better the action was than expected.
    """

    values: Floats
    advantages: Floats


def vtrace(
    rewards: Floats,
    values: Floats,
    following: Floats,
    last: NDArray[np.bool_],
    log_ratios: Floats,
    *,
    gamma: float,
    gae_lambda: float,
    ratio_clip: float = 1.0,
) -> Targets:
    """V-trace on fragments that stand one after another (Espeholt et al. 2018, "IMPALA", section 4.1).

    Where the policy that acted is the one that learns, all ratios are 1 and this is the generalized advantage estimate. The advantages
    do not carry the ratio of their own step: `objective` weighs by it, and once is enough.

    Args:
        rewards: Rewards, ``[T]``.
        values: The critic's values of the observations, ``[T]``.
        following: Its values of what came after each step: 0 where the episode terminated, that of the final observation where it was
            truncated, that of the newest one where the fragment ends, ``[T]``.
        last: Whether what comes after in the arrays is something else, ``[T]``.
        log_ratios: Log of the learning policy's probability over that of the policy that acted, ``[T]``.
        gamma: Discount.
        gae_lambda: λ.
        ratio_clip: The most that a ratio counts (ρ̄ and c̄).
    """
    ratios = np.minimum(np.exp(np.minimum(log_ratios, 20.0)), ratio_clip)
    deltas = rewards + gamma * following - values
    advantages, corrections = np.empty(len(rewards)), np.empty(len(rewards))
    ahead = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        if last[t]:
            ahead = 0.0
        advantages[t] = deltas[t] + gamma * gae_lambda * ahead
        ahead = corrections[t] = ratios[t] * advantages[t]
    return Targets(values + corrections, advantages)


class Objective(NamedTuple):
    """PPO's objective and how far it went.

    Attributes:
        loss: To be minimised, a scalar.
        clipped: Share of the steps whose ratio is out of the clip's range.
    """

    loss: Tensor
    clipped: Tensor


def objective(
    log_probs: Tensor, proximal: Tensor, behaviour: Tensor, advantages: Tensor, *, clip_range: float, weight_clip: float
) -> Objective:
    """The decoupled clipped objective (Hilton, Cobbe, Schulman 2021, "Batch size-invariance for policy optimization").

    How far one update goes is measured from the policy at its start, however old the data are; their age is made up for by a weight.

    Args:
        log_probs: Of the actions taken under the policy that learns, ``float32[B]``.
        proximal: The same at the start of the update.
        behaviour: The same under the policy that acted.
        advantages: ``float32[B]``.
        clip_range: How far the ratio to the proximal policy pays.
        weight_clip: The most that the weight of a step may be.
    """
    weights = (proximal - behaviour).exp().clamp(max=weight_clip)
    ratios = (log_probs - proximal).exp()
    clipped = ratios.clamp(1 - clip_range, 1 + clip_range)
    gains = torch.minimum(ratios * advantages, clipped * advantages)
    return Objective(-(weights * gains).mean(), ((ratios - 1).abs() > clip_range).float().mean())
