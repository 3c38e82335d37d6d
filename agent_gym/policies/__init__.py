"""Policies that need no learning, and `load`, which finds any policy by name, file or import string."""

from agent_gym.policies.loading import POLICIES, load

__all__ = ["POLICIES", "load"]
