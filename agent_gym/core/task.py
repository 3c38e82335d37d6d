"""Tasks, and sets of them: which tasks there are, in which split, and how one is drawn."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from agent_gym.core.action import ToolCall
from agent_gym.core.perturbation import Perturbation
from agent_gym.errors import ConfigurationError, unknown

__all__ = ["Selection", "Task", "TaskSet"]

_DRAWS = 1_000


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task. The same id is the same task for ever; a change bumps the environment's version.

    Attributes:
        id: Unique within the environment.
        type: The family, as ``world/family``; the value of ``task_type``.
        split: ``train``, ``validation``, ``test``, …
        goal: What the agent is asked to do, in words.
        max_steps: Steps after which the episode is truncated.
        difficulty: From 0 (easy) to 1 (hard).
        capabilities: What solving it takes, as labels for reports.
        doors: The ways into its world by which it can be solved.
        oracle_kind: ``observational``, ``privileged`` or ``none``.
        refusal: Whether refusing or handing over is the right outcome.
        asks: The kind of value that ``finish`` is to answer with, by the name that a result's field has (``zip``,
            ``total_cents``); empty where no answer is wanted. Shown to the agent.
        identity: As whom the agent acts; empty for somebody who may see and change everything.
        level: The level of permissions that the task grants at most; empty for no limit of its own.
        spec: What its domain needs to open and judge it, as JSON values. Known to the grader alone.
    """

    id: str
    type: str
    split: str
    goal: str
    max_steps: int
    difficulty: float = 0.5
    capabilities: tuple[str, ...] = ()
    doors: tuple[str, ...] = ("tool",)
    oracle_kind: str = "observational"
    refusal: bool = False
    asks: str = ""
    identity: str = ""
    level: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 <= self.difficulty <= 1.0:
            raise ValueError(f"task {self.id!r}: difficulty {self.difficulty} is outside [0, 1]")
        if self.max_steps < 1:
            raise ValueError(f"task {self.id!r}: max_steps {self.max_steps} is below 1")


class TaskSet(ABC):
    """The tasks of one environment. Ids are cheap to list; a task is made when it is asked for."""

    @property
    def skipped(self) -> Sequence[str]:
        """Why tasks that its source has were left out, one by one; empty where there is no such source."""
        return ()

    @abstractmethod
    def splits(self) -> Sequence[str]:
        """The names of the splits. No task is in two."""

    @abstractmethod
    def families(self, split: str) -> Sequence[str]:
        """The families (``world/family``) with tasks in a split, in a fixed order."""

    @abstractmethod
    def ids(self, split: str, family: str) -> Sequence[str]:
        """The ids of a family's tasks in a split, in a fixed order."""

    @abstractmethod
    def get(self, task_id: str) -> Task:
        """The task of that id.

        Raises:
            ConfigurationError: There is none.
        """

    def perturbed(self, task: Task, perturbation: Perturbation) -> Task:
        """One of these tasks in other words and with other things around it, as solvable as it was.

        What is said here holds for every set: the goal is reworded. What a domain can put around a task, its set adds to the spec.
        """
        return replace(task, goal=perturbation.reworded(task.id, task.goal, task.spec))

    def cheats(self, family: str) -> Mapping[str, Callable[[Sequence[Mapping[str, Any]]], ToolCall]]:  # noqa: ARG002 - there may be none
        """Ways to the reward that must not work for a family, by name: from the rich observations so far to the next call."""
        return {}

    def clear_cache(self) -> None:  # noqa: B027 - a set may keep none
        """Forgets whatever is kept to be faster; the next task is made from nothing."""

    def select(
        self,
        split: str = "train",
        families: Sequence[str] | None = None,
        difficulty: tuple[float, float] | None = None,
        task_ids: Sequence[str] | None = None,
    ) -> "Selection":
        """Narrows the set down to what an environment draws from.

        Args:
            split: The split; left out of account where ``task_ids`` is given.
            families: Families, as ``world/family`` or by the family's name alone.
            difficulty: Lowest and highest difficulty, both included.
            task_ids: Exactly these tasks.

        Raises:
            ConfigurationError: A name that does not exist, or nothing left.
        """
        for name, names in (("families", families), ("task_ids", task_ids)):
            if names is not None and not (isinstance(names, list | tuple) and all(isinstance(part, str) for part in names)):
                raise ConfigurationError(f"{name} must be a list of names, got {names!r}")
        if task_ids is not None:
            by_family: dict[str, list[str]] = {}
            for task_id in task_ids:
                by_family.setdefault(self.get(task_id).type, []).append(task_id)
            if not by_family:
                raise ConfigurationError("task_ids is empty; give at least one task id")
            return Selection(self.get, by_family, difficulty)
        if split not in self.splits():
            raise unknown("split", split, self.splits())
        known = self.families(split)
        chosen = known if families is None else [self._family(name, known) for name in families]
        if not chosen:
            raise ConfigurationError("families is empty; give at least one family")
        return Selection(self.get, {family: self.ids(split, family) for family in chosen}, difficulty)

    @staticmethod
    def _family(name: str, known: Sequence[str]) -> str:
        matches = [family for family in known if name in (family, family.rpartition("/")[2])]
        if len(matches) != 1:
            raise unknown("family", name, known)
        return matches[0]


@dataclass(frozen=True)
class Selection:
    """The tasks an environment draws from: uniform over families, then over the family's tasks."""

    get: Callable[[str], Task]
    by_family: Mapping[str, Sequence[str]]
    difficulty: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.difficulty is not None:
            low, high = self.difficulty
            if not 0.0 <= low <= high <= 1.0:
                raise ConfigurationError(f"difficulty {list(self.difficulty)} is no range within [0, 1]")

    def draw(self, rng: np.random.Generator) -> Task:
        """Draws one task.

        Raises:
            ConfigurationError: No task of the wanted difficulty was met in a thousand draws.
        """
        families = list(self.by_family)
        for _ in range(_DRAWS):
            ids = self.by_family[families[int(rng.integers(len(families)))]]
            task = self.get(ids[int(rng.integers(len(ids)))])
            if self.difficulty is None or self.difficulty[0] <= task.difficulty <= self.difficulty[1]:
                return task
        raise ConfigurationError(f"no task with a difficulty within {self.difficulty} in {_DRAWS} draws from {families}")

    def all_ids(self) -> list[str]:
        """Every id, family by family; difficulty is not looked at."""
        return [task_id for ids in self.by_family.values() for task_id in ids]
