"""``agent-gym store …``: what it says, and its exit status."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from typer.testing import CliRunner, Result

from agent_gym.bench import store as bench
from agent_gym.cli import app
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID


def run(*arguments: str, store: Path) -> Result:
    return CliRunner().invoke(app, ["store", *arguments, "--store", str(store)], env={"COLUMNS": "200"})


def answer(*arguments: str, store: Path, status: int = 0) -> dict[str, Any]:
    done = run(*arguments, "--json", store=store)
    assert done.exit_code == status, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    assert found.pop("store") == str(store)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A run of two parts, and a log that is not sealed yet."""
    run_id = None
    for number in range(3):
        with RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(tmp_path), run_id) as env:
            env.reset(seed=0, options={"task_id": "train/even/2"})
            env.step("add(2)")
            env.step("finish()")
        run_id = env.run_id
        if number < 2:
            TrajectoryStore(tmp_path).seal()
    return tmp_path


def test_seal_and_compact(store: Path) -> None:
    assert answer("seal", "--run", "another", store=store) == {"episodes": 0}
    assert run("seal", store=store).stdout == f"1 episodes sealed in {store}\n"
    assert answer("seal", store=store) == {"episodes": 0}
    assert answer("compact", "--run", "another", store=store) == {"parts_before": 0, "parts_after": 0}
    assert answer("compact", store=store) == {"parts_before": 3, "parts_after": 1}
    assert run("compact", store=store).stdout == f"1 parts became 1 in {store}\n"


def test_fsck_and_recover(store: Path) -> None:
    assert answer("fsck", store=store) == {"ok": True, "findings": []}
    assert run("fsck", store=store).stdout == f"{store} is whole\n"
    part = min(store.glob("steps/*/*.parquet"))
    part.write_bytes(part.read_bytes()[:-9])
    (log,) = store.glob("wal/*/*.jsonl")
    log.write_bytes(log.read_bytes()[:-9])
    name = part.relative_to(store).as_posix()
    found = answer("fsck", store=store, status=1)
    assert not found["ok"]
    assert [finding["path"] for finding in found["findings"]] == [name, log.relative_to(store).as_posix()]
    assert run("fsck", store=store).stdout.endswith(f"2 findings in {store}\n")
    done = answer("recover", store=store)["done"]
    assert done[-1] == {"path": name, "what": f"has {part.stat().st_size if part.exists() else len(left(part))} bytes instead of "
                        f"{len(left(part)) + 9}; it was taken out"}  # fmt: skip
    assert run("recover", store=store).stdout == f"nothing to do in {store}\n"


def left(part: Path) -> bytes:
    return part.with_name(f"{part.name}.damaged").read_bytes()


def test_stats(store: Path) -> None:
    found = answer("stats", store=store)
    assert {name: one["rows"] for name, one in found["tables"].items()} == {
        "steps": 9,
        "tool_calls": 6,
        "tokens": 0,
        "events": 0,
        "episodes": 3,
    }
    assert found["runs"] == 1
    assert found["open_logs"] == {"files": 0, "bytes": 0}, "asking has sealed it"
    assert found["bytes_per_step"] == pytest.approx(
        sum(path.stat().st_size for kind in ("*/*/*.parquet", "blobs/??/*") for path in store.glob(kind)) / 9
    )
    shown = run("stats", store=store).stdout
    assert f"{found['bytes_per_step']:.0f} bytes a step" in " ".join(shown.split())
    assert "open logs" in shown


def test_an_empty_store(tmp_path: Path) -> None:
    store = tmp_path / "nothing"
    assert answer("stats", store=store)["bytes_per_step"] is None
    for command in ("seal", "compact", "recover", "stats", "fsck"):
        assert run(command, store=store).exit_code == 0
    assert not store.exists()


@pytest.mark.slow
def test_bench_store_measures_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller = {"_PAIRS": 2, "_STEPS": 20, "_ROUNDS": 3, "_RUNS": 2, "_EPISODES": 200, "_CHUNK": 50, "_TASKS": 100, "_LOOKUPS": 3}
    for name, value in smaller.items():
        monkeypatch.setattr(bench, name, value)
    told: list[str] = []
    metrics = bench.measure(told.append)
    wanted = {"record_steps_per_s", "rollout_slowdown", "bytes_per_step", "query_failures_s", "query_turns_s", "episode_by_id_ms"}
    assert wanted | {"calls_lookup_s"} <= set(metrics)
    assert all(value > 0 for value in metrics.values())
    assert len(told) == 4
