"""The store of trajectories: a folder that many processes write and anybody reads.

::

    store/
      _meta/store.json                          what this folder is
      _meta/runs/<run_id>.json                  one a run: command, policy, seed, versions
      _meta/manifest.sqlite                     which files belong to the store, with their checksums
      _meta/ledger.sqlite                       digests of what was sealed, in a chain
      wal/run_id=<run_id>/<writer>.jsonl        logs of writers that live, or that nobody has sealed yet
      episodes/run_id=<run_id>/part-….parquet   and steps/, tool_calls/, events/, tokens/ alike; pandas, DuckDB and others read them as
                                                they are (not while `compact` runs, which shows them rows twice for a moment)
      blobs/ab/abcd…                            images (PNG) and texts over 64 KB, by the digest of their content

Opening a store for reading seals first what writers have left behind, so that a process that was killed loses nothing. What a
living writer has written shows once it is done with its log: when it is closed, and at the first end of an episode after a minute.
"""

import glob
import os
import platform
import sys
import threading
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import orjson

from agent_gym.errors import StoreError
from agent_gym.trajectories.blobs import Blobs
from agent_gym.trajectories.log import DamagedLog, LogWriter, store_error
from agent_gym.trajectories.manifest import FILE_TABLES, Manifest
from agent_gym.trajectories.recorder import Recorder
from agent_gym.trajectories.rows import now_us
from agent_gym.trajectories.versions import versions

if TYPE_CHECKING:
    from agent_gym.trajectories.fsck import Finding

__all__ = ["Run", "TrajectoryStore"]

_FORMAT = 1
_RUN_ID_LENGTH = len("20261129-224315-123456")
_CALLS = """
WITH found AS (
    SELECT run_id, episode_id, step, call_index, attempt, task_id, env_id, policy_id, started_at
    FROM tool_calls JOIN episodes USING (run_id, episode_id)
    WHERE {condition}
    ORDER BY started_at DESC, episode_id DESC, step DESC, call_index DESC, attempt DESC {newest}
)
SELECT tool_calls.*, task_id, env_id, policy_id FROM found JOIN tool_calls USING (run_id, episode_id, step, call_index, attempt)
ORDER BY started_at, episode_id, step, call_index, attempt
"""
"""First which calls, by narrow columns, and then all about those: arguments and results of all others are never read."""


