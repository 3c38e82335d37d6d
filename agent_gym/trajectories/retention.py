"""Forgetting on purpose: what goes by a policy, and what goes to fit a budget.

A part of a run is written anew without what goes, together with an event for everything that went, and takes the place of the old one
in one transaction of the manifest: at any moment, a reader sees all of it or nothing, and so does whoever comes after a death. Blobs
that no row names any more go last.
"""

import os
import pwd
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from agent_gym.errors import StoreError
from agent_gym.trajectories.blobs import Blobs
from agent_gym.trajectories.candidates import KINDS, Candidate, Drop, by_age, candidates, under_pressure
from agent_gym.trajectories.compact import filler
from agent_gym.trajectories.digests import RESULT_COLUMNS, event_entry
from agent_gym.trajectories.log import read_log
from agent_gym.trajectories.manifest import FILE_TABLES, Listed, Manifest
from agent_gym.trajectories.parquet import PartWriter
from agent_gym.trajectories.policy import RetentionPolicy
from agent_gym.trajectories.query import source, trouble
from agent_gym.trajectories.rows import now_us
from agent_gym.trajectories.schema import TABLES
from agent_gym.trajectories.store import TrajectoryStore

__all__ = ["Dropped", "Report", "collect_garbage", "who"]

_GRACE_NS = 3_600 * 10**9
"""While a writer lives, a blob that was put within this time may be one that its log will name."""
_ROUNDS = 16
"""So many times at most are parts written anew to make room by one kind."""
_UNBOUND = "[{'column': blob.column, 'digest': blob.digest, 'bytes': NULL::BIGINT} for blob in coalesce(blobs, [])]"
_REFERENCES = """
CREATE TEMP VIEW named AS
SELECT run_id, episode_id, obs_image AS digest FROM steps WHERE obs_image IS NOT NULL UNION ALL
SELECT run_id, episode_id, blob.digest FROM (
    SELECT run_id, episode_id, unnest(blobs) AS blob FROM steps UNION ALL
    SELECT run_id, episode_id, unnest(blobs) AS blob FROM tool_calls UNION ALL
    SELECT run_id, NULL, unnest(blobs) AS blob FROM events UNION ALL
    SELECT run_id, NULL, unnest(blobs) AS blob FROM episodes
) WHERE blob.bytes IS NOT NULL UNION ALL
SELECT run_id, NULL, digest FROM named_in_logs
"""
"""Which rows name which blobs; those without an episode stay as long as there is a store."""
_FREED = """
SELECT last, sum(bytes) FROM (
    SELECT digest, max(coalesce(place, 9223372036854775807)) AS last FROM named LEFT JOIN waiting USING (episode_id) GROUP BY digest
) JOIN sizes USING (digest) WHERE last < 9223372036854775807 GROUP BY last
"""
"""When the last episode that names a blob goes, and the blob with it."""


@dataclass(frozen=True)
class Dropped:
    """Something that went, or would go: the drop, and about how many bytes that makes."""

    kind: str
    episode_id: str
    reason: str
    bytes: int


@dataclass
class Report:
    """What was done, or would be.

    Attributes:
        dry_run: Whether it was only looked at.
        budget: Bytes; None without one.
        bytes_before: All files of the store, or of the run.
        bytes_after: The same afterwards.
        dropped: What went, in the order in which it went.
        unnamed_blobs: Blobs that no row named to begin with, which went too.
        held: How many episodes stay whole, by the rule.
        young_blobs: Blobs that stay only because a writer lives that may be about to name them.
    """

    dry_run: bool
    budget: int | None
    bytes_before: int
    bytes_after: int = 0
    dropped: list[Dropped] = field(default_factory=list)
    unnamed_blobs: int = 0
    held: dict[str, int] = field(default_factory=dict)
    young_blobs: int = 0

    @property
    def fits(self) -> bool:
        """Whether the budget is kept."""
        return self.budget is None or self.bytes_after <= self.budget

    @property
    def trouble(self) -> str:
        """What is in the way of the budget, and what can be done."""
        held = ", ".join(f"{count} by keep.{rule}" for rule, count in sorted(self.held.items())) or "none"
        young = f"; {self.young_blobs} blobs stay until the writers that live are done" if self.young_blobs else ""
        return (
            f"{self.bytes_after} bytes stay, {self.bytes_after - (self.budget or 0)} more than the budget of {self.budget}. Episodes that "
            f"rules keep whole: {held}{young}. Raise the budget, or shorten the rules"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "fits": self.fits}


