import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent_gym.errors import ConfigurationError, InfrastructureError
from agent_gym.runner import AsyncPool, Batch, Row
from agent_gym.runner.backends import Backend
from agent_gym.runner.episodes import spread
from agent_gym.runner.messages import Answer, Ask
from agent_gym.runner.supervision import Deadlines, Supervisor
from tests.runner.faulty import Faulty, release_all, released

BACKENDS = ["thread", "process"]
FAILURES = [  # backend, what goes wrong, what the fault says
    ("thread", "raise", "ZeroDivisionError: planted"),
    ("thread", "exit_error", "SystemExit: 3"),
    ("thread", "wait:for_ever", "did not come back within"),
    ("thread", "interruptible", "did not come back within"),
    ("process", "raise", "ZeroDivisionError: planted"),
    ("process", "infra", "InfrastructureError: planted"),
    ("process", "hang", "did not come back within"),
    ("process", "kill", "was killed by SIGKILL"),
    ("process", "exit", "exited with code 3"),
]
TASKS = [f"family/one/train/{i}" for i in range(8)]


@pytest.fixture(autouse=True)
def _gates() -> Iterator[None]:
    yield
    release_all()


def started(pool: AsyncPool, **options: Any) -> Batch:
    pool.async_reset(options=options or None)
    return pool.recv(pool.num_envs)


def one(pool: AsyncPool) -> Row:
    (row,) = pool.recv()
    return row


# Faults.


@pytest.mark.parametrize(("backend", "failure", "says"), FAILURES)
def test_a_fault_in_a_step_costs_one_episode(backend: str, failure: str, says: str) -> None:
    with AsyncPool(Faulty, 2, backend=backend, step_timeout_s=0.5) as pool:
        started(pool)
        pool.send([0], [0])
        good = one(pool)
        pool.send([failure, 0], [0, 1])
        rows = {row.env_id: row for row in (*pool.recv(2), *pool.recv(1, timeout=0))}
        row = rows[0]
        assert says in row.fault
        assert (row.kind, row.reward, row.terminated, row.truncated, row.episode) == ("step", 0.0, False, True, good.episode)
        assert row.info == {"ending": "infra_error", "reward_valid": False, "fault": row.fault}
        assert np.array_equal(row.observation, good.observation)
        assert rows[1].fault == ""
        pool.async_reset([0])  # at once, though its worker is being replaced
        pool.send([0], [1])
        again = pool.recv(2)
        assert [row.fault for row in again] == ["", ""]
        assert {row.env_id: row.kind for row in again} == {0: "reset", 1: "step"}
        assert (pool.counters.faults, pool.counters.restarts) == (1, 1)


@pytest.mark.parametrize(("backend", "failure"), [case[:2] for case in FAILURES])
def test_a_reset_that_fails_is_tried_again_with_the_same_seed(backend: str, failure: str, tmp_path: Path) -> None:
    with AsyncPool(Faulty, 1, backend=backend, reset_timeout_s=0.5) as pool:
        row = started(pool, do=failure, once=str(tmp_path)).rows[0]
        assert (row.fault, row.episode, row.info["seed"]) == ("", 0, spread("pool", 0, 0))
        assert pool.counters.restarts == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_after_three_tries_a_reset_gives_a_row_that_says_what_failed(backend: str) -> None:
    with AsyncPool(Faulty, 2, backend=backend) as pool:
        pool.async_reset([1])
        assert one(pool).fault == ""
        pool.async_reset([0, 1], options=[{"do": "raise"}, None])
        rows = {row.env_id: row for _ in range(2) for row in pool.recv()}
        assert "ZeroDivisionError: planted" in rows[0].fault
        assert (rows[0].kind, rows[0].observation, rows[0].truncated, rows[0].info["ending"]) == ("reset", None, True, "infra_error")
        assert rows[1].fault == ""
        assert pool.counters.faults == 3
        pool.async_reset([0])
        assert one(pool).fault == ""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("make", "says"), [("raise", "in _do\n.*ZeroDivisionError: planted"), ("hang", "did not come back within 0.3 s")])
