"""What a grader is given, and what it gives."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent_gym.sandbox import Limits

__all__ = ["Grade", "Work", "patient"]

_PATIENCE = 3.0
_LONGEST_S = 3600.0


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
    """The same limits, but for so much elapsed time that a busy machine fails nobody: CPU time decides.

    That is three times the CPU time where the machine is at rest, and as many times that as there are programs for each of its cores.
    """
    now = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0])  # that run or wait for a core
    crowd = max(1.0, max(now, os.getloadavg()[0]) / len(os.sched_getaffinity(0)))
    return replace(limits, wall_s=min(_LONGEST_S, crowd * max(limits.wall_s, _PATIENCE * limits.cpu_s)))