def collect_garbage(store: TrajectoryStore, policy: RetentionPolicy, *, run_id: str | None = None, dry_run: bool = False) -> Report:
    """Forgets what a policy lets go.

    Args:
        store: The store.
        policy: The policy.
        run_id: Only of this run; the budget is then this run's: its parts, its logs, and the blobs that it alone names.
        dry_run: Do it to a copy of the store that shares its files, and throw that away.

    Raises:
        StoreError: There is no such store or run, the store is damaged, or it cannot be written. What had gone by then has its events.
    """
    if not store.path.exists():
        raise StoreError(f"there is no store in {store.path}")
    store.seal()
    if run_id is not None and run_id not in (known := [about["run_id"] for about in store.runs()]):
        raise StoreError(f"no run {run_id!r} in {store.path}; the newest is {known[-1] if known else 'none'}")
    commands = {about["run_id"]: about["command"] or "" for about in store.runs()}
    temporary = store.path / "_meta" / "tmp"
    try:
        with (
            Manifest.of(store.path) as manifest,
            duckdb.connect(config={"temp_directory": str(temporary), "enable_external_file_cache": "false"}) as engine,
        ):
            for leftover in temporary.glob("gc-*"):
                shutil.rmtree(leftover)
            for table in FILE_TABLES:
                for file in manifest.kept(table):
                    if what := trouble(file):
                        raise StoreError(f"{file.path} {what}; nothing was dropped, see agent-gym store fsck")
            about = (engine, Blobs(store.path), policy, commands, run_id)
            if not dry_run:
                return _Collector(manifest, *about, dry_run=False).collect()
            with _copy(store.path) as copy, Manifest.of(copy) as copied:
                return _Collector(copied, *about, dry_run=True).collect()
    except duckdb.Error as error:
        raise StoreError(f"cannot read or write {store.path}: {error}; what was dropped before has its events") from error


