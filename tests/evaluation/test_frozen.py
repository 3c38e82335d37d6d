"""A recorded failure becomes a task that begins again exactly as it did, that can be solved, and that the recorded actions fail again."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import gymnasium
import orjson
import pytest
from typer.testing import CliRunner

from agent_gym.cli import app
from agent_gym.envs.tool_task import ToolTask
from agent_gym.errors import ConfigurationError, DatasetError
from agent_gym.evaluation import evaluate, frozen
from agent_gym.evaluation.frozen import FrozenTask, add, freeze, read
from agent_gym.policies import load
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory

TOOL_TASK = "AgentBase/ToolTask-v0"
FAULTY = {"worlds": ["library"], "split": "transfer", "faults": 0.5, "retries": "agent"}
PERTURBED = {"perturbation": {"wording": True, "interface": True, "strength": "strong", "seed": 5}}


def failed(store: TrajectoryStore, env_id: str, actions: list[str], resets: int = 1, options: Any = None, **keywords: Any) -> str:
    """The id of an episode that failed: the last of so many, in an environment that draws its tasks itself."""
    env = RecordTrajectory(gymnasium.make(env_id, interface="text", disable_env_checker=True, **keywords), str(store.path))
    for number in range(resets):
        env.reset(seed=None if number else 3, options=options)
    for action in actions:
        env.step(action)
    env.close()
    return str(env.episode_id)


def play_again(task: FrozenTask, store: TrajectoryStore) -> Any:
    """The last row of the recorded actions, taken again in the frozen task, after its first observation has been compared."""
    (first, *later), env = store.steps(task.failed["episode_id"]), task.make()
    observation, _ = task.begin(env)
    assert observation["text"] == first["obs_text"]
    assert orjson.dumps(observation["data"]).decode() == first["obs_data"]
    info: dict[str, Any] = {}
    for step in later:
        observation, reward, *_, info = env.step(orjson.loads(step["action"]))
        assert (observation["text"], reward, info["ending"]) == (step["obs_text"], step["reward"], step["ending"] or "")
    env.close()
    return info


def solved(path: Path, env_id: str, policy: str = "oracle") -> dict[str, Any]:
    """What a policy makes of a file of frozen tasks, by the command."""
    command = ["eval", policy, env_id, "--tasks", str(path), "--store", str(path.with_name("again")), "--json"]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = orjson.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("env_id", "keywords", "options", "resets", "actions"),
    [
        (TOOL_TASK, {"worlds": ["retail"]}, None, 1, ["get_order('W4523870')", "finish()"]),
        (TOOL_TASK, FAULTY, PERTURBED, 3, ["hand_over('missing_permission')"]),
        ("AgentBase/WebTask-v0", {"worlds": ["retail"]}, None, 2, ["click('1')", "finish()"]),
        ("AgentBase/CodeTask-v0", {}, {"split": "train"}, 2, ["finish()"]),
    ],
)
def test_a_failure_begins_again(
    request: pytest.FixtureRequest, tmp_path: Path, env_id: str, keywords: dict[str, Any], options: Any, resets: int, actions: list[str]
) -> None:
    if "Code" in env_id:
        request.getfixturevalue("needs_sandbox")
    store = TrajectoryStore(tmp_path / "store")
    episode = failed(store, env_id, actions, resets, options, **keywords)
    row, out = store.episode(episode), tmp_path / "regression.jsonl"
    done = CliRunner().invoke(
        app, ["tasks", "from-episode", episode, "--out", str(out), "--store", str(store.path)], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    assert row["goal"].split("\n")[0] in done.stdout.replace("\n  ", "\n")
    (task,) = read(out)
    assert (task.task_id, task.split, task.env_version) == (row["task_id"], "regression", row["env_version"])
    assert (task.seed, task.episode_index) == (3, resets - 1)
    assert {"split": "train", **keywords} == {**task.env_kwargs, "split": row["split"]}
    assert task.failed["end_reason"] == row["end_reason"] == play_again(task, store)["ending"]
    assert task.failed["checks"] == [check for check in orjson.loads(row["checks"] or "[]") if not check["passed"]]
    result = solved(out, env_id, "oracle-fault-aware" if "faults" in keywords else "oracle")
    assert (result["episodes"], result["success_rate"], result["split"]) == (1, 1.0, "regression")
    (again,) = TrajectoryStore(tmp_path / "again").episodes()
    first, before = (next(kept.steps(one["episode_id"])) for kept, one in ((TrajectoryStore(tmp_path / "again"), again), (store, row)))
    assert all(first[name] == before[name] for name in ("obs_text", "obs_data", "state_digest", "rng_digest"))


@pytest.fixture
def store(tmp_path: Path) -> TrajectoryStore:
    return TrajectoryStore(tmp_path / "store")


@pytest.fixture
def task(store: TrajectoryStore) -> FrozenTask:
    return freeze(store, failed(store, TOOL_TASK, ["finish()"], worlds=["workspace"]))


def test_a_frozen_task_is_a_task_of_its_environment(task: FrozenTask) -> None:
    env = gymnasium.make(TOOL_TASK, interface="text", task_ids=[task.task_id], **task.env_kwargs)
    _, info = env.reset(seed=99)
    assert info["task_id"] == task.task_id
    assert task.expected["success"] is True


def test_a_file_gathers_tasks(task: FrozenTask, store: TrajectoryStore, tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    other = freeze(store, failed(store, TOOL_TASK, ["finish()"], resets=4, worlds=["workspace"]))
    assert [add(one, path) for one in (task, other, task)] == [True, True, False]
    assert read(path) == [task, other]
    env = gymnasium.make(TOOL_TASK, interface="text", disable_env_checker=True)
    for episodes, expected in ((None, [task, other]), (3, [task, other, task])):
        kept = TrajectoryStore(tmp_path / f"again-{episodes}")
        result = evaluate(load("oracle", env), TOOL_TASK, tasks=path, episodes=episodes, store=kept, batch=1)
        assert result["success_rate"] == 1.0
        assert [(row["task_id"], row["seed"], row["episode_index"]) for row in kept.episodes()] == [
            (one.task_id, one.seed, one.episode_index) for one in expected
        ]


def test_only_failures_are_frozen(store: TrajectoryStore) -> None:
    env = gymnasium.make(TOOL_TASK, interface="text", disable_env_checker=True, worlds=["workspace"])
    evaluate(load("oracle", env), TOOL_TASK, episodes=1, store=store, env_kwargs={"worlds": ["workspace"]})
    open_one = failed(store, TOOL_TASK, [], worlds=["workspace"])
    for episode, outcome in ((store.episodes()[0]["episode_id"], "success"), (open_one, "interrupted")):
        with pytest.raises(ConfigurationError, match=f"ended in {outcome}: only one that the agent failed"):
            freeze(store, episode)


def test_another_version_is_refused(task: FrozenTask, store: TrajectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "suite.jsonl"
    add(task, path)
    monkeypatch.setattr(ToolTask, "version", "99")
    said = f"is of AgentBase/ToolTask-v0 version {task.env_version}, and this is version 99"
    with pytest.raises(ConfigurationError, match=said):
        frozen.settings(read(path), TOOL_TASK, {})
    with pytest.raises(ConfigurationError, match=said):
        freeze(store, task.failed["episode_id"])


def test_what_changed_without_a_new_version_is_refused(task: FrozenTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_gym.episode.Episode._describe", lambda *_: "Another text.")
    env = task.make()
    with pytest.raises(ConfigurationError, match="does not begin as it did"):
        task.begin(env)


def test_what_does_not_fit_is_named(task: FrozenTask, tmp_path: Path) -> None:
    for env_id, given, others, said in (
        ("AgentBase/WebTask-v0", {}, [], "is of AgentBase/ToolTask-v0, not of AgentBase/WebTask-v0"),
        (TOOL_TASK, {"faults": 0.5}, [], "faults is None in them, not 0.5"),
        (TOOL_TASK, {"task_ids": ["x"]}, [], "task_ids is .* in them, not"),
        (TOOL_TASK, {}, [replace(task, env_kwargs={"worlds": ["retail"]})], "different keywords.*files of their own"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            frozen.settings([task, *others], env_id, given)
    whole = asdict(task)
    for line, said in (
        (b"{", "line 1: not JSON"),
        (orjson.dumps({"task_id": "x"}), "line 1: no frozen task; one is an object of task_id"),
        (orjson.dumps({**whole, "seed": "3"}), "line 1: seed must be int"),
        (orjson.dumps({**whole, "failed": {}}), "line 1: failed names no episode_id"),
    ):
        (tmp_path / "bad.jsonl").write_bytes(line)
        with pytest.raises(DatasetError, match=said):
            read(tmp_path / "bad.jsonl")
    (tmp_path / "ids.txt").write_text("retail/cancel/test/1\n")
    assert read(tmp_path / "ids.txt") == []
    with pytest.raises(ConfigurationError, match="holds something else than frozen tasks"):
        add(task, tmp_path / "ids.txt")
    hostile = replace(task, env_kwargs={"rich_wrappers": [["antigravity:Wrapper", {}]]})
    with pytest.raises(ConfigurationError, match="'antigravity:Wrapper', which is not imported"):
        hostile.make()
