"""Repair: small functions with one to three faults in them, to be mended.

The functions are ours (``train.py``, ``validation.py``, ``test.py``: no function is in two splits), the tasks stand in ``tasks.json``,
which ``make.py`` writes. What a function should give is what it gives without the faults.
"""

import functools
import inspect
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.envs.code_task.problem import Collection, Problem
from agent_gym.envs.code_task.repair.functions import MODULES, called, functions, shown
from agent_gym.envs.code_task.repair.mending import examples, in_the_sandbox, mend
from agent_gym.errors import ConfigurationError
from agent_gym.interface.edits import Edit, python_edits

__all__ = ["Repair"]

_DATA = Path(__file__).parent / "tasks.json"
_PATH = "solution.py"
_GOAL = (
    'The function {name} in solution.py does not do what it should: "{text}" Mend it. It is judged by what it gives in calls, of which '
    "the examples in its text are a few."
)
_MARK = "in solution.py does not do what it should"
_MORE_STEPS = 4
"""Beside one for each edit that fits the right text and each fault: so whoever only stops when nothing is left to try is too late."""
_SIZE = 20
"""Lines of a long function."""


class Repair(Collection):
    """Functions with faults."""

    family = "code/repair"

    def splits(self) -> Sequence[str]:
        """Train, validation and test."""
        return list(MODULES)

    def ids(self, split: str) -> Sequence[str]:
        """``repair/<split>/<function>/<number>``, functions in the order of their file."""
        return list(_ids(split)) if split in MODULES else []

    def problem(self, task_id: str) -> Problem | None:
        """The problem of that id."""
        split = task_id.split("/")[1] if task_id.startswith("repair/") else ""
        return _problem(task_id) if split in MODULES and task_id in _ids(split) else None

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall | None:
        """Reads the function, tries the edits that fit its text on the examples that it shows, makes those that help, and finishes."""
        if _MARK not in observations[0]["data"]["goal"]:
            return None
        listed, text = False, None
        for observation in observations:
            last = observation["data"]["last"]
            if last is None or last["status"] != "ok":
                continue
            listed |= last["tool"] == "list_files"
            if last["tool"] == "read_file" and last["arguments"]["path"] == _PATH:
                text = last["result"]["content"]
            elif last["tool"] == "edit_file" and last["arguments"]["path"] == _PATH and text is not None:
                text = text.replace(last["arguments"]["old"], last["arguments"]["new"])
        if not listed:
            return ToolCall("list_files")
        if text is None:
            return ToolCall("read_file", {"path": _PATH})
        edits = _edits(text)
        if not edits:
            return ToolCall("finish")
        return ToolCall("edit_file", {"path": _PATH, "old": edits[0].old, "new": edits[0].new, "if_better": True})

    def clear_cache(self) -> None:
        """Reads and makes all anew."""
        for cached in (_read, _ids, _problem, _edits):
            cached.cache_clear()


@functools.cache
def _read() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    read: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(_DATA.read_text(encoding="utf-8"))
    return read


@functools.cache
def _ids(split: str) -> dict[str, None]:
    return {f"repair/{split}/{name}/{number}": None for name, told in _read()[split].items() for number in range(len(told["faults"]))}


@functools.lru_cache(maxsize=256)
def _problem(task_id: str) -> Problem:
    _, split, name, number = task_id.split("/")
    told, function = _read()[split][name], functions(split)[name]
    seen, hidden = (called(function, told[which]) for which in ("shown", "hidden"))
    right = spoiled = shown(function, seen)
    faults = told["faults"][int(number)]
    for old, new in faults:
        spoiled = spoiled.replace(old, new)
    size = min(1.0, spoiled.count("\n") / _SIZE)
    return Problem(
        id=task_id,
        family=Repair.family,
        split=split,
        goal=_GOAL.format(name=name, text=inspect.getdoc(function)),
        prompt=spoiled,
        files={_PATH: spoiled},
        grader="exact",
        hidden={"path": _PATH, "entry_point": name, "cases": [*seen, *hidden]},
        tools=("list_files", "read_file", "write_file", "edit_file", "run_python", "run_tests"),
        visible={"runner": "calls", "path": _PATH, "entry_point": name, "cases": seen},
        solution={_PATH: right},
        oracle_kind="observational",
        max_steps=len(python_edits(right)) + len(faults) + _MORE_STEPS,
        difficulty=round((len(faults) - 1) / 3 + size / 3, 3),
        capabilities=("read_code", "find_faults", "edit_code"),
        metadata={"faults": len(faults)},
    )


@functools.lru_cache(maxsize=4_096)
def _edits(text: str) -> tuple[Edit, ...]:
    name, told = examples(text)
    edits = mend(text, name, told, in_the_sandbox)
    if edits is None:
        raise ConfigurationError(f"{name}: no edits that fit its text make its examples pass")
    return tuple(edits)
