"""Frozen tasks: a recorded failure, kept so that it begins again exactly as it did, whatever draws tasks by then.

A file of them holds one JSON object a line, and goes wherever a file of task ids goes. A task is the same for ever under its id, and a
change bumps the environment's version; so a frozen task says which version it is of, and is refused by any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import gymnasium
import orjson

from agent_gym.errors import ConfigurationError, DatasetError
from agent_gym.interface.base import offering
from agent_gym.trajectories.env_spec import innermost, rebuild
from agent_gym.trajectories.rows import observation_digest
from agent_gym.trajectories.store import TrajectoryStore

__all__ = ["FrozenTask", "add", "freeze", "read", "settings"]

_CHOICE = ("interface", "render_mode", "split", "families", "difficulty", "task_ids")
"""Keywords that say which tasks are drawn and how they are shown, and nothing about the task itself."""


@dataclass(frozen=True, kw_only=True)
class FrozenTask:
    """A task as one recorded episode met it.

    Attributes:
        task_id: The task.
        env_id: Gymnasium id of its environment.
        env_version: The version of that.
        env_kwargs: Its keywords, those left out that say which tasks are drawn and how they are shown.
        seed: The root seed.
        episode_index: Resets since that seed was set.
        options: What the reset was asked for, beside the task.
        observation: Digest of the first observation's text and data.
        goal: What the agent is asked to do; for people.
        failed: The episode that failed: ``episode_id``, ``policy_id``, ``policy_version``, ``outcome``, ``end_reason``, and the
            ``checks`` that it failed.
        expected: How an episode is judged: ``success``, the names of the ``checks`` where they are known, whether a ``refusal`` is
            right, and ``max_steps``.
        split: ``regression``.
    """

    task_id: str
    env_id: str
    env_version: str | None
    env_kwargs: Mapping[str, Any]
    seed: int
    episode_index: int
    options: Mapping[str, Any]
    observation: str
    goal: str
    failed: Mapping[str, Any]
    expected: Mapping[str, Any]
    split: str = "regression"

    def make(self) -> gymnasium.Env[Any, Any]:
        """Builds the environment, with the text interface.

        Raises:
            ConfigurationError: The id is not known, its keywords do not fit or are not to be trusted, or it is of another version.
        """
        kwargs = {**self.env_kwargs, "task_ids": [self.task_id]}  # its environment need not have the split that is drawn from by default
        told = orjson.dumps({"kwargs": kwargs, "max_episode_steps": None, "wrappers": []}).decode()
        env = rebuild({"episode_id": self.failed["episode_id"], "env_id": self.env_id, "env_spec": told}, "text")
        if (version := innermost(env).version) != self.env_version:
            env.close()
            raise ConfigurationError(
                f"the frozen task {self.task_id!r} is of {self.env_id} version {self.env_version}, and this is version {version}: "
                "it may be another task by now; freeze a newer episode"
            )
        return env

    def begin(self, env: gymnasium.Env[Any, Any], perturbation: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets an environment to the task's beginning.

        Args:
            env: One like that of `make`, with any interface.
            perturbation: In place of the recorded one, if there was any; the first observation may then be another.

        Raises:
            ConfigurationError: The first observation is not the recorded one.
            InfrastructureError: The environment could not be reset.
        """
        options = {"perturbation": None, **self.options, "task_id": self.task_id}  # a wrapper that draws perturbations is not to draw one
        if perturbation is not None:
            options["perturbation"] = perturbation
        if self.episode_index:
            innermost(env).seek(self.seed, self.episode_index)
        began = env.reset(seed=None if self.episode_index else self.seed, options=options)
        shown = offering(env, "last_record").last_record.observation
        if perturbation is None and _digest(shown.text, orjson.dumps(shown.data).decode()) != self.observation:
            raise ConfigurationError(
                f"the frozen task {self.task_id!r} does not begin as it did in episode {self.failed['episode_id']}, although the version "
                f"of {self.env_id} is the same: its tools, rules or texts have changed; freeze a newer episode"
            )
        return began


