"""A pool's figures, from a pool that is played on a clock of our own."""

import itertools
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.spaces import Discrete

from agent_gym.runner.messages import Kind, Usage
from agent_gym.runner.monitor import Meter, PoolStats
from agent_gym.runner.pool import AsyncPool
from agent_gym.runner.supervision import Counters, Outcome
from agent_gym.runner.tasks import TaskQueue


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Played:
    """As much of a pool as is looked at."""

    num_envs: int = 2
    backend_name: str = "process"
    clock: Clock = field(default_factory=Clock)
    outstanding: int = 0
    arrived: int = 0
    queue: TaskQueue | None = None
    counters: Counters = field(default_factory=Counters)
    measured: int = 0
    used: dict[int, Usage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.meter = Meter(self.num_envs, window_s=10.0, sample_every_s=5.0, clock=self.clock)
        self.states = ["idle"] * self.num_envs

    def usages(self) -> Mapping[int, Usage]:
        self.measured += 1
        return self.used

    def step(
        self, slot: int, seconds: float, kind: Kind = "step", overhead_s: float = 0.0, learner_s: float = 0.0, fault: str = ""
    ) -> None:
        self.clock.now += learner_s
        self.meter.sent(slot)
        self.clock.now += seconds + overhead_s
        self.meter.came(Outcome(slot, 0, kind, None, fault, seconds, seconds + overhead_s))


def test_an_env_that_always_works_is_at_the_bound_and_one_that_waits_half_the_time_at_half() -> None:
    busy, waiting = Played(1), Played(1)
    for _ in range(20):
        busy.step(0, 0.1)
        waiting.step(0, 0.1, learner_s=0.1)
    stats = PoolStats.of(busy)
    assert stats.throughput_per_s == pytest.approx(10.0)
    assert stats.fraction_of_bound == pytest.approx(1.0)
    assert (stats.steps, stats.learner_wait_s) == (20, 0.0)
    stats = PoolStats.of(waiting)
    assert stats.fraction_of_bound == pytest.approx(0.5, abs=0.03)
    assert stats.learner_wait_p50_s == pytest.approx(0.1)
    assert stats.learner_wait_s == pytest.approx(1.9)  # none before the first request


def test_throughput_is_of_the_window_only_and_falls_while_nothing_comes() -> None:
    pool = Played(1)
    for _ in range(100):
        pool.step(0, 0.01)
    pool.clock.now += 9.0
    assert PoolStats.of(pool).throughput_per_s == pytest.approx(10.0)
    pool.clock.now += 9.5
    stats = PoolStats.of(pool)
    assert (stats.throughput_per_s, stats.fraction_of_bound, stats.step_p50_s, stats.window_s) == (0.0, None, None, 10.0)
    assert stats.steps == 100


def test_resets_take_a_share_of_the_bound_and_are_no_steps() -> None:
    pool = Played(1)
    for _ in range(5):
        pool.step(0, 1.0, "reset")
        pool.step(0, 0.5)
    stats = PoolStats.of(pool)
    assert (stats.steps, stats.step_p99_s) == (5, 0.5)
    assert stats.fraction_of_bound == pytest.approx(1.0)
    assert stats.throughput_per_s == pytest.approx(5 / 7.5)


def test_a_retired_slot_lowers_the_bound() -> None:
    pool = Played(2)
    pool.states[1] = "retired"
    for _ in range(10):
        pool.step(0, 0.1)
    stats = PoolStats.of(pool)
    assert stats.fraction_of_bound == pytest.approx(1.0)
    assert (stats.retired, stats.states) == ([1], {"idle": 1, "retired": 1})


def test_percentiles_and_overhead() -> None:
    pool = Played(1)
    for number in range(101):
        pool.step(0, number / 10_000, overhead_s=0.002)
    stats = PoolStats.of(pool)
    assert [stats.step_p50_s, stats.step_p95_s, stats.step_p99_s] == pytest.approx([0.0050, 0.0095, 0.0099])
    assert stats.overhead_p50_s == pytest.approx(0.002)


def test_faults_are_no_steps_and_are_kept_by_slot() -> None:
    pool = Played(3)
    for slot in (0, 2, 2):
        pool.step(slot, 0.0, fault="it died")
    pool.step(1, 0.1)
    pool.counters = Counters(steps=1, episodes=4, faults=5, restarts=6, late_answers=7)
    stats = PoolStats.of(pool)
    assert (stats.steps, stats.episodes, stats.faults, stats.restarts, stats.late_answers) == (1, 4, 5, 6, 7)
    assert [(env.steps, env.faults) for env in stats.envs] == [(0, 1), (1, 0), (0, 2)]


def test_the_figures_are_json_values() -> None:
    pool = Played(2, outstanding=1, arrived=3, queue=TaskQueue(["a", "b"]))
    pool.used = {1: Usage(pid=9, cpu_s=1.5, memory_mib=80.0, fds=12, processes=2)}
    pool.step(0, 0.1)
    told = json.loads(json.dumps(PoolStats.of(pool).as_dict()))
    assert (told["outstanding"], told["arrived"], told["tasks"]) == (1, 3, {"waiting": 2, "running": 0, "done": 0, "quarantined": 0})
    assert told["envs"][1] == {
        "env_id": 1,
        "state": "idle",
        "steps": 0,
        "faults": 0,
        "cpu_s": 1.5,
        "memory_mib": 80.0,
        "fds": 12,
        "processes": 2,
    }
    assert json.loads(json.dumps(PoolStats.of(Played(1)).as_dict()))["fraction_of_bound"] is None  # nothing has happened


def test_with_threads_it_says_that_usage_cannot_be_told_apart() -> None:
    stats = PoolStats.of(Played(2, backend_name="thread"))
    assert "cannot be told apart" in stats.remark
    assert all(env.fds is None for env in stats.envs)
    assert PoolStats.of(Played(2)).remark == ""


def test_usage_is_sampled_at_a_pace_and_not_more_often_than_it_is_worth() -> None:
    pool = Played(1)
    assert not pool.meter.due()
    pool.clock.now += 5.0
    assert pool.meter.due()

    def slow() -> Mapping[int, Usage]:
        pool.clock.now += 0.1
        return {}

    pool.meter.sample(slow)
    pool.clock.now += 9.9
    assert not pool.meter.due()
    pool.clock.now += 0.2
    assert pool.meter.due()
    for _ in range(10):
        PoolStats.of(pool)
    assert pool.measured == 1


def test_an_env_that_leaks_raises_an_alert_row_that_names_it() -> None:
    pool = Played(4)
    for number in range(20):
        pool.clock.now += 5.0
        pool.used = {slot: Usage(pid=slot, cpu_s=1.0, memory_mib=50.0, fds=10 + number * (slot == 2), processes=1) for slot in range(4)}
        pool.meter.sample(pool.usages)
    (alert,) = PoolStats.of(pool).alerts
    assert (alert.env_id, alert.what, alert.now) == (2, "fds", 29.0)
    assert alert.text == "env 2 keeps growing: 29 open files, +12 a minute"


def test_figures_can_be_read_while_threads_write_them() -> None:
    pool = Played(4)
    ends = threading.Event()

    def work(slot: int) -> None:
        while not ends.is_set():
            pool.meter.sent(slot)
            pool.meter.came(Outcome(slot, 0, "step"))

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(4)]
    for thread in threads:
        thread.start()
    seen = [PoolStats.of(pool).steps for _ in range(20)]
    ends.set()
    for thread in threads:
        thread.join()
    assert seen == sorted(seen)
    assert PoolStats.of(pool).steps == sum(env.steps for env in PoolStats.of(pool).envs)


