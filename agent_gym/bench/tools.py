"""How fast tool tasks are: steps and resets of ``AgentBase/ToolTask-v0`` in one process, on one core, and states of its worlds."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium

from agent_gym.bench.playing import one_core, oracle_episodes, play
from agent_gym.envs.worlds import load_worlds
from agent_gym.world import World, WorldKind

__all__ = ["measure"]

_ID = "agent_gym:AgentBase/ToolTask-v0"
_RETAIL: dict[str, Any] = {"worlds": ["retail"]}
_WORKSPACE: dict[str, Any] = {"worlds": ["workspace"]}
_COLD_RESETS = 25
_STATES = 200


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Plays the oracle's episodes again and again.

    Returns:
        Of the retail world ``tool_steps_per_s`` (rich observations, tool calls) and ``tool_steps_per_s_array`` (arrays, candidates),
        both of `step` alone; ``tool_reset_ms`` with warm caches and ``tool_reset_cold_ms`` with none, both of the text interface;
        ``tool_reset_array_ms``. Of the workspace ``workspace_steps_per_s`` and ``workspace_reset_ms``, both of the text interface.
        ``snapshot_ms`` and ``restore_ms``, a whole world's, of the world that takes longest. Medians.
    """
    with one_core():
        progress("recording the oracle's episodes")
        episodes = oracle_episodes(_ID, **_RETAIL)
        progress("text interface")
        steps, reset = play(_ID, "text", episodes, **_RETAIL)
        progress("array interface")
        steps_array, reset_array = play(_ID, "array", episodes, **_RETAIL)
        progress("cold resets")
        cold = _cold([task_id for task_id, _ in episodes[:_COLD_RESETS]])
        progress("workspace")
        workspace_steps, workspace_reset = play(_ID, "text", oracle_episodes(_ID, **_WORKSPACE), **_WORKSPACE)
        progress("snapshots")
        snapshots, restores = zip(*map(_states, load_worlds(None)), strict=True)
    return {
        "tool_steps_per_s": steps,
        "tool_steps_per_s_array": steps_array,
        "tool_reset_ms": reset,
        "tool_reset_array_ms": reset_array,
        "tool_reset_cold_ms": cold,
        "workspace_steps_per_s": workspace_steps,
        "workspace_reset_ms": workspace_reset,
        "snapshot_ms": max(snapshots),
        "restore_ms": max(restores),
    }


def _cold(task_ids: list[str]) -> float:
    """Milliseconds of a reset after every cache has been emptied, median."""
    env = gymnasium.make(_ID, interface="text", disable_env_checker=True, **_RETAIL).unwrapped
    env.reset(seed=0)
    times = []
    for task_id in task_ids:
        started = time.perf_counter()
        env.full_reset(seed=0, options={"task_id": task_id})  # type: ignore[attr-defined]
        times.append(time.perf_counter() - started)
    env.close()
    return 1_000 * statistics.median(times)


def _states(kind: WorldKind) -> tuple[float, float]:
    """Milliseconds in which a world of a kind is written down, and put back; medians."""
    world = World(kind.schema, kind.build(0))
    snapshots, restores = [], []
    for _ in range(_STATES):
        started = time.perf_counter()
        snapshot = world.snapshot()
        taken = time.perf_counter()
        world.restore(snapshot)
        snapshots.append(taken - started)
        restores.append(time.perf_counter() - taken)
    world.close()
    return 1_000 * statistics.median(snapshots), 1_000 * statistics.median(restores)
