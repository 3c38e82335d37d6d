"""An environment that rewards and ends wrongly, in one way at a time: what ``agent-gym check reward`` and ``truncation`` must name."""

from dataclasses import replace
from typing import Any, ClassVar

from agent_gym.core.verdict import Ending
from agent_gym.errors import unknown
from agent_gym.testing.small import SmallTask

__all__ = ["MisjudgingTask"]


class MisjudgingTask(SmallTask):
    """`SmallTask` with a defect planted into how it is judged.

    ======================= ==============================================================================
    ``sign_flipped``        success costs and a violation pays
    ``violation_pays``      a violation is paid like a success
    ``everybody_is_paid``   closing pays, whatever has been done
    ``parts_do_not_sum``    the reward holds what no part says
    ``record_disagrees``    the record keeps another reward than the learner gets
    ``shaping_stays``       the potential of the last state is not taken back when the task ends
    ``limit_terminates``    an episode that is cut at its limit says that it has terminated
    ``finish_truncates``    an episode that was closed says that it was cut
    ``final_forgotten``     after the last step before a cut the observation is that of the start
    ======================= ==============================================================================

    Args:
        defect: One of these; None plants nothing.
        **keywords: `SmallTask`'s.
    """

    version: ClassVar[str] = "1"
    DEFECTS: ClassVar[tuple[str, ...]] = (
        "sign_flipped",
        "violation_pays",
        "everybody_is_paid",
        "parts_do_not_sum",
        "record_disagrees",
        "shaping_stays",
        "limit_terminates",
        "finish_truncates",
        "final_forgotten",
    )

    def __init__(self, *, defect: str | None = None, **keywords: Any) -> None:
        if defect is not None and defect not in self.DEFECTS:
            raise unknown("defect", defect, self.DEFECTS)
        self._defect = defect
        super().__init__(defects=("over_reach", "do_harm"), **keywords)
        self._first: dict[str, Any] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode."""
        self._first, info = super().reset(seed=seed, options=options)
        return self._first, info

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carries out an action, and misjudges what came of it."""
        observation, reward, terminated, truncated, info = super().step(action)
        info["reward_parts"] = parts = self._misjudged(info["reward_parts"], info["ending"])
        reward = sum(parts.values())
        if self._defect != "record_disagrees":
            self._running.record = replace(self.last_record, reward=reward, reward_parts=dict(parts))
        if self._defect == "parts_do_not_sum" and info["ending"]:
            reward += 0.5
        if (self._defect == "limit_terminates" and truncated) or (self._defect == "finish_truncates" and terminated):
            terminated, truncated = truncated, terminated
        if self._defect == "final_forgotten" and truncated:
            observation = self._first
        return observation, reward, terminated, truncated, info

    def _misjudged(self, parts: dict[str, float], ending: str) -> dict[str, float]:
        if self._defect == "sign_flipped":
            return {name: -value for name, value in parts.items()}
        if self._defect == "violation_pays" and ending == Ending.VIOLATION:
            return {**parts, "violation": 1.0}
        if self._defect == "everybody_is_paid" and ending == Ending.FAILURE:
            return {**parts, "outcome": 1.0}
        if self._defect == "record_disagrees" and ending:
            return {**parts, "outcome": 2.0 * parts["outcome"]}
        if self._defect == "shaping_stays" and ending == Ending.SUCCESS:
            return {**parts, "shaping": 0.0}
        return parts
