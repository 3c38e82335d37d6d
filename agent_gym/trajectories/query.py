"""Questions to a store, in SQL: views over its Parquet files, answered by DuckDB as plain rows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from agent_gym.errors import ConfigurationError, StoreError
from agent_gym.trajectories.schema import TABLES

__all__ = ["query"]

_RUN_ID = pa.field("run_id", pa.string())


def query(root: Path, sql: str, parameters: Iterable[Any] = (), run_id: str | None = None) -> list[dict[str, Any]]:
    """Answers a question to the views ``episodes``, ``steps`` and ``tool_calls``.

    Args:
        root: The store.
        sql: DuckDB's SQL. The views have the columns of `agent_gym.trajectories.schema`, and ``run_id``; times are in UTC.
        parameters: What stands for each ``?``.
        run_id: Look at this run alone.

    Raises:
        ConfigurationError: It is no such query.
        StoreError: A file cannot be read.
    """
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table, schema in TABLES.items():
            parts = sorted(root.glob(f"{table}/run_id={run_id or '*'}/part-*.parquet"))
            times = ", ".join(
                f"CAST({field.name} AS TIMESTAMP) AS {field.name}" for field in schema if str(field.type).startswith("timestamp")
            )
            shown = f"* REPLACE ({times})" if times else "*"
            connection.register(f"no_{table}", schema.append(_RUN_ID).empty_table())
            source = f"no_{table}"
            if parts:
                files = ", ".join("'" + str(part).replace("'", "''") + "'" for part in parts)
                options = "hive_partitioning = true, hive_types_autocast = false, union_by_name = true"
                # the empty table adds the columns that files of an older schema lack
                source = f"(FROM {source} UNION ALL BY NAME FROM read_parquet([{files}], {options}))"
            try:
                connection.execute(f"CREATE VIEW {table} AS SELECT {shown} FROM {source}")
            except duckdb.Error as error:
                raise StoreError(f"{root}: a file of {table} cannot be read: {error}") from error
        try:
            answer = connection.execute(sql, list(parameters))
            names = [column[0] for column in answer.description or ()]
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
        except duckdb.IOException as error:
            raise StoreError(f"{root}: {error}") from error
        except duckdb.Error as error:
            raise ConfigurationError(f"the query cannot be answered: {error}") from error
