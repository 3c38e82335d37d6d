"""Which files a store consists of: a small SQLite database, in which every change of the store is one transaction.

New files are *adding* until they are whole and on disk; then, in one transaction, they are *kept*, and what they replace (logs that
were sealed, parts that were compacted) is *removing* until it is gone. Whoever next changes the store finishes what a dead process
left: an *adding* file goes, and so does a *removing* one. So at any moment a reader that asks here sees every row once.

One process at a time changes a store, by a lock on ``_meta/store.lock``. A store without a manifest (made before there was one, or
whose manifest was lost) is what its files say; the first change writes it down.
"""

import fcntl
import glob
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import quote

from agent_gym.errors import StoreError
from agent_gym.trajectories.durable import checksum, hidden, sync
from agent_gym.trajectories.ledger import Entry, append, attach, ledger_path
from agent_gym.trajectories.log import store_error

__all__ = ["FILE_TABLES", "Listed", "Manifest", "Part", "kept", "manifest_path", "parts_on_disk"]

FILE_TABLES = ("steps", "tool_calls", "tokens", "events", "episodes")
"""The tables, without loading pyarrow."""
_SCHEMA = """
CREATE TABLE files (
    path TEXT PRIMARY KEY,  -- below the store's folder
    state TEXT NOT NULL,    -- adding, kept, removing
    rows INTEGER,
    bytes INTEGER,
    sha256 TEXT
) WITHOUT ROWID
"""
_BUSY_S = 60.0


class Part(NamedTuple):
    """A file of a table, as it was written."""

    rows: int
    bytes: int
    sha256: str


class Listed(NamedTuple):
    """A file of a part, as the manifest has it. What is None is not known."""

    path: Path
    rows: int | None = None
    bytes: int | None = None
    sha256: str | None = None


class Writer(Protocol):
    """Writes the files of a part."""

    entries: list[Entry]
    """What the ledger is to say of it."""

    def finish(self) -> dict[str, Part]:
        """Puts them in place; those that have rows, by table."""

    def abandon(self) -> None:
        """Lets go of them."""


_Writer = TypeVar("_Writer", bound=Writer)


