import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.seeding import derive
from agent_gym.errors import ConfigurationError
from agent_gym.runner.batcher import Batcher, InferenceTime, longest_window, optimum
from agent_gym.runner.pressure import Pressure, weight

seconds = st.floats(1e-6, 10.0)


@given(envs=st.integers(1, 200), latency_s=seconds, a=seconds, b=st.just(0.0) | seconds)
def test_the_optimum_is_the_best_of_all_sizes_and_nothing_exceeds_it(envs: int, latency_s: float, a: float, b: float) -> None:
    best = optimum(envs, latency_s, a, b)

    def throughput(size: float) -> float:
        return min(envs / (latency_s + a + b * size), size / (a + b * size))

    assert 1.0 <= best.batch <= envs
    assert best.per_s == pytest.approx(throughput(best.batch))
    assert all(throughput(size) <= best.per_s * (1 + 1e-9) for size in range(1, envs + 1))


@pytest.mark.parametrize(
    ("envs", "latency_s", "a", "b", "batch", "per_s"),
    [
        (64, 0.3, 0.05, 0.0, 64 * 0.05 / 0.35, 64 / 0.35),
        (64, 0.3, 0.04, 0.002, 10.9, 64 / (0.34 + 0.002 * 10.9)),
        (64, 0.3, 0.005, 0.0005, 1.17, 64 / (0.305 + 0.0005 * 1.17)),
        (1, 0.3, 0.05, 0.01, 1.0, 1 / 0.36),
    ],
)
def test_known_optima(envs: int, latency_s: float, a: float, b: float, batch: float, per_s: float) -> None:
    best = optimum(envs, latency_s, a, b)
    assert best.batch == pytest.approx(batch, rel=0.02)
    assert best.per_s == pytest.approx(per_s, rel=0.001)


@given(a=st.floats(0.0, 0.1), b=st.floats(0.0, 0.01), spoilt=st.integers(0, 20), seed=st.integers(0, 1000))
def test_the_line_is_found_although_some_batches_took_far_longer(a: float, b: float, spoilt: int, seed: int) -> None:
    rng = derive("line", seed)
    times = InferenceTime()
    sizes = [int(size) for size in rng.integers(1, 30, 96)]
    for number, size in enumerate(sizes):
        times.add(size, (a + b * size) * (30.0 if number < spoilt else 1.0 + 0.02 * float(rng.random())))
    fitted_a, fitted_b = times.line
    for size in (1, 10, 29):
        assert fitted_a + fitted_b * size == pytest.approx(a + b * size, rel=0.5, abs=1e-9)


def test_before_anything_was_measured_and_with_batches_of_one_size() -> None:
    times = InferenceTime()
    assert times.line == (0.0, 0.0)
    for _ in range(5):
        times.add(8, 0.02)
    assert times.line == (0.02, 0.0)
    for _ in range(200):
        times.add(4, 0.01)
    assert times.line == (0.01, 0.0)  # what is long past is forgotten


@given(envs=st.integers(1, 200), latency_s=seconds, a=seconds, b=st.just(0.0) | seconds)
def test_the_longest_window_delays_a_step_by_a_fiftieth(envs: int, latency_s: float, a: float, b: float) -> None:
    window, best = longest_window(envs, latency_s, a, b), optimum(envs, latency_s, a, b)
    delay = window * (1 + best.per_s * window / 2) / (1 + best.per_s * window)
    assert delay == pytest.approx(0.02 * (latency_s + a + b * best.batch), rel=1e-6)


def measured(batcher: Batcher[Any], a: float, b: float) -> Batcher[Any]:
    for size in (1, 2, 4, 8, 16):
        batcher.times.add(size, a + b * size)
    return batcher


def test_a_batch_is_bounded_where_a_larger_one_costs_and_only_there() -> None:
    for a, b, most in ((0.05, 0.0, 64), (0.04, 0.002, 14), (0.02, 0.004, 13)):
        assert measured(Batcher(envs=64, latency_s=0.3), a, b).most == most
        assert measured(Batcher(envs=64, latency_s=0.3, max_batch=10), a, b).most == 10
        assert measured(Batcher(devices=2, envs=128, latency_s=0.3), a, b).most in (most, 128)
    assert Batcher(envs=5).most == 5  # nothing is known yet


