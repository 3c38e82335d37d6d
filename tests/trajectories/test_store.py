"""The store: nothing acknowledged is lost, whatever happens to the process that wrote it."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agent_gym.core import ToolCall
from agent_gym.errors import ConfigurationError, StoreError
from agent_gym.trajectories import Recorder, TrajectoryStore, recorder
from agent_gym.trajectories.log import DamagedLog
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID

ROOT = Path(__file__).parents[2]
FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

RECORD_FOR_EVER = """
import sys
import gymnasium
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID

run = TrajectoryStore(sys.argv[1]).open_run()
envs = [RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), run) for _ in range(4)]
for env in envs:
    env.reset(seed=0)
    print(env.episode_id, 0, flush=True)
step = [0] * len(envs)
while True:
    for number, env in enumerate(envs):
        *_, terminated, truncated, _ = env.step("look()")
        step[number] += 1
        print(env.episode_id, step[number], flush=True)
        if terminated or truncated:
            env.reset()
            step[number] = 0
            print(env.episode_id, 0, flush=True)
"""


def play(env: RecordTrajectory, *actions: Any, seed: int | None = None, task: str = "train/even/2") -> str:
    env.reset(seed=seed, options={"task_id": task})
    for action in actions:
        env.step(action)
    assert env.episode_id is not None
    return env.episode_id


@pytest.fixture
def store(tmp_path: Path) -> TrajectoryStore:
    return TrajectoryStore(tmp_path / "store")


def recorded(store: TrajectoryStore, **keywords: Any) -> RecordTrajectory:
    return RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(store.path), **keywords)


def logs(store: TrajectoryStore) -> list[Path]:
    return sorted(store.path.glob("wal/*/*.jsonl"))


def test_an_empty_store_reads_as_empty(store: TrajectoryStore) -> None:
    assert store.episodes() == []
    assert list(store.steps("nothing")) == []
    assert store.sql("SELECT count(*) AS n FROM tool_calls") == [{"n": 0}]
    assert store.runs() == []
    assert store.seal() == 0
    assert not store.path.exists()
    with pytest.raises(StoreError, match="no episode 'nothing'"):
        store.episode("nothing")


def test_an_episode_is_read_as_it_was(store: TrajectoryStore) -> None:
    env = recorded(store, policy_id="me", source="human")
    episode_id = play(env, ToolCall("add", {"amount": 2}), "nonsense", "look()", "crash()", "finish()", seed=5)
    env.close()
    row = store.episode(episode_id)
    expected = {
        "env_id": "Test/Counting-v0",
        "env_version": "7",
        "task_id": "train/even/2",
        "task_type": "count/even",
        "split": "train",
        "goal": "Count to 2.",
        "seed": 5,
        "episode_index": 0,
        "reset_options": '{"task_id":"train/even/2"}',
        "source": "human",
        "policy_id": "me",
        "n_turns": 5,
        "n_tool_calls": 3,
        "n_tool_failures": 1,
        "n_invalid_actions": 1,
        "n_retries": 0,
        "milestones": [{"name": "begun", "step": 1}],
        "reward_total": 1.0,
        "reward_parts": [{"name": "outcome", "score": 1.0}],
        "reward_valid": True,
        "success": True,
        "outcome": "success",
        "end_reason": "success",
        "error": None,
        "initial_state_digest": f"{0:032x}",
        "final_state_digest": f"{2:032x}",
        "run_id": env.run_id,
    }
    assert {key: row[key] for key in expected} == expected
    assert json.loads(row["checks"]) == [{"name": "counted", "passed": True, "detail": "count 2"}]
    assert json.loads(row["changes"]) == [{"where": "count", "key": "count", "before": 0, "after": 2}]
    steps = list(store.steps(episode_id))
    assert [step["step"] for step in steps] == [0, 1, 2, 3, 4, 5]
    assert [step["status"] for step in steps] == [None, "ok", "invalid_arguments", "empty", "error", "ok"]
    assert [step["action_valid"] for step in steps] == [None, True, False, True, True, True]
    assert [step["given"] for step in steps] == [None, None, "nonsense", "look()", "crash()", "finish()"]
    assert json.loads(steps[1]["action"]) == {"name": "add", "arguments": {"amount": 2}}
    assert "\N{SNOWMAN}" in steps[0]["obs_text"]
    assert json.loads(steps[1]["obs_data"])["view"] == {"count": 2}
    calls = list(store.tool_calls(episode_id))
    assert [(call["step"], call["tool"], call["status"]) for call in calls] == [
        (1, "add", "ok"),
        (3, "look", "empty"),
        (4, "crash", "error"),
        (5, "finish", "ok"),
    ]
    assert calls[0]["structured"] == '{"count":2}'
    assert "no such luck" in calls[2]["error"]


def test_outcomes(store: TrajectoryStore) -> None:
    env = recorded(store)
    play(env, "add(2)", "finish()")
    play(env, "finish()")
    play(env, "hand_over(reason='missing_information')")
    play(env, *["look()"] * 6)
    play(env, "add(1)", task="test/breaking/3")
    play(env, "look()")
    play(env)
    env.close()
    rows = store.episodes()
    assert [row["outcome"] for row in rows] == ["success", "failure", "abstained", "truncated", "infra_error", "interrupted", "interrupted"]
    assert [row["reward_total"] for row in rows] == [1.0, 0.0, 0.0, 0.0, None, None, None]
    assert [row["success"] for row in rows] == [True, False, False, False, None, None, None]
    assert [row["end_reason"] for row in rows] == ["success", "failure", "abstained", "step_limit", "infra_error", None, None]
    assert rows[4]["error"] == "InfrastructureError: the abacus broke"


def test_sealing_removes_the_log_and_changes_nothing_when_repeated(store: TrajectoryStore) -> None:
    env = recorded(store)
    play(env, "add(2)", "finish()")
    assert store.seal() == 0, "the writer lives"
    env.close()
    assert store.seal() == 1
    assert logs(store) == []
    before = store.episodes()
    assert store.seal() == 0
    assert store.episodes() == before


def test_kill_minus_nine_loses_nothing_acknowledged(store: TrajectoryStore) -> None:
    child = subprocess.Popen([sys.executable, "-c", RECORD_FOR_EVER, str(store.path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    acknowledged = [child.stdout.readline().split() for _ in range(500)]
    child.send_signal(signal.SIGKILL)
    acknowledged += [line.split() for line in child.stdout.read().splitlines() if line]
    child.wait()
    child.stdout.close()
    if len(acknowledged[-1]) < 2 or not acknowledged[-1][1]:
        acknowledged.pop()
    present = {(row["episode_id"], row["step"]) for row in store.sql("SELECT episode_id, step FROM steps")}
    assert {(episode_id, int(step)) for episode_id, step in acknowledged} <= present
    assert store.sql("SELECT count(*) AS n FROM steps")[0]["n"] == len(present), "none doubled"
    outcomes = store.sql("SELECT outcome, reward_total FROM episodes")
    open_at_the_end = [row for row in outcomes if row["outcome"] == "interrupted"]
    assert 1 <= len(open_at_the_end) <= 4
    assert all(row["reward_total"] is None for row in open_at_the_end)
    assert {row["outcome"] for row in outcomes} == {"truncated", "interrupted"}


def test_a_torn_last_line_is_dropped(store: TrajectoryStore) -> None:
    env = recorded(store)
    episode_id = play(env, "add(1)", "add(1)")
    env.close()
    (log,) = logs(store)
    log.write_bytes(log.read_bytes()[:-40])
    assert [step["step"] for step in store.steps(episode_id)] == [0, 1]
    assert store.episode(episode_id)["outcome"] == "interrupted"


@pytest.mark.parametrize("damage", ["flip", "cut", "nonsense"])
def test_a_damaged_line_is_named_and_the_rest_still_reads(store: TrajectoryStore, damage: str) -> None:
    for _ in range(2):
        env = recorded(store)
        play(env, "add(1)", "add(1)", "finish()")
        env.close()
    log, _ = logs(store)
    lines = log.read_bytes().splitlines(keepends=True)
    if damage == "flip":
        lines[1] = lines[1].replace(b"Count to 2", b"Count to 3")
    elif damage == "cut":
        del lines[1]
    else:
        lines[1] = b"{}\n"
    log.write_bytes(b"".join(lines))
    with pytest.raises(StoreError, match=rf"{log.name}: line 2 is damaged") as raised:
        store.seal()
    assert isinstance(raised.value, DamagedLog)
    assert log.read_bytes() == b"".join(lines), "left as it is"
    with pytest.warns(RuntimeWarning, match="line 2 is damaged"):
        assert len(store.episodes()) == 1


def test_a_full_disk_is_an_error_and_loses_nothing(store: TrajectoryStore) -> None:
    child = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
import gymnasium
from agent_gym.errors import StoreError
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID

env = RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), sys.argv[1])
steps = 0
try:
    while True:
        env.reset()
        steps += 1
        for _ in range(6):
            env.step("look()")
            steps += 1
except StoreError as error:
    print(steps, error)
"""
    done = subprocess.run([sys.executable, "-c", child, str(store.path)], cwd=ROOT, capture_output=True, text=True, check=True)
    steps, _, message = done.stdout.partition(" ")
    assert message.startswith("cannot write ")
    assert store.sql("SELECT count(*) AS n FROM steps") == [{"n": int(steps)}]


