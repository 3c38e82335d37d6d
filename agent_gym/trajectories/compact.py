"""Compacting: the many small parts of a run become few large ones, sorted as before."""

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

from agent_gym.errors import StoreError
from agent_gym.trajectories.manifest import FILE_TABLES, Listed, Manifest
from agent_gym.trajectories.parquet import PartWriter
from agent_gym.trajectories.query import source, trouble
from agent_gym.trajectories.schema import SORTED_BY, TABLES

__all__ = ["compact_run", "filler"]

_PART_BYTES = 256 * 2**20
"""A part of this size is large enough."""
_BATCH_ROWS = 2_048

Change = Callable[[duckdb.DuckDBPyConnection], dict[str, Callable[[str], str]]]


def compact_run(manifest: Manifest, run_id: str) -> tuple[int, int]:
    """Merges a run's small parts.

    Args:
        manifest: The store's.
        run_id: The run.

    Returns:
        The number of parts before and after.

    Raises:
        OSError: A file cannot be read or written.
        StoreError: A part is damaged; it is named, and nothing of it was touched.
    """
    parts: dict[str, dict[str, Listed]] = {}
    for table in FILE_TABLES:
        for file in manifest.kept(table, run_id):
            parts.setdefault(file.path.name, {})[table] = file
    before = after = len(parts)
    for group in _groups(list(parts.values())):
        for file in (file for part in group for file in part.values()):
            if what := trouble(file):
                raise StoreError(f"{file.path} {what}; it was not compacted, see agent-gym store fsck")
        manifest.replace(run_id, PartWriter, filler(manifest.root, group), [file.path for part in group for file in part.values()])
        after -= len(group) - 1
    return before, after


def _groups(parts: list[dict[str, Listed]]) -> Iterator[list[dict[str, Listed]]]:
    """Parts to be merged into one."""
    group: list[dict[str, Listed]] = []
    size = 0
    for part in parts:
        weight = sum(file.bytes or 0 for file in part.values())
        if group and size + weight > _PART_BYTES:
            if len(group) > 1:
                yield group
            group, size = [], 0
        group.append(part)
        size += weight
    if len(group) > 1:
        yield group


def filler(root: Path, group: list[dict[str, Listed]], change: Change | None = None) -> Callable[[PartWriter], None]:
    """What fills a part with the rows of others.

    Args:
        root: The store.
        group: The files of each of the other parts, by table.
        change: Given DuckDB's connection, says for tables whose rows are not to stay as they are what becomes of them: a function from
            what to select them from to the query.
    """

    def fill(writer: PartWriter) -> None:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET temp_directory = ?", [str(root / "_meta" / "tmp")])  # where a large sort goes
            changed = {} if change is None else change(connection)
            for table, schema in TABLES.items():
                files = [part[table] for part in group if table in part]
                if not files and table not in changed:
                    continue
                columns, order = ", ".join(schema.names), ", ".join(SORTED_BY[table])
                rows_of = source(connection, table, [file.path for file in files])
                if table in changed:
                    rows_of = f"({changed[table](rows_of)})"
                rows = connection.sql(f"SELECT {columns} FROM {rows_of} ORDER BY {order}")
                for batch in getattr(rows, "to_arrow_reader" if hasattr(rows, "to_arrow_reader") else "fetch_arrow_reader")(_BATCH_ROWS):
                    writer.files[table].add_columns(batch.cast(schema))
                if table not in changed and writer.files[table].rows != (expected := sum(file.rows or 0 for file in files)):
                    raise StoreError(f"{table}: {writer.files[table].rows} rows instead of {expected}; nothing was changed")

    return fill