def test_if_no_environment_can_be_made_the_first_failure_is_raised(backend: str, make: str, says: str) -> None:
    if (backend, make) == ("thread", "hang"):
        make = "wait:constructor"
    pool = AsyncPool(Faulty, 2, backend=backend, env_kwargs={"make": make}, make_timeout_s=60.0 if make == "raise" else 0.3)
    with pytest.raises(InfrastructureError, match=f"(?s)no environment could be made.*{says}"):
        started(pool)
    with pytest.raises(InfrastructureError, match="no environment could be made"):
        _ = pool.single_action_space
    pool.close(timeout_s=0.1)


def test_an_environment_that_does_not_exist_is_told_with_its_traceback() -> None:
    with AsyncPool("No/SuchEnv-v0", 2) as pool, pytest.raises(InfrastructureError, match=r"(?s)Traceback.*Namespace No not found"):
        started(pool)


@pytest.mark.parametrize("backend", BACKENDS)
def test_constructors_that_fail_now_and_then_are_tried_again(backend: str, tmp_path: Path) -> None:
    keywords = {"make": "raise", "folder": str(tmp_path), "healthy_from": 2}
    with AsyncPool(Faulty, 3, backend=backend, env_kwargs=keywords) as pool:
        assert [row.fault for row in started(pool)] == [""] * 3
        assert pool.counters.restarts == 2
        pool.send([0] * 3, [0, 1, 2])
        assert [row.fault for row in pool.recv(3)] == [""] * 3


def test_a_slot_that_fails_again_and_again_is_retired_and_the_others_go_on() -> None:
    with AsyncPool(Faulty, 2, max_restarts=1) as pool:
        started(pool)
        for expected in ("restarting", "retired"):
            pool.send(["raise"], [0])
            assert one(pool).truncated
            assert pool.states == [expected, "idle"]
            if expected == "restarting":
                pool.async_reset([0])
                assert one(pool).fault == ""
        with pytest.raises(ConfigurationError, match=r"cannot step env 0, which is retired: it failed too often in a row; leave it out"):
            pool.send([0], [0])
        pool.async_reset([0])  # who names it gets a row, as everywhere
        row = one(pool)
        assert (row.kind, row.truncated) == ("reset", True)
        assert "retired after 2 failures in a row" in row.fault
        pool.async_reset()  # all that are not retired
        assert pool.recv(2).env_ids.tolist() == [1]


def test_a_step_that_succeeds_wipes_the_slate() -> None:
    with AsyncPool(Faulty, 1, max_restarts=1) as pool:
        for _ in range(3):
            started(pool)
            pool.send([0], [0])
            assert one(pool).fault == ""
            pool.send(["raise"], [0])
            assert one(pool).fault
        assert pool.states == ["restarting"]


def test_a_worker_that_dies_while_nobody_asks_is_told_at_the_next_step() -> None:
    with AsyncPool(Faulty, 2, backend="process") as pool:
        started(pool)
        (pid,) = pool.call("pid", env_ids=[0])
        os.kill(pid, signal.SIGKILL)
        while pool.counters.faults == 0:
            assert pool.recv(timeout=0.05).rows == ()
        assert pool.states == ["idle", "idle"]  # the caller cannot know
        pool.send([0, 0], [0, 1])
        rows = {row.env_id: row for _ in range(2) for row in pool.recv(timeout=10)}
        assert "SIGKILL" in rows[0].fault
        assert rows[0].observation is not None
        assert rows[1].fault == ""


def test_an_answer_that_comes_too_late_is_dropped() -> None:
    with AsyncPool(Faulty, 1, step_timeout_s=0.3) as pool:
        started(pool)
        pool.send(["wait:late"], [0])
        assert "did not come back" in one(pool).fault
        pool.async_reset()
        assert one(pool).observation[2] == 0
        released("late").set()
        pool.send([0], [0])
        assert one(pool).observation[2] == 1
        while pool.counters.late_answers == 0:
            assert pool.recv(timeout=0.05).rows == ()
        assert pool.counters.steps == 1


