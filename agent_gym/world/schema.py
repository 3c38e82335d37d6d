"""What the engine knows of a world's tables: their columns, their keys, and which of them only log."""

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agent_gym.errors import ConfigurationError

__all__ = ["LOG_PREFIX", "Base", "Ids", "Row", "Schema", "Table", "row_digest"]

LOG_PREFIX = "log_"
"""A table whose name begins so only logs: it is left out of changes and digests."""

Row = tuple[Any, ...]
"""A row's values in the order in which the table declares its columns."""


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        name: Its name.
        columns: Its columns, in declared order.
        key: The one column that is its primary key.
    """

    name: str
    columns: tuple[str, ...]
    key: str

    @property
    def logs(self) -> bool:
        """Whether it only logs."""
        return self.name.startswith(LOG_PREFIX)

    def record(self, row: Row | None) -> dict[str, Any] | None:
        """A row as a record by column name."""
        return None if row is None else dict(zip(self.columns, row, strict=True))


@dataclass(frozen=True)
class Schema:
    """A world's tables.

    Attributes:
        sql: The statements that create them.
        tables: The tables by name.
    """

    sql: str
    tables: Mapping[str, Table]

    @classmethod
    def parse(cls, sql: str) -> "Schema":
        """Reads the tables out of SQL.

        Raises:
            ConfigurationError: A table has no single-column primary key or is not STRICT, or rows could change behind the
                engine's back (a trigger, a foreign key with an action).
        """
        connection = sqlite3.connect(":memory:")
        try:
            connection.executescript(sql)
            if connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'trigger'").fetchone():
                raise ConfigurationError("a world's schema has triggers; rows may only change through the engine")
            names = [(name, strict) for _, name, kind, _, _, strict in connection.execute("PRAGMA table_list") if kind == "table"]
            tables = {name: _table(connection, name, bool(strict)) for name, strict in sorted(names) if not name.startswith("sqlite_")}
        finally:
            connection.close()
        return cls(sql, tables)


def _table(connection: sqlite3.Connection, name: str, strict: bool) -> Table:
    info = connection.execute(f"PRAGMA table_info({name})").fetchall()
    keys = [column[1] for column in info if column[5]]
    if len(keys) != 1 or not strict:
        raise ConfigurationError(f"table {name!r}: a world's tables are STRICT and have a primary key of one column, not {keys}")
    for foreign in connection.execute(f"PRAGMA foreign_key_list({name})"):
        if {foreign[5], foreign[6]} != {"NO ACTION"}:
            raise ConfigurationError(f"table {name!r}: a foreign key with an action changes rows behind the engine's back")
    return Table(name, tuple(column[1] for column in info), keys[0])


@dataclass(frozen=True)
class Base:
    """A database to start from, and what belongs to it.

    Attributes:
        image: The database as SQLite serializes it.
        digest: The sum of its rows' digests.
        clock: Virtual seconds.
        seed: What its ids are drawn from.
        serial: How many ids have been drawn.
    """

    image: bytes
    digest: int
    clock: int
    seed: int
    serial: int


class Ids:
    """Ids of seven digits behind a prefix: they look drawn, and ten million come before one comes twice.

    Args:
        seed: Where they start.
        serial: How many have been given out.
    """

    _SPACE = 10_000_000
    _STEP = 7_368_787  # coprime to ten, so that its multiples run through all of the space

    def __init__(self, seed: int, serial: int = 0) -> None:
        self.seed = seed % self._SPACE
        self.serial = serial

    def new(self, prefix: str) -> str:
        """The next one."""
        self.serial += 1
        return f"{prefix}{(self.seed + self.serial * self._STEP) % self._SPACE:07d}"


def row_digest(table: str, row: Sequence[Any]) -> int:
    """A row's digest as a 128-bit integer: BLAKE2b over JSON, so that 25, 25.0 and ``"25"`` differ."""
    return int.from_bytes(hashlib.blake2b(orjson.dumps((table, *row)), digest_size=16).digest(), "big")
