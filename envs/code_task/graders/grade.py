"""What a grader is given, and what it gives."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Grade", "Work"]


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
