"""What an end of a page is worth: the four ways in which rewards of MiniWoB++ are counted."""

from collections.abc import Callable

from agent_gym.envs.miniwob.session import Outcome
from agent_gym.errors import ConfigurationError, unknown

__all__ = ["REWARD_MODES", "reward_of"]

REWARD_MODES = ("raw", "original", "binary", "thresholded")
"""The names of the ways."""


def reward_of(mode: str, threshold: float) -> Callable[[Outcome], float]:
    """What an outcome is worth in a mode; see `agent_gym.envs.miniwob.MiniWoB`.

    Raises:
        ConfigurationError: There is no such mode, or it has no such threshold.
    """
    if mode not in REWARD_MODES:
        raise unknown("reward_mode", mode, REWARD_MODES)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not -1 <= threshold <= 1:
        raise ConfigurationError(f"threshold must be a number in [-1, 1], got {threshold!r}")
    if threshold != 1 and mode != "thresholded":
        raise ConfigurationError(f"threshold={threshold!r} needs reward_mode='thresholded'")
    least = 1.0 if mode == "binary" else threshold
    if mode == "raw":
        return lambda outcome: outcome.raw
    if mode == "original":
        return lambda outcome: outcome.timed
    return lambda outcome: 1.0 if outcome.raw >= least else -1.0
