"""Isolated execution: an episode's workspace, programs run in it under limits, and calls to functions that nobody trusts."""

from agent_gym.errors import SandboxUnavailable
from agent_gym.sandbox.calls import CandidateError, CandidateProcess, Reply
from agent_gym.sandbox.codec import CodecError
from agent_gym.sandbox.execution import ExecResult
from agent_gym.sandbox.grading import Graded, grade_with_check
from agent_gym.sandbox.limits import Limits
from agent_gym.sandbox.pool import SandboxPool, default_pool
from agent_gym.sandbox.preflight import available, preflight
from agent_gym.sandbox.workspace import Changes, Sandbox

__all__ = [
    "CandidateError",
    "CandidateProcess",
    "Changes",
    "CodecError",
    "ExecResult",
    "Graded",
    "Limits",
    "Reply",
    "Sandbox",
    "SandboxPool",
    "SandboxUnavailable",
    "available",
    "default_pool",
    "grade_with_check",
    "preflight",
]
