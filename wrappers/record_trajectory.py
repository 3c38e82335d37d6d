"""Records every episode of an environment into a trajectory store, and changes nothing about it."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from agent_gym.core.canonical import digest
from agent_gym.core.perturbation import Perturbation
from agent_gym.core.record import StepRecord
from agent_gym.core.task import Task, TaskSet
from agent_gym.errors import ConfigurationError, InfrastructureError, unknown
from agent_gym.interface.base import offering
from agent_gym.trajectories.env_spec import describe, innermost
from agent_gym.trajectories.recorder import Recorder
from agent_gym.trajectories.rows import checked_notes
from agent_gym.trajectories.store import Run, TrajectoryStore

__all__ = ["SOURCES", "RecordTrajectory"]

SOURCES = ("oracle", "policy", "human")
"""Who can have acted."""


class RecordTrajectory(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Writes what `last_record` says after every reset and step into a store.

    Observations, rewards and infos pass through untouched. It goes around the array interface, the text interface, or (with
    ``rich_wrappers``) the rich environment; the record is the same, except for the rewards, which are those at its place. A step
    whose ``step()`` has returned survives the death of the process. An episode that a reset abandons, and one that is open when
    the environment is closed or dies, is kept as ``interrupted``.

    In vector environments give every copy the same ``run_id``, so that they share a run::

        run = TrajectoryStore("runs/store").open_run()
        gymnasium.vector.AsyncVectorEnv([lambda: RecordTrajectory(gymnasium.make(env_id), run)] * 8)

    Args:
        env: An environment that offers ``last_record``.
        store: The store's folder, or the run to record into.
        run_id: The run to record into; without it (and without a `Run`) the first reset opens one.
        source: ``oracle``, ``policy`` or ``human``.
        policy_id: The policy's name; by default the run's.
        prompt_version: The version of the policy's prompt; by default the digest of the environment's rules.

    Raises:
        ConfigurationError: The environment offers no ``last_record``, or ``source`` is none of the three.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        store: str | Path | Run,
        run_id: str | None = None,
        source: str = "policy",
        policy_id: str | None = None,
        prompt_version: str | None = None,
    ) -> None:
        if isinstance(store, Run):
            run_id, policy_id = store.run_id, store.policy if policy_id is None else policy_id
            store = store.path
        if source not in SOURCES:
            raise unknown("source", source, SOURCES)
        about: dict[str, Any] = {"source": source, "policy_id": policy_id, "prompt_version": prompt_version}
        RecordConstructorArgs.__init__(self, store=str(store), run_id=run_id, **about)
        super().__init__(env)
        inner = innermost(env)
        if "last_record" not in dir(inner):  # which asks for no value: before the first reset there is none
            raise ConfigurationError(f"{type(inner).__name__} offers no last_record, so there is nothing to record; wrap an AgentEnv")
        self._records = offering(env, "last_record")
        self._store = TrajectoryStore(store)
        self._run_id = run_id
        self._about = about
        self._shown_s = 0.0
        self._recorder: Recorder | None = None
        self._notes: dict[str, Any] = {}
        self._columns: dict[str, Any] = {}

    @property
    def _inner(self) -> Any:
        return innermost(self.env)

    @property
    def episode_id(self) -> str | None:
        """The id under which the newest episode is kept; None before the first reset."""
        return None if self._recorder is None else self._recorder.episode_id

    @property
    def task_set(self) -> TaskSet:
        """The tasks of the environment inside."""
        tasks: TaskSet = self._inner.tasks
        return tasks

    @property
    def run_id(self) -> str | None:
        """The run; None before the first reset, if it wasn't given."""
        return self._run_id

    @property
    def notes(self) -> dict[str, Any]:
        """What will be kept with the coming step; assign a dict to replace it (``set_attr("notes", …)`` in vector environments)."""
        return self._notes

    @notes.setter
    def notes(self, notes: Mapping[str, Any]) -> None:
        self._columns = checked_notes(notes)
        self._notes = dict(notes)

    def note(self, **notes: Any) -> None:
        """Keeps with the coming step what only the learner knows.

        Args:
            **notes: ``logprob``, ``policy_version``, ``model_us``, ``human_s``, ``usage`` (a dict of ``prompt_tokens``,
                ``completion_tokens``, ``cost_usd``), ``tokens`` (a dict of ``prompt_token_ids``, ``completion_token_ids``,
                ``logprobs``, ``loss_mask``), and anything that is JSON or NumPy. A later note of the same name wins. Where the
                source is ``human``, ``human_s`` is measured if it is not noted.

        Raises:
            TypeError: A value is of the wrong kind.
            ValueError: A known one cannot be read as a number.
        """
        self.notes = self._notes | notes

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment and records the new episode's first observation.

        Raises:
            InfrastructureError: The environment could not be reset; the episode is kept as ``infra_error``.
            StoreError: It could not be recorded.
        """
        self._notes, self._columns = {}, {}
        try:
            result = self.env.reset(seed=seed, options=options)
        except InfrastructureError as error:
            self._recording().fail(_told(error), task=self._intended(options), seed=seed, options=_asked(options))
            raise
        recorder = self._recording()
        recorder.tools = getattr(self._inner, "tools", None)
        recorder.reset(self._last_record())
        self._shown_s = time.monotonic()
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps the environment and records what happened.

        Raises:
            InfrastructureError: The environment failed; the episode is kept as ``infra_error``.
            StoreError: It could not be recorded.
        """
        thought_s = time.monotonic() - self._shown_s
        if usage := self._notes.get("usage"):
            self._inner.usage = usage  # a budget inside may go by it
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
        except InfrastructureError as error:
            self._recording().fail(_told(error))
            raise
        notes, self._notes, self._columns = self._columns, {}, {}
        if self._about["source"] == "human":
            notes = {"human_s": thought_s, **notes}
        self._recording().step(
            self._last_record(),
            reward=float(reward),
            terminated=bool(terminated),
            truncated=bool(truncated),
            ending=info.get("ending") or None,
            success=info.get("success"),
            given=action,
            notes=notes,
        )
        self._shown_s = time.monotonic()
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Finishes the log and closes the environment; closing twice is fine."""
        if self._recorder is not None:
            self._recorder.close()
        super().close()

    def _last_record(self) -> StepRecord:
        record: StepRecord = self._records.last_record
        return record

    def _recording(self) -> Recorder:
        if self._recorder is None:
            env_id = self.spec.id if self.spec is not None else type(self._inner).__name__
            run = self._store.open_run(policy=self._about["policy_id"], env_id=env_id, run_id=self._run_id)
            self._run_id = run.run_id
            about = {"env_version": getattr(self._inner, "version", None), **self._about}
            if about["prompt_version"] is None:
                about["prompt_version"] = digest(getattr(self._inner, "rules", ""))
            self._recorder = run.recorder(env_id=env_id, env_spec=describe(self.env.spec), **about)
        return self._recorder

    def _intended(self, options: Mapping[str, Any] | None) -> Task | None:
        task_id = (options or {}).get("task_id")
        return self.task_set.get(task_id) if task_id is not None and hasattr(self._inner, "tasks") else None


def _asked(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """A reset's options as JSON values."""
    return {name: value.to_dict() if isinstance(value, Perturbation) else value for name, value in (options or {}).items()}


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