def test_who_is_ready_goes_at_once_or_when_the_window_ends_or_the_batch_is_full_or_nobody_else_can_come() -> None:
    batcher: Batcher[str] = Batcher(envs=8)
    assert batcher.take(0, 0.0, 1, True) == []
    batcher.add("a", 1.0)
    assert batcher.take(0, 1.0, 1, True) == ["a"]
    batcher = Batcher(envs=8, window=0.5, max_batch=3)
    batcher.add("a", 1.0)
    batcher.add("b", 1.4)
    assert batcher.due([0]) == 1.5
    assert batcher.due([]) == math.inf
    assert batcher.take(0, 1.49, 1, True) == []
    assert batcher.take(0, 1.5, 1, True) == ["a", "b"]
    batcher.add("c", 2.0)
    assert batcher.take(0, 2.0, 1, False) == ["c"]
    for name in "defg":
        batcher.add(name, 3.0)
    assert batcher.take(0, 3.0, 1, True) == ["d", "e", "f"]
    assert batcher.take(0, 3.0, 1, True) == []
    assert len(batcher) == 1
    assert Batcher(envs=8).due([0]) == math.inf


def test_devices_that_are_free_share_what_is_ready() -> None:
    batcher: Batcher[int] = Batcher(devices=2, envs=8)
    for number in range(5):
        batcher.add(number, 0.0)
    assert batcher.take(0, 0.0, 2, True) == [0, 1, 2]
    assert batcher.take(1, 0.0, 1, True) == [3, 4]


@given(
    moves=st.lists(st.tuples(st.booleans(), st.none() | st.integers(0, 2), st.integers(0, 2), st.integers(1, 3)), max_size=80),
    max_batch=st.none() | st.integers(1, 4),
    window=st.sampled_from([0.0, 2.0]),
)
def test_everything_is_taken_once_in_order_and_by_a_device_that_may_have_it(
    moves: list[tuple[bool, int | None, int, int]], max_batch: int | None, window: float
) -> None:
    batcher: Batcher[tuple[int, int | None]] = Batcher(devices=3, envs=10, max_batch=max_batch, window=window)
    added, taken = [], list[tuple[int, int | None]]()

    def take(device: int, now: float, idle: int, more: bool) -> int:
        batch = batcher.take(device, now, idle, more)
        assert len(batch) <= min(10, max_batch or 10)
        assert all(own in (None, device) for _, own in batch)
        assert batch == sorted(batch, key=lambda item: item[0])
        taken.extend(batch)
        return len(batch)

    for now, (comes, own, device, idle) in enumerate(moves):
        if comes:
            added.append((now, own))
            batcher.add(added[-1], float(now), own)
        else:
            take(device, float(now), idle, more=True)
    for device in range(3):
        while take(device, 1e6, 1, more=False):
            pass
    assert sorted(taken, key=lambda item: item[0]) == added
    assert len(batcher) == 0


def test_the_budget_has_room_for_as_many_as_it_says() -> None:
    pressure = Pressure(1000)
    assert pressure.capacity == 1  # nothing was weighed yet
    pressure.hold(50, under_way=3)
    assert (pressure.capacity, pressure.held, pressure.peak) == (9, 50, 200)
    assert pressure.takes(16)
    assert not pressure.takes(17)
    pressure.hold(900, under_way=0)
    assert not pressure.takes(3)
    assert pressure.takes(0)  # else nothing would ever go on
    pressure.release(950)
    assert pressure.held == 0
    pressure.waiting({1, 2}, 10.0)
    pressure.waiting({2}, 11.0)
    pressure.waiting({1, 2}, 12.0)
    assert (pressure.paused, pressure.paused_s(14.0)) == (3, 1.0 + 4.0 + 2.0)


def test_what_things_weigh() -> None:
    assert weight(np.zeros(1000)) == pytest.approx(8000, rel=0.05)
    assert weight({"text": "x" * 5000, "data": [{"name": "é" * 1000}] * 3}) == pytest.approx(5000 + 3 * 1300, rel=0.5)
    assert weight(None) < 100


@pytest.mark.parametrize("keywords", [{"window": -0.1}, {"window": "long"}, {"window": math.nan}, {"window": True}, {"max_batch": 1.5}])
def test_values_that_do_not_fit(keywords: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(keywords))} must be"):
        Batcher(**keywords)
