"""CodeContests' format: contest problems with three sets of tests, and solutions in many languages."""

from typing import Any

from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.sources.programs import Contest
from agent_gym.envs.code_task.sources.row import Row

__all__ = ["FIELDS", "problem"]

FIELDS = ("name", "description", "public_tests", "private_tests", "generated_tests")

_OPTIONAL = ("solutions", "incorrect_solutions", "time_limit", "memory_limit_bytes", "input_file", "output_file", "difficulty")
_PYTHON3 = (3, "PYTHON3")
_PATIENCE = 3.0
_LEAST_CPU_S, _LEAST_MEMORY_MIB, _MOST_MEMORY_MIB = 5.0, 512, 4096


def problem(row: Row, split: str, family: str) -> Problem:
    """A row as a problem. Its limits are for any language, so a program has three times the time, at least 5 s, and 512 MiB or more."""
    for name in ("input_file", "output_file"):
        if row.fields.get(name):
            raise row.bad(f"field {name!r}: it reads or writes a file, and only standard input and output are graded")
    kind = row.fields.get("difficulty")
    contest = Contest(
        row=row,
        split=split,
        family=family,
        id=row.id("name"),
        text=row.text("description"),
        start="",
        solution=_solution(row),
        difficulty=min(max(kind, 1), 10) / 10 if isinstance(kind, int) else 0.5,
        known=(*FIELDS, *_OPTIONAL),
    )
    return contest.program([pair for name in FIELDS[2:] for pair in _tests(row, name)], _limits(row))


def _tests(row: Row, name: str) -> list[tuple[Any, Any]]:
    tests = row.json(name)
    if isinstance(tests, list) and all(isinstance(test, dict) for test in tests):  # a list of cases instead of a case of lists
        tests = {key: [test.get(key) for test in tests] for key in ("input", "output")}
    if not isinstance(tests, dict) or not all(isinstance(tests.get(key), list) for key in ("input", "output")):
        raise row.bad(f"field {name!r} has no lists 'input' and 'output'")
    if len(tests["input"]) != len(tests["output"]):
        raise row.bad(f"field {name!r} has {len(tests['input'])} inputs and {len(tests['output'])} outputs")
    return list(zip(tests["input"], tests["output"], strict=True))


def _solution(row: Row) -> str | None:
    """The first in Python 3."""
    solutions = row.fields.get("solutions") or {}
    if isinstance(solutions, dict):
        languages, texts = solutions.get("language"), solutions.get("solution")
        if not (isinstance(languages, list) and isinstance(texts, list)):
            languages = texts = []
        solutions = [{"language": language, "solution": text} for language, text in zip(languages, texts, strict=False)]
    if not isinstance(solutions, list) or not all(isinstance(one, dict) for one in solutions):
        raise row.bad("field 'solutions' has no lists 'language' and 'solution'")
    found = next((one for one in solutions if one.get("language") in _PYTHON3), None)
    return None if found is None else Row(row.where, found).text("solution")


def _limits(row: Row) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    seconds = row.fields.get("time_limit")
    if isinstance(seconds, dict):
        whole, nanos = seconds.get("seconds", 0), seconds.get("nanos", 0)
        seconds = whole + nanos / 1e9 if type(whole) is int and type(nanos) is int and max(abs(whole), abs(nanos)) < 10**10 else whole
    if seconds is not None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise row.bad(f"field 'time_limit' is {type(seconds).__name__} instead of seconds")
        limits["cpu_s"] = max(_LEAST_CPU_S, _PATIENCE * seconds)
    size = row.fields.get("memory_limit_bytes")
    if type(size) is int:
        limits["memory_mib"] = min(max(_LEAST_MEMORY_MIB, size >> 20), _MOST_MEMORY_MIB)
    return limits
