"""The tasks: of every page as many as there are seeds in a split."""

from collections.abc import Sequence
from typing import overload

from agent_gym.core import Perturbation, Task, TaskSet
from agent_gym.envs.miniwob import pages
from agent_gym.envs.miniwob.catalogue import LEFT_OUT, capabilities_of
from agent_gym.envs.miniwob.oracles import ORACLES
from agent_gym.errors import ConfigurationError, unknown

__all__ = ["SPLITS", "STEP_MS", "MiniWoBTaskSet"]

SPLITS = {"train": (0, 1_000_000), "validation": (1_000_000, 1_000), "test": (2_000_000, 1_000)}
"""The splits: the first seed of each, and how many there are of every page."""
STEP_MS = 500
"""What a step takes of the time that a page gives: the page's clock advances by it with every action."""


class _Ids(Sequence[str]):
    """The ids of a page's tasks, which nobody writes out."""

    def __init__(self, stem: str, count: int) -> None:
        self._stem, self._count = stem, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        numbers = range(self._count)[at]
        return f"{self._stem}{numbers}" if isinstance(numbers, int) else [f"{self._stem}{number}" for number in numbers]


class MiniWoBTaskSet(TaskSet):
    """All tasks on some pages. What a page asks is known when it has been opened: until then the goal only names it.

    Args:
        names: The pages; None for all that there are.

    Raises:
        ConfigurationError: There is no such page.
        MissingExtra: The pages are not installed.
    """

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self.pages = tuple(name for name in pages.names() if name not in LEFT_OUT)
        for name in names or ():
            self._known(name)
        if names is not None:
            self.pages = tuple(dict.fromkeys(names))

    def splits(self) -> Sequence[str]:
        """The names of the splits."""
        return tuple(SPLITS)

    def families(self, split: str) -> Sequence[str]:  # noqa: ARG002 - every split has all
        """The names of the pages."""
        return self.pages

    def ids(self, split: str, family: str) -> Sequence[str]:
        """The ids of a page's tasks in a split, a lazy sequence.

        Raises:
            ConfigurationError: There is no such page or split.
        """
        if split not in SPLITS:
            raise unknown("split", split, SPLITS)
        self._known(family)
        return _Ids(f"miniwob/{family}/{split}-", SPLITS[split][1])

    def get(self, task_id: str) -> Task:
        """Makes the task of that id."""
        world, name, last = (*task_id.split("/"), "", "", "")[:3]
        split, _, number = last.rpartition("-")
        if world != "miniwob" or task_id.count("/") != 2 or split not in SPLITS:
            raise ConfigurationError(f"unknown task id {task_id!r}; ids look like 'miniwob/{self.pages[0]}/train-0'")
        self._known(name)
        first, count = SPLITS[split]
        if not (number.isascii() and number.isdigit() and len(number) < 10 and str(int(number)) == number and int(number) < count):
            raise ConfigurationError(f"unknown task id {task_id!r}; {split!r} has tasks 0 to {count - 1} on each page")
        return Task(
            id=task_id,
            type=name,
            split=split,
            goal=f"Do what the page {name} asks.",
            max_steps=pages.limit_ms(name) // STEP_MS,
            capabilities=capabilities_of(name),
            doors=("web",),
            oracle_kind="observational" if name in ORACLES else "none",
            spec={"seed": first + int(number), "mode": "test" if split == "test" else "train"},
        )

    def perturbed(self, task: Task, perturbation: Perturbation) -> Task:
        """The task as it is: a perturbed interface is no matter of its.

        Raises:
            ConfigurationError: Wording or state are to be perturbed, and both are the page's own.
        """
        if perturbation.wording or perturbation.state:
            raise ConfigurationError(
                "the pages of MiniWoB++ are played as they are: only the interface can be perturbed, not wording or state"
            )
        return task

    def _known(self, name: str) -> None:
        if name in LEFT_OUT:
            raise ConfigurationError(f"the page {name!r} is left out: {LEFT_OUT[name]}")
        if name not in self.pages:
            raise unknown("page", name, self.pages)
