"""Sources of code tasks: files as others write them become tasks whose own solutions pass and whose untouched files do not."""

import difflib
import gzip
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent_gym import evaluate
from agent_gym.cli import app
from agent_gym.envs.code_task.graders.functions import SOLUTION_FILE
from agent_gym.envs.code_task.problems import ProblemSet
from agent_gym.envs.code_task.sources import Handling
from agent_gym.envs.code_task.sources.patch import apply
from agent_gym.errors import ConfigurationError, DatasetError, MissingExtra
from agent_gym.policies import load
from tests.envs.code.sources import DATA, FILES, row, write

CODE = "agent_gym:AgentBase/CodeTask-v0"


def spec(source: Path, task_id: str) -> Mapping[str, Any]:
    return ProblemSet(str(source)).get(task_id).spec


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("name", FILES)
def test_the_given_solutions_pass_and_doing_nothing_does_not(name: str) -> None:
    env = gym.make(CODE, interface="text", source=str(DATA / name))
    tasks: ProblemSet = env.get_wrapper_attr("tasks")
    for split in tasks.splits():
        ids = [task_id for family in tasks.families(split) for task_id in tasks.ids(split, family)]
        keywords = {"source": str(DATA / name)}
        results = [evaluate(load(policy, env), CODE, split=split, tasks=ids, env_kwargs=keywords) for policy in ("oracle", "noop")]
        assert [(result["success_rate"], result["infra_errors"]) for result in results] == [(1.0, 0), (0.0, 0)]


def test_a_format_is_found_by_its_fields_and_what_is_unknown_is_kept() -> None:
    graders = {name: {problem.spec["grader"] for problem in problems(DATA / name)} for name in FILES}
    assert graders == {
        "mbpp.jsonl": {"check"},
        "mbpp_sanitized.json": {"check"},
        "evalplus.jsonl": {"inputs"},
        "apps.jsonl": {"stdio", "calls"},
        "apps": {"stdio"},
        "livecodebench.jsonl": {"stdio", "calls"},
        "codecontests.jsonl": {"stdio"},
        "swebench.jsonl": {"unittest"},
        "minirepo.jsonl": {"unittest"},
    }
    assert spec(DATA / "minirepo.jsonl", "own/shop-2")["metadata"] == {"level": "first"}
    assert spec(DATA / "apps", "train/0000")["metadata"] == {"url": "https://example.org"}
    assert "contract" in spec(DATA / "evalplus.jsonl", "Mbpp/2")["metadata"]


def test_no_goal_and_no_file_tells_what_is_hidden() -> None:
    hidden = {"mbpp.jsonl": "[0, -7, 1]", "apps.jsonl": "2.3333333", "livecodebench.jsonl": "1346269", "codecontests.jsonl": "2.000000000"}
    for name, secret in hidden.items():
        found = problems(DATA / name)
        assert any(secret in json.dumps(task.spec["hidden"]) for task in found)
        assert not any(secret in task.goal + json.dumps(task.spec["files"]) for task in found)


def problems(source: Path) -> list[Any]:
    tasks = ProblemSet(str(source))
    return [tasks.get(i) for split in tasks.splits() for family in tasks.families(split) for i in tasks.ids(split, family)]


def test_one_file_reads_the_same_however_it_is_packed(tmp_path: Path) -> None:
    plain = (DATA / "mbpp.jsonl").read_bytes()
    rows = [json.loads(line) for line in plain.splitlines()]
    forms = {
        "mbpp.jsonl": plain,
        "crlf/mbpp.jsonl": b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n\r\n"),
        "mbpp.jsonl.gz": gzip.compress(plain),
        "mbpp.json": json.dumps(rows, indent=2).encode(),
        "bom/mbpp.json": b"\xef\xbb\xbf \r\n" + json.dumps(rows).encode() + b"\n",
        "mbpp.json.gz": gzip.compress(json.dumps(rows).encode()),
        "lines/mbpp.json": plain,
        "mbpp/a.jsonl": plain,
    }
    read = []
    for name, content in forms.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
        source = tmp_path / ("mbpp" if name.startswith("mbpp/") else name)
        read.append([vars(task) for task in problems(source)])
    assert read[0]
    assert all(other == read[0] for other in read)


