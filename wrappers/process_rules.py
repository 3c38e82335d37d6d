"""What `AggregateReward` can ask about a step: rules about how an agent goes about its task, whatever comes of it."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_gym.core.canonical import plain
from agent_gym.core.record import StepRecord
from agent_gym.core.tool import CALL_FAILED
from agent_gym.wrappers.reward_wrapper import Transition

__all__ = ["RULES", "told"]

_PASSING = frozenset({"rate_limited", "unavailable", "timeout", "outcome_unknown"})
"""Failures after which the same call again is no mistake."""


def told(record: StepRecord) -> dict[str, Any]:
    """A step as the history keeps it, as JSON values."""
    result = record.result
    step: dict[str, Any] = {
        "call": None if record.call is None else plain(record.call.to_dict()),
        "status": "" if result is None else result.status,
        "invalid": record.invalid,
        "result": None if result is None else plain(result.content if result.structured is None else result.structured),
        "digest": record.digest,
        "milestones": len(record.milestones),
    }
    return step


def legality(now: Transition) -> float:
    """−1 for an action that was invalid or forbidden, else 0."""
    return -1.0 if _illegal(now.history[-1]) else 0.0


def legal(now: Transition) -> float:
    """1 until an action was invalid or forbidden, then 0; to be a gate."""
    return 0.0 if any(_illegal(step) for step in now.history) else 1.0


def progress(now: Transition) -> float:
    """By how much the share of milestones reached has changed, in [−1, 1]."""
    return (now.history[-1]["milestones"] - now.history[-2]["milestones"]) / now.milestones if now.milestones else 0.0


def repeated_error(now: Transition) -> float:
    """−1 for a call that has failed in the same way before, with nothing changed since, else 0. Failures that pass do not count."""
    *earlier, step = now.history
    if step["status"] not in CALL_FAILED - _PASSING:
        return 0.0
    return -1.0 if any(all(step[key] == before[key] for key in ("call", "status", "invalid", "digest")) for before in earlier) else 0.0


def turns(now: Transition, low: int, high: int) -> float:
    """At the end: 0 for a number of steps within the range, else minus the distance to it by its upper end, −1 at least."""
    count = len(now.history) - 1
    return -min(1.0, max(low - count, count - high, 0) / high)


RULES: dict[str, Callable[..., float]] = {
    "legality": legality,
    "legal": legal,
    "progress": progress,
    "repeated_error": repeated_error,
    "turns": turns,
}
"""The rules by name."""


def _illegal(step: Mapping[str, Any]) -> bool:
    return bool(step["invalid"]) or step["status"] == "forbidden"
