"""Wrappers: each changes one thing about an environment, and can be rebuilt from its arguments."""

if __name__ != "agent_gym.wrappers":
    raise ImportError(f"this is agent_gym.wrappers, not {__name__}; import agent_gym.wrappers")

from agent_gym.wrappers.clean_start import CleanStart
from agent_gym.wrappers.record_trajectory import RecordTrajectory

__all__ = ["CleanStart", "RecordTrajectory"]
