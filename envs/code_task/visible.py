"""The tests that an agent may run while it works. What they say is for the agent; it is never read as a reward."""

import ast
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent_gym.core.canonical import dumps
from agent_gym.envs.code_task.calling import read
from agent_gym.envs.code_task.graders.drivers import driver
from agent_gym.envs.code_task.graders.drivers.calls import told
from agent_gym.envs.code_task.graders.exact import exactly
from agent_gym.envs.code_task.graders.quoting import quoted
from agent_gym.sandbox import CandidateError, CandidateProcess, Limits, default_pool

__all__ = ["RUNNERS", "Case", "forget", "run_visible"]

_SHOWN = 500
_PROJECT_CPU_S = 2.0
"""Of all shown tests of a project together, so that one without an end does not cost much."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What became of one test.

    Attributes:
        name: Which.
        passed: Whether it passed.
        expected: What should have come out; empty where that cannot be shown.
        got: What did.
        cut_off: Whether a limit may have ended it; then it can end otherwise another time.
    """

    name: str
    passed: bool
    expected: str = ""
    got: str = ""
    cut_off: bool = False

    def told(self) -> dict[str, Any]:
        """As the agent is told: of a test that passed its name only."""
        if self.passed:
            return {"test": self.name[:_SHOWN], "passed": True}
        return {"test": self.name[:_SHOWN], "passed": False, "expected": self.expected[:_SHOWN], "got": self.got[:_SHOWN]}


def _calls(files: Mapping[str, bytes], visible: Mapping[str, Any], limits: Limits) -> list[Case]:
    """``path``, ``entry_point`` and ``cases``: the arguments (a tuple) and the expected value of each call, as Python literals."""
    if visible["path"] not in files:
        return [Case(name=arguments, passed=False, expected=value, got="no such file") for arguments, value in visible["cases"]]
    cases = []
    with default_pool().lease() as place, CandidateProcess(files[visible["path"]], files=files, limits=limits, place=place) as candidate:
        for arguments, value in visible["cases"]:
            try:
                result = candidate.call(visible["entry_point"], ast.literal_eval(arguments)).value
                passed, got, cut_off = exactly(result, ast.literal_eval(value)), quoted(result, _SHOWN), False
            except CandidateError as error:
                passed, got, cut_off = False, str(error), error.kind in ("timeout", "died")
            name = f"{visible['entry_point']}{arguments}"
            cases.append(Case(name=name, passed=passed, expected=value, got=got, cut_off=cut_off))
    return cases


def _project(files: Mapping[str, bytes], visible: Mapping[str, Any], limits: Limits) -> list[Case]:
    """``cases``: calls in the project (see `agent_gym.envs.code_task.calling`), and what should come of them, as text."""
    cases = []
    limits = replace(limits, cpu_s=min(limits.cpu_s, _PROJECT_CPU_S))
    with default_pool().lease() as place, CandidateProcess(driver("calls"), files=files, limits=limits, place=place) as candidate:
        for text, expected in visible["cases"]:
            try:
                got, cut_off = told(candidate.call("run", (read(text),)).value), False
            except (CandidateError, TypeError, ValueError) as error:  # what it says came of them may be anything
                got, cut_off = str(error), isinstance(error, CandidateError) and error.kind in ("timeout", "died")
            cases.append(Case(name=text, passed=got == expected, expected=expected, got=got, cut_off=cut_off))
    return cases


RUNNERS: dict[str, Callable[[Mapping[str, bytes], Mapping[str, Any], Limits], list[Case]]] = {"calls": _calls, "project": _project}
"""Who runs them, by name."""

_REMEMBERED = 8_192
_remembered: dict[bytes, list[Case]] = {}


def run_visible(files: Mapping[str, bytes], visible: Mapping[str, Any], limits: Limits) -> list[Case]:
    """Runs a task's visible tests on a workspace. What came of equal files is remembered, unless a limit had a part in it."""
    key = hashlib.sha256(dumps([{path: content.hex() for path, content in files.items()}, visible])).digest()
    cases = _remembered.get(key)
    if cases is None:
        cases = RUNNERS[visible["runner"]](files, visible, limits)
        if not any(case.cut_off for case in cases):
            if len(_remembered) >= _REMEMBERED:
                _remembered.pop(next(iter(_remembered)))
            _remembered[key] = cases
    return cases


def forget() -> None:
    """Runs all anew from now on."""
    _remembered.clear()