def who() -> str:
    """The user of this process, for the events that say who did something."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


@contextmanager
def _copy(root: Path) -> Iterator[Path]:
    """A store that shares the files of another, blobs left out."""
    copy = root / "_meta" / "tmp" / f"gc-{uuid.uuid4().hex[:12]}"
    try:
        for path in _files(root):
            target = copy / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".sqlite":
                shutil.copyfile(path, target)
            elif path.suffix != ".lock":
                os.link(path, target)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        if Path(folder) == root:
            folders[:] = [name for name in folders if name != "blobs"]
        elif Path(folder) == root / "_meta":
            folders[:] = [name for name in folders if name != "tmp"]
        yield from (Path(folder) / name for name in names)


class _Collector:
    def __init__(
        self,
        manifest: Manifest,
        engine: duckdb.DuckDBPyConnection,
        blobs: Blobs,
        policy: RetentionPolicy,
        commands: dict[str, str],
        run_id: str | None,
        *,
        dry_run: bool,
    ) -> None:
        self._manifest, self._root, self._engine = manifest, manifest.root, engine
        self._blobs, self._sizes = blobs, blobs.sizes()
        self._policy, self._commands, self._run_id = policy, commands, run_id
        self._started_us, self._author = now_us(), who()
        self._report = Report(dry_run, policy.budget, self._size())

    def collect(self) -> Report:
        report, budget = self._report, self._policy.budget
        before = len(self._sizes)
        self._sweep()
        report.unnamed_blobs = before - len(self._sizes)
        drops = by_age(self._candidates(), self._policy)
        self._drop(drops, self._weights([[drop] for drop in drops]))
        for kind in KINDS if budget is not None else ():
            self._make_room(kind, budget or 0)
        report.bytes_after = self._size()
        report.held = dict(Counter(rule for one in self._candidates() for rule in one.held))
        return report

    def _make_room(self, kind: str, budget: int) -> None:
        waiting: Sequence[list[Drop]] = ()
        for rounds_left in reversed(range(_ROUNDS)):
            if (over := self._size() - budget) <= 0:
                return
            waiting = waiting or under_pressure(self._candidates(), kind, f"to fit the budget of {budget} bytes")
            if not waiting:
                return
            weights = self._weights(waiting)
            enough = next((count for count, freed in enumerate(accumulate(weights), 1) if freed >= over), len(waiting))
            enough = enough if rounds_left else len(waiting)
            drops = [(drop, weight if drop.kind == kind else 0) for some, weight in zip(waiting, weights, strict=True) for drop in some]
            count = sum(map(len, waiting[:enough]))
            self._drop([drop for drop, _ in drops[:count]], [weight for _, weight in drops[:count]])
            waiting = waiting[enough:]

    def _candidates(self) -> list[Candidate]:
        with self._views() as connection:
            return candidates(connection, self._policy, self._commands, self._started_us, self._run_id)

    @contextmanager
    def _views(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """DuckDB with views of all tables, of ``named`` and of ``sizes``."""
        with self._engine.cursor() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for table in FILE_TABLES:
                rows = source(connection, table, [file.path for file in self._manifest.kept(table)])
                connection.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM {rows}")
            connection.register("named_in_logs", _table(self._named_in_logs(), run_id=pa.string(), digest=pa.string()))
            connection.register("sizes", _table(list(self._sizes.items()), digest=pa.string(), bytes=pa.int64()))
            connection.execute(_REFERENCES)
            yield connection

    def _named_in_logs(self) -> list[tuple[str, str]]:
        named = []
        for log in sorted(self._root.glob("wal/run_id=*/*.jsonl")):
            run_id = log.parent.name.removeprefix("run_id=")
            for _, entry in read_log(log):
                rows = [row for value in entry.values() for row in (value if isinstance(value, list) else [value])]
                for row in (row for row in rows if isinstance(row, dict)):
                    named += [(run_id, blob["digest"]) for blob in row.get("blobs") or ()]
                    named += [(run_id, row["obs_image"])] if "obs_image" in row else []
        return named

    def _size(self) -> int:
        if self._run_id is None:
            return sum(path.stat().st_size for path in _files(self._root)) + sum(self._sizes.values())
        own = f"run_id={self._run_id}"
        files = sum(path.stat().st_size for path in _files(self._root) if path.parent.name == own)
        alone = "SELECT digest FROM named GROUP BY digest HAVING bool_and(run_id = ?)"
        with self._views() as connection:
            (blobs,) = connection.execute(f"SELECT sum(bytes) FROM sizes SEMI JOIN ({alone}) USING (digest)", [self._run_id]).fetchall()[0]
        return files + int(blobs or 0)

    def _weights(self, waiting: Sequence[Sequence[Drop]]) -> list[int]:
        """About how many bytes each frees, if those before it are gone: rows by their share in their file, blobs exactly."""
        parts, sizes = self._parts()
        with self._views() as connection:
            rows = {
                table: dict(connection.sql(f"SELECT episode_id, count(*) FROM {table} GROUP BY ALL").fetchall())
                for table in ("steps", "tool_calls", "tokens")
            }
            places = [(drop.episode_id, at) for at, some in enumerate(waiting) for drop in some if drop.kind != "tokens"]
            connection.register("waiting", _table(places, episode_id=pa.string(), place=pa.int64()))
            freed = dict(connection.sql(_FREED).fetchall())

        def of(table: str, episode_id: str) -> float:
            file = sizes[parts[episode_id]].get(table)
            return 0.0 if file is None else rows[table].get(episode_id, 0) / (file.rows or 1) * (file.bytes or 0)

        tables = {"tokens": ("tokens",), "blobs": (), "steps": ("steps", "tool_calls")}
        return [
            round(sum(of(table, drop.episode_id) for drop in some for table in tables[drop.kind])) + int(freed.get(at, 0))
            for at, some in enumerate(waiting)
        ]

    def _parts(self) -> tuple[dict[str, tuple[str, str]], dict[tuple[str, str], dict[str, Listed]]]:
        """The part in which each episode is, by run and name; and each part's files, by table."""
        files: dict[tuple[str, str], dict[str, Listed]] = {}
        for table in FILE_TABLES:
            for file in self._manifest.kept(table):
                files.setdefault((file.path.parent.name.removeprefix("run_id="), file.path.name), {})[table] = file
        with self._engine.cursor() as connection:
            rows = source(connection, "episodes", [part["episodes"].path for part in files.values() if "episodes" in part], named=True)
            found = connection.sql(f"SELECT episode_id, run_id, filename FROM {rows}").fetchall() if files else []
        return {episode_id: (run_id, Path(name).name) for episode_id, run_id, name in found}, files

    def _drop(self, drops: Sequence[Drop], weights: Sequence[int]) -> None:
        if not drops:
            return
        parts, files = self._parts()
        by_part: dict[tuple[str, str], list[Drop]] = {}
        for drop in drops:
            by_part.setdefault(parts[drop.episode_id], []).append(drop)
        for part, some in by_part.items():
            self._rewrite(part[0], files[part], some)
        self._sweep()
        self._report.dropped += [Dropped(*drop, weight) for drop, weight in zip(drops, weights, strict=True)]

    def _rewrite(self, run_id: str, files: dict[str, Listed], drops: Sequence[Drop]) -> None:
        now = datetime.now(UTC)
        events = [
            {"event_id": f"{run_id}-{uuid.uuid4().hex}", "kind": f"dropped_{drop.kind}", "author": self._author, "happened_at": now}
            | {"episode_id": drop.episode_id, "reason": drop.reason}
            for drop in drops
        ]
        copy = filler(self._root, [files], _changes(drops, events))

        def fill(writer: PartWriter) -> None:
            copy(writer)
            writer.entries += [event_entry(event, run_id) for event in events]

        self._manifest.replace(run_id, PartWriter, fill, [file.path for file in files.values()])

    def _sweep(self) -> None:
        """Removes the blobs that no row and no log names."""
        if not self._sizes:
            return
        before_ns = self._blobs.now_ns()  # first of all: what is put from here on stays
        if any(self._root.glob("wal/run_id=*/*.jsonl")) or any(self._root.glob("wal/run_id=*/.*.new")):
            before_ns -= _GRACE_NS
        with self._views() as connection:
            unnamed = [digest for (digest,) in connection.sql("SELECT digest FROM sizes ANTI JOIN named USING (digest)").fetchall()]
        gone = self._blobs.sweep(sorted(unnamed), before_ns, remove=not self._report.dry_run)
        self._report.young_blobs = len(unnamed) - len(gone)
        for digest in gone:
            del self._sizes[digest]


