"""Which waiting task starts next: the Scheduler contract, four schedulers chosen by name, and two presets.

A scheduler reads no clock and draws no random numbers. It counts selections and is told measured seconds, so the same calls give the
same order. Aging is counted in selections too: every selection that passes a task over improves its place. Two tasks that both wait
age alike, so which of them goes first is settled when the later one is queued (until a measurement changes an expectation), and only
those that come soon enough can go before one that waits. Hence the bounds that the classes state; nothing starves.
"""

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import NamedTuple, Protocol

from agent_gym.errors import ConfigurationError, unknown

__all__ = ["PRESETS", "SCHEDULERS", "Fair", "Fifo", "Plan", "Preset", "Priority", "Scheduler", "Shortest", "TaskState", "family_of", "plan"]


@dataclass(slots=True)
class TaskState:
    """A task that waits to be started, as a scheduler sees it. The queue keeps it up to date; a scheduler only reads it.

    Attributes:
        task_id: The task.
        priority: Higher goes first, where a scheduler looks at it.
        family: The kind of task.
        queued_at: Its number in the order of queueing; a task that is queued again gets a new one.
        attempts: How often it was started before.
        waited: How many selections have passed it over since it was queued.
        expected_s: How long it is expected to run, in seconds, if the caller knows; None leaves it to what was measured.
    """

    task_id: str
    priority: float = 0.0
    family: str = ""
    queued_at: int = 0
    attempts: int = 0
    waited: int = 0
    expected_s: float | None = None


class Scheduler(Protocol):
    """Chooses among waiting tasks. It is called under the queue's lock, so it needs none of its own."""

    def select(self, ready: Sequence[TaskState], k: int) -> Sequence[int]:
        """Chooses which tasks start now.

        Args:
            ready: The tasks that wait, oldest first.
            k: How many may start.

        Returns:
            Distinct indices into ``ready``, the first to start first; at most ``k``, and at least one if there are any.
        """
        ...

    def note(self, task: TaskState, seconds: float) -> None:
        """Takes in that an episode of a task has ended after so many seconds."""
        ...


def family_of(task_id: str) -> str:
    """The family in a task id: the text before the last two slashes (``retail/cancel`` of ``retail/cancel/train/17``)."""
    return task_id.rsplit("/", 2)[0]


class Fifo:
    """Oldest first. A task behind n others is among the first n + 1 to start."""

    def select(self, ready: Sequence[TaskState], k: int) -> Sequence[int]:
        """The k that were queued first."""
        return _least(ready, k, lambda _: 0.0)

    def note(self, task: TaskState, seconds: float) -> None:
        """Nothing depends on it."""


class Priority:
    """Highest priority first, and every selection that passes a task over adds ``aging`` to its priority.

    Bound: a task of priority p, where none is above P, can only be passed by the n tasks that wait when it is queued and by the m that
    are queued during the next ⌈(P − p) / aging⌉ selections; so it starts after at most n + m others.

    Args:
        aging: What one selection adds, above 0.
    """

    def __init__(self, aging: float = 0.05) -> None:
        self._aging = _positive("aging", aging)

    def select(self, ready: Sequence[TaskState], k: int) -> Sequence[int]:
        """The k of highest priority, age counted; the older of two equals."""
        return _least(ready, k, lambda task: -task.priority - self._aging * task.waited)

    def note(self, task: TaskState, seconds: float) -> None:
        """Nothing depends on it."""


class Shortest:
    """Shortest expected job first; a task is expected to take the mean of its family so far.

    A family that was never measured is expected to take no time, so that it is tried, and measured, early. Age counts against the
    logarithm of the expectation in mean episodes: it means the same for milliseconds and hours, and a very long job waits not much
    longer than a long one.

    Bound, while expectations stay as they are: as ``Priority``'s with ⌈log₂(1 + e) / aging⌉ selections, for a task that is expected to
    take e mean episodes; that is 20 selections for each doubling.

    Args:
        aging: What one selection takes off the logarithm, above 0.
    """

    def __init__(self, aging: float = 0.05) -> None:
        self._aging = _positive("aging", aging)
        self._measured = _Durations()

    def select(self, ready: Sequence[TaskState], k: int) -> Sequence[int]:
        """The k that are expected to end soonest, age counted; the older of two equals."""
        unit = self._measured.overall or 1.0
        return _least(ready, k, lambda task: log2(1.0 + self._measured.expected(task, 0.0) / unit) - self._aging * task.waited)

    def note(self, task: TaskState, seconds: float) -> None:
        """Learns how long a family's episodes take."""
        self._measured.add(task.family, seconds)


