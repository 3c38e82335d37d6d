"""What benchmarks of environments share: the oracle's episodes, played again and again on one core."""

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium

from agent_gym.core.action import ToolCall

__all__ = ["Episodes", "one_core", "oracle_episodes", "play"]

Episodes = list[tuple[str, list[ToolCall]]]
"""Task ids, and the calls that solve them."""

_EPISODES = 60
_ROUNDS = 7


@contextmanager
def one_core() -> Iterator[None]:
    """Keeps this process on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def oracle_episodes(env_id: str, **keywords: Any) -> Episodes:
    """What the oracle does in the first episodes of an environment with these keywords."""
    env = gymnasium.make(env_id, interface="text", disable_env_checker=True, **keywords)
    episodes = []
    for seed in range(_EPISODES):
        observation, info = env.reset(seed=seed)
        seen, calls, done = [observation], [], False
        while not done:
            calls.append(env.get_wrapper_attr("oracle")(seen))
            observation, _, terminated, truncated, _ = env.step(calls[-1])
            seen.append(observation)
            done = terminated or truncated
        episodes.append((info["task_id"], calls))
    env.close()
    return episodes


def play(env_id: str, interface: str, episodes: Episodes, **keywords: Any) -> tuple[float, float]:
    """Steps a second and milliseconds a reset, medians of rounds; the first round warms up and does not count."""
    env = gymnasium.make(env_id, interface=interface, disable_env_checker=True, **keywords)
    rates, resets = [], []
    for _ in range(_ROUNDS + 1):
        stepping = 0.0
        for task_id, calls in episodes:
            started = time.perf_counter()
            env.reset(seed=0, options={"task_id": task_id})
            resets.append(time.perf_counter() - started)
            for call in calls:
                action: Any = call if interface == "text" else env.get_wrapper_attr("candidates").index(call)
                started = time.perf_counter()
                env.step(action)
                stepping += time.perf_counter() - started
        rates.append(sum(len(calls) for _, calls in episodes) / stepping)
    env.close()
    return statistics.median(rates[1:]), 1_000 * statistics.median(resets[len(episodes) :])
