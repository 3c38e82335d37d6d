"""A recorded episode, as far as it can be played again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agent_gym.errors import ConfigurationError, InvalidAction
from agent_gym.trajectories.store import TrajectoryStore

__all__ = ["Recording"]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Recording:
    """The rows of one episode.

    Attributes:
        row: Its row of ``episodes``.
        steps: Its rows of ``steps``, the reset first.
        calls: Its rows of ``tool_calls``, by the number of the step.
    """

    row: Row
    steps: Sequence[Row]
    calls: Mapping[int, Sequence[Row]]

    @classmethod
    def load(cls, store: TrajectoryStore, episode_id: str) -> "Recording":
        """Reads an episode.

        Raises:
            ConfigurationError: Its beginning, its seed or some of its steps are not in the record.
            StoreError: There is no such episode, or a file cannot be read.
        """
        row, steps = store.episode(episode_id), list(store.steps(episode_id))
        calls: dict[int, list[Row]] = {}
        for call in store.tool_calls(episode_id):
            calls.setdefault(call["step"], []).append(call)
        if row["seed"] is None or row["episode_index"] is None or [step["step"] for step in steps] != list(range(len(steps))) or not steps:
            why = f"{row['outcome']}, {len(steps)} steps" + (f", goes on from {parent}" if (parent := row["parent_episode_id"]) else "")
            raise ConfigurationError(f"episode {episode_id} cannot be played again: its record has no whole beginning ({why})")
        return cls(row, steps, calls)

    @property
    def options(self) -> dict[str, Any]:
        """What its reset was asked for."""
        options: dict[str, Any] = orjson.loads(self.row["reset_options"] or "{}")
        return options

    @property
    def playable(self) -> int:
        """The number of steps that can be played again: all but one in which the environment itself failed."""
        return len(self.steps) - 1 - int(self.steps[-1]["ending"] == "infra_error")

    def action(self, number: int, *, as_given: bool = True) -> Any:
        """What ``step`` is to be given for a step.

        Args:
            number: The step, from 1.
            as_given: The index or the text that it was given, where it was one; else the call as it was read.
        """
        step = self.steps[number]
        if as_given and step["given"] is not None:
            return step["given"]
        return (
            InvalidAction(step["invalid_reason"] or "action: not in the record") if step["action"] is None else orjson.loads(step["action"])
        )
