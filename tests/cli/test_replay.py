"""``agent-gym episodes replay | fork | blame``: what they say, and their exit status."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from typer.testing import CliRunner, Result

from agent_gym.cli import app
from agent_gym.errors import StoreError
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.drifting import ENV_ID, DriftingEnv


def run(command: str, *arguments: str, store: Path) -> Result:
    return CliRunner().invoke(app, ["episodes", command, *arguments, "--store", str(store)], env={"COLUMNS": "200"})


def answer(command: str, *arguments: str, store: Path, status: int = 0) -> dict[str, Any]:
    done = run(command, *arguments, "--json", store=store)
    assert done.exit_code == status, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    assert found.pop("store") == str(store)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A run of three episodes: green is wanted; one presses it, one another, one nothing."""
    with RecordTrajectory(gymnasium.make(ENV_ID, interface="text", disable_env_checker=True), str(tmp_path)) as env:
        for actions in (("press('11')", "look()", "finish()"), ("press('12')", "press('11')", "finish()"), ("look()", "finish()")):
            env.reset(seed=0, options={"task_id": "green"})
            for action in actions:
                env.step(action)
    return tmp_path


@pytest.fixture
def ids(store: Path) -> list[str]:
    return [row["episode_id"] for row in TrajectoryStore(store).episodes()]


def test_replay_says_what_came_out_otherwise(store: Path, ids: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer("replay", store=store)["episode_id"] == ids[2], "the newest"
    done = run("replay", ids[0], store=store)
    assert (done.exit_code, done.stdout) == (0, f"{ids[0]}\n{ENV_ID}  green  execute, 3 steps\nidentical\n")
    monkeypatch.setattr(DriftingEnv, "drift", "tool")
    told = answer("replay", ids[0], "--diff", store=store, status=1)
    assert (told["verdict"], told["first"]["step"], told["first"]["field"]) == ("tool_nondeterminism", 2, "tool_calls.result")
    assert [one["field"] for one in told["differences"]] == ["tool_calls.result", "obs_text", "obs_data"]
    shown = run("replay", ids[0], "--diff", store=store)
    assert shown.exit_code == 1
    assert "tool_nondeterminism\n  first: step 2, tool_calls.result, attempt 1\n" in shown.stdout
    assert "\n    -1 pressed, seen in 1.5 ms\n    +2 pressed, seen in 1.5 ms\n" in shown.stdout
    assert "\nstep 2, obs_text\n" in shown.stdout
    assert answer("replay", ids[0], "--mode", "cassette", store=store)["verdict"] == "identical"


def test_another_verdict_is_told_with_the_old_one(store: Path, ids: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DriftingEnv, "drift", "grader")
    done = run("replay", ids[0], "--mode", "rescore", store=store)
    assert done.exit_code == 1
    assert "\nreward_changed\n  outcome was success, is failure\n" in done.stdout
    assert "  reward_total was 1.0, is 0.0\n" in done.stdout


def test_a_sample_sums_up(store: Path, ids: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = answer("replay", "--sample", "9", store=store)
    assert (told["replayed"], told["verdicts"]["identical"], told["failed"]) == (3, 3, {})
    assert [one["episode_id"] for one in told["episodes"]] == ids
    drawn = [answer("replay", "--sample", "1", "--seed", seed, store=store)["episodes"][0]["episode_id"] for seed in "0123"]
    assert drawn == [answer("replay", "--sample", "1", "--seed", seed, store=store)["episodes"][0]["episode_id"] for seed in "0123"]
    assert len(set(drawn)) > 1
    assert answer("replay", "--sample", "9", "--where", "outcome = 'success'", store=store)["replayed"] == 1
    monkeypatch.setattr(DriftingEnv, "drift", "tool")
    done = run("replay", "--sample", "9", store=store)
    assert done.exit_code == 1
    assert "3 episodes in" in done.stdout
    assert f"{ids[0]}\n{ENV_ID}  green  execute, 3 steps\ntool_nondeterminism\n" in done.stdout
    monkeypatch.setattr("tests.trajectories.drifting.DriftingEnv.version", "2")
    monkeypatch.delitem(gymnasium.registry, ENV_ID)
    failed = answer("replay", "--sample", "9", store=store, status=1)
    assert failed["verdicts"]["not_replayed"] == 3
    assert "is not registered in this process" in failed["failed"][ids[0]]


def test_misuse(store: Path, ids: list[str], tmp_path: Path) -> None:
    assert run("replay", ids[0], "--sample", "2", store=store).exit_code == 2
    assert run("replay", ids[0], "--where", "true", store=store).exit_code == 2
    assert run("replay", "--mode", "again", store=store).exit_code == 2
    assert isinstance(run("replay", "nobody", store=store).exception, StoreError)
    assert isinstance(run("replay", "--sample", "2", store=tmp_path / "empty").exception, StoreError)


def test_fork_shows_both_outcomes(store: Path, ids: list[str]) -> None:
    told = answer("fork", ids[2], "--from", "1", "--policy", "oracle", store=store)
    assert (told["from"], told["parent"]["outcome"], told["fork"]["outcome"]) == (1, "failure", "success")
    assert TrajectoryStore(store).episode(told["fork"]["episode_id"])["parent_episode_id"] == ids[2]
    done = run("fork", ids[1], "--from", "1", "--policy", "oracle", store=store)
    assert done.exit_code == 0
    shown = {words[0]: words[1:] for line in done.stdout.splitlines() if len(words := line.split()) == 3}
    assert shown["episode_id"][0] == ids[1]
    assert shown["outcome"] == ["failure", "failure"]
    assert shown["policy_id"] == ["–", "oracle"]


def test_blame_names_the_step(store: Path, ids: list[str]) -> None:
    told = answer("blame", ids[1], store=store)
    assert (told["mistake"], told["action"]["arguments"]) == (1, {"bid": "12"})
    assert [one["rescuable"] for one in told["steps"]] == [True, False, False, False]
    done = run("blame", ids[1], store=store)
    assert done.exit_code == 0
    assert "  after step   0  the oracle succeeds from here\n  after step   1  lost: pressed\n" in done.stdout
    assert (
        'the mistake is step 1: press(bid="12")  ok\n  changed buttons 0: nothing → "blue"\n  fails since  pressed: [\'blue\']\n'
        in done.stdout
    )
    assert run("blame", ids[0], store=store).stdout.endswith("after step   3  success\nno step is a mistake\n")
