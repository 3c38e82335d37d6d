"""How near the runner comes to what is possible, beside other vector environments and a serial loop, all in one run.

The environment waits, as a tool would; how long is drawn by a seed. No loop over N such environments can make more than
``N / mean latency`` steps a second (no time in the policy, no queue), with the latencies that this very run has drawn. With a policy that
takes 5 ms for a batch, whatever its size, the bound is `agent_gym.runner.batcher.optimum`'s. Latencies, the policy's time and windows are a
tenth of what they are meant to stand for: tools of 300 ms, a model of 50 ms, windows up to 200 ms.
"""

import contextlib
import functools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AsyncVectorEnv

from agent_gym.core.policy import Decision, Policy
from agent_gym.core.seeding import derive
from agent_gym.runner import AsyncPool, PolicyServer
from agent_gym.runner.batcher import optimum

__all__ = ["LATENCIES", "Waiting", "measure"]

_MEAN_S = 0.030
_INFERENCE_S = 0.005
_WINDOWS_S = (0.0, 0.002, 0.005, 0.010, 0.020)
_SECONDS = 5.0
"""How long each of them runs."""
_TRIVIAL_STEPS = 20_000
_TRIVIAL_ENVS = 64
_ROUNDS = 3

LATENCIES: dict[str, Callable[[np.random.Generator], float]] = {
    "deterministic": lambda _: _MEAN_S,
    "lognormal": lambda rng: _MEAN_S * math.exp(rng.normal() - 0.5),
    "stragglers": lambda rng: _MEAN_S * (10.0 if rng.random() < 0.05 else 1.0) / 1.45,
    "none": lambda _: 0.0,
}
"""What is drawn for a step, in seconds, all of mean 30 ms: always the same; lognormal with σ = 1; 5 % ten times slower. And nothing."""


class Waiting(gymnasium.Env[Any, Any]):
    """An environment whose every step waits.

    Args:
        latency: One of `LATENCIES`.
        number: Tells its latencies from another's.
    """

    observation_space = Box(-1.0, 1.0, (4,), np.float32)
    action_space = Discrete(2)

    def __init__(self, latency: str, number: int) -> None:
        self._draw = LATENCIES[latency]
        self._rng = derive("bench", latency, number)
        self._shown = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:  # noqa: ARG002 - it has none
        """Starts over."""
        super().reset(seed=seed)
        return self._shown.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ARG002 - any will do
        """Waits, and says in the info how long it was to wait; the episode never ends."""
        info = {}
        if (seconds := self._draw(self._rng)) > 0:
            time.sleep(seconds)
            info["drawn_s"] = seconds
        return self._shown.copy(), 0.0, False, False, info


class _Model(Policy):
    """Takes its time for a batch, whatever its size."""

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        time.sleep(_INFERENCE_S)
        return [Decision(0) for _ in batch]


