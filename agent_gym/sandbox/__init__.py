"""Isolated execution: an episode's workspace, programs run in it under limits, and calls to functions that nobody trusts."""

from agent_gym.sandbox.execution import ExecResult
from agent_gym.sandbox.limits import Limits
from agent_gym.sandbox.preflight import available, preflight
from agent_gym.sandbox.workspace import Changes, Sandbox

__all__ = [
    "Changes",
    "ExecResult",
    "Limits",
    "Sandbox",
    "available",
    "preflight",
]
