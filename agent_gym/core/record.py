"""What happened in one step, for recorders and reports. Clock readings live here and never in observations or infos."""

from dataclasses import dataclass, field
from typing import Any

from agent_gym.core.action import ToolCall
from agent_gym.core.canonical import plain
from agent_gym.core.observation import Observation
from agent_gym.core.session import Change
from agent_gym.core.task import Task
from agent_gym.core.tool import CallRecord, ToolResult
from agent_gym.core.verdict import Check, Ending

__all__ = ["StepRecord"]


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One step, complete; step 0 is the reset.

    Attributes:
        task: The episode's task.
        root_seed: What ``reset(seed=…)`` was given, or drawn.
        episode: Resets since the root seed was set.
        step: From 0, the reset.
        call: The call as it was read, or None for the reset and for an action that could not be read.
        result: The result as the agent sees it, or None for the reset.
        attempts: Every attempt, with its times.
        invalid: Why the action was invalid, else empty.
        observation: The rich observation after the step.
        reward: Its sum; None where it is not valid.
        reward_parts: Named parts of the reward.
        reward_valid: False where an infrastructure failure leaves the reward unknown.
        milestones: Milestones reached so far.
        digest: The state's digest after the step.
        changes: What differs from the episode's start; filled at its end.
        checks: What the verdict rests on; filled at its end.
        ending: Empty while the episode runs.
        success: None until known.
        gaps: What could not be shown or observed, by name.
        env_us: Microseconds spent in the environment.
        grade_us: Microseconds of those spent on the verdict.
        error: What failed, for an infrastructure error.
        retry_safety: How often the agent dealt unwisely with failures so far, by kind; see `agent_gym.gateway.safety`.
        useless_questions: How many questions so far brought nothing new; None where there is nobody to ask.
    """

    task: Task
    root_seed: int
    episode: int
    step: int
    call: ToolCall | None
    result: ToolResult | None
    attempts: tuple[CallRecord, ...]
    invalid: str
    observation: Observation
    reward: float | None
    reward_parts: dict[str, float]
    reward_valid: bool
    milestones: tuple[str, ...]
    digest: str
    changes: tuple[Change, ...] = ()
    checks: tuple[Check, ...] = ()
    ending: Ending | None = None
    success: bool | None = None
    gaps: tuple[str, ...] = ()
    env_us: int = 0
    grade_us: int = 0
    error: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    retry_safety: dict[str, int] = field(default_factory=dict)
    useless_questions: int | None = None

    def public(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The observation and the info that a step gives; nothing in them is shared with the record."""
        info: dict[str, Any] = {
            "task_id": self.task.id,
            "task_type": self.task.type,
            "difficulty": self.task.difficulty,
            "status": self.result.status if self.result is not None else "ok",
            "invalid_action": bool(self.invalid),
            "ending": str(self.ending) if self.ending is not None else "",
            "reward_parts": dict(self.reward_parts),
            "reward_valid": self.reward_valid,
            "gaps": list(self.gaps),
        }
        if self.success is not None:
            info["success"] = info["is_success"] = self.success
        shown = self.observation
        return Observation(shown.text, plain(shown.data), None if shown.image is None else shown.image.copy()).to_dict(), info
