"""MBPP's two formats, the full one and the sanitized one: a sentence, a program, and asserts."""

import re

from agent_gym.envs.code_task.graders.functions import SOLUTION_FILE
from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.sources.row import Row

__all__ = ["FULL", "SANITIZED", "problem"]

FULL = ("task_id", "text", "code", "test_list")
SANITIZED = ("task_id", "prompt", "code", "test_list")

_OPTIONAL = ("test_setup_code", "challenge_test_list", "test_imports")
_GOAL = "Write the function {name} in {file}. {text} One of the tests is:\n\n{shown}\n\nThen finish."
_FUNCTION = re.compile(r"^(?:async )?def +(\w+)|^(\w+) *= *lambda\b", re.MULTILINE)
_CLASS = re.compile(r"^class +(\w+)", re.MULTILINE)


def problem(row: Row, split: str, family: str) -> Problem:
    """A row as a problem. The first assert is shown; all of them decide, but for those of the challenge list."""
    text = row.text("text" if "text" in row.fields else "prompt").strip()
    code, asserts = row.text("code"), row.texts("test_list")
    if not any(asserts):
        raise row.bad("field 'test_list' is empty: nothing would be graded")
    test = "\n".join([*row.texts("test_imports", ()), row.text("test_setup_code", ""), *asserts])
    name = _function(row, code, test)
    return Problem(
        id=row.id("task_id", "mbpp/"),
        family=family,
        split=split,
        goal=_GOAL.format(name=name, file=SOLUTION_FILE, text=text, shown=asserts[0].strip()),
        prompt=text,
        files={SOLUTION_FILE: ""},
        grader="check",
        hidden={"prelude": "", "test": f"{test}\n\n\ndef check(candidate):\n    pass\n", "entry_point": name},
        solution={SOLUTION_FILE: code},
        difficulty=min(1.0, len(code.splitlines()) / 25),
        metadata=row.rest((*FULL, *SANITIZED, *_OPTIONAL)),
    )


def _function(row: Row, code: str, test: str) -> str:
    """The one function of the program that the test calls."""
    called = set(re.findall(r"\b(\w+) *\(", test))
    if classes := sorted(called & set(_CLASS.findall(code))):
        raise row.bad(f"its test makes objects of the solution's own class {classes[0]!r}, which only a grader in the same process could")
    names: list[str] = [name for name in dict.fromkeys(one or other for one, other in _FUNCTION.findall(code)) if name in called]
    if len(names) != 1:
        raise row.bad(f"its test calls {' and '.join(names) if names else 'no function'} of its code, where one function is expected")
    return names[0]
