"""Stable-Baselines3's learners with a policy class that scores candidates and a warm start from demonstrations; two that wait for nobody.

Names are loaded when they are first used: the configuration can be read where torch is not installed.
"""

import importlib
from typing import TYPE_CHECKING, Any

from agent_gym.errors import MissingExtra

if TYPE_CHECKING:
    from agent_gym.baselines.sb3.asynchronous import AsyncMaskablePPO, AsyncPPO
    from agent_gym.baselines.sb3.bc import Demonstrations, clone, demonstrate
    from agent_gym.baselines.sb3.config import ALGORITHMS, TrainConfig
    from agent_gym.baselines.sb3.policy import CandidatePolicy
    from agent_gym.baselines.sb3.saved import SB3Policy
    from agent_gym.baselines.sb3.training import TrainResult, train

__all__ = [
    "ALGORITHMS",
    "AsyncMaskablePPO",
    "AsyncPPO",
    "CandidatePolicy",
    "Demonstrations",
    "SB3Policy",
    "TrainConfig",
    "TrainResult",
    "clone",
    "demonstrate",
    "train",
]

_PLACES = {
    "ALGORITHMS": "config",
    "AsyncMaskablePPO": "asynchronous",
    "AsyncPPO": "asynchronous",
    "CandidatePolicy": "policy",
    "Demonstrations": "bc",
    "SB3Policy": "saved",
    "TrainConfig": "config",
    "TrainResult": "training",
    "clone": "bc",
    "demonstrate": "bc",
    "train": "training",
}
_EXTRA = ("torch", "stable_baselines3", "sb3_contrib", "tensorboard")


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name in _EXTRA:
            raise MissingExtra(error.name, "train") from error
        raise
