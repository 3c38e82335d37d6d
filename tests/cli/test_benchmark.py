"""``agent-gym benchmark``; that it runs what it plans is tested with the package's own benchmark."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from agent_gym.cli import app

pytest.importorskip("matplotlib")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["benchmark", "--env", "ToolTask", "--policy", "oracle,random,oracle", "--seeds", "2", *arguments])


def test_plan_prints_the_command_lines_and_runs_nothing(tmp_path: Path) -> None:
    done = run("--plan", "--folder", str(tmp_path / "b"))
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line.split()[:4] for line in lines[::4]] == [
        ["agent-gym", "eval", name, "AgentBase/ToolTask-v0"] for name in ("random", "oracle")
    ]
    assert len(lines) == 8
    assert all(f"--store {tmp_path}/b/store --json" in line for line in lines)
    assert not (tmp_path / "b").exists()


def test_the_table_of_an_unfinished_folder(tmp_path: Path) -> None:
    done = run("--jobs", "0", "--json", "--folder", str(tmp_path / "b"), "--docs", str(tmp_path / "docs"))
    assert done.exit_code == 1
    result = json.loads(done.stdout)
    assert (result["suite"], result["seeds"], result["rows"], len(result["missing"])) == ("small", 2, [], 8)
    assert sorted(path.name for path in (tmp_path / "docs").iterdir()) == ["benchmark.json", "benchmark.md"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--suite", "huge"], "suite 'huge'"), (["--env", "Tool"], "environment 'Tool'"), (["--policy", "nobody"], "policy 'nobody'")],
)
def test_names_that_do_not_exist(arguments: list[str], says: str) -> None:
    done = run(*arguments, "--plan")
    assert says in str(done.exception)
