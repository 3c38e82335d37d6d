"""CandidatePPO: PPO over any number of candidates, on what comes from environments that each go at their own pace; and imitation before it.

Names are loaded when they are first used: the configuration can be read where torch is not installed.
"""

import importlib
from typing import TYPE_CHECKING, Any

from agent_gym.errors import MissingExtra

if TYPE_CHECKING:
    from agent_gym.baselines.candidate_ppo.config import CandidatePPOConfig
    from agent_gym.baselines.candidate_ppo.learner import train
    from agent_gym.baselines.candidate_ppo.saved import CandidatePPOPolicy

__all__ = ["CandidatePPOConfig", "CandidatePPOPolicy", "train"]

_PLACES = {"CandidatePPOConfig": "config", "CandidatePPOPolicy": "saved", "train": "learner"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "tensorboard"):
            raise MissingExtra(error.name, "train") from error
        raise
