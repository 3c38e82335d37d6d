"""How fast tool tasks are: steps and resets of ``AgentBase/ToolTask-v0`` in one process, on one core."""

import statistics
import time
from collections.abc import Callable

import gymnasium

from agent_gym.bench.playing import one_core, oracle_episodes, play

__all__ = ["measure"]

_ID = "agent_gym:AgentBase/ToolTask-v0"
_COLD_RESETS = 25


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Plays the oracle's episodes again and again.

    Returns:
        ``tool_steps_per_s`` (rich observations, tool calls) and ``tool_steps_per_s_array`` (arrays, candidates), both of
        `step` alone; ``tool_reset_ms`` with warm caches and ``tool_reset_cold_ms`` with none, both of the text interface;
        ``tool_reset_array_ms``. Medians of rounds over the same episodes.
    """
    with one_core():
        progress("recording the oracle's episodes")
        episodes = oracle_episodes(_ID)
        progress("text interface")
        steps, reset = play(_ID, "text", episodes)
        progress("array interface")
        steps_array, reset_array = play(_ID, "array", episodes)
        progress("cold resets")
        cold = _cold([task_id for task_id, _ in episodes[:_COLD_RESETS]])
    return {
        "tool_steps_per_s": steps,
        "tool_steps_per_s_array": steps_array,
        "tool_reset_ms": reset,
        "tool_reset_array_ms": reset_array,
        "tool_reset_cold_ms": cold,
    }


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
