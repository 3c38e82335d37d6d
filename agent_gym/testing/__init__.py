"""The public conformance suite, a small environment with planted defects to try it on; and sixteen with a leak, in `leaky`."""

from agent_gym.testing.conformance import CHECKS, ConformanceError, Maker, rollout
from agent_gym.testing.memory import MemoryTask
from agent_gym.testing.misjudging import MisjudgingTask
from agent_gym.testing.small import SmallTask

__all__ = ["CHECKS", "ConformanceError", "Maker", "MemoryTask", "MisjudgingTask", "SmallTask", "rollout"]
