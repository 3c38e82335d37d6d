"""Wrappers: each changes one thing about an environment, and can be rebuilt from its arguments."""

if __name__ != "agent_gym.wrappers":
    raise ImportError(f"this is agent_gym.wrappers, not {__name__}; import agent_gym.wrappers")

from agent_gym.wrappers.aggregate_reward import AggregateReward
from agent_gym.wrappers.context_budget import ContextBudget
from agent_gym.wrappers.episode_budget import EpisodeBudget
from agent_gym.wrappers.inject_reward import InjectReward
from agent_gym.wrappers.loop_guard import LoopGuard
from agent_gym.wrappers.normalize_return import NormalizeReturn
from agent_gym.wrappers.perturb_tasks import PerturbTasks
from agent_gym.wrappers.potential_shaping import PotentialShaping
from agent_gym.wrappers.record_trajectory import RecordTrajectory
from agent_gym.wrappers.restrict_actions import RestrictActions
from agent_gym.wrappers.rich import RichWrapper
from agent_gym.wrappers.state_leak_check import StateLeakCheck
from agent_gym.wrappers.step_deadline import StepDeadline

__all__ = [
    "AggregateReward",
    "ContextBudget",
    "EpisodeBudget",
    "InjectReward",
    "LoopGuard",
    "NormalizeReturn",
    "PerturbTasks",
    "PotentialShaping",
    "RecordTrajectory",
    "RestrictActions",
    "RichWrapper",
    "StateLeakCheck",
    "StepDeadline",
]
