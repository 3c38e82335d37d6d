"""Which episodes are exported, and what is read of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import orjson

from agent_gym.trajectories.blobs import Blobs
from agent_gym.trajectories.store import TrajectoryStore

__all__ = ["ABOUT", "Reading", "Recorded", "Writer", "keep_images"]

ABOUT = (
    "episode_id",
    "run_id",
    "env_id",
    "env_version",
    "task_id",
    "task_type",
    "split",
    "difficulty",
    "seed",
    "episode_index",
    "source",
    "policy_id",
    "outcome",
    "end_reason",
    "success",
    "reward_total",
)
"""Columns of an episode that every form has a place for."""


@dataclass(frozen=True)
class Recorded:
    """An episode that is whole: every step from the reset on, each with its text, and every reward.

    Attributes:
        row: Its row of the table ``episodes``, long texts in their places.
        steps: Its rows of the table ``steps``, in order, likewise.
    """

    row: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]

    @cached_property
    def tools(self) -> list[dict[str, Any]] | None:
        """The tools that were offered, in the form of OpenAI-style chat APIs; None where an earlier version recorded it."""
        told = self.row["tools"]
        return None if told is None else orjson.loads(told)

    def about(self) -> dict[str, Any]:
        """What is known of it as a whole."""
        return {name: self.row[name] for name in ABOUT}


class Reading:
    """Reads episodes one by one, and keeps account of those that are left out.

    Args:
        store: Where they are.
        ids: These episodes; by default all.
        where: A condition in SQL.
        run_id: Only this run's.
        limit: The newest so many.
        progress: Called with the number of episodes read and of all, after each.

    Attributes:
        store: Where they are.
        read: How many were read so far, those left out not counted.
        skipped: The ``episode_id`` and ``reason`` of those that were left out so far.

    Raises:
        ConfigurationError: The condition is none.
        StoreError: There is no such episode, or a file cannot be read.
    """

    def __init__(
        self,
        store: TrajectoryStore,
        ids: Sequence[str] = (),
        *,
        where: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        conditions = [f"({where}\n)"] if where else []
        if ids:
            quoted = ", ".join("'" + one.replace("'", "''") + "'" for one in ids)
            conditions.append(f"episode_id IN ({quoted})")
        self.store = store
        self._rows = store.episodes(limit, " AND ".join(conditions) or None, run_id=run_id)
        self._progress = progress
        self.read = 0
        self.skipped: list[dict[str, str]] = []
        found = {row["episode_id"] for row in self._rows}
        for one in ids:
            if one not in found:
                self.store.episode(one)  # raises where there is none; else the condition leaves it out

    @property
    def total(self) -> int:
        """How many episodes there are, those that will be left out counted."""
        return len(self._rows)

    @property
    def blobs(self) -> Blobs:
        """Where the images are."""
        return Blobs(self.store.path)

    def __iter__(self) -> Iterator[Recorded]:
        return self.by()

    def by(self, *columns: str) -> Iterator[Recorded]:
        """The episodes, sorted by these columns; the oldest first among equals."""
        for done, row in enumerate(sorted(self._rows, key=lambda row: [str(row[column]) for column in columns]), 1):
            recorded, why = self._recorded(row)
            if why:
                self.skipped.append({"episode_id": row["episode_id"], "reason": why})
            else:
                self.read += 1
                yield recorded
            if self._progress is not None:
                self._progress(done, len(self._rows))

    def _recorded(self, row: dict[str, Any]) -> tuple[Recorded, str]:
        if not row["reward_valid"]:
            return Recorded(row, ()), f"its reward is not valid ({row['outcome']})"
        recorded = Recorded(self.blobs.put_back(row), list(self.store.steps(row["episode_id"])))
        return recorded, _lacking(recorded)


class Writer(Protocol):
    """Writes episodes to a file or folder that does not exist yet."""

    def __call__(self, episodes: Reading, out: Path) -> int:
        """Writes them.

        Returns:
            The number of rows written.

        Raises:
            OSError: They cannot be written.
            MissingExtra: A package is not installed.
        """


def keep_images(blobs: Blobs, steps: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """Copies the images that steps name into a folder, each once.

    Raises:
        StoreError: One is missing or damaged.
        OSError: One cannot be written.
    """
    for digest in {step["obs_image"] for step in steps} - {None}:
        path = folder / f"{digest}.png"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(blobs.get(digest))


def _lacking(recorded: Recorded) -> str:
    """What an episode lacks to be whole, or empty."""
    steps = recorded.steps
    if not steps:
        return "its steps are not kept any more"
    if steps[0]["step"] != 0:
        return "it went on from a state in the middle: its beginning is another episode's"
    if len(steps) != recorded.row["n_turns"] + 1:
        return f"it has {len(steps)} of {recorded.row['n_turns'] + 1} steps"
    for step in steps:
        if step["obs_text"] is None or step["obs_data"] is None:
            return f"the observation of step {step['step']} is missing"
        if step["step"] and step["reward"] is None:
            return f"the reward of step {step['step']} is unknown"
    return ""