class _Rate(NamedTuple):
    """Steps a second, the share of the bound with what was drawn, and the mean size of a batch, where there are any."""

    steps_per_s: float
    fraction: float = math.nan
    batch: float = math.nan


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Runs them all.

    Returns:
        For N in 1, 16, 64 and each latency ``fraction_of_bound_n<N>_<latency>`` (thread backend); for N = 64 and lognormal latency
        steps a second of ours, of Gymnasium's AsyncVectorEnv, SB3's SubprocVecEnv and a serial loop (``…_per_s``) and ours ÷ theirs
        (``vs_async_vector_env_x``, ``vs_subproc_vec_env_x``, ``pool_vs_serial_x``); what a step costs beside the environment's own
        time with 64 environments that do nothing (``thread_overhead_us``, ``process_overhead_us``), and ``process_overhead_us`` ÷ that
        of AsyncVectorEnv (medians of rounds taken in turn).

        With a policy, served by `PolicyServer`, and lognormal latency: for N = 64 ``fraction_of_bound_n64_inference``, and for each
        window ``window_<…>ms_steps_per_s`` and ``window_<…>ms_batch``, ``auto`` among them; ``window_auto_over_best``: steps with it ÷
        the most with any other. For N = 32 ``vs_serial_x``: steps a second ÷ those of one environment after the other, each with the
        same policy.
    """
    metrics: dict[str, float] = {}
    ours = _Rate(0.0)
    for latency in ("deterministic", "lognormal", "stragglers"):
        for n in (1, 16, 64):
            progress(f"{n} environments, {latency} latency")
            rate = _pool(latency, n)
            metrics[f"fraction_of_bound_n{n}_{latency}"] = rate.fraction
            if (latency, n) == ("lognormal", 64):
                ours = rate
    progress("Gymnasium's AsyncVectorEnv")
    asynchronous = _lock_step(_gymnasium_async, "lognormal", 64)
    progress("SB3's SubprocVecEnv")
    subproc = _lock_step(_sb3_subproc, "lognormal", 64)
    progress("a serial loop")
    serial = _serial("lognormal", 64)
    served = {}
    for window in (*_WINDOWS_S, "auto"):
        name = window if window == "auto" else f"{1000 * window:g}ms"
        progress(f"a policy, window {name}")
        served[name] = _served(64, window)
    progress("32 environments and a policy, beside one after the other")
    alone, together = _serial("lognormal", 32, _Model()), _served(32, 0.0)
    best = max(rate.steps_per_s for name, rate in served.items() if name != "auto")
    progress("overhead")
    thread, process, theirs = (statistics.median(column) for column in zip(*(_overheads() for _ in range(_ROUNDS)), strict=True))
    return {
        **metrics,
        "pool_steps_per_s": ours.steps_per_s,
        "async_vector_env_steps_per_s": asynchronous,
        "subproc_vec_env_steps_per_s": subproc,
        "serial_steps_per_s": serial,
        "vs_async_vector_env_x": ours.steps_per_s / asynchronous,
        "vs_subproc_vec_env_x": ours.steps_per_s / subproc,
        "pool_vs_serial_x": ours.steps_per_s / serial,
        "fraction_of_bound_n64_inference": served["0ms"].fraction,
        "vs_serial_x": together.steps_per_s / alone,
        "window_auto_over_best": served["auto"].steps_per_s / best,
        **{f"window_{name}_steps_per_s": rate.steps_per_s for name, rate in served.items()},
        **{f"window_{name}_batch": rate.batch for name, rate in served.items()},
        "thread_overhead_us": thread,
        "process_overhead_us": process,
        "process_overhead_vs_async_vector_env_x": process / theirs,
    }


def _makers(latency: str, n: int) -> list[Callable[[], Waiting]]:
    return [functools.partial(Waiting, latency, number) for number in range(n)]


@contextlib.contextmanager
def _running(latency: str, n: int, backend: str) -> Iterator[AsyncPool]:
    with AsyncPool(_makers(latency, n), n, backend=backend) as pool:
        pool.async_reset()
        started = pool.recv(min=n)
        pool.send([0] * n, started.env_ids)
        yield pool


def _pool(latency: str, n: int) -> _Rate:
    """Whoever is ready is sent on at once."""
    steps, drawn = 0, 0.0
    with _running(latency, n, "thread") as pool:
        until = time.perf_counter() + _SECONDS
        started = time.perf_counter()
        while time.perf_counter() < until:
            batch = pool.recv()
            steps += len(batch)
            drawn += sum(info["drawn_s"] for info in batch.infos)
            pool.send([0] * len(batch), batch.env_ids)
        rate = steps / (time.perf_counter() - started)
    return _Rate(rate, rate / (n / (drawn / steps)))


def _served(n: int, window: float | Literal["auto"]) -> _Rate:
    """A policy acts for all of them."""
    steps, drawn = 0, 0.0
    with AsyncPool(_makers("lognormal", n), n) as pool, PolicyServer(pool, _Model(), window=window) as server:
        before = server.run(steps=10 * n)  # so that what is measured is fitted
        started = time.perf_counter()
        for step in server.steps():
            steps += 1
            drawn += step.after.info["drawn_s"]
            if time.perf_counter() - started >= _SECONDS:
                break
        rate = steps / (time.perf_counter() - started)
        stats = server.stats()
    return _Rate(
        rate, rate / optimum(n, drawn / steps, _INFERENCE_S, 0.0).per_s, (stats.steps - before.steps) / (stats.batches - before.batches)
    )


def _lock_step(make: Callable[[str, int], tuple[Callable[[], Any], Callable[[], None]]], latency: str, n: int) -> float:
    step, close = make(latency, n)
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < _SECONDS:
        step()
        steps += n
    rate = steps / (time.perf_counter() - started)
    close()
    return rate


def _gymnasium_async(latency: str, n: int) -> tuple[Callable[[], Any], Callable[[], None]]:
    envs = AsyncVectorEnv(_makers(latency, n))
    envs.reset()
    actions = np.zeros(n, np.int64)
    return lambda: envs.step(actions), envs.close


def _sb3_subproc(latency: str, n: int) -> tuple[Callable[[], Any], Callable[[], None]]:
    from stable_baselines3.common.vec_env import SubprocVecEnv

    envs = SubprocVecEnv(_makers(latency, n), start_method="fork")  # type: ignore[arg-type]
    envs.reset()
    actions = np.zeros(n, np.int64)
    return lambda: envs.step(actions), envs.close


def _serial(latency: str, n: int, policy: Policy | None = None) -> float:
    envs = [make() for make in _makers(latency, n)]
    shown = [env.reset()[0] for env in envs]
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < _SECONDS:
        turn = steps % n
        action = 0 if policy is None else policy.act([(str(turn), shown[turn])])[0].action
        shown[turn] = envs[turn].step(action)[0]
        steps += 1
    return steps / (time.perf_counter() - started)


def _overheads() -> tuple[float, float, float]:
    """Microseconds a step of a thread pool, a process pool and AsyncVectorEnv, with environments that do nothing."""
    ours = []
    for backend in ("thread", "process"):
        with _running("none", _TRIVIAL_ENVS, backend) as pool:
            steps, started = 0, time.perf_counter()
            while steps < _TRIVIAL_STEPS:
                batch = pool.recv()
                steps += len(batch)
                pool.send([0] * len(batch), batch.env_ids)
            ours.append(1e6 * (time.perf_counter() - started) / steps)
    step, close = _gymnasium_async("none", _TRIVIAL_ENVS)
    rounds = _TRIVIAL_STEPS // _TRIVIAL_ENVS
    started = time.perf_counter()
    for _ in range(rounds):
        step()
    theirs = 1e6 * (time.perf_counter() - started) / (rounds * _TRIVIAL_ENVS)
    close()
    return ours[0], ours[1], theirs
