"""``code/repo_repair``: projects of several files with a fault somewhere in them."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.envs.code_task.problem import Collection, Problem
from agent_gym.envs.code_task.repo_repair.mending import mend
from agent_gym.envs.code_task.repo_repair.project import PROJECTS, project
from agent_gym.envs.code_task.wording import read_slots

__all__ = ["RepoRepair"]

_GOAL = (
    "The project {name} ({about}) has a fault in one of its files, and some of its tests fail. Mend it, so that everything does what its "
    "descriptions say: run_tests shows some of the tests, and others decide. Then finish."
)
_MANY = 300  # edits that fit the lines that failing tests run


class RepoRepair(Collection):
    """Eight projects, each with many faults, one a task. No project is in two splits. The oracle finds the fault by trying."""

    family = "code/repo_repair"

    def splits(self) -> Sequence[str]:
        """Three."""
        return list(PROJECTS)

    def ids(self, split: str) -> Sequence[str]:
        """``repo_repair/<project>/<number>``."""
        return [f"repo_repair/{name}/{number}" for name in PROJECTS.get(split, ()) for number in range(len(_faults()[name]))]

    def problem(self, task_id: str) -> Problem | None:
        """The project with the fault of that id."""
        for split in PROJECTS:
            if task_id in self.ids(split):
                return _problem(task_id, split)
        return None

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall | None:
        """Runs the tests, reads the project's files, tries edits on what it has read, in the sandbox, and makes the one that helps."""
        slots = read_slots(_GOAL, observations[0]["data"]["goal"])
        if slots is None:
            return None
        calls = [observation["data"]["last"] for observation in observations[1:]]
        tests = next((call["result"]["cases"] for call in calls if call["tool"] == "run_tests"), None)
        if tests is None:
            return ToolCall("run_tests")
        texts = {call["arguments"]["path"]: call["result"]["content"] for call in calls if call["tool"] == "read_file"}
        paths = [file["path"] for file in observations[0]["data"]["view"]["files"]]
        unread = [path for path in paths if path.startswith(f"{slots['name']}/") and path.endswith(".py") and path not in texts]
        if unread:
            return ToolCall("read_file", {"path": unread[0]})
        if any(call["tool"] == "edit_file" for call in calls):
            return ToolCall("finish")
        change = mend(texts, [(test["test"], None if test["passed"] else test["expected"]) for test in tests])
        return ToolCall("finish") if change is None else ToolCall("edit_file", change._asdict())

    def clear_cache(self) -> None:
        """Reads projects and faults anew."""
        _problem.cache_clear()
        _faults.cache_clear()
        project.cache_clear()


@lru_cache(maxsize=1)
def _faults() -> Mapping[str, Sequence[tuple[str, str, str, int, int]]]:
    """The faults of each project; see `agent_gym.envs.code_task.repo_repair.make`."""
    found: dict[str, Any] = json.loads(files(__name__).joinpath("faults.json").read_text(encoding="utf-8"))
    return found


@lru_cache(maxsize=64)
def _problem(task_id: str, split: str) -> Problem:
    _, name, number = task_id.split("/")
    made = project(name)
    path, old, new, failing, suspects = _faults()[name][int(number)]
    prompt = _GOAL.format(name=name, about=made.about.removesuffix(".").lower())
    return Problem(
        id=task_id,
        family=RepoRepair.family,
        split=split,
        goal=prompt,
        prompt=prompt,
        files={**made.files, path: made.files[path].replace(old, new)},
        grader="repo",
        hidden={"cases": made.judged},
        tools=("list_files", "read_file", "search", "write_file", "edit_file", "run_python", "run_shell", "run_tests"),
        visible={"runner": "project", "cases": [list(case) for case in made.visible]},
        solution={path: made.files[path]},
        oracle_kind="observational",
        max_steps=20,
        difficulty=difficulty(failing, suspects),
        capabilities=("read_code", "repair"),
        metadata={"project": name, "file": path},
    )


def difficulty(failing: int, suspects: int) -> float:
    """From 0 to 1: half for how few visible tests fail (one of 1, two of 1/2, …), half for how many edits fit the lines that they run, of
    300 at most.
    """
    return round(0.5 / failing + 0.5 * min(suspects / _MANY, 1.0), 2)
