"""The four folders at the root are the package's parts, and importing the package is cheap and loads nothing heavy."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import agent_gym

ROOT = Path(__file__).parent.parent
HEAVY = ["jsonschema_rs", "pydantic", "pyarrow", "duckdb", "torch", "playwright", "stable_baselines3", "scipy", "pandas"]


def run(code: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.parametrize("part", ["envs", "wrappers", "baselines"])
def test_each_part_is_its_root_folder(part: str) -> None:
    module = import_module(f"agent_gym.{part}")
    assert Path(str(module.__file__)).resolve() == ROOT / part / "__init__.py"
    link = ROOT / "agent_gym" / part
    assert link.is_symlink(), f"agent_gym/{part} must be a link to ../{part}; zips and some clones lose it: check the repository out again"
    assert link.readlink() == Path("..") / part


@pytest.mark.parametrize("part", ["envs", "wrappers", "baselines"])
def test_the_bare_root_name_is_refused(part: str) -> None:
    done = run(f"import {part}")
    assert done.returncode == 1
    assert f"agent_gym.{part}" in done.stderr


def test_import_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import json, sys, agent_gym; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(run(code, tmp_path).stdout))
    assert not loaded.intersection(HEAVY)
    assert not [name for name in loaded if name.startswith(("agent_gym.envs", "agent_gym.wrappers", "agent_gym.baselines"))]


def test_make_from_outside_the_repository_needs_no_import(tmp_path: Path) -> None:
    code = "import gymnasium as gym; e = gym.make('agent_gym:AgentBase/ToolTask-v0'); print(sorted(e.reset(seed=0)[0].keys()))"
    assert run(code, tmp_path).stdout.strip() == "['action_mask', 'candidates', 'data', 'text']"


def test_the_public_names_are_these_and_all_of_them_load() -> None:
    assert agent_gym.__all__ == [
        "AgentEnv",
        "AgentGymError",
        "Decision",
        "Ending",
        "Observation",
        "Policy",
        "Session",
        "Task",
        "TaskSet",
        "ToolCall",
        "ToolResult",
        "ToolSpec",
        "TrajectoryStore",
        "Verdict",
        "__version__",
        "evaluate",
        "make_vec",
    ]
    for name in agent_gym.__all__:
        assert getattr(agent_gym, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        agent_gym.nothing  # noqa: B018
