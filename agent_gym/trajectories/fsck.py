"""Looking for damage in a store, and getting out of it what is whole."""

import os
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agent_gym.errors import StoreError
from agent_gym.trajectories.blobs import Blobs
from agent_gym.trajectories.ledger import ledger_path, walk
from agent_gym.trajectories.log import DamagedLog, read_log, try_lock
from agent_gym.trajectories.manifest import FILE_TABLES, Listed, Manifest, kept, manifest_path, parts_on_disk
from agent_gym.trajectories.query import query, trouble
from agent_gym.trajectories.seal import seal_run

__all__ = ["Finding", "fsck", "recover"]

_AGREES = {
    "is doubled": "SELECT episode_id FROM episodes GROUP BY ALL HAVING count(*) > 1",
    "has a step twice": "SELECT DISTINCT episode_id FROM (SELECT episode_id FROM steps GROUP BY episode_id, step HAVING count(*) > 1)",
    "has steps but no row of its own": "SELECT DISTINCT episode_id FROM steps ANTI JOIN episodes USING (episode_id)",
    "has not as many steps as its row says": """
        SELECT episode_id FROM episodes LEFT JOIN (
            SELECT episode_id, count(action_valid) AS n FROM steps GROUP BY ALL
        ) USING (episode_id) WHERE n_turns != coalesce(n, 0)
        AND NOT (n IS NULL AND episode_id IN (SELECT episode_id FROM events WHERE kind = 'dropped_steps'))""",
}
"""What must not be found among the rows: why, and the query for it."""
_BLOBS = """
SELECT DISTINCT digest FROM (
    SELECT obs_image AS digest FROM steps UNION ALL
    SELECT blob.digest FROM (
        SELECT unnest(blobs) AS blob FROM steps UNION ALL
        SELECT unnest(blobs) AS blob FROM tool_calls UNION ALL
        SELECT unnest(blobs) AS blob FROM events UNION ALL
        SELECT unnest(blobs) AS blob FROM episodes
    ) WHERE blob.bytes IS NOT NULL
) WHERE digest IS NOT NULL
"""
_NAMED_AT_MOST = 20


class Finding(NamedTuple):
    """Something wrong, or something done about it.

    Attributes:
        path: The file, below the store; or an episode's id.
        what: What it is, going on after the path.
    """

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


def fsck(root: Path) -> list[Finding]:
    """Looks at every file of a store and changes none.

    Compares the files with the manifest (size, SHA-256), the tables with each other, the blobs with their digests, and every line
    of the logs with its checksum.

    Returns:
        What is wrong. An unfinished last line of a log is told, though it was never acknowledged.

    Raises:
        OSError: A file cannot be read.
    """
    if findings := _of_databases(root):
        return findings
    files = {table: kept(root, table) for table in FILE_TABLES}
    findings = [Finding(_name(root, file.path), what) for listed in files.values() for file in listed if (what := trouble(file))]
    known = {file.path for listed in files.values() for file in listed}
    findings += [
        Finding(_name(root, path), "is not in the manifest, so it is not read") for path in parts_on_disk(root) if path not in known
    ]
    findings += _of_ledger(root)
    whole = not findings
    findings += _of_logs(root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # those files were told above
        if whole:
            findings += _of_rows(root)
        findings += _of_blobs(root)
    return findings


def recover(root: Path) -> list[Finding]:
    """Makes a store whole again, with what can be read. Nothing is deleted: damaged files get the ending ``.damaged``.

    Returns:
        What was done.

    Raises:
        StoreError: The store cannot be written.
        OSError: The same.
    """
    done = []
    for name, _ in _of_databases(root):
        for path in (root / name, root / f"{name}-journal"):
            if path.exists():
                path.rename(path.with_name(f"{path.name}.damaged"))
        anew = "was made anew from the files" if root / name == manifest_path(root) else "was put aside, and another begins"
        done.append(Finding(name, anew))
    with Manifest.of(root) as manifest:
        for folder in sorted(root.glob("wal/run_id=*")):
            episodes, damage = seal_run(manifest, folder.name.removeprefix("run_id="), salvage=True)
            done += [_told(root, error) for error in damage]
            if episodes:
                done.append(Finding(_name(root, folder), f"was sealed: {episodes} episodes"))
        for table in FILE_TABLES:
            for file in manifest.kept(table):
                if what := trouble(file):
                    if file.path.exists():
                        file.path.rename(file.path.with_name(f"{file.path.name}.damaged"))
                    manifest.forget(file.path)
                    done.append(Finding(_name(root, file.path), f"{what}; it was taken out"))
            known = {file.path for file in manifest.kept(table)}
            for path in parts_on_disk(root, table):
                if path not in known and not trouble(Listed(path)):
                    manifest.adopt(path)
                    done.append(Finding(_name(root, path), "was taken in"))
    return done


def _of_databases(root: Path) -> list[Finding]:
    findings = []
    for path in (manifest_path(root), ledger_path(root)):
        if not path.exists():
            continue
        try:
            with closing(sqlite3.connect(path)) as database:
                answer = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
                if path == manifest_path(root):
                    kept(root, "episodes")
        except (sqlite3.Error, StoreError) as error:
            answer = str(error)
        if answer != "ok":
            findings.append(Finding(_name(root, path), f"is damaged: {answer}"))
    return findings


def _of_ledger(root: Path) -> Iterator[Finding]:
    broken = (Finding(_name(root, ledger_path(root)), f"is broken at entry {link.seq}") for link in walk(root) if not link.follows)
    return islice(broken, 1)


def _of_logs(root: Path) -> Iterator[Finding]:
    for log in sorted(root.glob("wal/run_id=*/*.jsonl")):
        damage: list[DamagedLog] = []
        for _ in read_log(log, damage):
            pass
        yield from (_told(root, error) for error in damage)
        if _torn(log) and (fd := try_lock(log)) is not None:  # a living writer may be in the middle of a line
            os.close(fd)
            if _torn(log):
                yield Finding(_name(root, log), "ends in an unfinished line, which was never acknowledged and will be left out")


def _torn(log: Path) -> bool:
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return size > 0 and file.read() != b"\n"


def _of_rows(root: Path) -> Iterator[Finding]:
    for what, sql in _AGREES.items():
        rows = query(root, sql)
        yield from (Finding(f"episode {row['episode_id']}", what) for row in rows[:_NAMED_AT_MOST])
        if len(rows) > _NAMED_AT_MOST:
            yield Finding(f"{len(rows) - _NAMED_AT_MOST} more episodes", f"alike: {what}")


def _of_blobs(root: Path) -> Iterator[Finding]:
    blobs = Blobs(root)
    for digest in sorted(row["digest"] for row in query(root, _BLOBS)):
        try:
            blobs.get(digest)
        except StoreError:
            yield Finding(_name(root, blobs.path(digest)), "is damaged" if blobs.path(digest).exists() else "is missing")


def _told(root: Path, error: DamagedLog) -> Finding:
    return Finding(_name(root, error.path), f"line {error.line} is damaged ({error.detail})")


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
