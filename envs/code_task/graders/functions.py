"""Functions, called in another process than the one that holds the expected values."""

from collections.abc import Mapping
from typing import Any

from agent_gym.envs.code_task.graders.grade import Grade, Work
from agent_gym.sandbox import Limits, SandboxPool, grade_with_check

__all__ = ["SOLUTION_FILE", "check"]

SOLUTION_FILE = "solution.py"
"""Where a function is expected."""


def check(work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:
    """By HumanEval's kind of test: ``hidden`` has ``prelude`` (code whose names the test uses), ``test`` (defines ``check(candidate)``)
    and ``entry_point``.
    """
    if SOLUTION_FILE not in work.files:
        return Grade(passed=False, detail=f"there is no {SOLUTION_FILE}")
    graded = grade_with_check(work.files[SOLUTION_FILE], hidden["prelude"], hidden["test"], hidden["entry_point"], limits, pool)
    return Grade(passed=graded.passed, detail=graded.detail)