def _table(rows: Sequence[Sequence[Any]], **columns: pa.DataType) -> pa.Table:
    return pa.table({name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(columns.items())})


def _changes(
    drops: Sequence[Drop], events: Sequence[dict[str, Any]]
) -> Callable[[duckdb.DuckDBPyConnection], dict[str, Callable[[str], str]]]:
    """What becomes of the rows of a part, for `filler`."""

    def change(connection: duckdb.DuckDBPyConnection) -> dict[str, Callable[[str], str]]:
        going = {f"lost_{kind}": pa.array([drop.episode_id for drop in drops if drop.kind == kind], pa.string()) for kind in KINDS}
        for name, episode_ids in going.items():
            connection.register(name, pa.table({"episode_id": episode_ids}))
        connection.register("new_events", pa.Table.from_pylist(list(events), TABLES["events"]))
        without, bare = "episode_id IN (FROM lost_steps)", "episode_id IN (FROM lost_blobs UNION ALL FROM lost_steps)"
        image = "CASE WHEN obs_image IS NULL THEN [] ELSE [{'column': 'obs_image', 'digest': obs_image, 'bytes': NULL::BIGINT}] END"
        nothing = ", ".join(f"CASE WHEN {without} THEN NULL ELSE {column} END AS {column}" for column in RESULT_COLUMNS)
        return {
            "tokens": lambda rows: f"FROM {rows} WHERE episode_id NOT IN (FROM lost_tokens)",
            "steps": lambda rows: (
                f"""
                SELECT * REPLACE (
                    CASE WHEN {bare} THEN {_UNBOUND} || {image} ELSE blobs END AS blobs,
                    CASE WHEN {bare} THEN NULL ELSE obs_image END AS obs_image
                ) FROM {rows} WHERE NOT {without}"""
            ),
            "tool_calls": lambda rows: (
                f"SELECT * REPLACE (CASE WHEN {bare} THEN {_UNBOUND} ELSE blobs END AS blobs, {nothing}) FROM {rows}"
            ),
            "events": lambda rows: f"FROM {rows} UNION ALL BY NAME FROM new_events",
        }

    return change
