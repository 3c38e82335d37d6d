"""Gymnasium environments for agents that use tools, and the means to train and measure policies on them.

Importing this package registers the ids and nothing else: public names are loaded when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium

from agent_gym.registry import IDS, VERSION

if TYPE_CHECKING:
    from agent_gym.agent_env import AgentEnv
    from agent_gym.core import Decision, Ending, Observation, Policy, Session, Task, TaskSet, ToolCall, ToolResult, ToolSpec, Verdict
    from agent_gym.errors import AgentGymError
    from agent_gym.evaluation import evaluate
    from agent_gym.runner.adapters import make_vec
    from agent_gym.trajectories import TrajectoryStore

__version__ = VERSION

_CORE = ("Decision", "Ending", "Observation", "Policy", "Session", "Task", "TaskSet", "ToolCall", "ToolResult", "ToolSpec", "Verdict")
_PUBLIC = {
    **dict.fromkeys(_CORE, "agent_gym.core"),
    "AgentEnv": "agent_gym.agent_env",
    "AgentGymError": "agent_gym.errors",
    "TrajectoryStore": "agent_gym.trajectories",
    "evaluate": "agent_gym.evaluation",
    "make_vec": "agent_gym.runner.adapters",
}

__all__ = [
    "AgentEnv",
    "AgentGymError",
    "Decision",
    "Ending",
    "Observation",
    "Policy",
    "Session",
    "Task",
    "TaskSet",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "TrajectoryStore",
    "Verdict",
    "__version__",
    "evaluate",
    "make_vec",
]

for _id, _env in IDS.items():
    gymnasium.register(_id, entry_point="agent_gym.factory:make", kwargs={"env": _env})


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
