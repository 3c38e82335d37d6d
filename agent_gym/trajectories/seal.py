"""Sealing: finished logs become sorted, compressed, checksummed Parquet, by run, and are then removed.

At any point of it the process may die. What is to be sealed into what is first written down as an *intent*; the tables are written
under hidden names, synced, and renamed, the index of episodes last; then the logs go, and at last the intent. Whoever comes next
finishes an intent it finds: with every log still there the same part is written again, with some gone the rest is removed. One
sealer works on a store at a time. Memory is bounded by a row group.
"""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from agent_gym.trajectories.episode import Episode
from agent_gym.trajectories.log import DamagedLog, read_log, store_error, try_lock
from agent_gym.trajectories.parquet import TableFile, write_durably
from agent_gym.trajectories.schema import TABLES

__all__ = ["seal_run"]


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
                    write_durably(intent, orjson.dumps([log.name for log in logs]))
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
            write_durably(intent, orjson.dumps([log.name for log in logs]))
        else:
            break
    for log in logs:
        log.unlink(missing_ok=True)
    intent.unlink()
    return sealed, damaged


def _write_part(root: Path, run_id: str, name: str, logs: list[Path]) -> int:
    files = {table: TableFile(table, root / table / f"run_id={run_id}" / f"{name}.parquet") for table in TABLES}
    try:
        for log in logs:
            _copy(log, files)
        for file in files.values():
            file.finish()
        for file in files.values():
            file.put_in_place()
    finally:
        for file in files.values():
            file.discard()
    return files["episodes"].rows


def _copy(log: Path, files: dict[str, TableFile]) -> None:
    episode: Episode | None = None
    for size, entry in read_log(log):
        if "episode" in entry:
            if episode is not None:
                files["episodes"].add(episode.row())
            episode = Episode(entry["episode"])
        if episode is None:
            raise DamagedLog(log, entry["seq"] + 1, "a step without an episode")
        if "step" in entry:
            step: dict[str, Any] = entry["step"]
            calls: list[dict[str, Any]] = entry.get("calls", [])
            step["episode_id"] = episode.id
            for call in calls:
                call["episode_id"], call["step"], call["call_index"] = episode.id, step["step"], 0
                files["tool_calls"].add(call, size)
            episode.add(step, calls)
            files["steps"].add(step, size)
        if "end" in entry:
            episode.end(entry["end"])
    if episode is not None:
        files["episodes"].add(episode.row())
