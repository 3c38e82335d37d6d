"""What a grader is given, and what it gives."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agent_gym.sandbox import Limits

__all__ = ["PATIENCE", "Grade", "Work", "patient"]

PATIENCE = 6.0
"""Seconds that may elapse for one of CPU time."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What an agent has made.

    Attributes:
        files: Its workspace at the end.
        start: The workspace at the start.
        answer: The answer that it finished with; None without one.
    """

    files: Mapping[str, bytes]
    start: Mapping[str, bytes]
    answer: str | None = None


@dataclass(frozen=True, kw_only=True)
class Grade:
    """A verdict on it.

    Attributes:
        passed: Whether it solves the problem.
        detail: Why not; may quote what is hidden, so it is not for the agent's eyes.
        tampered: What was meddled with, which is a violation; empty if nothing was.
    """

    passed: bool
    detail: str = ""
    tampered: str = ""


def patient(limits: Limits) -> Limits:
    """The same limits, but for so much elapsed time that a busy machine fails nobody: CPU time decides."""
    return replace(limits, wall_s=min(3600.0, max(limits.wall_s, PATIENCE * limits.cpu_s)))
