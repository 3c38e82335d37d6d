"""Digests of an episode's rows, equal whether they are taken from a log that is being sealed or from the Parquet files years later.

There is one for each group of rows or columns that retention may drop alone, so that what is left can still be checked. A row is its
columns that are not null, as JSON with sorted keys; a text or an image that is a blob is stood for by the blob's digest, so a row's
digest stays what it was when its blobs are dropped. An observation's text and data are stood for by its ``obs_digest``, which whoever
checks takes anew; unless one of the two is a blob, and may be gone.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from agent_gym.trajectories.ledger import Entry
from agent_gym.trajectories.schema import TABLES

__all__ = ["RESULT_COLUMNS", "Digests", "event_entry", "run_digest"]

_GROUPS = ("episode", "steps", "tool_calls", "results", "tokens")
"""What has a digest: the episode's row, its steps, its calls without their results, those results, its tokens; and the run's record."""
RESULT_COLUMNS = ("result", "structured", "error")
_GROUP_OF = {"episodes": "episode", "steps": "steps", "tool_calls": "tool_calls", "tokens": "tokens"}
_DIGEST_BYTES = 16
_NONE = bytes(_DIGEST_BYTES)
_RESULTS = (*RESULT_COLUMNS, *(f"{name}#" for name in RESULT_COLUMNS))
_PLACE = ("step", "call_index", "attempt")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _float32(value: float) -> float:
    return float(np.float32(value))


def _floats32(values: Iterable[float]) -> list[float]:
    kept: list[float] = np.asarray(values, np.float32).tolist()
    return kept


def _scores(parts: Iterable[Mapping[str, Any]]) -> list[tuple[str, float]]:
    return [(part["name"], float(part["score"])) for part in parts]


def _microseconds(time: datetime) -> int:
    return (time.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def _reader(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """What makes equal of values that this type stores alike; None where nothing has to."""
    if pa.types.is_timestamp(kind):
        return _microseconds
    if pa.types.is_float32(kind):
        return _float32
    if pa.types.is_float64(kind):
        return float
    if pa.types.is_list(kind):
        if pa.types.is_float32(kind.value_type):
            return _floats32
        if pa.types.is_struct(kind.value_type) and "score" in kind.value_type.names:
            return _scores
    return None


_NAMES = {table: frozenset(schema.names) - {"blobs"} for table, schema in TABLES.items()}
_READERS = {
    table: [(field.name, reader) for field in schema if (reader := _reader(field.type)) is not None] for table, schema in TABLES.items()
}


class Digests:
    """Takes in an episode's rows, those of each table in their order."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Takes in a row of the table; columns that it does not have are passed over."""
        plain = _plain(table, row)
        if table == "tool_calls":
            results = {name: plain.pop(name) for name in _RESULTS if name in plain}
            if results:
                self._update("results", results | {name: plain[name] for name in _PLACE})
        self._update(_GROUP_OF[table], plain)

    def all(self) -> dict[str, bytes]:
        """The digests by group; zeros where no row came."""
        return {group: self._found[group].digest() if group in self._found else _NONE for group in _GROUPS}

    def entry(self, episode_id: str, run: bytes) -> Entry:
        """The ledger's entry for the episode; ``run`` is the `run_digest`."""
        return Entry("episode", episode_id, None, b"".join(self.all().values()) + run)

    @staticmethod
    def of(entry: Entry) -> dict[str, bytes]:
        """The digests of an entry of the ledger."""
        return {group: entry.digests[at * _DIGEST_BYTES : (at + 1) * _DIGEST_BYTES] for at, group in enumerate((*_GROUPS, "run"))}

    def _update(self, group: str, plain: Mapping[str, Any]) -> None:
        told = orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
        if (found := self._found.get(group)) is None:
            self._found[group] = blake2b(told, digest_size=_DIGEST_BYTES)
        else:
            found.update(told)


def run_digest(root: Path, run_id: str) -> bytes:
    """The digest of what is known of a run: command, host, seed and so on."""
    path = root / "_meta" / "runs" / f"{run_id}.json"
    return blake2b(path.read_bytes(), digest_size=_DIGEST_BYTES).digest() if path.is_file() else _NONE


def event_entry(row: Mapping[str, Any], run_id: str) -> Entry:
    """The ledger's entry for an event."""
    told = orjson.dumps(_plain("events", row), option=orjson.OPT_SORT_KEYS)
    return Entry("event", row["event_id"], row.get("episode_id") or run_id, blake2b(told, digest_size=_DIGEST_BYTES).digest())


def _plain(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    names = _NAMES[table]
    plain = {name: value for name, value in row.items() if value is not None and name in names}
    for name, reader in _READERS[table]:
        if name in plain:
            plain[name] = reader(plain[name])
    for blob in row.get("blobs") or ():
        plain[f"{blob['column']}#"] = blob["digest"]
    if table == "steps":
        if "obs_text#" not in plain and "obs_data#" not in plain:
            plain.pop("obs_text", None)
            plain.pop("obs_data", None)
        if "obs_image" in plain:
            plain["obs_image#"] = plain.pop("obs_image")
    return plain
