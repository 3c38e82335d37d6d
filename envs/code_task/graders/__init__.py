"""Who judges the agent's work. Nothing on the agent's side is ever read as a reward: a grader sees its files and its answer, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_gym.envs.code_task.graders.functions import check
from agent_gym.envs.code_task.graders.grade import Grade, Work
from agent_gym.sandbox import Limits, SandboxPool

__all__ = ["GRADERS", "Grade", "Grader", "Work"]


@dataclass(frozen=True)
class Grader:
    """A way to judge.

    Attributes:
        judge: Judges work by a problem's ``hidden`` values, in sandboxes of the pool's.
        grading: ``"out_of_process"``: what the agent wrote runs in another process than what decides, so that it cannot forge a
            verdict; ``"in_process"``: it shares one with the tests, and a program that walks their frames knowingly can.
    """

    judge: Callable[[Work, Mapping[str, Any], Limits, SandboxPool], Grade]
    grading: str = "out_of_process"


GRADERS: dict[str, Grader] = {"check": Grader(check)}
"""The graders by name; a problem names its own, and `agent_gym.envs.code_task.problem.Problem.hidden` is what it needs."""
