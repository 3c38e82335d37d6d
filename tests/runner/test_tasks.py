"""The task queue: every task ends exactly once, and is accounted for at any moment."""

import threading
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.seeding import derive
from agent_gym.errors import ConfigurationError
from agent_gym.runner.schedulers import PRESETS, SCHEDULERS, TaskState
from agent_gym.runner.tasks import TaskQueue, TaskReport

TASKS = [f"retail/{family}/train/{number}" for number in range(50) for family in ("cancel", "exchange", "refund", "track")]

by_any_name = pytest.mark.parametrize("scheduler", [*SCHEDULERS, *PRESETS])


def serve(queue: TaskQueue, envs: int, seed: int = 0, fault_rate: float = 0.0) -> list[str]:
    """A pool without envs: whichever is ready first ends its episode, or breaks, and takes the next task."""
    rng, busy, done = derive("serve", seed), list[tuple[float, str]](), list[str]()
    now = 0.0
    while not queue.finished:
        busy += [(now + float(rng.lognormal()), task_id) for task_id in queue.take(envs - len(busy))]
        busy.sort()
        now, task_id = busy.pop(0)
        if rng.random() < fault_rate:
            queue.fail(task_id, "the worker died")
        else:
            queue.done(task_id, 1.0)
            done.append(task_id)
    assert not busy
    return done


@by_any_name
def test_eight_envs_serve_two_hundred_tasks_each_exactly_once(scheduler: str) -> None:
    queue = TaskQueue(TASKS, scheduler)
    done = serve(queue, 8)
    assert sorted(done) == sorted(TASKS)
    assert queue.report == dict.fromkeys(TASKS, TaskReport("done", 1))
    assert queue.counts == {"waiting": 0, "running": 0, "done": 200, "quarantined": 0}


def test_more_envs_than_tasks() -> None:
    assert sorted(serve(TaskQueue(TASKS[:30]), 200)) == sorted(TASKS[:30])


@by_any_name
def test_under_faults_every_task_is_done_or_quarantined_with_bounded_attempts(scheduler: str) -> None:
    queue = TaskQueue(TASKS, scheduler, requeues=2)
    done = serve(queue, 8, fault_rate=0.4)
    assert len(done) == len(set(done))
    report = queue.report
    assert list(report) == TASKS
    assert {task_id for task_id, one in report.items() if one.status == "done"} == set(done)
    for one in report.values():
        assert one.attempts <= 3
        assert len(one.faults) == (3 if one.status == "quarantined" else one.attempts - 1)
    assert Counter(one.status for one in report.values()) == {k: v for k, v in queue.counts.items() if v}
    assert queue.counts["quarantined"] > 0
    assert serve(TaskQueue(TASKS, scheduler), 8, fault_rate=0.4) == done


def test_a_fault_sends_a_task_behind_all_others_and_at_last_to_quarantine() -> None:
    queue = TaskQueue(["poison", "good"], requeues=1)
    assert queue.take(1) == ["poison"]
    assert queue.fail("poison", "it died") == "waiting"
    assert queue.take(2) == ["good", "poison"]
    assert queue.fail("poison", "it died again") == "quarantined"
    assert queue.report["poison"] == TaskReport("quarantined", 2, ("it died", "it died again"))
    queue.done("good")
    assert queue.finished
    assert queue.take(5) == []


def test_each_misuse_names_the_task_and_what_has_become_of_it() -> None:
    queue = TaskQueue(["a", "b"])
    with pytest.raises(ConfigurationError, match="'a' cannot be done: it is waiting, not running"):
        queue.done("a")
    queue.take(1)
    queue.done("a")
    with pytest.raises(ConfigurationError, match="'a' cannot be done: it is done, not running; an attempt ends once"):
        queue.done("a")
    with pytest.raises(ConfigurationError, match="'a' cannot be failed: it is done"):
        queue.fail("a", "a late fault")
    with pytest.raises(ConfigurationError, match="'c' cannot be done: it was never queued"):
        queue.done("c")
    with pytest.raises(ConfigurationError, match="'a' was queued before"):
        queue.add("a")
    with pytest.raises(ConfigurationError, match="'b' was queued before"):
        TaskQueue(["b", "b"])
    with pytest.raises(ConfigurationError, match="requeues must be at least 0"):
        TaskQueue(requeues=-1)
    assert queue.counts == {"waiting": 1, "running": 0, "done": 1, "quarantined": 0}


@pytest.mark.parametrize("chosen", [[], [0, 0], [5], [-1], [0, 1, 2]])
def test_a_scheduler_that_selects_what_it_must_not_is_told_so_and_nothing_starts(chosen: list[int]) -> None:
    class Wrong:
        def select(self, ready: Sequence[TaskState], k: int) -> Sequence[int]:  # noqa: ARG002
            return chosen

        def note(self, task: TaskState, seconds: float) -> None: ...

    queue = TaskQueue(["a", "b", "c"], Wrong())
    with pytest.raises(ConfigurationError, match=r"Wrong\.select must give 1 to 2 distinct indices below 3, got"):
        queue.take(2)
    assert len(queue) == 3


def test_a_scheduler_sees_how_long_a_task_has_waited_and_its_attempts() -> None:
    seen: list[tuple[str, int, int]] = []

    class Last:
        def select(self, ready: Sequence[TaskState], k: int) -> Sequence[int]:  # noqa: ARG002
            seen.extend((task.task_id, task.waited, task.attempts) for task in ready)
            return [len(ready) - 1]

        def note(self, task: TaskState, seconds: float) -> None: ...

    queue = TaskQueue(["a", "b"], Last())
    queue.take(1)
    queue.fail("b", "why")
    queue.take(1)
    assert seen == [("a", 0, 0), ("b", 0, 0), ("a", 1, 0), ("b", 0, 1)]


def test_tasks_can_be_queued_while_others_run() -> None:
    queue = TaskQueue(scheduler="priority")
    assert queue.finished
    assert queue  # true although nothing waits
    queue.add("low")
    queue.take(1)
    queue.add("middle", priority=1.0)
    queue.add("high", priority=2.0)
    assert len(queue) == 2
    assert queue.take(8) == ["high", "middle"]


@given(st.lists(st.integers(0, 3), max_size=60))
def test_the_account_holds_after_any_calls(calls: list[int]) -> None:
    queue, running = TaskQueue(TASKS[:8], requeues=1), list[str]()
    for call in calls:
        if call == 0:
            running += queue.take(2)
        elif running and call == 1:
            queue.done(running.pop(0))
        elif running:
            queue.fail(running.pop(), "why")
        report = queue.report
        assert sum(queue.counts.values()) == len(report) == 8
        assert sorted(running) == sorted(task_id for task_id, one in report.items() if one.status == "running")
        assert queue.counts["waiting"] == len(queue)
        assert queue.finished == all(one.status in ("done", "quarantined") for one in report.values())


def test_threads_share_a_queue() -> None:
    queue, taken, lock = TaskQueue(TASKS, "fair"), Counter[str](), threading.Lock()

    def work() -> None:
        while got := queue.take(3):
            with lock:
                taken.update(got)
            for task_id in got:
                queue.done(task_id, 0.1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == dict.fromkeys(TASKS, 1)
    assert queue.finished
