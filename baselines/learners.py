"""The algorithms that ``agent-gym train`` knows, and where each one's configuration and training are found."""

from agent_gym.baselines.candidate_ppo.config import CandidatePPOConfig
from agent_gym.baselines.sb3.config import ALGORITHMS, TrainConfig

__all__ = ["LEARNERS"]

LEARNERS: dict[str, tuple[type[TrainConfig], str]] = {
    **dict.fromkeys(ALGORITHMS, (TrainConfig, "agent_gym.baselines.sb3:train")),
    "candidate-ppo": (CandidatePPOConfig, "agent_gym.baselines.candidate_ppo:train"),
}
"""By name: the class of the configuration, and the import string of what trains with it."""
