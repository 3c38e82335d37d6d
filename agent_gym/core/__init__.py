"""The words every layer shares: observations, tool calls, tasks, sessions, verdicts, records. Imports nothing above itself."""

from agent_gym.core.action import ToolCall, parse_action
from agent_gym.core.observation import Observation
from agent_gym.core.perturbation import Perturbation
from agent_gym.core.policy import Decision, Policy
from agent_gym.core.record import StepRecord
from agent_gym.core.session import Change, Session, Snapshot
from agent_gym.core.task import Selection, Task, TaskSet
from agent_gym.core.tool import STATUSES, CallRecord, ToolResult, ToolSpec
from agent_gym.core.verdict import Check, Ending, Verdict

__all__ = [
    "STATUSES",
    "CallRecord",
    "Change",
    "Check",
    "Decision",
    "Ending",
    "Observation",
    "Perturbation",
    "Policy",
    "Selection",
    "Session",
    "Snapshot",
    "StepRecord",
    "Task",
    "TaskSet",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Verdict",
    "parse_action",
]
