"""The outermost layer: turns rich observations and tool calls into what a learner eats."""

from agent_gym.interface.array import ArrayInterface
from agent_gym.interface.base import Interface
from agent_gym.interface.text import TextInterface

__all__ = ["ArrayInterface", "Interface", "TextInterface"]
