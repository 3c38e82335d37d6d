"""Damage of any kind is named, what is whole is still read, and recovering deletes nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import pyarrow.parquet as pq
import pytest

from agent_gym.core.seeding import derive
from agent_gym.errors import StoreError
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.manifest import manifest_path
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID


def record(store: TrajectoryStore, *tasks: str, seal: bool = True) -> str:
    """A run with an episode for each task."""
    env = RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(store.path))
    for task in tasks:
        env.reset(seed=0, options={"task_id": task})
        for action in ("add(1)", "add(1)", "finish()"):
            env.step(action)
    env.close()
    if seal:
        store.seal()
    return str(env.run_id)


@pytest.fixture
def store(tmp_path: Path) -> TrajectoryStore:
    """Two sealed runs of two episodes each."""
    store = TrajectoryStore(tmp_path / "store")
    for _ in range(2):
        record(store, "train/even/2", "train/odd/3")
    assert store.fsck() == []
    return store


def part(store: TrajectoryStore, table: str) -> Path:
    return min(store.path.glob(f"{table}/*/*.parquet"))


def flip(path: Path, where: int) -> None:
    content = bytearray(path.read_bytes())
    content[where] ^= 0xFF
    path.write_bytes(content)


def told(store: TrajectoryStore) -> list[str]:
    return [str(finding).replace(str(store.path), "") for finding in store.fsck()]


@pytest.mark.parametrize("table", ["episodes", "steps", "tool_calls"])
def test_a_flipped_byte_anywhere_in_a_file_is_named(store: TrajectoryStore, table: str) -> None:
    path = part(store, table)
    whole = path.read_bytes()
    for where in derive("flips", table).integers(len(whole), size=10):
        flip(path, int(where))
        assert told(store) == [f"{path.relative_to(store.path)} is damaged: its checksum does not match"]
        path.write_bytes(whole)
    assert store.fsck() == []


def test_what_is_whole_is_read_beside_a_damaged_file(store: TrajectoryStore) -> None:
    first, second = (about["run_id"] for about in store.runs())
    path = part(store, "episodes")
    flip(path, path.stat().st_size - 10)  # in its footer
    with pytest.warns(RuntimeWarning, match=f"{path.name} is damaged: its checksum does not match: it is left out"):
        assert {row["run_id"] for row in store.episodes()} == {second}
    assert len(store.sql("SELECT * FROM steps")) == 16
    done = [str(one) for one in store.recover()]
    assert done == [f"episodes/run_id={first}/{path.name} is damaged: its checksum does not match; it was taken out"]
    assert path.with_name(f"{path.name}.damaged").exists()
    assert len(store.episodes()) == 2
    assert {what for _, what in store.fsck()} == {"has steps but no row of its own"}


def test_a_missing_file_is_named_and_the_rest_is_read(store: TrajectoryStore) -> None:
    path = part(store, "steps")
    path.unlink()
    assert told(store) == [f"{path.relative_to(store.path)} is missing"]
    with pytest.warns(RuntimeWarning, match="is missing: it is left out"):
        assert len(store.sql("SELECT * FROM steps")) == 8
    assert len(store.episodes()) == 4
    assert [str(one) for one in store.recover()] == [f"{path.relative_to(store.path)} is missing; it was taken out"]
    assert len(store.sql("SELECT * FROM steps")) == 8
    assert [finding.what for finding in store.fsck()] == ["has not as many steps as its row says"] * 2


def test_a_file_that_nobody_knows_is_named_and_can_be_taken_in(store: TrajectoryStore, tmp_path: Path) -> None:
    other = TrajectoryStore(tmp_path / "other")
    record(other, "train/even/4")
    shutil.copytree(other.path / "steps", store.path / "steps", dirs_exist_ok=True)
    shutil.copytree(other.path / "episodes", store.path / "episodes", dirs_exist_ok=True)
    assert [finding.what for finding in store.fsck()] == ["is not in the manifest, so it is not read"] * 2
    assert len(store.episodes()) == 4
    assert [finding.what for finding in store.recover()] == ["was taken in"] * 2
    assert len(store.episodes()) == 5
    assert store.fsck() == []


def test_a_doubled_row_is_named(store: TrajectoryStore) -> None:
    for table in ("episodes", "steps"):
        path = part(store, table)
        shutil.copy(path, path.with_name(f"part-again-{path.name}"))
    store.recover()
    assert {finding.what for finding in store.fsck()} == {"is doubled", "has a step twice", "has not as many steps as its row says"}


def test_a_damaged_manifest_is_made_anew(store: TrajectoryStore) -> None:
    expected = store.episodes()
    manifest_path(store.path).write_bytes(b"no database at all, and long enough to look like one" * 100)
    assert told(store) == ["_meta/manifest.sqlite is damaged: file is not a database"]
    with pytest.raises(StoreError, match="store recover makes it anew"):
        store.episodes()
    assert [str(one) for one in store.recover()] == ["_meta/manifest.sqlite was made anew from the files"]
    assert store.episodes() == expected
    assert store.fsck() == []


def torn(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-40])


def flipped(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"now 2", b"now 3")
    log.write_bytes(b"".join(lines))


def headless(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:4] + lines[5:]))


@pytest.mark.parametrize(
    ("damage", "says", "left"),
    [
        (torn, "ends in an unfinished line, which was never acknowledged and will be left out", [("success", 4), ("interrupted", 3)]),
        (flipped, "line 3 is damaged (checksum does not match)", [("success", 3), ("success", 4)]),
        (headless, "line 5 is damaged (number 5 where 4 is due)", [("success", 4)]),
    ],
)
def test_a_damaged_log_is_named_and_its_whole_lines_are_saved(
    store: TrajectoryStore, damage: Callable[[Path], None], says: str, left: list[tuple[str, int]]
) -> None:
    run_id = record(store, "train/even/2", "train/even/2", seal=False)
    (log,) = store.path.glob("wal/*/*.jsonl")
    damage(log)
    harmed = log.read_bytes()
    assert told(store) == [f"{log.relative_to(store.path)} {says}"]
    assert log.read_bytes() == harmed, "looking changes nothing"
    done = [str(one) for one in store.recover()]
    assert f"wal/run_id={run_id} was sealed: {len(left)} episodes" in done
    rows = store.episodes(run_id=run_id)
    assert [(row["outcome"], len(list(store.steps(row["episode_id"])))) for row in rows] == left
    if damage is not torn:
        assert f"{log.relative_to(store.path)} {says}" in done
        assert [path.read_bytes() for path in log.parent.iterdir()] == [harmed], "kept for whoever wants to look"
        assert any("damaged_log" in (row["gaps"] or ()) for row in rows)
    assert len(store.episodes()) == 4 + len(left)
    assert store.recover() == []


def test_the_line_of_a_living_writer_is_no_damage(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path)
    env = RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(tmp_path))
    env.reset(seed=0)
    (log,) = tmp_path.glob("wal/*/*.jsonl")
    log.write_bytes(log.read_bytes() + b'{"crc":"')
    assert store.fsck() == []
    assert store.recover() == []
    env.close()


def test_a_missing_and_a_damaged_blob_are_named(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path)
    env = RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(tmp_path))
    env.reset(seed=0)
    for letter in "ab":
        env.note(thought=letter * 70_000)
        env.step("look()")
    env.close()
    store.seal()
    assert store.fsck() == []
    one, other = sorted(path for path in tmp_path.glob("blobs/*/*") if path.stat().st_size > 65_536)
    one.unlink()
    flip(other, 5)
    assert told(store) == [f"{one.relative_to(tmp_path)} is missing", f"{other.relative_to(tmp_path)} is damaged"]
    with pytest.warns(RuntimeWarning, match=f"{other} is damaged"), pytest.warns(RuntimeWarning, match=f"cannot read {one}"):
        steps = list(store.steps(store.episodes()[0]["episode_id"]))
    assert [(step["status"], step["note"]) for step in steps] == [(None, None), ("empty", None), ("empty", None)]


def test_page_checksums_are_written(store: TrajectoryStore) -> None:
    path = part(store, "steps")
    column = pq.read_metadata(path).row_group(0).column(3)
    flip(path, column.data_page_offset + column.total_compressed_size - 5)
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(path, page_checksum_verification=True).read()


def test_an_empty_folder_is_whole(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path / "nothing")
    assert store.fsck() == []
    assert store.recover() == []
    assert store.compact() == (0, 0)
    assert store.stats()["bytes_per_step"] is None
    assert not store.path.exists()
    assert np.all([one["rows"] == 0 for one in store.stats()["tables"].values()])
