"""Turns step records into log lines. The rows are made here, as the tables want them, so that sealing only collects them."""

import os
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from agent_gym.core.canonical import dumps
from agent_gym.core.record import StepRecord
from agent_gym.core.task import Task
from agent_gym.trajectories.log import LogWriter

__all__ = ["ROTATE_BYTES", "Recorder", "checked_notes"]

ROTATE_BYTES = 128 * 2**20
"""A log that is longer than this at an episode's end is finished, and the next episode begins another."""

_NOTED: dict[str, Callable[[Any], float]] = {"logprob": float, "policy_version": int, "model_us": int}
_USAGE: dict[str, Callable[[Any], float]] = {"prompt_tokens": int, "completion_tokens": int, "cost_usd": float}
_MAX_INT = 2**63


class Recorder:
    """Records the episodes of one environment, in turn.

    Nothing is written before the first episode. A forked child goes on with a log of its own from its next episode.

    Args:
        folder: Where the run's logs lie.
        run_id: The run.
        env_id: The environment's id.
        env_version: Its version, where known.
        source: Who acts: ``oracle``, ``policy`` or ``human``.
        policy_id: The policy's name.
    """

    def __init__(
        self,
        folder: Path,
        run_id: str,
        *,
        env_id: str,
        env_version: str | None = None,
        source: str = "policy",
        policy_id: str | None = None,
    ) -> None:
        self._folder = folder
        self._run_id = run_id
        self._header = {"env_id": env_id, "env_version": env_version, "source": source, "policy_id": policy_id}
        self._log: LogWriter | None = None
        self._pid = 0
        self._writer = ""
        self._segment = 0
        self._count = 0
        self._next_step: tuple[tuple[int, int, str], int] | None = None
        self.episode_id: str | None = None

    def reset(self, record: StepRecord) -> str:
        """Begins an episode; one that is still open stays as it is and will be sealed as interrupted.

        Returns:
            The new episode's id.

        Raises:
            StoreError: It could not be written.
        """
        header = self._opened(record.task, record.root_seed, record.episode, record.options)
        self._open_log().append({"episode": header, "step": _row(record)})
        self._next_step = (_place(record), record.step + 1)
        return str(self.episode_id)

    def step(
        self,
        record: StepRecord,
        *,
        reward: float,
        terminated: bool,
        truncated: bool,
        ending: str | None = None,
        success: bool | None = None,
        given: Any = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """Records a step; when this returns, the step is never lost.

        Args:
            record: What happened.
            reward: What the learner was given.
            terminated: What the learner was told.
            truncated: What the learner was told.
            ending: The ending, if a wrapper knows better than the record.
            success: The same for success.
            given: What ``step`` was given.
            notes: What only the learner knows, as `checked_notes` gives it.

        Raises:
            StoreError: It could not be written.
        """
        if record.step == 0:  # an autoreset below has begun an episode
            self.reset(record)
            return
        if self._pid != os.getpid():
            return  # the rest of an episode that a forked child inherited
        # set_state, or a reset below, went elsewhere: what follows is an episode of its own, without a row 0
        if (_place(record), record.step) != self._next_step:
            parent = self.episode_id
            self._open_log().append({"episode": self._opened(record.task, record.root_seed, record.episode, record.options, parent)})
        row = _row(record)
        row["reward"] = float(reward) if record.reward_valid else None
        row["terminated"], row["truncated"] = terminated, truncated
        row["action_valid"] = not record.invalid
        if record.call is not None:
            row["action"] = dumps(record.call.to_dict()).decode()
        if record.invalid:
            row["invalid_reason"] = record.invalid
        if record.result is not None:
            row["status"] = record.result.status
        if isinstance(given, str):
            row["given"] = given
        elif isinstance(given, np.integer) or (isinstance(given, np.ndarray) and given.size == 1):
            row["given"] = str(given.item())
        elif type(given) is int and abs(given) < 2**63:
            row["given"] = str(given)
        if notes:
            row |= notes
        entry: dict[str, Any] = {"step": row, "calls": _calls(record)}
        if terminated or truncated:
            ended = ending or (str(record.ending) if record.ending is not None else "step_limit" if truncated else None)
            row["ending"] = ended
            entry["end"] = _end(record, ended, record.success if success is None else success)
        log = self._open_log()
        log.append(entry)
        self._next_step = (_place(record), record.step + 1)
        if terminated or truncated:
            self._next_step = None
            if log.size > ROTATE_BYTES:
                log.close()

    def fail(self, error: str, *, task: Task | None = None, seed: int | None = None, options: Mapping[str, Any] | None = None) -> str:
        """Records that the environment itself failed: ends the open episode, or keeps one that could not even begin.

        Returns:
            The episode's id.

        Raises:
            StoreError: It could not be written.
        """
        entry: dict[str, Any] = {"end": {"ending": "infra_error", "success": None, "error": error, "t_us": _now_us()}}
        if self._next_step is None or self._pid != os.getpid():
            entry = {"episode": self._opened(task, seed, None, options), **entry}
        self._open_log().append(entry)
        self._next_step = None
        return str(self.episode_id)

    def close(self) -> None:
        """Finishes the log; an open episode will be sealed as interrupted. Closing twice is fine."""
        if self._log is not None:
            self._log.close()
            self._log = None
        self._next_step = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy records on into a log of its own, from its next episode."""
        return {**self.__dict__, "_log": None, "_pid": 0, "_next_step": None}

    def _open_log(self) -> LogWriter:
        if self._log is None or not self._log.usable:
            self._log = LogWriter(self._folder / f"{self._writer}-{self._segment:04d}.jsonl")
            self._segment += 1
        return self._log

    def _opened(
        self,
        task: Task | None,
        seed: int | None,
        episode: int | None,
        options: Mapping[str, Any] | None,
        parent: str | None = None,
    ) -> dict[str, Any]:
        if self._pid != os.getpid():
            self._pid, self._writer, self._segment, self._count = os.getpid(), uuid.uuid4().hex[:10], 0, 0
        self.episode_id = f"{self._run_id}-{self._writer}-{self._count:06d}"
        self._count += 1
        header: dict[str, Any] = {"episode_id": self.episode_id, "parent_episode_id": parent, **self._header}
        known_seed = seed if seed is not None and seed < _MAX_INT else None
        header |= {"seed": known_seed, "episode_index": episode, "started_us": _now_us()}
        if options:
            header["reset_options"] = dumps(dict(options)).decode()
        if task is not None:
            header |= {
                "task_id": task.id,
                "task_type": task.type,
                "split": task.split,
                "difficulty": task.difficulty,
                "capabilities": task.capabilities,
                "goal": task.goal,
                "max_steps": task.max_steps,
            }
        return header


def _place(record: StepRecord) -> tuple[int, int, str]:
    """Which episode of its environment a step belongs to."""
    return record.root_seed, record.episode, record.task.id


def _now_us() -> int:
    return time.time_ns() // 1_000


def _row(record: StepRecord) -> dict[str, Any]:
    shown = record.observation
    row: dict[str, Any] = {
        "step": record.step,
        "t_us": _now_us(),
        "obs_text": shown.text,
        "obs_data": orjson.dumps(shown.data).decode(),
        "state_digest": record.digest,
        "env_us": record.env_us,
        "grade_us": record.grade_us,
    }
    gaps = record.gaps if shown.image is None else (*record.gaps, "image_not_kept")
    if gaps:
        row["gaps"] = gaps
    if record.milestones:
        row["milestones"] = record.milestones
    if parts := [{"name": name, "score": score} for name, score in record.reward_parts.items() if score]:
        row["reward_parts"] = parts
    if record.retry_safety:
        row["retry_safety"] = [{"name": name, "count": count} for name, count in record.retry_safety.items() if count]
    return row


def checked_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that notes fill: the known ones by name, everything else as one JSON object in ``note``.

    Args:
        notes: ``logprob``, ``policy_version``, ``model_us``, ``usage`` (``prompt_tokens``, ``completion_tokens``, ``cost_usd``), and
            anything that is JSON or NumPy.

    Raises:
        TypeError: A value is of the wrong kind.
        ValueError: A known one cannot be read as a number.
    """
    rest = dict(notes)
    usage = dict(rest.pop("usage", None) or {})
    columns: dict[str, Any] = {}
    for known, given in ((_NOTED, rest), (_USAGE, usage)):
        columns |= {name: kind(value) for name, kind in known.items() if (value := given.pop(name, None)) is not None}
    if usage:
        rest["usage"] = usage
    if rest:
        columns["note"] = orjson.dumps(rest, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return columns


def _calls(record: StepRecord) -> list[dict[str, Any]]:
    rows = []
    for made in record.attempts:
        result = made.result
        row: dict[str, Any] = {
            "attempt": made.attempt,
            "tool": made.call.name,
            "arguments": dumps(made.call.arguments).decode(),
            "known_tool": made.known_tool,
            "args_valid": made.valid,
            "status": result.status,
            "result": result.content,
            "effect": made.effect,
            "started_us": made.started_us,
            "dur_us": made.duration_us,
            "waited_s": made.waited_s,
            "took_effect": made.took_effect,
            "from_cache": result.from_cache,
        }
        if result.structured is not None:
            row["structured"] = orjson.dumps(result.structured).decode()
        if result.retry_after_s is not None:
            row["retry_after_s"] = result.retry_after_s
        for name in ("error", "key", "fault"):
            if told := getattr(made, name):
                row[name] = told
        rows.append(row)
    return rows


def _end(record: StepRecord, ending: str | None, success: bool | None) -> dict[str, Any]:
    end: dict[str, Any] = {"ending": ending, "success": success, "reward_valid": record.reward_valid}
    if record.error:
        end["error"] = record.error
    if record.checks:
        checks = [{"name": check.name, "passed": check.passed, "detail": check.detail} for check in record.checks]
        end["checks"] = dumps(checks).decode()
    if record.changes:
        changes = [{"where": c.where, "key": c.key, "before": c.before, "after": c.after} for c in record.changes]
        end["changes"] = dumps(changes).decode()
    return end