class Manifest:
    """The manifest of a store that this process alone is changing; `Manifest.of` gives it.

    Args:
        root: The store.
        database: An open connection.
    """

    def __init__(self, root: Path, database: sqlite3.Connection) -> None:
        self.root = root
        self._database = database

    @classmethod
    @contextmanager
    def of(cls, root: Path) -> Iterator["Manifest"]:
        """Waits until nobody else changes the store, and finishes what a dead process left.

        Raises:
            StoreError: The store cannot be written, or its manifest is damaged.
        """
        path = manifest_path(root)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.with_name("store.lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                with closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as database:
                    attach(database, root)
                    manifest = cls(root, database)
                    if not _made(database):
                        manifest._make()
                    manifest._settle()
                    yield manifest
        except OSError as error:
            raise store_error("change", Path(error.filename or root), error) from error
        except sqlite3.Error as error:
            raise StoreError(f"cannot change {path}, or {ledger_path(root).name} beside it: {error}; see agent-gym store fsck") from error

    def replace(
        self,
        run_id: str,
        writer_of: Callable[[dict[str, Path]], _Writer],
        fill: Callable[[_Writer], None],
        old: Iterable[Path],
    ) -> dict[str, Part]:
        """Puts a new part in the place of old files, at once.

        Args:
            run_id: The run that it is a part of.
            writer_of: Opens a writer for the part's files.
            fill: Gives the writer its rows.
            old: What is then no longer needed: logs, or files of parts.

        Returns:
            The new files that have rows, by table.

        Raises:
            OSError: A file cannot be written or read.
            sqlite3.Error: The manifest cannot be written.
        """
        name = f"part-{uuid.uuid4().hex[:12]}.parquet"
        paths = {table: f"{table}/run_id={run_id}/{name}" for table in FILE_TABLES}
        with self._transaction() as change:
            change("INSERT INTO files (path, state) VALUES (?, 'adding')", [(path,) for path in paths.values()])
        writer = writer_of({table: self.root / path for table, path in paths.items()})
        try:
            fill(writer)
            parts = writer.finish()
        except BaseException:
            writer.abandon()
            self._settle()
            raise
        with self._transaction() as change:
            change("DELETE FROM files WHERE state = 'adding'", [()])
            change("INSERT INTO files VALUES (?, 'kept', ?, ?, ?)", [(paths[table], *part) for table, part in parts.items()])
            change("INSERT OR REPLACE INTO files (path, state) VALUES (?, 'removing')", [(self._name(path),) for path in old])
            append(self._database, writer.entries)
        self._settle()
        return parts

    def kept(self, table: str, run_id: str | None = None) -> list[Listed]:
        """The files of a table.

        Raises:
            sqlite3.Error: The manifest is damaged.
        """
        return _kept(self.root, self._database, table, run_id)

    def adopt(self, path: Path) -> None:
        """Takes in a file of a part that the manifest does not know.

        Raises:
            OSError: It cannot be read.
        """
        with self._transaction() as change:
            change("INSERT OR REPLACE INTO files VALUES (?, 'kept', ?, ?, ?)", [self._found(path)])

    def forget(self, path: Path) -> None:
        """Takes a file out; it is not touched."""
        with self._transaction() as change:
            change("DELETE FROM files WHERE path = ?", [(self._name(path),)])

    def _make(self) -> None:
        with self._transaction() as change:
            self._database.execute(_SCHEMA)
            change("INSERT INTO files VALUES (?, 'kept', ?, ?, ?)", [self._found(path) for path in parts_on_disk(self.root)])

    def _found(self, path: Path) -> tuple[object, ...]:
        import pyarrow as pa  # recording needs none
        import pyarrow.parquet as pq

        try:
            rows = pq.read_metadata(path).num_rows
        except pa.ArrowException:  # damaged: taken in nonetheless, so that it is missed
            rows = None
        return self._name(path), rows, path.stat().st_size, checksum(path)

    def _settle(self) -> None:
        leftover = self._database.execute("SELECT path FROM files WHERE state != 'kept'").fetchall()
        folders = set()
        for (name,) in leftover:
            path = self.root / name
            for one in (path, hidden(path)):
                if one.exists():
                    one.unlink()
                    folders.add(path.parent)
        for folder in folders:
            sync(folder)
        if leftover:
            with self._transaction() as change:
                change("DELETE FROM files WHERE path = ?", leftover)

    @contextmanager
    def _transaction(self) -> Iterator[Callable[[str, Iterable[tuple[object, ...]]], object]]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database.executemany
            self._database.execute("COMMIT")
        finally:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def manifest_path(root: Path) -> Path:
    """Where a store's manifest is."""
    return root / "_meta" / "manifest.sqlite"


def kept(root: Path, table: str, run_id: str | None = None) -> list[Listed]:
    """The files of a table, of all runs or of one.

    Raises:
        StoreError: The manifest is damaged.
    """
    path = manifest_path(root)
    if not path.exists():
        return [Listed(part) for part in parts_on_disk(root, table, run_id)]
    try:  # not read-only: after a crash, it is for whoever opens it to roll a transaction back
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=_BUSY_S)) as database:
            if not _made(database):
                return [Listed(part) for part in parts_on_disk(root, table, run_id)]
            return _kept(root, database, table, run_id)
    except sqlite3.Error as error:
        raise StoreError(f"cannot read {path}: {error}; agent-gym store recover makes it anew from the files") from error


def parts_on_disk(root: Path, table: str | None = None, run_id: str | None = None) -> list[Path]:
    """Files of parts as they lie in their folders, whatever the manifest says."""
    tables = FILE_TABLES if table is None else (table,)
    runs = "run_id=*" if run_id is None else f"run_id={glob.escape(run_id)}"
    return sorted(path for name in tables for path in root.glob(f"{name}/{runs}/part-*.parquet"))


def _made(database: sqlite3.Connection) -> bool:
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'files'").fetchone() is not None


def _kept(root: Path, database: sqlite3.Connection, table: str, run_id: str | None) -> list[Listed]:
    prefix = f"{table}/run_id=" if run_id is None else f"{table}/run_id={run_id}/"
    sql = "SELECT path, rows, bytes, sha256 FROM files WHERE state = 'kept' AND path BETWEEN ? AND ? ORDER BY path"
    return [Listed(root / path, *about) for path, *about in database.execute(sql, (prefix, prefix + "\U0010ffff"))]
