"""The benchmark: every policy on every environment, by command lines that anyone can run again, and the table made of their answers."""

from agent_gym.report.benchmark.plan import Chain, Command, Plan, plan
from agent_gym.report.benchmark.suites import POLICIES, SUITES, Part, Recipe, Suite
from agent_gym.report.benchmark.table import collect
from agent_gym.report.benchmark.work import Event, FolderBusy, work

__all__ = ["POLICIES", "SUITES", "Chain", "Command", "Event", "FolderBusy", "Part", "Plan", "Recipe", "Suite", "collect", "plan", "work"]
