"""The text interface, for language models and programs: rich observations out, tool calls in."""

from typing import Any

import gymnasium

from agent_gym.interface.base import Interface

__all__ = ["TextInterface"]


class TextInterface(Interface):
    """Passes rich observations and tool calls through.

    Observations are ``{"text": str, "data": dict}``. Actions are `ToolCall` objects, dicts ``{"name", "arguments"}`` or text, as
    JSON or as ``name(argument=value)``.
    """

    def __init__(self, rich: gymnasium.Env[Any, Any]) -> None:
        super().__init__(rich)
        self.observation_space = rich.observation_space
        self.action_space = rich.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode; see `AgentEnv.reset`."""
        super().reset(seed=seed)
        return self.rich.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carries out one action; see `AgentEnv.step`."""
        observation, reward, terminated, truncated, info = self.rich.step(action)
        return observation, float(reward), terminated, truncated, self._with_ending(info, truncated)
