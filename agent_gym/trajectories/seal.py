"""Sealing: finished logs become a part of sorted, compressed, checksummed Parquet files, and are then removed.

The process may die at any point: `agent_gym.trajectories.manifest` says how rows are neither lost nor doubled then. Memory is bounded
by a row group a table.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agent_gym.trajectories.blobs import Blobs
from agent_gym.trajectories.digests import Digests, event_entry, run_digest
from agent_gym.trajectories.durable import sync
from agent_gym.trajectories.episode import Episode, time_of
from agent_gym.trajectories.log import DamagedLog, read_log, try_lock
from agent_gym.trajectories.manifest import Manifest
from agent_gym.trajectories.parquet import PartWriter
from agent_gym.trajectories.rows import as_json, observation_digest

__all__ = ["seal_run"]


def seal_run(manifest: Manifest, run_id: str, *, salvage: bool = False) -> tuple[int, list[DamagedLog]]:
    """Seals every log of a run whose writer is gone.

    Args:
        manifest: The store's.
        run_id: The run.
        salvage: Seal what is whole of damaged logs, too. They are then renamed and kept.

    Returns:
        The number of episodes sealed, and what is wrong with logs. Without ``salvage`` a damaged one is left as it is.

    Raises:
        OSError: The store cannot be written.
        StoreError: A row does not fit its table.
    """
    folder = manifest.root / "wal" / f"run_id={run_id}"
    damage: list[DamagedLog] = []
    sealed = 0
    with _finished(folder) as logs:
        while logs:
            found: list[DamagedLog] = []
            try:
                parts = manifest.replace(run_id, PartWriter, _filler(manifest.root, logs, found if salvage else None), logs)
            except DamagedLog as error:
                damage.append(error)
                logs = [log for log in logs if log != error.path]
            else:
                damage += found
                sealed = parts["episodes"].rows if "episodes" in parts else 0
                break
    if folder.is_dir() and not any(folder.iterdir()):
        with suppress(OSError):  # a writer has just begun a log there
            folder.rmdir()
    return sealed, damage


@contextmanager
def _finished(folder: Path) -> Iterator[list[Path]]:
    """The logs whose writers are gone, locked."""
    held = {log: fd for log in sorted(folder.glob("*.jsonl")) if (fd := try_lock(log)) is not None}
    try:
        yield list(held)
    finally:
        for fd in held.values():
            os.close(fd)


def _filler(root: Path, logs: list[Path], damage: list[DamagedLog] | None) -> Callable[[PartWriter], None]:
    blobs = Blobs(root)

    def fill(writer: PartWriter) -> None:
        named: set[str] = set()
        for log in logs:
            before = len(damage or ())
            _Copy(writer, blobs, named, run_digest(root, log.parent.name.removeprefix("run_id=")), damage).log(log)
            if damage is not None and len(damage) > before:
                _set_aside(log)
        for digest in named:
            with suppress(FileNotFoundError):  # which fsck then tells
                sync(blobs.path(digest))

    return fill


def _set_aside(log: Path) -> None:
    """Keeps a copy of a damaged log, which is about to be removed."""
    kept = log.with_name(f"{log.name}.damaged")
    kept.unlink(missing_ok=True)
    kept.hardlink_to(log)


class _Copy:
    """Turns the entries of logs into rows of a part."""

    def __init__(self, writer: PartWriter, blobs: Blobs, named: set[str], run: bytes, damage: list[DamagedLog] | None) -> None:
        self._files, self._entries = writer.files, writer.entries
        self._blobs, self._named = blobs, named
        self._run = run
        self._damage = damage
        self._episode: Episode | None = None
        self._digests = Digests()

    def log(self, log: Path) -> None:
        due = 0
        run_id = log.parent.name.removeprefix("run_id=")
        for size, entry in read_log(log, self._damage):
            lost, due = entry["seq"] - due, entry["seq"] + 1
            if "event" in entry:
                event = entry["event"]
                event["happened_at"] = time_of(event.pop("at_us"))
                self._write("events", event, size)
                self._entries.append(event_entry(event, run_id))
                continue
            if "episode" in entry:
                self._finish()
                self._episode = Episode(entry["episode"])
            elif lost and self._episode is not None and not self._episode.survives(lost, entry):
                self._finish()
            episode = self._episode
            if episode is None:
                error = DamagedLog(log, entry["seq"] + 1, "a step without an episode")
                if self._damage is None:
                    raise error
                self._damage.append(error)
                continue
            if "step" in entry:
                self._step(episode, entry, size)
            if "end" in entry:
                episode.end(as_json(entry["end"]))
        self._finish()

    def _step(self, episode: Episode, entry: dict[str, Any], size: int) -> None:
        step: dict[str, Any] = entry["step"]
        calls: list[dict[str, Any]] = entry.get("calls", [])
        place = {"episode_id": episode.id, "step": step["step"]}
        for call in calls:
            self._add("tool_calls", as_json(call) | place | {"call_index": 0}, size)
        if "tokens" in entry:
            self._add("tokens", entry["tokens"] | place | {"policy_version": step.get("policy_version")}, size)
        episode.add(step, calls)
        if "obs_image" in step:
            self._named.add(step["obs_image"])
        whole = self._blobs.put_back(as_json(step))
        step["obs_digest"] = observation_digest(whole.get("obs_text"), whole.get("obs_data"), step.get("obs_image"))
        self._add("steps", step | place, size)

    def _finish(self) -> None:
        if self._episode is not None:
            self._add("episodes", self._episode.row(), 0)
            self._entries.append(self._digests.entry(self._episode.id, self._run))
            self._digests = Digests()
        self._episode = None

    def _add(self, table: str, row: dict[str, Any], size: int) -> None:
        self._digests.add(table, row)
        self._write(table, row, size)

    def _write(self, table: str, row: dict[str, Any], size: int) -> None:
        self._named.update(blob["digest"] for blob in row.get("blobs") or ())
        self._files[table].add(row, size)
