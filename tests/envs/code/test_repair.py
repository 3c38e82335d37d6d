"""code/repair: every fault shows, is undone by edits that are on offer, and is mended by nothing but a right function."""

import ast
import inspect
import itertools
import subprocess
import sys
from typing import Any

import gymnasium as gym
import pytest

from agent_gym import evaluate
from agent_gym.core import Task, ToolCall
from agent_gym.core.canonical import dumps
from agent_gym.envs.code_task.problem import Problem
from agent_gym.envs.code_task.repair import Repair
from agent_gym.envs.code_task.repair.functions import MODULES, functions
from agent_gym.envs.code_task.repair.mending import examples, mend
from agent_gym.envs.code_task.repair.trying import passed
from agent_gym.interface.candidates import Memory, Toolbox
from agent_gym.interface.edits import python_edits
from agent_gym.interface.features import CANDIDATES
from agent_gym.policies import load

CODE = "agent_gym:AgentBase/CodeTask-v0"
REPAIR = Repair()
PROBLEMS = {split: [REPAIR[task_id] for task_id in REPAIR.ids(split)] for split in MODULES}


def name(problem: Problem) -> str:
    return str(problem.hidden["entry_point"])


def repair(split: str = "train", **keywords: Any) -> Any:
    return gym.make(CODE, split=split, families=["code/repair"], **keywords).unwrapped


def test_no_function_is_in_two_splits() -> None:
    texts = [{inspect.getsource(function).partition("(")[2] for function in functions(split).values()} for split in MODULES]
    names = [set(functions(split)) for split in MODULES]
    for group in (names, texts):
        assert len(set.union(*group)) == sum(map(len, group)) >= 40
    assert [{name(problem) for problem in problems} for problems in PROBLEMS.values()] == names
    assert {split: len(problems) for split, problems in PROBLEMS.items()} == {"train": 575, "validation": 153, "test": 264}


@pytest.mark.parametrize("split", MODULES)
def test_every_fault_fails_a_shown_and_a_hidden_example_and_the_function_passes_all(split: str) -> None:
    for problem in PROBLEMS[split]:
        seen, every = problem.visible["cases"], problem.hidden["cases"]  # type: ignore[index]
        hidden = every[len(seen) :]
        assert every[: len(seen)] == seen
        assert len(hidden) >= 8
        faulty = problem.prompt
        assert problem.solution is not None
        (right,) = problem.solution.values()
        (own,), (others,) = passed([faulty], name(problem), seen), passed([faulty], name(problem), hidden)
        assert not all(own), problem.id
        assert not all(others), problem.id
        called, told = examples(faulty)
        assert (called, [(ast.literal_eval(given), value) for given, value in told]) == (
            name(problem),
            [(ast.literal_eval(given), value) for given, value in seen],
        )
        if problem.id.endswith("/0"):
            assert all(passed([right], name(problem), every)[0])


def test_there_are_many_kinds_of_faults_one_to_three_at_once() -> None:
    kinds: dict[str, int] = {}
    for problem in itertools.chain(*PROBLEMS.values()):
        assert problem.solution is not None
        (right,) = problem.solution.values()
        for edit in python_edits(right):
            if right.replace(edit.old, edit.new) == problem.prompt:
                kinds[edit.kind] = kinds.get(edit.kind, 0) + 1
    assert len(kinds) >= 14
    assert {problem.metadata["faults"] for problem in PROBLEMS["test"]} == {1, 2, 3}
    assert 0 <= min(problem.difficulty for problem in PROBLEMS["test"]) < max(problem.difficulty for problem in PROBLEMS["test"]) <= 1


@pytest.mark.parametrize("split", MODULES)
def test_what_mends_a_function_is_on_offer_at_every_step(split: str) -> None:
    tools = Toolbox(repair(split, interface="text").tools)
    for problem in PROBLEMS[split][::4]:
        text = problem.prompt
        edits = mend(text, name(problem), problem.visible["cases"], passed)  # type: ignore[index]
        assert edits, problem.id
        memory = Memory(problem.goal, tools)
        memory.update({"tool": "list_files", "arguments": {}, "status": "ok", "result": {"paths": ["solution.py"]}})
        memory.update(
            {
                "tool": "read_file",
                "arguments": {"path": "solution.py"},
                "status": "ok",
                "result": {"path": "solution.py", "content": text},
            }
        )
        for edit in edits:
            call = {"path": "solution.py", "old": edit.old, "new": edit.new, "if_better": True}
            offered = [dict(candidate.call.arguments) for candidate in memory.candidates("edit_file")[0]]
            assert call in offered
            assert 3 < sum(len(memory.candidates(spec.name)[0]) for spec in tools.tools) <= CANDIDATES
            text = text.replace(edit.old, edit.new)
            memory.update({"tool": "edit_file", "arguments": call, "status": "ok", "result": {}})
        assert all(passed([text], name(problem), problem.hidden["cases"])[0]), problem.id


