"""The command: figures on stdout, one clear line on misuse, and exit statuses that scripts can rely on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

TOOL = "AgentBase/ToolTask-v0"
KEYS = {
    "policy",
    "env_id",
    "split",
    "episodes",
    "success_rate",
    "success_ci95",
    "success_macro",
    "success_macro_ci95",
    "reward_mean",
    "turns_mean",
    "invalid_action_rate",
    "tool_success_rate",
    "retries_mean",
    "faults_mean",
    "retry_safety",
    "useless_questions_mean",
    "infra_errors",
    "by_task_type",
    "by_capability",
    "by_task",
    "seed",
    "versions",
}


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "agent_gym.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def figures(*arguments: str, cwd: Path) -> Any:
    done = run(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_eval_gives_the_figures_and_records_every_episode(tmp_path: Path) -> None:
    result = figures("eval", "oracle", TOOL, "--episodes", "30", cwd=tmp_path)
    assert set(result) == KEYS
    assert (result["policy"], result["env_id"], result["split"], result["seed"]) == ("oracle", TOOL, "test", 0)
    assert (result["episodes"], result["success_rate"], result["success_macro"]) == (30, 1.0, 1.0)
    assert sum(part["episodes"] for part in result["by_task_type"].values()) == 30
    listed = figures("episodes", "list", "--limit", "0", cwd=tmp_path)["episodes"]
    assert len(listed) == 30
    files = str(tmp_path / "runs/store/episodes/**/*.parquet")
    assert duckdb.execute(f"SELECT count(*), avg(success::int) FROM '{files}'").fetchall() == [(30, 1.0)]
    assert len(pd.read_parquet(tmp_path / "runs/store/episodes")) == 30
    some = run("episodes", "list", "--where", "n_turns > 4", "--limit", "2", cwd=tmp_path)
    assert "2 episodes in" in some.stdout


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["noop", "spam", "refuse-always"])
def test_policies_that_do_not_try_solve_nothing(policy: str, tmp_path: Path) -> None:
    result = figures("eval", policy, TOOL, "--episodes", "40", "--tasks", "cancel,change_address,exchange,who_is_it", cwd=tmp_path)
    assert (result["episodes"], result["success_rate"]) == (40, 0.0)


def test_families_and_files_choose_the_tasks(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("retail/cancel/test/3\nretail/refuse/test/5\n")
    result = figures("eval", "oracle", TOOL, "--tasks", "mine.txt", cwd=tmp_path)
    assert (result["episodes"], sorted(result["by_task_type"])) == (2, ["retail/cancel", "retail/refuse"])


@pytest.mark.slow
def test_check_tasks_admits_what_cannot_be_gamed_and_says_so_by_exit_status(tmp_path: Path) -> None:
    library = ["--set", 'worlds=["library"]', "--split", "transfer"]
    result = figures("check", "tasks", TOOL, *library, "--seeds", "2", "--episodes", "3", cwd=tmp_path)
    assert result["admitted"] is True
    assert [row["family"] for row in result["families"]] == ["library/renew", "library/due"]
    for row in result["families"]:
        assert row["scores"]["oracle"] == 1.0
        assert row["scores"]["noop"] == row["scores"]["finish-early"] == 0.0
        assert row["ways"] >= 3
    told = run("check", "tasks", TOOL, *library, "--seeds", "1", "--episodes", "1", cwd=tmp_path)
    assert told.returncode == 0
    assert "every family is admitted" in told.stdout


def test_a_family_that_can_be_gamed_is_not_admitted(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(
        "import gymnasium\n"
        "from agent_gym.core import Ending, Verdict\n"
        "from agent_gym.testing.small import SmallTask\n"
        "class Gift(SmallTask):\n"
        "    def open(self, *args):\n"
        "        session = super().open(*args)\n"
        "        session.verdict = lambda closing: Verdict(Ending.SUCCESS)\n"
        "        return session\n"
        "gymnasium.register('Gift-v0', 'agent_gym.factory:make', kwargs={'env': 'planted:Gift'})\n"
    )
    done = run("check", "tasks", "planted:Gift-v0", "--seeds", "1", "--episodes", "3", cwd=tmp_path)
    assert done.returncode == 1
    assert "noop scores 1.00, at most 0 may be" in done.stdout


@pytest.mark.slow
def test_bench_tools_gives_its_keys(tmp_path: Path) -> None:
    result = figures("bench", "tools", cwd=tmp_path)
    assert result["bench"] == "tools"
    assert {"tool_steps_per_s", "tool_steps_per_s_array", "tool_reset_ms", "tool_reset_cold_ms"} <= set(result["metrics"])
    assert {"workspace_steps_per_s", "workspace_reset_ms", "snapshot_ms", "restore_ms"} <= set(result["metrics"])
    assert all(value > 0 for value in result["metrics"].values())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["eval", "oracle", "AgentBase/ToolTusk-v0"], "ToolTusk"),
        (["eval", "oracle", "AgentBase/ToolTusk-v0"], "Known: AgentBase/ToolTask-v0, AgentBase/WebTask-v0, AgentBase/CodeTask-v0"),
        (["eval", "genius", TOOL], "unknown policy 'genius'; known:"),
        (["eval", "nowhere.zip", TOOL], "there is no saved model 'nowhere.zip'"),
        (["eval", "noop", TOOL, "--split", "holiday"], "unknown split 'holiday'; known: synonyms, test, train, transfer, validation"),
        (["eval", "noop", TOOL, "--tasks", "retail/cancel/test/9999"], "unknown task id 'retail/cancel/test/9999'; 'test' has tasks 0 to"),
        (["eval", "noop", TOOL, "--set", "flavour"], "--set 'flavour': write KEY=JSON"),
        (["eval", "noop", TOOL, "--set", "flavour=1"], "flavour"),
        (["eval", "noop", TOOL, "--perturb", "wording,colour"], "unknown kind of perturbation 'colour'; known: interface, state, wording"),
        (["bench", "luck"], "unknown benchmark 'luck'; known: code, gateway, "),
        (["check", "tasks", TOOL, "--all"], "it takes no id"),
        (["check", "tasks", "--card", "card.md"], "add --all"),
        (["tasks", "explain"], "no episodes in"),
        (["tasks", "explain", "x"], "no episode 'x' in"),
        (["tasks", "show", TOOL, "x"], "unknown task id 'x'; ids look like"),
        (["tasks", "list", "AgentBase/CodeTask-v0", "--set", "source=gone.jsonl"], "gone.jsonl: there is no such file"),
        (["train", TOOL, "--algo", "luck"], "unknown algo 'luck'; known: async-maskable-ppo, async-ppo, candidate-ppo, maskable-ppo, ppo"),
        (["train", TOOL, "--gamma", "2"], "gamma must be"),
        (["train", TOOL, "--dagger", "9"], "dagger is an option of candidate-ppo, not of maskable-ppo"),
        (["train", TOOL, "--algo", "candidate-ppo", "--lag-max", "-1"], "lag_max must be"),
        (["episodes", "list", "--where", "colour = 3"], "colour"),
    ],
)
def test_misuse_is_one_clear_line_and_exit_status_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_tasks_can_be_looked_at(tmp_path: Path) -> None:
    counts = figures("tasks", "count", TOOL, cwd=tmp_path)
    assert counts["test"]["retail/cancel"] == 200
    assert counts["transfer"]["library/renew"] == 200
    shown = run("tasks", "show", TOOL, "retail/cancel/test/0", cwd=tmp_path)
    assert json.loads(shown.stdout)["id"] == "retail/cancel/test/0"
    listed = figures("tasks", "list", TOOL, "--family", "retail/cancel", "--limit", "2", cwd=tmp_path)
    assert [task["id"] for task in listed["tasks"]] == ["retail/cancel/test/0", "retail/cancel/test/1"]
    library = ["--set", 'worlds=["library"]', "--set", "split=transfer"]
    solved = figures("tasks", "count", TOOL, "--ways", *library, cwd=tmp_path)["transfer"]
    assert {name: family["tasks"] for name, family in solved.items()} == {"library/renew": 200, "library/due": 200}
    assert all(family["ways"] >= 3 and 2 <= family["steps"] <= 9 for family in solved.values())


def test_an_episode_is_explained(tmp_path: Path) -> None:
    task = ["--tasks", "retail/cancel/test/0"]
    assert run("eval", "noop", TOOL, *task, cwd=tmp_path).returncode == 0
    found = figures("tasks", "explain", cwd=tmp_path)
    assert (found["task_id"], found["outcome"]) == ("retail/cancel/test/0", "failure")
    goal = next(check for check in found["checks"] if check["name"] == "goal")
    status = next(row for row in goal["rows"] if row["column"] == "status")
    assert (status["table"], status["expected"], status["found"]) == ("orders", "cancelled", "pending")
    told = run("tasks", "explain", found["episode_id"], cwd=tmp_path).stdout
    assert 'status  expected "cancelled", found "pending"' in told


def test_eval_tells_what_the_tasks_take(tmp_path: Path) -> None:
    library = ["--set", 'worlds=["library"]', "--split", "transfer", "--episodes", "8"]
    result = figures("eval", "oracle", TOOL, *library, cwd=tmp_path)
    assert {"lookup", "policy"} <= set(result["by_capability"])
    assert all(part["success_rate"] == 1.0 and part["success_ci95"][1] == 1.0 for part in result["by_capability"].values())
    assert "capability" in run("eval", "oracle", TOOL, *library, cwd=tmp_path).stdout


def test_eval_tells_what_perturbations_cost(tmp_path: Path) -> None:
    perturbed = ["--perturb", "wording,interface, state", "--strength", "strong", "--episodes", "6", "--tasks", "cancel,look_up"]
    result = figures("eval", "oracle", TOOL, *perturbed, cwd=tmp_path)
    assert list(result["robustness"]) == ["wording", "interface", "state"]
    assert all((part["ratio"], part["drop_ci95"]) == (1.0, [0.0, 0.0]) for part in result["robustness"].values())
    told = run("eval", "oracle", TOOL, *perturbed, cwd=tmp_path).stdout
    assert "the same tasks, perturbed (strong)" in told
    assert "0.000 to 0.000" in told
