"""Writing one Parquet file of a table: sorted, compressed, checksummed, under a hidden name until it is whole and on disk."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from agent_gym.errors import StoreError
from agent_gym.trajectories.durable import checksum, hidden, rename_durably
from agent_gym.trajectories.ledger import Entry
from agent_gym.trajectories.manifest import Part
from agent_gym.trajectories.schema import SORTED_BY, TABLES

__all__ = ["PartWriter", "TableFile"]

_GROUP_ROWS = {"steps": 8_192, "tool_calls": 16_384, "tokens": 8_192, "events": 16_384, "episodes": 4_096}
"""Few rows, since a look-up by the episode's id reads a whole group."""
_GROUP_BYTES = 32 * 2**20
_BATCH_ROWS = 256
"""Rows are turned into columns a few at a time, while they are still in the processor's cache."""
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

    def add_columns(self, batch: pa.RecordBatch) -> None:
        """Takes in many rows at once, as columns of the table."""
        self._batches.append(batch)
        self._held_rows += batch.num_rows
        self._held_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._held_rows >= _GROUP_ROWS[self._table] or self._held_bytes >= _GROUP_BYTES:
            self._write_group()

    def finish(self) -> Part | None:
        """Writes what is left, and gives the file its name once it is on disk.

        Returns:
            The part's file, or None if no row came.

        Raises:
            StoreError: A row does not fit the table.
        """
        if self._pending:
            self._batch()
        if self._batches:
            self._write_group()
        if self._writer is None:
            return None
        self._writer.close()
        rename_durably(self._path)
        return Part(rows=self.rows, bytes=self._path.stat().st_size, sha256=checksum(self._path))

    def abandon(self) -> None:
        """Lets go of the file, which whoever keeps the manifest removes."""
        if self._writer is not None:
            with suppress(OSError):  # a full disk refuses the footer too
                self._writer.close()

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
        self._writer.write_table(pa.Table.from_batches(self._batches), row_group_size=_GROUP_ROWS[self._table])
        self._batches, self._held_rows, self._held_bytes = [], 0, 0

    def _open(self) -> pq.ParquetWriter:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        small = [field.name for field in self._schema if field.name not in _LARGE]
        order = [(name, "ascending") for name in SORTED_BY[self._table]]
        return pq.ParquetWriter(
            hidden(self._path),
            self._schema,
            compression="zstd",
            compression_level=_ZSTD_LEVEL,
            use_dictionary=small,
            write_statistics=small,
            write_page_checksum=True,
            write_page_index=True,
            sorting_columns=pq.SortingColumn.from_ordering(self._schema, order),
        )


class PartWriter:
    """The files of a part, one a table, written side by side.

    Args:
        paths: Where they will be, by table.

    Attributes:
        entries: What the ledger is to say of the rows that are new to the store.
    """

    def __init__(self, paths: dict[str, Path]) -> None:
        self.entries: list[Entry] = []
        self.files = {table: TableFile(table, path) for table, path in paths.items()}

    def finish(self) -> dict[str, Part]:
        """Puts all files in place.

        Returns:
            Those that have rows, by table.

        Raises:
            OSError: One cannot be written.
            StoreError: A row does not fit its table.
        """
        finished = {table: file.finish() for table, file in self.files.items()}
        return {table: part for table, part in finished.items() if part is not None}

    def abandon(self) -> None:
        """Lets go of all files."""
        for file in self.files.values():
            file.abandon()
