"""What wrappers cost: the same calls with each of them and without, in turn, in one process, on one core."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from agent_gym.bench.playing import Episodes, one_core, oracle_episodes
from agent_gym.factory import make

__all__ = ["WRAPPERS", "measure"]

_ENV_ID, _ENV = "agent_gym:AgentBase/ToolTask-v0", "agent_gym.envs.tool_task:ToolTask"
_ROUNDS = 4

WRAPPERS: dict[str, tuple[str, dict[str, Any]]] = {
    "aggregate_reward": ("AggregateReward", {"sources": {"outcome": 1.0, "violation": 1.0, "legality": 0.1, "progress": 0.2}}),
    "potential_shaping": ("PotentialShaping", {"phi": "agent_gym.bench.wrappers:steps_made", "gamma": 0.98}),
    "normalize_return": ("NormalizeReturn", {}),
    "inject_reward": ("InjectReward", {}),
    "step_deadline": ("StepDeadline", {"seconds": 30}),
    "episode_budget": ("EpisodeBudget", {"steps": 1_000, "calls": 10_000, "tokens": 10_000_000, "cost": 1e6, "cost_per_token": 1e-6}),
    "context_budget": ("ContextBudget", {}),
    "restrict_actions": ("RestrictActions", {"level": "level3"}),
    "loop_guard": ("LoopGuard", {}),
    "perturb_tasks": ("PerturbTasks", {"share": 0}),
}
"""The wrappers that do no input or output, by the names of their keys, with what they are made with."""


def steps_made(observation: Mapping[str, Any]) -> float:
    """A potential that costs next to nothing."""
    return float(observation["data"]["step"]) / 100


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Plays the oracle's episodes of ToolTask in two environments at once, each call first in one and then in the other.

    Returns:
        ``<name>_us`` for each of `WRAPPERS`: the median of what a step takes longer with it; and ``bare_step_us``, of a step without.
    """
    metrics: dict[str, float] = {}
    bare_us: list[float] = []
    with one_core():
        episodes = oracle_episodes(_ENV_ID)
        for name, (wrapper, keywords) in WRAPPERS.items():
            progress(wrapper)
            longer, bare = _compare([f"agent_gym.wrappers:{wrapper}", keywords], episodes)
            metrics[f"{name}_us"] = statistics.median(longer)
            bare_us += bare
    return {**metrics, "bare_step_us": statistics.median(bare_us)}


def _compare(wrapper: list[Any], episodes: Episodes) -> tuple[list[float], list[float]]:
    """For each step, the microseconds that it took longer with the wrapper, and those without. The first round warms up."""
    bare, wrapped = make(env=_ENV, interface="text").rich, make(env=_ENV, interface="text", rich_wrappers=[wrapper]).rich
    longer, without = [], []
    for number in range(_ROUNDS + 1):
        for task_id, calls in episodes:
            for env in (bare, wrapped):
                env.reset(seed=0, options={"task_id": task_id})
            for step, call in enumerate(calls):
                order = (bare, wrapped) if (number + step) % 2 else (wrapped, bare)  # the second finds caches warm
                spent = {env: _timed(env.step, call) for env in order}
                if number:
                    longer.append(spent[wrapped] - spent[bare])
                    without.append(spent[bare])
    bare.close()
    wrapped.close()
    return longer, without


def _timed(step: Callable[[Any], Any], call: Any) -> float:
    started = time.perf_counter()
    step(call)
    return 1e6 * (time.perf_counter() - started)
