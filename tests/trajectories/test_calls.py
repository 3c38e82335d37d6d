"""Calls and how failures were dealt with: kept as they were, found again, and absent from stores of before."""

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agent_gym.core import CallRecord, StepRecord, ToolCall, ToolResult
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID


@pytest.fixture
def store(tmp_path: Path) -> TrajectoryStore:
    return TrajectoryStore(tmp_path / "store")


def troubled(store: TrajectoryStore, safety: dict[str, int]) -> str:
    """Records one step whose call took three attempts."""
    env: Any = gymnasium.make(ENV_ID, disable_env_checker=True).unwrapped
    env.reset(seed=0, options={"task_id": "train/even/2"})
    begun: StepRecord = env.last_record
    env.step("finish()")
    call = ToolCall("add", {"amount": 2})
    told = ToolResult(status="unavailable", content="down", retry_after_s=2.0)
    attempts = (
        CallRecord(call=call, result=told, fault="outage", key="k1"),
        CallRecord(
            call=call, result=ToolResult(status="outcome_unknown"), attempt=2, fault="lost", key="k1", waited_s=2.5, took_effect=True
        ),
        CallRecord(call=call, result=ToolResult(status="ok", from_cache=True), attempt=3, effect="idempotent", key="k1", waited_s=0.25),
    )
    with store.open_run() as run:
        recorder = run.recorder(env_id="Test/Counting-v0", policy_id="me")
        episode_id = recorder.reset(dataclasses.replace(begun, retry_safety=dict.fromkeys(safety, 0)))
        ended = dataclasses.replace(env.last_record, call=call, attempts=attempts, retry_safety=safety)
        recorder.step(ended, reward=0.0, terminated=True, truncated=False)
        recorder.close()
    return episode_id


NEW = {"retry_safety", "n_faults", "key", "waited_s", "fault", "took_effect", "from_cache"}


def test_how_failures_were_dealt_with_is_kept(store: TrajectoryStore) -> None:
    episode_id = troubled(store, {"duplicate_writes": 1, "hammering": 0, "gave_up_early": 3})
    row = store.episode(episode_id)
    assert row["retry_safety"] == [{"name": "duplicate_writes", "count": 1}, {"name": "gave_up_early", "count": 3}]
    assert (row["n_retries"], row["n_faults"], row["n_tool_calls"], row["n_tool_failures"]) == (2, 2, 1, 0)
    columns = ("attempt", "key", "waited_s", "fault", "took_effect", "from_cache", "effect", "retry_after_s")
    assert [tuple(call[name] for name in columns) for call in store.tool_calls(episode_id)] == [
        (1, "k1", 0.0, "outage", False, False, "write", 2.0),
        (2, "k1", 2.5, "lost", True, False, "write", None),
        (3, "k1", 0.25, None, False, True, "idempotent", None),
    ]
    assert store.episode(troubled(store, {"hammering": 0}))["retry_safety"] == []
    assert store.episode(troubled(store, {}))["retry_safety"] is None


def test_a_store_from_before_these_columns_is_read(store: TrajectoryStore) -> None:
    import pyarrow.parquet as pq

    old = troubled(store, {"hammering": 2})
    for part in store.path.glob("*/run_id=*/*.parquet"):
        table = pq.ParquetFile(part).read()
        pq.write_table(table.select([name for name in table.column_names if name not in NEW]), part)
    for _ in range(2):  # alone, then beside a new run
        row = store.episode(old)
        assert (row["retry_safety"], row["n_faults"], row["n_retries"]) == (None, None, 2)
        assert [(call["status"], call["fault"], call["took_effect"]) for call in store.calls(episode_id=old)] == [
            ("unavailable", None, None),
            ("outcome_unknown", None, None),
            ("ok", None, None),
        ]
        new = troubled(store, {"hammering": 2})
    assert [row["n_faults"] for row in store.episodes()] == [None, 2, 2]
    assert [call["fault"] for call in store.calls(episode_id=new)] == ["outage", "lost", None]


def test_calls_are_found_by_what_is_known_of_them(store: TrajectoryStore) -> None:
    played = {"train/even/2": ["add(1)", "look()", "add(1)", "finish()"], "train/odd/3": ["crash()", "look()", "fly()"]}
    ids = []
    with RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(store.path), policy_id="me") as env:
        for task_id, actions in played.items():
            env.reset(seed=0, options={"task_id": task_id})
            ids.append(str(env.episode_id))
            for action in actions:
                env.step(action)
        run_id = env.run_id
    first, second = ids
    troubled(store, {})

    def found(limit: int | None = None, **wanted: Any) -> list[tuple[str, int, str]]:
        return [(row["episode_id"][-2:], row["step"], row["tool"]) for row in store.calls(limit, run_id=run_id, **wanted)]

    assert found(episode_id=first) == [("00", 1, "add"), ("00", 2, "look"), ("00", 3, "add"), ("00", 4, "finish")]
    assert found(task_id="train/odd/3") == [("01", 1, "crash"), ("01", 2, "look"), ("01", 3, "fly")]
    assert found(task_id="train/odd/3", step=2) == found(episode_id=second, step=2) == [("01", 2, "look")]
    assert found(status="empty") == found(tool="look") == [("00", 2, "look"), ("01", 2, "look")]
    assert found(status="error") == [("01", 1, "crash")]
    assert found(2, episode_id=first) == [("00", 3, "add"), ("00", 4, "finish")]
    assert found(tool="add", task_id="train/odd/3") == found(episode_id="nothing") == []
    assert len(found()) == 7
    assert [row["attempt"] for row in store.calls(3)] == [1, 2, 3]
    assert len(store.calls()) == 10
    (call,) = store.calls(status="error")
    assert (call["task_id"], call["env_id"], call["policy_id"], call["run_id"]) == ("train/odd/3", "Test/Counting-v0", "me", run_id)
    assert list(call)[:-3] == list(next(store.tool_calls(second)))