def test_a_folder_may_have_splits(tmp_path: Path) -> None:
    shutil.copy(DATA / "mbpp.jsonl", tmp_path / "train.jsonl")
    shutil.copytree(DATA / "apps" / "test", tmp_path / "test")
    (tmp_path / "README.md").write_text("about")
    tasks = ProblemSet(str(tmp_path))
    family = tasks.families("test")[0]
    assert {split: tasks.ids(split, family) for split in tasks.splits()} == {"train": ["mbpp/1", "mbpp/2", "mbpp/3"], "test": ["test/0000"]}
    env = gym.make(CODE, interface="text", source=str(DATA / "apps" / "train"))
    assert env.reset(seed=0)[1]["task_id"] == "train/0000"
    shutil.copy(DATA / "mbpp.jsonl", tmp_path / "validation.jsonl")
    with pytest.raises(DatasetError, match="id 'mbpp/1' stands in split 'train' and in 'validation'"):
        ProblemSet(str(tmp_path))


def test_what_cannot_be_used_is_skipped_counted_and_shown(tmp_path: Path) -> None:
    good = row("mbpp.jsonl")
    source = write(tmp_path / "mixed.jsonl", good, "{torn", {**good, "task_id": 9, "code": None}, good, {"a": 1}, {**good, "task_id": 10})
    tasks = ProblemSet(str(source), Handling(on_error="skip"))
    assert tasks.ids("test", "code/mixed") == ["mbpp/1", "mbpp/10"]
    lines = [why.removeprefix(f"{source}:").partition(":")[0] for why in tasks.skipped]
    assert lines == ["2", "3", "4", "5"]
    options = ["AgentBase/CodeTask-v0", "--set", f"source={source}", "--set", "on_error=skip"]
    for command in (["tasks", "list"], ["tasks", "count"], ["eval", "noop", "--episodes", "1", "--store", str(tmp_path)]):
        shown = CliRunner().invoke(app, [*command, *options])
        assert shown.exit_code == 0, shown.output
        assert "4 rows of the source were skipped" in shown.stderr
    assert len(json.loads(CliRunner().invoke(app, ["tasks", "list", *options, "--json"]).stdout)["skipped"]) == 4
    with pytest.raises(DatasetError, match=r"mixed\.jsonl:2: not JSON"):
        ProblemSet(str(source))
    with pytest.raises(DatasetError, match=r"holds no problem; 1 rows were skipped, the first: .*:1: not JSON"):
        ProblemSet(str(write(tmp_path / "none.jsonl", "{")), Handling(on_error="skip"))
    with pytest.raises(DatasetError, match=r"more than 10000 rows cannot be used; the first: .*:2: not JSON"):
        ProblemSet(str(write(tmp_path / "no_problems.jsonl", good, "x\n" * 10_001)), Handling(on_error="skip"))
    for wrong in ({"on_error": "ignore"}, {"verify": 1}):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            gym.make(CODE, interface="text", source=str(source), **wrong)


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mbpp.jsonl", {"code": "def widest_gap(numbers):\n    return 3\n"}),
        ("evalplus.jsonl", {"canonical_solution": "    return 1 / 0\n"}),
        ("apps.jsonl", {"solutions": json.dumps(["print(7)"])}),
        ("codecontests.jsonl", {"solutions": {"language": [3], "solution": ["print(1/3)"]}}),
        ("minirepo.jsonl", {"solution": {"shop/__init__.py": "\n"}}),
    ],
)
def test_a_solution_that_fails_is_named_with_its_line(name: str, change: Mapping[str, Any], tmp_path: Path) -> None:
    good = row(name)
    task_id = next(field for field in ("task_id", "problem_id", "name") if field in good)
    source = write(tmp_path / "some.jsonl", good, {**good, **change, task_id: "other"})
    with pytest.raises(DatasetError, match=r"some\.jsonl:2: 'other': its own solution fails: "):
        ProblemSet(str(source), Handling(verify=True))
    tasks = ProblemSet(str(source), Handling(on_error="skip", verify=True))
    assert (len(tasks.ids("test", "code/some")), len(tasks.skipped)) == (1, 1)
    assert not ProblemSet(str(source)).skipped


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a class of the solution's": ("mbpp.jsonl", {"code": "class P: pass\ndef f(p): pass", "test_list": ["assert f(P()) is None"]}, "'P'"),
    "asserts of two functions": ("mbpp.jsonl", {"code": "def f(): pass\ndef g(x): pass", "test_list": ["assert g(f()) == 1"]}, "f and g"),
    "no asserts": ("mbpp.jsonl", {"test_list": []}, "'test_list' is empty"),
    "no inputs": ("evalplus.jsonl", {"base_input": [], "plus_input": []}, "no inputs"),
    "inputs without lists": ("evalplus.jsonl", {"base_input": [1]}, "list of lists"),
    "a tolerance that is none": ("evalplus.jsonl", {"atol": "much"}, "'atol'"),
    "no tests": ("apps.jsonl", {"input_output": ""}, "'input_output' is empty"),
    "tests of no length": ("apps.jsonl", {"input_output": '{"inputs": ["1"], "outputs": []}'}, "1 inputs and 0 outputs"),
    "nothing expected": ("apps.jsonl", {"input_output": '{"inputs": ["1"], "outputs": [" "]}'}, "nothing would be graded"),
    "mixed tests": ("livecodebench.jsonl", {"public_test_cases": '[{"input": "", "output": "", "testtype": "functional"}]'}, "kinds"),
    "input from a file": ("codecontests.jsonl", {"input_file": "in.txt"}, "'input_file'"),
    "a limit that is none": ("codecontests.jsonl", {"time_limit": "long"}, "'time_limit'"),
    "an image": ("swebench.jsonl", {"files": ..., "image_name": "swe/shop"}, "needs the image 'swe/shop'"),
    "a repository": ("swebench.jsonl", {"files": ...}, "needs the repository 'own/shop'"),
    "a patch that does not fit": ("swebench.jsonl", {"patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}, "no file 'x'"),
    "a path that leads out": ("minirepo.jsonl", {"files": {"../x": ""}}, "path"),
    "limits beyond all": ("minirepo.jsonl", {"limits": {"cpu_s": 1e9}}, "limits"),
    "no hidden tests": ("minirepo.jsonl", {"hidden_tests": {}}, "no hidden tests"),
    "an id of control characters": ("mbpp.jsonl", {"task_id": "a\nb"}, "'task_id'"),
    "a NUL character": ("mbpp.jsonl", {"code": "def widest_gap(x): '\0'"}, "NUL"),
    "half a pair": ("mbpp.jsonl", {"text": "\ud800"}, "surrogate"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_graded_is_refused_with_the_reason(case: str, tmp_path: Path) -> None:
    name, change, says = REFUSED[case]
    changed = {key: value for key, value in {**row(name), **change}.items() if value is not ...}
    source = write(tmp_path / "rows.jsonl", changed)
    with pytest.raises(DatasetError, match=says) as caught:
        ProblemSet(str(source))
    assert str(caught.value).startswith(f"{source}:1: ")


def test_long_numbers_and_what_json_lacks_stay_exact(tmp_path: Path) -> None:
    digits = "7" * 9_000
    tests = f'{{"inputs": ["1"], "outputs": ["{digits}"]}}'
    apps = write(tmp_path / "apps.jsonl", {**row("apps.jsonl"), "input_output": tests})
    assert spec(apps, "apps/test/0")["hidden"]["cases"] == [("1", digits)]
    line = json.dumps({**row("evalplus.jsonl"), "base_input": [], "plus_input": "@"}).replace('"@"', f"[[[NaN, -Infinity, {digits}]]]")
    given = spec(write(tmp_path / "plus.jsonl", line), "HumanEval/900")["hidden"]["inputs"][0]
    assert given.startswith('{"tuple":[[NaN,-Infinity,{"int":"0x')


def test_tuples_that_json_cannot_say_are_restored() -> None:
    inputs = spec(DATA / "evalplus.jsonl", "Mbpp/2")["hidden"]["inputs"]
    assert inputs[0] == '{"tuple":[{"tuple":[3,4]},{"tuple":[5,4]}]}'


def test_a_data_set_of_the_hub_is_read_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)  # a folder of that name stands for the hub
    datasets.disable_progress_bars()
    write(tmp_path / "own" / "shop" / "train.jsonl", row("mbpp.jsonl"))
    write(tmp_path / "own" / "shop" / "test.jsonl", {**row("mbpp.jsonl"), "task_id": 7}, {**row("mbpp.jsonl"), "task_id": 8, "code": ""})
    with pytest.raises(DatasetError, match="hf:own/shop test:2: "):
        ProblemSet("hf:own/shop")
    tasks = ProblemSet("hf:own/shop", Handling(on_error="skip"))
    assert {split: tasks.ids(split, "code/shop") for split in tasks.splits()} == {"train": ["mbpp/1"], "test": ["mbpp/7"]}
    write(tmp_path / "own" / "torn" / "test.jsonl", "{")
    with pytest.raises(DatasetError, match="hf:own/torn: cannot be had"):
        ProblemSet("hf:own/torn")
    with pytest.raises(ConfigurationError, match="expected 'hf:org/name'"):
        ProblemSet("hf:shop")


def test_without_its_package_the_hub_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"agent-gym\[hf\]"):
        ProblemSet("hf:own/other")


@pytest.mark.parametrize(
    ("source", "error", "says"),
    [
        ("", ConfigurationError, "source: got ''"),
        ("a\0b", ConfigurationError, "source: got"),
        (["a.jsonl"], ConfigurationError, "source: got"),
        ("x" * 5000, DatasetError, "cannot be read"),
        ("hf:a//b", ConfigurationError, "expected 'hf:org/name'"),
        ("/dev/zero", DatasetError, "is no regular file"),
    ],
)
def test_a_source_that_is_none_is_named(source: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        gym.make(CODE, interface="text", source=source)


def test_an_empty_folder_holds_nothing_and_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds no problem"):
        ProblemSet(str(tmp_path))
    for number in (1, 2):
        write(tmp_path / f"{number}.jsonl", {**row("mbpp.jsonl"), "task_id": number})
        assert len(problems(tmp_path)) == number
    (tmp_path / "1.jsonl").unlink()
    assert [task.id for task in problems(tmp_path)] == ["mbpp/2"]


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", " c\n", "+d\n", "-e\n", "\\f\n"]), max_size=8)


@given(before=LINES, after=LINES, ended=st.tuples(st.booleans(), st.booleans()))
def test_a_diff_makes_of_the_old_text_the_new_one(before: list[str], after: list[str], ended: tuple[bool, bool]) -> None:
    old, new = ("".join(text) if end else "".join(text).removesuffix("\n") for text, end in zip((before, after), ended, strict=True))
    if old == new:
        return
    assert apply({"x": old, "y": "other"}, diff(old, new)) == {"x": new}
    assert apply({}, diff("", "z\n", name="new/file", born=True)) == {"new/file": "z\n"}


def diff(old: str, new: str, name: str = "x", born: bool = False) -> str:
    """As ``git diff`` writes it."""
    made = difflib.unified_diff(old.splitlines(True), new.splitlines(True), "/dev/null" if born else f"a/{name}", f"b/{name}", n=1)
    lines = [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made]
    return f"diff --git a/{name} b/{name}\n" + "".join(lines)


def test_solutions_go_into_one_file() -> None:
    tasks = ProblemSet(str(DATA / "livecodebench.jsonl"))
    assert list(tasks.get("9001").spec["files"]) == [SOLUTION_FILE]
    assert "class Solution" in tasks.get("9001").goal + tasks.get("9001").spec["files"][SOLUTION_FILE]