@FORKS
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*file"):
        TrajectoryStore(tmp_path / "file" / "store").open_run()
    tmp_path.chmod(0o755)
    folder = tmp_path / "read_only"
    folder.mkdir(0o555)
    child = os.fork()
    if child == 0:  # root may write anywhere, so become nobody
        code = 1
        try:
            if os.getuid() == 0:
                os.setuid(65_534)
            TrajectoryStore(folder).open_run()
        except StoreError as error:
            code = 0 if f"cannot write {folder}" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def record_some(path: str, run_id: str, episodes: int) -> None:
    env = RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), path, run_id=run_id)
    for _ in range(episodes):
        play(env, "add(2)", "finish()")
    env.close()


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
@FORKS
def test_several_processes_write_one_store(store: TrajectoryStore, method: str) -> None:
    run = store.open_run(policy="p", seed=1)
    with ProcessPoolExecutor(8, mp_context=multiprocessing.get_context(method)) as workers:
        for done in [workers.submit(record_some, str(store.path), run.run_id, 10) for _ in range(8)]:
            done.result()
    rows = store.episodes()
    assert len({row["episode_id"] for row in rows}) == len(rows) == 80
    assert store.fsck() == []
    assert {row["run_id"] for row in rows} == {run.run_id}
    assert len(list(store.path.glob("episodes/*/*.parquet"))) == 1, "one part for all"
    (about,) = store.runs()
    assert (about["policy"], about["seed"], about["run_id"]) == ("p", 1, run.run_id)


