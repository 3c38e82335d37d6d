"""How fast web tasks are: steps and resets of ``AgentBase/WebTask-v0`` in one process, on one core, pages run in process."""

from collections.abc import Callable

from agent_gym.bench.playing import one_core, oracle_episodes, play

__all__ = ["measure"]

_ID = "agent_gym:AgentBase/WebTask-v0"


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """Plays the oracle's episodes again and again.

    Returns:
        ``web_inprocess_steps_per_s`` (rich observations, tool calls) and ``web_inprocess_steps_per_s_array`` (arrays,
        candidates), both of `step` alone; ``web_inprocess_reset_ms`` of the text interface, with warm caches. Medians of rounds
        over the same episodes.
    """
    with one_core():
        progress("recording the oracle's episodes")
        episodes = oracle_episodes(_ID)
        progress("text interface")
        steps, reset = play(_ID, "text", episodes)
        progress("array interface")
        steps_array, _ = play(_ID, "array", episodes)
    return {
        "web_inprocess_steps_per_s": steps,
        "web_inprocess_steps_per_s_array": steps_array,
        "web_inprocess_reset_ms": reset,
    }
