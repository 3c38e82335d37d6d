"""Writing one Parquet file of a table: sorted, compressed, checksummed, under a hidden name until it is whole and on disk."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from agent_gym.errors import StoreError
from agent_gym.trajectories.schema import TABLES

__all__ = ["TableFile", "write_durably"]

_GROUP_ROWS = {"steps": 8_192, "tool_calls": 65_536, "episodes": 65_536}
_GROUP_BYTES = 32 * 2**20
_BATCH_ROWS = 256
"""Rows are turned into columns a few at a time, while they are still in the processor's cache."""
_SORTED_BY = {"steps": ("episode_id", "step"), "tool_calls": ("episode_id", "step", "call_index", "attempt"), "episodes": ("episode_id",)}
_LARGE = frozenset({"obs_text", "obs_data", "action", "arguments", "result", "structured", "changes", "checks", "note", "given", "error"})
_ZSTD_LEVEL = 3


class TableFile:
    """A file that takes in rows in their order and holds no more than a row group of them in memory.

    Args:
        table: The table's name.
        path: Where the file will be. If no row comes, there will be none.
    """

    def __init__(self, table: str, path: Path) -> None:
        self.rows = 0
        self._table, self._schema, self._path = table, TABLES[table], path
        self._pending: list[dict[str, Any]] = []
        self._batches: list[pa.RecordBatch] = []
        self._held_rows = self._held_bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, row: dict[str, Any], size: int = 0) -> None:
        """Takes in a row; ``size`` is roughly its bytes.

        Raises:
            StoreError: A row does not fit the table.
        """
        self._pending.append(row)
        self._held_bytes += size
        if len(self._pending) == _BATCH_ROWS:
            self._batch()
            if self._held_rows >= _GROUP_ROWS[self._table] or self._held_bytes >= _GROUP_BYTES:
                self._write_group()

    def finish(self) -> None:
        """Writes what is left and closes the file, which is still hidden.

        Raises:
            StoreError: A row does not fit the table.
        """
        if self._pending:
            self._batch()
        if self._batches:
            self._write_group()
        if self._writer is not None:
            self._writer.close()

    def put_in_place(self) -> None:
        """Gives the finished file its name, once it is on disk."""
        if self._writer is not None:
            _rename_durably(_hidden(self._path), self._path)

    def discard(self) -> None:
        """Closes and removes the file if it is still hidden."""
        if self._writer is not None:
            self._writer.close()
            _hidden(self._path).unlink(missing_ok=True)

    def _batch(self) -> None:
        rows, present = self._pending, set().union(*self._pending)
        try:
            columns = [
                pa.array([row.get(field.name) for row in rows], field.type) if field.name in present else pa.nulls(len(rows), field.type)
                for field in self._schema
            ]
        except pa.ArrowException as error:
            raise StoreError(f"{self._path}: a row does not fit the table {self._table!r}: {error}") from error
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self._held_rows += len(rows)
        self.rows += len(rows)
        self._pending = []

    def _write_group(self) -> None:
        if self._writer is None:
            self._writer = self._open()
        self._writer.write_table(pa.Table.from_batches(self._batches), row_group_size=self._held_rows)
        self._batches, self._held_rows, self._held_bytes = [], 0, 0

    def _open(self) -> pq.ParquetWriter:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        small = [field.name for field in self._schema if field.name not in _LARGE]
        order = [(name, "ascending") for name in _SORTED_BY[self._table]]
        return pq.ParquetWriter(
            _hidden(self._path),
            self._schema,
            compression="zstd",
            compression_level=_ZSTD_LEVEL,
            use_dictionary=small,
            write_statistics=small,
            write_page_checksum=True,
            write_page_index=True,
            sorting_columns=pq.SortingColumn.from_ordering(self._schema, order),
        )


def write_durably(path: Path, content: bytes) -> None:
    """Writes a small file whole or not at all, even if the machine dies."""
    hidden = _hidden(path)
    hidden.write_bytes(content)
    _rename_durably(hidden, path)


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


def _rename_durably(source: Path, target: Path) -> None:
    _sync(source)
    source.rename(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