@FORKS
def test_a_forked_child_records_into_its_own_log(store: TrajectoryStore) -> None:
    env = RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True, call_timeout_s=0.5), str(store.path))
    mine = play(env, "add(1)")
    child = os.fork()
    if child == 0:
        env.step("add(1)")
        play(env, "add(2)", "finish()")
        os._exit(0)
    os.waitpid(child, 0)
    env.step("add(1)")
    env.step("finish()")
    env.close()
    rows = {row["episode_id"]: row for row in store.episodes()}
    assert rows[mine]["n_turns"] == 3
    assert [row["outcome"] for row in rows.values()] == ["success", "success"]


def test_an_episode_that_goes_on_from_a_saved_state_names_its_parent(store: TrajectoryStore) -> None:
    env = recorded(store)
    parent = play(env, "add(1)")
    state = env.get_wrapper_attr("get_state")()
    env.step("add(5)")
    env.get_wrapper_attr("set_state")(state)
    env.step("add(1)")
    env.step("finish()")
    env.close()
    assert env.episode_id is not None
    forked = store.episode(env.episode_id)
    assert (forked["parent_episode_id"], forked["outcome"], forked["n_turns"]) == (parent, "success", 2)
    assert [step["step"] for step in store.steps(env.episode_id)] == [2, 3]
    assert store.episode(parent)["outcome"] == "interrupted"


def test_long_logs_give_way_to_new_ones(store: TrajectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "ROTATE_BYTES", 10)
    env = recorded(store)
    for _ in range(3):
        play(env, "add(2)", "finish()")
    assert len(logs(store)) == 3
    assert len(store.episodes()) == 3, "seen while the writer lives"
    play(env, "add(2)", "finish()")
    env.close()
    rows = store.episodes()
    assert [row["episode_id"][-6:] for row in rows] == ["000000", "000001", "000002", "000003"]


def test_queries(store: TrajectoryStore) -> None:
    env = recorded(store)
    for failures in range(4):
        play(env, *["crash()"] * failures, "finish()")
    env.close()
    assert [row["n_tool_failures"] for row in store.episodes(where="n_tool_failures > 1")] == [2, 3]
    assert [row["n_tool_failures"] for row in store.episodes(limit=2)] == [2, 3]
    assert store.episodes(where="n_tool_failures > 0 -- a comment", limit=1)[0]["n_tool_failures"] == 3
    assert store.episodes(run_id="another") == []
    assert store.sql("SELECT max(n_turns) AS most FROM episodes WHERE run_id = '" + str(env.run_id) + "'") == [{"most": 4}]
    for where in ("n_tool_failure > 1", "n_turns >", "'no number'"):
        with pytest.raises(ConfigurationError, match="the query cannot be answered"):
            store.episodes(where=where)


def test_run_ids_are_unique_and_sort_by_time(store: TrajectoryStore) -> None:
    ids = [store.open_run().run_id for _ in range(20)]
    assert sorted(set(ids)) == ids
    assert [about["run_id"] for about in store.runs()] == ids
    assert store.open_run(run_id=ids[0]).run_id == ids[0]
    assert len(store.runs()) == 20


def test_a_store_can_be_moved(store: TrajectoryStore, tmp_path: Path) -> None:
    env = recorded(store)
    episode_id = play(env, "add(2)", "finish()")
    env.close()
    shutil.move(store.path, tmp_path / "it's elsewhere")
    assert TrajectoryStore(tmp_path / "it's elsewhere").episode(episode_id)["success"]


def test_a_recorder_that_was_closed_may_close_again(tmp_path: Path) -> None:
    unused = Recorder(tmp_path, "run", env_id="x")
    unused.close()
    unused.close()
    assert list(tmp_path.iterdir()) == []
