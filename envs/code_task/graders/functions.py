"""Functions, called in another process than the one that holds the expected values."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agent_gym.envs.code_task.graders.compare import SPECIAL, listed, same
from agent_gym.envs.code_task.graders.grade import Grade, Work
from agent_gym.envs.code_task.graders.quoting import quoted
from agent_gym.sandbox import CandidateError, CandidateProcess, CodecError, Limits, SandboxPool, grade_with_check
from agent_gym.sandbox.codec import loads

__all__ = ["SOLUTION_FILE", "calls", "check", "inputs"]

SOLUTION_FILE = "solution.py"
"""Where a function or a program is expected."""

_RTOL = 1e-7  # EvalPlus's
_TOLERANCE = 1e-6
_GRADED = "_graded"
_METHOD = """


def {graded}(*given):
    made = globals().get("Solution")
    return (getattr(made(), {name!r}) if hasattr(made, {name!r}) else globals()[{name!r}])(*given)
"""
_TRUTH = """


def {graded}(*given):
    value = {name}(*given)
    return value if isinstance(value, bool) else value is not None
"""


def check(work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:
    """By HumanEval's kind of test: ``hidden`` has ``prelude`` (code whose names the test uses), ``test`` (defines ``check(candidate)``)
    and ``entry_point``. The test may call the function by its own name, and may do so before ``check`` is called.
    """
    if SOLUTION_FILE not in work.files:
        return _MISSING
    graded = grade_with_check(work.files[SOLUTION_FILE], hidden["prelude"], hidden["test"], hidden["entry_point"], limits, pool)
    return Grade(passed=graded.passed, detail=graded.detail)


def inputs(work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:
    """By a program that is right: ``hidden`` has ``program``, ``entry_point``, ``inputs`` (the arguments of each call, a tuple as the
    sandbox's codec writes it), ``atol``, and ``special``, a key of `agent_gym.envs.code_task.graders.compare.SPECIAL` or empty.

    The two programs run in sandboxes of their own; values are equal as Python has it, but for floats, which may differ by ``atol``.
    """
    if SOLUTION_FILE not in work.files:
        return _MISSING
    special, atol = SPECIAL.get(hidden["special"]), hidden["atol"]
    name, more = hidden["entry_point"], ""
    if special is not None and special.as_truth:
        name, more = _GRADED, _TRUTH.format(graded=_GRADED, name=name)
    given = [loads(text.encode()) for text in hidden["inputs"]]
    try:
        expected = list(_values(hidden["program"].encode() + more.encode(), name, given, limits, pool))
    except (CandidateError, CodecError) as error:
        return Grade(passed=False, detail=f"the reference solution gives no value: {error}")

    def right(number: int, got: Any) -> bool:
        if special is None:
            return same(got, expected[number], atol or _TOLERANCE, _RTOL)
        try:
            return bool(got == expected[number]) or special.right(given[number], got, expected[number], atol or _TOLERANCE)
        except (TypeError, ValueError, OverflowError):
            return False

    return _judged(work.files[SOLUTION_FILE] + more.encode(), name, given, right, limits, pool)


def calls(work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:
    """By values that are known: ``hidden`` has ``name``, of a function or of a method of ``class Solution``, and ``cases``, pairs of the
    arguments (a tuple) and the value as the sandbox's codec writes them.

    The expected values are JSON's, so tuples count as lists; floats may differ by 1e-6.
    """
    if SOLUTION_FILE not in work.files:
        return _MISSING
    cases = [(loads(given.encode()), loads(wanted.encode())) for given, wanted in hidden["cases"]]

    def right(number: int, got: Any) -> bool:
        return same(listed(got), cases[number][1], _TOLERANCE, _TOLERANCE)

    program = work.files[SOLUTION_FILE] + _METHOD.format(graded=_GRADED, name=hidden["name"]).encode()
    return _judged(program, _GRADED, [given for given, _ in cases], right, limits, pool)


_MISSING = Grade(passed=False, detail=f"there is no {SOLUTION_FILE}")


def _judged(
    program: bytes, name: str, given: Sequence[Sequence[Any]], right: Callable[[int, Any], bool], limits: Limits, pool: SandboxPool
) -> Grade:
    """Stops at the first value that is not right."""
    number = 0
    try:
        for number, got in enumerate(_values(program, name, given, limits, pool), 1):
            if not right(number - 1, got):
                return Grade(passed=False, detail=f"call {number} of {len(given)} gives another value: {quoted(got)}")
    except (CandidateError, CodecError) as error:
        return Grade(passed=False, detail=f"call {number + 1} of {len(given)} gives no value: {error}")
    return Grade(passed=True)


def _values(program: bytes, name: str, given: Iterable[Sequence[Any]], limits: Limits, pool: SandboxPool) -> Iterable[Any]:
    with pool.lease() as place, CandidateProcess(program, limits=limits, place=place) as candidate:
        for arguments in given:
            yield candidate.call(name, arguments).value
