"""What goes and what stays: age, number, budget, pins; and that a store is whole at any moment in between."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agent_gym.agent_env import AgentEnv
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.policy import RetentionPolicy
from agent_gym.trajectories.retention import Report, collect_garbage
from agent_gym.wrappers import RecordTrajectory

LONG = "long " * 14_000
NOW = 1e-9
"""Days that have passed since anything was recorded."""


def played(env: RecordTrajectory, options: Mapping[str, Any], *, well: bool, thought: str = "", tokens: bool = True) -> str:
    """Plays an episode as the oracle does, or gives up at once."""
    inner: AgentEnv = env.unwrapped.rich.unwrapped  # type: ignore[attr-defined]
    observations = [env.reset(seed=0, options=dict(options))[0]]
    ended = False
    while not ended:
        if tokens:
            env.note(tokens={"prompt_token_ids": list(range(20)), "completion_token_ids": [1, 2], "logprobs": [-0.1, -0.2]})
        env.note(policy_version=1, **({"thought": f"{thought}{env.episode_id}{len(observations)}"} if thought else {}))
        action = inner.oracle(observations).to_dict() if well else "finish()"
        observation, _, *endings, _ = env.step(action)
        observations.append(observation)
        ended = any(endings)
    return str(env.episode_id)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 episodes of 6 retail tasks in training, every fifth a failure, every third with texts of 70 KB; 4 of an evaluation."""
    store = TrajectoryStore(tmp_path_factory.mktemp("retention") / "store")
    for command, count in (("agent-gym train", 60), ("agent-gym eval oracle AgentBase/ToolTask-v0", 4)):
        run = store.open_run(command=command, policy="someone")
        with RecordTrajectory(
            gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface="text", worlds=["retail"], disable_env_checker=True), run
        ) as env:
            tasks = env.task_set.ids("train", env.task_set.families("train")[0])[:6]
            for number in range(count):
                played(env, {"task_id": tasks[number % 6]}, well=number % 5 != 0, thought="" if number % 3 else LONG)
        run.close()
    return store.path


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> TrajectoryStore:
    shutil.copytree(recorded, tmp_path / "store")
    return TrajectoryStore(tmp_path / "store")


def policy(**settings: Any) -> RetentionPolicy:
    return RetentionPolicy.model_validate(settings)


def size(store: TrajectoryStore) -> int:
    return sum(path.stat().st_size for path in store.path.rglob("*") if path.is_file())


def everything(store: TrajectoryStore, episode_id: str) -> tuple[Any, ...]:
    return store.episode(episode_id), list(store.steps(episode_id)), list(store.tool_calls(episode_id))


def ids(store: TrajectoryStore, where: str) -> list[str]:
    return [row["episode_id"] for row in store.episodes(where=where)]


def went(report: Report) -> list[tuple[str, str, str]]:
    return [(one.kind, one.episode_id, one.reason) for one in report.dropped]


def test_a_store_is_made_to_fit_its_budget_and_what_is_held_stays(store: TrajectoryStore) -> None:
    failures = ids(store, "outcome = 'failure'")
    pinned = ids(store, "outcome = 'success'")[3]
    store.add_event("pin", episode_id=pinned, reason="the best one")
    held = {episode_id: everything(store, episode_id) for episode_id in [*failures, pinned]}
    assert len(failures) == 13
    before = size(store)
    budget = before // 2
    report = collect_garbage(store, policy(budget=budget))
    assert report.fits
    assert size(store) == report.bytes_after <= budget < report.bytes_before == before
    assert store.fsck() == []
    assert {episode_id: everything(store, episode_id) for episode_id in held} == held
    assert len(store.episodes()) == 64
    for one in report.dropped:
        assert ("dropped_" + one.kind, one.reason) in [(event["kind"], event["reason"]) for event in store.events(one.episode_id)]
    assert collect_garbage(store, policy(budget=budget)).dropped == []