class Fair:
    """Deficit round-robin: every family with waiting tasks gets the same time, however many tasks it has and however long they are.

    Families take turns. At each turn a family's deficit counter, in seconds, grows by a quantum, and it starts tasks, oldest first, as
    long as the counter covers the next; each start takes off the mean seconds of its family (before that is known, the mean of all; as
    long as nothing is known, 1). A quantum is the dearest waiting task. A family that has none waiting loses what it has saved.

    Bound, while means stay as they are: what two families with waiting tasks were given, in expected seconds, differs by at most one
    quantum whenever both have had equally many turns, and by less than two in between. A turn starts at least one task and at most 200,
    so a task behind n of its family, beside f other families, starts after at most n + 200·f·(n + 1) others.
    """

    def __init__(self) -> None:
        self._measured = _Durations()
        self._deficits: dict[str, float] = {}  # in the order of turns: the first is the family whose turn it is

    def select(self, ready: Sequence[TaskState], k: int) -> Sequence[int]:
        """The next k, in turns."""
        waiting: dict[str, deque[int]] = {}
        for index in _least(ready, len(ready), lambda _: 0.0):
            waiting.setdefault(ready[index].family, deque()).append(index)
        usual = self._measured.overall or 1.0
        costs = [self._measured.expected(task, usual) for task in ready]
        quantum = max(costs, default=0.0) or 1.0
        cheapest = quantum / 100  # else a family whose tasks cost nothing would never end its turn
        self._deficits = {family: min(saved, 2 * quantum) for family, saved in self._deficits.items() if family in waiting}
        for family in waiting:
            self._deficits.setdefault(family, quantum)
        chosen: list[int] = []
        while len(chosen) < min(k, len(ready)):
            family, saved = next(iter(self._deficits.items()))
            own = waiting[family]
            cost = max(cheapest, costs[own[0]]) if own else 0.0
            if own and saved >= cost:
                chosen.append(own.popleft())
                self._deficits[family] = saved - cost
            else:  # its turn is over: it goes to the end, where the quantum of its next turn waits
                del self._deficits[family]
                if own:
                    self._deficits[family] = saved + quantum
        return chosen

    def note(self, task: TaskState, seconds: float) -> None:
        """Learns how long a family's episodes take."""
        self._measured.add(task.family, seconds)


class Preset(NamedTuple):
    """A way to collect.

    Attributes:
        scheduler: The scheduler's name.
        stage: The label that goes into the notes of every step, and so into the record.
    """

    scheduler: str
    stage: str


class Plan(NamedTuple):
    """What a name stands for.

    Attributes:
        scheduler: A scheduler of its own, with nothing learned yet.
        stage: The stage label, empty where the name fixes none.
    """

    scheduler: Scheduler
    stage: str


SCHEDULERS: Mapping[str, Callable[[], Scheduler]] = {"fifo": Fifo, "priority": Priority, "shortest": Shortest, "fair": Fair}
"""The schedulers by name."""

PRESETS: Mapping[str, Preset] = {"explore": Preset("shortest", "explore"), "exploit": Preset("priority", "exploit")}
"""``explore``: as many episodes as possible, the short ones first. ``exploit``: few and long, those that the caller values most first."""


def plan(given: str | Scheduler) -> Plan:
    """The scheduler, and the stage, that a scheduler's or preset's name stands for; a scheduler stands for itself.

    Raises:
        ConfigurationError: There is no such name.
    """
    if not isinstance(given, str):
        return Plan(given, "")
    name, stage = PRESETS.get(given, Preset(given, ""))
    if name not in SCHEDULERS:
        raise unknown("scheduler", given, [*SCHEDULERS, *PRESETS])
    return Plan(SCHEDULERS[name](), stage)


class _Durations:
    """Running means of how long episodes take, by family and over all."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, float]] = {}
        self._count, self._sum = 0, 0.0

    def add(self, family: str, seconds: float) -> None:
        count, total = self._sums.get(family, (0, 0.0))
        self._sums[family] = (count + 1, total + seconds)
        self._count, self._sum = self._count + 1, self._sum + seconds

    @property
    def overall(self) -> float:
        """The mean of all episodes; 0 before there are any."""
        return self._sum / self._count if self._count else 0.0

    def expected(self, task: TaskState, otherwise: float) -> float:
        """The caller's estimate, else the family's mean, else what is given."""
        if task.expected_s is not None:
            return task.expected_s
        count, total = self._sums.get(task.family, (0, 0.0))
        return total / count if count else otherwise


def _least(ready: Sequence[TaskState], k: int, key: Callable[[TaskState], float]) -> list[int]:
    """The indices of the k tasks with the least keys, the older of two equals first."""
    return heapq.nsmallest(k, range(len(ready)), key=lambda index: (key(ready[index]), ready[index].queued_at))


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise ConfigurationError(f"{name} must be above 0, or tasks could starve; got {value!r}")
    return value
