"""One episode's row, folded from the rows of its steps and calls."""

from datetime import UTC, datetime
from typing import Any

from agent_gym.core.closing import OWN
from agent_gym.core.tool import CALL_FAILED

__all__ = ["OUTCOMES", "Episode", "time_of"]

_OUTCOME_OF = {
    "success": "success",
    "failure": "failure",
    "violation": "failure",
    "abstained": "abstained",
    "step_limit": "truncated",
    "deadline": "truncated",
    "budget": "truncated",
    "infra_error": "infra_error",
}

OUTCOMES = ("success", "failure", "abstained", "truncated", "infra_error", "interrupted")
"""Every outcome an episode in the store can have. Rewards of the last two are not valid."""


class Episode:
    """Collects what an episode's row says.

    Args:
        header: The row's columns that were known when it began, and ``started_us``.
    """

    def __init__(self, header: dict[str, Any]) -> None:
        started = header.pop("started_us")
        self.id: str = header["episode_id"]
        self._row: dict[str, Any] = {**header, "started_at": time_of(started)}
        self._last_us: int = started
        self._last_step = -1
        self._end: dict[str, Any] | None = None
        self._reward = 0.0
        self._reward_known = True
        self._parts: dict[str, float] = {}
        self._milestones: dict[str, int] = {}
        self._gaps: dict[str, None] = {}
        counted = ("n_turns", "n_tool_calls", "n_tool_failures", "n_invalid_actions", "n_retries", "n_faults")
        self._counts = dict.fromkeys(counted, 0)
        self._spent = dict.fromkeys(("env_us", "grade_us", "tool_us"), 0)
        self._told: dict[str, float] = {}

    def add(self, step: dict[str, Any], calls: list[dict[str, Any]]) -> None:
        """Takes in a step and the attempts of its call."""
        row, counts = self._row, self._counts
        self._last_step = step["step"]
        self._last_us = step["t_us"]
        row.setdefault("initial_state_digest", step["state_digest"])
        row["final_state_digest"] = step["state_digest"] or row.get("final_state_digest")
        self._spent["env_us"] += step["env_us"]
        self._spent["grade_us"] += step["grade_us"]
        row |= {name: step[name] for name in ("retry_safety", "n_useless_questions") if name in step}
        for name in step.get("milestones", ()):
            self._milestones.setdefault(name, step["step"])
        for name in step.get("gaps", ()):
            self._gaps[name] = None
        if "action_valid" not in step:
            return
        counts["n_turns"] += 1
        counts["n_invalid_actions"] += not step["action_valid"]
        if calls:
            counts["n_retries"] += len(calls) - 1
            counts["n_faults"] += sum("fault" in call for call in calls)
            self._spent["tool_us"] += sum(call["dur_us"] for call in calls)
            if calls[-1]["tool"] not in OWN:
                counts["n_tool_calls"] += 1
                counts["n_tool_failures"] += calls[-1]["status"] in CALL_FAILED
        if step["reward"] is None:
            self._reward_known = False
        else:
            self._reward += step["reward"]
        for part in step.get("reward_parts", ()):
            self._parts[part["name"]] = self._parts.get(part["name"], 0.0) + part["score"]
        if (version := step.get("policy_version")) is not None:
            row.setdefault("policy_version_start", version)
            row["policy_version_end"] = version
        if (stage := step.get("stage")) is not None:
            row.setdefault("stage", stage)
        for name in ("prompt_tokens", "completion_tokens", "cost_usd", "model_us", "human_s"):
            if step.get(name) is not None:
                self._told[name] = self._told.get(name, 0) + step[name]

    def survives(self, lost: int, entry: dict[str, Any]) -> bool:
        """Whether an entry goes on with this episode although the lines before it are lost; if so, that is one of its gaps."""
        self._gaps["damaged_log"] = None
        return self._end is None and "step" in entry and entry["step"]["step"] == self._last_step + lost + 1

    def end(self, end: dict[str, Any]) -> None:
        """Takes in how it ended."""
        self._end = end
        self._last_us = end.get("t_us", self._last_us)

    def row(self) -> dict[str, Any]:
        """The row. An episode that never ended is ``interrupted``."""
        end = self._end or {}
        ending, success = end.get("ending"), end.get("success")
        if self._end is None:
            outcome = "interrupted"
        elif ending is None:
            outcome = "success" if success else "failure"
        else:
            outcome = _OUTCOME_OF.get(ending, "failure")
        if outcome == "truncated" and success is None:
            success = False
        valid = outcome not in ("infra_error", "interrupted") and end.get("reward_valid", True)
        return {
            **self._row,
            **self._counts,
            **self._spent,
            **self._told,
            "ended_at": time_of(self._last_us),
            "outcome": outcome,
            "end_reason": ending,
            "success": success if valid else None,
            "reward_valid": valid,
            "reward_total": self._reward if valid and self._reward_known else None,
            "reward_parts": [{"name": name, "score": score} for name, score in self._parts.items()],
            "milestones": [{"name": name, "step": step} for name, step in self._milestones.items()],
            "gaps": list(self._gaps),
            "error": end.get("error"),
            "blobs": [*self._row.get("blobs", ()), *end.get("blobs", ())] or None,
            "checks": end.get("checks"),
            "changes": end.get("changes"),
        }


def time_of(us: int) -> datetime:
    """Microseconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000)
