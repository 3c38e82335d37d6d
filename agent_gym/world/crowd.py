"""A crowd: people of another base database, and all that is theirs, put into a world beside what a task is about.

Whom a world is about follows from its tables: the table that most others refer to. What belongs to somebody refers to them, directly
or through other rows. A reference to what is nobody's, a product say, goes to one that is there.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from agent_gym.world.world import World

__all__ = ["crowd"]

Row = dict[str, Any]
_SERIAL = 7
"""Digits at the end of an id."""


def crowd(world: World, other: World, rng: np.random.Generator, count: int, goal: str) -> None:
    """Adds people, inside the open transaction.

    Args:
        world: Where they come.
        other: Where they come from, a world of the same kind.
        rng: Who is drawn with.
        count: How many, at most.
        goal: Nobody comes of whom a text stands in it: they might be taken for who is meant.
    """
    refers = {name: _references(world, name) for name, table in world.schema.tables.items() if not table.logs}
    referred = Counter(parent for parents in refers.values() for parent in dict.fromkeys(parents.values()))
    if not referred:
        return
    most = max(referred.values())
    people = next(parent for parents in refers.values() for parent in parents.values() if referred[parent] == most)
    theirs = {people}
    for _ in refers:
        theirs |= {name for name, parents in refers.items() if theirs.intersection(parents.values())}
    _Arrivals(world, other, rng, refers, people, theirs).arrive(count, goal.casefold())


def _references(world: World, table: str) -> dict[str, str]:
    """Of a table's columns that refer to others, those tables."""
    return {row["from"]: row["table"] for row in world.query("SELECT * FROM pragma_foreign_key_list(?) ORDER BY seq, id DESC", (table,))}


class _Arrivals:
    """What has come so far, and under which keys."""

    def __init__(
        self, world: World, other: World, rng: np.random.Generator, refers: dict[str, dict[str, str]], people: str, theirs: set[str]
    ) -> None:
        self._world, self._other, self._rng = world, other, rng
        self._refers, self._people, self._theirs = refers, people, theirs
        self._keys: dict[tuple[str, str], str] = {}

    def arrive(self, count: int, goal: str) -> None:
        rows = self._rows(self._people)
        for index in self._rng.permutation(len(rows)):
            row = rows[int(index)]
            if len(self._keys) < count and not any(isinstance(text, str) and text.casefold() in goal for text in row.values()):
                self._add(self._people, row)
        for table in self._in_order():
            for row in self._rows(table):
                self._add(table, row)

    def _rows(self, table: str) -> list[Row]:
        return self._other.query(f"SELECT * FROM {table} ORDER BY {self._world.schema.tables[table].key}")

    def _in_order(self) -> Iterator[str]:
        """The tables of what is theirs, those that others refer to first."""
        done, left = {self._people}, sorted(self._theirs - {self._people})
        while ready := [name for name in left if self._theirs.intersection(self._refers[name].values()) <= {*done, name}]:
            yield from ready
            done.update(ready)
            left = [name for name in left if name not in done]

    def _add(self, table: str, row: Row) -> None:
        """Adds a row if all of theirs that it refers to has come, and nothing is there that it cannot be beside."""
        row = dict(row)
        for column, parent in self._refers[table].items():
            if row[column] is None:
                continue
            if parent in self._theirs:
                row[column] = self._keys.get((parent, row[column]))
                if row[column] is None:
                    return
            else:
                row[column] = self._anyone(table, column, parent)
        column = self._world.schema.tables[table].key
        key = row[column]
        row[column] = self._world.new_id(key[:-_SERIAL])
        with suppress(sqlite3.IntegrityError):
            self._world.insert(table, **row)
            self._keys[table, key] = row[column]

    def _anyone(self, table: str, column: str, parent: str) -> str | None:
        """A row that is there already, of a table whose rows are nobody's; none where none is needed."""
        needed = self._world.query('SELECT "notnull" FROM pragma_table_info(?) WHERE name = ?', (table, column))[0]["notnull"]
        key = self._world.schema.tables[parent].key
        found = self._world.query(f"SELECT {key} FROM {parent} ORDER BY {key}") if needed else []
        return str(found[int(self._rng.integers(len(found)))][key]) if found else None
