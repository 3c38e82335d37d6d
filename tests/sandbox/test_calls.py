# ruff: noqa: E501 - a hostile program is easier to read on one line
"""Calling an untrusted program's functions: a plain value, or an error that says what kind."""

import os
import pickle
import signal
import time
from typing import Any

import pytest

from agent_gym.errors import InfrastructureError
from agent_gym.sandbox import CandidateError, CodecError, Limits
from tests.sandbox.conftest import Start

pytestmark = pytest.mark.usefixtures("needs_sandbox")

QUICK = Limits(wall_s=60, cpu_s=2, memory_mib=256)


def test_values_arguments_and_state_of_one_process(start: Start) -> None:
    program = "import helper\nseen = []\ndef f(*args, **kwargs):\n  seen.append(args)\n  return [args, kwargs, len(seen), helper.N]\nclass Solution:\n  @staticmethod\n  def g(x): return {x}"
    with start(program, files={"helper.py": b"N = 7"}, limits=QUICK) as candidate:
        args = (1, 2.5, "a", (1, [2]), {3: b"x"}, {4}, None)
        assert candidate.call("f", args, {"k": 1j}).value == [args, {"k": 1j}, 1, 7]
        assert candidate.call("f").value == [(), {}, 2, 7]
        assert candidate.call("Solution.g", (5,)).value == {5}


def test_arguments_come_back_as_the_call_left_them(start: Start) -> None:
    with start("def f(x, *, y):\n  x.append(9)\n  y.clear()", limits=QUICK) as candidate:
        assert candidate.call("f", ([1],), {"y": {1: 2}}) == (None, ([1, 9],), {"y": {}})


def test_a_raise_is_told_and_the_process_goes_on(start: Start) -> None:
    with start("def f(x):\n  if x: raise ValueError('no')\n  return 1\ndef g(): raise SystemExit(0)", limits=QUICK) as candidate:
        with pytest.raises(CandidateError) as caught:
            candidate.call("f", (1,))
        assert (caught.value.kind, caught.value.exception, caught.value.message) == ("raised", "ValueError", "no")
        with pytest.raises(CandidateError, match="raised: SystemExit"):
            candidate.call("g")
        with pytest.raises(CandidateError, match="raised: AttributeError"):
            candidate.call("nothing")
        assert candidate.call("f", (0,)).value == 1


@pytest.mark.parametrize(
    "source",
    [
        "def f(:",
        "1/0",
        "import sys; sys.exit(0)",
        "raise SystemExit",
        "import no_such_module",
        "\0",
        "class E(BaseException):\n  def __str__(self): 1/0\nraise E",
    ],
)
def test_a_program_that_does_not_load(source: str, start: Start) -> None:
    with start(source, limits=QUICK) as candidate:
        for _ in range(2):
            with pytest.raises(CandidateError) as caught:
                candidate.call("f")
            assert caught.value.kind == "not_loaded"


@pytest.mark.parametrize(
    "source",
    ["import os; os._exit(0)", "import os; os.kill(os.getpid(), 9)", "import ctypes; ctypes.string_at(0)", "import os; os.close(3)"],
)
@pytest.mark.parametrize("where", ["load", "call"])
def test_a_program_that_dies(source: str, where: str, start: Start) -> None:
    with start(source if where == "load" else f"def f(): {source}", limits=QUICK) as candidate:
        for _ in range(2):
            with pytest.raises(CandidateError) as caught:
                candidate.call("f")
            assert caught.value.kind == "died"