def test_a_real_pool_tells_its_figures() -> None:
    with AsyncPool("CartPole-v1", 3) as pool:
        pool.async_reset()
        for _ in range(40):
            for row in pool.recv():
                if row.done:
                    pool.async_reset([row.env_id])
                else:
                    pool.send([0], [row.env_id])
        stats = pool.stats()
    assert stats.steps == sum(env.steps for env in stats.envs) > 0
    assert stats.episodes > 0
    assert stats.fraction_of_bound is not None
    assert 0.0 < stats.fraction_of_bound < 1.0
    assert stats.outstanding + stats.arrived == 3
    assert "cannot be told apart" in stats.remark
    json.dumps(stats.as_dict())


class Hoarding(gym.Env[Any, Any]):
    """Opens a file at every step, and never closes one."""

    observation_space = Discrete(2)
    action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:  # noqa: ARG002 - it has none
        super().reset(seed=seed)
        self.held: list[Any] = []
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action:
            self.held.append(open(os.devnull))  # noqa: SIM115, PTH123 - that is the point
        return 0, 0.0, False, False, {}


def test_an_env_of_a_real_pool_that_leaks_files_raises_an_alert_row_that_names_it() -> None:
    clock = itertools.count(step=5)
    with AsyncPool(Hoarding, 2, backend="process") as pool:
        pool.async_reset()
        pool.recv(min=2)
        pool.meter._clock = lambda: float(next(clock))
        for _ in range(20):
            pool.send([0, 1], [0, 1])
            pool.recv(min=2)
            pool.meter.sample(pool.usages)
        alerts = pool.stats().alerts
    assert [(alert.env_id, alert.what) for alert in alerts] == [(1, "fds")]
