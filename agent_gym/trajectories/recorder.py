"""Records episodes: every step becomes a line of a log before it is given to anybody else."""

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_gym.core.canonical import digest, dumps
from agent_gym.core.record import StepRecord
from agent_gym.core.task import Task
from agent_gym.core.tool import ToolSpec
from agent_gym.trajectories.blobs import Blobs
from agent_gym.trajectories.log import LogWriter, store_error
from agent_gym.trajectories.rows import drawn_digest, now_us, step_entry, step_row, task_digest
from agent_gym.trajectories.versions import SCHEMA_VERSION, code_version

__all__ = ["ROTATE_BYTES", "ROTATE_S", "Recorder"]

ROTATE_BYTES = 128 * 2**20
"""A log that is longer than this at an episode's end is finished, and the next episode begins another."""
ROTATE_S = 60.0
"""So is a log that is older than this, so that readers see the episodes of a process that lives."""

_MAX_INT = 2**63


class Recorder:
    """Records the episodes of one environment, in turn.

    Nothing is written before the first episode. A forked child goes on with a log of its own from its next episode.

    Args:
        root: The store.
        run_id: The run.
        env_id: The environment's id.
        env_version: Its version, where known.
        source: Who acts: ``oracle``, ``policy`` or ``human``.
        policy_id: The policy's name.
        prompt_version: The version of its prompt.
        env_spec: What it takes to build the environment; see `agent_gym.trajectories.env_spec`.

    Attributes:
        episode_id: The newest episode's.
        tools: What is offered in the coming episode, where known.
    """

    def __init__(
        self,
        root: Path,
        run_id: str,
        *,
        env_id: str,
        env_version: str | None = None,
        source: str = "policy",
        policy_id: str | None = None,
        prompt_version: str | None = None,
        env_spec: str | None = None,
    ) -> None:
        self._folder = root / "wal" / f"run_id={run_id}"
        self._blobs = Blobs(root)
        self._run_id = run_id
        self._header = {
            "env_id": env_id,
            "env_version": env_version,
            "source": source,
            "policy_id": policy_id,
            "prompt_version": prompt_version,
            "env_spec": env_spec,
        }
        self._drawn = ""
        self._kept_tools: tuple[Sequence[ToolSpec], dict[str, Any]] | None = None
        self._log: LogWriter | None = None
        self._pid = 0
        self._writer = ""
        self._segment = 0
        self._count = 0
        self._next_step: tuple[tuple[int, int, str], int] | None = None
        self.episode_id: str | None = None
        self.tools: Sequence[ToolSpec] | None = None

    def reset(self, record: StepRecord, parent: str | None = None) -> str:
        """Begins an episode; one that is still open stays as it is and will be sealed as interrupted.

        Args:
            record: Its reset.
            parent: The episode whose beginning it repeats.

        Returns:
            The new episode's id.

        Raises:
            StoreError: It could not be written.
        """
        header = self._opened(record.task, record.root_seed, record.episode, record.options, parent)
        self._open_log().append({"episode": header, "step": self._row(record)})
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
        row = self._row(record)
        about: dict[str, Any] = {"reward": reward, "terminated": terminated, "truncated": truncated, "ending": ending, "success": success}
        entry = step_entry(row, record, **about, given=given)
        if notes:
            row |= notes
        if tokens := row.pop("tokens", None):
            entry["tokens"] = tokens
        log = self._open_log()
        log.append(entry)
        self._next_step = (_place(record), record.step + 1)
        if terminated or truncated:
            self._next_step = None
            if log.size > ROTATE_BYTES or time.monotonic() - log.opened_s > ROTATE_S:
                log.close()

    def fail(self, error: str, *, task: Task | None = None, seed: int | None = None, options: Mapping[str, Any] | None = None) -> str:
        """Records that the environment itself failed: ends the open episode, or keeps one that could not even begin.

        Returns:
            The episode's id.

        Raises:
            StoreError: It could not be written.
        """
        entry: dict[str, Any] = {"end": {"ending": "infra_error", "success": None, "error": error, "t_us": now_us()}}
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
            self._log = LogWriter(self._folder / f"{self._writer}-{self._segment:04d}.jsonl", self._blobs)
            self._segment += 1
        return self._log

    def _row(self, record: StepRecord) -> dict[str, Any]:
        self._drawn = drawn_digest(self._drawn, record)
        try:
            return step_row(record, self._blobs, self._drawn)
        except OSError as error:
            raise store_error("write", Path(error.filename or self._blobs.folder), error) from error

    def _offered(self) -> dict[str, Any]:
        """The header's columns about the tools; they themselves are a blob of any length, written once and not with every episode."""
        if self.tools is None:
            return {}
        if self._kept_tools is None or self._kept_tools[0] != self.tools:
            told = [tool.to_openai() for tool in self.tools]
            content = dumps(told)
            self._open_log()  # for as long as it lives, what was put lately is not swept
            try:
                blob = {"column": "tools", "digest": self._blobs.put(content), "bytes": len(content)}
            except OSError as error:
                raise store_error("write", Path(error.filename or self._blobs.folder), error) from error
            self._kept_tools = self.tools, {"tools_version": digest(told), "blobs": [blob]}
        return {**self._kept_tools[1], "blobs": list(self._kept_tools[1]["blobs"])}

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
        self._drawn = ""
        header: dict[str, Any] = {"episode_id": self.episode_id, "parent_episode_id": parent, **self._header}
        known_seed = seed if seed is not None and seed < _MAX_INT else None
        header |= {"seed": known_seed, "episode_index": episode, "started_us": now_us()}
        header |= {**self._offered(), "code_version": code_version(), "schema_version": SCHEMA_VERSION}
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
                "task_digest": task_digest(task),
            }
        return header


def _place(record: StepRecord) -> tuple[int, int, str]:
    """Which episode of its environment a step belongs to."""
    return record.root_seed, record.episode, record.task.id
