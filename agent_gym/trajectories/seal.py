"""Sealing: finished logs become sorted, compressed, checksummed Parquet, by run, and are then removed.

At any point of it the process may die. What is to be sealed into what is first written down as an *intent*; the tables are written
under hidden names, synced, and renamed, the index of episodes last; then the logs go, and at last the intent. Whoever comes next
finishes an intent it finds: with every log still there the same part is written again, with some gone the rest is removed. One
sealer works on a store at a time. Memory is bounded: a row group at a time.
"""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from agent_gym.errors import StoreError
from agent_gym.trajectories.episode import Episode
from agent_gym.trajectories.log import DamagedLog, read_log, store_error, try_lock
from agent_gym.trajectories.schema import TABLES

__all__ = ["seal_run"]

_GROUP_ROWS = {"steps": 8_192, "tool_calls": 65_536, "episodes": 65_536}
_GROUP_BYTES = 32 * 2**20
_SORTED_BY = {"steps": ["episode_id", "step"], "tool_calls": ["episode_id", "step", "call_index", "attempt"], "episodes": ["episode_id"]}
_LARGE = {"obs_text", "obs_data", "action", "arguments", "result", "structured", "changes", "checks", "note", "given", "error"}
_ZSTD_LEVEL = 3


def seal_run(root: Path, run_id: str) -> tuple[int, list[DamagedLog]]:
    """Seals every log of a run whose writer is gone.

    Args:
        root: The store.
        run_id: The run.

    Returns:
        The number of episodes sealed, and what kept logs from being sealed. A damaged log is left as it is; the others are sealed.

    Raises:
        StoreError: The store cannot be written.
    """
    folder = root / "wal" / f"run_id={run_id}"
    try:
        with _alone(root):
            sealed, damaged = 0, []
            for left in sorted(folder.glob("*.intent")):
                count, errors = _carry_out(root, run_id, left)
                sealed += count
                damaged += errors
            with _finished(folder, {error.path for error in damaged}) as logs:
                if logs:
                    intent = folder / f"part-{uuid.uuid4().hex[:12]}.intent"
                    _write_durably(intent, orjson.dumps([log.name for log in logs]))
                    count, errors = _carry_out(root, run_id, intent)
                    sealed += count
                    damaged += errors
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
            return sealed, damaged
    except OSError as error:
        raise store_error("seal", Path(error.filename or folder), error) from error


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    with (root / "_meta" / "seal.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _finished(folder: Path, without: set[Path]) -> Iterator[list[Path]]:
    """The logs whose writers are gone, locked."""
    held = {log: fd for log in sorted(folder.glob("*.jsonl")) if log not in without and (fd := try_lock(log)) is not None}
    try:
        yield list(held)
    finally:
        for fd in held.values():
            os.close(fd)


def _carry_out(root: Path, run_id: str, intent: Path) -> tuple[int, list[DamagedLog]]:
    logs = [intent.with_name(name) for name in orjson.loads(intent.read_bytes())]
    damaged: list[DamagedLog] = []
    sealed = 0
    while logs and all(log.exists() for log in logs):
        try:
            sealed = _write_part(root, run_id, intent.stem, logs)
        except DamagedLog as error:
            damaged.append(error)
            logs = [log for log in logs if log != error.path]
            _write_durably(intent, orjson.dumps([log.name for log in logs]))
        else:
            break
    for log in logs:
        log.unlink(missing_ok=True)
    intent.unlink()
    return sealed, damaged


def _write_part(root: Path, run_id: str, name: str, logs: list[Path]) -> int:
    with _Part(root, run_id, name) as part:
        for log in logs:
            episode: Episode | None = None
            for size, entry in read_log(log):
                if "episode" in entry:
                    if episode is not None:
                        part.add("episodes", episode.row())
                    episode = Episode(entry["episode"])
                if episode is None:
                    raise DamagedLog(log, entry["seq"] + 1, "a step without an episode")
                if "step" in entry:
                    step = {"episode_id": episode.id, **entry["step"]}
                    calls = [{"episode_id": episode.id, "step": step["step"], "call_index": 0, **call} for call in entry.get("calls", ())]
                    episode.add(step, calls)
                    part.add("steps", step, size)
                    for call in calls:
                        part.add("tool_calls", call, size)
                if "end" in entry:
                    episode.end(entry["end"])
            if episode is not None:
                part.add("episodes", episode.row())
        return part.put_in_place()


class _Part:
    """The three files of a part, written a row group at a time."""

    def __init__(self, root: Path, run_id: str, name: str) -> None:
        self._final = {table: root / table / f"run_id={run_id}" / f"{name}.parquet" for table in TABLES}
        self._rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
        self._bytes = dict.fromkeys(TABLES, 0)
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._episodes = 0

    def __enter__(self) -> "_Part":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for table, writer in self._writers.items():
            writer.close()
            _hidden(self._final[table]).unlink(missing_ok=True)

    def add(self, table: str, row: dict[str, Any], size: int = 0) -> None:
        rows = self._rows[table]
        rows.append(row)
        self._bytes[table] += size
        if len(rows) >= _GROUP_ROWS[table] or self._bytes[table] >= _GROUP_BYTES:
            self._flush(table)

    def put_in_place(self) -> int:
        for table in TABLES:
            self._flush(table)
        for table in TABLES:
            if table in self._writers:
                self._writers.pop(table).close()
                _rename_durably(_hidden(self._final[table]), self._final[table])
        return self._episodes

    def _flush(self, table: str) -> None:
        rows, schema = self._rows[table], TABLES[table]
        if not rows:
            return
        if table not in self._writers:
            final = self._final[table]
            final.parent.mkdir(parents=True, exist_ok=True)
            self._writers[table] = pq.ParquetWriter(
                _hidden(final),
                schema,
                compression="zstd",
                compression_level=_ZSTD_LEVEL,
                use_dictionary=[field.name for field in schema if field.name not in _LARGE],
                write_statistics=[field.name for field in schema if field.name not in _LARGE],
                write_page_checksum=True,
                write_page_index=True,
                sorting_columns=pq.SortingColumn.from_ordering(schema, [(name, "ascending") for name in _SORTED_BY[table]]),
            )
        try:
            self._writers[table].write_table(pa.Table.from_pylist(rows, schema=schema), row_group_size=len(rows))
        except pa.ArrowException as error:
            raise StoreError(f"{self._final[table]}: rows do not fit the table {table!r}: {error}") from error
        if table == "episodes":
            self._episodes += len(rows)
        self._rows[table], self._bytes[table] = [], 0


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


def _rename_durably(source: Path, target: Path) -> None:
    _sync(source)
    source.rename(target)
    _sync(target.parent)


def _write_durably(path: Path, content: bytes) -> None:
    hidden = _hidden(path)
    hidden.write_bytes(content)
    _rename_durably(hidden, path)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