@pytest.mark.parametrize(
    "source", ["while True: pass", "import time; time.sleep(100)", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"]
)
@pytest.mark.parametrize("where", ["load", "call"])
def test_a_program_that_takes_too_long(source: str, where: str, start: Start) -> None:
    with start(source if where == "load" else f"def f():\n  {source}", limits=Limits(cpu_s=1, wall_s=1.5)) as candidate:
        with pytest.raises(CandidateError) as caught:
            candidate.call("f")
        assert caught.value.kind == "timeout"


def test_one_call_can_have_a_limit_of_its_own(start: Start) -> None:
    with start("import time\ndef f(): time.sleep(100)", limits=QUICK) as candidate:
        candidate.wait_loaded()
        started = time.monotonic()
        with pytest.raises(CandidateError, match="timeout"):
            candidate.call("f", timeout_s=0.3)
        assert time.monotonic() - started < 20


def test_memory_is_bounded(start: Start) -> None:
    with (
        start("def f(): return len(bytearray(1 << 30))", limits=QUICK) as candidate,
        pytest.raises(CandidateError, match="raised: MemoryError"),
    ):
        candidate.call("f")
    program = "import os\ndef f():\n  for _ in range(3): os.fork()\n  b = bytearray(100 << 20)\n  while True: pass"
    with start(program, limits=Limits(memory_mib=128)) as candidate, pytest.raises(CandidateError, match=r"died: .*memory"):
        candidate.call("f")


HOSTILE = """
class Liar:
    __class__ = property(lambda self: int)
    def __eq__(self, other): return True
    def __repr__(self): raise SystemExit
    def __reduce__(self): return (print, ("no",))
    def __iter__(self): raise KeyboardInterrupt
class L(list):
    def __eq__(self, other): return True
class I(int):
    __eq__ = lambda a, b: True
    __hash__ = int.__hash__
def deep():
    x = []
    for _ in range(10**6): x = [x]
    return x
def itself():
    x = []; x.append(x); return x
def shared():
    x = [0] * 10
    for _ in range(40): x = [x] * 10
    return x
def endless():
    while True: yield 1
"""


@pytest.mark.parametrize(
    "expression",
    [
        "Liar()",
        "L()",
        "I(1)",
        "[Liar()]",
        "{I(1)}",
        "{1: L()}",
        "deep()",
        "itself()",
        "shared()",
        "endless()",
        "1 << 4_000_000",
        "'x' * (8 << 20)",
        "[0] * 10**6",
        "lambda: 1",
        "Liar",
        "range(3)",
    ],
)
def test_a_value_that_is_not_plain_is_unsendable_and_the_process_goes_on(expression: str, start: Start) -> None:
    with start(HOSTILE + f"def f(): return {expression}\ndef g(): return 1", limits=Limits(cpu_s=20, wall_s=60)) as candidate:
        with pytest.raises(CandidateError) as caught:
            candidate.call("f")
        assert caught.value.kind == "unsendable"
        assert candidate.call("g").value == 1


def test_what_a_program_prints_goes_nowhere(start: Start) -> None:
    program = "import os, sys\nprint('x' * 10**7)\nos.write(2, b'y' * 10**7)\ndef f():\n  print('(\"value\", 1)', file=sys.__stderr__)\n  return sys.stdin.read()"
    with start(program, limits=QUICK) as candidate:
        assert candidate.call("f").value == ""


FORGED = {
    "junk": "os.write(3, b'junk' * 1000)",
    "length": "os.write(3, b'\\xff' * 8)",
    "endless": "exec('while True: os.write(3, bytes(65536))')",
    "not a tuple": "os.write(3, (4).to_bytes(8, 'big') + b'[[]]')",
    "empty": "os.write(3, (12).to_bytes(8, 'big') + b'{\"tuple\":[]}')",
    "deep": "os.write(3, (10**6).to_bytes(8, 'big') + b'[' * 10**6)",
    "shut": "__import__('socket').socket(fileno=3).shutdown(2)",
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_nonsense_on_the_channel_is_the_candidates_failure(forged: str, start: Start) -> None:
    with start(f"import os\ndef f():\n  {forged}\n  os._exit(0)", limits=Limits(wall_s=30, cpu_s=2)) as candidate:
        with pytest.raises(CandidateError) as caught:
            candidate.call("f")
        assert caught.value.kind in ("died", "timeout")


def test_a_forged_answer_is_only_a_value(start: Start) -> None:
    forge = """
import os
def f(x):
    data = b'{"tuple":["value",42,{"tuple":[]},{"dict":[]}]}'
    os.write(3, len(data).to_bytes(8, "big") + data)
    return 1
"""
    with start(forge, limits=QUICK) as candidate:
        assert candidate.call("f", (1,)).value == 42


def test_arguments_that_may_not_travel_are_the_callers_mistake(start: Start) -> None:
    with start("def f(x): return x", limits=QUICK) as candidate:
        with pytest.raises(CodecError):
            candidate.call("f", (object(),))
        assert candidate.call("f", (1,)).value == 1


def test_large_arguments_do_not_block_when_nobody_reads_them(start: Start) -> None:
    with start(
        "def f(x): return len(x)\ndef g(): import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", limits=Limits(wall_s=2)
    ) as candidate:
        assert candidate.call("f", ("x" * 3_000_000,)).value == 3_000_000
        with pytest.raises(CandidateError, match="timeout"):
            candidate.call("g")


def test_after_close_and_after_a_fork(start: Start) -> None:
    candidate = start("def f(): return os.getpid()\nimport os", limits=QUICK)
    candidate.call("f")
    pid = os.fork()
    if pid == 0:
        try:
            candidate.call("f")
        except InfrastructureError:
            candidate.close()  # of the fork's copy only
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert candidate.call("f").value > 1
    candidate.close()
    candidate.close()
    with pytest.raises(CandidateError, match="closed"):
        candidate.call("f")


def test_after_an_interrupted_call_no_call_gets_its_answer(start: Start) -> None:
    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    program = "import time\ndef f():\n  time.sleep(1)\n  return 'of f'\ndef g(): return 'of g'"
    with start(program, limits=QUICK) as candidate:
        candidate.wait_loaded()
        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(Stop):
                candidate.call("f")
        finally:
            signal.signal(signal.SIGALRM, before)
        with pytest.raises(CandidateError, match="died: a call was interrupted"):
            candidate.call("g")


def test_what_a_program_says_can_be_written_down(start: Start) -> None:
    with start("def f():\n  raise ValueError('\\ud801')", limits=QUICK) as candidate:
        with pytest.raises(CandidateError) as caught:
            candidate.call("f")
        assert (caught.value.exception, caught.value.message) == ("ValueError", r"\ud801")


def test_a_program_does_not_inherit_our_future_statements_and_may_be_bytes(start: Start) -> None:
    program = b"\xef\xbb\xbf# coding: utf-8\ndef f(x: int): return f.__annotations__['x'] is int"
    with start(program, limits=QUICK) as candidate:
        assert candidate.call("f", (1,)).value is True
    with (
        start("def f(x: nothing): pass", limits=QUICK) as candidate,
        pytest.raises(CandidateError, match="not_loaded: NameError"),
    ):
        candidate.call("f", (1,))


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(CandidateError("raised", "no", "ValueError")))
    assert (error.kind, error.message, error.exception) == ("raised", "no", "ValueError")


@pytest.mark.parametrize("value", [1, [1, 2], {"a": (1.5, None)}])
def test_each_process_starts_anew(value: Any, start: Start) -> None:
    program = "import os\nfirst = not os.path.exists('/tmp/x')\nopen('/tmp/x', 'w')\ndef f(v): return [first, v]"
    for _ in range(2):
        with start(program, limits=QUICK) as candidate:
            assert candidate.call("f", (value,)).value == [True, value]


@pytest.mark.parametrize("path", ["../up", "/abs", "a//b", ""])
def test_files_with_paths_that_are_not_plain_are_refused(start: Start, path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        start("", files={path: b""})


def test_text_that_starts_with_a_byte_order_mark_is_read_as_python_reads_it(start: Start) -> None:
    with start("\ufeffdef f(): return 1", limits=QUICK) as candidate:
        assert candidate.call("f").value == 1
