"""Nothing but solving a task is worth anything, whatever kind of task it is."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import pytest

from agent_gym.core import ToolCall
from agent_gym.envs.code_task.cheats import CHEATS
from agent_gym.policies.scripted import CheatPolicy
from tests.envs.code.projects import MINI

pytestmark = pytest.mark.usefixtures("needs_sandbox")

CODE = "agent_gym:AgentBase/CodeTask-v0"
FAMILIES = ("functions", "repair", "repo_repair", "data", "shell", "mini")


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    path = tmp_path_factory.mktemp("cheats") / "mini.jsonl"
    path.write_text(json.dumps(MINI), encoding="utf-8")
    own = gym.make(CODE, interface="text", split="test", disable_env_checker=True)
    return {**dict.fromkeys(FAMILIES, own), "mini": gym.make(CODE, interface="text", source=str(path), disable_env_checker=True)}


def played(env: Any, task_id: str, act: Any) -> tuple[str, str, dict[str, Any]]:
    """How an episode ends, why, and what came of the script that was run in it."""
    seen = [env.reset(seed=0, options={"task_id": task_id})[0]]
    while True:
        observation, reward, terminated, truncated, info = env.step(act(seen))
        seen.append(observation)
        if terminated or truncated:
            assert reward <= 0 or info["success"]
            ran = [one["data"]["last"] for one in seen[1:] if one["data"]["last"]["tool"] == "run_python"]
            return info["ending"], env.unwrapped.last_record.checks[0].detail, ran[0]["result"] if ran else {}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_gains_nothing(cheat: str, family: str, environments: Mapping[str, Any]) -> None:
    env = environments[family]
    ids = env.get_wrapper_attr("tasks").ids("test", f"code/{family}")
    task_id = ids[len(ids) * [*CHEATS].index(cheat) // len(CHEATS)]  # another task for each
    ending, why, ran = played(env, task_id, CHEATS[cheat])
    assert (ending, bool(why)) in (("failure", True), ("violation", True))
    assert "Error" not in ran["stderr"]  # it did what it does


def test_admission_knows_them(environments: Mapping[str, Any]) -> None:
    env = environments["data"]
    assert env.get_wrapper_attr("tasks").cheats("code/data") == CHEATS
    assert CheatPolicy(env, CHEATS["exits early"]).name == "cheat"


def test_what_is_judged_in_process_says_so(environments: Mapping[str, Any]) -> None:
    """Code that walks frames knowingly can forge an outcome there; the record tells that it could have."""
    env = environments["mini"]
    script = iter([ToolCall("write_file", {"path": "pkg/sums.py", "content": MINI["solution"]["pkg/sums.py"]}), ToolCall("finish")])

    def solve(_: Sequence[Mapping[str, Any]]) -> ToolCall:
        return next(script)

    assert played(env, MINI["task_id"], solve)[0] == "success"
    assert env.unwrapped.last_record.checks[0].name == "in_process_unittest"
