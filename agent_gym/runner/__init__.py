"""Runs many environments at once: a pool that steps each at its own pace, its supervision, its tasks, and adapters to other libraries."""

import importlib
from typing import TYPE_CHECKING, Any

from agent_gym.runner.backends import Backend
from agent_gym.runner.messages import Batch, Row, Usage
from agent_gym.runner.pool import AsyncPool
from agent_gym.runner.schedulers import PRESETS, SCHEDULERS, Scheduler
from agent_gym.runner.server import PolicyServer, ServedStep
from agent_gym.runner.tasks import TaskQueue

if TYPE_CHECKING:
    from agent_gym.runner.adapters.gymnasium import AgentVectorEnv
    from agent_gym.runner.adapters.sb3 import AgentVecEnv
    from agent_gym.runner.monitor import PoolStats, ServerStats

_LATER = {  # Stable-Baselines3 is an extra, and the others need the pool first
    "AgentVectorEnv": "agent_gym.runner.adapters.gymnasium",
    "AgentVecEnv": "agent_gym.runner.adapters.sb3",
    "PoolStats": "agent_gym.runner.monitor",
    "ServerStats": "agent_gym.runner.monitor",
}

__all__ = [
    "PRESETS",
    "SCHEDULERS",
    "AgentVecEnv",
    "AgentVectorEnv",
    "AsyncPool",
    "Backend",
    "Batch",
    "PolicyServer",
    "PoolStats",
    "Row",
    "Scheduler",
    "ServedStep",
    "ServerStats",
    "TaskQueue",
    "Usage",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