def freeze(store: TrajectoryStore, episode_id: str) -> FrozenTask:
    """Makes a frozen task of an episode that failed, and looks that it begins again as it did.

    Raises:
        ConfigurationError: The episode did not fail, or its environment cannot be built as it was.
        InfrastructureError: The environment could not be reset.
        StoreError: There is no such episode, or a file cannot be read.
    """
    row = store.episode(episode_id)
    first = next(store.steps(episode_id), None)
    if row["success"] is not False or not row["reward_valid"]:
        raise ConfigurationError(f"episode {episode_id} ended in {row['outcome']}: only one that the agent failed can be frozen")
    if first is None or first["step"] != 0 or first["obs_data"] is None:
        raise ConfigurationError(f"episode {episode_id}: its beginning is not in the record, and so cannot be frozen")
    if row["env_spec"] is None:
        rebuild(row)  # which says why that is so
    checks = orjson.loads(row["checks"] or "[]")
    failed = {name: row[name] for name in ("episode_id", "policy_id", "outcome", "end_reason")}
    options = {name: value for name, value in orjson.loads(row["reset_options"] or "{}").items() if name == "perturbation"}
    frozen = FrozenTask(
        task_id=row["task_id"],
        env_id=row["env_id"],
        env_version=row["env_version"],
        env_kwargs={name: value for name, value in orjson.loads(row["env_spec"])["kwargs"].items() if name not in _CHOICE},
        seed=row["seed"],
        episode_index=row["episode_index"],
        options=options,
        observation=_digest(first["obs_text"], first["obs_data"]),
        goal=row["goal"],
        failed={**failed, "policy_version": row["policy_version_end"], "checks": [check for check in checks if not check["passed"]]},
        expected={},
    )
    env = frozen.make()
    try:
        frozen.begin(env)
        task = env.get_wrapper_attr("task")
    finally:
        env.close()
    names = [check["name"] for check in checks if row["end_reason"] in ("failure", "success")]
    return replace(frozen, expected={"success": True, "checks": names, "refusal": task.refusal, "max_steps": task.max_steps})


def read(tasks: str | Path | Sequence[str] | None) -> list[FrozenTask]:
    """The frozen tasks of a file; none where it is no file of such.

    Raises:
        DatasetError: A line of it is no frozen task; names file and line.
    """
    if not (isinstance(tasks, Path) or (isinstance(tasks, str) and len(tasks) < 1_000)) or not Path(tasks).is_file():
        return []
    content = Path(tasks).read_bytes()
    if not content.lstrip().startswith(b"{"):
        return []
    return [_parsed(line, f"{tasks}, line {number}") for number, line in enumerate(content.split(b"\n"), 1) if line.strip()]


def add(frozen: FrozenTask, path: Path) -> bool:
    """Adds a task to a file, which is made if need be; returns whether it was not in it already.

    Raises:
        ConfigurationError: The file holds something else, or cannot be written.
    """
    known = read(path)
    if path.exists() and path.stat().st_size and not known:
        raise ConfigurationError(f"{path} holds something else than frozen tasks; name another file")
    if any(one.failed["episode_id"] == frozen.failed["episode_id"] for one in known):
        return False
    try:
        with path.open("ab") as file:
            file.write(orjson.dumps(asdict(frozen), option=orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error
    return True


def settings(frozen: Sequence[FrozenTask], env_id: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The keywords of the environment in which frozen tasks are played.

    Args:
        frozen: The tasks; with none, the keywords are those given.
        env_id: The environment that they are to be played in.
        given: Keywords that are given beside them.

    Raises:
        ConfigurationError: The tasks are of another environment or version, or need other keywords than those given or than one another.
    """
    keywords = dict(given or {})
    if not frozen:
        return keywords
    needed = {**frozen[0].env_kwargs, "task_ids": list(dict.fromkeys(one.task_id for one in frozen))}
    for one in frozen:
        if one.env_id != env_id.rpartition(":")[2]:
            raise ConfigurationError(f"the frozen task {one.task_id!r} is of {one.env_id}, not of {env_id}")
        if one.env_kwargs != frozen[0].env_kwargs:
            raise ConfigurationError(
                f"the frozen tasks {frozen[0].task_id!r} and {one.task_id!r} need environments with different keywords, "
                f"{dict(frozen[0].env_kwargs)} and {dict(one.env_kwargs)}: put them into files of their own"
            )
    for name, value in keywords.items():
        if (name not in _CHOICE or name == "task_ids") and value != needed.get(name):
            raise ConfigurationError(f"frozen tasks come with their keywords: {name} is {needed.get(name)!r} in them, not {value!r}")
    frozen[0].make().close()
    return {**keywords, **needed}


def _digest(text: str, data: str) -> str:
    """Of an observation without its image, since not every machine draws the same pixels."""
    return observation_digest(text, data, None)


def _parsed(line: bytes, where: str) -> FrozenTask:
    try:
        told = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DatasetError(f"{where}: not JSON: {error}") from error
    known = [field.name for field in fields(FrozenTask)]
    if not isinstance(told, dict) or set(told) != set(known):
        raise DatasetError(f"{where}: no frozen task; one is an object of {', '.join(known)}")
    kinds = {"task_id": str, "env_id": str, "env_kwargs": dict, "seed": int, "episode_index": int, "options": dict, "failed": dict}
    for name, kind in kinds.items():
        if not isinstance(told[name], kind):
            raise DatasetError(f"{where}: {name} must be {kind.__name__}, got {told[name]!r:.80}")
    if "episode_id" not in told["failed"]:
        raise DatasetError(f"{where}: failed names no episode_id")
    return FrozenTask(**told)
