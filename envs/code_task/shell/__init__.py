"""``code/shell``: chores in a folder of files."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.core.seeding import derive
from agent_gym.envs.code_task.problem import Collection, Problem
from agent_gym.envs.code_task.shell.chores import CHORES, Draw
from agent_gym.envs.code_task.wording import read_slots

__all__ = ["ShellChores"]

_COUNTS = {"train": 20, "validation": 4, "test": 10}
"""Tasks of each kind of chore, by split. No two have the same files."""
_SCRATCH = "scratch/*"
_GOAL = "{chore} Leave everything else as it is; only what is in the folder scratch does not count. Then finish."
_DRAWS = 50


class ShellChores(Collection):
    """Twelve kinds of chores. The oracle makes a command of the goal's words."""

    family = "code/shell"

    def splits(self) -> Sequence[str]:
        """Three."""
        return list(_COUNTS)

    def ids(self, split: str) -> Sequence[str]:
        """``shell/<kind>/<split>/<number>``."""
        return [f"shell/{name}/{split}/{number}" for name in CHORES for number in range(_COUNTS.get(split, 0))]

    def problem(self, task_id: str) -> Problem | None:
        """The chore of that id, with files that are drawn for it."""
        parts = task_id.split("/")
        return _problem(task_id) if len(parts) == 4 and task_id in self.ids(parts[2]) else None

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall | None:
        """One command, then it finishes."""
        goal = observations[0]["data"]["goal"]
        found = next(((kind, slots) for kind in CHORES.values() if (slots := read_slots(kind.text, goal)) is not None), None)
        if found is None:
            return None
        return ToolCall("run_shell", {"command": found[0].solve(found[1])}) if len(observations) == 1 else ToolCall("finish")

    def clear_cache(self) -> None:
        """Draws all files anew."""
        _problem.cache_clear()


@lru_cache(maxsize=64)
def _problem(task_id: str) -> Problem:
    _, name, split, _ = task_id.split("/")
    kind = CHORES[name]
    for draw in range(_DRAWS):
        start, slots = kind.draw(Draw(derive("code_shell", task_id, draw)))
        end = kind.result(start, slots)
        made = {path: text for path, text in end.items() if start.get(path) != text}
        if end != start and all(made.values()):  # something is to be done, and no empty file is all of it
            break
    else:
        raise AssertionError(f"no files were drawn for {task_id} with anything to do")
    chore = kind.text.format(**slots)
    return Problem(
        id=task_id,
        family=ShellChores.family,
        split=split,
        goal=_GOAL.format(chore=chore),
        prompt=chore,
        files=start,
        grader="state",
        hidden={"made": made, "removed": sorted(start.keys() - end.keys()), "allowed": [_SCRATCH]},
        tools=("list_files", "read_file", "search", "write_file", "edit_file", "run_python", "run_shell"),
        oracle_kind="observational",
        max_steps=15,
        difficulty=kind.difficulty,
        capabilities=("shell", "files"),
        metadata={"chore": name},
    )
