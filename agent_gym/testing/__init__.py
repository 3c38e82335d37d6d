"""The public conformance suite, and a small environment with planted defects to try it on."""

from agent_gym.testing.conformance import CHECKS, ConformanceError, Maker, rollout
from agent_gym.testing.small import SmallTask

__all__ = ["CHECKS", "ConformanceError", "Maker", "SmallTask", "rollout"]
