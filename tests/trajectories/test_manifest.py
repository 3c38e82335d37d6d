"""The manifest: whatever moment a process dies at while it seals or compacts, no row is lost and none doubled."""

import itertools
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agent_gym.errors import StoreError
from agent_gym.trajectories import TrajectoryStore, compact, durable, manifest
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID


def record(store: TrajectoryStore, run_id: str | None = None) -> str:
    env = RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(store.path), run_id)
    for _ in range(2):
        env.reset(seed=0, options={"task_id": "train/even/2"})
        env.step("add(2)")
        env.step("finish()")
    env.close()
    return str(env.run_id)


def rows(store: TrajectoryStore) -> list[list[dict[str, Any]]]:
    return [store.sql(f"SELECT * FROM {table} ORDER BY ALL") for table in ("episodes", "steps", "tool_calls")]


@pytest.fixture
def store(tmp_path: Path) -> TrajectoryStore:
    return TrajectoryStore(tmp_path / "store")


@pytest.fixture
def moments(store: TrajectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[TrajectoryStore]:
    """Copies of the store as it was whenever something was about to be put on disk: what a death just then would leave."""
    copies: list[TrajectoryStore] = []

    def copied(path: Path) -> None:
        copies.append(TrajectoryStore(tmp_path / f"moment-{next(numbers)}"))
        shutil.copytree(store.path, copies[-1].path)
        sync(path)

    sync, numbers = durable.sync, itertools.count()
    for module in (durable, manifest):
        monkeypatch.setattr(module, "sync", copied)
    return copies


@pytest.mark.slow
def test_a_death_while_sealing(store: TrajectoryStore, moments: list[TrajectoryStore]) -> None:
    record(store)
    assert store.seal() == 2
    expected = rows(store)
    assert [len(table) for table in expected] == [2, 6, 4]
    died = list(moments)
    assert len(died) > 6
    for left in died:
        assert rows(left) == expected
        assert left.fsck() == []
        assert list(left.path.glob("wal/*/*")) == []


@pytest.mark.slow
def test_a_death_while_compacting(store: TrajectoryStore, moments: list[TrajectoryStore]) -> None:
    run_id = record(store)
    for _ in range(3):
        store.seal()
        record(store, run_id)
    store.seal()
    expected = rows(store)
    moments.clear()
    assert store.compact() == (4, 1)
    died = list(moments)
    assert len(died) > 6
    assert rows(store) == expected
    assert len(list(store.path.glob("*/run_id=*/*.parquet"))) == 3
    for left in died:
        assert rows(left) == expected, "read as it was left"
        assert left.compact()[1] == 1
        assert rows(left) == expected
        assert left.fsck() == []
        assert len(list(left.path.glob("*/run_id=*/*"))) == 3


def test_compacting_leaves_large_parts_alone(store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = record(store)
    store.seal()
    record(store, run_id)
    store.seal()
    record(store)
    monkeypatch.setattr(compact, "_PART_BYTES", 1)
    assert store.compact() == (3, 3)
    monkeypatch.undo()
    assert store.compact(run_id) == (2, 1)
    assert store.compact() == (2, 2)


def test_compacting_refuses_a_damaged_part(store: TrajectoryStore) -> None:
    run_id = record(store)
    store.seal()
    record(store, run_id)
    store.seal()
    part = next(store.path.glob("steps/*/*.parquet"))
    part.write_bytes(part.read_bytes().replace(b"PAR1", b"PAR2", 1))
    with pytest.raises(StoreError, match=f"{part.name} is damaged: its checksum does not match; it was not compacted"):
        store.compact()
    assert len(list(store.path.glob("steps/*/*.parquet"))) == 2


def test_a_query_goes_on_while_parts_are_compacted(store: TrajectoryStore) -> None:
    run_id = record(store)
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            record(store, run_id)
            store.compact()

    other = threading.Thread(target=churn)
    other.start()
    try:
        for _ in range(30):
            (found,) = store.sql("SELECT count(*) AS n, count(DISTINCT episode_id) AS unique FROM episodes")
            assert found["n"] == found["unique"] >= 2
    finally:
        stop.set()
        other.join()


def test_a_store_without_a_manifest_is_what_its_files_say(store: TrajectoryStore) -> None:
    record(store)
    store.seal()
    expected = rows(store)
    manifest.manifest_path(store.path).unlink()
    assert rows(store) == expected
    record(store)
    assert len(rows(store)[0]) == 4
    assert store.fsck() == []


def test_a_manifest_that_was_never_finished_is_none(store: TrajectoryStore) -> None:
    record(store)
    store.seal()
    manifest.manifest_path(store.path).write_bytes(b"")
    assert len(store.episodes()) == 2
    record(store)
    assert len(store.episodes()) == 4


def test_what_the_manifest_says_of_a_file(store: TrajectoryStore) -> None:
    run_id = record(store)
    store.seal()
    (listed,) = manifest.kept(store.path, "steps", run_id)
    assert (listed.rows, listed.bytes, listed.sha256) == (6, listed.path.stat().st_size, durable.checksum(listed.path))
    assert manifest.kept(store.path, "steps", run_id[:-1]) == []
    with sqlite3.connect(manifest.manifest_path(store.path)) as database:
        assert {state for (state,) in database.execute("SELECT state FROM files")} == {"kept"}
