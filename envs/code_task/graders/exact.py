"""Calls whose values are known, to the type."""

import ast
from collections.abc import Mapping
from typing import Any

from agent_gym.envs.code_task.graders.grade import Grade, Work
from agent_gym.envs.code_task.graders.quoting import quoted
from agent_gym.sandbox import CandidateError, CandidateProcess, Limits, SandboxPool

__all__ = ["exactly", "judge"]


def judge(work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:
    """``hidden`` has ``path``, ``entry_point`` and ``cases``: the arguments (a tuple) and the value of each call, as Python literals."""
    if hidden["path"] not in work.files:
        return Grade(passed=False, detail=f"there is no {hidden['path']}")
    program = work.files[hidden["path"]]
    with pool.lease() as place, CandidateProcess(program, files=work.files, limits=limits, place=place) as candidate:
        for arguments, value in hidden["cases"]:
            try:
                got = candidate.call(hidden["entry_point"], ast.literal_eval(arguments)).value
            except CandidateError as error:
                return Grade(passed=False, detail=f"{hidden['entry_point']}{arguments} gives no value: {error}")
            if not exactly(got, ast.literal_eval(value)):
                return Grade(passed=False, detail=f"{hidden['entry_point']}{arguments} gives {quoted(got)}, expected {value}")
    return Grade(passed=True)


def exactly(got: Any, expected: Any) -> bool:
    """Whether two values, made of plain builtins, are equal and of equal types throughout; the order of a dict does not matter."""
    if type(got) is not type(expected):
        return False
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(exactly(got[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        return len(got) == len(expected) and all(map(exactly, got, expected))
    return bool(got == expected)
