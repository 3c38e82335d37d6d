"""Problems from files, read as they are: one JSON object a line, plain or gzipped."""

import gzip
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from agent_gym.core import ToolCall
from agent_gym.envs.code_task.problem import Collection, Problem
from agent_gym.envs.code_task.sources import humaneval
from agent_gym.errors import ConfigurationError, DatasetError

__all__ = ["Files", "read"]


def read(path: Path, split: str, family: str) -> list[Problem]:
    """Reads a file of problems.

    Args:
        path: A ``.jsonl`` file, or a gzipped one with a name that ends in ``.gz``.
        split: The problems' split.
        family: Their family.

    Raises:
        DatasetError: The file is missing or damaged, a line is no JSON object, or a field is missing or no text; names file and line.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError:
        raise DatasetError(f"{path}: there is no such file; give the path of a HumanEval-style .jsonl or .jsonl.gz file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path}: cannot be read: {error}") from error
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        problem = humaneval.problem(_row(line, f"{path}:{number}"), f"{path}:{number}", split, family)
        if problem.id in seen:
            raise DatasetError(f"{path}:{number}: task_id {problem.id!r} stands in line {seen[problem.id]} already")
        seen[problem.id] = number
        problems.append(problem)
    if not problems:
        raise DatasetError(f"{path}: holds no problem")
    return problems


class Files(Collection):
    """Problems of files, one a split.

    Args:
        family: ``code/<name>``.
        paths: The file of each split.

    Raises:
        DatasetError: A file is missing or damaged.
    """

    def __init__(self, family: str, paths: Mapping[str, Path]) -> None:
        self.family, self._paths = family, paths
        self._load()

    def _load(self) -> None:
        read = {split: _read(path, _changed(path), split, self.family) for split, path in self._paths.items()}
        self._problems: dict[str, Mapping[str, Problem]] = read

    def splits(self) -> Sequence[str]:
        """The splits that have a file."""
        return list(self._problems)

    def ids(self, split: str) -> Sequence[str]:
        """The ids that the file gives."""
        return list(self._problems.get(split, ()))

    def problem(self, task_id: str) -> Problem | None:
        """The problem of that id."""
        return next((problems[task_id] for problems in self._problems.values() if task_id in problems), None)

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall | None:
        """Writes the solution that the file has, then finishes. It knows what no policy can see."""
        goal = observations[0]["data"]["goal"]
        every = (problem for problems in self._problems.values() for problem in problems.values())
        problem = next((problem for problem in every if problem.prompt.strip() in goal), None)
        if problem is None:
            return None
        if problem.solution is None:
            raise ConfigurationError(f"{problem.id}: its source gives no solution")
        calls = (observation["data"]["last"] for observation in observations)
        written = {call["arguments"].get("path") for call in calls if call is not None and call["tool"] == "write_file"}
        missing = [path for path in problem.solution if path not in written]
        return ToolCall("write_file", {"path": missing[0], "content": problem.solution[missing[0]]}) if missing else ToolCall("finish")

    def clear_cache(self) -> None:
        """Reads the files anew."""
        _read.cache_clear()
        self._load()


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DatasetError(f"{where}: not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise DatasetError(f"{where}: {type(parsed).__name__} instead of an object")
    return parsed


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=16)
def _read(path: Path, changed: int, split: str, family: str) -> Mapping[str, Problem]:  # noqa: ARG001 - a changed file is another one
    return {problem.id: problem for problem in read(path, split, family)}
