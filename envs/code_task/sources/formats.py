"""The formats of problems, and finding that of a row by its fields."""

from collections.abc import Callable
from typing import NamedTuple

from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.sources import apps, codecontests, evalplus, humaneval, livecodebench, mbpp, minirepo, swebench
from agent_gym.envs.code_task.sources.row import Row

__all__ = ["FORMATS", "Format", "problem"]


class Format(NamedTuple):
    """A format.

    Attributes:
        name: As people know it.
        fields: What every row of it has.
        problem: Makes a problem of a row, a split and a family; raises `DatasetError` where a field does not fit.
    """

    name: str
    fields: tuple[str, ...]
    problem: Callable[[Row, str, str], Problem]


FORMATS = (
    Format("HumanEval", humaneval.FIELDS, humaneval.problem),
    Format("EvalPlus", evalplus.FIELDS, evalplus.problem),
    Format("MBPP", mbpp.FULL, mbpp.problem),
    Format("sanitized MBPP", mbpp.SANITIZED, mbpp.problem),
    Format("APPS", apps.FIELDS, apps.problem),
    Format("LiveCodeBench", livecodebench.FIELDS, livecodebench.problem),
    Format("CodeContests", codecontests.FIELDS, codecontests.problem),
    Format("SWE-bench", swebench.FIELDS, swebench.problem),
    Format("mini-repo", minirepo.FIELDS, minirepo.problem),
)
"""All formats; of two that fit equally well the first is meant."""


def problem(row: Row, split: str, family: str) -> Problem:
    """A row as a problem of the format that most of its fields are of.

    Raises:
        DatasetError: It is of none, lacks a field, or one does not fit; names the place.
    """

    def fit(known: Format) -> int:
        return sum(1 if name in row.fields else -1 for name in known.fields)

    found = max(FORMATS, key=fit)
    if fit(found) <= 0:
        names = ", ".join(map(str, row.fields)) or "none"
        raise row.bad(f"of no known format ({', '.join(known.name for known in FORMATS)}): its fields are {names[:300]!a}")
    if missing := [name for name in found.fields if name not in row.fields]:
        raise row.bad(f"field {missing[0]!r} is missing; a problem of {found.name}'s format has {', '.join(found.fields)}")
    return found.problem(row, split, family)
