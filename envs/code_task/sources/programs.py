"""What the formats of contests have in common: programs from standard input to standard output, and functions called with JSON values."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_gym.envs.code_task.graders.functions import SOLUTION_FILE
from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.sources.row import Row

__all__ = ["Contest"]

_PROGRAM = "Write a program in {file} that reads from standard input and prints to standard output, as stated here. Then finish.\n\n{text}"
_FUNCTION = "Write {name} in {file}, as stated here; the tests call it. Then finish.\n\n{text}"
_MAX_EXPECTED = 4 << 20
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class Contest:
    """A contest's problem, all but its tests.

    Attributes:
        row: Where it comes from.
        split: Its split.
        family: ``code/<name>``.
        id: Its id.
        text: What is asked for.
        start: What the file holds at the start.
        solution: A program that solves it; None where none is known.
        difficulty: From 0 to 1.
        known: The fields that have been read.
    """

    row: Row
    split: str
    family: str
    id: str
    text: str
    start: str
    solution: str | None
    difficulty: float
    known: Sequence[str]

    def program(self, cases: Iterable[tuple[Any, Any]], limits: Mapping[str, Any]) -> Problem:
        """As a program; its cases are pairs of an input and the expected output, each a text or a list of lines.

        Raises:
            DatasetError: A case is something else, or there is none that expects any output.
        """
        read = [(self._lines(given, f"input {n}"), self._lines(wanted, f"output {n}")) for n, (given, wanted) in enumerate(cases, 1)]
        if not any(wanted.strip() for _, wanted in read):
            raise self.row.bad("no test expects any output: nothing would be graded")
        if (longest := max(len(wanted) for _, wanted in read)) > _MAX_EXPECTED:
            raise self.row.bad(f"an expected output of {longest} characters, at most {_MAX_EXPECTED} are compared")
        goal = _PROGRAM.format(file=SOLUTION_FILE, text=self.text)
        return self._problem(goal, "stdio", {"cases": read, "limits": self.row.limits(limits)})

    def function(self, name: str, cases: Iterable[tuple[Sequence[Any], Any]]) -> Problem:
        """As a function, or a method of ``class Solution``; its cases are pairs of the arguments and the expected value.

        Raises:
            DatasetError: There are none, or a value is too large.
        """
        read = [
            (self.row.sendable(tuple(given), f"the arguments of test {n}"), self.row.sendable(wanted, f"the value of test {n}"))
            for n, (given, wanted) in enumerate(cases, 1)
        ]
        if not read:
            raise self.row.bad("there are no tests: nothing would be graded")
        said = f"the method {name} of class Solution" if "class Solution" in self.start else f"the function {name}"
        goal = _FUNCTION.format(name=said, file=SOLUTION_FILE, text=self.text)
        return self._problem(goal, "calls", {"name": name, "cases": read})

    def _problem(self, goal: str, grader: str, hidden: Mapping[str, Any]) -> Problem:
        return Problem(
            id=self.id,
            family=self.family,
            split=self.split,
            goal=goal,
            prompt=self.text,
            files={SOLUTION_FILE: self.start},
            grader=grader,
            hidden=hidden,
            solution=None if self.solution is None else {SOLUTION_FILE: self.solution},
            oracle_kind="none" if self.solution is None else "privileged",
            difficulty=self.difficulty,
            metadata=self.row.rest(self.known),
        )

    def _lines(self, value: Any, what: str) -> str:
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            value = "\n".join(value)
        if not isinstance(value, str):
            raise self.row.bad(f"{what} is {type(value).__name__} instead of text")
        if _SURROGATE.search(value):
            raise self.row.bad(f"{what} has half a surrogate pair")
        return value
