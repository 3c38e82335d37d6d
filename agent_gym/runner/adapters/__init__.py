"""What makes a pool look like another library's vector environment."""

import importlib
from typing import TYPE_CHECKING, Any

from agent_gym.runner.adapters.gymnasium import AgentVectorEnv, make_vec

if TYPE_CHECKING:
    from agent_gym.runner.adapters.sb3 import AgentVecEnv

__all__ = ["AgentVecEnv", "AgentVectorEnv", "make_vec"]


def __getattr__(name: str) -> Any:
    if name != "AgentVecEnv":  # Stable-Baselines3 is an extra
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("agent_gym.runner.adapters.sb3").AgentVecEnv