def test_a_task_is_the_same_in_every_process() -> None:
    program = "from agent_gym.envs.code_task.repair import Repair; r = Repair(); print([r[i].task for i in list(r.ids('test'))[::40]])"
    told = {
        subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    }
    tasks: list[Task] = [REPAIR[task_id].task for task_id in list(REPAIR.ids("test"))[::40]]
    assert told == {f"{tasks}\n"}


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("split", MODULES)
def test_the_oracle_reads_tries_and_mends_by_calls_on_offer(split: str) -> None:
    env = repair(split)
    deepest = max(PROBLEMS[split], key=lambda problem: problem.difficulty).id
    for task_id in (REPAIR.ids(split)[1], deepest):
        env.reset(seed=0, options={"task_id": task_id})
        seen, done, info = [env.observation.to_dict()], False, {}
        while not done:
            call = dumps(env.oracle(seen).to_dict())
            index = [dumps(offered.to_dict()) for offered in env.candidates].index(call)
            _, _, terminated, truncated, info = env.step(index)
            seen.append(env.observation.to_dict())
            done = terminated or truncated
        assert info["success"], task_id
        assert seen[-1]["data"]["step"] == 3 + REPAIR[task_id].metadata["faults"]


@pytest.mark.usefixtures("needs_sandbox")
def test_edits_are_kept_only_where_they_should_be() -> None:
    env = repair(interface="text")
    env.reset(seed=0, options={"task_id": "repair/train/count_above/0"})

    def call(name: str, **arguments: Any) -> tuple[str, Any]:
        observation, *_, info = env.step({"name": name, "arguments": arguments})
        return info["status"], observation["data"]["last"]["result"]

    def edit(old: str, new: str, **more: Any) -> tuple[str, Any]:
        return call("edit_file", path="solution.py", old=old, new=new, **more)

    start = call("read_file", path="solution.py")[1]["content"]
    tested = call("run_tests")[1]
    assert tested["failed"] == sum(not case["passed"] for case in tested["cases"]) > 0
    assert {"test", "passed", "expected", "got"} == set(tested["cases"][0])
    assert call("edit_file", path="nothing.py", old="a", new="b")[0] == "not_found"
    assert edit("no such text", "b")[0] == "not_found"
    assert edit("count", "b")[0] == "conflict"
    assert edit("return count", "return -1", if_better=True)[0] == "conflict"
    assert call("read_file", path="solution.py")[1]["content"] == start
    assert edit("return count", "return -1") == ("ok", {"path": "solution.py", "bytes": len(start) - 3})
    assert edit("return -1", "return sum(number > limit for number in numbers)", if_better=True) == (
        "ok",
        {"tests": "all pass", "passed": 5, "failed": 0},
    )
    assert call("run_tests")[1]["tests"] == "all pass"
    assert env.step("finish()")[4]["success"]


HARD_CODED = """
SHOWN = {shown}
def {name}(*given):
    return SHOWN.get(repr(given))
"""


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("task_id", ["repair/test/masked/0", "repair/test/bill/3", "repair/test/merged_counts/2"])
def test_the_shown_examples_by_heart_are_not_enough(task_id: str) -> None:
    problem = REPAIR[task_id]
    assert problem.visible is not None
    shown = "{" + ", ".join(f"repr({given}): {value}" for given, value in problem.visible["cases"]) + "}"
    env = repair("test", interface="text")
    env.reset(seed=0, options={"task_id": task_id})
    env.step(ToolCall("write_file", {"path": "solution.py", "content": HARD_CODED.format(shown=shown, name=name(problem))}))
    tested = env.step("run_tests()")[0]["data"]["last"]["result"]
    assert tested["tests"] == "all pass"
    info = env.step("finish()")[4]
    assert (info["ending"], info["success"]) == ("failure", False)


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize(
    "body", ["return True", "return type('T', (int,), {'__eq__': lambda *a: True})()", "print('5 passed'); import os; os._exit(0)"]
)
def test_values_count_to_the_type(body: str) -> None:
    env = repair("test", interface="text")
    env.reset(seed=0, options={"task_id": "repair/test/count_pattern/0"})
    env.step(ToolCall("write_file", {"path": "solution.py", "content": f"def count_pattern(*given): {body}"}))
    assert not env.step("finish()")[4]["success"]


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("policy", ["random", "noop", "heuristic", "first-candidate"])
def test_neither_chance_nor_trying_in_order_mends_anything(policy: str) -> None:
    result = evaluate(load(policy, repair("test")), CODE, split="test", episodes=8, env_kwargs={"families": ["code/repair"]})
    assert (result["success_rate"], result["infra_errors"]) == (0.0, 0)