@dataclass(frozen=True)
class Run:
    """One invocation that writes trajectories. Any number of processes may record into it.

    Attributes:
        path: The store.
        run_id: Unique in the store; sorts by time.
        policy: The policy's name, unless a recorder says otherwise.
    """

    path: str
    run_id: str
    policy: str | None = None

    def recorder(self, *, env_id: str, policy_id: str | None = None, **about: Any) -> Recorder:
        """A recorder for one environment; its arguments are those of `Recorder`."""
        return Recorder(Path(self.path), self.run_id, env_id=env_id, policy_id=self.policy if policy_id is None else policy_id, **about)

    def close(self) -> None:
        """Seals what its recorders have finished. Closing twice is fine, and so is recording on.

        Raises:
            StoreError: A log is damaged, or the store cannot be written.
        """
        TrajectoryStore(self.path).seal(self.run_id)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class TrajectoryStore:
    """Trajectories in a folder.

    Args:
        path: The folder. It is made when the first run is opened; one that does not exist reads as an empty store.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()

    def open_run(
        self,
        *,
        command: str | None = None,
        policy: str | None = None,
        seed: int | None = None,
        env_id: str | None = None,
        run_id: str | None = None,
    ) -> Run:
        """Opens a run.

        Args:
            command: What was invoked; by default this process's command line.
            policy: The policy's name.
            seed: The seed of the invocation.
            env_id: The environment, if the run has one.
            run_id: Join this run instead; if it is new, it gets this id.

        Raises:
            StoreError: The store cannot be written.
        """
        folder = self.path / "_meta" / "runs"
        about = {
            "command": " ".join(sys.argv) if command is None else command,
            "policy": policy,
            "seed": seed,
            "env_id": env_id,
            "versions": versions(),
            "host": platform.node(),
            "pid": os.getpid(),
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write_new(self.path / "_meta" / "store.json", {"format": _FORMAT, "made_by": "agent_gym"})
            now = datetime.now(UTC)
            while True:
                chosen = run_id or now.strftime("%Y%m%d-%H%M%S-%f")
                if _write_new(folder / f"{chosen}.json", {"run_id": chosen, "started_at": now.isoformat(), **about}) or run_id:
                    return Run(str(self.path), chosen, policy)
                now += timedelta(microseconds=1)
        except OSError as error:
            raise store_error("write", Path(error.filename or folder), error) from error

    def runs(self) -> list[dict[str, Any]]:
        """What is known of each run, the oldest first."""
        return [orjson.loads(about.read_bytes()) for about in sorted(self.path.glob("_meta/runs/*.json"))]

    def seal(self, run_id: str | None = None) -> int:
        """Seals every log whose writer is gone.

        Args:
            run_id: Only this run's.

        Returns:
            The number of episodes sealed.

        Raises:
            StoreError: A log is damaged (named with the line, and left as it is; all others are sealed), or the store cannot be
                written.
        """
        sealed, damaged = self._seal(run_id)
        if damaged:
            raise damaged[0]
        return sealed

    def compact(self, run_id: str | None = None) -> tuple[int, int]:
        """Merges the small parts of every run, or of one; what is sealed for it first is what writers have left.

        Returns:
            The number of parts before and after.

        Raises:
            StoreError: A part is damaged, or the store cannot be written.
        """
        from agent_gym.trajectories.compact import compact_run

        self._seal(run_id)
        before = after = 0
        if self.path.exists():
            with Manifest.of(self.path) as manifest:
                for one in [about["run_id"] for about in self.runs()] if run_id is None else [run_id]:
                    counts = compact_run(manifest, one)
                    before, after = before + counts[0], after + counts[1]
        return before, after

    def fsck(self) -> list["Finding"]:
        """What is wrong with the store's files, each by its name; see `agent_gym.trajectories.fsck`.

        Raises:
            StoreError: A file cannot be read.
        """
        from agent_gym.trajectories.fsck import fsck

        try:
            return fsck(self.path)
        except OSError as error:
            raise store_error("read", Path(error.filename or self.path), error) from error

    def recover(self) -> list["Finding"]:
        """Makes the store whole again, with what can be read of it; nothing is deleted.

        Returns:
            What was done.

        Raises:
            StoreError: The store cannot be written.
        """
        from agent_gym.trajectories.fsck import recover

        return recover(self.path) if self.path.exists() else []

    def stats(self) -> dict[str, Any]:
        """How much there is: rows, files and bytes of each table, of blobs and of logs, and the bytes a step.

        Raises:
            StoreError: The store cannot be read.
        """
        from agent_gym.trajectories.stats import stats

        rows = {table: self.sql(f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in FILE_TABLES}
        return {"runs": len(self.runs()), **stats(self.path, rows)}

    def add_event(
        self,
        kind: str,
        *,
        run_id: str | None = None,
        episode_id: str | None = None,
        step: int | None = None,
        author: str | None = None,
        reason: str | None = None,
        payload: Any = None,
    ) -> str:
        """Writes down that something happened to an episode, or to a run, after it was recorded.

        Args:
            kind: What, in a word.
            run_id: The run; by default the episode's.
            episode_id: The episode.
            step: The step.
            author: Who did it.
            reason: Why.
            payload: Whatever else belongs to it, a JSON value.

        Returns:
            The event's id.

        Raises:
            StoreError: There is no such episode, or the store cannot be written.
        """
        if run_id is None:
            if episode_id is None:
                raise ValueError("an event belongs to an episode_id or to a run_id; got neither")
            run_id = self._run_of(episode_id) or self.episode(episode_id)["run_id"]
        event: dict[str, Any] = {"event_id": f"{run_id}-{uuid.uuid4().hex}", "at_us": now_us(), "kind": kind}
        event |= {"episode_id": episode_id, "step": step, "author": author, "reason": reason}
        event["payload"] = None if payload is None else orjson.dumps(payload).decode()
        log = LogWriter(self.path / "wal" / f"run_id={run_id}" / f"event-{uuid.uuid4().hex[:10]}.jsonl", Blobs(self.path))
        try:
            log.append({"event": event})
        finally:
            log.close()
        return str(event["event_id"])

    def sql(self, query: str) -> list[dict[str, Any]]:
        """Answers a question in DuckDB's SQL to the views ``episodes``, ``steps``, ``tool_calls``, ``events`` and ``tokens``.

        A text over 64 KB is null here; the other ways of reading put it in its place.

        Raises:
            ConfigurationError: It is no such query.
            StoreError: A file cannot be read.
        """
        return self._query(query)

    def episodes(self, limit: int | None = None, where: str | None = None, *, run_id: str | None = None) -> list[dict[str, Any]]:
        """Rows of ``episodes``, the oldest first.

        Args:
            limit: The newest so many.
            where: A condition in SQL, such as ``n_tool_failures > 3``.
            run_id: Only this run's.

        Raises:
            ConfigurationError: The condition is none.
            StoreError: A file cannot be read.
        """
        condition = f"WHERE ({where}\n)" if where else ""
        newest = "" if limit is None else f"ORDER BY started_at DESC, episode_id DESC LIMIT {int(limit)}"
        return self._query(f"SELECT * FROM (SELECT * FROM episodes {condition} {newest}) ORDER BY started_at, episode_id", run_id=run_id)

    def episode(self, episode_id: str) -> dict[str, Any]:
        """One episode's row.

        Raises:
            StoreError: There is no such episode, or a file cannot be read.
        """
        rows = self._of("episodes", episode_id, "episode_id")
        if not rows:
            raise StoreError(f"no episode {episode_id!r} in {self.path}")
        return Blobs(self.path).put_back(rows[0])

    def steps(self, episode_id: str) -> Iterator[dict[str, Any]]:
        """An episode's rows of ``steps``, in order; row 0 is the reset.

        Raises:
            StoreError: A file cannot be read.
        """
        yield from map(Blobs(self.path).put_back, self._of("steps", episode_id, "step"))

    def tool_calls(self, episode_id: str) -> Iterator[dict[str, Any]]:
        """An episode's rows of ``tool_calls``, in order.

        Raises:
            StoreError: A file cannot be read.
        """
        yield from map(Blobs(self.path).put_back, self._of("tool_calls", episode_id, "step, call_index, attempt"))

    def events(self, episode_id: str) -> list[dict[str, Any]]:
        """What happened to an episode after it was recorded, in order.

        Raises:
            StoreError: A file cannot be read.
        """
        return [Blobs(self.path).put_back(row) for row in self._of("events", episode_id, "happened_at, event_id")]

    def calls(
        self,
        limit: int | None = None,
        *,
        task_id: str | None = None,
        episode_id: str | None = None,
        step: int | None = None,
        status: str | None = None,
        tool: str | None = None,
        run_id: str | None = None,
    ) -> list[dict[str, Any]]:
        """Rows of ``tool_calls`` with the ``task_id``, ``env_id`` and ``policy_id`` of their episodes, the oldest first.

        Args:
            limit: The newest so many.
            task_id: Only this task's.
            episode_id: Only this episode's.
            step: Only those of this step.
            status: Only attempts with this status.
            tool: Only calls of this tool.
            run_id: Only this run's.

        Raises:
            StoreError: A file cannot be read.
        """
        wanted = {"task_id": task_id, "episode_id": episode_id, "step": step, "status": status, "tool": tool}
        given = {column: value for column, value in wanted.items() if value is not None}
        condition = " AND ".join(f"{column} = ?" for column in given) or "true"
        newest = "" if limit is None else f"LIMIT {int(limit)}"
        if run_id is None and episode_id is not None:
            run_id = self._run_of(episode_id)
        rows = self._query(_CALLS.format(condition=condition, newest=newest), list(given.values()), run_id)
        return [Blobs(self.path).put_back(row) for row in rows]

    def _of(self, table: str, episode_id: str, order: str) -> list[dict[str, Any]]:
        return self._query(f"SELECT * FROM {table} WHERE episode_id = ? ORDER BY {order}", [episode_id], self._run_of(episode_id))

    def _run_of(self, episode_id: str) -> str | None:
        """The run that an episode's id names, if there is such a run."""
        run_id = episode_id[:_RUN_ID_LENGTH]
        return run_id if (self.path / "_meta" / "runs" / f"{run_id}.json").is_file() else None

    def _query(self, sql: str, parameters: list[Any] | None = None, run_id: str | None = None) -> list[dict[str, Any]]:
        from agent_gym.trajectories.query import query  # recording needs no DuckDB

        try:
            for damaged in self._seal(run_id)[1]:
                warnings.warn(str(damaged), RuntimeWarning, stacklevel=4)
        except StoreError as error:
            warnings.warn(f"{error}; what writers have left behind is not shown", RuntimeWarning, stacklevel=4)
        return query(self.path, sql, parameters or [], run_id)

    def _seal(self, run_id: str | None) -> tuple[int, list[DamagedLog]]:
        waiting = sorted(self.path.glob(f"wal/run_id={'*' if run_id is None else glob.escape(run_id)}"))
        if not waiting:
            return 0, []
        from agent_gym.trajectories.seal import seal_run  # recording needs no pyarrow

        sealed, damaged = 0, []
        with Manifest.of(self.path) as manifest:
            for folder in waiting:
                count, errors = seal_run(manifest, folder.name.removeprefix("run_id="))
                sealed += count
                damaged += errors
        return sealed, damaged


def _write_new(path: Path, content: dict[str, Any]) -> bool:
    """Writes a small file unless it exists; returns whether it did."""
    hidden = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.tmp")
    hidden.write_bytes(orjson.dumps(content))
    try:
        os.link(hidden, path)
    except FileExistsError:
        return False
    finally:
        hidden.unlink()
    return True
