"""The thin boundary that every call of every family goes through: checked, permitted, bounded in time, logged.

Calls of remote tools also meet what services do: faults on purpose, retries, a breaker, a cache; see `agent_gym.gateway.remote`.
"""

from agent_gym.gateway.faults import KINDS, NOT_SENT, FaultPlan
from agent_gym.gateway.gateway import WAIT, Boundary, Gateway, Outcome, Tape, check_tools, first_fault
from agent_gym.gateway.permissions import LEVELS, Permissions, issue_token
from agent_gym.gateway.resilience import Concurrency, ConcurrencyReport, Resilience, concurrency_report

__all__ = [
    "KINDS",
    "LEVELS",
    "NOT_SENT",
    "WAIT",
    "Boundary",
    "Concurrency",
    "ConcurrencyReport",
    "FaultPlan",
    "Gateway",
    "Outcome",
    "Permissions",
    "Resilience",
    "Tape",
    "check_tools",
    "concurrency_report",
    "first_fault",
    "issue_token",
]
