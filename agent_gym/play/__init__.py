"""A person plays an environment in the terminal: the same tasks, tools, limits and record as for a policy."""

from agent_gym.play.loop import play

__all__ = ["play"]
