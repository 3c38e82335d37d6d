"""The public conformance suite, and a small environment with planted defects to try it on."""

from agent_gym.testing.small import SmallTask

__all__ = ["SmallTask"]
