"""Grading what sources ask for: right programs pass however slow the machine, and no wrong one does, whatever it returns or prints."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.envs.code_task.graders import GRADERS, Grade, Work
from agent_gym.envs.code_task.graders.compare import SPECIAL, listed, same, same_output
from agent_gym.envs.code_task.graders.functions import SOLUTION_FILE
from agent_gym.envs.code_task.problems import ProblemSet
from agent_gym.sandbox import Limits, default_pool
from tests.envs.code.sources import DATA, row, write

LIAR = """
class Liar:
    def __getattr__(self, name): return lambda *a: True
    def _true(self, *a): return True
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __contains__ = _true
    def _me(self, *a): return self
    __sub__ = __rsub__ = __add__ = __abs__ = __getitem__ = __iter__ = __next__ = __call__ = _me
    __hash__ = lambda self: 0
def {name}(*a): return Liar()
"""
LIST = """
class L(list):
    def __eq__(self, other): return True
    def __len__(self): return 1
def {name}(*a): return L([1])
"""
VERDICT = """
import os
told = b'{"tuple":["verdict",true,""]}'
os.write(3, len(told).to_bytes(8, "big") + told)
def {name}(*a): pass
"""
FUNCTIONS = {
    "equals everything": LIAR,
    "a list that equals everything": LIST,
    "ends the process": "import os\ndef {name}(*a): os._exit(0)\n",
    "ends at import": "import sys\nsys.exit(0)\n",
    "says that it passed": VERDICT,
    "nothing": "def {name}(*a): pass\n",
    "empty": "",
}
PROGRAMS = {
    "prints a verdict": "print('passed', 'OK', '1 passed in 0.01s')",
    "ends at once": "import os; os._exit(0)",
    "knows the first case": "print(7); print(2.3333333)",
    "fails after the answer": "n = int(input())\nx = list(map(int, input().split()))\nprint(sum(x), sum(x) / n, flush=True)\n1 / 0",
    "prints without end": "while True: print(7)",
    "a word too many": "n = int(input())\nx = list(map(int, input().split()))\nprint(sum(x), sum(x) / n, 0)",
    "waits": "input(); input(); input()",
}


def graded(source: Path | str, task_id: str, program: str, **limits: float) -> Grade:
    task = ProblemSet(str(DATA / source)).get(task_id)
    work = Work(files={SOLUTION_FILE: program.encode()}, start={})
    return GRADERS[task.spec["grader"]](work, task.spec["hidden"], Limits(**limits), default_pool())  # type: ignore[arg-type]


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("cheat", FUNCTIONS)
def test_no_function_passes_but_a_right_one(cheat: str) -> None:
    asked = [
        ("mbpp.jsonl", "mbpp/1", "widest_gap"),
        ("evalplus.jsonl", "HumanEval/900", "shares"),
        ("evalplus.jsonl", "Mbpp/2", "similar_elements"),
        ("apps.jsonl", "apps/test/1", "digits"),
    ]
    for source, task_id, name in asked:
        grade = graded(source, task_id, FUNCTIONS[cheat].replace("{name}", name))
        assert (grade.passed, bool(grade.detail)) == (False, True), task_id


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("cheat", PROGRAMS)
def test_no_program_passes_but_a_right_one(cheat: str) -> None:
    grade = graded("apps.jsonl", "apps/test/0", PROGRAMS[cheat], cpu_s=1)
    assert (grade.passed, "case" in grade.detail) == (False, True)


@pytest.mark.usefixtures("needs_sandbox")
def test_knowing_the_visible_test_is_not_enough() -> None:
    assert not graded("mbpp.jsonl", "mbpp/1", "def widest_gap(x):\n    return {(1, 4, 2): 3}.get(tuple(x))").passed
    assert not graded("codecontests.jsonl", "9000_A. Lanterns", "print(0.333333 if input() == '1 3' else '')").passed


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize(
    ("source", "task_id", "program"),
    [
        ("apps.jsonl", "apps/test/0", "input()\nx = list(map(int, input().split()))\nprint('%d %.8f' % (sum(x), sum(x) / len(x)))"),
        ("apps.jsonl", "apps/test/1", "class Solution:\n    def digits(self, n):\n        return tuple(sorted(map(int, str(n))))"),
        ("apps.jsonl", "apps/test/2", "def same(word): return word == word[::-1]"),
        ("evalplus.jsonl", "HumanEval/900", "def shares(parts): return [p * (1 / sum(parts)) for p in parts] if sum(parts) else []"),
        ("evalplus.jsonl", "Mbpp/2", "def similar_elements(one, other): return tuple(x for x in reversed(other) if x in one)"),
        (
            "livecodebench.jsonl",
            "9001",
            "class Solution:\n  def halves(self, numbers, times):\n    return [n * 0.5 ** times for n in numbers]",
        ),
    ],
)
def test_another_right_solution_passes(source: str, task_id: str, program: str) -> None:
    assert graded(source, task_id, program) == Grade(passed=True)


@pytest.mark.usefixtures("needs_sandbox")
def test_time_on_the_clock_fails_nobody_but_who_waits() -> None:
    """On a busy machine a program waits for its turn, which looks just like this: much more time than it works."""
    slow = "import time\ntime.sleep(0.5)\n"
    program = f"{slow}input()\nx = list(map(int, input().split()))\nprint(sum(x), sum(x) / len(x))"
    assert graded("apps.jsonl", "apps/test/0", program, cpu_s=1, wall_s=0.1).passed
    assert graded("apps.jsonl", "apps/test/1", f"{slow}def digits(n): return sorted(map(int, str(n)))", cpu_s=1, wall_s=0.1).passed
    assert graded("mbpp.jsonl", "mbpp/1", f"{slow}{row('mbpp.jsonl')['code']}", cpu_s=1, wall_s=0.1).passed
    began = time.monotonic()
    idle = graded("apps.jsonl", "apps/test/0", "import time\ntime.sleep(600)", cpu_s=0.1, wall_s=0.1)
    assert not idle.passed
    assert time.monotonic() - began < 60
    busy = graded("apps.jsonl", "apps/test/0", "while True: pass", cpu_s=0.5)
    assert busy.detail == "case 1 of 2: it hit the cpu limit"


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize(
    ("change", "program", "passes"),
    [
        # The reference gives no plain value there; what counts is whether there is one.
        ({"task_id": "Mbpp/16", "entry_point": "check_str"}, "def check_str(x): return x > 1", True),
        ({"task_id": "Mbpp/16", "entry_point": "check_str"}, "def check_str(x): return object()", False),
        ({"task_id": "Mbpp/295", "entry_point": "sum_div"}, "def sum_div(x): return 0", True),
        ({"task_id": "Mbpp/900", "entry_point": "sum_div2"}, "def sum_div2(x): return 0", False),
        ({"task_id": "HumanEval/295", "entry_point": "sum_div"}, "def sum_div(x): return 0", False),
    ],
)
def test_special_cases_are_for_the_functions_they_are_for(change: Mapping[str, Any], program: str, passes: bool, tmp_path: Path) -> None:
    name = change["entry_point"]
    body = "re.match('a', 'a' * x if x > 1 else '')" if name == "check_str" else "x"
    fields = {"prompt": "import re\n", "canonical_solution": f"def {name}(x): return {body}\n", "base_input": [[1], [2]], "plus_input": []}
    source = write(tmp_path / "plus.jsonl", {**row("evalplus.jsonl"), **fields, **change})
    assert graded(source, change["task_id"], program).passed is passes


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        ("1 2\n\n3 ", "1\t2 3\n", True),
        ("0.3333333333", "0.33333333", True),
        ("0.34", "0.33", False),
        ("1000000.5", "1000000.0", True),
        ("1e-7", "0.0", True),
        ("-0", "0", True),
        ("5.0", "5", True),
        ("5.0000001", "5", False),
        ("1000000008", "1000000007", False),
        ("nan", "0.5", False),
        ("inf", "1e999", False),
        ("Yes", "YES", False),
        ("", "x", False),
        ("x", "", False),
        ("٣", "3", False),
        ("9" * 10_000, "9" * 9_999 + "8", False),
    ],
)
def test_outputs_are_compared_word_by_word_and_numbers_as_numbers(got: str, expected: str, same: bool) -> None:
    assert (same_output(got, expected) == "") is same


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text(max_size=3) | st.binary(max_size=3),
    lambda part: st.lists(part, max_size=3) | st.tuples(part, part) | st.dictionaries(st.text(max_size=2), part, max_size=2),
    max_leaves=6,
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -(10**400), 1e308, True])


@given(one=PLAIN | NUMBERS, other=PLAIN | NUMBERS)
def test_any_two_values_can_be_compared_and_each_is_itself(one: Any, other: Any) -> None:
    assert same(one, one, 1e-6, 1e-7)
    assert same(listed(one), listed(one), 0, 0)
    assert same(one, other, 0, 0) is same(other, one, 0, 0)
    for special in SPECIAL.values():
        try:
            assert special.right(([1.0, -1.0], 2), one, other, 1e-6) in (True, False)
        except (TypeError, ValueError, OverflowError):
            continue


@given(one=st.text(alphabet="01.-+e \nnaif٣", max_size=12), other=st.text(alphabet="01.-+e \n", max_size=12))
def test_any_two_outputs_can_be_compared_and_each_is_itself(one: str, other: str) -> None:
    assert same_output(one, one) == ""
    assert isinstance(same_output(one, other), str)
