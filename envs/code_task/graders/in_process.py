"""Projects, judged by unittest tests that import them: for sources whose tests cannot be had apart from the code.

Tests and project share a process, so this holds against what meddles blindly, not against what knows how it is run: code that walks
frames, or all objects there are, to the tests' own values can return them or forge an outcome. That is the known gap, and why a record
of such a task says ``in_process``.
"""

import fnmatch
import secrets
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agent_gym.envs.code_task.graders.drivers import driver
from agent_gym.envs.code_task.graders.grade import Grade, Work
from agent_gym.sandbox import CandidateError, CandidateProcess, CodecError, Limits, SandboxPool

__all__ = ["judge", "judged_files"]

_CANARIES = 12
_HOOKS = ("conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "sitecustomize.py", "usercustomize.py", "*.pth", "*.pyc", "*.so")
_HOOK_FOLDERS = ("__pycache__", "*.dist-info", "*.egg-info")


def judge(work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:
    """By unittest: ``hidden`` has ``tests`` (contents by path), ``fail_to_pass`` and ``pass_to_pass`` (ids of tests, such as
    ``tests.test_text.TestText.test_wrap`` or ``tests/test_text.py::TestText::test_wrap``), and perhaps ``protected`` (patterns of paths
    that are put back as they were).

    Exactly these tests must have run and passed, and those among them that must fail must have failed; else somebody has tampered.
    """
    wanted = sorted({_dotted(test) for test in (*hidden["fail_to_pass"], *hidden["pass_to_pass"])})
    if not wanted:
        return Grade(passed=False, detail="there are no tests")
    sources = {path: text for path, text in hidden["tests"].items() if path.endswith(".py")}
    data = {path: text.encode() for path, text in hidden["tests"].items() if path not in sources}
    numbers = [1_000 + secrets.randbelow(1 << 40) for _ in range(_CANARIES)]  # seen by nobody, so that it need not be repeatable
    files = judged_files(work, hidden.get("protected", ()))
    with pool.lease() as place, CandidateProcess(driver("tests"), files=files, limits=limits, place=place) as project:
        try:
            told = project.call("run", (sources, data, wanted, numbers)).value
        except (CandidateError, CodecError) as error:
            return Grade(passed=False, detail=f"the tests came to no end: {error}")
    return _grade(told, wanted, numbers)


def judged_files(work: Work, protected: Sequence[str]) -> dict[str, bytes]:
    """The workspace as it is judged: what is protected, and what Python and test frameworks look for without being asked, is as it was
    at the start; and no file that was added stands in for a module of the standard library.
    """

    def put_back(path: str) -> bool:
        *folders, name = path.split("/")
        hook = any(fnmatch.fnmatchcase(name, hook) for hook in _HOOKS)
        return (
            hook
            or any(fnmatch.fnmatchcase(folder, hook) for folder in folders for hook in _HOOK_FOLDERS)
            or any(fnmatch.fnmatchcase(path, pattern) for pattern in protected)
        )

    def stands_in(path: str) -> bool:
        return path not in work.start and path.partition("/")[0].partition(".")[0] in sys.stdlib_module_names

    kept = {path: content for path, content in work.files.items() if not put_back(path) and not stands_in(path)}
    return {**kept, **{path: content for path, content in work.start.items() if put_back(path)}}


def _grade(told: Any, wanted: Sequence[str], numbers: Sequence[int]) -> Grade:
    if type(told) is not list or not all(type(row) is tuple and list(map(type, row)) == [str, str, str] for row in told):
        return Grade(passed=False, tampered="what came back is no report of tests")
    canaries = {str(number) for number in numbers}
    flipped = sorted(outcome for test, outcome, why in told if test in canaries and (outcome not in ("failed", "error") or not why))
    if flipped or canaries - {test for test, _, _ in told}:
        return Grade(passed=False, tampered="tests that must fail did not")
    outcomes = [(test, outcome, why) for test, outcome, why in told if test not in canaries]
    if pretending := next((f"{test}: {why}" for test, outcome, why in outcomes if outcome == "pretends"), ""):
        return Grade(passed=False, tampered=pretending)
    if failed := next((f"{test} {outcome}: {why}" for test, outcome, why in outcomes if outcome != "passed"), ""):
        return Grade(passed=False, detail=failed)
    if sorted(test for test, _, _ in outcomes) != list(wanted):
        return Grade(passed=False, tampered="other tests ran than those that were asked for")
    return Grade(passed=True)


def _dotted(test: str) -> str:
    """A test's id with dots throughout."""
    path, colons, rest = test.partition("::")
    return f"{path.removesuffix('.py').replace('/', '.')}.{rest.replace('::', '.')}" if colons else test
