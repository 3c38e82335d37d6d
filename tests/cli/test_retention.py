"""``agent-gym store gc | policy`` and ``agent-gym episodes pin | unpin | flag | audit``: what they say, and their exit status."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from typer.testing import CliRunner, Result

from agent_gym.cli import app
from agent_gym.errors import AgentGymError
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.policy import DEFAULT_POLICY
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID


def run(*arguments: str, store: Path | None = None) -> Result:
    where = () if store is None else ("--store", str(store))
    return CliRunner().invoke(app, [*arguments, *where], env={"COLUMNS": "200"})


def answer(*arguments: str, store: Path, status: int = 0) -> dict[str, Any]:
    done = run(*arguments, "--json", store=store)
    assert done.exit_code == status, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    assert found.pop("store") == str(store)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three successes of a task and a failure, with long texts."""
    with RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(tmp_path)) as env:
        for number in range(4):
            env.reset(seed=0, options={"task_id": "train/even/2"})
            env.note(thought=f"{number} " * 40_000, tokens={"completion_token_ids": [1, 2]})
            env.step("add(2)" if number else "look()")
            env.step("finish()")
    return tmp_path


def episodes(store: Path) -> list[str]:
    return [row["episode_id"] for row in TrajectoryStore(store).episodes()]


def test_gc_does_what_its_dry_run_says(store: Path) -> None:
    failure, first, second, third = episodes(store)
    marked = run("episodes", "pin", first, "--reason", "[bold]the first", store=store)
    assert marked.stdout == f"1 episodes are pinned in {store}\n"
    looked = answer("store", "gc", "--dry-run", "--budget", "1 kB", store=store, status=1)
    assert looked["dry_run"] is True
    assert {(one["kind"], one["episode_id"]) for one in looked["dropped"]} == {
        *(("tokens", one) for one in (failure, second, third)),
        *(("blobs", one) for one in (second, third)),
        *(("steps", one) for one in (second, third)),
    }
    shown = run("store", "gc", "--dry-run", "--budget", "1 kB", store=store)
    assert shown.exit_code == 1
    assert f"steps   {third}  to fit the budget of 1000 bytes" in shown.stdout
    assert "what would go" in shown.stdout
    assert "would become" in shown.stdout
    assert "Episodes that rules keep whole: 1 by keep.failures, 1 by keep.pinned" in shown.stderr
    done = answer("store", "gc", "--budget", "1 kB", store=store, status=1)
    assert done["dropped"] == looked["dropped"]
    assert done["fits"] is False
    assert answer("store", "fsck", store=store)["ok"]
    large = run("store", "gc", "--budget", "1 GB", store=store)
    assert large.exit_code == 0
    assert large.stdout.split()[:2] == [str(done["bytes_after"]), "bytes"], "there is nothing left to do"
    run("episodes", "unpin", first, store=store)
    again = answer("store", "gc", "--budget", "1 kB", store=store, status=1)
    assert {one["episode_id"] for one in again["dropped"]} == {first}


def test_a_policy_file(store: Path, tmp_path: Path) -> None:
    printed = run("store", "policy")
    assert printed.stdout == DEFAULT_POLICY
    path = tmp_path / "policy.toml"
    path.write_text(printed.stdout.replace("successes_per_task = 8", "successes_per_task = 1").replace("= 14 ", "= 1e-9 "))
    assert run("store", "policy", "--policy", str(path)).stdout == f"{path} can be used\n"
    done = answer("store", "gc", "--policy", str(path), store=store)
    assert [one["kind"] for one in done["dropped"]] == ["tokens", "tokens", "steps", "steps"]
    path.write_text("successes_per_task = -1")
    for arguments in (("store", "policy", "--policy", str(path)), ("store", "gc", "--policy", str(path), "--store", str(store))):
        failed = run(*arguments)
        assert isinstance(failed.exception, AgentGymError)
        assert str(failed.exception) == f"{path}: successes_per_task = -1 cannot be used; write a whole number, 0 or above"
    assert "budget = 'little' cannot be used" in str(run("store", "gc", "--budget", "little", store=store).exception)
    assert "there is no store in" in str(run("store", "gc", store=tmp_path / "nowhere").exception)
    assert not (tmp_path / "nowhere").exists()


def test_marks_need_episodes_that_are_there(store: Path) -> None:
    first = episodes(store)[0]
    failed = run("episodes", "flag", first, f"{first}0", store=store)
    assert str(failed.exception).startswith(f"no episode '{first}0'")
    assert TrajectoryStore(store).events(first) == [], "all or none"
    assert answer("episodes", "flag", first, "--reason", "odd", store=store) == {"flag": [first]}
    (event,) = TrajectoryStore(store).events(first)
    assert (event["kind"], event["reason"]) == ("flag", "odd")
    assert event["author"]


def test_audit_tells_what_was_done_and_what_was_altered(store: Path) -> None:
    newest = episodes(store)[-1]
    run("episodes", "flag", newest, "--reason", "[red]odd\x1b[0m", store=store)
    shown = run("episodes", "audit", store=store)
    assert shown.exit_code == 0, shown.output
    assert newest in shown.stdout
    assert "   1  add(amount=2)  ok" in shown.stdout
    assert "passed  counted  count 2" in shown.stdout
    assert "[red]odd" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "nothing was altered" in shown.stdout
    found = answer("episodes", "audit", newest, store=store)
    assert found["ok"] is True
    assert found["digests"]["steps"] == "as sealed"
    head = run("episodes", "audit", "--head", store=store).stdout.strip()
    assert head == found["head"] == answer("episodes", "audit", "--head", store=store)["head"]
    assert run("episodes", "audit", newest, "--against", head, store=store).exit_code == 0
    assert run("episodes", "audit", newest, "--against", head[:-4] + "0000", store=store).exit_code == 1
    path = next(store.glob("_meta/runs/*.json"))
    path.write_bytes(path.read_bytes().replace(b'"pid"', b'"pud"'))
    found = answer("episodes", "audit", newest, store=store, status=1)
    assert found["findings"] == ["the record of the run is altered"]
    assert "the record of the run is altered" in run("episodes", "audit", newest, store=store).stdout