def test_a_slow_environment_holds_up_nobody() -> None:
    with AsyncPool(Faulty, 4, env_kwargs={"length": 10**6}) as pool:
        started(pool)
        pool.send(["wait:slow"], [0])
        pool.send([0] * 3, [1, 2, 3])
        steps = 0
        while steps < 300:
            batch = pool.recv()
            assert 0 not in batch.env_ids
            steps += len(batch)
            pool.send([0] * len(batch), batch.env_ids)
        released("slow").set()
        rows = [row for _ in range(4) if len(batch := pool.recv(4)) for row in batch]
        assert 0 in [row.env_id for row in rows]


def test_a_call_that_hangs_costs_the_episode() -> None:
    with AsyncPool(Faulty, 1, backend="process", step_timeout_s=0.3) as pool:
        started(pool)
        with pytest.raises(InfrastructureError, match=r"env 0: call\(\) did not come back"):
            pool.call("_do", "hang")
        pool.send([0], [0])
        assert "call() did not come back" in one(pool).fault


@pytest.mark.parametrize(("backend", "what"), [("thread", "wait:close"), ("process", "hang")])
def test_close_returns_even_if_environments_hang(backend: str, what: str) -> None:
    pool = AsyncPool(Faulty, 3, backend=backend)
    started(pool)
    pool.call("set_wrapper_attr", "at_close", what, env_ids=[0])
    pool.send([what], [1])
    pool.close(timeout_s=0.5)
    pool.close()
    assert pool.closed


# Tasks.


def play(pool: AsyncPool, choose: Any) -> list[Row]:
    rows: list[Row] = []
    while not pool.finished:
        batch = pool.recv()
        rows += batch
        going = [row for row in batch if not row.done]
        pool.send([choose(row) for row in going], [row.env_id for row in going])
    return rows


@pytest.mark.parametrize(("backend", "failure"), [("thread", "raise"), ("process", "kill"), ("thread", "break")])
def test_a_task_whose_episode_fails_is_queued_again_and_in_the_end_quarantined(backend: str, failure: str) -> None:
    with AsyncPool(Faulty, 3, backend=backend, tasks=TASKS, requeues=1, env_kwargs={"length": 2}) as pool:
        rows = play(pool, lambda row: failure if row.task_id == TASKS[3] else 0)
        report = pool.report
    assert (report[TASKS[3]].status, report[TASKS[3]].attempts) == ("quarantined", 2)
    assert all(report[task].status == "done" for task in TASKS if task != TASKS[3])
    assert sorted(str(row.task_id) for row in rows if row.done) == sorted([*TASKS, TASKS[3]])
    assert sum(row.info["ending"] == "infra_error" for row in rows if row.done) == 2


def test_a_task_whose_reset_fails_is_queued_again_without_a_row() -> None:
    class Picky(Faulty):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            if (options or {})["task_id"] == TASKS[2]:
                raise ZeroDivisionError("planted")
            return super().reset(seed=seed, options=options)

    with AsyncPool(Picky, 2, tasks=TASKS, requeues=2, env_kwargs={"length": 1}) as pool:
        rows = play(pool, lambda _: 0)
        assert (pool.report[TASKS[2]].status, pool.report[TASKS[2]].attempts) == ("quarantined", 3)
        assert "ZeroDivisionError" in pool.report[TASKS[2]].faults[0]
    assert TASKS[2] not in {row.task_id for row in rows}
    assert len(rows) == 2 * 7


def test_tasks_that_no_slot_is_left_for_are_told() -> None:
    with AsyncPool(Faulty, 2, tasks=TASKS, max_restarts=0) as pool:
        with pytest.raises(InfrastructureError, match=r"every slot is retired.*and 8 tasks wait"):
            play(pool, lambda _: "raise")
        assert {task.status for task in pool.report.values()} == {"waiting"}
        assert [task.attempts for task in pool.report.values()] == [1, 1, 0, 0, 0, 0, 0, 0]


# The supervisor by itself.


