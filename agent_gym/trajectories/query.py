"""Questions to a store, in SQL: views over its Parquet files, answered by DuckDB as plain rows."""

import functools
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from agent_gym.errors import ConfigurationError, StoreError
from agent_gym.trajectories.durable import checksum
from agent_gym.trajectories.manifest import Listed, kept
from agent_gym.trajectories.schema import TABLES

__all__ = ["query", "source", "trouble"]

_RUN_ID = pa.field("run_id", pa.string())
_MISTAKES = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.ConversionException)
"""What only a query can be wrong about; anything else may come from a damaged file."""


def query(root: Path, sql: str, parameters: Sequence[Any] = (), run_id: str | None = None) -> list[dict[str, Any]]:
    """Answers a question to the views that `agent_gym.trajectories.schema` describes.

    A file that is missing or damaged is left out, with a warning that names it.

    Args:
        root: The store.
        sql: DuckDB's SQL. The views have the columns of the schema, and ``run_id``; times are in UTC.
        parameters: What stands for each ``?``.
        run_id: Look at this run alone.

    Raises:
        ConfigurationError: It is no such query.
        StoreError: The store cannot be read.
    """
    bad: set[Path] = set()
    tables = [table for table in TABLES if table in sql]
    while True:
        files = {table: kept(root, table, run_id) for table in tables}
        try:
            return _answer(sql, parameters, {table: [file.path for file in files[table] if file.path not in bad] for table in tables})
        except _MISTAKES as error:
            raise ConfigurationError(f"the query cannot be answered: {error}") from error
        except duckdb.Error as error:
            if files != {table: kept(root, table, run_id) for table in tables}:
                continue  # compacted in between
            found = [(file.path, what) for listed in files.values() for file in listed if file.path not in bad and (what := trouble(file))]
            if not found:
                if isinstance(error, duckdb.IOException):
                    raise StoreError(f"{root}: {error}") from error
                raise ConfigurationError(f"the query cannot be answered: {error}") from error
            for path, what in found:
                warnings.warn(f"{path} {what}: it is left out; see agent-gym store fsck", RuntimeWarning, stacklevel=5)
            bad.update(path for path, _ in found)


def trouble(file: Listed) -> str:
    """What is wrong with a file of a part, or empty."""
    try:
        if file.bytes is not None and file.path.stat().st_size != file.bytes:
            return f"has {file.path.stat().st_size} bytes instead of {file.bytes}"
        if file.sha256 is not None:
            return "" if checksum(file.path) == file.sha256 else "is damaged: its checksum does not match"
        return _unreadable(file.path)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"


def source(connection: duckdb.DuckDBPyConnection, table: str, parts: Iterable[Path], *, named: bool = False) -> str:
    """What to select from for all rows of a table's files, columns that older files lack as nulls; ``named``: with ``filename``."""
    connection.register(f"no_{table}", TABLES[table].append(_RUN_ID).empty_table())
    files = ", ".join("'" + str(part).replace("'", "''") + "'" for part in parts)
    if not files:
        return f"no_{table}"
    options = f"hive_partitioning = true, hive_types_autocast = false, union_by_name = true, filename = {named}"
    return f"(FROM no_{table} UNION ALL BY NAME FROM read_parquet([{files}], {options}))"


def _answer(sql: str, parameters: Sequence[Any], parts: dict[str, list[Path]]) -> list[dict[str, Any]]:
    with _engine(os.getpid()).cursor() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table, paths in parts.items():
            times = ", ".join(f"CAST({one.name} AS TIMESTAMP) AS {one.name}" for one in TABLES[table] if pa.types.is_timestamp(one.type))
            shown = f"* REPLACE ({times})" if times else "*"
            connection.execute(f"CREATE TEMP VIEW {table} AS SELECT {shown} FROM {source(connection, table, paths)}")
        answer = connection.execute(sql, list(parameters))
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


@functools.cache
def _engine(pid: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 - a forked child needs one of its own
    """DuckDB itself, which takes longer to start than most answers take. Views belong to a cursor; no file is kept in memory."""
    return duckdb.connect(config={"enable_external_file_cache": "false"})


def _unreadable(path: Path) -> str:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except pa.ArrowException as error:
        return f"is damaged: {error}"
    return ""
