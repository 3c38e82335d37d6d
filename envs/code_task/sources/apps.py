"""APPS's format, as rows or as folders: programs from standard input to standard output, or functions."""

from typing import Any

from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.sources.programs import Contest
from agent_gym.envs.code_task.sources.row import Row

__all__ = ["FIELDS", "problem"]

FIELDS = ("problem_id", "question", "input_output")

_OPTIONAL = ("solutions", "starter_code", "difficulty")
_DIFFICULTY = {"introductory": 0.3, "interview": 0.6, "competition": 0.9}


def problem(row: Row, split: str, family: str) -> Problem:
    """A row as a problem; the first of the solutions is the one that the oracle knows."""
    tests = row.json("input_output") if row.fields["input_output"] else None
    if not tests:
        raise row.bad("field 'input_output' is empty: nothing would be graded")
    if not isinstance(tests, dict) or not (isinstance(tests.get("inputs"), list) and isinstance(tests.get("outputs"), list)):
        raise row.bad("field 'input_output' has no lists 'inputs' and 'outputs'")
    if len(tests["inputs"]) != len(tests["outputs"]):
        raise row.bad(f"field 'input_output' has {len(tests['inputs'])} inputs and {len(tests['outputs'])} outputs")
    pairs = list(zip(tests["inputs"], tests["outputs"], strict=True))
    solutions = row.texts("solutions", ())
    contest = Contest(
        row=row,
        split=split,
        family=family,
        id=row.id("problem_id", f"apps/{split}/"),
        text=row.text("question"),
        start=row.text("starter_code", ""),
        solution=solutions[0] if solutions else None,
        difficulty=_DIFFICULTY.get(str(row.fields.get("difficulty")), 0.5),
        known=(*FIELDS, *_OPTIONAL),
    )
    if not tests.get("fn_name"):
        return contest.program(pairs, {})
    if not all(isinstance(given, list) for given, _ in pairs):
        raise row.bad("field 'input_output' has inputs that are no lists of arguments")
    return contest.function(Row(row.where, tests).name("fn_name"), [(given, _unwrapped(wanted)) for given, wanted in pairs])


def _unwrapped(wanted: Any) -> Any:
    """The value of a call, which stands in a list of its own."""
    return wanted[0] if isinstance(wanted, list) and len(wanted) == 1 else wanted
