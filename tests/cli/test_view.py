"""``agent-gym view``."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from typer.testing import CliRunner, Result

from agent_gym.cli import app
from agent_gym.errors import ConfigurationError, StoreError
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: one of two episodes, then one of one."""
    path = tmp_path_factory.mktemp("view")
    for tasks in (["train/even/2", "train/odd/3"], ["train/even/4"]):
        with RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(path)) as env:
            for task_id in tasks:
                env.reset(seed=0, options={"task_id": task_id})
                env.step("add(2)")
                env.step("finish()")
    return path


def view(store: Path, out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["view", *arguments, "--store", str(store), "--out", str(out)], env={"COLUMNS": "200"})


def index(page: Path) -> dict[str, Any]:
    found = re.search(r'id="index">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found is not None
    read: dict[str, Any] = json.loads(found[1])
    return read


def shown(page: Path) -> list[str]:
    return [row["task"] for row in index(page)["episodes"]]


def test_the_newest_episodes_of_all_runs_are_written(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "view.html"
    done = view(store, out)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].startswith("3 episodes, 6 steps, 0 pictures; 0.")
    assert done.stdout.splitlines()[1] == f"view: {out}"
    assert shown(out) == ["train/even/2", "train/odd/3", "train/even/4"]
    assert index(out)["opened"] == []
    packed = re.search(r'id="episode-0">([^<]*)<', out.read_text(encoding="utf-8"))
    assert packed is not None
    episode = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    assert [step.get("call", "") for step in episode["steps"]] == ["", "add", "finish"]


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        (["--limit", "1"], ["train/even/4"]),
        (["--limit", "0"], ["train/even/2", "train/odd/3", "train/even/4"]),
        (["--where", "task_type = 'count/odd'"], ["train/odd/3"]),
        (["--where", "n_turns > 9"], []),
    ],
)
def test_what_is_taken_can_be_chosen(options: list[str], tasks: list[str], store: Path, tmp_path: Path) -> None:
    out = tmp_path / "view.html"
    assert view(store, out, *options).exit_code == 0
    assert shown(out) == tasks


def test_a_run_and_named_episodes(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "view.html"
    assert view(store, out, "--run", TrajectoryStore(store).runs()[0]["run_id"]).exit_code == 0
    assert shown(out) == ["train/even/2", "train/odd/3"]
    ids = [row["episode_id"] for row in TrajectoryStore(store).episodes()]
    for named, opened in ((ids[:1], ids[:1]), ([ids[2], ids[0]], [ids[2], ids[0]]), ([ids[0], ids[0]], ids[:1]), (ids, [])):
        assert view(store, out, *named).exit_code == 0
        assert index(out)["opened"] == opened


def test_misuse(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "view.html"
    assert isinstance(view(store, out, "nobody").exception, StoreError)
    assert isinstance(view(store, out, "--where", "nothing = 1").exception, ConfigurationError)
    assert "leave --run and --where out" in view(store, out, "nobody", "--run", "any").output.replace("│", "").replace("\n", " ").replace(
        "  ", " "
    )
    assert not out.exists()


def test_an_empty_store_is_a_page_that_says_so(tmp_path: Path) -> None:
    out = tmp_path / "view.html"
    assert view(tmp_path / "none", out).exit_code == 0
    assert shown(out) == []
