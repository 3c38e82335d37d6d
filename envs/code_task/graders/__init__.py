"""Who judges the agent's work. Nothing on the agent's side is ever read as a reward: a grader sees its files and its answer, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent_gym.envs.code_task.graders import answer, exact, in_process, repo, state
from agent_gym.envs.code_task.graders.functions import calls, check, inputs
from agent_gym.envs.code_task.graders.grade import Grade, Work, patient
from agent_gym.envs.code_task.graders.stdio import stdio
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

    def __call__(self, work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:
        """Judges within these limits or, where ``hidden`` has ``limits``, the problem's own, and with patience for a busy machine."""
        return self.judge(work, hidden, patient(replace(limits, **hidden.get("limits", {}))), pool)


GRADERS: dict[str, Grader] = {
    "check": Grader(check),
    "inputs": Grader(inputs),
    "calls": Grader(calls),
    "exact": Grader(exact.judge),
    "stdio": Grader(stdio),
    "repo": Grader(repo.judge),
    "unittest": Grader(in_process.judge, "in_process"),
    "answer": Grader(answer.judge),
    "state": Grader(state.judge),
}
"""The graders by name; a problem names its own, and `agent_gym.envs.code_task.problem.Problem.hidden` is what it needs."""
