"""An episode as a report shows it, step by step, from its rows in a trajectory store."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_gym.report.figures import readable

__all__ = ["EpisodeView", "StepView", "episode_view"]

_LONGEST = 20_000
_INLINE = 64
_FLAT = 96
_FOLDED_FROM = 3


@dataclass(frozen=True)
class Passage:
    """A text of any length, ready to be shown.

    Attributes:
        text: The text, cut where it is very long.
        left_out: Characters cut off.
        folded: Whether it is folded until someone asks for it.
        gist: One line that stands for it while it is folded.
    """

    text: str
    left_out: int
    folded: bool
    gist: str

    @classmethod
    def of(cls, value: Any) -> "Passage":
        """Lays out a text or another JSON value."""
        text = readable(value)
        flat = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if not isinstance(value, str) and len(flat) <= _FLAT:
            text = flat
        folded = text.count("\n") >= _FOLDED_FROM or len(text) > 4 * _INLINE
        return cls(text[:_LONGEST], max(0, len(text) - _LONGEST), folded, " ".join(flat[:400].split()))


@dataclass(frozen=True, kw_only=True)
class StepView:
    """One step.

    Attributes:
        index: From 1; the reset is not shown.
        call: The tool's name, or empty where the action could not be read.
        arguments: Its arguments, JSON values.
        given: What the policy gave, where it could not be read as a call.
        status: Status of the result, one of `agent_gym.core.tool.STATUSES`.
        result: A text or another JSON value.
        reward: None where it is not valid.
        milestones: Those first reached in this step.
    """

    index: int
    call: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    given: str = ""
    status: str = "ok"
    result: Any = ""
    reward: float | None = 0.0
    milestones: tuple[str, ...] = ()

    @property
    def inline(self) -> str:
        """All arguments in one line, or empty where they need more."""
        line = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in self.arguments.items())
        return line if len(line) <= _INLINE else ""

    @property
    def rows(self) -> list[tuple[str, Passage]]:
        """The arguments one by one; texts as they are, line by line."""
        return [(name, Passage.of(value)) for name, value in self.arguments.items()]

    @property
    def outcome(self) -> Passage:
        """The result, laid out."""
        return Passage.of(self.result)


@dataclass(frozen=True, kw_only=True)
class EpisodeView:
    """One episode.

    Attributes:
        policy: Who acted, in the report's words.
        task_id: The task.
        task_type: Its family.
        goal: What the agent was asked to do.
        outcome: One of `agent_gym.trajectories.episode.OUTCOMES`.
        end_reason: The ending, or empty.
        reward: The sum; None where it is not valid.
        steps: In order.
        error: What failed, for an infrastructure error.
    """

    policy: str
    task_id: str
    task_type: str
    goal: str
    outcome: str
    end_reason: str = ""
    reward: float | None = None
    steps: tuple[StepView, ...] = ()
    error: str = ""


def episode_view(episode: Mapping[str, Any], steps: Iterable[Mapping[str, Any]], *, policy: str | None = None) -> EpisodeView:
    """Makes the view of an episode.

    Args:
        episode: Its row of the table ``episodes``.
        steps: Its rows of the table ``steps``, in order.
        policy: What to call the policy; by default its id.
    """
    shown: list[StepView] = []
    reached: set[str] = set()
    for row in steps:
        milestones = tuple(name for name in row["milestones"] or () if name not in reached)
        reached.update(milestones)
        if row["step"]:
            shown.append(_step(row, milestones))
    return EpisodeView(
        policy=policy or episode["policy_id"] or "unknown",
        task_id=episode["task_id"] or "",
        task_type=episode["task_type"] or "",
        goal=episode["goal"] or "",
        outcome=episode["outcome"],
        end_reason=episode["end_reason"] or "",
        reward=episode["reward_total"],
        steps=tuple(shown),
        error=episode["error"] or "",
    )


def _step(row: Mapping[str, Any], milestones: tuple[str, ...]) -> StepView:
    action: dict[str, Any] = json.loads(row["action"]) if row["action"] else {"name": "", "arguments": {}}
    failed = row["ending"] == "infra_error"  # the observation is then the one before
    last = None if failed else json.loads(row["obs_data"] or "{}").get("last")
    return StepView(
        index=row["step"],
        call=action["name"],
        arguments=action["arguments"],
        given=row["given"] or "",
        status="infra_error" if failed else row["status"] or "unknown",
        result=last["result"] if last else row["invalid_reason"] or "",
        reward=row["reward"],
        milestones=milestones,
    )
