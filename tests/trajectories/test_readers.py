"""What others read: pandas, DuckDB and Hugging Face datasets, each from the files as they lie there; and stores of any age and size."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import gymnasium
import pandas as pd
import pytest

from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.schema import TABLES
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID

ROOT = Path(__file__).parents[2]
OLD = Path(__file__).parent / "stores"
"""Stores by the version of their schema, written by the code of that time: two episodes that ended and one that did not."""


def record(path: Path, episodes: int) -> str:
    env = RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(path))
    for _ in range(episodes):
        env.reset(seed=0, options={"task_id": "train/even/2"})
        env.note(logprob=-0.5, tokens={"completion_token_ids": [1, 2]})
        env.step("add(2)")
        env.note(thought="x" * 70_000)
        env.step("finish()")
    env.close()
    return str(env.run_id)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TrajectoryStore:
    """Two runs of two episodes, one of the old schema beside them, and an event."""
    path = tmp_path_factory.mktemp("readers") / "store"
    shutil.copytree(OLD / "v1", path)
    for _ in range(2):
        record(path, 2)
    store = TrajectoryStore(path)
    store.add_event("annotation", episode_id=store.episodes(1)[0]["episode_id"], payload={"good": True})
    store.seal()
    return store


EXPECTED = {"episodes": 7, "steps": 21, "tool_calls": 13, "tokens": 4, "events": 1}


def test_pandas_reads_the_files(store: TrajectoryStore) -> None:
    for table, rows in EXPECTED.items():
        assert len(pd.read_parquet(store.path / table)) == rows, table
    frame = pd.read_parquet(store.path / "episodes")
    assert list(frame.groupby("run_id").size()) == [3, 2, 2]
    assert sorted(frame["outcome"]) == ["failure", "interrupted", *["success"] * 5]


def test_duckdb_reads_the_files(store: TrajectoryStore) -> None:
    with duckdb.connect() as connection:
        for table, rows in EXPECTED.items():
            sql = f"SELECT count(*) FROM read_parquet('{store.path}/{table}/**/*.parquet', union_by_name = true)"
            assert connection.execute(sql).fetchall() == [(rows,)], table
        sql = f"SELECT json_extract_string(action, '$.name') AS name, count(*) FROM '{store.path}/steps/**/*.parquet' GROUP BY name"
        assert dict(connection.execute(sql).fetchall())["add"] == 5


READ = """
import json, sys
from datasets import load_dataset
told = {}
for table in sys.argv[3:]:
    rows = load_dataset("parquet", data_files=f"{sys.argv[1]}/{table}/**/*.parquet", split="train", cache_dir=sys.argv[2])
    told[table] = [len(rows), sorted(rows.column_names), rows[0]]
print(json.dumps(told, default=str))
"""


@pytest.mark.slow
def test_hugging_face_datasets_reads_the_files(store: TrajectoryStore, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="pip install datasets")
    tables = list(EXPECTED)
    run = max(store.path.glob("episodes/*")).name
    alone = TrajectoryStore(tmp_path / "alone")
    for table in tables:
        (alone.path / table).mkdir(parents=True)
        for part in store.path.glob(f"{table}/{run}/*.parquet"):
            shutil.copy(part, alone.path / table)
    command = [sys.executable, "-c", READ, str(alone.path), str(tmp_path / "cache"), *tables]
    environment = {**os.environ, "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {table: rows for table, (rows, *_) in told.items()} == {"episodes": 2, "steps": 6, "tool_calls": 4, "tokens": 2, "events": 1}
    for table, (_, columns, _) in told.items():
        assert set(TABLES[table].names) <= set(columns)
    assert told["episodes"][2]["milestones"] == [{"name": "begun", "step": 1}]
    assert told["tokens"][2]["completion_token_ids"] == [1, 2]


def test_an_old_store_is_read_and_written_on(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path / "store")
    shutil.copytree(OLD / "v1", store.path)
    for _ in range(2):  # as it is, and once compacted into the schema of today
        rows = store.episodes()
        assert [row["outcome"] for row in rows[:3]] == ["success", "failure", "interrupted"]
        assert [(row["tools_version"], row["n_faults"], row["blobs"]) for row in rows[:3]] == [(None, None, None)] * 3
        first = rows[0]["episode_id"]
        assert [step["status"] for step in store.steps(first)] == [None, "ok", "empty", "ok"]
        assert [call["tool"] for call in store.tool_calls(first)] == ["add", "look", "finish"]
        assert store.fsck() == []
        run_id = store.runs()[0]["run_id"]
        with RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(store.path), run_id) as env:
            env.reset(seed=0)
        assert len(store.episodes()) == len(rows) + 1
        store.compact()
    assert len(list(store.path.glob("episodes/*/*.parquet"))) == 1
    assert store.fsck() == []


def test_an_old_store_that_may_not_be_written_is_read(tmp_path: Path) -> None:
    shutil.copytree(OLD / "v1", tmp_path / "store")
    before = sorted(tmp_path.rglob("*"))
    assert len(TrajectoryStore(tmp_path / "store").episodes()) == 3
    assert sorted(tmp_path.rglob("*")) == before, "reading wrote nothing"


@pytest.mark.parametrize("episodes", [0, 1])
def test_few_episodes(tmp_path: Path, episodes: int) -> None:
    store = TrajectoryStore(tmp_path / "store")
    with store.open_run():
        pass
    if episodes:
        record(store.path, episodes)
    assert len(store.episodes()) == episodes
    assert len(store.sql("SELECT * FROM steps")) == 3 * episodes
    assert len(store.episodes(where="n_turns > 1")) == episodes
    assert store.compact() == (episodes, episodes)
    assert store.fsck() == []
    assert store.stats()["tables"]["episodes"]["rows"] == episodes
    assert len(pd.read_parquet(store.path / "episodes")) == 1 if episodes else not (store.path / "episodes").exists()
