"""Everything goes wrong at once; nothing may be lost, doubled or left."""

import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_gym.core.seeding import derive
from agent_gym.runner import AsyncPool
from tests.runner.faulty import Faulty, count, release_all

TASKS = [f"family/{i % 4}/train/{i}" for i in range(64)]
STEPS = {
    "thread": ["raise", "wait:chaos", "interruptible", "break", "sleep:0.05"],
    "process": ["raise", "hang", "kill", "exit", "break", "lambda", "sleep:0.05"],
}


class Chaotic(Faulty):
    """Fails now and then in its constructor and in resets too."""

    def __init__(self, kinds: list[str], folder: str) -> None:
        self.kinds, self.folder = kinds, folder
        number = count(folder)
        make = "raise" if derive("chaos", "make", number).random() < 0.15 else kinds[1] if number == 9 else ""  # which hangs
        super().__init__(make=make, length=6)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=seed, options={**(options or {}), "do": self._now_and_then()})

    def _now_and_then(self) -> str:
        rng = derive("chaos", "reset", count(self.folder))
        return str(rng.choice([kind for kind in self.kinds if kind not in ("break", "lambda")])) if rng.random() < 0.1 else ""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["thread", "process"])
def test_every_task_is_accounted_for(backend: str, tmp_path: Path) -> None:
    descriptors, threads, others = psutil.Process().num_fds(), threading.active_count(), psutil.Process().children()
    rng = derive("chaos", backend)
    ended: Counter[tuple[str | None, bool]] = Counter()
    keywords = {"kinds": STEPS[backend], "folder": str(tmp_path)}
    timeouts = {"make_timeout_s": 4.0, "reset_timeout_s": 0.4, "step_timeout_s": 0.4}
    with AsyncPool(Chaotic, 16, backend=backend, env_kwargs=keywords, tasks=TASKS, max_restarts=20, **timeouts) as pool:  # type: ignore[arg-type]
        while not pool.finished:
            batch = pool.recv(timeout=0.2)
            ended.update((row.task_id, row.info["ending"] == "infra_error") for row in batch if row.done)
            going = [row for row in batch if not row.done]
            actions = [str(rng.choice(STEPS[backend])) if rng.random() < 0.06 else 0 for _ in going]
            pool.send(actions, [row.env_id for row in going])
            if backend == "process" and rng.random() < 0.05 and (workers := _workers(others)):  # from without, at any moment
                os.kill(workers[int(rng.integers(len(workers)))], signal.SIGKILL)
        report, counters = pool.report, pool.counters
        pool.close(timeout_s=1.0)
    assert list(report) == TASKS
    statuses = Counter(task.status for task in report.values())
    assert set(statuses) <= {"done", "quarantined"}
    assert statuses["done"] > 32
    for name, task in report.items():
        assert ended[name, False] == (task.status == "done")  # none lost, none doubled
        assert ended[name, True] <= len(task.faults) == task.attempts - (task.status == "done")
        assert task.status == "done" or len(task.faults) == 3
    assert counters.faults > 10
    assert counters.restarts > 10
    release_all()
    _expect_nothing_left(descriptors, threads, others)


def _workers(others: list[psutil.Process]) -> list[int]:
    return [worker.pid for nursery in psutil.Process().children() if nursery not in others for worker in nursery.children()]


def _expect_nothing_left(descriptors: int, threads: int, others: list[psutil.Process]) -> None:
    waited = threading.Event()
    for _ in range(200):  # abandoned threads come to their end by themselves once they are let go
        if threading.active_count() <= threads:
            break
        waited.wait(0.05)
    assert threading.active_count() == threads
    assert psutil.Process().num_fds() == descriptors
    assert [child for child in psutil.Process().children() if child not in others] == []
