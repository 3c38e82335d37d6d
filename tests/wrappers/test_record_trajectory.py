"""RecordTrajectory: sees everything, changes nothing, works wherever environments run."""

import contextlib
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AsyncVectorEnv

from agent_gym.core import Perturbation, ToolCall
from agent_gym.errors import ConfigurationError, InfrastructureError
from agent_gym.testing import SmallTask
from agent_gym.trajectories import Run, TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID, CountingEnv

ROOT = Path(__file__).parents[2]


def make(**keywords: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(ENV_ID, disable_env_checker=True, **keywords)


@pytest.mark.parametrize("interface", ["text", "array"])
def test_observations_rewards_and_infos_are_untouched(tmp_path: Path, interface: str) -> None:
    bare, recorded = make(interface=interface), RecordTrajectory(make(interface=interface), str(tmp_path))
    assert recorded.observation_space == bare.observation_space
    assert recorded.action_space == bare.action_space
    actions = ["add(1)", "nonsense", "look()", "finish()"] if interface == "text" else [0, 1, 2, 0]
    for seed in (3, None):
        assert data_equivalence(recorded.reset(seed=seed), bare.reset(seed=seed))
        for action in actions:
            recorded.note(anything=1)
            got, expected = recorded.step(action), bare.step(action)
            assert data_equivalence(got, expected)
            if expected[2] or expected[3]:
                break
    recorded.close()
    bare.close()


def test_every_interface_and_the_rich_environment_give_the_same_record(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path)
    envs = [make(interface="text"), make(interface="array"), CountingEnv()]
    for env in envs:
        recorded = RecordTrajectory(env, str(tmp_path), policy_id="p")
        recorded.reset(seed=0, options={"task_id": "train/odd/0"})
        recorded.close()
    rows = store.sql("SELECT obs_text, obs_data, state_digest FROM steps")
    assert len(rows) == 3
    assert rows[0] == rows[1] == rows[2]


def test_the_index_of_an_array_action_is_kept(tmp_path: Path) -> None:
    env = RecordTrajectory(make(interface="array"), str(tmp_path))
    env.reset(seed=0)
    env.step(np.int64(1))
    env.close()
    (row,) = TrajectoryStore(tmp_path).sql("SELECT given, action FROM steps WHERE step = 1")
    assert row["given"] == "1"
    assert json.loads(row["action"])["name"]


def test_notes_go_with_the_coming_step(tmp_path: Path) -> None:
    env = RecordTrajectory(make(), str(tmp_path))
    env.reset(seed=0, options={"task_id": "train/odd/2"})
    env.note(logprob=np.float32(-0.5), policy_version=4, usage={"prompt_tokens": 7.0, "cached": 2})
    env.note(thought="hm", vector=np.arange(2))
    env.step("look()")
    env.step("look()")
    env.notes = {"policy_version": 5, "usage": {"prompt_tokens": 3, "cost_usd": 0.25}, "model_us": 9}
    env.step("finish()")
    with pytest.raises(ValueError, match="invalid literal"):
        env.note(policy_version="new")
    env.close()
    store = TrajectoryStore(tmp_path)
    (episode,) = store.episodes()
    steps = list(store.steps(episode["episode_id"]))
    assert [step["logprob"] for step in steps] == [None, -0.5, None, None]
    assert [step["policy_version"] for step in steps] == [None, 4, None, 5]
    assert [step["prompt_tokens"] for step in steps] == [None, 7, None, 3]
    assert json.loads(steps[1]["note"]) == {"thought": "hm", "vector": [0, 1]} | {"usage": {"cached": 2}}
    assert (episode["policy_version_start"], episode["policy_version_end"]) == (4, 5)
    assert (episode["prompt_tokens"], episode["completion_tokens"], episode["cost_usd"], episode["model_us"]) == (10, None, 0.25, 9)


def test_failures_of_the_environment_are_kept_as_such(tmp_path: Path) -> None:
    env = RecordTrajectory(make(), str(tmp_path))
    with pytest.raises(InfrastructureError, match="no abacus"):
        env.reset(seed=4, options={"task_id": "test/unopened/1"})
    env.reset(options={"task_id": "test/breaking/1"})
    *_, truncated, info = env.step("add(1)")
    assert truncated
    assert info["ending"] == "infra_error"
    env.close()
    rows = TrajectoryStore(tmp_path).episodes()
    assert [(row["outcome"], row["task_type"], row["n_turns"]) for row in rows] == [
        ("infra_error", "count/unopened", 0),
        ("infra_error", "count/breaking", 1),
    ]
    assert [row["error"] for row in rows] == ["InfrastructureError: no abacus", "InfrastructureError: the abacus broke"]
    assert all(row["reward_total"] is None and row["success"] is None and not row["reward_valid"] for row in rows)


class Meddling(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Halves rewards, ends after two steps, and fails at the third of any."""

    steps = 0

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps == 3:
            raise InfrastructureError("meddled")
        observation, reward, terminated, _, info = self.env.step(action)
        return observation, float(reward) / 2 - 1, terminated, self.steps == 2, {**info, "ending": "deadline" if self.steps == 2 else ""}


def test_what_wrappers_below_it_change_is_what_it_records(tmp_path: Path) -> None:
    env = RecordTrajectory(Meddling(make()), str(tmp_path))
    env.reset(seed=0)
    env.step("look()")
    env.step("look()")
    env.reset()
    with pytest.raises(InfrastructureError, match="meddled"):
        env.step("look()")
    env.close()
    rows = TrajectoryStore(tmp_path).episodes()
    assert [(row["outcome"], row["end_reason"], row["reward_total"], row["success"]) for row in rows] == [
        ("truncated", "deadline", -2.0, False),
        ("infra_error", "infra_error", None, None),
    ]


def test_the_spec_round_trips(tmp_path: Path) -> None:
    run = TrajectoryStore(tmp_path).open_run(policy="p")
    env = RecordTrajectory(make(), run, source="oracle")
    assert env.spec is not None
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, RecordTrajectory)
    again.reset(seed=0)
    again.close()
    (row,) = TrajectoryStore(tmp_path).episodes()
    assert (row["run_id"], row["source"], row["policy_id"]) == (run.run_id, "oracle", "p")
    assert pickle.loads(pickle.dumps(run)) == run


def test_nothing_is_written_before_the_first_reset(tmp_path: Path) -> None:
    env = RecordTrajectory(make(), str(tmp_path / "store"))
    assert env.episode_id is None
    assert env.run_id is None
    env.close()
    env.close()
    assert not (tmp_path / "store").exists()


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="unknown source 'ai'; known: human, oracle, policy"):
        RecordTrajectory(make(), str(tmp_path), source="ai")
    with pytest.raises(ConfigurationError, match="CartPoleEnv offers no last_record"):
        RecordTrajectory(gymnasium.make("CartPole-v1"), str(tmp_path))


class Worker:
    """Makes a recorded environment; can be sent to a spawned process."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __call__(self) -> gymnasium.Env[Any, Any]:
        return RecordTrajectory(make(interface="array"), self.run)


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_workers_of_a_vector_environment_share_a_run(tmp_path: Path, context: str) -> None:
    store = TrajectoryStore(tmp_path)
    run = store.open_run()
    envs = AsyncVectorEnv([Worker(run)] * 2, context=context)
    envs.reset(seed=[1, 2])
    envs.set_attr("notes", [{"policy_version": 1}, {"policy_version": 2}])
    for _ in range(8):
        envs.step(np.array([0, 0]))
    envs.close()
    rows = store.episodes()
    assert {row["run_id"] for row in rows} == {run.run_id}
    assert {row["seed"] for row in rows} == {1, 2}
    assert store.sql("SELECT policy_version FROM steps WHERE policy_version IS NOT NULL ORDER BY 1") == [
        {"policy_version": 1},
        {"policy_version": 2},
    ]
    assert sum(row["n_turns"] for row in rows) + sum(row["outcome"] != "interrupted" for row in rows) >= 14


def test_stable_baselines_records(tmp_path: Path) -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    store = TrajectoryStore(tmp_path)
    envs = vec_env.DummyVecEnv([Worker(store.open_run())] * 2)
    envs.reset()
    envs.env_method("note", logprob=-1.0)
    for _ in range(10):
        envs.step(np.array([0, 0]))
    envs.close()
    rows = store.episodes()
    assert sum(row["n_turns"] for row in rows) == 20
    assert len(store.sql("SELECT * FROM steps WHERE logprob = -1")) == 2


def test_recording_loads_neither_pyarrow_nor_duckdb() -> None:
    check = "import sys, agent_gym.wrappers; sys.exit(bool({'pyarrow', 'duckdb', 'scipy', 'torch'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=True)


def test_the_bare_folder_cannot_be_imported() -> None:
    done = subprocess.run([sys.executable, "-c", "import wrappers"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "import agent_gym.wrappers" in done.stderr


def test_a_tool_call_needs_no_copy_of_what_was_given(tmp_path: Path) -> None:
    env = RecordTrajectory(make(), str(tmp_path))
    env.reset(seed=0)
    env.step(ToolCall("look"))
    env.close()
    assert TrajectoryStore(tmp_path).sql("SELECT given FROM steps WHERE step = 1") == [{"given": None}]


def test_episodes_are_told_apart_whatever_goes_on_below(tmp_path: Path) -> None:
    env = RecordTrajectory(gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface="text"), tmp_path)
    env.reset(seed=1)
    env.step("get_user('U1')")
    state = env.get_wrapper_attr("get_state")()
    env.reset(seed=5)
    env.step("get_user('U1')")
    env.get_wrapper_attr("set_state")(state)
    env.step("finish()")
    env.reset(seed=1)
    env.unwrapped.full_reset(seed=5)  # type: ignore[attr-defined]
    env.step("finish()")
    env.close()
    rows = TrajectoryStore(tmp_path).episodes()
    for row in rows:
        steps = list(TrajectoryStore(tmp_path).steps(row["episode_id"]))
        goals = {json.loads(step["obs_data"])["goal"] for step in steps}
        assert goals == {row["goal"]}
    assert [row["end_reason"] for row in rows if row["end_reason"]] == ["failure", "failure"]


@pytest.mark.parametrize("action", [0, np.int64(0), np.array([0]), np.array(2.5), pytest.param(10**5_000, id="huge")])
def test_whatever_the_interface_takes_is_recorded(action: Any, tmp_path: Path) -> None:
    env = RecordTrajectory(gymnasium.make("agent_gym:AgentBase/ToolTask-v0"), tmp_path)
    env.reset(seed=1)
    env.step(action)
    env.close()
    (row,) = TrajectoryStore(tmp_path).episodes()
    assert row["n_turns"] == 1


def test_a_recording_environment_can_be_pickled(tmp_path: Path) -> None:
    env = RecordTrajectory(gymnasium.make("agent_gym:AgentBase/ToolTask-v0"), tmp_path)
    env.reset(seed=1)
    with contextlib.closing(pickle.loads(pickle.dumps(env))) as copy:
        assert copy.step(0)[4]["task_id"] == env.step(0)[4]["task_id"]
    env.close()


def test_a_perturbed_reset_that_fails_is_kept(tmp_path: Path) -> None:
    class Broken(SmallTask):
        def open(self, *_: Any) -> Any:
            raise InfrastructureError("no lamps")

    env = RecordTrajectory(Broken(), str(tmp_path))
    with pytest.raises(InfrastructureError, match="no lamps"):
        env.reset(seed=0, options={"perturbation": Perturbation(wording=True)})
    env.close()
    (row,) = TrajectoryStore(tmp_path).sql("SELECT end_reason, reset_options FROM episodes")
    assert (row["end_reason"], json.loads(row["reset_options"])["perturbation"]["wording"]) == ("infra_error", True)
