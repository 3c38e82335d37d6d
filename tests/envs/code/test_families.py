"""The families code/repo_repair, code/data and code/shell: their tasks can be solved by what they show, and by nothing less."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import pytest

from agent_gym import evaluate
from agent_gym.envs.code_task.calling import read
from agent_gym.envs.code_task.data_questions import DataQuestions
from agent_gym.envs.code_task.data_questions.questions import QUESTIONS
from agent_gym.envs.code_task.graders import GRADERS, Work
from agent_gym.envs.code_task.problem import Collection
from agent_gym.envs.code_task.repo_repair import RepoRepair
from agent_gym.envs.code_task.repo_repair.mending import SHOWN, Change, Trials, mend
from agent_gym.envs.code_task.repo_repair.project import PROJECTS, project
from agent_gym.envs.code_task.shell import ShellChores
from agent_gym.envs.code_task.shell.chores import CHORES
from agent_gym.envs.code_task.wording import read_slots
from agent_gym.interface.edits import python_edits
from agent_gym.policies import load
from agent_gym.sandbox import Limits, default_pool

CODE = "agent_gym:AgentBase/CodeTask-v0"
COLLECTIONS = [RepoRepair(), DataQuestions(), ShellChores()]
NAMES = [name for names in PROJECTS.values() for name in names]


@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda collection: collection.family)
def test_a_task_is_what_its_id_says_and_is_in_one_split(collection: Collection) -> None:
    ids = [(split, task_id) for split in collection.splits() for task_id in collection.ids(split)]
    assert len({task_id for _, task_id in ids}) == len(ids) >= 160
    drawn = ids[:: len(ids) // 12]
    first = [collection[task_id].task for _, task_id in drawn]
    collection.clear_cache()
    assert [collection[task_id].task for _, task_id in drawn] == first
    assert [task.split for task in first] == [split for split, _ in drawn]
    assert len({task.difficulty for task in first}) > 3
    assert collection.problem("data/sum_of_city/train/1000") is None
    assert collection.ids("transfer") == []


def test_what_is_seen_in_training_is_in_no_other_split() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 6
    for collection in COLLECTIONS[1:]:
        files = [{str(collection[task_id].files) for task_id in collection.ids(split)[:40]} for split in ("train", "test")]
        assert not files[0] & files[1]


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("name", NAMES)
def test_every_fault_shows_in_visible_and_in_hidden_tests(name: str) -> None:
    made, repair = project(name), RepoRepair()
    assert 3 <= len(made.files) <= 8
    split = next(split for split, names in PROJECTS.items() if name in names)
    changes = []
    for task_id in repair.ids(split):
        if task_id.split("/")[1] == name:
            problem = repair[task_id]
            path = problem.metadata["file"]
            changes.append(Change(path, made.files[path], str(problem.files[path])))
            assert made.files[path] in {str(problem.files[path]).replace(e.old, e.new) for e in python_edits(str(problem.files[path]))}
    assert len(changes) >= 10
    for cases in (made.visible, made.hidden):
        came = Trials(made.files).outcomes([Change(changes[0].path, "\0", ""), *changes], cases)
        right = [expected[:SHOWN] for _, expected in cases]
        assert came[0] == right
        assert all(one != right for one in came[1:])


@pytest.mark.slow
@pytest.mark.usefixtures("needs_sandbox")
def test_oracles_solve_every_kind_and_doing_nothing_none() -> None:
    env = gym.make(CODE, interface="text", split="test", disable_env_checker=True)
    tasks = env.get_wrapper_attr("tasks")
    kinds = [f"data/{name}/test/0" for name in QUESTIONS] + [f"shell/{name}/test/0" for name in CHORES]
    kinds += ["repo_repair/graph/2", "repo_repair/search/3"]
    assert all(tasks.get(task_id).oracle_kind == "observational" for task_id in kinds)
    solved = evaluate(load("oracle", env), CODE, split="test", tasks=kinds)
    idle = evaluate(load("noop", env), CODE, split="test", tasks=kinds)
    assert (solved["success_rate"], solved["infra_errors"], idle["success_rate"]) == (1.0, 0, 0.0)


@pytest.mark.usefixtures("needs_sandbox")
def test_chance_repairs_no_project() -> None:
    env = gym.make(CODE, split="test", disable_env_checker=True)
    assert evaluate(load("random", env), CODE, split="test", tasks=["code/repo_repair"], episodes=40)["success_rate"] <= 0.05


@pytest.mark.usefixtures("needs_sandbox")
def test_mending_gives_up_where_no_edit_helps() -> None:
    texts = {"p/__init__.py": "", "p/m.py": "def one():\n    return [17][0]\n\n\ndef spin():\n    while True:\n        pass\n"}
    assert mend(texts, [("p.m.one()", "99")]) is None
    assert mend(texts, [("p.m.spin()", "1")]) is None


def answered(answer: str | None, expected: str, kind: str) -> bool:
    work = Work(files={}, start={}, answer=answer)
    return GRADERS["answer"](work, {"answer": expected, "kind": kind}, Limits(), default_pool()).passed


@pytest.mark.parametrize(
    ("answer", "expected", "kind", "right"),
    [
        ("3.50", "3.50", "number", True),
        (" 3.5\n", "3.50", "number", True),
        ("+3", "3", "number", True),
        ("3.51", "3.50", "number", False),
        ("3.5e0", "3.50", "number", False),
        ("nan", "3", "number", False),
        ("9" * 10_000, "3", "number", False),
        ("", "3", "number", False),
        (None, "3", "number", False),
        ("E\u0301vora", "\u00c9vora", "text", True),
        ("evora", "\u00c9vora", "text", False),
        ("a,b", "a, b", "list", True),
        ("b, a", "a, b", "list", False),
        ("a, b, c", "a, b", "list", False),
    ],
)
def test_an_answer_counts_for_what_it_says(answer: str | None, expected: str, kind: str, right: bool) -> None:
    assert answered(answer, expected, kind) is right


def test_a_state_is_exactly_what_was_asked_for() -> None:
    start = {"a": b"1", "b": b"2"}
    hidden = {"made": {"c": "3", "d": {"base64": "/w=="}}, "removed": ["b"], "allowed": ["scratch/*"]}
    right = {"a": b"1", "c": b"3", "d": b"\xff"}

    def passed(files: Mapping[str, bytes]) -> bool:
        return GRADERS["state"](Work(files=files, start=start), hidden, Limits(), default_pool()).passed

    assert passed(right)
    assert passed({**right, "scratch/notes": b"x"})
    assert not any(
        map(passed, (start, {**right, "b": b"2"}, {**right, "e": b""}, {**right, "a": b"1\n"}, {key: right[key] for key in "ac"}))
    )


def test_slots_are_read_back() -> None:
    assert read_slots("Move {a} to {b}, {a}!", "Please: Move x y to (z), x y! Now.") == {"a": "x y", "b": "(z)"}
    assert read_slots("Move {a} to {b}, {a}!", "Move x to z, y!") is None


def test_only_calls_are_calls() -> None:
    assert read("s = kv.store.Store(now=3); s.set('a', (1,)); kv.log.run(s, x='q')") == [
        {"call": "kv.store:Store", "args": [], "kwargs": {"now": 3}, "keep": "s"},
        {"on": "s", "call": "set", "args": ["a", (1,)], "kwargs": {}},
        {"call": "kv.log:run", "args": [{"$": "s"}], "kwargs": {"x": "q"}},
    ]
    for text in ("1 + 1", "import os", "f(1)", "a.b(c)", "a.b(c.d())"):
        with pytest.raises(ValueError, match=r"."):
            read(text)


@pytest.fixture
def shell_env() -> Any:
    env = gym.make(CODE, interface="text", split="train", disable_env_checker=True).unwrapped
    env.reset(seed=0, options={"task_id": "shell/cut/train/0"})
    return env


def used(env: Any, name: str, **arguments: Any) -> tuple[str, Any]:
    observation, *_, info = env.step({"name": name, "arguments": arguments})
    return info["status"], observation["data"]["last"]["result"]


@pytest.mark.usefixtures("needs_sandbox")
def test_a_command_runs_in_the_workspace(shell_env: Any) -> None:
    status, result = used(shell_env, "run_shell", command="mkdir d; printf 'x\\ny\\n' > d/f; echo out; echo err >&2; exit 4")
    assert (status, result) == ("ok", {"exit_code": 4, "stdout": "out\n", "stderr": "err\n"})
    assert used(shell_env, "read_file", path="d/f")[1]["content"] == "x\ny\n"
    assert len(used(shell_env, "run_shell", command="yes | head -c 300000")[1]["stdout"]) < 100_000
    assert used(shell_env, "run_shell", command="")[0] == "invalid_arguments"


@pytest.mark.usefixtures("needs_sandbox")
def test_lines_are_found(shell_env: Any) -> None:
    used(shell_env, "write_file", path="d/f.txt", content="one\ntwo (2)\n-three\n")
    used(shell_env, "write_file", path="g.txt", content="two (3)\n")
    line = {"path": "d/f.txt", "line": 2, "text": "two (2)"}
    assert used(shell_env, "search", text="two (") == ("ok", {"lines": [line, {"path": "g.txt", "line": 1, "text": "two (3)"}]})
    assert used(shell_env, "search", text="two|-thr", regex=True, within="d/")[1]["lines"] == [line, {**line, "line": 3, "text": "-three"}]
    assert used(shell_env, "search", text="nowhere at all")[0] == "empty"
    assert used(shell_env, "search", text="(", regex=True)[0] == "invalid_arguments"
