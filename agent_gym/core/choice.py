"""What a reset may be asked for, and which task it then starts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from agent_gym.core.canonical import plain
from agent_gym.core.perturbation import Perturbation
from agent_gym.core.task import Task, TaskSet
from agent_gym.errors import ConfigurationError, unknown

__all__ = ["Choice", "reset_options"]

_OPTIONS = frozenset({"task_id", "split", "difficulty", "perturbation"})


class Choice:
    """How an environment chooses its tasks, unless a reset says otherwise.

    Args:
        tasks: The environment's tasks.
        split: The split that tasks are drawn from.
        families: Families to draw from, all of the split's by default.
        difficulty: Lowest and highest difficulty, in [0, 1].
        task_ids: Draw from exactly these tasks instead.

    Raises:
        ConfigurationError: One that does not fit, or nothing left.
    """

    def __init__(
        self,
        tasks: TaskSet,
        split: str,
        families: Sequence[str] | None,
        difficulty: Sequence[float] | None,
        task_ids: Sequence[str] | None,
    ) -> None:
        self._tasks = tasks
        self._split, self._families, self._task_ids = split, families, task_ids
        self._difficulty = _range(difficulty)
        self._usual = tasks.select(split, families, self._difficulty, task_ids)

    def under(self, options: Mapping[str, Any]) -> Callable[[np.random.Generator], Task]:
        """How the next task is found under a reset's options.

        Raises:
            ConfigurationError: An option that does not exist or does not fit.
        """
        if extra := set(options) - _OPTIONS:
            raise unknown("reset option", sorted(extra)[0], _OPTIONS)
        Perturbation.of(options.get("perturbation"))
        if "task_id" in options:
            if not isinstance(options["task_id"], str):
                raise ConfigurationError(f"the option task_id must be a task's id, got {options['task_id']!r}")
            task = self._tasks.get(options["task_id"])
            return lambda _: task
        if not options.keys() - {"perturbation"}:
            return self._usual.draw
        difficulty = _range(options["difficulty"]) if "difficulty" in options else self._difficulty
        task_ids = None if "split" in options else self._task_ids
        return self._tasks.select(options.get("split", self._split), self._families, difficulty, task_ids).draw


def reset_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """A reset's options as JSON values of their own, for the record.

    Raises:
        ConfigurationError: One of them is no JSON value.
    """
    if isinstance(perturbation := options.get("perturbation"), Perturbation):
        options = {**options, "perturbation": perturbation.to_dict()}
    try:
        return dict(plain(dict(options)))
    except TypeError as error:
        raise ConfigurationError(f"reset options must be JSON values: {error}") from None


def _range(difficulty: Sequence[float] | None) -> tuple[float, float] | None:
    if difficulty is None:
        return None
    if not isinstance(difficulty, list | tuple) or len(difficulty) != 2 or not all(isinstance(end, int | float) for end in difficulty):
        raise ConfigurationError(f"difficulty must be two numbers, lowest and highest, got {difficulty!r}")
    return float(difficulty[0]), float(difficulty[1])
