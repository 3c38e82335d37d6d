"""The tests that an agent may run while it works. What they say is for the agent; it is never read as a reward."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_gym.envs.code_task.calling import read, told
from agent_gym.envs.code_task.graders.drivers import driver
from agent_gym.sandbox import CandidateError, CandidateProcess, Limits, default_pool

__all__ = ["RUNNERS", "Case"]

_SHOWN = 500


@dataclass(frozen=True, kw_only=True)
class Case:
    """What became of one test.

    Attributes:
        name: Which.
        passed: Whether it passed.
        expected: What should have come out; empty where that cannot be shown.
        got: What did.
    """

    name: str
    passed: bool
    expected: str = ""
    got: str = ""

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
                got = repr(candidate.call(visible["entry_point"], ast.literal_eval(arguments)).value)
            except CandidateError as error:
                got = str(error)
            name = f"{visible['entry_point']}{arguments}"
            cases.append(Case(name=name, passed=got == value, expected=value, got=got))
    return cases


def _project(files: Mapping[str, bytes], visible: Mapping[str, Any], limits: Limits) -> list[Case]:
    """``cases``: calls in the project (see `agent_gym.envs.code_task.calling`), and what should come of them, as text."""
    cases = []
    with default_pool().lease() as place, CandidateProcess(driver("calls"), files=files, limits=limits, place=place) as candidate:
        for text, expected in visible["cases"]:
            try:
                got = told(candidate.call("run", (read(text),)).value)
            except (CandidateError, TypeError, ValueError) as error:  # what it says came of them may be anything
                got = str(error)
            cases.append(Case(name=text, passed=got == expected, expected=expected, got=got))
    return cases


RUNNERS: dict[str, Callable[[Mapping[str, bytes], Mapping[str, Any], Limits], list[Case]]] = {"calls": _calls, "project": _project}
"""Who runs them, by name."""
