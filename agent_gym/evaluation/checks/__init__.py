"""Checks of what an environment promises, each with what was seen."""

from agent_gym.evaluation.checks.clean_start import check_clean_start
from agent_gym.evaluation.checks.determinism import check_determinism
from agent_gym.evaluation.checks.reward import check_reward
from agent_gym.evaluation.checks.spaces import check_spaces
from agent_gym.evaluation.checks.truncation import check_truncation

__all__ = ["check_clean_start", "check_determinism", "check_reward", "check_spaces", "check_truncation"]
