"""How fast tool tasks are: steps and resets of ``AgentBase/ToolTask-v0`` in one process, on one core."""

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium

from agent_gym.core.action import ToolCall

__all__ = ["measure"]

_ID = "agent_gym:AgentBase/ToolTask-v0"
_EPISODES = 60
_ROUNDS = 7
_COLD_RESETS = 25


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Plays the oracle's episodes again and again.

    Returns:
        ``tool_steps_per_s`` (rich observations, tool calls) and ``tool_steps_per_s_array`` (arrays, candidates), both of
        `step` alone; ``tool_reset_ms`` with warm caches and ``tool_reset_cold_ms`` with none, both of the text interface;
        ``tool_reset_array_ms``. Medians of rounds over the same episodes.
    """
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        progress("recording the oracle's episodes")
        episodes = _oracle_episodes()
        progress("text interface")
        steps, reset = _play("text", episodes)
        progress("array interface")
        steps_array, reset_array = _play("array", episodes)
        progress("cold resets")
        cold = _cold([task_id for task_id, _ in episodes[:_COLD_RESETS]])
    finally:
        os.sched_setaffinity(0, cores)
    return {
        "tool_steps_per_s": steps,
        "tool_steps_per_s_array": steps_array,
        "tool_reset_ms": reset,
        "tool_reset_array_ms": reset_array,
        "tool_reset_cold_ms": cold,
    }


def _oracle_episodes() -> list[tuple[str, list[ToolCall]]]:
    env = gymnasium.make(_ID, interface="text", disable_env_checker=True)
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


def _play(interface: str, episodes: list[tuple[str, list[ToolCall]]]) -> tuple[float, float]:
    """Steps a second and milliseconds a reset, medians of rounds; the first round warms up and does not count."""
    env = gymnasium.make(_ID, interface=interface, disable_env_checker=True)
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


def _cold(task_ids: list[str]) -> float:
    """Milliseconds of a reset after every cache has been emptied, median."""
    env = gymnasium.make(_ID, interface="text", disable_env_checker=True).unwrapped
    env.reset(seed=0)
    times = []
    for task_id in task_ids:
        started = time.perf_counter()
        env.full_reset(seed=0, options={"task_id": task_id})  # type: ignore[attr-defined]
        times.append(time.perf_counter() - started)
    env.close()
    return 1_000 * statistics.median(times)
