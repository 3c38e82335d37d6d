"""``agent-gym episodes export`` and ``agent-gym tasks from-episode``, as a person and as a program see them."""

import json
from pathlib import Path

import gymnasium
import pytest
from typer.testing import CliRunner, Result

from agent_gym.cli import app
from agent_gym.errors import ConfigurationError
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID

SUCCESS, FAILURE, OPEN = ["add(2)", "finish()"], ["finish()"], ["add(1)"]


def run(*arguments: str, store: Path) -> Result:
    return CliRunner().invoke(app, [*arguments, "--store", str(store)], env={"COLUMNS": "200"}, catch_exceptions=False)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A success, a failure, and an episode that was given up."""
    path = tmp_path_factory.mktemp("store")
    with RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(path), policy_id="me") as env:
        for actions in (SUCCESS, FAILURE, OPEN):
            env.reset(seed=0, options={"task_id": "train/even/2"})
            for action in actions:
                env.step(action)
    return path


def test_a_person_is_told_what_was_left_out(store: Path, tmp_path: Path) -> None:
    done = run("episodes", "export", "chat", str(tmp_path / "sft.jsonl"), store=store)
    assert done.stdout == f"2 rows of 2 episodes in {tmp_path / 'sft.jsonl'}\n"
    assert done.stderr == "1 left out: its reward is not valid (interrupted)\n"
    assert len((tmp_path / "sft.jsonl").read_text().splitlines()) == 2


def test_a_program_reads_json(store: Path, tmp_path: Path) -> None:
    ids = [row["episode_id"] for row in TrajectoryStore(store).episodes()]
    told = json.loads(
        run("episodes", "export", "preferences", str(tmp_path / "p.jsonl"), *ids, "--level", "step", "--json", store=store).stdout
    )
    assert told == {
        "store": str(store),
        "format": "preferences",
        "out": str(tmp_path / "p.jsonl"),
        "episodes": 2,
        "rows": 1,
        "skipped": [{"episode_id": ids[2], "reason": "its reward is not valid (interrupted)"}],
    }
    (row,) = map(json.loads, (tmp_path / "p.jsonl").read_text().splitlines())
    assert (row["chosen_episode_id"], row["rejected_episode_id"]) == (ids[0], ids[1])


def test_a_failure_is_frozen(store: Path, tmp_path: Path) -> None:
    success, failure, _ = (row["episode_id"] for row in TrajectoryStore(store).episodes())
    printed = json.loads(run("tasks", "from-episode", failure, store=store).stdout)
    assert (printed["task_id"], printed["split"]) == ("train/even/2", "regression")
    assert (printed["env_id"], printed["env_version"]) == ("Test/Counting-v0", "7")
    assert printed["failed"]["checks"] == [{"name": "counted", "passed": False, "detail": "count 0"}]
    assert printed["expected"] == {"success": True, "checks": ["counted"], "refusal": False, "max_steps": 6}
    out = tmp_path / "regression.jsonl"
    told = [json.loads(run("tasks", "from-episode", failure, "--out", str(out), "--json", store=store).stdout) for _ in range(2)]
    assert [(one["added"], one["task"]) for one in told] == [(True, printed), (False, printed)]
    assert [json.loads(line) for line in out.read_text().splitlines()] == [printed]
    with pytest.raises(ConfigurationError, match="ended in success"):
        run("tasks", "from-episode", success, "--out", str(out), store=store)
