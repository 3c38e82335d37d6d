"""``agent-gym check clean-start|determinism|spaces``: figures on stdout, exit status 0, 1 or 2."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = "AgentBase/ToolTask-v0"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "agent_gym.cli", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    (tmp_path / "planted.py").write_text(
        "import gymnasium\n"
        "from agent_gym.testing import SmallTask\n"
        "class Long(SmallTask):\n"
        "    def _public(self):\n"
        "        observation, info = super()._public()\n"
        "        return {**observation, 'text': 'x' * 40_000 + str(id(self))}, info\n"
        "gymnasium.register('Long-v0', 'agent_gym.factory:make', kwargs={'env': 'planted:Long'})\n"
        "gymnasium.register('Clock-v0', 'agent_gym.factory:make', kwargs={'env': 'agent_gym.testing.leaky:Clock'})\n"
    )
    return tmp_path


@pytest.mark.slow
def test_what_holds_exits_with_0_and_what_does_not_with_1(planted: Path) -> None:
    held: Any = {}
    for name, *more in (["spaces"], ["determinism"], ["clean-start", "--sample", "2", "--envs", "3"]):
        episodes = ["--episodes", "1"]
        done = run(name, TOOL, *more, *episodes, "--json", cwd=planted)
        held = json.loads(done.stdout)
        assert (done.returncode, held["env_id"], held["passed"]) == (0, TOOL, True)
    assert (held["sample"], held["envs"]) == (2, 3)
    assert held["checks"] == [{"name": "every_episode_starts_clean", "passed": True, "detail": held["checks"][0]["detail"]}]
    done = run("clean-start", "planted:Clock-v0", "--sample", "2", "--envs", "2", "--json", cwd=planted)
    assert done.returncode == 1
    assert json.loads(done.stdout)["checks"][0]["name"] == "probes.clock"
    assert "probes.clock" in run("clean-start", "planted:Clock-v0", "--sample", "1", "--envs", "1", cwd=planted).stdout
    for name in ("spaces", "determinism"):
        assert run(name, "planted:Long-v0", "--episodes", "1", cwd=planted).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["clean-start", TOOL, "--sample", "5", "--envs", "4"], "sample must be in 1 to envs"),
        (["spaces", "AgentBase/ToolTusk-v0"], "ToolTusk"),
        (["determinism", TOOL, "--set", "flavour=1"], "flavour"),
    ],
)
def test_misuse_exits_with_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
