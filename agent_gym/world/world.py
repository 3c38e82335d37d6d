"""The World: a small business as an in-memory SQLite database, a virtual clock and seeded ids. Knows no particular business.

Rows change only through `World.insert`, `World.update` and `World.delete` inside a `World.transaction`, which is all or nothing:
database, clock, ids, changes and digest. Changes and digest are kept up row by row, so that asking for them costs nothing.
"""

import base64
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any

from agent_gym.core import Change, Snapshot
from agent_gym.errors import ConfigurationError
from agent_gym.world.ledger import Ledger
from agent_gym.world.operations import DeadlinePassed, NotFound
from agent_gym.world.schema import Base, Ids, Row, Schema, Table, row_digest

__all__ = ["World"]

_MODULUS = 1 << 128
_PROGRESS_EVERY = 2_000
"""SQLite instructions between two looks at the deadline; well below a millisecond."""

_Changes = dict[tuple[str, str], tuple[Row | None, Row | None]]
_Written = tuple[tuple[str, Row | None, Row | None], ...]
"""Tables and their rows before and after, in the order in which they were written."""


class World:
    """One world. Usable from any thread; one transaction at a time.

    Args:
        schema: Its tables.
        base: The database to start from; its state is what `changes` compares with.

    Attributes:
        clock: Virtual seconds since 1970. Moved inside transactions only.
        ledger: How writes with a key were answered. Goes with the state, but is no part of what `digest` and `changes` look at.
    """

    def __init__(self, schema: Schema, base: Base) -> None:
        self.schema = schema
        self.clock = base.clock
        self._ids = Ids(base.seed, base.serial)
        self._digest = self._start = base.digest
        self._changes: _Changes = {}
        self._written: _Written = ()
        self._deeds: tuple[_Written, ...] = ()
        self._lock = RLock()
        self.ledger = Ledger(self._lock)
        self._deadline = math.inf
        self._interrupted = False
        self._writable = False
        self._closed = False
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._load(base.image)
        self._connection.set_progress_handler(self._late, _PROGRESS_EVERY)

    @classmethod
    def build(cls, schema: Schema, seed: int, clock: int, rows: Callable[[Ids], Mapping[str, Sequence[Mapping[str, Any]]]]) -> Base:
        """Builds a base database from nothing.

        Args:
            schema: Its tables.
            seed: What its ids are drawn from.
            clock: Virtual seconds at which it stands.
            rows: Gives the rows by table, tables that others refer to first. Every row of a table has the same columns.
        """
        ids = Ids(seed)
        connection = sqlite3.connect(":memory:")
        connection.executescript(f"PRAGMA page_size = 1024; PRAGMA foreign_keys = ON; {schema.sql}")
        with connection:
            for table, records in rows(ids).items():
                columns = list(records[0])
                marks = ", ".join(f":{column}" for column in columns)
                connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", records)
        digest = _full_digest(schema, connection.execute)
        image = connection.serialize()
        connection.close()
        return Base(image, digest, clock, ids.seed, ids.serial)

    def _load(self, image: bytes) -> None:
        self._connection.deserialize(image)
        self._connection.execute("PRAGMA foreign_keys = ON")

    # --- Reading ---

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Reads rows, as records by column name.

        Raises:
            ValueError: The statement is no SELECT.
            DeadlinePassed: The transaction's deadline has passed, or `interrupt` was called.
        """
        if not sql.startswith(("SELECT", "WITH")):
            raise ValueError(f"query() only reads, but the statement begins {sql[:20]!r}")
        with self._lock:
            cursor = self._execute(sql, parameters)
            names = [column[0] for column in cursor.description]
            try:
                return [dict(zip(names, row, strict=True)) for row in cursor]
            except sqlite3.OperationalError as error:
                raise self._explained(error) from error

    def get(self, table: str, key: str) -> dict[str, Any]:
        """The record under a primary key.

        Raises:
            NotFound: There is none.
            DeadlinePassed: As for `query`.
        """
        known = self._table(table)
        with self._lock:
            row = self._row(known, key)
        record = known.record(row)
        if record is None:
            raise NotFound(f"{known.key} {key!r} does not exist")
        return record

    # --- Writing ---

    @contextmanager
    def transaction(self, deadline: float = math.inf, *, trial: bool = False, deed: bool = False) -> Iterator[None]:
        """One operation: everything in it happens, or nothing of it does.

        Args:
            deadline: Seconds of `time.monotonic` past which every read and write raises.
            trial: Undo everything at the end in any case; what `changes` says inside is what would have happened.
            deed: What it writes is the agent's own doing, which can be taken back; see `agent_gym.world.undo`.

        Raises:
            DeadlinePassed: From reads and writes inside; everything is then as it was before.
        """
        with self._lock:
            if self._writable:
                raise RuntimeError("a transaction is already open; operations do not nest")
            before = (self._digest, self.clock, self._ids.serial, dict(self._changes), self._deeds)
            self._writable, self._deadline, self._interrupted = True, deadline, False
            done = False
            try:
                yield
                if self._connection.in_transaction and not trial:
                    self._execute("COMMIT")
                done = not trial
                if deed and self._written:
                    self._deeds += (self._written,)
            finally:
                self._writable, self._deadline, self._interrupted, self._written = False, math.inf, False, ()
                if not done:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    self._digest, self.clock, self._ids.serial, self._changes, self._deeds = before

    def insert(self, table: str, **columns: Any) -> None:
        """Adds a row.

        Raises:
            sqlite3.IntegrityError: A constraint does not hold.
            DeadlinePassed: As for `query`.
        """
        known = self._table(table, columns)
        marks = ", ".join("?" * len(columns))
        row = self._write(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) RETURNING *", tuple(columns.values()))
        self._record(known, None, row)

    def update(self, table: str, key: str, **columns: Any) -> None:
        """Changes columns of one row.

        Raises:
            NotFound: There is no such row.
            sqlite3.IntegrityError: A constraint does not hold.
            DeadlinePassed: As for `query`.
        """
        known = self._table(table, columns)
        if known.key in columns:
            raise ValueError(f"{table}.{known.key} is the primary key and stays; delete and insert instead")
        before = self._existing(known, key)
        sets = ", ".join(f"{column} = ?" for column in columns)
        row = self._write(f"UPDATE {table} SET {sets} WHERE {known.key} = ? RETURNING *", (*columns.values(), key))
        self._record(known, before, row)

    def delete(self, table: str, key: str) -> None:
        """Removes one row.

        Raises:
            NotFound: There is no such row.
            sqlite3.IntegrityError: Another row refers to it.
            DeadlinePassed: As for `query`.
        """
        known = self._table(table)
        before = self._existing(known, key)
        self._write(f"DELETE FROM {table} WHERE {known.key} = ? RETURNING *", (key,))
        self._record(known, before, None)

    def written(self) -> list[Change]:
        """What the open transaction has written, in order; a row may come more than once."""
        return self._told(self._written)

    def last_deed(self) -> list[Change]:
        """What the last deed that is not taken back has written, in order; nothing where there is none."""
        return self._told(self._deeds[-1]) if self._deeds else []

    def strike(self) -> None:
        """Takes the last deed for taken back: by what the open transaction has written, which so is no deed itself."""
        self._check_writable()
        self._written, self._deeds = (), self._deeds[:-1]

    def seal(self) -> None:
        """Puts all deeds beyond taking back, and what the open transaction has written with them."""
        self._check_writable()
        self._written, self._deeds = (), ()

    def new_id(self, prefix: str) -> str:
        """The next id: the prefix and seven digits, never the same twice in a world and what is forked from it."""
        self._check_writable()
        return self._ids.new(prefix)

    @property
    def serial(self) -> int:
        """How many ids have been given out."""
        return self._ids.serial

    def advance(self, seconds: int) -> None:
        """Moves the virtual clock forward."""
        self._check_writable()
        if seconds < 0:
            raise ValueError(f"the clock runs forward only, not by {seconds} s")
        self.clock += seconds

    # --- State ---

    def digest(self) -> str:
        """128 bits over every row but the logs', as 32 hex digits: equal digests, equal rows."""
        return f"{self._digest:032x}"

    def recomputed_digest(self) -> str:
        """What `digest` must equal, from a full read of the database."""
        with self._lock:
            return f"{_full_digest(self.schema, self._execute):032x}"

    def changes(self) -> list[Change]:
        """What differs from the start, row by row, sorted by table and key; a row that was put back is no change."""
        with self._lock:
            found = sorted(self._changes.items())
        return self._told((name, before, after) for (name, _), (before, after) in found)

    def settle(self) -> None:
        """Makes the present state the start: there are no changes from here, and nothing to take back."""
        with self._lock:
            self._changes, self._deeds = {}, ()
            self._start = self._digest

    def base(self) -> Base:
        """The present state as a base to open other worlds on."""
        with self._lock:
            return Base(self._connection.serialize(), self._digest, self.clock, self._ids.seed, self._ids.serial)

    def fork(self) -> "World":
        """An independent copy: same rows, clock, ids and changes."""
        with self._lock:
            copy = World(self.schema, self.base())
            copy._changes, copy._start, copy._deeds = dict(self._changes), self._start, self._deeds
            copy.ledger = Ledger(copy._lock, self.ledger.rows())
        return copy

    def snapshot(self) -> Snapshot:
        """The whole state as JSON values."""
        with self._lock:
            base = self.base()
            return {
                "image": base64.b64encode(base.image).decode(),
                "digest": f"{base.digest:032x}",
                "start": f"{self._start:032x}",
                "clock": base.clock,
                "seed": base.seed,
                "serial": base.serial,
                "changes": [[name, key, before, after] for (name, key), (before, after) in sorted(self._changes.items())],
                "deeds": [[list(written) for written in deed] for deed in self._deeds],
                "answers": self.ledger.rows(),
            }

    def restore(self, snapshot: Snapshot) -> None:
        """Puts back a state that `snapshot` gave, of this or of any world with the same schema."""
        with self._lock:
            self._load(base64.b64decode(snapshot["image"]))
            self._digest, self._start = int(snapshot["digest"], 16), int(snapshot["start"], 16)
            self.clock, self._ids = snapshot["clock"], Ids(snapshot["seed"], snapshot["serial"])
            self._changes = {(name, key): (_row(before), _row(after)) for name, key, before, after in snapshot["changes"]}
            self._deeds = tuple(tuple((name, _row(before), _row(after)) for name, before, after in deed) for deed in snapshot["deeds"])
            self.ledger = Ledger(self._lock, snapshot["answers"])

    def diff(self, other: "World") -> list[Change]:
        """What differs between this world (before) and another (after), sorted by table and key.

        Costs as much as there are changes where both have the same start, and a full read where they have not.
        """
        if self._start == other._start:
            touched = sorted(self._changes.keys() | other._changes.keys())
            pairs = [(self.schema.tables[name], key) for name, key in touched]
        else:
            pairs = sorted(
                {(table, key) for table in self.schema.tables.values() if not table.logs for key in self._keys(table) | other._keys(table)},
                key=lambda pair: (pair[0].name, pair[1]),
            )
        rows = [(table, key, self._row(table, key), other._row(table, key)) for table, key in pairs]
        return [
            Change(table.name, key, table.record(mine), table.record(theirs))
            for table, key, mine, theirs in rows
            if not _same(mine, theirs)
        ]

    def interrupt(self) -> None:
        """Stops the transaction that is under way, from any thread; its next read or write raises `DeadlinePassed`."""
        self._interrupted = True
        with suppress(sqlite3.ProgrammingError):  # closed meanwhile: there is nothing left to stop
            self._connection.interrupt()

    def close(self) -> None:
        """Frees the database. Closing twice is fine."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._connection.set_progress_handler(None, 0)
                self._connection.close()

    # --- Inside ---

    def _late(self) -> bool:
        return self._interrupted or time.monotonic() > self._deadline

    def _execute(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        if self._writable and self._late():
            raise DeadlinePassed("the deadline passed; nothing was changed")
        try:
            return self._connection.execute(sql, parameters)
        except sqlite3.OperationalError as error:
            raise self._explained(error) from error

    def _explained(self, error: sqlite3.OperationalError) -> Exception:
        stopped = error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT
        return DeadlinePassed("the deadline passed; nothing was changed") if stopped else error

    def _write(self, sql: str, parameters: Sequence[Any]) -> Row:
        self._check_writable()
        if not self._connection.in_transaction:
            self._execute("BEGIN")
        rows = self._execute(sql, parameters).fetchall()
        return _row(rows[0]) or ()

    def _check_writable(self) -> None:
        if not self._writable:
            raise RuntimeError("rows, ids and the clock change inside a transaction only")

    def _record(self, table: Table, before: Row | None, after: Row | None) -> None:
        if table.logs:
            return
        if before is not None:
            self._digest = (self._digest - row_digest(table.name, before)) % _MODULUS
        if after is not None:
            self._digest = (self._digest + row_digest(table.name, after)) % _MODULUS
        self._written += ((table.name, before, after),)
        place = (table.name, _key(table, before, after))
        first = self._changes[place][0] if place in self._changes else before
        if _same(first, after):
            self._changes.pop(place, None)
        else:
            self._changes[place] = (first, after)

    def _told(self, written: Iterable[tuple[str, Row | None, Row | None]]) -> list[Change]:
        tables = self.schema.tables
        rows = ((tables[name], before, after) for name, before, after in written)
        return [Change(table.name, _key(table, before, after), table.record(before), table.record(after)) for table, before, after in rows]

    def _table(self, name: str, columns: Mapping[str, Any] | None = None) -> Table:
        table = self.schema.tables.get(name)
        if table is None:
            raise ConfigurationError(f"there is no table {name!r}; there are {', '.join(self.schema.tables)}")
        for column in columns or ():
            if column not in table.columns:
                raise ConfigurationError(f"table {name!r} has no column {column!r}; it has {', '.join(table.columns)}")
        return table

    def _row(self, table: Table, key: str) -> Row | None:
        return _row(self._execute(f"SELECT * FROM {table.name} WHERE {table.key} = ?", (key,)).fetchone())

    def _existing(self, table: Table, key: str) -> Row:
        row = self._row(table, key)
        if row is None:
            raise NotFound(f"{table.key} {key!r} does not exist")
        return row

    def _keys(self, table: Table) -> set[str]:
        return {row[0] for row in self._execute(f"SELECT {table.key} FROM {table.name}")}


def _full_digest(schema: Schema, execute: Callable[[str], sqlite3.Cursor]) -> int:
    tables = [name for name, table in schema.tables.items() if not table.logs]
    return sum(row_digest(name, row) for name in tables for row in execute(f"SELECT * FROM {name}")) % _MODULUS


def _key(table: Table, before: Row | None, after: Row | None) -> str:
    return str((after or before or ())[table.columns.index(table.key)])


def _row(values: Sequence[Any] | None) -> Row | None:
    return None if values is None else tuple(values)


def _same(one: Row | None, other: Row | None) -> bool:
    return one == other and [type(value) for value in one or ()] == [type(value) for value in other or ()]