class _Silent(Backend):
    """Does nothing; answers are put in by hand."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Ask]] = []
        self.killed: list[int] = []
        self.answers: list[Answer] = []

    def spawn(self, slot: int, ask: Ask) -> None:
        self.asked.append((slot, ask))

    def send(self, slot: int, ask: Ask) -> None:
        self.asked.append((slot, ask))

    def receive(self, timeout_s: float | None) -> list[Answer]:  # noqa: ARG002 - it has no time to lose
        answers, self.answers = self.answers, []
        return answers

    def wake(self) -> None:
        pass

    def kill(self, slot: int) -> None:
        self.killed.append(slot)

    def close(self, timeout_s: float) -> None:
        pass


def test_restarts_wait_longer_each_time_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("agent_gym.runner.supervision.time.monotonic", lambda: now)
    backend = _Silent()
    supervisor = Supervisor(backend, [dict, dict], Deadlines(make_s=10, reset_s=10, step_s=10), max_restarts=8)
    backend.answers = [Answer(backend.asked[1][1].id, 1, "make", {})]
    waits = []
    for number in range(8):
        backend.answers += [Answer(backend.asked[-1][1].id if number else backend.asked[0][1].id, 0, "make", None, "planted")]
        supervisor.wait(0)
        begun, known = now, len(backend.asked)
        while len(backend.asked) == known:
            now += 0.1
            supervisor.wait(0)
        waits.append(round(now - begun, 1))
    assert all(math.isclose(wait, min(5.0, 0.1 * 2**number), abs_tol=0.11) for number, wait in enumerate(waits))
    backend.answers = [Answer(backend.asked[-1][1].id, 0, "make", None, "planted")]
    supervisor.wait(0)
    assert supervisor.retired(0)
    assert not supervisor.retired(1)


def test_time_in_which_nobody_listened_does_not_count_against_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("agent_gym.runner.supervision.time.monotonic", lambda: now)
    backend = _Silent()
    supervisor = Supervisor(backend, [dict], Deadlines(make_s=10, reset_s=10, step_s=10))
    backend.answers = [Answer(backend.asked[0][1].id, 0, "make", {})]
    supervisor.wait(0)
    request = supervisor.submit(0, "step", (0, None))
    now += 60.0  # the learner learns, and the worker is stuck with half of a large answer
    assert supervisor.wait(0) == []
    backend.answers = [Answer(request, 0, "step", "value")]
    assert [outcome.value for outcome in supervisor.wait(0)] == ["value"]
    request = supervisor.submit(0, "step", (0, None))
    now += 60.0
    supervisor.wait(0)
    now += 60.0  # and the learner is away again: a worker that is stuck for good is found all the same
    assert "did not come back" in supervisor.wait(0)[0].fault
    assert backend.killed == [0]


def test_a_worker_that_answers_with_an_error_and_dies_has_failed_once() -> None:
    backend = _Silent()
    supervisor = Supervisor(backend, [dict], Deadlines(make_s=10, reset_s=10, step_s=10))
    backend.answers = [Answer(backend.asked[0][1].id, 0, "make", {})]
    supervisor.wait(0)
    request = supervisor.submit(0, "step", (0, None))
    backend.answers = [Answer(request, 0, "step", None, "planted"), Answer(request, 0, "died", None, "gone")]
    assert ["planted" in outcome.fault for outcome in supervisor.wait(0)] == [True]
    assert supervisor.counters.faults == 1


def test_a_constructor_that_fails_under_a_waiting_reset_does_not_spoil_the_episode() -> None:
    backend = _Silent()
    supervisor = Supervisor(backend, [dict], Deadlines(make_s=10, reset_s=10, step_s=10))
    backend.answers = [Answer(backend.asked[-1][1].id, 0, "make", {})]
    supervisor.wait(0)
    backend.answers = [Answer(0, 0, "died", None, "gone")]
    supervisor.wait(0)
    reset = supervisor.submit(0, "reset", (0, None))
    for error in ("planted", ""):
        known = len(backend.asked)
        while len(backend.asked) == known:
            supervisor.wait(0)
        backend.answers = [Answer(backend.asked[-1][1].id, 0, "make", {}, error)]
        supervisor.wait(0)
    backend.answers = [Answer(reset, 0, "reset", "value")]
    assert [outcome.value for outcome in supervisor.wait(0)] == ["value"]
    step = supervisor.submit(0, "step", (0, None))
    backend.answers = [Answer(step, 0, "step", "value")]
    assert [outcome.fault for outcome in supervisor.wait(0)] == [""]
