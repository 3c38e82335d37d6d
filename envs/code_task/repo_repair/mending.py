"""How a project is mended by trying: edits of the lines that failing tests run, until one makes all tests pass.

Nothing here knows what was done to the project.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from agent_gym.envs.code_task.calling import read
from agent_gym.envs.code_task.graders.drivers import driver
from agent_gym.errors import InfrastructureError
from agent_gym.interface.edits import python_edits
from agent_gym.sandbox import CandidateError, CandidateProcess, Limits, default_pool

__all__ = ["SHOWN", "Change", "Trials", "mend", "suspects"]

SHOWN = 500
"""So many characters of what came of a test are told."""
_AT_ONCE = 40


class Change(NamedTuple):
    """An edit of one of the files."""

    path: str
    old: str
    new: str


class Trials:
    """Tries changes to a project, in the sandbox.

    Args:
        texts: The project's files by path.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def outcomes(self, changes: Sequence[Change], cases: Sequence[tuple[str, str | None]]) -> list[list[str]]:
        """What came of cases with each change; see `agent_gym.envs.code_task.repo_repair.trying.outcomes`."""
        found: list[list[str]] = self._call(
            "outcomes", [[*change] for change in changes], [(read(text), expected) for text, expected in cases], SHOWN
        )
        return found

    def lines(self, cases: Sequence[str]) -> list[set[tuple[str, int]]]:
        """The lines that each case runs."""
        return [{(path, line) for path, line in rows} for rows in self._call("lines_of", [read(text) for text in cases])]

    def _call(self, name: str, *arguments: Any) -> Any:
        limits = Limits(cpu_s=120, wall_s=600)
        with default_pool().lease() as place, CandidateProcess(_program(), limits=limits, place=place) as process:
            try:
                return process.call(name, (self._texts, *arguments)).value
            except CandidateError as error:
                raise InfrastructureError(f"the oracle's trials broke off: {error}") from error


def mend(texts: Mapping[str, str], tests: Sequence[tuple[str, str | None]]) -> Change | None:
    """The first change after which every test gives what it should; None if there is none.

    Args:
        texts: The project's files by path.
        tests: Calls, and what should come of them; None for tests that pass as it is.
    """
    trials = Trials(texts)
    nothing = Change(next(iter(texts)), "\0", "")
    (now,) = trials.outcomes([nothing], [(text, None) for text, _ in tests])
    if len(now) < len(tests):
        return None  # something does not come to an end
    cases = sorted(((text, expected or got) for (text, expected), got in zip(tests, now, strict=True)), key=lambda case: case not in tests)
    order = suspects(trials, texts, tests)
    for start in range(0, len(order), _AT_ONCE):
        tried = order[start : start + _AT_ONCE]
        for change, came in zip(tried, trials.outcomes(tried, cases), strict=True):
            if len(came) == len(cases) and came[-1] == cases[-1][1][:SHOWN]:
                return change
    return None


def suspects(trials: Trials, texts: Mapping[str, str], tests: Sequence[tuple[str, str | None]]) -> list[Change]:
    """The changes to lines that failing tests run: first those that the others do not."""
    runs = trials.lines([text for text, _ in tests])
    failing = [lines for lines, (_, expected) in zip(runs, tests, strict=True) if expected is not None]
    scores: dict[tuple[str, int], float] = {}
    for place in set().union(*failing):
        hits = sum(place in lines for lines in failing)
        scores[place] = hits / math.sqrt(len(failing) * sum(place in lines for lines in runs))
    found = []
    for path, text in texts.items():
        for edit in python_edits(text):
            pairs = zip(edit.old, edit.new, strict=False)
            differs = next((at for at, (old, new) in enumerate(pairs) if old != new), min(len(edit.old), len(edit.new)))
            line = text.count("\n", 0, text.index(edit.old) + differs) + 1
            if score := scores.get((path, line)):
                found.append((-score, Change(path, edit.old, edit.new)))
    return [change for _, change in sorted(found, key=lambda pair: pair[0])]


@functools.cache
def _program() -> str:
    """The driver, and what tries with its help."""
    trying = files(__package__ or "").joinpath("trying.py").read_text(encoding="utf-8")
    return f"{driver('calls')}\n{trying.replace('from __future__ import annotations', '')}"
