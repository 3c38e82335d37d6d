"""Problems from files and data sets, read as they are; the format is found by the fields of each row."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.envs.code_task.graders import GRADERS, Work
from agent_gym.envs.code_task.problem import Collection, Problem
from agent_gym.envs.code_task.sources import formats, hub, reading
from agent_gym.envs.code_task.sources.hub import HubSplit
from agent_gym.envs.code_task.sources.row import Row
from agent_gym.errors import ConfigurationError, DatasetError, unknown
from agent_gym.sandbox import Limits, default_pool

__all__ = ["STRICT", "Files", "Handling", "parts"]

_SPLITS = ("train", "validation", "test")
_MAX_SKIPPED = 10_000


@dataclass(frozen=True)
class Handling:
    """What is done about rows that cannot be used.

    Attributes:
        on_error: ``"raise"``, or ``"skip"``, which leaves them out and counts them.
        verify: Whether every solution that a source gives is graded first, so that one that fails is such an error too.

    Raises:
        ConfigurationError: Another value.
    """

    on_error: str = "raise"
    verify: bool = False

    def __post_init__(self) -> None:
        if self.on_error not in ("raise", "skip"):
            raise unknown("on_error", self.on_error, ["raise", "skip"])
        if not isinstance(self.verify, bool):
            raise ConfigurationError(f"verify must be true or false, got {self.verify!r}")


STRICT = Handling()
"""The first row that cannot be used is an error."""


def parts(source: str) -> tuple[str, dict[str, Path | HubSplit]]:
    """A source's name, and what there is of it for each split.

    A folder with files or folders called ``train``, ``validation`` or ``test`` has these splits; all else is split ``test``.

    Raises:
        ConfigurationError: It is no source's name.
        DatasetError: It cannot be read.
        MissingExtra: It takes a package that is not installed.
    """
    if not isinstance(source, str) or not source or "\0" in source:
        raise ConfigurationError(f"source: got {source!r}, expected a path, 'humaneval', or 'hf:org/name'")
    if source.startswith(hub.PREFIX):
        found = hub.splits(source)
        return source.split("/")[1], dict(found)
    path = Path(source)
    named: dict[str, Path | HubSplit] = {}
    try:
        if path.is_dir():
            children = {
                child.name.partition(".")[0]: child for child in path.iterdir() if child.is_dir() or child.name.endswith(reading.SUFFIXES)
            }
            named.update({split: children[split] for split in _SPLITS if split in children})
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error}") from error
    return (path.name or path.resolve().name).partition(".")[0] or "problems", named or {"test": path}


class Files(Collection):
    """Problems of files, a file or folder for each split.

    Args:
        family: ``code/<name>``.
        sources: Where each split is.
        handling: What is done about rows that cannot be used.

    Raises:
        DatasetError: A file is missing or damaged, or a row cannot be used.
    """

    def __init__(self, family: str, sources: Mapping[str, Path | HubSplit], handling: Handling = STRICT) -> None:
        self.family, self._sources, self._handling = family, sources, handling
        self._load()

    def _load(self) -> None:
        read = {split: _read(source, _version(source), split, self.family, self._handling) for split, source in self._sources.items()}
        self._problems: dict[str, dict[str, Problem]] = {split: problems for split, (problems, _) in read.items()}
        self.skipped: tuple[str, ...] = tuple(why for _, skipped in read.values() for why in skipped)
        """Why each row that was left out was."""
        for (split, problems), (other, others) in itertools.combinations(self._problems.items(), 2):
            if both := problems.keys() & others.keys():
                raise DatasetError(f"{self.family}: id {min(both)!r} stands in split {split!r} and in {other!r}")
        every = [problem for problems in self._problems.values() for problem in problems.values()]
        self._by_goal = {_words(problem.goal): problem for problem in reversed(every)}  # of several with one goal, the first

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
        problem = self._by_goal.get(_words(observations[0]["data"]["goal"]))
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


def _words(goal: str) -> str:
    """A goal, but for what rewording it may change for good."""
    return " ".join(goal.casefold().split())


def _version(source: Path | HubSplit) -> tuple[Any, ...]:
    return () if isinstance(source, HubSplit) else reading.changed(source)


@lru_cache(maxsize=16)
def _read(
    source: Path | HubSplit,
    version: tuple[Any, ...],  # noqa: ARG001 - a changed file is another one
    split: str,
    family: str,
    handling: Handling,
) -> tuple[dict[str, Problem], Sequence[str]]:
    """The problems by id, and why rows were left out."""
    problems: dict[str, Problem] = {}
    places: dict[str, str] = {}
    skipped: list[str] = []
    for where, raw in _rows(source):
        try:
            problem = formats.problem(Row(where, _fields(raw, where)), split, family)
            if problem.id in places:
                raise DatasetError(f"{where}: id {problem.id!r} stands in {places[problem.id]} already")
            if handling.verify:
                _verify(problem, where)
        except DatasetError as error:
            if handling.on_error == "raise":
                raise
            skipped.append(str(error)[:500])
            if len(skipped) > _MAX_SKIPPED:
                raise DatasetError(f"{where}: more than {_MAX_SKIPPED} rows cannot be used; the first: {skipped[0]}") from error
        else:
            problems[problem.id], places[problem.id] = problem, where
    if not problems:
        shown = f"; {len(skipped)} rows were skipped, the first: {skipped[0]}" if skipped else ""
        raise DatasetError(f"{source}: holds no problem{shown}")
    return problems, skipped


def _rows(source: Path | HubSplit) -> Iterator[tuple[str, Any]]:
    return source.rows() if isinstance(source, HubSplit) else reading.rows(source)


def _fields(raw: Any, where: str) -> Mapping[str, Any]:
    fields = reading.parse(raw, where) if isinstance(raw, bytes) else raw
    if not isinstance(fields, dict):
        raise DatasetError(f"{where}: {type(fields).__name__} instead of an object")
    return fields


def _verify(problem: Problem, where: str) -> None:
    if problem.solution is None:
        return
    start = {path: text.encode() if isinstance(text, str) else text for path, text in problem.files.items()}
    files = {**start, **{path: text.encode() for path, text in problem.solution.items()}}
    grade = GRADERS[problem.grader](Work(files=files, start=start), problem.hidden, Limits(), default_pool())
    if not grade.passed:
        raise DatasetError(f"{where}: {problem.id!r}: its own solution fails: {(grade.tampered or grade.detail)[:300]}")
