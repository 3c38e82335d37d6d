"""The tasks that a pool works off: each exactly once, a bounded number of attempts where the machinery fails, and an account of all."""

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

from agent_gym.errors import ConfigurationError
from agent_gym.runner.schedulers import Scheduler, TaskState, family_of, plan

__all__ = ["TaskQueue", "TaskReport", "TaskStatus"]

TaskStatus = Literal["waiting", "running", "done", "quarantined"]


@dataclass(frozen=True)
class TaskReport:
    """What has become of a task.

    Attributes:
        status: ``waiting`` (also between two attempts), ``running``, ``done``, or ``quarantined``: given up after too many faults.
        attempts: How often it was started.
        faults: What went wrong in the attempts that failed, in order.
    """

    status: TaskStatus
    attempts: int
    faults: tuple[str, ...] = ()


@dataclass
class _Entry:
    task: TaskState
    status: TaskStatus = "waiting"
    faults: list[str] = field(default_factory=list)


class TaskQueue:
    """Tasks, each of which ends exactly once: done, or quarantined.

    A task goes from waiting to running (``take``), and from there to done (``done``), back to waiting or into quarantine (``fail``).
    Every other way is an error that names the task. Any thread may call any method. The same calls give the same order.

    Args:
        tasks: Task ids, no two alike, in the order in which they are queued.
        scheduler: Which task starts next: the name of a scheduler or preset, or a scheduler.
        requeues: How many attempts of a task may fail before one that fails sends it to quarantine, from 0.

    Attributes:
        stage: The stage label of the preset, else empty.

    Raises:
        ConfigurationError: There is no such scheduler, a task comes twice, or ``requeues`` is below 0.
    """

    def __init__(self, tasks: Iterable[str] = (), scheduler: str | Scheduler = "fifo", requeues: int = 2) -> None:
        if requeues < 0:
            raise ConfigurationError(f"requeues must be at least 0, got {requeues!r}")
        self._scheduler, self.stage = plan(scheduler)
        self._requeues = requeues
        self._entries: dict[str, _Entry] = {}
        self._ready: list[TaskState] = []  # oldest first
        self._queued = 0
        self._counts: Counter[TaskStatus] = Counter()
        self._lock = threading.RLock()
        for task_id in tasks:
            self.add(task_id)

    def add(self, task_id: str, priority: float = 0.0, expected_s: float | None = None) -> None:
        """Queues a new task, also while others run.

        Args:
            task_id: The task.
            priority: Higher goes first, where the scheduler looks at it.
            expected_s: How long it will run, in seconds, where that is known better than from its family's past.

        Raises:
            ConfigurationError: The task was queued before.
        """
        with self._lock:
            if task_id in self._entries:
                raise ConfigurationError(f"task {task_id!r} was queued before (it is {self._entries[task_id].status}); each runs once")
            entry = self._entries[task_id] = _Entry(TaskState(task_id, priority, family_of(task_id), expected_s=expected_s))
            self._counts["waiting"] += 1
            self._wait(entry)

    def take(self, k: int = 1) -> list[str]:
        """Starts the tasks that the scheduler selects: at most ``k`` of those that wait, the first to start first.

        Raises:
            ConfigurationError: The scheduler selected what it must not, and nothing was started.
        """
        with self._lock:
            k = min(k, len(self._ready))
            if k <= 0:
                return []
            indices = list(self._scheduler.select(self._ready, k))
            if not 0 < len(set(indices)) == len(indices) <= k or not all(0 <= index < len(self._ready) for index in indices):
                raise ConfigurationError(
                    f"{type(self._scheduler).__name__}.select must give 1 to {k} distinct indices below {len(self._ready)}, got {indices}"
                )
            taken = [self._ready[index] for index in indices]
            for index in sorted(indices, reverse=True):
                del self._ready[index]
            for task in self._ready:
                task.waited += 1
            for task in taken:
                task.attempts += 1
                self._move(self._entries[task.task_id], "running")
            return [task.task_id for task in taken]

    def done(self, task_id: str, seconds: float | None = None) -> None:
        """Ends a running task.

        Args:
            task_id: The task.
            seconds: How long its episode took, from which the scheduler learns; None if nobody measured.

        Raises:
            ConfigurationError: The task does not run.
        """
        with self._lock:
            entry = self._running(task_id, "done")
            self._move(entry, "done")
            if seconds is not None:
                self._scheduler.note(entry.task, seconds)

    def fail(self, task_id: str, why: str) -> TaskStatus:
        """Takes in that the machinery failed under a running task.

        Returns:
            ``waiting`` if the task was queued again, behind all others, or ``quarantined`` if it has no attempts left.

        Raises:
            ConfigurationError: The task does not run.
        """
        with self._lock:
            entry = self._running(task_id, "failed")
            entry.faults.append(why)
            if len(entry.faults) > self._requeues:
                self._move(entry, "quarantined")
            else:
                self._move(entry, "waiting")
                self._wait(entry)
            return entry.status

    @property
    def report(self) -> dict[str, TaskReport]:
        """What has become of every task, in the order in which they were queued first."""
        with self._lock:
            return {name: TaskReport(entry.status, entry.task.attempts, tuple(entry.faults)) for name, entry in self._entries.items()}

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks there are of each status."""
        with self._lock:
            return {status: self._counts[status] for status in get_args(TaskStatus)}

    @property
    def finished(self) -> bool:
        """Whether every task has ended: none waits and none runs."""
        with self._lock:
            return not self._counts["waiting"] and not self._counts["running"]

    def __len__(self) -> int:
        """How many tasks wait."""
        return len(self._ready)

    def __bool__(self) -> bool:
        """True: a queue in which nothing waits is a queue all the same."""
        return True

    def _wait(self, entry: _Entry) -> None:
        """Puts a task behind all others."""
        entry.task.queued_at, entry.task.waited = self._queued, 0
        self._queued += 1
        self._ready.append(entry.task)

    def _running(self, task_id: str, verb: str) -> _Entry:
        entry = self._entries.get(task_id)
        if entry is None:
            raise ConfigurationError(f"task {task_id!r} cannot be {verb}: it was never queued")
        if entry.status != "running":
            raise ConfigurationError(f"task {task_id!r} cannot be {verb}: it is {entry.status}, not running; an attempt ends once")
        return entry

    def _move(self, entry: _Entry, status: TaskStatus) -> None:
        self._counts[entry.status] -= 1
        self._counts[status] += 1
        entry.status = status
