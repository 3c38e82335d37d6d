"""Confidence intervals for success rates."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from agent_gym.core.seeding import derive

__all__ = ["Interval", "bootstrap_clustered", "bootstrap_macro", "bootstrap_paired", "wilson"]


class Interval(NamedTuple):
    """A confidence interval, both ends included."""

    low: float
    high: float


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """The Wilson score interval of a proportion: honest also for few trials and for rates near 0 or 1.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).

    Args:
        successes: From 0 to ``trials``.
        trials: Independent trials, at least 1.
        confidence: In (0, 1).

    Raises:
        ValueError: An argument is out of its range.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be in (0, 1), got {confidence}")
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"need 0 <= successes <= trials and trials >= 1, got {successes} of {trials}")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p, n = successes / trials, trials
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    return Interval(0.0 if successes == 0 else max(0.0, centre - half), 1.0 if successes == trials else min(1.0, centre + half))


def bootstrap_macro(counts: Sequence[tuple[int, int]], *, seed: int = 0, resamples: int = 10_000, confidence: float = 0.95) -> Interval:
    """The percentile interval of a mean of success rates, by a bootstrap stratified by group.

    Each resample draws every group's trials anew, with replacement, from that group's own trials, and averages the groups' rates.
    For trials that are 0 or 1 a group's redrawn sum is binomial, so it is drawn as one: the order of trials plays no part.

    Source: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap" (1993), ch. 13; stratified as in R. Agarwal et al.,
    "Deep reinforcement learning at the edge of the statistical precipice" (2021). Where every trial of a group came out alike,
    the bootstrap sees no spread in it; the Wilson interval beside it does.

    Args:
        counts: One pair a group: successes and trials (at least 1).
        seed: Equal seeds give equal intervals.
        resamples: At least 2,000.
        confidence: In (0, 1).

    Raises:
        ValueError: An argument is out of its range.
    """
    _check(confidence, resamples)
    if not counts or any(trials < 1 or not 0 <= successes <= trials for successes, trials in counts):
        raise ValueError(f"need groups with 0 <= successes <= trials and trials >= 1, got {list(counts)}")
    successes, trials = np.array(counts, dtype=np.int64).T
    drawn = derive("bootstrap_macro", seed).binomial(trials, successes / trials, size=(resamples, len(counts)))
    low, high = np.quantile((drawn / trials).mean(axis=1), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def bootstrap_clustered(counts: Sequence[tuple[int, int]], *, seed: int = 0, resamples: int = 10_000, confidence: float = 0.95) -> Interval:
    """The percentile interval of a success rate whose trials come in clusters, such as a task's episodes, that may go alike.

    Each resample draws as many clusters as there are, with replacement, each with all of its trials, and divides the successes by the
    trials. Clusters of equal counts cannot be told apart, so what is drawn is how often each pair of counts comes: the order of
    clusters plays no part.

    Source: A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application" (1997), section 3.8. Where every trial came out
    alike, the bootstrap sees no spread.

    Args:
        counts: One pair a cluster: successes and trials (at least 1).
        seed: Equal seeds give equal intervals.
        resamples: At least 2,000.
        confidence: In (0, 1).

    Raises:
        ValueError: An argument is out of its range.
    """
    _check(confidence, resamples)
    if not counts or any(trials < 1 or not 0 <= successes <= trials for successes, trials in counts):
        raise ValueError(f"need clusters with 0 <= successes <= trials and trials >= 1, got {list(counts)}")
    pairs, times = np.unique(np.array(counts, dtype=np.int64), axis=0, return_counts=True)
    drawn = derive("bootstrap_clustered", seed).multinomial(len(counts), times / len(counts), size=resamples) @ pairs
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def bootstrap_paired(differences: Sequence[float], *, seed: int = 0, resamples: int = 10_000, confidence: float = 0.95) -> Interval:
    """The percentile interval of a mean difference, by a bootstrap over what was measured twice.

    Source: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap" (1993), ch. 13.

    Args:
        differences: One a task, at least one: of its mean under one condition and under the other.
        seed: Equal seeds give equal intervals.
        resamples: At least 2,000.
        confidence: In (0, 1).

    Raises:
        ValueError: An argument is out of its range.
    """
    _check(confidence, resamples)
    if not differences:
        raise ValueError("need at least one difference")
    values, counts = np.unique(np.array(differences, dtype=np.float64), return_counts=True)
    drawn = derive("bootstrap_paired", seed).multinomial(len(differences), counts / len(differences), size=resamples)
    low, high = np.quantile(drawn @ values / len(differences), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def _check(confidence: float, resamples: int) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be in (0, 1), got {confidence}")
    if resamples < 2_000:
        raise ValueError(f"resamples must be at least 2000, got {resamples}")
