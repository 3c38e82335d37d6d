"""Playing a recorded episode again, in a fresh environment, and making the rows of it that a recorder would make."""

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson

from agent_gym.core.action import ToolCall
from agent_gym.core.record import StepRecord
from agent_gym.errors import InfrastructureError
from agent_gym.interface import ArrayInterface
from agent_gym.interface.base import offering
from agent_gym.trajectories.env_spec import innermost, rebuild
from agent_gym.trajectories.episode import Episode
from agent_gym.trajectories.log import encoded
from agent_gym.trajectories.replay.cassette import Cassette
from agent_gym.trajectories.replay.elements import translated
from agent_gym.trajectories.replay.recording import Recording
from agent_gym.trajectories.rows import as_json, drawn_digest, now_us, step_entry, step_row, task_digest, tools_version

__all__ = ["Playback", "Taken"]


class Taken(NamedTuple):
    """A step that was played again.

    Attributes:
        step: Its row.
        calls: The rows of its attempts.
    """

    step: Mapping[str, Any]
    calls: list[dict[str, Any]]


class Playback:
    """Plays an episode again.

    Args:
        recording: The episode.
        interface: ``"array"`` or ``"text"`` in place of the recorded one.
        tape: What answers in the place of tools.

    Attributes:
        env: The environment.
        inner: The `AgentEnv` inside it.
        volatile: What may differ in its texts.
        observation: The newest observation, as ``step`` gave it.
        outcome: What the last ``step`` gave besides: the keywords that a recorder takes.

    Raises:
        ConfigurationError: The environment cannot be built; see `rebuild`.
    """

    def __init__(self, recording: Recording, *, interface: str | None = None, tape: Cassette | None = None) -> None:
        self._recording, self._tape = recording, tape
        self.env = rebuild(recording.row, interface)
        self.inner = innermost(self.env)
        self.inner.play_back(tape)
        self.volatile = [re.compile(pattern) for pattern in self.inner.volatile]
        self._records = offering(self.env, "last_record")
        self._array = isinstance(self.env.unwrapped, ArrayInterface)
        self._as_given = interface is None
        self._drawn = ""
        self._shown: Mapping[str, Any] = {}
        self.observation: Any = None
        self.outcome: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.env.close()

    @property
    def record(self) -> StepRecord:
        """All about the last step, with the reward as it is where the recorder stood."""
        record: StepRecord = self._records.last_record
        return record

    @property
    def ended(self) -> bool:
        """Whether the episode is over."""
        return bool(self.outcome) and (self.outcome["terminated"] or self.outcome["truncated"])

    def begin(self) -> Taken:
        """Resets to the episode's beginning.

        Raises:
            ConfigurationError: Its task is not there any more.
            InfrastructureError: The environment failed.
        """
        row = self._recording.row
        options = {"perturbation": None, **self._recording.options}  # a wrapper that draws perturbations is not to draw one
        if row["episode_index"]:
            self.inner.seek(row["seed"], row["episode_index"])
        self.observation, _ = self.env.reset(seed=None if row["episode_index"] else row["seed"], options=options)
        record = self.record
        self._episode = Episode({"episode_id": row["episode_id"], "started_us": now_us()})
        return self._taken({"step": self._row(record)})

    def versions(self) -> dict[str, Any]:
        """The columns that say on what the episode rests now, once it has begun."""
        return {
            "env_version": getattr(self.inner, "version", None),
            "tools_version": tools_version(self.inner.tools),
            "task_digest": task_digest(self.record.task),
            "task_id": self.record.task.id,
        }

    def step(self, number: int) -> Taken:
        """Takes a recorded step again: as it was given where the observation before it is the recorded one, else in terms of what is
        to be seen now.

        Raises:
            LostElement: What it was done to is not there any more.
            InfrastructureError: The environment failed.
        """
        before = self._recording.steps[number - 1]
        drifted = any(before[name] not in (None, self._shown.get(name)) for name in ("obs_text", "obs_data"))
        action = self._recording.action(number, as_given=self._as_given and not drifted)
        if isinstance(action, dict):
            action = ToolCall(action["name"], action["arguments"])
            if drifted and before["obs_data"] is not None:
                action = translated(action, self.inner.tools, orjson.loads(before["obs_data"]), orjson.loads(self._shown["obs_data"]))
        elif self._array and isinstance(action, str):
            unread = self._recording.steps[number]["action"] is None
            action = self._recording.action(number, as_given=False) if unread else int(action)
        if self._tape is not None:
            self._tape.wind(number)
        return self.act(action)

    def act(self, action: Any) -> Taken:
        """Takes a step with any action.

        Raises:
            InfrastructureError: The environment failed.
        """
        self.observation, reward, terminated, truncated, info = self.env.step(action)
        record = self.record
        if record.error:
            raise InfrastructureError(f"episode {self._recording.row['episode_id']}, played again: {record.error}")
        self.outcome = {
            "reward": float(reward),
            "terminated": bool(terminated),
            "truncated": bool(truncated),
            "ending": info.get("ending") or None,
            "success": info.get("success"),
            "given": action,
        }
        return self._taken(step_entry(self._row(record), record, **self.outcome))

    def row(self) -> dict[str, Any]:
        """The episode's row, as far as it has come."""
        return self._episode.row()

    def _row(self, record: StepRecord) -> dict[str, Any]:
        self._drawn = drawn_digest(self._drawn, record)
        return step_row(record, None, self._drawn)

    def _taken(self, entry: dict[str, Any]) -> Taken:
        """The rows as they would be read from a log."""
        told = orjson.loads(encoded(entry))
        step, calls = as_json(told["step"]), [as_json(call) for call in told.get("calls", ())]
        self._episode.add(step, calls)
        if "end" in told:
            self._episode.end(as_json(told["end"]))
        self._shown = step
        return Taken(step, calls)
